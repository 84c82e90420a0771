//! Where namespaces are kept: which shard of the data directory each has.
//!
//! `shards.json` in the data directory says it. A namespace's shard is decided when the namespace is
//! first seen, and stays: its messages are in that shard's log. Shard 0 has its log in the data
//! directory itself, as every release had it; shard `N` in the directory `shard-N` there.
//!
//! The file is written before anything of a new namespace is, so that what is in a log has a record. A
//! namespace that a log has and the file has not (the log is older than the file) stays where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tracing::{error, info};

use crate::limits;
use crate::system::files::{self, NotReplaced, Readers};

/// The file, in the data directory.
pub(crate) const FILE: &str = "shards.json";
/// The version of its format.
const VERSION: u32 = 1;
/// What the names of the other shards' directories begin with.
const DIRECTORY: &str = "shard-";

/// The namespaces and their shards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Placement {
    version: u32,
    /// The namespace whose entities have no namespace in their paths. It is always in shard 0.
    first: Option<String>,
    /// All namespaces that ever were in the configuration, and those that the operator has made, in lower case.
    namespaces: BTreeMap<String, u32>,
    /// Those that the operator has made: they are served whether the configuration names them or not.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    made: BTreeSet<String>,
}

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlacementError {
    #[error(transparent)]
    NotWritten(#[from] NotReplaced),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{} cannot be read as the record of namespaces and their shards: {what}. Restore it from a \
         backup: without it, namespaces could be served without their messages", path.display()
    )]
    Malformed { path: PathBuf, what: String },
    #[error(
        "{} is missing, but {} exists: which namespaces have their messages there is not known. \
         Restore {FILE} from a backup, or move the directory away if its messages are not needed",
        record.display(), directory.display()
    )]
    Missing { record: PathBuf, directory: PathBuf },
    #[error(
        "{} says that the namespace '{namespace}' is in shard {shard}, but {} does not exist. Restore \
         that directory from a backup, or remove the namespace from {FILE} to begin without its \
         messages", record.display(), directory.display()
    )]
    Lost {
        record: PathBuf,
        directory: PathBuf,
        namespace: String,
        shard: u32,
    },
    #[error(
        "{} says that the namespace '{namespace}' is in shard {shard}, but its entities are in shard \
         {found}. Set it to {found} there if that is right, or restore the data directory from a backup",
        record.display()
    )]
    Elsewhere {
        record: PathBuf,
        namespace: String,
        shard: u32,
        found: u32,
    },
    #[error(
        "the namespace '{namespace}' has entities in shard {one} and in shard {other}, and {} does not \
         say which are right: name its shard there, or restore that file from a backup", record.display()
    )]
    Twice {
        record: PathBuf,
        namespace: String,
        one: u32,
        other: u32,
    },
    #[error(
        "the configuration names '{configured}' first, but the first namespace of this data directory \
         is '{recorded}' ({}), and the two would change messages: put '{recorded}' first again, or restore \
         that file from a backup",
        record.display()
    )]
    First {
        record: PathBuf,
        configured: String,
        recorded: String,
    },
}

/// Returns where a shard's log is kept.
pub(crate) fn directory_of(data: &Path, shard: u32) -> PathBuf {
    if shard == 0 {
        return data.to_owned();
    }
    data.join(format!("{DIRECTORY}{shard}"))
}

/// Returns the shard whose directory has this name, of those that have one of their own.
pub(crate) fn number_of(name: &str) -> Option<u32> {
    name.strip_prefix(DIRECTORY)?.parse().ok()
}

impl Placement {
    /// Reads the record of a data directory, and checks it against the directories that are there. A
    /// new one is written if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read, or says what cannot be.
    pub(crate) fn load(data: &Path) -> Result<Self, PlacementError> {
        if let Some(placement) = Self::read(data)? {
            return Ok(placement);
        }
        let placement = Self {
            version: VERSION,
            ..Self::default()
        };
        // Before the first directory of another shard.
        placement.store(data)?;
        Ok(placement)
    }

    /// Reads the record of a data directory as [`Placement::load`] does; `None` if there is none, and all
    /// is in shard 0.
    ///
    /// # Errors
    ///
    /// It cannot be read, or says what cannot be.
    pub(crate) fn read(data: &Path) -> Result<Option<Self>, PlacementError> {
        let path = data.join(FILE);
        let bytes = match files::read_regular(&path, limits::PLACEMENT_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                if let Some(directory) = some_directory(data)? {
                    return Err(PlacementError::Missing {
                        record: path,
                        directory,
                    });
                }
                return Ok(None);
            }
            Err(source) => return Err(PlacementError::Io { path, source }),
        };
        let text = str::from_utf8(&bytes).map_err(|error| error.to_string());
        let placement = text.and_then(Self::parse);
        let placement = placement.map_err(|what| PlacementError::Malformed {
            path: path.clone(),
            what,
        })?;
        for (namespace, &shard) in &placement.namespaces {
            let directory = directory_of(data, shard);
            if !directory.is_dir() {
                return Err(PlacementError::Lost {
                    record: path,
                    directory,
                    namespace: namespace.clone(),
                    shard,
                });
            }
        }
        Ok(Some(placement))
    }

    /// Checks the namespaces that the logs of shards have against the record, as a start does.
    ///
    /// # Errors
    ///
    /// They contradict each other.
    pub(crate) fn check(
        &self,
        data: &Path,
        found: &BTreeMap<u32, BTreeSet<String>>,
    ) -> Result<(), PlacementError> {
        let Some(first) = &self.first else {
            return Ok(());
        };
        let others = self.namespaces.keys().filter(|name| *name != first);
        let names: Vec<&str> = std::iter::once(first)
            .chain(others)
            .map(|it| &it[..])
            .collect();
        self.clone().place(data, &names, 1, found).map(drop)
    }

    fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        // Of another version the rest may be anything.
        let found: Versioned = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if found.version != VERSION {
            return Err(format!(
                "its version is {}, and this release knows {VERSION}",
                found.version
            ));
        }
        let placement: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let max = limits::SHARDS_MAX;
        for (namespace, &shard) in &placement.namespaces {
            if max <= shard {
                return Err(format!("'{namespace}' is in shard {shard} of {max}"));
            }
            if *namespace != namespace.to_lowercase() {
                return Err(format!("'{namespace}' is not in lower case"));
            }
        }
        let is_placed = |name: &&String| placement.namespaces.contains_key(*name);
        if let Some(name) = placement.made.iter().find(|name| !is_placed(name)) {
            return Err(format!("'{name}' was made, and has no shard"));
        }
        let first = placement.first.as_ref();
        if let Some(first) = first.filter(|first| placement.namespaces.get(*first) != Some(&0)) {
            return Err(format!(
                "'{first}' is the first namespace, and not in shard 0"
            ));
        }
        Ok(placement)
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old one is there then.
    pub(crate) fn store(&self, data: &Path) -> Result<(), PlacementError> {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        let file = (data.join(FILE), text.as_bytes(), Readers::Owner);
        Ok(files::replace(&[file])?)
    }

    /// Returns the shards that are served: those that are asked for, and those that have namespaces.
    pub(crate) fn shards(&self, count: u32) -> BTreeSet<u32> {
        let recorded = self.namespaces.values().copied();
        (0..count).chain(recorded).collect()
    }

    /// Gives each namespace of the configuration its shard, where it has none: the one of `found` that
    /// has entities of it, or of the first `count` shards the one with the fewest namespaces. Returns
    /// whether anything has changed.
    ///
    /// # Errors
    ///
    /// The configuration, the record and the logs contradict each other.
    pub(crate) fn place(
        &mut self,
        data: &Path,
        configured: &[&str],
        count: u32,
        found: &BTreeMap<u32, BTreeSet<String>>,
    ) -> Result<bool, PlacementError> {
        let before = self.clone();
        let names: Vec<String> = configured.iter().map(|name| name.to_lowercase()).collect();
        let Some((first, others)) = names.split_first() else {
            return Ok(false);
        };
        self.place_first(data, first, others)?;
        for namespace in others {
            let has = |(_, names): &(&u32, &BTreeSet<String>)| names.contains(namespace);
            let having: Vec<u32> = found.iter().filter(has).map(|(shard, _)| *shard).collect();
            let recorded = self.namespaces.get(namespace).copied();
            match (recorded, &having[..]) {
                (None, []) => {
                    let shard = self.emptiest(count);
                    info!(namespace, shard, "a new namespace has its shard");
                    self.namespaces.insert(namespace.clone(), shard);
                }
                (None, &[shard]) => {
                    self.namespaces.insert(namespace.clone(), shard);
                }
                (None, &[one, other, ..]) => {
                    return Err(PlacementError::Twice {
                        record: data.join(FILE),
                        namespace: namespace.clone(),
                        one,
                        other,
                    });
                }
                (Some(_), []) => {}
                (Some(shard), &[found, ..]) if !having.contains(&shard) => {
                    return Err(PlacementError::Elsewhere {
                        record: data.join(FILE),
                        namespace: namespace.clone(),
                        shard,
                        found,
                    });
                }
                (Some(shard), having) => {
                    for other in having.iter().filter(|other| **other != shard) {
                        error!(
                            namespace,
                            shard,
                            other,
                            "a namespace has entities in two shards, as after a release that knew of \
                             one only: those of the other shard are not served"
                        );
                    }
                }
            }
        }
        Ok(*self != before)
    }

    /// The first namespace of the configuration has the entities without a namespace in their paths,
    /// whatever its name was before.
    fn place_first(
        &mut self,
        data: &Path,
        first: &String,
        others: &[String],
    ) -> Result<(), PlacementError> {
        let recorded = self.first.as_ref().filter(|recorded| *recorded != first);
        if let Some(recorded) = recorded.cloned() {
            if self.namespaces.contains_key(first) || others.contains(&recorded) {
                return Err(PlacementError::First {
                    record: data.join(FILE),
                    configured: first.clone(),
                    recorded,
                });
            }
            info!(
                from = recorded,
                to = first,
                "the first namespace has another name"
            );
            self.namespaces.remove(&recorded);
        }
        self.first = Some(first.clone());
        self.namespaces.insert(first.clone(), 0);
        Ok(())
    }

    fn emptiest(&self, count: u32) -> u32 {
        let namespaces = |shard: &u32| self.namespaces.values().filter(|it| *it == shard).count();
        (0..count.max(1)).min_by_key(namespaces).unwrap_or(0)
    }

    /// Returns the namespace whose entities have no namespace in their paths, in lower case, if it is known.
    pub(crate) fn first(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// Returns the namespaces of a shard, in lower case.
    pub(crate) fn namespaces_of(&self, shard: u32) -> impl Iterator<Item = &str> {
        let all = self.namespaces.iter().filter(move |(_, it)| **it == shard);
        all.map(|(name, _)| &name[..])
    }

    /// Returns the namespaces that the operator has made.
    pub(crate) fn made(&self) -> impl Iterator<Item = &str> {
        self.made.iter().map(String::as_str)
    }

    /// Adds a namespace that the operator makes, and returns its shard: the one that it had, or of the first `count` the one
    /// with the fewest namespaces.
    pub(crate) fn make(&mut self, namespace: &str, count: u32) -> u32 {
        self.made.insert(namespace.to_lowercase());
        self.configure(namespace, count)
    }

    /// Adds a namespace that the configuration names, and returns its shard, as for one that is made.
    pub(crate) fn configure(&mut self, namespace: &str, count: u32) -> u32 {
        let emptiest = self.emptiest(count);
        *self
            .namespaces
            .entry(namespace.to_lowercase())
            .or_insert(emptiest)
    }

    /// Forgets a namespace that was dropped.
    pub(crate) fn forget(&mut self, namespace: &str) {
        self.made.remove(namespace);
        self.namespaces.remove(namespace);
    }

    /// Returns the shard of a namespace.
    pub(crate) fn shard_of(&self, namespace: &str) -> u32 {
        let shard = self.namespaces.get(&namespace.to_lowercase());
        shard.copied().unwrap_or(0)
    }
}

/// Returns the directory of a shard other than the first, if there is one.
fn some_directory(data: &Path) -> Result<Option<PathBuf>, PlacementError> {
    let failed = |source| PlacementError::Io {
        path: data.to_owned(),
        source,
    };
    for entry in fs::read_dir(data).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.and_then(number_of).is_some() && path.is_dir() {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Found = BTreeMap<u32, BTreeSet<String>>;

    fn found(entries: &[(u32, &[&str])]) -> Found {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let entries = entries.iter();
        entries.map(|(shard, of)| (*shard, names(of))).collect()
    }

    fn placed(
        placement: &mut Placement,
        names: &[&str],
        count: u32,
        found: &Found,
    ) -> Result<bool, String> {
        let placed = placement.place(Path::new("data"), names, count, found);
        placed.map_err(|error| error.to_string())
    }

    #[test]
    fn a_new_namespace_has_the_shard_with_the_fewest_and_stays_there() {
        let data = tempfile::tempdir().unwrap();
        let mut placement = Placement::load(data.path()).unwrap();
        let names = ["First", "b", "c", "d", "e"];
        assert_eq!(placed(&mut placement, &names, 3, &Found::new()), Ok(true));
        let shards = names.map(|name| placement.shard_of(name));
        assert_eq!(shards, [0, 1, 2, 0, 1]);
        for shard in [1, 2] {
            fs::create_dir(directory_of(data.path(), shard)).unwrap();
        }
        placement.store(data.path()).unwrap();
        let mut again = Placement::load(data.path()).unwrap();
        assert_eq!(again, placement);
        // With fewer shards, what is recorded is served all the same; new ones have the first.
        assert_eq!(again.shards(1), [0, 1, 2].into());
        assert_eq!(
            placed(&mut again, &["first", "b", "new"], 1, &Found::new()),
            Ok(true)
        );
        let shards = ["first", "b", "new", "c", "d", "e"].map(|name| again.shard_of(name));
        assert_eq!(shards, [0, 1, 0, 2, 0, 1]);
        assert_eq!(
            placed(&mut again, &["first", "b", "new"], 5, &Found::new()),
            Ok(false)
        );
        assert_eq!(again.shards(5), (0..5).collect());
    }

    #[test]
    fn a_namespace_that_a_log_has_stays_in_it() {
        let mut placement = Placement::default();
        let found = found(&[(0, &["b", "gone"]), (1, &["c"])]);
        assert_eq!(
            placed(&mut placement, &["a", "b", "c", "d"], 2, &found),
            Ok(true)
        );
        let shards = ["a", "b", "c", "d"].map(|name| placement.shard_of(name));
        assert_eq!(shards, [0, 0, 1, 1]);
        assert_eq!(
            placed(&mut placement, &["a", "b", "gone"], 2, &found),
            Ok(true)
        );
        assert_eq!(
            (placement.shard_of("gone"), placement.shard_of("c")),
            (0, 1)
        );
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_what_would_be_right() {
        let mut placement = Placement::default();
        let twice = found(&[(0, &["b"]), (1, &["b"])]);
        let text = placed(&mut placement, &["a", "b"], 2, &twice).unwrap_err();
        assert!(
            text.contains("'b' has entities in shard 0 and in shard 1"),
            "{text}"
        );
        assert!(text.contains("data/shards.json"), "{text}");
        let mut placement = Placement::default();
        assert_eq!(
            placed(&mut placement, &["a", "b"], 2, &Found::new()),
            Ok(true)
        );
        let elsewhere = found(&[(0, &["b"])]);
        let text = placed(&mut placement, &["a", "b"], 2, &elsewhere).unwrap_err();
        assert!(
            text.contains("is in shard 1, but its entities are in shard 0"),
            "{text}"
        );
        // An older release has made some in the first shard: nothing of the namespace is lost.
        assert_eq!(placed(&mut placement, &["a", "b"], 2, &twice), Ok(false));
        for names in [["b", "a"], ["b", "c"], ["c", "a"]] {
            let text = placed(&mut placement, &names, 2, &Found::new()).unwrap_err();
            assert!(text.contains("put 'a' first again"), "{names:?}: {text}");
        }
        // Another name alone is one for the same messages, as ever.
        assert_eq!(placed(&mut placement, &["c"], 2, &Found::new()), Ok(true));
        assert_eq!(
            placement.namespaces,
            [("b".to_owned(), 1), ("c".to_owned(), 0)].into()
        );
    }

    #[test]
    fn a_record_that_cannot_be_right_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join(FILE);
        let load = || Placement::load(data.path()).map_err(|error| error.to_string());
        for (text, part) in [
            ("", "EOF"),
            ("{}", "version"),
            (
                r#"{"version":2,"more":1}"#,
                "its version is 2, and this release knows 1",
            ),
            (
                r#"{"version":1,"first":null,"namespaces":{},"more":1}"#,
                "unknown field",
            ),
            (
                r#"{"version":1,"first":"a","namespaces":{"a":1}}"#,
                "not in shard 0",
            ),
            (
                r#"{"version":1,"first":"a","namespaces":{}}"#,
                "not in shard 0",
            ),
            (
                r#"{"version":1,"first":null,"namespaces":{"B":0}}"#,
                "lower case",
            ),
            (
                r#"{"version":1,"first":null,"namespaces":{"b":64}}"#,
                "in shard 64 of 64",
            ),
            (
                r#"{"version":1,"first":null,"namespaces":{"b":-1}}"#,
                "invalid value",
            ),
            (
                r#"{"version":1,"first":null,"namespaces":{"b":2}}"#,
                "shard-2 does not exist",
            ),
        ] {
            fs::write(&file, text).unwrap();
            let error = load().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
            assert!(error.contains(&file.display().to_string()), "{error}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(data.path().join("shard-1")).unwrap();
        let error = load().unwrap_err();
        assert!(
            error.contains("is missing, but") && error.contains("shard-1 exists"),
            "{error}"
        );
        assert!(!file.exists());
    }
}
