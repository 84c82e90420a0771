//! Hostile peers of the protocol engine: it does not panic, its output is well formed, and neither memory
//! nor output exceeds the input.
//!
//! The corpus is the input of the dialogues; a seeded generator changes it. `SEED=42` plays one seed.

use std::ops::Range;

use bytes::BytesMut;

use jitney_amqp::codec;
use jitney_amqp::{
    Accept, Condition, Connection, Delivery, Event, IncomingDisposition, IncomingTransfer,
    LinkCredit, LinkId, LinkRole, Outcome, Refusal, SettleMode,
};
use jitney_base::time::{Millis, Timestamp};

use super::dialogue::{config, corpus};

/// Seeds of each test.
const SEEDS: Range<u64> = 0..6_000;

#[test]
fn changed_dialogues_break_no_invariant_of_the_engine() {
    let corpus = corpus();
    let before = memory_peak();
    for seed in seeds() {
        let mut dice = Dice(seed);
        let dialogue = &corpus[dice.below(corpus.len())];
        let other = &corpus[dice.below(corpus.len())];
        let mut victim = EngineUnderTest::new(dice.next());
        for piece in change_dialogue(&mut dice, dialogue, other) {
            victim.handle(&piece);
        }
        victim.leave();
    }
    assert_memory_within(before, 512);
}

/// A peer that need not even speak AMQP.
#[test]
fn noise_before_an_open_breaks_no_invariant_of_the_engine() {
    let corpus = corpus();
    let before = memory_peak();
    for seed in seeds() {
        let mut dice = Dice(seed ^ 0x5eed);
        let mut victim = EngineUnderTest::new(dice.next());
        let header: &[u8] = match dice.below(3) {
            0 => b"AMQP\x03\x01\x00\x00",
            1 => b"AMQP\x00\x01\x00\x00",
            _ => b"",
        };
        victim.handle(header);
        let mut heard = 0;
        for _ in 0..dice.below(200) {
            let dialogue = &corpus[dice.below(corpus.len())];
            let mut piece = dialogue[dice.below(dialogue.len())].clone();
            // Neither an open nor an init: the connection stays in its phase.
            if piece.get(9) == Some(&0x53) && matches!(piece.get(10), Some(0x10 | 0x41)) {
                piece = (0..dice.below(64)).map(|_| dice.byte()).collect();
            }
            heard += piece.len();
            victim.handle(&piece);
            assert!(
                victim.written < 4_096,
                "{} bytes for {heard}",
                victim.written
            );
        }
        victim.leave();
    }
    assert_memory_within(before, 256);
}

/// A value that passes the check of its shape is decoded or refused in a time that its length bounds.
#[test]
fn changed_values_are_decoded_or_refused() {
    let corpus: Vec<Vec<u8>> = corpus().into_iter().flatten().collect();
    let before = memory_peak();
    let mut passed = 0;
    for seed in seeds() {
        let mut dice = Dice(seed ^ 0xda7a);
        let frame = &corpus[dice.below(corpus.len())];
        let mut value = frame.get(8..).unwrap_or_default().to_vec();
        for _ in 0..=dice.below(4) {
            mutate(
                &mut dice,
                &mut value,
                b"\xf0\x00\x00\x00\x09\xff\xff\xff\xff\xd1",
            );
        }
        if let Ok(length) = codec::value_length(&value) {
            passed += 1;
            let _ = serde_amqp::from_slice::<serde_amqp::Value>(&value[..length]);
        }
    }
    assert!(passed > 500, "only {passed} were values at all");
    assert_memory_within(before, 256);
}

/// The engine, and an owner that answers at random times.
struct EngineUnderTest {
    engine: Connection,
    dice: Dice,
    now: Timestamp,
    input: BytesMut,
    /// Bytes of output so far.
    written: usize,
    links: Vec<LinkId>,
    closed: bool,
}

impl EngineUnderTest {
    fn new(seed: u64) -> Self {
        let now = Timestamp::EPOCH;
        let engine = Connection::server(config(), now);
        let input = BytesMut::new();
        let (dice, written, links, closed) = (Dice(seed), 0, Vec::new(), false);
        Self {
            engine,
            dice,
            now,
            input,
            written,
            links,
            closed,
        }
    }

    /// Handles bytes in one read or in two, then events and timers.
    fn handle(&mut self, bytes: &[u8]) {
        let cut = if self.dice.below(4) == 0 {
            self.dice.below(bytes.len() + 1)
        } else {
            0
        };
        let (first, second) = bytes.split_at(cut);
        for part in [first, second] {
            self.input.extend_from_slice(part);
            self.engine.handle_bytes(self.now, &mut self.input);
            self.react();
        }
        // An incomplete frame is all that may stay behind.
        let left = usize::try_from(config().frame_size_max).expect("a size") + 8;
        assert!(
            self.input.len() <= left + bytes.len(),
            "{} bytes unread",
            self.input.len()
        );
        if self.dice.below(20) == 0 {
            self.pass();
        }
    }

    fn react(&mut self) {
        let mut events = 0;
        while let Some(event) = self.engine.poll_event() {
            assert!(!self.closed, "{event:?} after the end");
            self.take(event);
            events += 1;
            assert!(events < 10_000, "no end of events");
        }
        if self.dice.below(30) == 0 && !self.links.is_empty() {
            let link = self.links[self.dice.below(self.links.len())];
            self.engine.detach(link, Some(refusal()));
        }
        if self.dice.below(200) == 0 {
            self.engine.close(self.now, Some(refusal()));
        }
        self.check_output();
    }

    fn take(&mut self, event: Event) {
        let engine = &mut self.engine;
        match event {
            Event::Authenticating { .. } => match self.dice.below(4) {
                0 => engine.refuse_authentication(),
                _ => engine.authenticated(),
            },
            Event::AttachRequested(link, attach) => {
                self.links.push(link);
                match self.dice.below(4) {
                    0 => engine.refuse_link(link, refusal()),
                    // Some are left without an answer.
                    1 => {}
                    _ => engine.accept_link(
                        link,
                        Accept {
                            message_size_max: 1_000,
                            properties: attach.properties,
                            credit: if attach.role == LinkRole::Incoming {
                                10
                            } else {
                                0
                            },
                            ..Accept::default()
                        },
                    ),
                }
            }
            Event::Transfer(IncomingTransfer {
                link,
                delivery,
                settled,
                payload,
                ..
            }) => {
                assert!(payload.len() <= 65_536);
                if self.dice.below(2) == 0 {
                    if settled {
                        engine.return_credit(link);
                    } else {
                        engine.settle_incoming(link, delivery, &Outcome::Accepted);
                    }
                }
            }
            Event::Credit(LinkCredit { link, limit, drain }) => {
                for _ in 0..self.dice.below(4) {
                    let delivery = Delivery {
                        tag: [1; 16],
                        settle_mode: SettleMode::OnReceipt,
                        message_format: 0,
                        payload: &[&[7; 600]],
                    };
                    let _ = engine.deliver(link, delivery);
                }
                if drain {
                    engine.drained(link, limit);
                }
            }
            Event::Disposition(IncomingDisposition {
                link,
                delivery,
                settled,
                outcome,
                ..
            }) => {
                if !settled && self.dice.below(4) > 0 {
                    engine.settle_outgoing(link, delivery, &outcome);
                }
            }
            Event::Closed { .. } => self.closed = true,
            Event::AttachAnswered(..)
            | Event::Detached { .. }
            | Event::Opened { .. }
            | Event::RefusedInTransaction { .. }
            | Event::Unsent { .. } => {}
        }
    }

    /// Reads what the engine says as a strict peer would.
    fn check_output(&mut self) {
        let output = crate::rig::said_by(&mut self.engine, self.now);
        self.written += output.len();
        let mut rest = &output[..];
        while !rest.is_empty() {
            let head: [u8; 8] = rest[..8].try_into().expect("eight bytes");
            if head.starts_with(b"AMQP") {
                rest = &rest[8..];
                continue;
            }
            let size = usize::try_from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
            let (frame, after) = rest.split_at(size.expect("a size"));
            rest = after;
            assert!(
                frame.len() <= 65_536 && head[4] == 2 && head[5] < 2,
                "{head:x?}"
            );
            if frame.len() > 8 {
                let length = codec::value_length(&frame[8..]).expect("a well-formed frame");
                let is_transfer = frame[10] == 0x14;
                assert!(
                    is_transfer || length + 8 == frame.len(),
                    "bytes behind a performative"
                );
            }
        }
    }

    /// Lets some time pass, and each timer do its work once.
    fn pass(&mut self) {
        let end = self.now.after(Millis::from_millis(20_000));
        let mut timers = 0;
        while let Some(due) = self.engine.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.engine.handle_timeout(self.now);
            let next = self.engine.poll_timeout();
            assert!(
                next.is_none_or(|next| self.now < next),
                "a timer that is never done"
            );
            self.check_output();
            timers += 1;
            assert!(timers < 1_000, "too many timers");
        }
        self.now = end;
    }

    fn leave(mut self) {
        self.engine.handle_eof(self.now);
        self.react();
        assert!(
            self.engine.is_finished() && self.closed,
            "an end without an end"
        );
        assert_eq!(self.engine.poll_timeout(), None);
        // Late commands find nothing.
        for link in self.links.clone() {
            self.engine.detach(link, None);
            self.engine.accept_link(link, Accept::default());
        }
        assert!(crate::rig::said_by(&mut self.engine, self.now).is_empty());
    }
}

fn refusal() -> Refusal {
    Refusal {
        condition: Condition::NotAllowed,
        description: "no".to_owned(),
    }
}

/// Changes a dialogue: lines left out, doubled, out of order, of another dialogue, mutated.
fn change_dialogue(dice: &mut Dice, dialogue: &[Vec<u8>], other: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut bent = Vec::new();
    for piece in dialogue {
        let mut piece = piece.clone();
        match dice.below(16) {
            0 => continue,
            1 => bent.push(piece.clone()),
            2 => bent.push(other[dice.below(other.len())].clone()),
            3 => {
                let at = dice.below(bent.len() + 1);
                bent.insert(at, piece.clone());
            }
            4 | 5 => {
                let donor = &other[dice.below(other.len())];
                mutate(dice, &mut piece, donor);
            }
            6..=8 if piece.len() > 8 => {
                // Within the frame, whose size is put right again: this gets deeper.
                let donor = other[dice.below(other.len())].get(8..).unwrap_or_default();
                let mut body = piece.split_off(8);
                mutate(dice, &mut body, donor);
                piece.extend(body);
                let size = u32::try_from(piece.len()).expect("small").to_be_bytes();
                piece[..4].copy_from_slice(&size);
            }
            _ => {}
        }
        bent.push(piece);
    }
    bent
}

/// Changes bytes, cuts, doubles or fills in some.
fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>, donor: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let at = dice.below(bytes.len());
    let length = dice.below(bytes.len() - at + 1).min(1 + dice.below(12));
    match dice.below(7) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[at] = dice.byte(),
        2 => bytes[at] = [0, 0x40, 0x7f, 0x80, 0xff, 0xd0, 0xf0][dice.below(7)],
        3 => drop(bytes.drain(at..at + length)),
        4 => {
            let piece = bytes[at..at + length].to_vec();
            bytes.splice(at..at, piece);
        }
        5 => bytes[at..at + length].fill([0, 0xff][dice.below(2)]),
        _ => {
            let from = dice.below(donor.len() + 1);
            let to = from + dice.below(donor.len() - from + 1);
            bytes.splice(at..at + length, donor[from..to].iter().copied());
        }
    }
}

fn seeds() -> Range<u64> {
    match std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
    {
        Some(seed) => seed..seed + 1,
        None => SEEDS,
    }
}

/// The largest size of this process's address space so far, MiB; 0 if it is unknown.
fn memory_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Other tests run beside this one, so the limit is wide; a length that is believed is wider.
fn assert_memory_within(before: u64, mib: u64) {
    let grown = memory_peak().saturating_sub(before);
    assert!(grown < mib, "{grown} MiB more");
}

/// `SplitMix64`: the same numbers for the same seed, for ever.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).expect("small");
        usize::try_from(self.next() % end).expect("small")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
