//! The manifest of a backup: which files it has, and up to where it has each shard's log. A backup
//! without one is none.

use std::io;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits;
use crate::system::files::{self, NotReplaced, Readers};

/// The manifest, in the directory of a backup.
pub(crate) const FILE: &str = "manifest.json";
/// The directory of the files, beside it.
pub(in crate::host) const FILES: &str = "files";
/// The version of the format.
const VERSION: u32 = 1;

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    /// When the backup was begun.
    pub(crate) made_at: String,
    /// The version of the broker.
    pub(in crate::host) made_by: String,
    pub(crate) shards: Vec<ShardPosition>,
    pub(crate) files: Vec<StoredFile>,
}

/// Up to where a backup has a shard's log: all that was acknowledged before it lies before that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShardPosition {
    pub(crate) shard: u32,
    /// The number of the log's store, hexadecimal.
    pub(crate) store: String,
    /// The newest group.
    pub(crate) group: u64,
    /// The segment in which it ends, hexadecimal, and where.
    pub(crate) segment: String,
    pub(crate) offset: u64,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredFile {
    /// Its path in the data directory.
    pub(crate) path: String,
    /// Its name in the backup.
    pub(crate) stored: String,
    /// Bytes in the backup.
    pub(crate) bytes: u64,
    /// Bytes in the data directory: zeros follow.
    pub(crate) length: u64,
    /// The CRC-32C of the bytes, hexadecimal.
    pub(crate) crc32c: String,
}

/// A manifest with its checksum, as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedManifest {
    /// The CRC-32C of the manifest as JSON without spaces, hexadecimal.
    crc32c: String,
    manifest: Manifest,
}

impl Manifest {
    pub(super) fn new(made_at: String) -> Self {
        Self {
            version: VERSION,
            made_at,
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            shards: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Reads the manifest of a directory; `None` if there is none.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is not as it was written.
    pub(crate) fn read(directory: &Path) -> io::Result<Option<Self>> {
        #[derive(Deserialize)]
        struct Versioned {
            manifest: OfVersion,
        }
        #[derive(Deserialize)]
        struct OfVersion {
            version: u32,
        }
        let path = directory.join(FILE);
        let bytes = match files::read_regular(&path, limits::BACKUP_MANIFEST_BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let wrong = |what: String| {
            let text = format!("{} is damaged: {what}", path.display());
            io::Error::new(io::ErrorKind::InvalidData, text)
        };
        let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
        // Of another version the rest may be anything.
        let found: Versioned =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if found.manifest.version != VERSION {
            let text = format!(
                "{} has version {}, and this release knows {VERSION}",
                path.display(),
                found.manifest.version
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let sealed: SealedManifest =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if sealed.crc32c != sealed.manifest.checksum() {
            return Err(wrong("its checksum is wrong".to_owned()));
        }
        if let Some(file) = sealed.manifest.files.iter().find(|file| !file.is_inside()) {
            return Err(wrong(format!("'{}' is no path of a backup", file.path)));
        }
        Ok(Some(sealed.manifest))
    }

    /// Replaces the manifest of a directory.
    ///
    /// # Errors
    ///
    /// It cannot be written; the old one is there then.
    pub(super) fn store(self, directory: &Path) -> Result<Self, NotReplaced> {
        let sealed = SealedManifest {
            crc32c: self.checksum(),
            manifest: self,
        };
        let mut text = serde_json::to_string_pretty(&sealed).expect("texts and numbers are JSON");
        text.push('\n');
        files::replace(&[(directory.join(FILE), text.as_bytes(), Readers::Owner)])?;
        Ok(sealed.manifest)
    }

    fn checksum(&self) -> String {
        let text = serde_json::to_vec(self).expect("texts and numbers are JSON");
        format!("{:08x}", crc32c::crc32c(&text))
    }
}

impl StoredFile {
    /// Returns whether its paths name files within their directories.
    fn is_inside(&self) -> bool {
        let is_plain = |path: &Path| {
            let mut parts = path.components();
            !path.as_os_str().is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
        };
        let stored = Path::new(&self.stored);
        is_plain(Path::new(&self.path)) && is_plain(stored) && stored.components().count() == 1
    }

    /// Returns where it is in a backup.
    pub(crate) fn place(&self, backup: &Path) -> PathBuf {
        backup.join(FILES).join(&self.stored)
    }
}
