//! The operator's configuration.

/// Parses a text: every mistake that is reported has a position in it.
pub(super) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Err(mistakes) = jitney_config::parse(&text) else {
        return;
    };
    assert!(!mistakes.is_empty(), "refused without a reason");
    // A carriage return without a line feed ends a line too.
    let lines = text.matches(['\n', '\r']).count() + 1;
    for mistake in mistakes {
        let line = mistake.line;
        assert!(line <= lines, "line {line} of {lines}");
        assert!(!mistake.to_string().is_empty());
    }
}
