//! Checkpoints: the state at one place of the log, as records from which it is made again.
//!
//! One is written aside, block by block, and is there only when it is whole and durable; then
//! older ones are removed. There is therefore one that is good, or none was ever written.

use bytes::{BufMut, BytesMut};

use super::codec::{self, Decoder};
use super::layout::{
    CHECKPOINT_HEADER, CheckpointHeader, Header, Position, checksum, u64_of, usize_of,
};
use super::recover::Replay;
use super::{CheckpointAt, CheckpointSink, Checkpoints, Error, LogReader};
use crate::limits;
use jitney_base::time::Timestamp;
use jitney_queue::Record;

/// A block's header: its length and its checksum.
const BLOCK_HEADER: usize = 8;

/// Writes the checkpoint for a place of the log, from the records that `records` emits, and
/// removes older ones.
///
/// # Errors
///
/// The checkpoints that were there are there still.
pub fn write_checkpoint(
    log: &dyn Checkpoints,
    at: CheckpointAt,
    records: impl FnOnce(&mut dyn FnMut(&Record<'_>)),
) -> Result<CheckpointAt, Error> {
    let number = at.position.to_u64();
    let mut sink = log.write_checkpoint(number)?;
    let header = CheckpointHeader {
        store: at.store,
        position: number,
        frame: at.frame,
        newest: at.newest.as_millis(),
    };
    sink.write(&header.encode())?;
    let mut blocks = Blocks::new(at.store, &mut *sink);
    let mut result = Ok(());
    records(&mut |record| {
        if result.is_ok() {
            result = blocks.add(record);
        }
    });
    result?;
    blocks.finish()?;
    let bytes = blocks.bytes;
    sink.finish()?;
    for older in log.checkpoints()? {
        if older < number {
            log.remove_checkpoint(older)?;
        }
    }
    Ok(CheckpointAt { bytes, ..at })
}

struct Blocks<'a> {
    store: u64,
    sink: &'a mut dyn CheckpointSink,
    block: BytesMut,
    count: u64,
    /// Bytes of all blocks.
    bytes: u64,
}

impl<'a> Blocks<'a> {
    fn new(store: u64, sink: &'a mut dyn CheckpointSink) -> Self {
        let mut block = BytesMut::with_capacity(2 * limits::CHECKPOINT_BLOCK_BYTES);
        block.put_bytes(0, BLOCK_HEADER);
        Self {
            store,
            sink,
            block,
            count: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, record: &Record<'_>) -> Result<(), Error> {
        codec::encode(&mut self.block, record);
        self.count += 1;
        if limits::CHECKPOINT_BLOCK_BYTES <= self.block.len() {
            let length = self.block.len() - BLOCK_HEADER;
            self.write(length)?;
        }
        Ok(())
    }

    /// The last block says that it has no records, and counts those of all others.
    fn finish(&mut self) -> Result<(), Error> {
        if BLOCK_HEADER < self.block.len() {
            let length = self.block.len() - BLOCK_HEADER;
            self.write(length)?;
        }
        self.block.put_u64_le(self.count);
        self.write(0)
    }

    fn write(&mut self, length: usize) -> Result<(), Error> {
        let length = u32::try_from(length).expect("a block ends with the record that fills it");
        let (header, payload) = self.block.split_at_mut(BLOCK_HEADER);
        let length = length.to_le_bytes();
        let sum = crc32c::crc32c_append(checksum(self.store, &length), payload).to_le_bytes();
        for (to, from) in header.iter_mut().zip(length.into_iter().chain(sum)) {
            *to = from;
        }
        self.sink.write(&self.block)?;
        self.bytes += u64_of(self.block.len());
        self.block.truncate(BLOCK_HEADER);
        Ok(())
    }
}

/// Reads the newest checkpoint, and gives its records to `replay`.
pub(super) fn read(
    log: &dyn LogReader,
    replay: &mut Replay<'_>,
) -> Result<Option<CheckpointAt>, Error> {
    let Some(&number) = log.checkpoints()?.last() else {
        return Ok(None);
    };
    let mut file = CheckpointFile {
        log,
        number,
        offset: 0,
        buffer: Vec::new(),
    };
    let place = || format!("checkpoint {number:016x}");
    let header = match CheckpointHeader::decode(file.take(CHECKPOINT_HEADER)?) {
        Header::Good(header) if header.position == number => header,
        Header::Good(_) | Header::Bad => return Err(file.damaged("its header is not whole")),
        Header::OtherFormat(found) => {
            return Err(Error::Version {
                place: place(),
                found,
                known: super::layout::FORMAT,
            });
        }
    };
    let mut count = 0;
    loop {
        let Some(&[l0, l1, l2, l3, c0, c1, c2, c3]) = file.take(BLOCK_HEADER)?.first_chunk() else {
            return Err(file.damaged("it ends too early"));
        };
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        let sum = u32::from_le_bytes([c0, c1, c2, c3]);
        let wanted = if length == 0 {
            size_of::<u64>()
        } else {
            usize_of(u64::from(length))
        };
        let block = file.take(wanted)?;
        let found = crc32c::crc32c_append(checksum(header.store, &length.to_le_bytes()), block);
        if block.len() < wanted || found != sum {
            return Err(file.damaged("a block's checksum is wrong"));
        }
        if length == 0 {
            if block.first_chunk() != Some(&u64::to_le_bytes(count)) {
                return Err(file.damaged("records are missing"));
            }
            break;
        }
        let mut records = Decoder::new(block);
        loop {
            match records.next() {
                Ok(Some((record, _))) => {
                    let body = if let Record::Alive { body, .. } = record {
                        Some(body)
                    } else {
                        None
                    };
                    replay(&record, body).map_err(Error::Replay)?;
                    count += 1;
                }
                Ok(None) => break,
                Err(codec::MalformedRecord) => return Err(file.damaged("a record cannot be read")),
            }
        }
    }
    Ok(Some(CheckpointAt {
        store: header.store,
        position: Position::from_u64(header.position),
        frame: header.frame,
        newest: Timestamp::from_millis(header.newest),
        appended: 0,
        records: 0,
        bytes: 0,
    }))
}

struct CheckpointFile<'a> {
    log: &'a dyn LogReader,
    number: u64,
    offset: u64,
    buffer: Vec<u8>,
}

impl CheckpointFile<'_> {
    /// Returns the next bytes; fewer only at the end. Grows with what there is, not with what a
    /// damaged length says.
    fn take(&mut self, count: usize) -> Result<&[u8], Error> {
        self.buffer.clear();
        while self.buffer.len() < count {
            let held = self.buffer.len();
            self.buffer
                .resize(count.min(held + limits::RECOVERY_READ_BYTES), 0);
            let into = self.buffer.get_mut(held..).unwrap_or_default();
            let wanted = into.len();
            let read = self.log.read_checkpoint(self.number, self.offset, into)?;
            self.offset += u64_of(read);
            self.buffer.truncate(held + read);
            if read < wanted {
                break;
            }
        }
        Ok(&self.buffer)
    }

    fn damaged(&self, what: &'static str) -> Error {
        Error::CorruptCheckpoint {
            number: self.number,
            what,
        }
    }
}
