//! One sending connection of a load.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use jitney_amqp::{Connection, Delivery, Event, IncomingDisposition, LinkId, Outcome, SettleMode};
use jitney_message::BATCH_FORMAT;

use crate::client::{Driver, Next};
use crate::clock::unix_micros;
use crate::encode::{self, Scheduled};
use crate::progress::{NOT_COUNTED, Progress};
use crate::report::histogram;

/// The output that a sender produces before the connection writes it to the socket.
const OUTPUT_BYTES_MAX: usize = 256 * 1024;

/// The shortest sleep of a sender. At higher rates it sends several messages after each sleep.
const SLEEP_MIN: Duration = Duration::from_micros(100);

/// The settings of a sender.
#[derive(Debug, Clone)]
pub(crate) struct SenderConfig {
    /// The number of messages; without it the sender sends until the load is stopped.
    pub(crate) messages: Option<u64>,
    /// The number of messages before those that are counted.
    pub(crate) warm_up: u64,
    /// The size of a body in bytes.
    pub(crate) size: usize,
    /// The number of messages in one transfer.
    pub(crate) batch: usize,
    /// The maximum number of unsettled messages.
    pub(crate) window: usize,
    pub(crate) schedule: Option<SendSchedule>,
    pub(crate) subject: Option<String>,
    /// The session ids of the messages, in turn.
    pub(crate) message_sessions: Vec<String>,
    pub(crate) enqueue_at: EnqueueAt,
}

/// The times at which transfers are due, for a load with a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendSchedule {
    /// The time from the start to the first transfer.
    pub(crate) offset: Duration,
    /// The time between two transfers.
    pub(crate) interval: Duration,
}

/// The time at which the broker enqueues a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnqueueAt {
    /// On arrival: the message is not scheduled.
    Arrival,
    /// Milliseconds after the message is sent.
    Delay(u64),
    /// Milliseconds since 1970.
    Time(u64),
}

/// An encoded message, and the offsets of the fields that differ between messages.
#[derive(Debug, Default)]
struct Template {
    bytes: Vec<u8>,
    /// The offsets of the stamps in bodies.
    stamps: Vec<usize>,
    /// The offsets of the scheduled enqueue times.
    enqueue_times: Vec<usize>,
}

/// Sends messages on the links of one connection, and counts those that the broker accepts.
pub(crate) struct Sender {
    progress: Arc<Progress>,
    config: SenderConfig,
    links: Vec<LinkId>,
    started: Option<Instant>,
    transfers: u64,
    messages: u64,
    finish_reported: bool,
    /// Messages accepted since the last report to `progress`.
    unreported: u64,
    /// The due times of the transfers from number `transfers - due.len()` on; none once accepted.
    due: VecDeque<Option<u64>>,
    /// The number of unsettled messages.
    unsettled: usize,
    /// The sections before the body, one template for each message session.
    heads: Vec<Template>,
    body: Template,
    pub(crate) latency: Histogram<u64>,
}

impl Sender {
    pub(crate) fn new(config: SenderConfig, links: Vec<LinkId>, progress: Arc<Progress>) -> Self {
        let scheduled = match config.enqueue_at {
            EnqueueAt::Arrival => Scheduled::No,
            EnqueueAt::Delay(_) | EnqueueAt::Time(_) => Scheduled::Yes,
        };
        let subject = config.subject.as_deref();
        let head = |session: Option<&str>| Template::head(scheduled, subject, session);
        let mut heads: Vec<_> = config
            .message_sessions
            .iter()
            .map(|id| head(Some(id)))
            .collect();
        if heads.is_empty() {
            heads.push(head(None));
        }
        let mut body = Template::default();
        body.append_message(&Template::default(), config.size);
        if config.batch > 1
            && let Some(head) = heads.first()
        {
            body = Template::batch(head, config.size, config.batch);
            heads = vec![Template::default()];
        }
        Self {
            progress,
            config,
            links,
            started: None,
            transfers: 0,
            messages: 0,
            finish_reported: false,
            unreported: 0,
            due: VecDeque::new(),
            unsettled: 0,
            heads,
            body,
            latency: histogram(),
        }
    }

    /// Returns the number of messages that are still to be sent.
    fn left(&self) -> u64 {
        if self.progress.is_stopped() {
            return 0;
        }
        let all = self.config.messages.unwrap_or(u64::MAX);
        all.saturating_sub(self.messages)
    }

    /// Returns the time at which the next transfer is due, if there is a schedule.
    fn next_due(&mut self) -> Option<Instant> {
        let started = *self.started.get_or_insert_with(Instant::now);
        let schedule = self.config.schedule?;
        let nanos = u64::try_from(schedule.interval.as_nanos()).unwrap_or(u64::MAX);
        let since_first = Duration::from_nanos(nanos.saturating_mul(self.transfers));
        Some(started + schedule.offset + since_first)
    }

    /// Returns the time to sleep until. At a high rate the sender does not wake for each message,
    /// because that would take CPU time from the broker.
    fn wake_at(&self, due: Instant, now: Instant) -> Instant {
        match self.config.schedule {
            Some(schedule) if schedule.interval < SLEEP_MIN => due.max(now + SLEEP_MIN),
            Some(_) | None => due,
        }
    }

    /// Sends the next transfer; returns false if the engine cannot take it now, for lack of credit.
    fn send(&mut self, engine: &mut Connection, stamp: u64) -> bool {
        let turn = usize::try_from(self.transfers).unwrap_or(usize::MAX);
        let Some(&link) = self.links.get(turn % self.links.len().max(1)) else {
            return false;
        };
        let heads = self.heads.len().max(1);
        let Some(head) = self.heads.get_mut(turn % heads) else {
            return false;
        };
        let enqueue_at = match self.config.enqueue_at {
            EnqueueAt::Arrival => None,
            EnqueueAt::Delay(millis) => Some(stamp / 1_000 + millis),
            EnqueueAt::Time(millis) => Some(millis),
        };
        // The receiver counts from the scheduled time, the sender from the time of sending.
        let (body_stamp, counted_from) = if self.messages < self.config.warm_up {
            (NOT_COUNTED, NOT_COUNTED)
        } else {
            (enqueue_at.map_or(stamp, |millis| millis * 1_000), stamp)
        };
        head.fill_in(body_stamp, enqueue_at);
        self.body.fill_in(body_stamp, enqueue_at);
        let mut tag = [0; 16];
        encode::overwrite(&mut tag, 0, self.transfers);
        let delivery = Delivery {
            tag,
            settle_mode: SettleMode::OnReceipt,
            message_format: if self.config.batch > 1 {
                BATCH_FORMAT
            } else {
                0
            },
            payload: &[&head.bytes, &self.body.bytes],
        };
        if engine.deliver(link, delivery).is_err() {
            return false;
        }
        self.due.push_back(Some(counted_from));
        self.transfers += 1;
        let batch = u64::try_from(self.config.batch).unwrap_or(1);
        self.messages += batch;
        self.unsettled += self.config.batch;
        true
    }

    /// Records that the broker accepted a transfer.
    fn accept(&mut self, number: u64) {
        let first = self.transfers - u64::try_from(self.due.len()).unwrap_or(0);
        let at = usize::try_from(number.wrapping_sub(first)).unwrap_or(usize::MAX);
        let Some(due) = self.due.get_mut(at).and_then(Option::take) else {
            return;
        };
        while let Some(None) = self.due.front() {
            self.due.pop_front();
        }
        self.unsettled -= self.config.batch;
        self.unreported += u64::try_from(self.config.batch).unwrap_or(1);
        if self.progress.is_counted(due) {
            self.latency
                .saturating_record(unix_micros().saturating_sub(due));
        }
    }
}

impl Driver for Sender {
    fn handle_event(&mut self, _: &mut Connection, event: Event) -> Result<(), String> {
        if let Event::Disposition(IncomingDisposition { outcome, tag, .. }) = event {
            if outcome != Outcome::Accepted {
                return Err(format!("a message was not accepted: {outcome:?}"));
            }
            let [a, b, c, d, e, f, g, h, ..] = tag;
            self.accept(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        }
        Ok(())
    }

    fn poll(&mut self, engine: &mut Connection) -> Next {
        if self.unreported > 0 {
            self.progress
                .add_accepted(std::mem::take(&mut self.unreported));
        }
        let mut bytes = 0;
        while self.left() > 0 {
            if self.config.window < self.unsettled + self.config.batch && self.unsettled > 0 {
                return Next::Event;
            }
            if OUTPUT_BYTES_MAX < engine.waiting_bytes() {
                return Next::Event;
            }
            if OUTPUT_BYTES_MAX < bytes {
                return Next::OutputWritten;
            }
            let next = self.next_due();
            let now = Instant::now();
            let late = match next {
                Some(at) if now < at => return Next::EventOrTime(self.wake_at(at, now)),
                Some(at) => now - at,
                None => Duration::ZERO,
            };
            // The stamp is the due time, not the actual time of sending.
            let late = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
            if !self.send(engine, unix_micros().saturating_sub(late)) {
                return Next::Event;
            }
            bytes += self.body.bytes.len();
        }
        if !self.finish_reported {
            self.finish_reported = true;
            self.progress.sender_finished(self.messages);
        }
        if self.unsettled == 0 {
            Next::Finished
        } else {
            Next::Event
        }
    }
}

impl Template {
    /// Encodes the sections before the body.
    fn head(scheduled: Scheduled, subject: Option<&str>, session: Option<&str>) -> Self {
        let mut head = Self::default();
        let time = encode::sections_before_body(&mut head.bytes, scheduled, subject, session);
        head.enqueue_times.extend(time);
        head
    }

    /// Encodes a batch of equal messages: each is the content of one data section.
    fn batch(head: &Self, size: usize, count: usize) -> Self {
        let mut message = Self::default();
        message.append_message(head, size);
        let mut batch = Self::default();
        for _ in 0..count {
            encode::data_section_head(&mut batch.bytes, message.bytes.len());
            batch.append(&message);
        }
        batch
    }

    /// Appends a message: the sections before the body, and a body of a size.
    fn append_message(&mut self, head: &Self, size: usize) {
        self.append(head);
        encode::data_section_head(&mut self.bytes, size);
        self.stamps.push(self.bytes.len());
        self.bytes.resize(self.bytes.len() + size, b'x');
    }

    /// Appends the bytes and the offsets of another template.
    fn append(&mut self, other: &Self) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        let moved = |offset: &usize| start + offset;
        self.stamps.extend(other.stamps.iter().map(moved));
        self.enqueue_times
            .extend(other.enqueue_times.iter().map(moved));
    }

    /// Writes the stamp and the scheduled enqueue time, in milliseconds since 1970.
    fn fill_in(&mut self, stamp: u64, enqueue_at: Option<u64>) {
        for &offset in &self.stamps {
            encode::overwrite(&mut self.bytes, offset, stamp);
        }
        for &offset in &self.enqueue_times {
            encode::overwrite(&mut self.bytes, offset, enqueue_at.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use jitney_message::{Message, split_batch};

    use super::*;

    #[test]
    fn each_message_of_a_batch_has_its_stamp_and_enqueue_time() {
        let head = Template::head(Scheduled::Yes, Some("a"), None);
        let mut batch = Template::batch(&head, 20, 3);
        batch.fill_in(77, Some(1_000));
        let messages = split_batch(&Bytes::from(batch.bytes)).unwrap();
        assert_eq!(messages.len(), 3);
        for message in messages {
            let body = message.slice(message.len() - 20..);
            assert_eq!(body.first_chunk(), Some(&77_u64.to_be_bytes()));
            let message = Message::parse(message).unwrap();
            let due = message.scheduled_enqueue_time().unwrap();
            assert_eq!(due.as_millis(), 1_000);
        }
    }
}
