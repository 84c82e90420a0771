//! Records as bytes: a kind, and the fields of its record in their order.
//!
//! A kind's fields never change: a change of the fields gets a new kind, and old kinds stay
//! readable. `docs/log-format.md` has the format to the byte.

use bytes::{BufMut, BytesMut};

use super::layout::{BODY_CHECKSUM, body_checksum, u64_of};
use jitney_base::ids::{BodyRef, EntityId, JobId, SequenceNumber};
use jitney_base::time::{Millis, Timestamp};
use jitney_queue::{Passage, Record, StoredState};

const ENTITY: u8 = 1;
const ENTITY_DELETED: u8 = 2;
const ENQUEUED: u8 = 3;
const REMOVED: u8 = 4;
const CHANGED: u8 = 5;
const MOVED: u8 = 6;
const RELOCATED: u8 = 7;
const COUNTER: u8 = 8;
const ALIVE: u8 = 9;
const COPIED: u8 = 10;
const SAME_BODY: u8 = 11;
const SESSION_STATE: u8 = 12;
const RULE: u8 = 13;
const SEEN: u8 = 14;
const ENQUEUED_AMENDED: u8 = 15;
const JOB: u8 = 16;
const AUDIT: u8 = 17;

/// The newest kind.
pub(super) const NEWEST: u8 = AUDIT;

const ACTIVE: u8 = 0;
const DEFERRED: u8 = 1;
const SCHEDULED: u8 = 2;

/// Where in the buffer a record's body went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) offset: usize,
    pub(super) length: u32,
}

/// The bytes are no record that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedRecord;

/// Appends a record.
pub(super) fn encode(out: &mut BytesMut, record: &Record<'_>) -> Option<Body> {
    match *record {
        Record::Entity {
            entity,
            path,
            description,
        } => {
            head(out, ENTITY, entity);
            slice(out, path.as_bytes());
            slice(out, description);
        }
        Record::EntityDeleted { entity } => head(out, ENTITY_DELETED, entity),
        Record::Enqueued { .. } => return enqueued(out, record),
        Record::Removed { entity, number } => {
            head(out, REMOVED, entity);
            varint(out, number.0);
        }
        Record::Changed {
            entity,
            number,
            state,
            delivery_count,
            amendments,
        } => {
            head(out, CHANGED, entity);
            varint(out, number.0);
            stored_state(out, state);
            varint(out, u64::from(delivery_count));
            optional(out, amendments);
        }
        Record::Moved(ref passage) => passed(out, MOVED, passage),
        Record::Copied(ref passage) => passed(out, COPIED, passage),
        Record::Relocated {
            entity,
            number,
            body,
        } => {
            head(out, RELOCATED, entity);
            varint(out, number.0);
            return Some(summed(out, body));
        }
        Record::SameBody {
            entity,
            number,
            of,
            of_number,
        } => {
            head(out, SAME_BODY, entity);
            varint(out, number.0);
            varint(out, u64::from(of.0));
            varint(out, of_number.0);
        }
        Record::Counter { entity, next } => {
            head(out, COUNTER, entity);
            varint(out, next.0);
        }
        Record::Alive { .. } => alive(out, record),
        Record::SessionState { .. }
        | Record::Rule { .. }
        | Record::Job { .. }
        | Record::Audit { .. }
        | Record::Seen { .. } => {
            beside(out, record);
        }
    }
    None
}

fn enqueued(out: &mut BytesMut, record: &Record<'_>) -> Option<Body> {
    let &Record::Enqueued {
        entity,
        number,
        at,
        time_to_live,
        state,
        message_session,
        duplicate_key,
        amendments,
        body,
    } = record
    else {
        return None;
    };
    let kind = match amendments {
        Some(_) => ENQUEUED_AMENDED,
        None => ENQUEUED,
    };
    head(out, kind, entity);
    varint(out, number.0);
    times(out, at, time_to_live);
    stored_state(out, state);
    optional(out, message_session.map(str::as_bytes));
    let key = duplicate_key.map(u128::to_le_bytes);
    optional(out, key.as_ref().map(<[u8; 16]>::as_slice));
    if let Some(amendments) = amendments {
        slice(out, amendments);
    }
    Some(summed(out, body))
}

/// The state of an entity besides its messages.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "its caller encodes the records of messages"
)]
fn beside(out: &mut BytesMut, record: &Record<'_>) {
    match *record {
        Record::SessionState {
            entity,
            message_session,
            at,
            state,
        } => {
            head(out, SESSION_STATE, entity);
            slice(out, message_session.as_bytes());
            timestamp(out, at);
            optional(out, state);
        }
        Record::Rule { entity, name, rule } => {
            head(out, RULE, entity);
            slice(out, name.as_bytes());
            optional(out, rule);
        }
        Record::Job { entity, job, state } => {
            head(out, JOB, entity);
            varint(out, job.0);
            optional(out, state);
        }
        Record::Audit { number, entry } => {
            head(out, AUDIT, EntityId(0));
            varint(out, number);
            slice(out, entry);
        }
        Record::Seen { entity, at, key } => {
            head(out, SEEN, entity);
            timestamp(out, at);
            out.put_u128_le(key);
        }
        _ => {}
    }
}

fn passed(out: &mut BytesMut, kind: u8, passage: &Passage<'_>) {
    head(out, kind, passage.from);
    varint(out, passage.from_number.0);
    varint(out, u64::from(passage.to.0));
    varint(out, passage.number.0);
    times(out, passage.at, passage.time_to_live);
    varint(out, passage.enqueued_number.0);
    varint(out, u64::from(passage.delivery_count));
    out.put_u8(passage.hops);
    optional(out, passage.message_session.map(str::as_bytes));
    optional(out, passage.dead_letter_source.map(str::as_bytes));
    optional(out, passage.amendments);
}

fn alive(out: &mut BytesMut, record: &Record<'_>) {
    let &Record::Alive {
        entity,
        number,
        at,
        time_to_live,
        state,
        enqueued_number,
        delivery_count,
        hops,
        message_session,
        dead_letter_source,
        amendments,
        body,
        shared,
    } = record
    else {
        return;
    };
    head(out, ALIVE, entity);
    varint(out, number.0);
    times(out, at, time_to_live);
    stored_state(out, state);
    varint(out, enqueued_number.0);
    varint(out, u64::from(delivery_count));
    out.put_u8(hops);
    optional(out, message_session.map(str::as_bytes));
    optional(out, dead_letter_source.map(str::as_bytes));
    optional(out, amendments);
    varint(out, body.position);
    varint(out, u64::from(body.length));
    out.put_u8(u8::from(shared));
}

/// Returns the time that a record says it happened at.
pub(super) fn happened_at(record: &Record<'_>) -> Option<Timestamp> {
    match *record {
        Record::Enqueued { at, .. }
        | Record::Alive { at, .. }
        | Record::SessionState { at, .. }
        | Record::Seen { at, .. } => Some(at),
        Record::Moved(ref passage) | Record::Copied(ref passage) => Some(passage.at),
        Record::Entity { .. }
        | Record::EntityDeleted { .. }
        | Record::Removed { .. }
        | Record::Changed { .. }
        | Record::Relocated { .. }
        | Record::SameBody { .. }
        | Record::Rule { .. }
        | Record::Job { .. }
        | Record::Audit { .. }
        | Record::Counter { .. } => None,
    }
}

fn head(out: &mut BytesMut, kind: u8, entity: EntityId) {
    out.put_u8(kind);
    varint(out, u64::from(entity.0));
}

/// Seven bits at a time, the lowest first; the topmost bit says that more follow.
fn varint(out: &mut BytesMut, mut value: u64) {
    while 0x80 <= value {
        out.put_u8(u8::try_from(value & 0x7f).expect("seven bits fit") | 0x80);
        value >>= 7;
    }
    out.put_u8(u8::try_from(value).expect("seven bits fit"));
}

/// Zigzag, so that times before 1970 are short too: their sign is the lowest bit.
fn timestamp(out: &mut BytesMut, at: Timestamp) {
    let millis = at.as_millis();
    varint(out, ((millis << 1) ^ (millis >> 63)).cast_unsigned());
}

/// A time to live without end is 0, any other is one more than it is.
fn times(out: &mut BytesMut, at: Timestamp, time_to_live: Millis) {
    timestamp(out, at);
    if time_to_live == Millis::MAX {
        out.put_u8(0);
    } else {
        varint(out, time_to_live.as_millis().cast_unsigned() + 1);
    }
}

fn stored_state(out: &mut BytesMut, state: StoredState) {
    match state {
        StoredState::Active => out.put_u8(ACTIVE),
        StoredState::Deferred => out.put_u8(DEFERRED),
        StoredState::Scheduled { due } => {
            out.put_u8(SCHEDULED);
            timestamp(out, due);
        }
    }
}

fn slice(out: &mut BytesMut, bytes: &[u8]) -> Body {
    let length = u32::try_from(bytes.len()).expect("limits keep a message below 4 GiB");
    varint(out, u64::from(length));
    let offset = out.len();
    out.extend_from_slice(bytes);
    Body { offset, length }
}

/// A body, and its own checksum after it.
fn summed(out: &mut BytesMut, bytes: &[u8]) -> Body {
    let body = slice(out, bytes);
    out.put_u32_le(body_checksum(bytes));
    body
}

/// Nothing is 0, any length is one more than it is.
fn optional(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        None => out.put_u8(0),
        Some(bytes) => {
            let length = u64::try_from(bytes.len()).expect("a length fits");
            varint(out, length + 1);
            out.extend_from_slice(bytes);
        }
    }
}

/// Reads records one by one.
#[derive(Debug)]
pub(super) struct Decoder<'a> {
    whole: usize,
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            whole: bytes.len(),
            rest: bytes,
        }
    }

    /// Returns the next record, with the place of its body if it has one; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(Record<'a>, Option<Body>)>, MalformedRecord> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let kind = self.byte()?;
        let entity = self.entity()?;
        let mut found = None;
        let record = match kind {
            ENTITY => {
                let path = str::from_utf8(self.slice()?.0).map_err(|_| MalformedRecord)?;
                Record::Entity {
                    entity,
                    path,
                    description: self.slice()?.0,
                }
            }
            ENTITY_DELETED => Record::EntityDeleted { entity },
            ENQUEUED | ENQUEUED_AMENDED => {
                let (record, place) = self.enqueued(kind, entity)?;
                found = Some(place);
                record
            }
            REMOVED => Record::Removed {
                entity,
                number: self.number()?,
            },
            CHANGED => Record::Changed {
                entity,
                number: self.number()?,
                state: self.state()?,
                delivery_count: self.varint_u32()?,
                amendments: self.optional()?,
            },
            MOVED => Record::Moved(self.passage(entity)?),
            COPIED => Record::Copied(self.passage(entity)?),
            RELOCATED => {
                let number = self.number()?;
                let (body, place) = self.summed()?;
                found = Some(place);
                Record::Relocated {
                    entity,
                    number,
                    body,
                }
            }
            COUNTER => Record::Counter {
                entity,
                next: self.number()?,
            },
            ALIVE => self.alive(entity)?,
            _ => self.beside(kind, entity)?,
        };
        Ok(Some((record, found)))
    }

    fn enqueued(
        &mut self,
        kind: u8,
        entity: EntityId,
    ) -> Result<(Record<'a>, Body), MalformedRecord> {
        let number = self.number()?;
        let (at, time_to_live) = self.times()?;
        let (state, message_session) = (self.state()?, self.text()?);
        let duplicate_key = self.key()?;
        let amendments = match kind {
            ENQUEUED_AMENDED => Some(self.slice()?.0),
            _ => None,
        };
        let (body, place) = self.summed()?;
        let record = Record::Enqueued {
            entity,
            number,
            at,
            time_to_live,
            state,
            message_session,
            duplicate_key,
            amendments,
            body,
        };
        Ok((record, place))
    }

    fn beside(&mut self, kind: u8, entity: EntityId) -> Result<Record<'a>, MalformedRecord> {
        match kind {
            SAME_BODY => Ok(Record::SameBody {
                entity,
                number: self.number()?,
                of: self.entity()?,
                of_number: self.number()?,
            }),
            SESSION_STATE => Ok(Record::SessionState {
                entity,
                message_session: str::from_utf8(self.slice()?.0).map_err(|_| MalformedRecord)?,
                at: self.timestamp()?,
                state: self.optional()?,
            }),
            RULE => Ok(Record::Rule {
                entity,
                name: str::from_utf8(self.slice()?.0).map_err(|_| MalformedRecord)?,
                rule: self.optional()?,
            }),
            JOB => Ok(Record::Job {
                entity,
                job: JobId(self.varint()?),
                state: self.optional()?,
            }),
            AUDIT => Ok(Record::Audit {
                number: self.varint()?,
                entry: self.slice()?.0,
            }),
            SEEN => {
                let at = self.timestamp()?;
                let key = self.take(16)?.try_into().map_err(|_| MalformedRecord)?;
                let key = u128::from_le_bytes(key);
                Ok(Record::Seen { entity, at, key })
            }
            _ => Err(MalformedRecord),
        }
    }

    fn passage(&mut self, from: EntityId) -> Result<Passage<'a>, MalformedRecord> {
        let from_number = self.number()?;
        let (to, number) = (self.entity()?, self.number()?);
        let (at, time_to_live) = self.times()?;
        Ok(Passage {
            from,
            from_number,
            to,
            number,
            at,
            time_to_live,
            enqueued_number: self.number()?,
            delivery_count: self.varint_u32()?,
            hops: self.byte()?,
            message_session: self.text()?,
            dead_letter_source: self.text()?,
            amendments: self.optional()?,
        })
    }

    fn text(&mut self) -> Result<Option<&'a str>, MalformedRecord> {
        let bytes = self.optional()?;
        bytes
            .map(str::from_utf8)
            .transpose()
            .map_err(|_| MalformedRecord)
    }

    fn key(&mut self) -> Result<Option<u128>, MalformedRecord> {
        let Some(bytes) = self.optional()? else {
            return Ok(None);
        };
        let bytes = bytes.try_into().map_err(|_| MalformedRecord)?;
        Ok(Some(u128::from_le_bytes(bytes)))
    }

    fn alive(&mut self, entity: EntityId) -> Result<Record<'a>, MalformedRecord> {
        let number = self.number()?;
        let (at, time_to_live) = self.times()?;
        Ok(Record::Alive {
            entity,
            number,
            at,
            time_to_live,
            state: self.state()?,
            enqueued_number: self.number()?,
            delivery_count: self.varint_u32()?,
            hops: self.byte()?,
            message_session: self.text()?,
            dead_letter_source: self.text()?,
            amendments: self.optional()?,
            body: BodyRef {
                position: self.varint()?,
                length: self.varint_u32()?,
            },
            shared: self.byte()? != 0,
        })
    }

    fn byte(&mut self) -> Result<u8, MalformedRecord> {
        let (&byte, rest) = self.rest.split_first().ok_or(MalformedRecord)?;
        self.rest = rest;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, MalformedRecord> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && 1 < bits {
                return Err(MalformedRecord);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(MalformedRecord)
    }

    fn varint_u32(&mut self) -> Result<u32, MalformedRecord> {
        u32::try_from(self.varint()?).map_err(|_| MalformedRecord)
    }

    fn entity(&mut self) -> Result<EntityId, MalformedRecord> {
        self.varint_u32().map(EntityId)
    }

    fn number(&mut self) -> Result<SequenceNumber, MalformedRecord> {
        self.varint().map(SequenceNumber)
    }

    fn timestamp(&mut self) -> Result<Timestamp, MalformedRecord> {
        let value = self.varint()?;
        let millis = (value >> 1).cast_signed() ^ -(value & 1).cast_signed();
        Ok(Timestamp::from_millis(millis))
    }

    fn times(&mut self) -> Result<(Timestamp, Millis), MalformedRecord> {
        let at = self.timestamp()?;
        let time_to_live = match self.varint()?.checked_sub(1) {
            None => Millis::MAX,
            Some(millis) => {
                Millis::from_millis(i64::try_from(millis).map_err(|_| MalformedRecord)?)
            }
        };
        Ok((at, time_to_live))
    }

    fn state(&mut self) -> Result<StoredState, MalformedRecord> {
        match self.byte()? {
            ACTIVE => Ok(StoredState::Active),
            DEFERRED => Ok(StoredState::Deferred),
            SCHEDULED => Ok(StoredState::Scheduled {
                due: self.timestamp()?,
            }),
            _ => Err(MalformedRecord),
        }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], MalformedRecord> {
        let length = usize::try_from(length).map_err(|_| MalformedRecord)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(MalformedRecord)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn slice(&mut self) -> Result<(&'a [u8], Body), MalformedRecord> {
        let length = self.varint_u32()?;
        let offset = self.whole - self.rest.len();
        Ok((self.take(u64::from(length))?, Body { offset, length }))
    }

    /// The frame's checksum was right, so this one is.
    fn summed(&mut self) -> Result<(&'a [u8], Body), MalformedRecord> {
        let found = self.slice()?;
        self.take(u64_of(BODY_CHECKSUM))?;
        Ok(found)
    }

    fn optional(&mut self) -> Result<Option<&'a [u8]>, MalformedRecord> {
        match self.varint()?.checked_sub(1) {
            None => Ok(None),
            Some(length) => self.take(length).map(Some),
        }
    }
}
