//! A name of a type has one meaning in its crate: who reads it knows which one is meant without the path.

use std::collections::BTreeMap;

use super::tidy::{check, files, root};

/// Returns the name of the type that a line declares outside of functions, traits and implementations.
fn declared(line: &str) -> Option<&str> {
    let after_visibility = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.strip_prefix(' ')?,
        None => line,
    };
    let (keyword, rest) = after_visibility.split_once(' ')?;
    let is_type = matches!(keyword, "struct" | "enum" | "trait" | "type" | "union");
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
    is_type.then(|| &rest[..end.unwrap_or(rest.len())])
}

/// Returns the lines in front of the tests within a source.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let end = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    text[..end].lines().enumerate()
}

#[test]
fn a_name_of_a_type_has_one_meaning_in_its_crate() {
    let crates = std::fs::read_dir(root().join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().file_name().display().to_string());
    let crates = crates.map(|name| format!("crates/{name}/src"));
    let mut wrong = Vec::new();
    for folder in crates.chain(["src".to_owned(), "loadgen/src".to_owned()]) {
        let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, text) in files(&[&folder], "rs") {
            // Types of tests have no path by which another file names them.
            if name.contains("test") {
                continue;
            }
            for (at, line) in lines(&text) {
                if let Some(declared) = declared(line) {
                    let found = places.entry(declared.to_owned()).or_default();
                    found.push(format!("{name}:{}", at + 1));
                }
            }
        }
        let several = places.into_iter().filter(|(_, places)| 1 < places.len());
        wrong.extend(several.map(|(name, places)| format!("{name}: {}", places.join(", "))));
    }
    check(&wrong);
}

#[test]
fn a_declaration_is_found_however_visible_it_is() {
    assert_eq!(declared("struct One {"), Some("One"));
    assert_eq!(declared("pub enum Two<'a> {"), Some("Two"));
    assert_eq!(
        declared("pub(in crate::cli) struct Three(u64);"),
        Some("Three")
    );
    assert_eq!(declared("pub(crate) type Four = u64;"), Some("Four"));
    assert_eq!(
        declared("    type Answer = Page;"),
        None,
        "it belongs to an implementation"
    );
    assert_eq!(declared("use one::struct_of;"), None);
}
