//! A log in files that is only read: no file of it is changed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, SeekFrom, seek};
use rustix::io::Errno;

use super::disk::{self, failure, read_full};
use crate::limits;
use crate::system::files;
use jitney_journal::{Error, LogReader, SegmentId};

/// The files of a log in a directory, of which none is changed.
pub(crate) struct ReadOnlyLog {
    directory: PathBuf,
    /// Locked until it is closed; none if no broker ever had the directory.
    _lock: Option<File>,
}

impl ReadOnlyLog {
    /// Opens a directory.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if a broker has it.
    pub(crate) fn open(directory: &Path) -> Result<Self, Error> {
        let path = directory.join("LOCK");
        let lock = match files::open_regular(&path) {
            Ok(lock) => Some(lock),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
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

    /// Returns whether a name is that of a file, or of a link to one. A pipe with the name of a segment is no part of a log, and to
    /// open it may take for ever.
    fn is_regular(&self, name: &str) -> bool {
        let found = fs::metadata(self.directory.join(name));
        found.is_ok_and(|found| found.is_file())
    }

    fn read_at(&self, name: &str, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let path = self.directory.join(name);
        let file = open(&path)?;
        read_full(&file, offset, into).map_err(failure("read", &path))
    }
}

fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(failure("open", path))
}

/// Returns where the last bytes of a file end that are not a hole: holes are zeros, and as long as anybody likes.
///
/// # Errors
///
/// The file is longer than a segment can be, or cannot be read.
fn end_of_data(file: &File, length: u64) -> io::Result<u64> {
    let mut end = 0;
    while end < length {
        let data = match seek(file, SeekFrom::Data(end)) {
            Ok(data) => data,
            Err(Errno::NXIO) => break,
            // The file system does not tell holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {
                end = length;
                break;
            }
            Err(error) => return Err(error.into()),
        };
        end = seek(file, SeekFrom::Hole(data))?;
    }
    if limits::SEGMENT_FILE_BYTES_MAX < end {
        let text = format!("it has {end} bytes, and no segment has as many");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok(end)
}

impl LogReader for ReadOnlyLog {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        let mut found = disk::segments(&self.directory)?;
        found.retain(|(segment, _)| self.is_regular(&disk::segment_name(*segment)));
        for (segment, length) in &mut found {
            let path = self.directory.join(disk::segment_name(*segment));
            let end = end_of_data(&open(&path)?, *length);
            let end = end.map_err(failure("check", &path))?;
            // A segment that was made in advance may end in a hole; a longer hole is none of its.
            *length = (*length).min(end.max(jitney_journal::limits::SEGMENT_BYTES));
        }
        Ok(found)
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.read_at(&disk::segment_name(segment), offset, into)
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        let mut found = disk::checkpoints(&self.directory)?;
        found.retain(|number| self.is_regular(&disk::checkpoint_name(*number)));
        Ok(found)
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        self.read_at(&disk::checkpoint_name(number), offset, into)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn pipes_are_no_segments_and_long_holes_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |number: u64| directory.path().join(disk::segment_name(SegmentId(number)));
        fs::write(at(1), vec![1; 8192]).unwrap();
        mknodat(CWD, at(2), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let sparse = File::create(at(3)).unwrap();
        sparse.write_all_at(&[1; 8192], 0).unwrap();
        sparse.set_len(1 << 40).unwrap();
        let log = ReadOnlyLog::open(directory.path()).unwrap();
        let found = log.segments().unwrap();
        assert_eq!(found.iter().map(|it| it.0.0).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(found[0].1, 8192);
        assert_eq!(
            found[1].1,
            jitney_journal::limits::SEGMENT_BYTES,
            "made in advance at most"
        );
        // With bytes at its end it is as long as it says.
        sparse.write_all_at(&[1], (1 << 40) - 1).unwrap();
        let error = log.segments().unwrap_err().to_string();
        assert!(error.contains("no segment has as many"), "{error}");
        fs::remove_file(at(3)).unwrap();
        mknodat(
            CWD,
            directory.path().join("LOCK"),
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let error = ReadOnlyLog::open(directory.path()).map(drop).unwrap_err();
        assert!(error.to_string().contains("a pipe"), "{error}");
    }
}
