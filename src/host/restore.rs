//! The making of a data directory from a backup.
//!
//! Its files are synced before it gets its name: it is there wholly or not at all.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::backup::copy;
use super::backup::manifest::{self, Manifest, StoredFile};
use crate::limits;
use crate::system::files::{self, NotMade};

/// Why no data directory was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    #[error("{} has no manifest.json: it is no backup, or one that was never finished", .0.display())]
    NoBackup(PathBuf),
    #[error("{} is in use: a broker makes a backup there; try again when it has ended", .0.display())]
    InUse(PathBuf),
    #[error("{} exists and is not empty; an empty directory, or a name that is free, is allowed", .0.display())]
    NotEmpty(PathBuf),
    #[error("{} exists: another restore is under way, or one was ended; remove it if none is", .0.display())]
    Left(PathBuf),
    #[error("{} is damaged: its checksum is not that of the manifest. Nothing was restored; use another backup", .0.display())]
    Damaged(PathBuf),
    #[error("{} is no directory; the files of a backup are in it, and no link is followed", .0.display())]
    NoDirectory(PathBuf),
    #[error("{} is to have {length} bytes, and no file of a data directory has as many: the manifest was not made by a broker. \
             Nothing was restored", place.display())]
    TooLong { place: PathBuf, length: u64 },
    #[error("{place}: {source}")]
    Io { place: String, source: io::Error },
}

impl RestoreError {
    /// Returns the exit code: 1 if the backup or the directory is not as it must be, 2 if the system refuses something.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NoBackup(_)
            | Self::NoDirectory(_)
            | Self::NotEmpty(_)
            | Self::Damaged(_)
            | Self::TooLong { .. } => 1,
            Self::InUse(_) | Self::Left(_) | Self::Io { .. } => 2,
        }
    }
}

impl From<NotMade> for RestoreError {
    fn from(error: NotMade) -> Self {
        match error {
            NotMade::NotEmpty(path) => Self::NotEmpty(path),
            NotMade::Left(path) => Self::Left(path),
            NotMade::Io { path, source } => failed(&path)(source),
        }
    }
}

fn failed(place: &Path) -> impl Fn(io::Error) -> RestoreError {
    move |source| RestoreError::Io {
        place: place.display().to_string(),
        source,
    }
}

/// Makes a data directory from a backup, and returns what it has.
pub(crate) fn restore(backup: &Path, data: &Path) -> Result<Manifest, RestoreError> {
    let _lock = lock(backup)?;
    let manifest = Manifest::read(backup).map_err(failed(backup))?;
    let manifest = manifest.ok_or_else(|| RestoreError::NoBackup(backup.to_owned()))?;
    check(backup, &manifest)?;
    files::make_whole(data, ".restoring", |temporary| {
        write(backup, &manifest, temporary)
    })?;
    Ok(manifest)
}

/// Checks what a manifest asks for, before anything is written: a backup may have been changed by others.
fn check(backup: &Path, manifest: &Manifest) -> Result<(), RestoreError> {
    let files = backup.join(manifest::FILES);
    let found = fs::symlink_metadata(&files).map_err(failed(&files))?;
    if !found.is_dir() {
        return Err(RestoreError::NoDirectory(files));
    }
    let too_long = |file: &&StoredFile| {
        limits::SEGMENT_FILE_BYTES_MAX < file.bytes.max(file.length) || file.length < file.bytes
    };
    if let Some(file) = manifest.files.iter().find(too_long) {
        let (place, length) = (file.place(backup), file.bytes.max(file.length));
        return Err(RestoreError::TooLong { place, length });
    }
    Ok(())
}

/// Returns how long a file is to be. Zeros behind its bytes are room that a broker has prepared: a segment's at most.
fn length_of(file: &StoredFile) -> u64 {
    file.length
        .min(file.bytes.max(jitney_journal::limits::SEGMENT_BYTES))
}

/// Locks a backup against changes, if it is locked by brokers.
fn lock(backup: &Path) -> Result<Option<File>, RestoreError> {
    match files::open_regular(&backup.join("LOCK")) {
        Ok(lock) => match flock(&lock, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(Some(lock)),
            Err(_) => Err(RestoreError::InUse(backup.to_owned())),
        },
        // A copy of a backup may be on a medium that cannot be written, without it.
        Err(_) => Ok(None),
    }
}

/// Writes all files of a backup, and syncs them and their directories.
fn write(backup: &Path, manifest: &Manifest, directory: &Path) -> Result<(), RestoreError> {
    let mut directories = vec![directory.to_owned()];
    // Only the newest segment of a shard has room behind its bytes.
    let mut room = u64::from(limits::SHARDS_MAX) * jitney_journal::limits::SEGMENT_BYTES;
    for file in &manifest.files {
        let path = directory.join(&file.path);
        let parent = path.parent().unwrap_or(directory);
        if !directories.iter().any(|made| made == parent) {
            let made = DirBuilder::new().mode(0o700).recursive(true).create(parent);
            made.map_err(failed(parent))?;
            directories.push(parent.to_owned());
        }
        let length = length_of(file).min(file.bytes + room);
        room -= length - file.bytes;
        write_one(backup, file, &path, length)?;
    }
    for shard in &manifest.shards {
        // The directory of a shard without messages has no files.
        let path = super::placement::directory_of(directory, shard.shard);
        files::make_private_directory(&path).map_err(failed(&path))?;
    }
    for made in &directories {
        files::sync_directory(made).map_err(failed(made))?;
    }
    Ok(())
}

fn write_one(backup: &Path, file: &StoredFile, to: &Path, length: u64) -> Result<(), RestoreError> {
    let from = file.place(backup);
    let found = fs::symlink_metadata(&from).map_err(failed(&from))?;
    if found.is_file() && found.len() != file.bytes {
        return Err(RestoreError::Damaged(from));
    }
    // What is no regular file is refused there.
    let sum = copy::copy_regular(&from, file.bytes, to, length).map_err(failed(&from))?;
    if file.crc32c != format!("{sum:08x}") {
        return Err(RestoreError::Damaged(from));
    }
    Ok(())
}
