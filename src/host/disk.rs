//! The disk of the log as files in one directory, which one process has at a time.
//!
//! ```text
//!  LOCK                          locked while a process has the directory
//!  0000000000000001.seg          segments
//!  0000001000000040.checkpoint   the newest checkpoint; checkpoint.tmp while it is being written
//!  spare-1.seg                   prepared segments; preparing.tmp while one is being filled
//! ```
//!
//! Segments are filled with zeros ahead of need, by a thread: writes into them change no metadata
//! and need no new space. The first one of all is only reserved, but for its begin: the broker's
//! first message should not wait for it. A directory is synced after each name in it that must
//! stay.
//!
//! The directory and the segment that is used next are open before they are needed. Where the process
//! or the system has no descriptor for another file, opening it is tried again until there is one.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use rustix::io::{Errno, pwritev};

use tracing::{debug, warn};

use crate::limits;
use crate::system::files;
use crate::system::supervisor::{self, Thread};
use jitney_journal::{CheckpointSink, Checkpoints, Disk, Error, LogReader, SegmentId, Space};

/// Parts that are written with one call: the system's limit.
const WRITE_PARTS: usize = 1024;
const CHECKPOINT_TMP: &str = "checkpoint.tmp";
const PREPARING: &str = "preparing.tmp";

/// Files in a directory.
pub(crate) struct FileDisk {
    shared: Arc<Shared>,
    helper: Option<Thread>,
    handles: Mutex<BTreeMap<SegmentId, Arc<File>>>,
    /// What is kept while a copy is made.
    kept: Mutex<Option<HeldBack>>,
    /// Locked until it is closed.
    _lock: File,
}

/// What was to be removed while a copy is made.
struct HeldBack {
    /// Those before are copied, and can be removed.
    copied: SegmentId,
    segments: Vec<SegmentId>,
    checkpoints: Vec<u64>,
}

/// The state shared with the preparing thread.
struct Shared {
    directory: PathBuf,
    /// To be synced.
    directory_handle: File,
    segment_bytes: u64,
    spares: Mutex<Spares>,
    changed: Condvar,
    room: AtomicBool,
}

#[derive(Default)]
struct Spares {
    ready: Vec<Spare>,
    /// Segments of the log that are in use.
    in_use: usize,
    /// Names given so far.
    named: u64,
    /// The system's error of the last attempt to prepare one.
    failure: Option<(io::ErrorKind, String)>,
    /// The directory is new: the next prepared segment is needed at once.
    hurry: bool,
    stop: bool,
}

/// A prepared segment.
struct Spare {
    path: PathBuf,
    /// The one that is used next is open; of many, not all are.
    file: Option<Arc<File>>,
}

impl Spare {
    fn closed(path: PathBuf) -> Self {
        Self { path, file: None }
    }
}

impl FileDisk {
    /// Opens a directory, or makes it.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if another process has it.
    pub(crate) fn open(directory: &Path) -> Result<Arc<Self>, Error> {
        Self::open_with(directory, jitney_journal::limits::SEGMENT_BYTES)
    }

    /// Opens a directory, or makes it, with segments of this many bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if another process has it.
    pub(super) fn open_with(directory: &Path, segment_bytes: u64) -> Result<Arc<Self>, Error> {
        let failed = failure("open", directory);
        if let Some(mode) = files::make_private_directory(directory).map_err(&failed)? {
            let directory = directory.display();
            warn!(
                mode = format_args!("{mode:o}"),
                "the data directory {directory} is open to other users of this machine, and holds \
                 messages and keys: chmod -R go= {directory}"
            );
        }
        let lock = lock(directory)?;
        let mut spares = Spares {
            hurry: true,
            ..Spares::default()
        };
        for entry in fs::read_dir(directory).map_err(&failed)? {
            let path = entry.map_err(&failed)?.path();
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name == CHECKPOINT_TMP || name == PREPARING {
                fs::remove_file(&path).map_err(failure("remove", &path))?;
                continue;
            }
            if name.strip_suffix(".seg").is_some() {
                spares.hurry = false;
            }
            if let Some(number) = number(name, "spare-", ".seg", 10) {
                spares.named = spares.named.max(number);
                spares.ready.push(Spare::closed(path));
            } else if name.strip_suffix(".seg").is_some() {
                spares.in_use += 1;
            }
        }
        let directory_handle = File::open(directory).map_err(&failed)?;
        if let Some(parent) = directory
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            let synced = files::sync_directory(parent);
            synced.map_err(failure("sync", parent))?;
        }
        let shared = Arc::new(Shared {
            directory: directory.to_owned(),
            directory_handle,
            segment_bytes,
            spares: Mutex::new(spares),
            changed: Condvar::new(),
            room: AtomicBool::new(true),
        });
        shared.sync_directory()?;
        let theirs = Arc::clone(&shared);
        let helper = supervisor::spawn_thread("segments", move || theirs.keep_ready());
        Ok(Arc::new(Self {
            shared,
            helper: Some(helper.map_err(failed)?),
            handles: Mutex::default(),
            kept: Mutex::new(None),
            _lock: lock,
        }))
    }

    /// Keeps the segments and checkpoints that are removed from now on until they are released: a copy
    /// is made of them. Nothing is being removed when it returns.
    pub(super) fn keep_removed(&self) {
        *locked(&self.kept) = Some(HeldBack {
            copied: SegmentId(0),
            segments: Vec::new(),
            checkpoints: Vec::new(),
        });
    }

    /// Removes what was kept: the segments before this one, or everything.
    ///
    /// # Errors
    ///
    /// A file cannot be removed: the next start removes it, or finds it as it was.
    pub(super) fn release(&self, before: Option<SegmentId>) -> Result<(), Error> {
        let mut kept = locked(&self.kept);
        let Some(now) = kept.as_mut() else {
            return Ok(());
        };
        now.copied = before.unwrap_or(SegmentId(u64::MAX));
        let copied = now.copied;
        let released = now.segments.extract_if(.., |segment| *segment < copied);
        let released: Vec<SegmentId> = released.collect();
        let checkpoints = match before {
            Some(_) => Vec::new(),
            None => kept.take().map(|kept| kept.checkpoints).unwrap_or_default(),
        };
        for segment in released {
            self.remove_file(segment)?;
        }
        drop(kept);
        for number in checkpoints {
            self.remove_checkpoint(number)?;
        }
        Ok(())
    }

    fn segment_path(&self, segment: SegmentId) -> PathBuf {
        self.shared.directory.join(segment_name(segment))
    }

    fn checkpoint_path(&self, number: u64) -> PathBuf {
        self.shared.directory.join(checkpoint_name(number))
    }

    fn handle(&self, segment: SegmentId) -> Result<Arc<File>, Error> {
        let handles = locked(&self.handles);
        if let Some(handle) = handles.get(&segment) {
            return Ok(Arc::clone(handle));
        }
        let path = self.segment_path(segment);
        // Without a descriptor for this one, others use the files that are open.
        drop(handles);
        let file = self.shared.open(&path, || open_segment(&path));
        let file = Arc::new(file.map_err(failure("open", &path))?);
        self.keep(segment, &file);
        Ok(file)
    }

    /// Keeps a segment open.
    fn keep(&self, segment: SegmentId, file: &Arc<File>) {
        let mut handles = locked(&self.handles);
        if limits::SEGMENT_HANDLES_MAX <= handles.len() {
            handles.pop_first();
        }
        handles.insert(segment, Arc::clone(file));
    }

    /// Removes the file of a segment, or makes it a spare.
    fn remove_file(&self, segment: SegmentId) -> Result<(), Error> {
        let handle = locked(&self.handles).remove(&segment);
        let path = self.segment_path(segment);
        let failed = failure("remove", &path);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        // Before the spares are locked: it may have to wait for a descriptor.
        let file = match handle {
            Some(file) => file,
            None => {
                let opened = self.shared.open(&path, || open_segment(&path));
                Arc::new(opened.map_err(&failed)?)
            }
        };
        let mut spares = locked(&self.shared.spares);
        // A backup may have a hard link to the file: its bytes must stay as they are.
        let fits = metadata.nlink() == 1 && self.shared.segment_bytes <= metadata.len();
        spares.in_use = spares.in_use.saturating_sub(1);
        let most = limits::SPARE_SEGMENTS_MAX.max(spares.in_use / 4);
        if !fits || most <= spares.ready.len() {
            drop(spares);
            return fs::remove_file(&path).map_err(failed);
        }
        if self.shared.segment_bytes < metadata.len() {
            file.set_len(self.shared.segment_bytes).map_err(&failed)?;
        }
        let spare = self.shared.name(&mut spares);
        fs::rename(&path, &spare).map_err(failed)?;
        let file = Some(file);
        self.shared.add(&mut spares, Spare { path: spare, file });
        Ok(())
    }
}

impl Drop for FileDisk {
    fn drop(&mut self) {
        let Some(helper) = self.helper.take() else {
            return;
        };
        helper.allow_end();
        locked(&self.shared.spares).stop = true;
        self.shared.changed.notify_all();
        helper.join();
    }
}

impl LogReader for FileDisk {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        segments(&self.shared.directory)
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let file = self.handle(segment)?;
        let read = read_full(&file, offset, into);
        read.map_err(|error| failure("read", &self.segment_path(segment))(error))
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        checkpoints(&self.shared.directory)
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let path = self.checkpoint_path(number);
        let file = self.shared.open(&path, || File::open(&path));
        let file = file.map_err(failure("open", &path))?;
        read_full(&file, offset, into).map_err(failure("read", &path))
    }
}

impl Checkpoints for FileDisk {
    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        let temporary = self.shared.directory.join(CHECKPOINT_TMP);
        let file = self
            .shared
            .open(&temporary, || create(&temporary))
            .map_err(failure("create", &temporary))?;
        let path = self.checkpoint_path(number);
        Ok(Box::new(Sink {
            shared: &self.shared,
            temporary,
            path,
            file,
        }))
    }

    fn remove_checkpoint(&self, number: u64) -> Result<(), Error> {
        if let Some(kept) = &mut *locked(&self.kept) {
            kept.checkpoints.push(number);
            return Ok(());
        }
        let path = self.checkpoint_path(number);
        match fs::remove_file(&path) {
            // One that was kept may be removed twice.
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failure("remove", &path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl Disk for FileDisk {
    fn start_segment(&self, segment: SegmentId) -> Result<(), Error> {
        let path = self.segment_path(segment);
        if path.exists() {
            return self.shared.sync_directory();
        }
        let mut spares = locked(&self.shared.spares);
        let spare = loop {
            if let Some(spare) = spares.ready.pop() {
                break spare;
            }
            if let Some((kind, text)) = &spares.failure {
                let error = io::Error::new(*kind, text.clone());
                return Err(failure("prepare a segment in", &self.shared.directory)(
                    error,
                ));
            }
            spares = self
                .shared
                .changed
                .wait(spares)
                .unwrap_or_else(PoisonError::into_inner);
        };
        spares.in_use += 1;
        drop(spares);
        self.shared.changed.notify_all();
        if let Err(error) = fs::rename(&spare.path, &path) {
            let error = failure("rename", &spare.path)(error);
            let mut spares = locked(&self.shared.spares);
            spares.in_use = spares.in_use.saturating_sub(1);
            spares.ready.push(spare);
            return Err(error);
        }
        if let Some(file) = &spare.file {
            self.keep(segment, file);
        }
        self.shared.sync_directory()
    }

    fn length(&self, segment: SegmentId) -> Result<u64, Error> {
        let metadata = self.handle(segment)?.metadata();
        metadata
            .map(|metadata| metadata.len())
            .map_err(|error| failure("look at", &self.segment_path(segment))(error))
    }

    fn remove_segment(&self, segment: SegmentId) -> Result<(), Error> {
        // Locked to the end: a copy begins when no removal is under way.
        let mut kept = locked(&self.kept);
        if let Some(kept) = kept.as_mut().filter(|kept| kept.copied <= segment) {
            kept.segments.push(segment);
            return Ok(());
        }
        self.remove_file(segment)
    }

    fn write(&self, segment: SegmentId, offset: u64, parts: &[&[u8]]) -> Result<(), Error> {
        let file = self.handle(segment)?;
        let mut slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = slices.as_mut_slice();
        let mut place = offset;
        while !rest.is_empty() {
            let now = rest.get(..WRITE_PARTS).unwrap_or(rest);
            match pwritev(&*file, now, place) {
                Ok(0) if now.iter().any(|part| !part.is_empty()) => {
                    let none = io::ErrorKind::WriteZero.into();
                    return Err(failure("write", &self.segment_path(segment))(none));
                }
                Ok(count) => {
                    place += u64::try_from(count).expect("no machine has wider addresses");
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(failure("write", &self.segment_path(segment))(error.into()));
                }
            }
        }
        Ok(())
    }

    fn sync(&self, segment: SegmentId) -> Result<(), Error> {
        let synced = self.handle(segment)?.sync_data();
        // Not `Error::Full`, whatever the reason: the system may have dropped what was not written, so that a second sync proves
        // nothing.
        synced.map_err(|source| Error::Io {
            what: "sync",
            place: self.segment_path(segment).display().to_string(),
            source,
        })
    }

    fn truncate(&self, segment: SegmentId, offset: u64) -> Result<(), Error> {
        let path = self.segment_path(segment);
        let failed = failure("cut", &path);
        let file = self.handle(segment)?;
        let mut rest = file
            .metadata()
            .map_err(&failed)?
            .len()
            .saturating_sub(offset);
        let mut place = offset;
        let zeros = vec![0; limits::PREPARE_WRITE_BYTES];
        while 0 < rest {
            let count = rest.min(u64::try_from(limits::PREPARE_WRITE_BYTES).expect("it is small"));
            let now = zeros.get(..usize::try_from(count).expect("it is small"));
            file.write_all_at(now.unwrap_or_default(), place)
                .map_err(&failed)?;
            (place, rest) = (place + count, rest - count);
        }
        file.sync_all().map_err(failed)
    }

    fn has_room(&self) -> bool {
        self.shared.room.load(Ordering::Relaxed)
    }

    fn space(&self) -> Option<Space> {
        self.shared.space().ok()
    }
}

struct Sink<'a> {
    shared: &'a Shared,
    temporary: PathBuf,
    path: PathBuf,
    file: File,
}

impl CheckpointSink for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file
            .write_all(bytes)
            .map_err(failure("write", &self.temporary))
    }

    fn finish(self: Box<Self>) -> Result<(), Error> {
        self.file
            .sync_all()
            .map_err(failure("sync", &self.temporary))?;
        fs::rename(&self.temporary, &self.path).map_err(failure("rename", &self.temporary))?;
        self.shared.sync_directory()
    }
}

impl Drop for Sink<'_> {
    fn drop(&mut self) {
        // A finished one has another name; a leftover is removed at the next start.
        let _ = fs::remove_file(&self.temporary);
    }
}

impl Shared {
    /// Syncs the directory, so that its names are durable.
    fn sync_directory(&self) -> Result<(), Error> {
        self.directory_handle
            .sync_all()
            .map_err(|source| Error::Io {
                what: "sync",
                place: self.directory.display().to_string(),
                source,
            })
    }

    /// Opens a file; tries it again while there is no descriptor for it.
    fn open(&self, path: &Path, open: impl FnMut() -> io::Result<File>) -> io::Result<File> {
        let wait = || {
            let spares = locked(&self.spares);
            let waited = self.changed.wait_timeout_while(
                spares,
                limits::REOPEN_RETRY.as_duration(),
                |spares| !spares.stop,
            );
            !waited.unwrap_or_else(PoisonError::into_inner).0.stop
        };
        open_patiently(path, open, wait)
    }

    /// Opens the segment that is used next.
    fn open_next(spares: &mut Spares) {
        if let Some(next) = spares.ready.last_mut()
            && next.file.is_none()
        {
            // Where there is no descriptor now, it is opened when it is used.
            next.file = open_segment(&next.path).ok().map(Arc::new);
        }
    }

    /// Keeps one segment prepared until the stop.
    fn keep_ready(&self) {
        let mut spares = locked(&self.spares);
        while !spares.stop {
            if !spares.ready.is_empty() {
                Self::open_next(&mut spares);
                let before = spares.ready.len();
                let waited = self
                    .changed
                    .wait_timeout(spares, limits::SPARE_SEGMENTS_IDLE.as_duration())
                    .unwrap_or_else(PoisonError::into_inner);
                spares = waited.0;
                let is_idle = waited.1.timed_out() && before == spares.ready.len();
                if is_idle && limits::SPARE_SEGMENTS_KEPT < before {
                    // Many were in use together; one at a time goes back to the system.
                    let removed = spares.ready.pop().map(|spare| fs::remove_file(spare.path));
                    if let Some(Err(error)) = removed {
                        debug!(%error, "cannot remove a spare segment");
                    }
                }
                continue;
            }
            let hurry = std::mem::take(&mut spares.hurry);
            drop(spares);
            let prepared = if hurry {
                self.reserve()
            } else {
                self.prepare()
            };
            spares = locked(&self.spares);
            let named = prepared.and_then(|()| {
                let path = self.name(&mut spares);
                fs::rename(self.directory.join(PREPARING), &path).map(|()| path)
            });
            match named {
                Ok(path) => self.add(&mut spares, Spare::closed(path)),
                Err(error) => {
                    let _ = fs::remove_file(self.directory.join(PREPARING));
                    spares.failure = Some((error.kind(), error.to_string()));
                    self.room.store(!spares.ready.is_empty(), Ordering::Relaxed);
                    self.changed.notify_all();
                    let waited = self.changed.wait_timeout_while(
                        spares,
                        limits::PREPARE_RETRY.as_duration(),
                        |spares| !spares.stop && spares.ready.is_empty(),
                    );
                    spares = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// Makes a file of which only the beginning is filled with zeros, and syncs it.
    fn reserve(&self) -> io::Result<()> {
        self.check_space()?;
        let mut file = self.create_preparing()?;
        match fallocate(&file, FallocateFlags::empty(), 0, self.segment_bytes) {
            // If space cannot be reserved, the file grows with the writes.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
        let begin = usize::try_from(self.segment_bytes)
            .map_or(limits::PREPARE_WRITE_BYTES, |all| {
                all.min(limits::PREPARE_WRITE_BYTES)
            });
        file.write_all(&vec![0; begin])?;
        file.sync_all()
    }

    fn create_preparing(&self) -> io::Result<File> {
        let path = self.directory.join(PREPARING);
        self.open(&path, || create(&path))
    }

    fn space(&self) -> io::Result<Space> {
        let space = rustix::fs::statvfs(&self.directory)?;
        Ok(Space {
            free: space.f_bavail.saturating_mul(space.f_frsize),
            // As much again stays free, so that checkpoints can be written: they free segments.
            needed: self.segment_bytes.saturating_mul(2),
        })
    }

    fn check_space(&self) -> io::Result<()> {
        let Space { free, needed } = self.space()?;
        if free < needed {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Fills a file with zeros and syncs it.
    fn prepare(&self) -> io::Result<()> {
        self.check_space()?;
        let mut file = self.create_preparing()?;
        let zeros = vec![0; limits::PREPARE_WRITE_BYTES];
        let mut rest = usize::try_from(self.segment_bytes).map_err(io::Error::other)?;
        while 0 < rest {
            if locked(&self.spares).stop {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let now = zeros.get(..rest).unwrap_or(&zeros);
            file.write_all(now)?;
            rest -= now.len();
        }
        file.sync_all()
    }

    fn name(&self, spares: &mut Spares) -> PathBuf {
        spares.named += 1;
        self.directory.join(format!("spare-{}.seg", spares.named))
    }

    fn add(&self, spares: &mut Spares, spare: Spare) {
        spares.ready.push(spare);
        Self::open_next(spares);
        spares.failure = None;
        self.room.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No state here is partial when a thread panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn number(name: &str, prefix: &str, suffix: &str, radix: u32) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
    u64::from_str_radix(digits, radix).ok()
}

pub(super) fn read_full(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let (mut count, mut place) = (0, offset);
    while let Some(rest) = into.get_mut(count..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, place) {
            Ok(0) => break,
            Ok(read) => {
                count += read;
                place += u64::try_from(read).expect("no machine has wider addresses");
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Returns the name of a segment's file.
pub(crate) fn segment_name(segment: SegmentId) -> String {
    format!("{segment}.seg")
}

/// Returns the name of a checkpoint's file.
pub(crate) fn checkpoint_name(number: u64) -> String {
    format!("{number:016x}.checkpoint")
}

/// Returns the segments in a directory with their lengths, in their order.
pub(crate) fn segments(directory: &Path) -> Result<Vec<(SegmentId, u64)>, Error> {
    let found = numbered(directory, ".seg")?.into_iter().map(|number| {
        let segment = SegmentId(number);
        let path = directory.join(segment_name(segment));
        let metadata = fs::metadata(&path).map_err(failure("read", &path))?;
        Ok((segment, metadata.len()))
    });
    found.collect()
}

/// Returns the numbers of the checkpoints in a directory, in their order.
pub(crate) fn checkpoints(directory: &Path) -> Result<Vec<u64>, Error> {
    numbered(directory, ".checkpoint")
}

/// Returns the numbers in the names with this suffix, in their order.
fn numbered(directory: &Path, suffix: &str) -> Result<Vec<u64>, Error> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(directory).map_err(failure("list", directory))? {
        let name = entry.map_err(failure("list", directory))?.file_name();
        numbers.extend(name.to_str().and_then(|name| number(name, "", suffix, 16)));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Locks a directory for this process.
pub(crate) fn lock(directory: &Path) -> Result<File, Error> {
    let path = directory.join("LOCK");
    let lock = files::private()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(failure("open", &path))?;
    lock_file(&lock, FlockOperation::NonBlockingLockExclusive, &path)?;
    Ok(lock)
}

/// Locks a directory's file, unless another process has a lock that excludes this one.
pub(super) fn lock_file(lock: &File, operation: FlockOperation, path: &Path) -> Result<(), Error> {
    match flock(lock, operation) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => Err(Error::Locked {
            place: path.display().to_string(),
        }),
        Err(error) => Err(failure("lock", path)(error.into())),
    }
}

/// Makes a file anew.
fn create(path: &Path) -> io::Result<File> {
    let mut options = files::private();
    options.write(true).create(true).truncate(true).open(path)
}

fn open_segment(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

/// Opens a file. While the process or the system has no descriptor for it, it is tried again after
/// each `wait`, until that returns false.
fn open_patiently(
    path: &Path,
    mut open: impl FnMut() -> io::Result<File>,
    mut wait: impl FnMut() -> bool,
) -> io::Result<File> {
    let mut is_reported = false;
    loop {
        let error = match open() {
            Ok(file) => return Ok(file),
            Err(error) => error,
        };
        let code = error.raw_os_error().map(Errno::from_raw_os_error);
        if !matches!(code, Some(Errno::MFILE | Errno::NFILE)) {
            return Err(error);
        }
        if !is_reported {
            warn!(
                path = %path.display(),
                %error,
                "a file of the log cannot be opened for want of a file descriptor; this is tried \
                 again until one is free. Raise the limit of open files (ulimit -n)"
            );
            is_reported = true;
        }
        if !wait() {
            return Err(error);
        }
    }
}

/// Converts the system's error to ours.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "io::ErrorKind is foreign, and gains variants"
)]
pub(crate) fn failure<'a>(what: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Error + 'a {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full,
        io::ErrorKind::FileTooLarge => Error::Io {
            what,
            place: format!(
                "{}: the limit of file sizes (ulimit -f) is reached",
                path.display()
            ),
            source,
        },
        _ => Error::Io {
            what,
            place: path.display().to_string(),
            source,
        },
    }
}
