//! The parameters of functions: none is a `bool` or a tuple. A call does not say what `true` or the parts of a pair mean; a
//! value of an enum, a method with a name of its own, and the fields of a struct do.
//!
//! Sources are read as text. Tests, closures and function pointers are not read.

use super::tidy::{check, files};
use super::tokens::{tokens, without_tests};

/// The folders whose functions are read.
const READ: [&str; 3] = ["crates", "loadgen/src", "src"];

/// Functions that may have such a parameter: their files, their names, and why.
const ALLOWED: [(&str, &str, &str); 4] = [
    (
        "crates/amqp/src/codec/list.rs",
        "boolean",
        "a value of AMQP that is written",
    ),
    (
        "crates/amqp/src/codec/write.rs",
        "write_boolean",
        "a value of AMQP that is written",
    ),
    (
        "crates/amqp/src/small_frame.rs",
        "boolean",
        "a value of AMQP that is written",
    ),
    (
        "crates/broker/src/namespace/jobs/json_path/document.rs",
        "visit_bool",
        "a trait of serde has it",
    ),
];

/// A function with such a parameter.
#[derive(Debug, PartialEq, Eq)]
struct Offence<'a> {
    function: &'a str,
    line: usize,
    kind: &'static str,
}

/// Returns how many tokens there are up to the end of the bracket that the first one opens.
fn length_of_bracket(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" | "<" => depth += 1,
            // Of an arrow.
            ">" if tokens[at.saturating_sub(1)] == "-" => {}
            ")" | "]" | "}" | ">" => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Divides what is in a bracket at a sign that is in no bracket of its own. Behind the last sign there may be nothing.
fn divide<'a, 'b>(tokens: &'b [&'a str], sign: &str) -> Vec<&'b [&'a str]> {
    let mut parts = Vec::new();
    let (mut begin, mut at) = (0, 0);
    while at < tokens.len() {
        if tokens[at] == sign {
            parts.push(&tokens[begin..at]);
            at += 1;
            begin = at;
        } else if ["(", "[", "{", "<"].contains(&tokens[at]) {
            at += length_of_bracket(&tokens[at..]);
        } else {
            at += 1;
        }
    }
    parts.push(&tokens[begin..]);
    parts
}

/// Says what a parameter's type is, if it is one that no parameter is to have. A reference to it is one, too.
fn fault_of_type(mut kind: &[&str]) -> Option<&'static str> {
    while let ["&", rest @ ..] = kind {
        let is_part = |token: &&&str| **token == "mut" || token.starts_with('\'');
        kind = &rest[rest.iter().take_while(is_part).count()..];
    }
    match kind {
        ["bool"] => Some("bool"),
        ["(", within @ .., ")"] if 1 < divide(within, ",").len() => Some("tuple"),
        _ => None,
    }
}

/// Returns the functions of a source that have such a parameter.
fn offences(text: &str) -> Vec<Offence<'_>> {
    let all = without_tests(&tokens(text));
    let mut found = Vec::new();
    for (at, _) in all.iter().enumerate().filter(|(_, token)| **token == "fn") {
        // In a macro a name may be a variable.
        let name = at + 1 + usize::from(all.get(at + 1) == Some(&"$"));
        let mut begin = name + 1;
        if all.get(begin) == Some(&"<") {
            begin += length_of_bracket(&all[begin..]);
        }
        if all.get(begin) != Some(&"(") {
            continue;
        }
        let end = begin + length_of_bracket(&all[begin..]) - 1;
        for parameter in divide(&all[begin + 1..end], ",") {
            let [_, kind] = divide(parameter, ":")[..] else {
                continue;
            };
            if let Some(kind) = fault_of_type(kind) {
                let function = all[name];
                let before = function.as_ptr().addr() - text.as_ptr().addr();
                found.push(Offence {
                    function,
                    line: 1 + text[..before].matches('\n').count(),
                    kind,
                });
            }
        }
    }
    found
}

/// Returns whether a file is a source of a package, and none of its tests.
fn is_read(name: &str) -> bool {
    let mut parts = name.split('/');
    name.split('/').any(|part| part == "src")
        && !parts.any(|part| part == "tests" || part.ends_with("tests.rs"))
}

#[test]
fn no_function_has_a_bool_or_a_tuple_as_a_parameter() {
    let sources = files(&READ, "rs");
    let sources = sources.iter().filter(|(name, _)| is_read(name));
    let mut left: Vec<(&str, &str)> = ALLOWED
        .iter()
        .map(|(file, name, _)| (*file, *name))
        .collect();
    left.retain(|(file, _)| READ.iter().any(|folder| file.starts_with(folder)));
    let mut allowed = Vec::new();
    let mut wrong = Vec::new();
    for (name, text) in sources {
        for offence in offences(text) {
            let Offence {
                function,
                line,
                kind,
            } = offence;
            let place = (&name[..], function);
            if left.contains(&place) {
                allowed.push(place);
            } else {
                wrong.push(format!("{name}:{line}: `{function}` takes a {kind}"));
            }
        }
    }
    left.retain(|place| !allowed.contains(place));
    let stale = left.iter();
    wrong.extend(stale.map(|(file, name)| format!("{file}: `{name}` needs no exception")));
    check(&wrong);
}

#[test]
fn a_bool_or_a_tuple_is_found_however_a_function_is_written() {
    let found = |text: &'static str| -> Vec<(&str, usize, &str)> {
        let all = offences(text).into_iter();
        all.map(|it| (it.function, it.line, it.kind)).collect()
    };
    for (text, expected) in [
        ("fn f(a: bool) {}", &[("f", 1, "bool")][..]),
        ("fn f(&self, mut a: bool,) {}", &[("f", 1, "bool")]),
        (
            "impl A {\n    fn f(a: u8, b: &mut bool) {}\n}",
            &[("f", 2, "bool")],
        ),
        ("fn f((a, b): (A, B)) {}", &[("f", 1, "tuple")]),
        ("fn f<'a>(a: &'a mut (A, B)) {}", &[("f", 1, "tuple")]),
        (
            "fn f<F: Fn(A) -> B, G>(a: F, b: &'static (A, B<C, D>)) {}",
            &[("f", 1, "tuple")],
        ),
        (
            "fn f(a: (A,), b: bool) {}",
            &[("f", 1, "tuple"), ("f", 1, "bool")],
        ),
        (
            "trait A {\n\n    async fn f(\n        a: u8,\n        b: bool,\n    );\n}",
            &[("f", 3, "bool")],
        ),
        (
            "macro_rules! m { ($name:ident) => { fn $name(a: bool) {} } }",
            &[("name", 1, "bool")],
        ),
        ("fn f(a: u8) { fn g(b: bool) {} }", &[("g", 1, "bool")]),
        // Neither a bool nor a tuple as a whole.
        (
            "fn f(self, a: Option<bool>, b: &[(A, B)], c: Vec<(A, B)>) -> (A, bool) {}",
            &[],
        ),
        (
            "fn f(a: &mut (impl A<B, C> + D), b: (), c: &(dyn A + B), d: [bool; 2]) {}",
            &[],
        ),
        (
            "fn f(a: impl Fn(A, bool) -> bool, b: fn(bool), S { c, d }: S<A, B>) {}",
            &[],
        ),
        ("fn f() { let g = |a: bool, (b, c): (A, B)| a; }", &[]),
        // Not read.
        ("// fn f(a: bool)\nconst A: &str = \"fn f(a: bool)\";", &[]),
        (
            "#[cfg(test)]\nmod tests { fn f(a: bool) {} }\nfn g(a: char) { '(' }",
            &[],
        ),
    ] {
        assert_eq!(found(text), expected, "{text}");
    }
}
