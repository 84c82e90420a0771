//! What can be checked of the tree without building it: documents that name what is there,
//! sources of a size to read, licences that go together.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of one source at most: what is longer is two things.
const LINES_MAX: usize = 900;

/// Words of licences that this project may be built from.
const LICENCES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The folders that hold sources of both packages.
const SOURCES: [&str; 3] = ["src", "loadgen/src", "tests"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all files with an extension below some folders and files, by their path from the root.
fn files(places: &[&str], extension: &str) -> Vec<(String, String)> {
    let mut left: Vec<PathBuf> = places.iter().map(|place| root().join(place)).collect();
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap();
            left.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|found| found == extension) {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    assert!(!found.is_empty(), "{places:?} hold nothing");
    found
}

fn documents() -> Vec<(String, String)> {
    let places = [
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "README.md",
        "docs",
    ];
    files(&places, "md")
}

fn check(wrong: &[String]) {
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_source_says_what_it_is() {
    let sources = files(&SOURCES, "rs").into_iter();
    // Tests beside the code are part of the module that they test.
    let silent = sources
        .filter(|(name, text)| !name.ends_with("/tests.rs") && !text.starts_with("//! "))
        .map(|(name, _)| name);
    check(&silent.collect::<Vec<_>>());
}

#[test]
fn every_source_is_of_a_size_to_read() {
    let sources = files(&SOURCES, "rs").into_iter();
    let long = sources
        .map(|(name, text)| (name, text.lines().count()))
        .filter(|(_, lines)| LINES_MAX < *lines)
        .map(|(name, lines)| format!("{name} has {lines} lines"));
    check(&long.collect::<Vec<_>>());
}

/// What starts tasks and threads in the shell besides its supervisor, how often, and who notices
/// their ends.
const STARTED: [(&str, usize, &str); 6] = [
    (
        "connection.rs",
        1,
        "it tells the owner that a connection has gone",
    ),
    (
        "doors.rs",
        1,
        "the listener joins the tasks of its connections",
    ),
    ("oidc.rs", 1, "the reading of a file is awaited"),
    (
        "serve.rs",
        2,
        "a start joins one; the other sends keys to the owner",
    ),
    ("supervisor.rs", 3, "the supervisor itself"),
    ("tls.rs", 1, "the reading of certificates is awaited"),
];

#[test]
fn tasks_and_threads_of_the_shell_are_supervised() {
    let sources = files(&["src/shell"], "rs").into_iter();
    let found = sources
        .filter(|(name, _)| !name.ends_with("tests.rs"))
        .filter_map(|(name, text)| {
            let code = text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            let starts = [
                "tokio::spawn(",
                "thread::spawn(",
                "spawn_blocking(",
                ".spawn(",
            ];
            let count: usize = starts.iter().map(|start| code.matches(start).count()).sum();
            let name = name.trim_start_matches("src/shell/").to_owned();
            (count != 0).then_some((name, count))
        });
    let mut found: Vec<(String, usize)> = found.collect();
    found.sort();
    let expected = STARTED.map(|(name, count, _)| (name.to_owned(), count));
    assert_eq!(found, expected, "supervisor.rs starts what lasts");
}

#[test]
fn nothing_is_left_for_later() {
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("db", "g!("),
    ];
    let mut wrong = Vec::new();
    let all = files(&SOURCES, "rs").into_iter().chain(documents());
    for (name, text) in all {
        for (at, line) in text.lines().enumerate() {
            if words.iter().any(|word| line.contains(word)) {
                wrong.push(format!("{name}:{}: {}", at + 1, line.trim()));
            }
        }
    }
    check(&wrong);
}

#[test]
fn no_registry_is_named() {
    // Where packages come from is the business of whoever builds, and of their configuration.
    let hosts = [
        concat!("crates", ".io"),
        concat!("pypi", ".org"),
        concat!("python", "hosted.org"),
        concat!("npm", "js.org"),
        concat!("npm", "js.com"),
    ];
    let sources = files(&SOURCES, "rs").into_iter();
    let manifests = files(&["Cargo.toml", "loadgen/Cargo.toml"], "toml");
    let mut wrong = Vec::new();
    for (name, text) in sources.chain(documents()).chain(manifests) {
        for host in hosts {
            if text.contains(host) {
                wrong.push(format!("{name} names {host}"));
            }
        }
    }
    check(&wrong);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut wrong = Vec::new();
    for (name, text) in documents() {
        let folder = Path::new(&name).parent().unwrap();
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let path = link.split('#').next().unwrap();
            if path.is_empty() || link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            if !root().join(folder).join(path).exists() {
                wrong.push(format!("{name} leads to {path}, and there is nothing"));
            }
        }
    }
    check(&wrong);
}

#[test]
fn files_that_documents_name_are_there() {
    let mut wrong = Vec::new();
    for (name, text) in documents() {
        for word in text.split('`').skip(1).step_by(2) {
            let path = word.split(':').next().unwrap();
            let known = ["src/", "loadgen/", "tests/", "docs/"];
            let whole = path
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            if whole
                && known.iter().any(|known| path.starts_with(known))
                && !root().join(path).exists()
            {
                wrong.push(format!("{name} names {path}, and there is nothing"));
            }
        }
    }
    check(&wrong);
}

#[test]
fn licences_of_dependencies_go_together_with_ours() {
    let host = Command::new("rustc").arg("-vV").output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: "));
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--locked", "--format-version=1"])
        .args(["--filter-platform", host.unwrap()])
        .current_dir(root())
        .output()
        .unwrap();
    // What is not there cannot be looked at; whoever built this test has all that it needs.
    let all: serde_json::Value = serde_json::from_slice(&metadata.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&metadata.stderr)));
    let mut wrong = Vec::new();
    for package in all["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none");
        // A licence with an exception allows more than without.
        let mut words = licence.split(" WITH ").map(|part| {
            let part = part.trim_start_matches("LLVM-exception");
            part.split(['(', ')', '/', ' '])
                .filter(|word| !["", "AND", "OR"].contains(word))
                .all(|word| LICENCES.contains(&word))
        });
        if !words.all(|known| known) {
            wrong.push(format!("{}: {licence}", package["name"]));
        }
    }
    check(&wrong);
}

/// Returns what stands between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

#[test]
fn the_tables_of_costs_name_bounds_and_tests_that_are_there() {
    let document = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let (_, tables) = document
        .split_once("## What a peer can make the broker spend")
        .unwrap();
    let tables = tables.split("\n## ").next().unwrap();
    let sources = files(&SOURCES, "rs");
    let has = |text: &str| sources.iter().any(|(_, source)| source.contains(text));
    let limits = &sources
        .iter()
        .find(|(name, _)| name == "src/limits.rs")
        .unwrap()
        .1;
    let (mut rows, mut wrong) = (0, Vec::new());
    for line in tables.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').collect();
        let [_, _, _, constants, tests, _] = cells[..] else {
            wrong.push(format!("four cells are wanted: {line}"));
            continue;
        };
        rows += 1;
        let place = quoted(constants).into_iter().find(|it| it.contains('/'));
        for name in quoted(constants).into_iter().filter(|it| !it.contains('/')) {
            let defined = format!("const {name}:");
            let elsewhere = place.is_some() && has(&defined);
            if !limits.contains(&defined) && !elsewhere {
                wrong.push(format!("{name} is no constant of limits.rs"));
            }
        }
        for name in quoted(tests) {
            let is_there = if name.contains('/') {
                root().join(name).exists()
            } else {
                has(&format!("fn {name}("))
            };
            if !is_there {
                wrong.push(format!("there is no test {name}"));
            }
        }
    }
    assert!(30 < rows, "the tables are there");
    check(&wrong);
}
