//! Backups of a broker that runs.
//!
//! A backup has every shard's log up to one position: all that was acknowledged before lies before
//! it. While files are copied, segments and checkpoints that are removed are kept
//! (`FileDisk::keep_removed`); bytes before the durable end do not change. Files of a backup are named by their
//! contents; the manifest is replaced when all of them are synced, and then those that it does not name
//! are removed. So a backup that fails, or is killed, leaves the one before it as it was.
//!
//! A file that the backup before has is not written again. Its source is read all the same, and
//! compared by checksum: a data directory may have been restored meanwhile, and its segments have other contents
//! under the same names.

pub(crate) mod copy;
pub(crate) mod manifest;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use super::disk::FileDisk;
use super::shards::Shards;
use super::{disk, placement, root_key};
use crate::limits;
use crate::system::{files, supervisor};
use jitney_base::time::Timestamp;
use jitney_journal::{Error, LogEnd, LogReader as _, SegmentId};
use manifest::{FILE, FILES, Manifest, ShardPosition, StoredFile};

/// A file that is being copied, in the directory of files.
const COPYING: &str = "copying.tmp";
/// The names that the directory of a backup may have.
const NAMES: [&str; 4] = ["LOCK", FILE, FILES, "manifest.json.new"];
/// The files of a data directory that a backup has besides logs: the record of shards, and the keys that were made there.
const OTHERS: [&str; 3] = [placement::FILE, root_key::FILE_NAME, "operator.key"];
/// The directory of certificates in a data directory.
const CERTS: &str = "certs";

/// What is backed up, and whether it is being done.
#[derive(Debug)]
pub(crate) struct Backups {
    kept: Kept,
    is_running: AtomicBool,
}

/// Where messages are kept.
#[derive(Debug)]
pub(crate) enum Kept {
    Memory,
    /// In a store that servers share.
    Store,
    Files(Source),
}

/// A data directory.
pub(crate) struct Source {
    directory: PathBuf,
    /// The shards with their numbers.
    disks: Vec<(u32, Arc<FileDisk>)>,
}

/// A backup that was made.
#[derive(Debug)]
pub(crate) struct NewBackup {
    pub(crate) manifest: Manifest,
    /// Files that the backup before did not have, and their bytes.
    pub(crate) copied: u64,
    pub(crate) copied_bytes: u64,
}

/// Why no backup was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    /// The directory cannot have one.
    #[error("{0}")]
    Argument(String),
    /// Another one is being made, or the directory has one of another broker.
    #[error("{0}")]
    Conflict(String),
    /// There is no space for it.
    #[error("the backup was not made, and the one before it is as it was: {0}")]
    Full(io::Error),
    #[error("the backup was not made, and the one before it is as it was: {0}")]
    Io(#[from] io::Error),
    #[error("the backup was not made: {0}")]
    Storage(#[from] Error),
    #[error("the backup was not made: {0}")]
    Ended(String),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Kept {
    /// Returns what a backup is made of.
    ///
    /// # Errors
    ///
    /// Messages are not in a data directory.
    fn source(&self) -> Result<&Source, BackupError> {
        let text = match self {
            Self::Files(source) => return Ok(source),
            Self::Memory => "The broker keeps messages in memory only (--ephemeral).",
            Self::Store => {
                "The messages are in a store (--store), and a backup is made of a data directory only. Back the database up, with base \
                 backups and the archive of its log, or with pg_dump; `jitney store export NAME` copies a namespace into a data directory."
            }
        };
        Err(BackupError::Argument(text.to_owned()))
    }
}

impl Backups {
    pub(crate) fn new(kept: Kept) -> Self {
        Self {
            kept,
            is_running: AtomicBool::new(false),
        }
    }

    /// Makes a backup in a thread of its own, to its end even if the caller does not wait.
    pub(crate) async fn make(
        self: &Arc<Self>,
        shards: Arc<Shards>,
        target: PathBuf,
        now: Timestamp,
    ) -> Result<NewBackup, BackupError> {
        self.kept.source()?;
        if self.is_running.swap(true, Ordering::AcqRel) {
            let text = "A backup is being made; another can be made when it has ended.";
            return Err(BackupError::Conflict(text.to_owned()));
        }
        let (tell, told) = oneshot::channel();
        let (ours, runtime) = (Arc::clone(self), Handle::current());
        let work = move || {
            let running = RunningBackup(Arc::clone(&ours));
            let Ok(source) = ours.kept.source() else {
                return;
            };
            let positions = || {
                let wait = limits::BACKUP_POSITION_WAIT.as_duration();
                let ends = async { tokio::time::timeout(wait, shards.log_ends()).await };
                runtime.block_on(ends).unwrap_or_default()
            };
            let made = source.back_up(&target, positions, now);
            match &made {
                Ok(made) => info!(
                    directory = %target.display(),
                    copied = made.copied,
                    copied_bytes = made.copied_bytes,
                    "made a backup"
                ),
                Err(error) => error!(directory = %target.display(), %error, "no backup"),
            }
            // Another can be made as soon as this one is answered.
            drop(running);
            // The task that asked may have ended.
            let _ = tell.send(made);
        };
        let ended = |end: std::thread::Result<()>| {
            if let Err(panic) = end {
                let panic = supervisor::message(&*panic);
                error!("the thread of a backup has panicked ({panic}), which is a bug");
            }
        };
        if let Err(error) = supervisor::spawn_watched("backup", work, ended) {
            self.is_running.store(false, Ordering::Release);
            return Err(error.into());
        }
        let lost = |_| BackupError::Ended("its thread has ended, which is a bug".to_owned());
        told.await.map_err(lost)?
    }
}

/// A backup that is being made.
struct RunningBackup(Arc<Backups>);

impl Drop for RunningBackup {
    fn drop(&mut self) {
        self.0.is_running.store(false, Ordering::Release);
    }
}

/// Keeps what is removed from the disks, until it is dropped.
struct Keeping<'a>(&'a [(u32, Arc<FileDisk>)]);

impl<'a> Keeping<'a> {
    fn new(disks: &'a [(u32, Arc<FileDisk>)]) -> Self {
        for (_, disk) in disks {
            disk.keep_removed();
        }
        Self(disks)
    }
}

impl Drop for Keeping<'_> {
    fn drop(&mut self) {
        for (shard, disk) in self.0 {
            if let Err(error) = disk.release(None) {
                warn!(shard, %error, "a segment that a backup had kept is removed at the next start");
            }
        }
    }
}

impl Source {
    pub(crate) fn new(directory: &Path, disks: Vec<(u32, Arc<FileDisk>)>) -> Self {
        Self {
            directory: directory.to_owned(),
            disks,
        }
    }

    /// Makes a backup; `positions` says where the durable logs end.
    fn back_up(
        &self,
        target: &Path,
        positions: impl FnOnce() -> Vec<(u32, LogEnd)>,
        now: Timestamp,
    ) -> Result<NewBackup, BackupError> {
        self.check_target(target)?;
        files::make_private_directory(target)?;
        let _lock = match disk::lock(target) {
            Err(Error::Locked { place }) => {
                let text = format!(
                    "{place} is in use: another broker makes a backup there, or it is being restored."
                );
                return Err(BackupError::Conflict(text));
            }
            lock => lock?,
        };
        let before = Manifest::read(target)?;
        files::make_private_directory(&target.join(FILES))?;
        prune(target, before.as_ref())?;
        // Before the positions: every checkpoint that is there by then lies before them.
        let _keeping = Keeping::new(&self.disks);
        let positions = positions();
        let made_at = jiff::Timestamp::from_millisecond(now.as_millis());
        let made_at = made_at.map(|at| at.to_string()).unwrap_or_default();
        let mut copying = CopyInProgress {
            source: self,
            target,
            before: before.as_ref(),
            manifest: Manifest::new(made_at),
            copied: 0,
            copied_bytes: 0,
        };
        match copying.copy_all(&positions) {
            Ok(()) => {}
            Err(error) => {
                // What was copied is of no use; the next attempt removes what is left.
                let _ = prune(target, before.as_ref());
                return Err(error);
            }
        }
        files::sync_directory(&target.join(FILES))?;
        files::sync_directory(target.parent().unwrap_or(target))?;
        let (copied, copied_bytes) = (copying.copied, copying.copied_bytes);
        let stored = copying.manifest.store(target);
        let manifest =
            stored.map_err(|error| io::Error::new(error.source.kind(), error.to_string()))?;
        if let Err(error) = prune(target, Some(&manifest)) {
            warn!(%error, "files of an older backup are left; the next one removes them");
        }
        Ok(NewBackup {
            manifest,
            copied,
            copied_bytes,
        })
    }

    /// Refuses a directory that a backup must not be in.
    fn check_target(&self, target: &Path) -> Result<(), BackupError> {
        let refuse = |text: String| Err(BackupError::Argument(text));
        let name = target.display();
        if !target.is_absolute() {
            return refuse(format!(
                "directory is '{name}'; an absolute path is allowed."
            ));
        }
        let data = fs::canonicalize(&self.directory)?;
        let there = target.ancestors().find(|it| it.exists());
        let rest = there.and_then(|there| target.strip_prefix(there).ok());
        let there = fs::canonicalize(there.unwrap_or_else(|| Path::new("/")))?;
        let is_plain = |part| matches!(part, std::path::Component::Normal(_));
        if !rest.is_none_or(|rest| rest.components().all(is_plain)) {
            return refuse(format!(
                "directory is '{name}'; a path without '..' is allowed."
            ));
        }
        if there.starts_with(&data) {
            return refuse(format!(
                "{name} is in the data directory; a directory elsewhere is allowed."
            ));
        }
        if !target.exists() {
            return Ok(());
        }
        if !target.is_dir() {
            return refuse(format!("{name} is no directory."));
        }
        if target.join(FILES).is_symlink() {
            // Files are removed there.
            return refuse(format!(
                "{name} has a symbolic link '{FILES}' in it, which is not of a backup."
            ));
        }
        for entry in fs::read_dir(target)? {
            let found = entry?.file_name();
            if !NAMES.iter().any(|name| found == *name) {
                let found = found.display();
                return refuse(format!(
                    "{name} has '{found}' in it, which is not of a backup; an empty directory, or one with a backup, is allowed."
                ));
            }
        }
        Ok(())
    }
}

/// A backup in the making.
struct CopyInProgress<'a> {
    source: &'a Source,
    target: &'a Path,
    before: Option<&'a Manifest>,
    manifest: Manifest,
    copied: u64,
    copied_bytes: u64,
}

impl CopyInProgress<'_> {
    fn copy_all(&mut self, positions: &[(u32, LogEnd)]) -> Result<(), BackupError> {
        for (number, disk) in &self.source.disks {
            let end = positions.iter().find(|(of, _)| of == number);
            let Some((_, end)) = end else {
                return Err(BackupError::Ended(format!(
                    "shard {number} does not answer: the broker is stopping, or its disk is full"
                )));
            };
            self.copy_shard(*number, disk, *end)?;
        }
        for name in OTHERS {
            self.copy_small(Path::new(name))?;
        }
        let certs = self.source.directory.join(CERTS);
        if certs.is_dir() {
            for entry in fs::read_dir(certs)? {
                let entry = entry?;
                // A file that is being replaced is beside it for a moment.
                let is_new = Path::new(&entry.file_name()).extension() == Some("new".as_ref());
                if entry.file_type()?.is_file() && !is_new {
                    self.copy_small(&Path::new(CERTS).join(entry.file_name()))?;
                }
            }
        }
        Ok(())
    }

    /// Copies a shard's newest checkpoint, and its log up to the end.
    fn copy_shard(&mut self, shard: u32, disk: &FileDisk, end: LogEnd) -> Result<(), BackupError> {
        let store = format!("{:016x}", end.store);
        let known = self.before.map(|before| &before.shards);
        let known = known.and_then(|known| known.iter().find(|it| it.shard == shard));
        if known.is_some_and(|known| known.store != store) {
            let text = format!(
                "{} has a backup of another log than that of shard {shard}; another directory is allowed.",
                self.target.display()
            );
            return Err(BackupError::Conflict(text));
        }
        let directory = placement::directory_of(Path::new(""), shard);
        let checkpoints = disk.checkpoints()?;
        let before_end = |number: &u64| end.has_checkpoint(*number);
        match checkpoints.iter().rev().copied().find(before_end) {
            Some(number) => {
                self.copy_whole(&directory.join(disk::checkpoint_name(number)))?;
            }
            None if checkpoints.is_empty() => {}
            None => {
                let text =
                    format!("shard {shard} has no checkpoint before its end, which is a bug");
                return Err(BackupError::Ended(text));
            }
        }
        for (segment, length) in disk.segments()? {
            let path = directory.join(disk::segment_name(segment));
            if segment < end.segment {
                self.copy(&path, length, length)?;
                disk.release(Some(SegmentId(segment.0 + 1)))?;
            } else if segment == end.segment {
                self.copy(&path, end.offset.min(length), length)?;
            }
        }
        self.manifest.shards.push(ShardPosition {
            shard,
            store,
            group: end.frame,
            segment: end.segment.to_string(),
            offset: end.offset,
        });
        Ok(())
    }

    /// Copies a file, if it is there.
    fn copy_small(&mut self, path: &Path) -> Result<(), BackupError> {
        if self.source.directory.join(path).exists() {
            self.copy_whole(path)?;
        }
        Ok(())
    }

    fn copy_whole(&mut self, path: &Path) -> Result<(), BackupError> {
        let length = fs::metadata(self.source.directory.join(path))?.len();
        self.copy(path, length, length)
    }

    /// Copies the first bytes of a file, unless the backup before has them.
    fn copy(&mut self, path: &Path, bytes: u64, length: u64) -> Result<(), BackupError> {
        let from = self.source.directory.join(path);
        let path = path.display().to_string();
        let known = self.before.map(|before| before.files.iter());
        let known =
            known.and_then(|mut known| known.find(|it| it.path == path && it.bytes == bytes));
        let is_there = |it: &&StoredFile| {
            let stored = fs::metadata(it.place(self.target));
            stored.is_ok_and(|stored| stored.len() == bytes)
        };
        if let Some(known) = known.filter(is_there) {
            let sum = copy::each_stretch(&from, bytes, |_| Ok(()))?;
            if known.crc32c == format!("{sum:08x}") {
                let mut same = known.clone();
                same.length = length;
                self.manifest.files.push(same);
                return Ok(());
            }
        }
        let temporary = self.target.join(FILES).join(COPYING);
        let sum = copy::copy(&from, bytes, &temporary, bytes).map_err(of_io)?;
        let crc32c = format!("{sum:08x}");
        let stored = StoredFile {
            stored: format!("{}-{bytes}-{crc32c}", path.replace('/', "_")),
            path,
            bytes,
            length,
            crc32c,
        };
        fs::rename(&temporary, stored.place(self.target))?;
        self.manifest.files.push(stored);
        self.copied += 1;
        self.copied_bytes += bytes;
        Ok(())
    }
}

fn of_io(error: io::Error) -> BackupError {
    if error.kind() == io::ErrorKind::StorageFull || error.kind() == io::ErrorKind::QuotaExceeded {
        BackupError::Full(error)
    } else {
        BackupError::Io(error)
    }
}

/// Removes the files of a backup that its manifest does not name.
fn prune(target: &Path, manifest: Option<&Manifest>) -> io::Result<()> {
    let files = manifest.map(|manifest| manifest.files.iter().map(|it| &it.stored[..]));
    let named: BTreeSet<&str> = files.into_iter().flatten().collect();
    for entry in fs::read_dir(target.join(FILES))? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_str().is_none_or(|name| !named.contains(name)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
