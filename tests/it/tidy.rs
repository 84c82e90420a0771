//! Checks of the tree that need no build: documents name existing files, sources have a readable size.

use std::path::{Path, PathBuf};

/// Lines of one source at most: what is longer is two things.
const LINES_MAX: usize = 900;

/// The folders that hold sources of all packages.
const SOURCES: [&str; 4] = ["src", "crates", "loadgen/src", "tests"];

pub(super) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all files with an extension below some folders and files, by their path from the root.
pub(super) fn files(places: &[&str], extension: &str) -> Vec<(String, String)> {
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

pub(super) fn check(wrong: &[String]) {
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

/// Sources of the server that start tasks or threads besides its supervisor, how often, and how their
/// ends are noticed.
const STARTED: [(&str, usize, &str); 20] = [
    (
        "amqp/connection.rs",
        1,
        "the connection's first task awaits its second",
    ),
    (
        "amqp/membership.rs",
        1,
        "it tells the owner that a connection has gone",
    ),
    (
        "host/history.rs",
        1,
        "the history is written once at a time, and the stop awaits the last",
    ),
    (
        "host/namespaces.rs",
        1,
        "the writing of the record of namespaces is awaited",
    ),
    ("host/oidc.rs", 1, "the reading of a file is awaited"),
    ("host/traces.rs", 1, "the request to a collector is awaited"),
    (
        "http/api/searches.rs",
        1,
        "a search awaits the look at its page",
    ),
    (
        "http/receive.rs",
        1,
        "it tells the owner that a client has left",
    ),
    (
        "net/listener.rs",
        1,
        "the listener joins the tasks of its connections",
    ),
    ("net/tls.rs", 1, "the reading of certificates is awaited"),
    (
        "run/config_file.rs",
        1,
        "the reading of the configuration is awaited",
    ),
    (
        "run/local.rs",
        1,
        "a start joins the threads that read logs",
    ),
    (
        "run/running.rs",
        1,
        "the sending of the last spans is awaited",
    ),
    (
        "run/start.rs",
        2,
        "a start joins one; another sends keys to the owner",
    ),
    (
        "store/configure.rs",
        1,
        "the questions to stores which namespaces are outdated are joined",
    ),
    (
        "store/fleet.rs",
        3,
        "the joining of stores at the start, and the handovers at the stop, are joined",
    ),
    (
        "store/history.rs",
        1,
        "the encoding of a history is awaited",
    ),
    ("store/measure.rs", 1, "the questions to owners are joined"),
    ("store/take_over.rs", 1, "the reading of a log is awaited"),
    ("system/supervisor.rs", 3, "the supervisor itself"),
];

#[test]
fn tasks_and_threads_of_the_server_are_supervised() {
    let sources = files(&["src"], "rs").into_iter();
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
            let name = name.trim_start_matches("src/").to_owned();
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

/// Words that sources and documents do not use, with what to write instead. A capital is another
/// word: `Visitor` is a trait of serde.
const BANNED: [(&str, &str); 26] = [
    ("House", "server state"),
    ("house", "server"),
    ("guest", "accepted peer"),
    ("guests", "accepted peers"),
    ("door", "listener"),
    ("doors", "listeners"),
    ("visitor", "unauthenticated connection"),
    ("visitors", "unauthenticated connections"),
    ("stranger", "unauthenticated peer"),
    ("strangers", "unauthenticated peers"),
    ("Whoever", "the peer, client or caller that is meant"),
    ("whoever", "the peer, client or caller that is meant"),
    ("Nobody", "no client, no receiver, or the passive voice"),
    ("nobody", "no client, no receiver, or the passive voice"),
    ("Somebody", "a client, another receiver"),
    ("somebody", "a client, another receiver"),
    ("Everybody", "all clients"),
    ("everybody", "all clients"),
    ("goes on", "continues, or is forwarded"),
    ("go on", "continue, or are forwarded"),
    ("at hand", "loaded, in memory"),
    ("leads on", "redirects"),
    ("let in", "accepted, attached, admitted"),
    ("seen to", "handled"),
    ("stands", "is, lies, or represents"),
    ("worth while", "worth its cost"),
];

/// Returns the banned words of a line, with what to write instead.
fn banned_in(line: &str) -> Vec<(&'static str, &'static str)> {
    let has = |word: &str| {
        // A word of a name is a word, and `let in_flight` has none of two.
        let is_part = |c: char| c.is_alphanumeric() || c == '_' && word.contains(' ');
        line.match_indices(word).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    };
    BANNED.into_iter().filter(|(word, _)| has(word)).collect()
}

#[test]
fn sources_and_documents_use_the_words_of_the_field() {
    let mut wrong = Vec::new();
    let sources = files(&SOURCES, "rs").into_iter().filter(|(name, _)| {
        !name.starts_with("crates/simulator/tests/") && name != "tests/it/tidy.rs"
    });
    // The matrix is generated from the names of tests of others.
    let documents = documents()
        .into_iter()
        .filter(|(name, _)| name != "docs/interop-matrix.md");
    for (name, text) in sources.chain(documents) {
        for (at, line) in text.lines().enumerate() {
            for (word, instead) in banned_in(line) {
                wrong.push(format!("{name}:{}: '{word}': write {instead}", at + 1));
            }
        }
    }
    check(&wrong);
}

#[test]
fn banned_words_are_found_as_whole_words() {
    let words = |line| banned_in(line).into_iter().map(|(word, _)| word);
    assert_eq!(words("a stranger at the doors").count(), 2);
    assert_eq!(words("outdoors, warehouse, let in_flight").count(), 0);
    assert_eq!(words("is_stranger").count(), 1);
    assert_eq!(words("it goes on").collect::<Vec<_>>(), ["goes on"]);
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
    let manifests = files(&["Cargo.toml", "crates", "loadgen/Cargo.toml"], "toml");
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

/// Returns the anchors of a document's headings, as Markdown readers make them.
fn anchors(document: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_code = false;
    for line in document.lines() {
        is_code ^= line.starts_with("```");
        let title = line.trim_start_matches('#');
        if is_code || title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = title.trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || "-_".contains(c) => Some(c.to_ascii_lowercase()),
            _ => None,
        });
        let anchor: String = kept.collect();
        let count = found.iter().filter(|other| **other == anchor).count();
        found.push(match count {
            0 => anchor,
            _ => format!("{anchor}-{count}"),
        });
    }
    found
}

/// Returns the names of documents in a text, each with the anchor behind it.
fn named_documents(text: &str) -> Vec<(&str, Option<&str>)> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let is_anchor = |c: char| c.is_alphanumeric() || "_-".contains(c);
    let found = text.match_indices(".md").filter_map(|(at, end)| {
        let (before, behind) = (&text[..at], &text[at + end.len()..]);
        let start = before.rfind(|c| !is_path(c)).map_or(0, |at| {
            at + before[at..].chars().next().map_or(0, char::len_utf8)
        });
        // An address of the web, a word that goes on, and a path that code puts together are none.
        let is_code = before[..start].ends_with('"') && behind.starts_with('"');
        let is_name = start < at
            && !before[..start].ends_with(':')
            && !behind.starts_with(is_path_end)
            && !is_code;
        let anchor = behind.strip_prefix('#').map(|anchor| {
            let end = anchor.find(|c| !is_anchor(c)).unwrap_or(anchor.len());
            &anchor[..end]
        });
        is_name.then_some((&text[start..at + end.len()], anchor))
    });
    found.collect()
}

fn is_path_end(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_/-".contains(c)
}

/// Says what is wrong with a citation, if anything is.
fn fault_of_citation(file: &str, path: &str, anchor: Option<&str>) -> Option<String> {
    let folders = Path::new(file).ancestors().skip(1);
    let beside = folders.map(|folder| root().join(folder).join(path));
    let page = root().join("docs/protocol").join(path);
    let is_bare = !path.contains('/');
    let Some(found) = beside
        .chain(is_bare.then_some(page))
        .find(|at| at.is_file())
    else {
        return Some(format!("{file} cites {path}, and there is nothing"));
    };
    let pages = root().join("docs/protocol");
    let is_page = found.parent() == Some(&pages) && !file.starts_with("docs/protocol/");
    match anchor {
        None if is_page && is_bare => Some(format!("{file} cites {path} without a section")),
        None => None,
        Some(anchor) => {
            let text = std::fs::read_to_string(&found).unwrap();
            let is_there = anchors(&text).iter().any(|other| other == anchor);
            (!is_there)
                .then(|| format!("{file} cites {path}#{anchor}, and there is no such heading"))
        }
    }
}

/// Returns all texts in which something may be cited, but for this one: its tests cite wrongly.
fn citing_files() -> Vec<(String, String)> {
    // What builds and installations leave behind is not ours, nor are libraries that are vendored.
    const FOREIGN: [&str; 7] = [
        "__pycache__",
        "artifacts",
        "corpus",
        "dist",
        "node_modules",
        "target",
        "vendor",
    ];
    let places = [
        "benches",
        "certs",
        "crates",
        "docs",
        "fuzz",
        "interop-tests",
        "loadgen",
        "src",
        "tests",
    ];
    let mut left: Vec<PathBuf> = places.iter().map(|place| root().join(place)).collect();
    let pages = std::fs::read_dir(root()).unwrap();
    let pages = pages.map(|entry| entry.unwrap().path());
    left.extend(pages.filter(|path| path.extension().is_some_and(|found| found == "md")));
    let mut found = Vec::new();
    while let Some(path) = left.pop() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !FOREIGN.contains(&name.as_str()) {
                let entries = std::fs::read_dir(path).unwrap();
                left.extend(entries.map(|entry| entry.unwrap().path()));
            }
            continue;
        }
        if let Ok(text) = std::fs::read_to_string(&path) {
            let name = path.strip_prefix(root()).unwrap().display().to_string();
            found.push((name, text));
        }
    }
    found.retain(|(name, _)| name != file!());
    found
}

#[test]
fn citations_lead_to_a_heading() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (name, text) in citing_files() {
        for (path, anchor) in named_documents(&text) {
            count += usize::from(anchor.is_some());
            wrong.extend(fault_of_citation(&name, path, anchor));
        }
        if Path::new(&name)
            .extension()
            .is_some_and(|found| found == "md")
        {
            let own = text.split("](#").skip(1);
            let own = own.filter_map(|link| link.split(')').next());
            wrong.extend(own.filter_map(|anchor| fault_of_citation(&name, &name, Some(anchor))));
        }
        for line in text.lines() {
            // Sections of notes that are not here were cited by a sign and a number.
            let sections = line.split('\u{a7}').skip(1);
            let numbered = sections.filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            if numbered.count() != 0 && !line.contains("RFC") {
                wrong.push(format!(
                    "{name} cites a section of nothing: {}",
                    line.trim()
                ));
            }
        }
    }
    assert!(500 < count, "{count} citations are found");
    check(&wrong);
}

#[test]
fn wrong_citations_are_found() {
    let fault = |text: &str| {
        let named = named_documents(text);
        let mut found = named.iter();
        let found = found.find_map(|&(path, anchor)| fault_of_citation("src/lib.rs", path, anchor));
        (named.len(), found.is_some())
    };
    assert_eq!(fault("credit (`receiving.md#drain`)."), (1, false));
    assert_eq!(fault("[a](docs/log-format.md#recovery)"), (1, false));
    assert_eq!(fault("see README.md."), (1, false));
    assert_eq!(fault("https://example.org/x/receiving.md#y"), (0, false));
    // Old names, no such section, no such page, a page without a section.
    assert_eq!(fault("(`protocol.md` 5.3)"), (1, true));
    assert_eq!(fault("(`receiving.md#drains`)"), (1, true));
    assert_eq!(fault("(`recieving.md#drain`)"), (1, true));
    assert_eq!(fault("(`emulator.md` A.3)"), (1, true));
}

#[test]
fn headings_have_the_anchors_that_readers_make() {
    let document =
        "# A page\n\n## Detach, end and close\n```sh\n# no heading\n```\n## `a` b\n## A page\n";
    let expected = ["a-page", "detach-end-and-close", "a-b", "a-page-1"];
    assert_eq!(anchors(document), expected);
}

#[test]
fn files_that_documents_name_are_there() {
    let mut wrong = Vec::new();
    for (name, text) in documents() {
        for word in text.split('`').skip(1).step_by(2) {
            let path = word.split(':').next().unwrap();
            let known = ["src/", "crates/", "loadgen/", "tests/", "docs/"];
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
    let of_limits = |name: &str| name.ends_with("/limits.rs") || name.contains("/limits/");
    let limits = sources.iter().filter(|(name, _)| of_limits(name));
    let limits: String = limits.map(|(_, source)| source.as_str()).collect();
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
                wrong.push(format!("{name} is no constant of the limits"));
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
