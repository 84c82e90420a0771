//! Pages of indexes in a file: the parts of long queues that need not be in memory.
//!
//! The file is unlinked, lives as long as the process and is never synced: a start rebuilds its
//! contents from the log. A page takes consecutive blocks; freed blocks are reused by pages of the
//! same size, and when there is no page the file is empty.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tracing::warn;

use crate::system::{files, logging};
use jitney_base::memory::{Page, PageStore};

/// Bytes of a block.
const BLOCK: usize = 512;

/// A file of pages.
#[derive(Debug)]
pub(crate) struct PageFile(Arc<PageFileState>);

#[derive(Debug)]
struct PageFileState {
    file: File,
    blocks: Mutex<FreeBlocks>,
    /// The last page could not be written.
    full: AtomicBool,
}

/// Which blocks are free.
#[derive(Debug, Default)]
struct FreeBlocks {
    /// First blocks, by how many there are together.
    free: BTreeMap<u32, Vec<u32>>,
    /// Where the file ends.
    end: u32,
    used: u32,
}

#[derive(Debug)]
struct FilePage {
    shared: Arc<PageFileState>,
    first: u32,
    count: u32,
    length: u32,
    checksum: u32,
}

impl PageFile {
    /// Creates the file in a directory.
    ///
    /// # Errors
    ///
    /// If the file cannot be created.
    pub(crate) fn create(directory: &Path) -> io::Result<Self> {
        let path = directory.join("index.swap");
        let mut options = files::private();
        let file = options.read(true).write(true).create(true).truncate(true);
        let file = file.open(&path)?;
        fs::remove_file(&path)?;
        Ok(Self(Arc::new(PageFileState {
            file,
            blocks: Mutex::default(),
            full: AtomicBool::new(false),
        })))
    }
}

impl PageStore for PageFile {
    fn put(&self, bytes: &[u8]) -> Option<Box<dyn Page>> {
        let length = u32::try_from(bytes.len()).ok()?;
        let count = u32::try_from(bytes.len().div_ceil(BLOCK)).ok()?;
        let first = self.0.blocks().take(count)?;
        let page = FilePage {
            shared: Arc::clone(&self.0),
            first,
            count,
            length,
            checksum: crc32c::crc32c(bytes),
        };
        // If the write fails, dropping the page frees its blocks.
        match self.0.file.write_all_at(bytes, page.offset()) {
            Ok(()) => {
                self.0.full.store(false, Ordering::Relaxed);
                Some(Box::new(page))
            }
            Err(error) => {
                if !self.0.full.swap(true, Ordering::Relaxed) {
                    warn!(
                        %error,
                        "cannot write index.swap: indexes of long queues stay in memory"
                    );
                }
                None
            }
        }
    }
}

impl Page for FilePage {
    fn read(&self) -> Bytes {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        let mut bytes = vec![0; length];
        let read = self.shared.file.read_exact_at(&mut bytes, self.offset());
        let whole = read.and_then(|()| {
            if crc32c::crc32c(&bytes) == self.checksum {
                Ok(())
            } else {
                Err(io::Error::other("it is damaged"))
            }
        });
        if let Err(error) = whole {
            logging::fatal(format_args!(
                "index.swap cannot be read; the broker ends: {error}"
            ));
            std::process::exit(1);
        }
        bytes.into()
    }
}

impl FilePage {
    fn offset(&self) -> u64 {
        u64::from(self.first) * u64::try_from(BLOCK).expect("fits 64 bits")
    }
}

impl Drop for FilePage {
    fn drop(&mut self) {
        let mut blocks = self.shared.blocks();
        blocks.give_back(self.first, self.count);
        // No other thread writes while the blocks are locked. Only free space stays.
        if blocks.used == 0 && self.shared.file.set_len(0).is_ok() {
            *blocks = FreeBlocks::default();
        }
    }
}

impl PageFileState {
    fn blocks(&self) -> MutexGuard<'_, FreeBlocks> {
        // Every change is done in one step: a thread that panicked left no partial state.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FreeBlocks {
    /// Takes consecutive blocks, and returns the first; `None` when the file has reached its
    /// largest size.
    fn take(&mut self, count: u32) -> Option<u32> {
        let free = self.free.get_mut(&count).and_then(Vec::pop);
        let first = match free {
            Some(first) => first,
            None => {
                let first = self.end;
                self.end = first.checked_add(count)?;
                first
            }
        };
        self.used += count;
        Some(first)
    }

    fn give_back(&mut self, first: u32, count: u32) {
        self.used -= count;
        self.free.entry(count).or_default().push(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(length: usize, seed: usize) -> Vec<u8> {
        (0..length)
            .map(|at| u8::try_from((at * 7 + seed) % 251).unwrap())
            .collect()
    }

    #[test]
    fn pages_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let file = PageFile::create(directory.path()).unwrap();
        let lengths = [0, 1, 511, 512, 513, 1_024, 100_000];
        let put = |(seed, &length)| file.put(&bytes(length, seed)).expect("there is room");
        let mut pages: Vec<_> = lengths.iter().enumerate().map(put).collect();
        for (seed, (&length, page)) in lengths.iter().zip(&pages).enumerate() {
            assert_eq!(page.read(), bytes(length, seed));
        }
        // Freed blocks are taken again, and the others are as they were.
        drop(pages.swap_remove(1));
        let length = file.0.file.metadata().unwrap().len();
        let again = file.put(&bytes(500, 99)).expect("there is room");
        assert_eq!(file.0.file.metadata().unwrap().len(), length);
        assert_eq!(again.read(), bytes(500, 99));
        assert_eq!(pages[2].read(), bytes(511, 2));
        assert_eq!(pages[1].read(), bytes(100_000, 6));
    }

    #[test]
    fn a_file_without_pages_is_empty_and_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        let file = PageFile::create(directory.path()).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        let first = file.put(&bytes(3_000, 0));
        let second = file.put(&bytes(3_000, 1));
        drop(first);
        assert_ne!(file.0.file.metadata().unwrap().len(), 0);
        drop(second);
        assert_eq!(file.0.file.metadata().unwrap().len(), 0);
        let third = file.put(&bytes(10, 2)).expect("there is room");
        assert_eq!(third.read(), bytes(10, 2));
    }

    #[test]
    fn a_page_that_cannot_be_written_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("read-only");
        fs::write(&path, "").unwrap();
        let file = PageFile(Arc::new(PageFileState {
            file: File::open(path).unwrap(),
            blocks: Mutex::default(),
            full: AtomicBool::new(false),
        }));
        assert!(file.put(b"bytes").is_none());
        assert_eq!(file.0.blocks().used, 0);
    }
}
