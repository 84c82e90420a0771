//! The disk of a log that is only looked at: the recovery of the journal reads it, and what it would
//! change stays as it is.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::disk::{self, failure, read_full};
use crate::journal::{CheckpointSink, Disk, Error, SegmentId};

/// Files in a directory, of which none is changed.
pub(super) struct ReadOnlyDisk {
    directory: PathBuf,
    /// Locked until it is closed; none if no broker ever had the directory.
    _lock: Option<File>,
}

impl ReadOnlyDisk {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if a broker has it.
    pub(super) fn open(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("LOCK");
        let lock = match File::open(&path) {
            Ok(lock) => Some(lock),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(failure("open", &path)(error)),
        };
        if let Some(lock) = &lock {
            disk::lock_file(lock, FlockOperation::NonBlockingLockShared, &path)?;
        }
        Ok(Self {
            directory: directory.to_owned(),
            _lock: lock,
        })
    }

    fn read_at(&self, name: &str, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let path = self.directory.join(name);
        let file = File::open(&path).map_err(failure("open", &path))?;
        read_full(&file, offset, into).map_err(failure("read", &path))
    }
}

impl Disk for ReadOnlyDisk {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        disk::segments(&self.directory)
    }

    fn start_segment(&self, _: SegmentId) -> Result<(), Error> {
        Ok(())
    }

    fn remove_segment(&self, _: SegmentId) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, _: SegmentId, _: u64, _: &[&[u8]]) -> Result<(), Error> {
        Ok(())
    }

    fn sync(&self, _: SegmentId) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.read_at(&disk::segment_name(segment), offset, into)
    }

    fn truncate(&self, _: SegmentId, _: u64) -> Result<(), Error> {
        Ok(())
    }

    fn has_room(&self) -> bool {
        true
    }

    fn write_checkpoint(&self, _: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        let error = std::io::ErrorKind::ReadOnlyFilesystem.into();
        Err(failure("write a checkpoint in", &self.directory)(error))
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        disk::checkpoints(&self.directory)
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.read_at(&disk::checkpoint_name(number), offset, into)
    }

    fn remove_checkpoint(&self, _: u64) -> Result<(), Error> {
        Ok(())
    }
}
