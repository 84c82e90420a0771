//! The journal's seam over a store, but for the appends: reading, checkpoints, and the removal of segments.
//!
//! Its operations block, and are for threads of their own. One that finds the store away waits for it, until the
//! namespace is another server's or this server stops.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use tokio::runtime::Handle;
use tokio_postgres::error::SqlState;
use tracing::{info, warn};

use super::connect::{Session, Store};
use super::fence::Fence;
use super::sql::{signed, unsigned};
use super::{StoreError, ownership, schema};
use crate::limits;
use jitney_journal::appender::Appended;
use jitney_journal::rows::{self, RowLog, RowPlace, StoredRow, Tail, Unpacked};
use jitney_journal::{CheckpointSink, Checkpoints, Error, LogReader, SegmentId};

/// The log of a namespace in a store.
pub struct StoreLog {
    store: Arc<Store>,
    fence: Arc<Fence>,
    runtime: Handle,
}

impl StoreLog {
    /// Makes the log of a namespace, whose statements run on a runtime.
    pub fn new(store: Arc<Store>, fence: Arc<Fence>, runtime: Handle) -> Self {
        Self {
            store,
            fence,
            runtime,
        }
    }

    /// Returns the right to append to it.
    #[must_use]
    pub fn fence(&self) -> &Arc<Fence> {
        &self.fence
    }

    /// Returns the segments that have a table, in their order.
    async fn tables(&self, session: &Session) -> Result<Vec<SegmentId>, StoreError> {
        let query =
            "select segment from segment where namespace = $1 and not removed order by segment";
        let rows = session.rows(query, &[&self.fence.namespace()]).await?;
        let segments = rows.iter().map(|row| {
            let segment: i64 = self.store.get(row, 0)?;
            Ok(SegmentId(unsigned(segment)))
        });
        segments.collect()
    }

    /// Returns the rows from a position on, without their contents.
    pub async fn rows_from(
        &self,
        session: &Session,
        from: u64,
    ) -> Result<Vec<Appended>, StoreError> {
        let (first, _) = rows::place(from);
        let mut found = Vec::new();
        for segment in self.tables(session).await? {
            if first <= segment {
                let table = schema::table(self.fence.namespace(), segment);
                let query =
                    format!("select at, span, frame, id from {table} where at >= $1 order by at");
                for row in session.rows(&query, &[&signed(from)]).await? {
                    found.push(self.appended(&row)?);
                }
            }
        }
        Ok(found)
    }

    fn appended(&self, row: &tokio_postgres::Row) -> Result<Appended, StoreError> {
        let get = |column| self.store.get::<i64>(row, column);
        Ok(Appended {
            place: RowPlace {
                position: unsigned(get(0)?),
                span: unsigned(get(1)?),
                frame: unsigned(get(2)?),
            },
            id: get(3)?,
        })
    }

    /// Returns some rows of a segment from a position on.
    fn some_rows(&self, segment: SegmentId, from: u64) -> Result<Vec<(StoredRow, i64)>, Error> {
        let table = schema::table(self.fence.namespace(), segment);
        let query = format!(
            "select at, span, frame, id, meta from (select at, span, frame, id, meta, sum(length(meta)) over (order by at) - length(meta) as before \
             from {table} where at >= $1 and frame > 0 order by at limit {}) as page where before < $2 order by at",
            limits::STORE_READ_ROWS
        );
        self.block("read the log", async |session| {
            let (from, bytes) = (signed(from), limits::STORE_READ_BYTES);
            let found = session.rows(&query, &[&from, &bytes]).await?;
            let rows = found.iter().map(|row| {
                let Appended { place, id } = self.appended(row)?;
                let meta: &[u8] = self.store.get(row, 4)?;
                let meta = bytes::Bytes::copy_from_slice(meta);
                Ok((StoredRow { place, meta }, id))
            });
            rows.collect()
        })
    }

    /// Reads the bytes of the log in a range of a segment.
    async fn read_range(
        &self,
        session: &Session,
        segment: SegmentId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, StoreError> {
        let table = schema::table(self.fence.namespace(), segment);
        let begin = rows::position(segment, offset);
        let end = begin.saturating_add(u64::try_from(into.len()).unwrap_or(u64::MAX));
        let query = format!(
            "select at, span, frame, id, meta, body from {table} where at < $2 and \
             at >= coalesce((select max(at) from {table} where at <= $1), $1) and frame > 0 order by at"
        );
        let found = session
            .rows(&query, &[&signed(begin), &signed(end)])
            .await?;
        let mut read = 0;
        for row in &found {
            let Appended { place, .. } = self.appended(row)?;
            // A row is read from its begin, or from where the range begins in it.
            let skipped = usize_of(begin.saturating_sub(place.position));
            let at = usize_of(place.position.saturating_sub(begin));
            let meta: &[u8] = self.store.get(row, 4)?;
            let body: Option<&[u8]> = self.store.get(row, 5)?;
            // A large message behind what is wanted is not read ahead: it takes as long as many others.
            if at != read || (body.is_none() && 0 < at) {
                break;
            }
            let mut unpacked = rows::unpack(self.fence.log_store(), place, meta, body)?;
            if body.is_none() {
                let range = skipped..skipped + into.len();
                self.put_parts(session, place, &mut unpacked, range).await?;
            }
            let from = unpacked.bytes().get(skipped..).unwrap_or_default();
            for (to, from) in into.iter_mut().skip(at).zip(from) {
                *to = *from;
                read += 1;
            }
        }
        Ok(read)
    }

    /// Reads the parts of a large row's bodies that a range of its bytes needs.
    async fn put_parts(
        &self,
        session: &Session,
        place: RowPlace,
        unpacked: &mut Unpacked,
        range: Range<usize>,
    ) -> Result<(), StoreError> {
        let Some(needed) = unpacked.needed(&range) else {
            return Ok(());
        };
        let first = needed.start / limits::STORE_PART_BYTES;
        for part in first..needed.end.div_ceil(limits::STORE_PART_BYTES) {
            let query =
                "select bytes from body_part where namespace = $1 and at = $2 and part = $3";
            let at = signed(place.position);
            let number = i32::try_from(part).unwrap_or(i32::MAX);
            let row = session
                .optional(query, &[&self.fence.namespace(), &at, &number])
                .await?;
            let row = row.ok_or_else(|| rows::without_bodies(place))?;
            unpacked.put(part * limits::STORE_PART_BYTES, self.store.get(&row, 0)?);
        }
        Ok(())
    }

    /// Records under the fence that nothing needs a segment.
    async fn record_removed(&self, segment: SegmentId) -> Result<(), StoreError> {
        let (namespace, number) = (self.fence.namespace(), signed(segment.0));
        let (epoch, owner) = self.fence.current();
        let record = "with fence as (select from namespace f where f.id = $1 and f.epoch = $3 \
                      and f.owner = $4 for share of f), \
                      done as (update segment set removed = true where namespace = $1 and segment = $2 \
                      and exists (select from fence)) \
                      select exists (select from fence)";
        let session = self.store.take().await?;
        let row = session
            .one(record, &[&namespace, &number, &epoch, &owner])
            .await?;
        self.store.give_back(session);
        let is_owned = self.store.get(&row, 0)?;
        if is_owned {
            Ok(())
        } else {
            Err(StoreError::Fenced)
        }
    }

    /// Removes a segment that nothing needs, again and again until it is done, or this server has the namespace no more: it is
    /// recorded under the fence, and then its table is dropped, which waits for no reader.
    pub async fn remove(&self, segment: SegmentId) {
        let (mut is_recorded, mut is_reported) = (false, false);
        loop {
            let removed = async {
                if !is_recorded {
                    self.record_removed(segment).await?;
                    is_recorded = true;
                }
                self.drop_removed().await
            };
            let Err(error) = removed.await else {
                return;
            };
            if self.fence.is_lost() {
                return;
            }
            if !is_reported {
                let namespace = self.fence.name();
                info!(namespace, %segment, "a segment is removed from the store later: {error}");
                is_reported = true;
            }
            tokio::select! {
                () = self.store.until_closed() => return,
                () = tokio::time::sleep(limits::STORE_REMOVE_RETRY.as_duration()) => {}
            }
        }
    }

    /// Drops the tables of segments that are recorded as removed, and the bodies that are elsewhere.
    async fn drop_removed(&self) -> Result<(), StoreError> {
        let namespace = self.fence.namespace();
        let session = self.store.take().await?;
        let query = "select segment from segment where namespace = $1 and removed order by segment";
        for row in session.rows(query, &[&namespace]).await? {
            let number: i64 = self.store.get(&row, 0)?;
            let segment = SegmentId(unsigned(number));
            let [from, to] = [segment, SegmentId(segment.0 + 1)]
                .map(|segment| signed(rows::position(segment, 0)));
            let bodies = "delete from body_part where namespace = $1 and at >= $2 and at < $3";
            session.execute(bodies, &[&namespace, &from, &to]).await?;
            let table = schema::table(namespace, segment);
            schema::drop_table(&session, &table).await?;
            let forget = "delete from segment where namespace = $1 and segment = $2 and removed";
            session.execute(forget, &[&namespace, &number]).await?;
        }
        self.store.give_back(session);
        Ok(())
    }

    /// Returns whether a table is missing because the namespace was taken or removed meanwhile. Nothing else tells a take-over that:
    /// it appends only after it has read the log.
    fn was_taken(&self, error: &StoreError) -> bool {
        let StoreError::Database { source, .. } = error else {
            return false;
        };
        if source.code() != Some(&SqlState::UNDEFINED_TABLE) {
            return false;
        }
        let (epoch, owner) = self.fence.current();
        let found = self.runtime.block_on(async {
            let session = self.store.take().await?;
            let found = ownership::claim(&self.store, &session, self.fence.namespace()).await?;
            self.store.give_back(session);
            Ok::<_, StoreError>(found)
        });
        found.is_ok_and(|found| found != Some((epoch, Some(owner.0))))
    }

    /// Runs something, again and again while the store is away.
    ///
    /// # Errors
    ///
    /// [`Error::Fenced`]; [`Error::Store`] if the database says for a while that what is read is damaged; those of `work` that are
    /// not the database's.
    fn block<T>(
        &self,
        what: &'static str,
        mut work: impl AsyncFnMut(&Session) -> Result<T, StoreError>,
    ) -> Result<T, Error> {
        let mut is_reported = false;
        let mut damaged_since = None;
        loop {
            let done = self.runtime.block_on(async {
                let read = async {
                    let session = self.store.take().await?;
                    let done = work(&session).await?;
                    self.store.give_back(session);
                    Ok(done)
                };
                // The server waits for no reader when it stops.
                tokio::select! {
                    biased;
                    () = self.store.until_closed() => Err(StoreError::Fenced),
                    done = read => done,
                }
            });
            let error = match done {
                Ok(done) => return Ok(done),
                Err(
                    error @ (StoreError::Fenced | StoreError::Lost(_) | StoreError::Journal(_)),
                ) => {
                    return Err(error.into());
                }
                Err(error) => error,
            };
            if self.fence.is_lost() || self.store.is_closed() || self.was_taken(&error) {
                return Err(Error::Fenced);
            }
            if error.is_damage() {
                let since = *damaged_since.get_or_insert_with(Instant::now);
                if limits::STORE_DAMAGE_WAIT.as_duration() <= since.elapsed() {
                    return Err(Error::Store(error.to_string()));
                }
            } else {
                damaged_since = None;
            }
            if !is_reported {
                warn!(
                    namespace = self.fence.name(),
                    "waiting for the store to {what}: {error}"
                );
                is_reported = true;
            }
            thread::park_timeout(limits::STORE_RETRY_MAX.as_duration());
        }
    }
}

/// The rows of a log from a position on.
struct Rows<'a> {
    log: &'a StoreLog,
    /// Those that are to be read, the last first.
    segments: Vec<SegmentId>,
    from: u64,
    /// Rows that were read, the last first.
    read: Vec<(StoredRow, i64)>,
}

impl Rows<'_> {
    fn read_more(&mut self) -> Result<(), Error> {
        while self.read.is_empty() {
            let Some(&segment) = self.segments.last() else {
                return Ok(());
            };
            let mut rows = self.log.some_rows(segment, self.from)?;
            match rows.last() {
                Some((row, _)) => self.from = row.place.position + 1,
                None => drop(self.segments.pop()),
            }
            rows.reverse();
            self.read = rows;
        }
        Ok(())
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<(StoredRow, i64), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.read_more() {
            self.segments.clear();
            return Some(Err(error));
        }
        self.read.pop().map(Ok)
    }
}

impl RowLog for StoreLog {
    fn tail(&self, from: u64) -> Result<Tail<'_>, Error> {
        let (first, _) = rows::place(from);
        let segments = self.block("read the log", async |session| self.tables(session).await)?;
        let later = segments.into_iter().filter(|segment| first <= *segment);
        Ok(Box::new(Rows {
            log: self,
            segments: later.rev().collect(),
            from,
            read: Vec::new(),
        }))
    }

    fn last_before(&self, position: u64) -> Result<Option<Appended>, Error> {
        self.block("read the log", async |session| {
            for segment in self.tables(session).await?.into_iter().rev() {
                let table = schema::table(self.fence.namespace(), segment);
                let query = format!(
                    "select at, span, frame, id from {table} where at < $1 order by at desc limit 1"
                );
                if let Some(row) = session.optional(&query, &[&signed(position)]).await? {
                    return Ok(Some(self.appended(&row)?));
                }
            }
            Ok(None)
        })
    }
}

impl LogReader for StoreLog {
    fn segments(&self) -> Result<Vec<(SegmentId, u64)>, Error> {
        self.block("list segments", async |session| {
            let mut found = Vec::new();
            for segments in self
                .tables(session)
                .await?
                .chunks(limits::STORE_TABLES_ASKED)
            {
                let ends = segments.iter().map(|segment| {
                    let table = schema::table(self.fence.namespace(), *segment);
                    format!("(select at + span from {table} order by at desc limit 1)")
                });
                let query = ends.collect::<Vec<String>>().join(" union all ");
                for row in session.rows(&query, &[]).await? {
                    let end: i64 = self.store.get(&row, 0)?;
                    found.push(rows::place(unsigned(end)));
                }
            }
            Ok(found)
        })
    }

    fn read(&self, segment: SegmentId, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let mut others = limits::STORE_SESSIONS_IDLE;
        let read = self.block("read a message", async |session| {
            let namespace = self.fence.namespace();
            let (read, claim) = tokio::join!(
                self.read_range(session, segment, offset, into),
                ownership::claim(&self.store, session, namespace),
            );
            // A session that is kept may be one to a former primary. Its log can have other rows at the same positions, once this
            // server has raised the epoch at the new one; before that, rows that the former one has not got.
            let (epoch, owner) = self.fence.current();
            if claim? != Some((epoch, Some(owner.0))) {
                return Err(self.store.unfit(
                    "it has another epoch of the namespace: it is a former primary, or the namespace was taken".to_owned(),
                ));
            }
            let read = read?;
            if read == 0 && !into.is_empty() && 0 < others {
                others -= 1;
                return Err(self
                    .store
                    .unfit("it has nothing at this position: it may be a former primary".to_owned()));
            }
            Ok(read)
        });
        match read {
            // One damaged row damages the messages in it alone.
            Err(error @ (Error::CorruptRows { .. } | Error::Store(_))) => Err(Error::Io {
                what: "read",
                place: format!("segment {segment}"),
                source: io::Error::new(io::ErrorKind::NotFound, error.to_string()),
            }),
            read => read,
        }
    }

    fn checkpoints(&self) -> Result<Vec<u64>, Error> {
        self.block("list checkpoints", async |session| {
            let query = "select position from checkpoint where namespace = $1 order by position";
            let rows = session.rows(query, &[&self.fence.namespace()]).await?;
            let numbers = rows.iter().map(|row| Ok(unsigned(self.store.get(row, 0)?)));
            numbers.collect()
        })
    }

    fn read_checkpoint(&self, number: u64, offset: u64, into: &mut [u8]) -> Result<usize, Error> {
        let size = u64::try_from(limits::STORE_PART_BYTES).unwrap_or(u64::MAX);
        let mut parts: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let end = offset + u64::try_from(into.len()).unwrap_or(u64::MAX);
        self.block("read a checkpoint", async |session| {
            let query = "select part, bytes from checkpoint_chunk where namespace = $1 and position = $2 \
                         and part >= $3 and part <= $4 order by part";
            let (first, last) = (part_of(offset / size), part_of(end / size));
            let rows = session
                .rows(query, &[&self.fence.namespace(), &signed(number), &first, &last])
                .await?;
            for row in &rows {
                let part: i32 = self.store.get(row, 0)?;
                let bytes: &[u8] = self.store.get(row, 1)?;
                parts.insert(u64::try_from(part).unwrap_or_default(), bytes.to_vec());
            }
            Ok(())
        })?;
        let mut read = 0;
        while let Some(rest) = into.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let at = offset + u64::try_from(read).unwrap_or(u64::MAX);
            let Some(part) = parts.get(&(at / size)) else {
                break;
            };
            let from = part.get(usize_of(at % size)..).unwrap_or_default();
            if from.is_empty() {
                break;
            }
            let count = from.len().min(rest.len());
            for (to, from) in rest.iter_mut().zip(from) {
                *to = *from;
            }
            read += count;
        }
        Ok(read)
    }
}

impl Checkpoints for StoreLog {
    fn write_checkpoint(&self, number: u64) -> Result<Box<dyn CheckpointSink + '_>, Error> {
        Ok(Box::new(Sink {
            log: self,
            number,
            part: 0,
            buffer: Vec::new(),
        }))
    }

    fn remove_checkpoint(&self, number: u64) -> Result<(), Error> {
        self.block("remove a checkpoint", async |session| {
            let (epoch, owner) = self.fence.current();
            let namespace = self.fence.namespace();
            let number = signed(number);
            // Older checkpoints that were never finished have left parts.
            for table in ["checkpoint", "checkpoint_chunk"] {
                let sql = format!(
                    "with fence as (select from namespace f where f.id = $1 and f.epoch = $3 \
                     and f.owner = $4 for share of f) \
                     delete from {table} where namespace = $1 and position <= $2 and exists (select from fence)"
                );
                session
                    .execute(&sql, &[&namespace, &number, &epoch, &owner])
                    .await?;
            }
            Ok(())
        })
    }
}

/// A checkpoint that is being written, in parts of one size.
struct Sink<'a> {
    log: &'a StoreLog,
    number: u64,
    part: i32,
    buffer: Vec<u8>,
}

impl Sink<'_> {
    fn write_part(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let (number, part) = (signed(self.number), self.part);
        self.log.block("write a checkpoint", async |session| {
            let (epoch, owner) = self.log.fence.current();
            let sql = "insert into checkpoint_chunk (namespace, position, part, bytes) select $1, $2, $3, $4 \
                       from namespace f where f.id = $1 and f.epoch = $5 and f.owner = $6 \
                       for share of f on conflict (namespace, position, part) do update set bytes = excluded.bytes";
            let namespace = self.log.fence.namespace();
            let done = session
                .execute(sql, &[&namespace, &number, &part, &bytes, &epoch, &owner])
                .await?;
            if done == 0 {
                return Err(StoreError::Fenced);
            }
            Ok(())
        })?;
        self.part += 1;
        Ok(())
    }
}

impl CheckpointSink for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        while limits::STORE_PART_BYTES <= self.buffer.len() {
            let rest = self.buffer.split_off(limits::STORE_PART_BYTES);
            let part = std::mem::replace(&mut self.buffer, rest);
            self.write_part(&part)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        let rest = std::mem::take(&mut self.buffer);
        if !rest.is_empty() {
            self.write_part(&rest)?;
        }
        let number = signed(self.number);
        self.log.block("finish a checkpoint", async |session| {
            let (epoch, owner) = self.log.fence.current();
            // A checkpoint of an owner that has lost the namespace is not newer than one of its successor.
            let sql = "insert into checkpoint (namespace, position) select $1, $2 from namespace f \
                       where f.id = $1 and f.epoch = $3 and f.owner = $4 \
                       and not exists (select from checkpoint c where c.namespace = $1 and c.position > $2) \
                       for share of f on conflict do nothing";
            let namespace = self.log.fence.namespace();
            let done = session
                .execute(sql, &[&namespace, &number, &epoch, &owner])
                .await?;
            let there = "select exists (select from checkpoint where namespace = $1 and position = $2)";
            let row = session.one(there, &[&namespace, &number]).await?;
            if done == 0 && !self.log.store.get::<bool>(&row, 0)? {
                return Err(StoreError::Fenced);
            }
            Ok(())
        })
    }
}

fn part_of(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn usize_of(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}
