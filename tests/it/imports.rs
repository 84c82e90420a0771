//! The imports of the server's files: none imports another that imports it, and rooms (the folders of `src`) are
//! imported by the rooms behind them only.
//!
//! An import is a name of another file that is used: by `use`, or by a path in the code. A name that is passed on (`pub
//! use`) is an import of the file that defines it. `mod` is none, and neither is a `pub use` of what lies below the
//! file: a folder's first file shows what is in the folder. Tests are not read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::tokens::{tokens, without_tests};

/// Where the rooms are, and how paths in the code name that place.
const ROOT: (&str, &str) = ("src", "crate");

/// The rooms, and the file of bounds: each may import those before it.
const ROOMS: [&str; 10] = [
    "limits", "system", "net", "host", "store", "peer", "amqp", "http", "run", "cli",
];

/// The path of a module: `crate`, its room, and so on.
type Module = Vec<String>;

/// A name that a `use` brings in.
#[derive(Debug)]
struct Import {
    /// As it is written.
    path: Vec<String>,
    /// By which the file knows it.
    name: String,
    /// Other files may have it from here.
    is_public: bool,
}

/// A file of the sources, without its tests.
#[derive(Debug, Default)]
struct Source {
    imports: Vec<Import>,
    /// The paths in the code.
    paths: Vec<Vec<String>>,
    /// The modules that it declares, which are files of their own.
    children: BTreeSet<String>,
}

/// Reads the trees of a `use`: the paths, and the names that they get. Returns how many tokens those were.
fn read_tree(tokens: &[&str], prefix: &[String], found: &mut Vec<(Vec<String>, String)>) -> usize {
    let mut path = prefix.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match *token {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens.get(at).is_some_and(|token| *token != "}") {
                    at += read_tree(&tokens[at..], &path, found);
                    if tokens.get(at) == Some(&",") {
                        at += 1;
                    }
                }
                return at + 1;
            }
            "as" => {
                found.push((path, tokens[at + 1].to_owned()));
                return at + 2;
            }
            "," | "}" | ";" => break,
            "self" if path.len() != prefix.len() || !prefix.is_empty() => at += 1,
            word => {
                path.push(word.to_owned());
                at += 1;
            }
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    found.push((path, name));
    at
}

/// Returns the path that begins there.
fn path_at(tokens: &[&str]) -> Vec<String> {
    let mut path = vec![tokens[0].to_owned()];
    let mut rest = &tokens[1..];
    while let ["::", word, ..] = rest
        && word.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        path.push((*word).to_owned());
        rest = &rest[2..];
    }
    path
}

impl Source {
    fn read(text: &str) -> Self {
        let tokens = without_tests(&tokens(text));
        let mut source = Self::default();
        // Modules within the file, each with the depth of its braces.
        let mut within: Vec<usize> = Vec::new();
        let (mut at, mut depth) = (0, 0_usize);
        while at < tokens.len() {
            let rest = &tokens[at..];
            at += match rest {
                ["pub", "(", "in", ..] => rest.iter().position(|it| *it == ")").unwrap() + 1,
                // What a type of a result captures.
                ["use", "<", ..] => 1,
                ["use", ..] => {
                    let is_public = at != 0 && matches!(tokens[at - 1], "pub" | ")");
                    let mut trees = Vec::new();
                    let length = read_tree(&rest[1..], &[], &mut trees);
                    source.import(trees, is_public, within.len());
                    1 + length
                }
                ["mod", name, ";", ..] => {
                    source.children.insert((*name).to_owned());
                    3
                }
                ["mod", _, "{", ..] => {
                    within.push(depth);
                    depth += 1;
                    3
                }
                ["{", ..] => {
                    depth += 1;
                    1
                }
                ["}", ..] => {
                    depth = depth.saturating_sub(1);
                    if within.last() == Some(&depth) {
                        within.pop();
                    }
                    1
                }
                [_, "::", ..] if at == 0 || !matches!(tokens[at - 1], "::" | ".") => {
                    let path = path_at(rest);
                    let length = 2 * path.len() - 1;
                    source.paths.extend(outside(path, within.len()));
                    length
                }
                _ => 1,
            };
        }
        source
    }

    fn import(&mut self, trees: Vec<(Vec<String>, String)>, is_public: bool, within: usize) {
        for (path, name) in trees {
            if let Some(path) = outside(path, within) {
                self.imports.push(Import {
                    path,
                    name,
                    is_public,
                });
            }
        }
    }
}

/// Returns a path of a module within a file as the file itself would write it; none if it is a path to the file.
fn outside(mut path: Vec<String>, within: usize) -> Option<Vec<String>> {
    for _ in 0..within {
        match path.first().map(String::as_str) {
            Some("super") => drop(path.remove(0)),
            Some("self") => return None,
            _ => break,
        }
    }
    (!path.is_empty()).then_some(path)
}

/// The sources by their modules.
struct Sources(BTreeMap<Module, Source>);

/// For each module, those whose names it uses.
type Graph = BTreeMap<Module, BTreeSet<Module>>;

impl Sources {
    /// Reads files, which have paths such as `http/api/mod.rs`, and leaves out those that are tests'.
    fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let all = files.into_iter().map(|(name, text)| {
            let name = name.trim_end_matches(".rs");
            let name = name.strip_suffix("mod").unwrap_or(name);
            let name = if name == "lib" { "" } else { name };
            let parts = name.split('/').filter(|part| !part.is_empty());
            let module = [ROOT.1].into_iter().chain(parts).map(str::to_owned);
            (module.collect(), Source::read(text))
        });
        let mut all: BTreeMap<Module, Source> = all.collect();
        let declared: Vec<Module> = all
            .keys()
            .filter(|module| {
                (2..=module.len()).all(|length| {
                    let (name, parent) = module[..length].split_last().unwrap();
                    let parent = all.get(parent);
                    parent.is_some_and(|parent| parent.children.contains(name))
                })
            })
            .cloned()
            .collect();
        all.retain(|module, _| declared.contains(module));
        Self(all)
    }

    /// Returns a path from the library's root on; none if it is not the library's.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Module> {
        let mut base = module.clone();
        let mut path = path;
        match path.first()?.as_str() {
            "crate" => return Some(path.to_vec()),
            "self" => path = &path[1..],
            "super" => {
                while let Some(("super", rest)) = path.split_first().map(|(a, b)| (a.as_str(), b)) {
                    base.pop();
                    path = rest;
                }
            }
            first if self.0[module].children.contains(first) => {}
            _ => return None,
        }
        base.extend(path.iter().cloned());
        Some(base)
    }

    /// Returns the file that a path leads to, and whether it leads to something in it.
    fn find(&self, path: &[String]) -> Option<(Module, bool)> {
        let length = (1..=path.len()).rfind(|length| self.0.contains_key(&path[..*length]))?;
        let (module, rest) = path.split_at(length);
        let Some(item) = rest.first() else {
            return Some((module.to_vec(), false));
        };
        let passed_on = self.0[module].imports.iter().find(|it| it.name == *item);
        let Some(passed_on) = passed_on else {
            return Some((module.to_vec(), true));
        };
        // A re-exported item of another package belongs to no file of this one.
        let mut path = self.absolute(&module.to_vec(), &passed_on.path)?;
        path.extend(rest[1..].iter().cloned());
        self.find(&path)
    }

    fn graph(&self) -> Graph {
        let graph = self.0.iter().map(|(module, source)| {
            let mut used = BTreeSet::new();
            let mut names: BTreeMap<&str, Module> = BTreeMap::new();
            for import in &source.imports {
                let Some(path) = self.absolute(module, &import.path) else {
                    continue;
                };
                match self.find(&path) {
                    Some((target, true)) if import.is_public && target.starts_with(module) => {}
                    Some((target, true)) => drop(used.insert(target)),
                    // The file itself is used where a path begins with its name.
                    Some((_, false)) => drop(names.insert(&import.name, path)),
                    None => {}
                }
            }
            for path in &source.paths {
                let path = match names.get(path[0].as_str()) {
                    Some(file) => Some([&file[..], &path[1..]].concat()),
                    None => self.absolute(module, path),
                };
                used.extend(path.and_then(|path| Some(self.find(&path)?.0)));
            }
            used.remove(module);
            (module.clone(), used)
        });
        graph.collect()
    }
}

/// Returns the modules that import one another, in groups.
fn circles(graph: &Graph) -> Vec<BTreeSet<&Module>> {
    let reached = |from| {
        let mut reached: BTreeSet<&Module> = BTreeSet::new();
        let mut next: Vec<&Module> = vec![from];
        while let Some(module) = next.pop() {
            let new = graph.get(module).into_iter().flatten();
            next.extend(new.filter(|module| reached.insert(*module)));
        }
        reached
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = graph
        .keys()
        .map(|module| (module, reached(module)))
        .collect();
    let of = |module| {
        let both = reached[module]
            .iter()
            .filter(|other| reached[*other].contains(module));
        both.copied().collect::<BTreeSet<&Module>>()
    };
    let all: BTreeSet<BTreeSet<&Module>> = graph.keys().map(of).collect();
    all.into_iter()
        .filter(|circle| !circle.is_empty())
        .collect()
}

/// Returns the sources below a folder of the tree, by their path from there.
fn files(folder: &str) -> Vec<(String, String)> {
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

/// The imports of the server's files.
fn server() -> Graph {
    let files = files(ROOT.0);
    let files = files.iter().map(|(name, text)| (&name[..], &text[..]));
    Sources::new(files).graph()
}

fn shown(module: &[String]) -> String {
    module[1..].join("/")
}

#[test]
fn no_file_of_the_server_imports_another_that_imports_it() {
    let graph = server();
    let circles: Vec<Vec<String>> = circles(&graph)
        .into_iter()
        .map(|circle| circle.into_iter().map(|module| shown(module)).collect())
        .collect();
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn a_room_imports_only_those_before_it() {
    let graph = server();
    let place = |module: &Module| {
        let room = module.get(1)?;
        let place = ROOMS.iter().position(|it| it == room);
        Some(place.unwrap_or_else(|| panic!("{room} is no room")))
    };
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (module, used) in &graph {
        seen.extend(place(module));
        for target in used.iter().filter(|target| place(module) < place(target)) {
            wrong.push(format!("{} imports {}", shown(module), shown(target)));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(seen.len(), ROOMS.len(), "each room has files");
}

#[test]
fn an_import_is_found_however_it_is_written() {
    let imports = |text: &str| {
        let others = "mod a;\nmod b;\nmod of_b;\n";
        let sources = [
            ("mod.rs", "mod x;\nmod y;\n"),
            ("x/mod.rs", others),
            ("x/a.rs", text),
            ("x/b.rs", "pub(super) use super::of_b::Passed;\n"),
            ("x/of_b.rs", "pub(super) struct Passed;\n"),
            ("y.rs", "pub(super) fn f() {}\n"),
        ];
        let graph = Sources::new(sources).graph();
        let found = graph.get(&["crate", "x", "a"].map(str::to_owned)[..]);
        found
            .unwrap()
            .iter()
            .map(|it| shown(it))
            .collect::<Vec<_>>()
    };
    for (text, expected) in [
        ("use super::b::B;", &["x/b"][..]),
        (
            "use super::{b::{self, B}, of_b::Passed};",
            &["x/b", "x/of_b"],
        ),
        ("use super::super::y::f;", &["y"]),
        (
            "use crate::{x::b::B as C, y};\nfn g() { y::f() }",
            &["x/b", "y"],
        ),
        ("fn g() { crate::y::f() }", &["y"]),
        ("fn g() { let _ = super::b::B; }", &["x/b"]),
        ("mod inner { use super::super::b::B; }", &["x/b"]),
        // The file that defines it, and not the one that passes it on.
        ("use super::b::Passed;", &["x/of_b"]),
        ("use super::b;\nfn g(_: b::Passed) {}", &["x/of_b"]),
        // Not an import.
        ("fn g() -> impl Sized + use<> { f(); g(); }", &[]),
        ("// use super::b::B;\nconst T: &str = \"super::b::B\";", &[]),
        (
            "pub(in crate::x) fn g<'a>(_: &'a str) -> char { '\"' }",
            &[],
        ),
        (
            "#[cfg(test)]\nuse super::b::{B, C};\n#[cfg(test)]\n#[path = \"t.rs\"]\nmod tests { use super::super::b::B; }",
            &[],
        ),
    ] {
        assert_eq!(imports(text), expected, "{text}");
    }
}

#[test]
fn a_circle_is_found_and_what_a_folder_shows_of_its_files_is_none() {
    let found = |files: &[(&str, &str)]| {
        let graph = Sources::new(files.iter().copied()).graph();
        let circles = circles(&graph);
        let all = circles.iter().flatten().map(|module| shown(module));
        all.collect::<Vec<String>>()
    };
    let root = ("mod.rs", "mod x;\nmod y;\nmod z;\n");
    let circle = [
        root,
        ("x.rs", "use super::y::Y;"),
        ("y.rs", "fn f() { super::z::z() }"),
        ("z.rs", "use crate::{x::{X}};"),
    ];
    assert_eq!(found(&circle), ["x", "y", "z"]);
    assert_eq!(
        found(&[circle[0], circle[1], circle[2]]),
        Vec::<String>::new()
    );
    let shown = [
        root,
        ("x/mod.rs", "mod inner;\npub(super) use inner::Inner;"),
        ("x/inner.rs", "use super::Outer;\nuse super::super::y::Y;"),
    ];
    assert_eq!(found(&shown), Vec::<String>::new());
    let within = [
        root,
        ("x/mod.rs", "mod inner;\npub(super) fn f() { inner::g() }"),
        ("x/inner.rs", "use super::Outer;"),
    ];
    assert_eq!(found(&within), ["x", "x/inner"]);
    let only_tests = [
        root,
        ("x.rs", "#[cfg(test)]\nmod tests;"),
        ("x/tests.rs", "use super::super::y::Y;"),
        ("y.rs", "use super::x::X;"),
    ];
    assert_eq!(found(&only_tests), Vec::<String>::new());
}
