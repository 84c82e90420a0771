//! A log in the rows of the modelled [`Database`], as a shard reads it, and writes its checkpoints.

use std::io;
use std::sync::{Arc, Mutex};

use jitney_journal::appender::{Appended, Claim};
use jitney_journal::rows::{self, RowLog, StoredRow, Tail};
use jitney_journal::{CheckpointSink, Checkpoints, Error, LogReader, SegmentId};

use super::database::Database;

/// Bytes of a part of a checkpoint.
const PART: usize = 700;

/// The log, by the right of one acquisition and those that follow from it.
#[derive(Debug)]
pub(super) struct ModelLog {
    database: Arc<Database>,
    store: u64,
    claim: Mutex<Claim>,
    /// Parts that a checkpoint may still write before its server ends.
    parts_left: Mutex<Option<u64>>,
}

impl ModelLog {
    pub(super) fn new(database: Arc<Database>, store: u64, claim: Claim) -> Self {
        Self {
            database,
            store,
            claim: Mutex::new(claim),
            parts_left: Mutex::new(None),
        }
    }

    pub(super) fn claim(&self) -> Claim {
        *self.claim.lock().expect("one thread uses it")
    }

    /// The server has another claim.
    pub(super) fn set_claim(&self, claim: Claim) {
        *self.claim.lock().expect("one thread uses it") = claim;
    }

    /// The server ends after it has written so many parts of a checkpoint.
    pub(super) fn end_after(&self, parts: u64) {
        *self.parts_left.lock().expect("one thread uses it") = Some(parts);
    }

    pub(super) fn remove_segment(&self, segment: SegmentId) -> Result<(), Error> {
        let is_done = self.database.remove_segment(self.claim(), segment);
        is_done.then_some(()).ok_or(Error::Fenced)
    }
}

impl RowLog for ModelLog {
    fn tail(&self, from: u64) -> Result<Tail<'_>, Error> {
        let rows = self.database.look(|tables| tables.rows_from(from));
        Ok(Box::new(rows.into_iter().map(|(row, id)| {
            let (place, meta) = (row.place(), row.meta);
            Ok((StoredRow { place, meta }, id))
        })))
    }

    fn last_before(&self, position: u64) -> Result<Option<Appended>, Error> {
        Ok(self.database.look(|tables| tables.last_before(position)))
    }
}

impl LogReader for ModelLog {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        let segments = self.database.look(super::database::Tables::segments);
        Ok(segments.into_iter().collect())
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let begin = rows::position(segment, offset);
        let end = begin + u64::try_from(into.len()).expect("fits");
        let before = self.database.look(|tables| tables.last_before(begin + 1));
        let from = before.map_or(begin, |row| row.place.position);
        let found = self.database.look(|tables| tables.rows_from(from));
        let mut read = 0;
        for (row, _) in found.iter().filter(|(row, _)| row.position < end) {
            let unpacked = rows::unpack(self.store, row.place(), &row.meta, Some(&row.body));
            let unpacked = unpacked.map_err(|error| Error::Io {
                what: "read",
                place: "a row".to_owned(),
                source: io::Error::other(error.to_string()),
            })?;
            let skipped = begin.saturating_sub(row.position);
            let skipped = usize::try_from(skipped).expect("fits");
            let at = usize::try_from(row.position.saturating_sub(begin)).expect("fits");
            if at != read {
                break;
            }
            let bytes = unpacked.bytes().get(skipped..).unwrap_or_default();
            let count = bytes.len().min(into.len() - at);
            into[at..at + count].copy_from_slice(&bytes[..count]);
            read += count;
        }
        Ok(read)
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        let numbers =
            |tables: &super::database::Tables| tables.checkpoints.iter().copied().collect();
        Ok(self.database.look(numbers))
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let bytes = self.database.look(|tables| tables.checkpoint(number));
        let offset = usize::try_from(offset).expect("fits");
        let from = bytes.get(offset..).unwrap_or_default();
        let count = from.len().min(into.len());
        into[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }
}

impl Checkpoints for ModelLog {
    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        Ok(Box::new(Sink {
            log: self,
            number,
            part: 0,
            bytes: Vec::new(),
        }))
    }

    fn remove_checkpoint(&self, number: u64) -> Result<(), Error> {
        let is_done = self.database.remove_checkpoint(self.claim(), number);
        is_done.then_some(()).ok_or(Error::Fenced)
    }
}

struct Sink<'a> {
    log: &'a ModelLog,
    number: u64,
    part: usize,
    bytes: Vec<u8>,
}

impl Sink<'_> {
    fn write_part(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut left = self.log.parts_left.lock().expect("one thread uses it");
        match &mut *left {
            Some(0) => return Err(Error::Store("the server has ended".to_owned())),
            Some(left) => *left -= 1,
            None => {}
        }
        let claim = self.log.claim();
        let database = &self.log.database;
        if !database.write_chunk(claim, self.number, self.part, bytes) {
            return Err(Error::Fenced);
        }
        self.part += 1;
        Ok(())
    }
}

impl CheckpointSink for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.bytes.extend_from_slice(bytes);
        while PART <= self.bytes.len() {
            let rest = self.bytes.split_off(PART);
            let part = std::mem::replace(&mut self.bytes, rest);
            self.write_part(&part)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        let rest = std::mem::take(&mut self.bytes);
        self.write_part(&rest)?;
        let database = &self.log.database;
        let is_done = database.finish_checkpoint(self.log.claim(), self.number);
        is_done.then_some(()).ok_or(Error::Fenced)
    }
}
