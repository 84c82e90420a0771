//! One sending connection of a load.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::client::{Turn, Work};
use super::encode::{self, Scheduled, unix_micros};
use super::progress::{NOT_COUNTED, Progress};
use super::report::histogram;
use crate::amqp::{Connection, Delivery, Event, LinkId, Outcome, SettleMode};
use crate::message::BATCH_FORMAT;

/// Bytes at a body's begin that say when the message was due, microseconds since 1970.
pub(super) const STAMP_BYTES: usize = 8;
/// Bytes that are handed to the connection before it writes: more would only wait there.
const QUEUE_BYTES: usize = 256 * 1024;

/// How long a sender sleeps at least between messages that are due more often than that.
const GRAIN: Duration = Duration::from_micros(100);

/// What is sent, and when.
#[derive(Debug, Clone)]
pub(super) struct Sending {
    /// Messages; none goes on until the time is up.
    pub(super) messages: Option<u64>,
    /// The first of them, whose latency does not count.
    pub(super) warm_up: u64,
    pub(super) size: usize,
    /// Messages in one transfer.
    pub(super) batch: usize,
    /// Unsettled messages at most.
    pub(super) window: usize,
    /// Between two messages, and how long after the begin the first is due.
    pub(super) rate: Option<(Duration, Duration)>,
    pub(super) subject: Option<String>,
    /// The message sessions, in turn.
    pub(super) message_sessions: Vec<String>,
    pub(super) due: Due,
}

/// When messages are to be enqueued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    AtOnce,
    /// So many milliseconds after they were sent.
    In(u64),
    /// Milliseconds since 1970.
    At(u64),
}

/// Bytes, and the places in them that change from message to message.
#[derive(Debug, Default)]
struct Template {
    bytes: Vec<u8>,
    stamps: Vec<usize>,
    dues: Vec<usize>,
}

/// Sends, and counts what is accepted.
pub(super) struct Sender {
    progress: Arc<Progress>,
    sending: Sending,
    links: Vec<LinkId>,
    began: Option<Instant>,
    /// Transfers made.
    made: u64,
    sent: u64,
    told: bool,
    /// Accepted since the others were told.
    accepted: u64,
    /// When the transfers from `made - due.len()` on were due; none once accepted.
    due: VecDeque<Option<u64>>,
    unsettled: usize,
    heads: Vec<Template>,
    body: Template,
    pub(super) latency: Histogram<u64>,
}

impl Sender {
    pub(super) fn new(sending: Sending, links: Vec<LinkId>, progress: Arc<Progress>) -> Self {
        let scheduled = match sending.due {
            Due::AtOnce => Scheduled::No,
            Due::In(_) | Due::At(_) => Scheduled::Yes,
        };
        let subject = sending.subject.as_deref();
        let head = |session: Option<&str>| {
            let mut head = Template::default();
            let due = encode::head(&mut head.bytes, scheduled, subject, session);
            head.dues.extend(due);
            head
        };
        let mut heads: Vec<_> = sending
            .message_sessions
            .iter()
            .map(|id| head(Some(id)))
            .collect();
        if heads.is_empty() {
            heads.push(head(None));
        }
        let mut body = Template::default();
        body.append(&Template::default(), sending.size);
        if sending.batch > 1
            && let Some(head) = heads.first()
        {
            body = Template::default();
            for _ in 0..sending.batch {
                let mut message = Template::default();
                message.append(head, sending.size);
                encode::data_head(&mut body.bytes, message.bytes.len());
                body.embed(&message);
            }
            heads = vec![Template::default()];
        }
        Self {
            progress,
            sending,
            links,
            began: None,
            made: 0,
            sent: 0,
            told: false,
            accepted: 0,
            due: VecDeque::new(),
            unsettled: 0,
            heads,
            body,
            latency: histogram(),
        }
    }

    /// Returns how many messages are to go still.
    fn left(&self) -> u64 {
        if self.progress.is_over() {
            return 0;
        }
        let all = self.sending.messages.unwrap_or(u64::MAX);
        all.saturating_sub(self.sent)
    }

    /// Returns when the next transfer is due, if there is a rate.
    fn next_at(&mut self) -> Option<Instant> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let (interval, first) = self.sending.rate?;
        let nanos = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Some(began + first + Duration::from_nanos(nanos.saturating_mul(self.made)))
    }

    /// Returns when to look again: at a fast pace not for each message, for that would take the
    /// machine from the broker.
    fn awake_at(&self, at: Instant, now: Instant) -> Instant {
        match self.sending.rate {
            Some((interval, _)) if interval < GRAIN => at.max(now + GRAIN),
            Some(_) | None => at,
        }
    }

    /// Makes the next message; returns whether the connection took it.
    fn send(&mut self, engine: &mut Connection, stamp: u64) -> bool {
        let turn = usize::try_from(self.made).unwrap_or(usize::MAX);
        let Some(&link) = self.links.get(turn % self.links.len().max(1)) else {
            return false;
        };
        let heads = self.heads.len().max(1);
        let Some(head) = self.heads.get_mut(turn % heads) else {
            return false;
        };
        let due = match self.sending.due {
            Due::AtOnce => None,
            Due::In(millis) => Some(stamp / 1_000 + millis),
            Due::At(millis) => Some(millis),
        };
        // Of a scheduled message the delay counts that the broker adds.
        let shown = if self.sent < self.sending.warm_up {
            NOT_COUNTED
        } else {
            due.map_or(stamp, |due| due * 1_000)
        };
        let counted = if shown == NOT_COUNTED {
            NOT_COUNTED
        } else {
            stamp
        };
        head.write(shown, due);
        self.body.write(shown, due);
        let mut tag = [0; 16];
        encode::patch(&mut tag, 0, self.made);
        let delivery = Delivery {
            tag,
            settle_mode: SettleMode::OnReceipt,
            message_format: if self.sending.batch > 1 {
                BATCH_FORMAT
            } else {
                0
            },
            payload: &[&head.bytes, &self.body.bytes],
        };
        if engine.deliver(link, delivery).is_err() {
            return false;
        }
        self.due.push_back(Some(counted));
        self.made += 1;
        let batch = u64::try_from(self.sending.batch).unwrap_or(1);
        self.sent += batch;
        self.unsettled += self.sending.batch;
        true
    }

    /// Takes a transfer off that the broker has accepted.
    fn settle(&mut self, number: u64) {
        let first = self.made - u64::try_from(self.due.len()).unwrap_or(0);
        let at = usize::try_from(number.wrapping_sub(first)).unwrap_or(usize::MAX);
        let Some(due) = self.due.get_mut(at).and_then(Option::take) else {
            return;
        };
        while let Some(None) = self.due.front() {
            self.due.pop_front();
        }
        self.unsettled -= self.sending.batch;
        self.accepted += u64::try_from(self.sending.batch).unwrap_or(1);
        if self.progress.counts(due) {
            self.latency
                .saturating_record(unix_micros().saturating_sub(due));
        }
    }
}

impl Work for Sender {
    fn handle(&mut self, _: &mut Connection, event: Event) -> Result<(), String> {
        if let Event::Disposition { outcome, tag, .. } = event {
            if outcome != Outcome::Accepted {
                return Err(format!("a message was not accepted: {outcome:?}"));
            }
            let [a, b, c, d, e, f, g, h, ..] = tag;
            self.settle(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        }
        Ok(())
    }

    fn turn(&mut self, engine: &mut Connection) -> Turn {
        if self.accepted > 0 {
            self.progress.accepted(std::mem::take(&mut self.accepted));
        }
        let mut bytes = 0;
        while self.left() > 0 {
            if self.sending.window < self.unsettled + self.sending.batch && self.unsettled > 0 {
                return Turn::Wait;
            }
            if QUEUE_BYTES < engine.waiting_bytes() {
                return Turn::Wait;
            }
            if QUEUE_BYTES < bytes {
                return Turn::Again;
            }
            let next = self.next_at();
            let now = Instant::now();
            let late = match next {
                Some(at) if now < at => return Turn::Until(self.awake_at(at, now)),
                Some(at) => now - at,
                None => Duration::ZERO,
            };
            // When it was to be sent, and not when there was time for it.
            let late = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
            if !self.send(engine, unix_micros().saturating_sub(late)) {
                return Turn::Wait;
            }
            bytes += self.body.bytes.len();
        }
        if !self.told {
            self.told = true;
            self.progress.sent(self.sent);
        }
        if self.unsettled == 0 {
            Turn::Done
        } else {
            Turn::Wait
        }
    }
}

impl Template {
    /// Appends a message: a head, and a body of a size.
    fn append(&mut self, head: &Self, size: usize) {
        self.embed(head);
        encode::data_head(&mut self.bytes, size);
        self.stamps.push(self.bytes.len());
        self.bytes.resize(self.bytes.len() + size, b'x');
    }

    /// Appends another with its places.
    fn embed(&mut self, other: &Self) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&other.bytes);
        self.stamps
            .extend(other.stamps.iter().map(|stamp| at + stamp));
        self.dues.extend(other.dues.iter().map(|due| at + due));
    }

    fn write(&mut self, stamp: u64, due: Option<u64>) {
        for &at in &self.stamps {
            encode::patch(&mut self.bytes, at, stamp);
        }
        for &at in &self.dues {
            encode::patch(&mut self.bytes, at, due.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::message::{Message, split_batch};

    #[test]
    fn a_batch_holds_messages_each_with_its_stamp_and_time() {
        let mut head = Template::default();
        let due = encode::head(&mut head.bytes, Scheduled::Yes, Some("a"), None);
        head.dues.extend(due);
        let mut batch = Template::default();
        for _ in 0..3 {
            let mut message = Template::default();
            message.append(&head, 20);
            encode::data_head(&mut batch.bytes, message.bytes.len());
            batch.embed(&message);
        }
        batch.write(77, Some(1_000));
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
