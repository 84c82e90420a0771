//! Sources as words and signs, for the checks that read them.

/// Divides a text into words, lifetimes and signs, without comments and the contents of literals.
pub(super) fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = rest.strip_prefix('r').filter(|raw| is_raw_text(raw)) {
            let hashes = raw.find('"').unwrap_or_default();
            let end = format!("\"{}", "#".repeat(hashes));
            let from = 2 + hashes;
            rest[from..]
                .find(&end)
                .map_or(rest.len(), |at| from + at + end.len())
        } else if first == '"' {
            1 + end_of_text(&rest[1..])
        } else if let Some(length) = length_of_character(rest) {
            length
        } else if first == '\'' {
            let length = rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1);
            found.push(&rest[..=length]);
            1 + length
        } else if is_word(first) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            found.push(&rest[..length]);
            length
        } else if rest.starts_with("::") {
            found.push(&rest[..2]);
            2
        } else {
            if !first.is_whitespace() {
                found.push(&rest[..first.len_utf8()]);
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// Returns whether a raw text follows an `r`.
fn is_raw_text(after: &str) -> bool {
    after.trim_start_matches('#').starts_with('"')
}

/// Returns where a text ends, behind its quotation mark.
fn end_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the length of the literal of a character, if a text begins with one.
fn length_of_character(text: &str) -> Option<usize> {
    let within = text.strip_prefix('\'')?;
    let first = within.chars().next()?;
    if first == '\\' {
        let end = text[3..].find('\'').map_or(text.len(), |end| end + 4);
        return Some(end);
    }
    let end = first.len_utf8();
    within[end..].starts_with('\'').then_some(end + 2)
}

/// Leaves out the items that are only for tests.
pub(super) fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&TEST) {
            kept.push(tokens[at]);
            at += 1;
            continue;
        }
        at += TEST.len();
        while tokens[at..].starts_with(&["#"]) {
            at += 1 + length_of_attribute(&tokens[at + 1..]);
        }
        at += length_of_item(&tokens[at..]);
    }
    kept
}

/// Returns how many tokens an item has, from the end of its attributes on.
fn length_of_item(tokens: &[&str]) -> usize {
    let is_import = tokens
        .iter()
        .find(|token| !["pub", "(", "crate", "super", ")"].contains(token))
        == Some(&"use");
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            ";" if depth == 0 => return at + 1,
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 && *token == "}" && !is_import {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Returns how many tokens the rest of an attribute has, behind its `#`.
fn length_of_attribute(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "[" => depth += 1,
            "]" if depth == 1 => return at + 1,
            "]" => depth -= 1,
            _ => {}
        }
    }
    tokens.len()
}
