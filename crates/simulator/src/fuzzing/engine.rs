//! The server's end of an AMQP connection, with a hostile peer and an application that answers its
//! requests.

use bytes::{Buf, BytesMut};

use super::{SEPARATOR, parts};
use jitney_amqp::codec;
use jitney_amqp::{
    Accept, Condition, Config, Connection, Delivery, DeliveryId, Event, Identity,
    IncomingDisposition, IncomingTransfer, LinkCredit, LinkId, LinkRole, Outcome, Refusal,
    SettleMode,
};
use jitney_base::time::{Millis, Timestamp};

/// The largest frame, bytes.
const FRAME: u32 = 4_096;
/// Events that one read may cause at most.
const EVENTS_MAX: usize = 20_000;
/// Timers that may be due in [`PAUSE`] at most.
const TIMERS_MAX: usize = 1_000;
/// How long a pause is.
const PAUSE: Millis = Millis::from_secs(100);
/// Messages that the application keeps ready for each receiver.
const MESSAGES: u32 = 8;

/// The kind of a part of an input, by its first byte's last three bits.
const FRAME_ON_CHANNEL_0: u8 = 0;
const FRAME_ON_CHANNEL: u8 = 1;
const SASL_FRAME: u8 = 2;
const BYTES: u8 = 3;
const WAIT: u8 = 4;
const DETACH: u8 = 5;
const SETTLE: u8 = 6;

/// Returns the input that feeds these bytes to a new engine.
#[must_use]
pub fn input<'a>(said: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut input = vec![Manner::PLAIN, 0];
    for bytes in said {
        input.extend_from_slice(&SEPARATOR);
        input.push(BYTES);
        input.extend_from_slice(bytes);
    }
    input
}

/// Plays an input. Its first part selects the connection's state and the application's behaviour
/// ([`Manner`]); each further one is input of the peer, or an action of the application.
pub(super) fn run(input: &[u8]) {
    let parts = parts(input);
    let mut parts = parts.into_iter();
    let head = parts.next().unwrap_or_default();
    let manner = Manner(head.first().copied().unwrap_or_default());
    let stage = head.get(1).copied().unwrap_or_default() % 5;
    let mut victim = Victim::new(manner);
    victim.prepare(stage);
    for part in parts {
        victim.take(part);
    }
    victim.leave();
}

/// The application's behaviour, in bits.
#[derive(Debug, Clone, Copy)]
struct Manner(u8);

impl Manner {
    /// It answers every request at once.
    const PLAIN: u8 = 0;

    const fn refuses_second_link(self) -> bool {
        self.0 & 1 != 0
    }

    const fn settles_later(self) -> bool {
        self.0 & 2 != 0
    }

    const fn sends_settled(self) -> bool {
        self.0 & 4 != 0
    }

    const fn sends_large(self) -> bool {
        self.0 & 8 != 0
    }

    const fn refuses_peer(self) -> bool {
        self.0 & 16 != 0
    }

    const fn is_wary(self) -> bool {
        self.0 & 32 != 0
    }

    const fn keeps_partial_little(self) -> bool {
        self.0 & 64 != 0
    }
}

/// The engine as the broker sets it up, but for small numbers, which more inputs reach.
fn config(identity: Identity) -> Config {
    Config {
        frame_size_max: FRAME,
        channel_max: 9,
        handle_max: 7,
        identity,
        ..Config::server("jitney")
    }
}

fn refusal() -> Refusal {
    Refusal {
        condition: Condition::NotAllowed,
        description: "no".to_owned(),
    }
}

/// The engine, its application, and the model of both.
struct Victim {
    manner: Manner,
    now: Timestamp,
    engine: Connection,
    unread: BytesMut,
    /// Output of the engine that was not taken yet.
    said: BytesMut,
    links: Vec<LinkId>,
    incoming: Vec<(LinkId, DeliveryId, bool)>,
    outgoing: Vec<(LinkId, DeliveryId)>,
    closed: bool,
    spoke_last: bool,
}

impl Victim {
    fn new(manner: Manner) -> Self {
        let now = Timestamp::EPOCH;
        let config = Config {
            trusts_peer: !manner.is_wary(),
            ..config(Identity::Unnamed)
        };
        let mut engine = Connection::server(config, now);
        if manner.keeps_partial_little() {
            engine.set_partial_room(1_000);
        }
        Self {
            manner,
            now,
            engine,
            unread: BytesMut::new(),
            said: BytesMut::new(),
            links: Vec::new(),
            incoming: Vec::new(),
            outgoing: Vec::new(),
            closed: false,
            spoke_last: false,
        }
    }

    /// Lets a correct client talk to the engine up to a stage: 1 has a session, 2 also a link on
    /// which the peer sends, 3 also one with credit on which it receives, 4 has sent a message and
    /// received some.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "other events need no reaction of this client"
    )]
    fn prepare(&mut self, stage: u8) {
        if stage == 0 {
            return;
        }
        let mut client = Connection::client(config(Identity::Anonymous), self.now);
        let mut session = None;
        for _ in 0..12 {
            let mut bytes = BytesMut::new();
            client.take_output(self.now, &mut bytes);
            self.feed(&bytes);
            client.handle_bytes(self.now, &mut self.said);
            while let Some(event) = client.poll_event() {
                match event {
                    Event::Opened { .. } => {
                        session = client.begin();
                        let (Some(session), true) = (session, 2 <= stage) else {
                            continue;
                        };
                        let mode = SettleMode::OnReceipt;
                        client.attach(session, "s", LinkRole::Outgoing, "queue", mode);
                        if 3 <= stage {
                            client.attach(session, "r", LinkRole::Incoming, "queue", mode);
                        }
                    }
                    Event::AttachAnswered(link, attach) if attach.role == LinkRole::Incoming => {
                        client.grant_credit(link, 5);
                    }
                    Event::Credit(LinkCredit { link, .. }) if stage == 4 => {
                        let delivery = Delivery {
                            tag: [1; 16],
                            settle_mode: SettleMode::OnReceipt,
                            message_format: 0,
                            payload: &[b"\x00\x53\x75\xa0\x02hi"],
                        };
                        let _ = client.deliver(link, delivery);
                    }
                    _ => {}
                }
            }
        }
        assert!(
            session.is_some() || self.manner.refuses_peer() || self.manner.is_wary(),
            "a client in order gets no session"
        );
        self.said.clear();
    }

    fn take(&mut self, part: &[u8]) {
        let Some((&kind, rest)) = part.split_first() else {
            return;
        };
        let count = usize::from(kind >> 3);
        match kind & 7 {
            FRAME_ON_CHANNEL_0 => self.hear_frame(0, 0, rest),
            FRAME_ON_CHANNEL => {
                let (channel, rest) = rest.split_first().unwrap_or((&0, &[]));
                self.hear_frame(0, *channel, rest);
            }
            SASL_FRAME => self.hear_frame(1, 0, rest),
            BYTES => {
                // In pieces, as they may come.
                let (first, second) = rest.split_at(rest.len().min(count));
                self.feed(first);
                self.feed(second);
            }
            WAIT => self.wait(),
            DETACH => {
                if let Some(link) = self.links.get(count).copied() {
                    self.engine.detach(link, Some(refusal()));
                    self.react();
                }
            }
            SETTLE => self.settle_kept(count),
            _ => {
                self.engine.go_on();
                self.react();
            }
        }
        self.said.clear();
    }

    fn hear_frame(&mut self, kind: u8, channel: u8, body: &[u8]) {
        let length = u32::try_from(body.len() + 8).unwrap_or(u32::MAX);
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(&[2, kind, 0, channel]);
        frame.extend_from_slice(body);
        self.feed(&frame);
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        self.engine.handle_bytes(self.now, &mut self.unread);
        self.react();
        // The peer may have been authenticated meanwhile.
        self.engine.handle_bytes(self.now, &mut self.unread);
        self.react();
        let max = usize::try_from(FRAME).unwrap_or(usize::MAX) + bytes.len();
        assert!(
            self.unread.len() <= max,
            "{} bytes are not read",
            self.unread.len()
        );
    }

    fn react(&mut self) {
        let mut events = 0;
        while let Some(event) = self.engine.poll_event() {
            assert!(!self.closed, "{event:?} after the end");
            events += 1;
            assert!(events < EVENTS_MAX, "no end of events");
            self.answer(event);
        }
        while self.engine.has_more() {
            let before = self.said.len();
            self.engine.go_on();
            self.check_output();
            assert!(
                before < self.said.len() || !self.engine.has_more(),
                "it has more to say and says nothing"
            );
        }
        self.check_output();
    }

    fn answer(&mut self, event: Event) {
        match event {
            Event::Authenticating { .. } => {
                if self.manner.refuses_peer() {
                    self.engine.refuse_authentication();
                } else {
                    self.engine.authenticated();
                }
            }
            Event::AttachRequested(link, attach) => self.admit(link, attach.role),
            Event::Transfer(IncomingTransfer {
                link,
                delivery,
                settled,
                ..
            }) => {
                self.incoming.push((link, delivery, settled));
                if !self.manner.settles_later() {
                    self.settle_kept(self.incoming.len() + self.outgoing.len());
                }
            }
            Event::Credit(LinkCredit { link, limit, drain }) => {
                self.send(link);
                if drain {
                    self.engine.drained(link, limit);
                }
            }
            Event::Disposition(IncomingDisposition {
                link,
                delivery,
                settled,
                ..
            }) => {
                if !settled {
                    self.outgoing.push((link, delivery));
                }
                if !self.manner.settles_later() {
                    self.settle_kept(self.incoming.len() + self.outgoing.len());
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

    fn admit(&mut self, link: LinkId, role: LinkRole) {
        self.links.push(link);
        if self.manner.refuses_second_link() && self.links.len().is_multiple_of(2) {
            return self.engine.refuse_link(link, refusal());
        }
        let credit = match role {
            LinkRole::Incoming => 10,
            LinkRole::Outgoing => 0,
        };
        let accept = Accept {
            message_size_max: 10_000,
            credit,
            ..Accept::default()
        };
        self.engine.accept_link(link, accept);
    }

    /// Sends messages within a receiver's credit, and some beyond it, which the engine must refuse.
    fn send(&mut self, link: LinkId) {
        let large = vec![7; 3 * usize::try_from(FRAME).unwrap_or_default()];
        let payload: &[u8] = if self.manner.sends_large() {
            &large
        } else {
            &[7; 60]
        };
        for _ in 0..MESSAGES {
            let delivery = Delivery {
                tag: [1; 16],
                settle_mode: if self.manner.sends_settled() {
                    SettleMode::OnSend
                } else {
                    SettleMode::OnReceipt
                },
                message_format: 0,
                payload: &[payload],
            };
            if self.engine.deliver(link, delivery).is_err() {
                break;
            }
        }
    }

    /// Settles a number of the unsettled deliveries, the newest first.
    fn settle_kept(&mut self, count: usize) {
        for _ in 0..=count {
            if let Some((link, delivery, settled)) = self.incoming.pop() {
                if settled {
                    self.engine.return_credit(link);
                } else {
                    self.engine
                        .settle_incoming(link, delivery, &Outcome::Accepted);
                }
            }
            if let Some((link, delivery)) = self.outgoing.pop() {
                self.engine
                    .settle_outgoing(link, delivery, &Outcome::Accepted);
            }
        }
        self.check_output();
    }

    /// Lets time pass, and each timer do its work once.
    fn wait(&mut self) {
        let end = self.now.after(PAUSE);
        let mut timers = 0;
        while let Some(due) = self.engine.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.engine.handle_timeout(self.now);
            self.react();
            let next = self.engine.poll_timeout();
            assert!(
                next.is_none_or(|next| self.now < next),
                "a timer is never done"
            );
            timers += 1;
            assert!(timers < TIMERS_MAX, "no end of timers");
        }
        self.now = end;
    }

    /// Reads the engine's output as a strict peer does.
    fn check_output(&mut self) {
        let mut output = BytesMut::new();
        self.engine.take_output(self.now, &mut output);
        assert!(
            output.is_empty() || !self.spoke_last,
            "it sends after its close"
        );
        self.said.extend_from_slice(&output);
        while let Some(head) = output.first_chunk::<8>().copied() {
            let [a, b, c, d, offset, kind, ..] = head;
            if [a, b, c, d] == *b"AMQP" {
                output.advance(8);
                continue;
            }
            let size = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
            assert!(
                8 <= size && size <= output.len() && offset == 2 && kind < 2,
                "no frame begins with {head:x?}"
            );
            check_frame(&output.split_to(size));
        }
        assert!(output.is_empty(), "half a frame is said");
        self.spoke_last = self.closed && self.engine.is_finished();
    }

    /// The connection is cut: late commands have no effect.
    fn leave(mut self) {
        self.engine.handle_eof(self.now);
        self.react();
        assert!(
            self.engine.is_finished() && self.closed,
            "an end without an end"
        );
        assert_eq!(self.engine.poll_timeout(), None, "a timer after the end");
        assert_eq!(self.engine.partial_bytes(), 0, "kept after the end");
        assert_eq!(self.engine.waiting_bytes(), 0, "it waits after the end");
        self.settle_kept(self.incoming.len() + self.outgoing.len());
        for link in std::mem::take(&mut self.links) {
            self.engine.detach(link, None);
            self.engine.accept_link(link, Accept::default());
        }
        self.react();
    }
}

/// Checks that a frame is one performative, with a payload after a transfer only.
fn check_frame(frame: &[u8]) {
    let Some(body) = frame.get(8..).filter(|body| !body.is_empty()) else {
        return;
    };
    let length = codec::value_length(body);
    let is_transfer = body.get(2) == Some(&0x14);
    assert!(
        length.is_ok_and(|length| is_transfer || length == body.len()),
        "not a performative: {body:x?}"
    );
}
