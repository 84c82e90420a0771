//! The imports of modules: the table of ARCHITECTURE.md, compared with the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A module, or the package `loadgen`, and the modules of ours that it may import.
const TABLE: [(&str, &str); 22] = [
    ("time", ""),
    ("limits", "time"),
    ("codec", "time limits"),
    ("address", "limits"),
    ("ids", ""),
    ("secret", ""),
    ("rights", "time"),
    ("histogram", "time"),
    ("memory", "limits"),
    ("amqp", "time limits codec secret"),
    ("message", "time limits codec"),
    ("rules", "time limits ids memory message"),
    (
        "queue",
        "time limits ids rights histogram memory message rules",
    ),
    ("access", "time limits address secret rights"),
    (
        "namespace",
        "time limits address ids rights memory message rules queue access",
    ),
    (
        "gateway",
        "time limits codec address ids rights memory amqp message rules queue access namespace",
    ),
    ("journal", "time limits ids memory queue"),
    ("config", "time limits address message rules"),
    (
        "shard",
        "time limits address ids memory amqp message queue access namespace gateway journal",
    ),
    (
        "fuzzing",
        "time limits codec address ids rights histogram memory amqp message rules queue access namespace gateway journal config shard",
    ),
    (
        "server",
        "time limits codec address ids secret rights histogram memory amqp message rules queue access namespace gateway journal config shard",
    ),
    ("loadgen", "time limits codec secret amqp message"),
];

/// Names of other packages, and the places that may use them.
const OTHERS: [(&str, &[&str]); 22] = [
    ("tokio::", &["server"]),
    ("axum::", &["server"]),
    ("std::net", &["server"]),
    ("std::fs", &["server"]),
    ("clap::", &["server"]),
    ("hyper::", &["server"]),
    ("rustls::", &["server"]),
    ("rcgen::", &["server"]),
    ("aws_lc_rs::", &["access", "server"]),
    ("jsonwebtoken::", &["access"]),
    (
        "fe2o3_amqp_types::",
        &["amqp", "message", "gateway/amqp/management", "fuzzing"],
    ),
    (
        "serde_amqp::",
        &[
            "amqp",
            "message",
            "gateway/amqp/management",
            "server/commands/amqp",
        ],
    ),
    ("fe2o3_amqp::", &["server/commands/amqp"]),
    ("indicatif::", &["server"]),
    ("quick_xml::", &["gateway/admin"]),
    ("prometheus_client::", &["server"]),
    ("utoipa::", &["server"]),
    ("opentelemetry", &["server"]),
    ("comfy_table::", &["server"]),
    ("rust_embed::", &["server"]),
    ("flate2::", &["server"]),
    ("tokio_postgres", &["server/store"]),
];

/// Returns the sources below a folder of the tree, by their path from there.
fn sources(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

/// The lines of a source that are code and not a test's.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text
        .lines()
        .take_while(|line| *line != "#[cfg(test)]" || text.contains("\nmod tests;"));
    lines.map(|line| line.split("//").next().unwrap_or_default())
}

/// Returns the modules of ours that some code names: `crate::one` and `crate::{one, two::Three}`,
/// `crate` being the name of our library there.
fn named<'a>(code: &'a str, library: &str) -> Vec<&'a str> {
    let word = |text| {
        let text: &str = text;
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        &text[..end.unwrap_or(text.len())]
    };
    let mut found = Vec::new();
    for rest in code.split(&format!("{library}::")).skip(1) {
        match rest.strip_prefix('{') {
            Some(group) => {
                let group = group.split('}').next().unwrap();
                found.extend(group.split(',').map(|item| word(item.trim())));
            }
            None => found.push(word(rest)),
        }
    }
    found
}

fn module_of(name: &str) -> &str {
    name.split('/').next().unwrap().trim_end_matches(".rs")
}

fn is_test(name: &str) -> bool {
    name.ends_with("tests.rs") || name.ends_with("faulty.rs") || name.contains("/tests/")
}

#[test]
fn modules_import_only_what_the_table_allows() {
    let table: BTreeMap<&str, BTreeSet<&str>> = TABLE
        .iter()
        .map(|&(module, imports)| (module, imports.split_ascii_whitespace().collect()))
        .collect();
    let of_library = sources("src").into_iter().map(|(name, text)| {
        let module = module_of(&name).to_owned();
        (module, "crate", name, text)
    });
    let of_loadgen = sources("loadgen/src")
        .into_iter()
        .map(|(name, text)| ("loadgen".to_owned(), "jitney", name, text));
    let mut wrong = Vec::new();
    for (module, library, name, text) in of_library.chain(of_loadgen) {
        let module = module.as_str();
        if is_test(&name) || module == "main" || module == "lib" {
            continue;
        }
        let allowed = table
            .get(module)
            .unwrap_or_else(|| panic!("{module} is not in the table"));
        for used in named(&code(&text).collect::<Vec<_>>().join("\n"), library) {
            if used != module && table.contains_key(used) && !allowed.contains(used) {
                wrong.push(format!("{name} imports {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn third_party_names_are_used_only_where_the_table_allows() {
    let mut wrong = Vec::new();
    for (name, text) in sources("src") {
        if is_test(&name) || name == "main.rs" {
            continue;
        }
        for line in code(&text) {
            for (other, places) in OTHERS {
                if line.contains(other) && !places.iter().any(|place| name.starts_with(place)) {
                    wrong.push(format!("{name} names {other}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_map_shows_the_same_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md");
    let map = std::fs::read_to_string(path).unwrap();
    for (module, imports) in TABLE {
        let shown = match module {
            "time" | "limits" | "codec" => "| `time`, `limits`, `codec` | one another |".to_owned(),
            "server" => "| `server` | everything |".to_owned(),
            _ if imports.is_empty() => format!("| `{module}` | |"),
            _ => format!("| `{module}` | `{imports}` |"),
        };
        assert!(
            map.contains(&shown),
            "ARCHITECTURE.md has no row that begins with {shown}"
        );
    }
}
