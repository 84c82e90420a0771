//! The client's end of a connection that goes by bytes: frames of our own encoding, and what the
//! frames of the server say.

mod states;

use std::collections::{BTreeMap, BTreeSet};

use jitney_amqp::limits::{ENVELOPE_BYTES, FRAME_SIZE_MAX};
use jitney_amqp::{
    Attach, Event, IncomingDisposition, IncomingTransfer, LinkCredit, LinkRole, LinkTarget,
    Outcome, Value as AmqpValue,
};
use jitney_base::ids::LockToken;

use self::states::{end, grant, plain, read_end};
use super::acts::{ClientAction, LinkKey, LinkKind};
use super::audit::ClientObservation;
use super::random::Stream;
use super::wire::{Answer, Seen, Value, read_answer, read_message, read_value, section};

const ATTACH: u8 = 0x12;
const FLOW: u8 = 0x13;
const TRANSFER: u8 = 0x14;
const DISPOSITION: u8 = 0x15;
const DETACH: u8 = 0x16;

/// More than any run sends: the window never closes.
const WINDOW: u32 = u32::MAX / 2;

/// What a client reads, whatever it is in the shard.
#[derive(Debug, PartialEq)]
pub(super) enum Heard {
    Accepted(u32, Option<(String, i64)>),
    Answered(u32, Answer),
    Credit(u32),
    Delivered {
        link: u32,
        token: LockToken,
        delete: bool,
        seen: Seen,
    },
    Detached(u32, String),
    Drained(u32),
    Refused(u32, String),
    /// A delivery has come to its end: one of the client's, or one of the server's.
    Settled {
        ours: bool,
        delivery: u32,
        end: End,
    },
}

/// What becomes of a delivery.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    Declared(Vec<u8>),
    Named(String),
    Refused(String),
    Within(Vec<u8>, String),
}

impl Heard {
    /// Returns what a client is to read of what was told.
    pub(super) fn of(sight: &ClientObservation) -> Self {
        let settled = |ours, delivery: &u32, end| Self::Settled {
            ours,
            delivery: *delivery,
            end,
        };
        let named = |result: Result<&str, &String>| match result {
            Ok(name) => End::Named(name.to_owned()),
            Err(condition) => End::Refused(condition.clone()),
        };
        match sight {
            ClientObservation::Accepted(at, granted) => Self::Accepted(at.link, granted.clone()),
            ClientObservation::Answered(at, answer) => Self::Answered(at.link, answer.clone()),
            ClientObservation::CreditReturned(at) => Self::Credit(at.link),
            ClientObservation::Delivered {
                at,
                token,
                delete,
                seen,
            } => Self::Delivered {
                link: at.link,
                token: if *delete { LockToken::NIL } else { *token },
                delete: *delete,
                seen: seen.clone(),
            },
            ClientObservation::Declared(_, delivery, id) => {
                settled(true, delivery, End::Declared(id.clone()))
            }
            ClientObservation::Detached(at, condition) => {
                Self::Detached(at.link, condition.clone())
            }
            ClientObservation::Drained(at, _) => Self::Drained(at.link),
            ClientObservation::Refused(at, condition) => Self::Refused(at.link, condition.clone()),
            ClientObservation::SettledIncoming(_, delivery, result) => {
                let result = result.as_ref().map(|()| "accepted");
                settled(true, delivery, named(result))
            }
            ClientObservation::SettledOutgoing(_, delivery, result) => {
                settled(false, delivery, named(result.as_ref().map(|name| *name)))
            }
            ClientObservation::SettledWithin(_, delivery, id, name) => {
                let end = End::Within(id.clone(), (*name).to_owned());
                settled(false, delivery, end)
            }
            ClientObservation::TakenWithin(_, delivery, id) => {
                let end = End::Within(id.clone(), "accepted".to_owned());
                settled(true, delivery, end)
            }
        }
    }

    /// Returns what a sender reads whose message is refused.
    pub(super) fn refused(delivery: u32, condition: String) -> Self {
        Self::Settled {
            ours: true,
            delivery,
            end: End::Refused(condition),
        }
    }

    /// Returns the link of a message.
    pub(super) fn transfer(&self) -> Option<u32> {
        match self {
            Self::Answered(link, _) | Self::Delivered { link, .. } => Some(*link),
            _ => None,
        }
    }
}

/// What a client says.
pub(super) struct Said {
    pub(super) bytes: Vec<u8>,
    /// It is too large for its link.
    pub(super) is_refused: bool,
}

pub(super) struct Client {
    id: u32,
    links: BTreeMap<u32, Link>,
    /// Links by the server's handles.
    by_handle: BTreeMap<u32, u32>,
    /// What came and is not settled: its link and its lock.
    unsettled: BTreeMap<u32, (u32, LockToken)>,
    /// What the client has settled, or has not and ended its link: what the server said before it knew of that may
    /// come until all is read.
    given_up: BTreeSet<u32>,
    /// Deliveries for which the client has sent a disposition, and which are not settled.
    decided: BTreeSet<u32>,
    /// Deliveries for which the client has sent a second disposition. The engine answers it, if the delivery is settled by then.
    decided_twice: BTreeSet<u32>,
    partial: Option<Partial>,
    input: Vec<u8>,
    output: Vec<u8>,
    frame_max: u32,
    /// Frames of messages that a window opens for, and those of them that may come still.
    window: u32,
    room: u32,
    next_incoming: u32,
    next_outgoing: u32,
    has_header: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sender,
    Receiver,
    /// What comes are the management node's answers.
    Responses,
}

#[derive(Debug)]
struct Link {
    handle: u32,
    kind: Kind,
    is_attached: bool,
    /// The client has ended it, or answered that the server did.
    is_gone: bool,
    /// It was turned away: the detach that says why is to come.
    is_refused: bool,
    message_max: u64,
    count: u32,
    limit: u32,
    /// The most that the limit was since all was read: what was sent by then may come still.
    promised: u32,
}

/// A message of which there is more to come.
struct Partial {
    link: u32,
    delivery: u32,
    tag: Vec<u8>,
    settled: bool,
    payload: Vec<u8>,
}

fn symbol(text: &str) -> Value {
    Value::Symbol(text.to_owned())
}

fn string(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn described(code: u8, fields: Vec<Value>) -> Value {
    let code = Value::Ulong(u64::from(code));
    Value::Described(Box::new(code), Box::new(Value::List(fields)))
}

impl Client {
    /// Makes one whose window is so wide; none closes it.
    pub(super) fn new(id: u32, frame_max: u32, window: Option<u32>) -> Self {
        let window = window.unwrap_or(WINDOW);
        Self {
            id,
            links: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            unsettled: BTreeMap::new(),
            given_up: BTreeSet::new(),
            decided: BTreeSet::new(),
            decided_twice: BTreeSet::new(),
            partial: None,
            input: Vec::new(),
            output: Vec::new(),
            frame_max,
            window,
            room: window,
            next_incoming: 1,
            next_outgoing: 0,
            has_header: false,
        }
    }

    /// Writes what begins with SASL, without waiting for answers.
    pub(super) fn begin_sasl(&mut self) {
        self.output.extend_from_slice(b"AMQP\x03\x01\x00\x00");
        let init = vec![symbol("ANONYMOUS"), Value::Binary(Vec::new())];
        self.write_frame(1, 0x41, init, &[]);
    }

    /// Says all that opens a connection, without waiting for answers.
    pub(super) fn open(&mut self) -> Vec<u8> {
        self.output.extend_from_slice(b"AMQP\x00\x01\x00\x00");
        let container = format!("client-{}", self.id);
        let open = vec![
            Value::String(container),
            string("localhost"),
            Value::Uint(self.frame_max),
        ];
        self.write_frame(0, 0x10, open, &[]);
        let begin = vec![
            Value::Null,
            Value::Uint(self.next_outgoing),
            Value::Uint(self.room),
            Value::Uint(WINDOW),
        ];
        self.write_frame(0, 0x11, begin, &[]);
        self.take_output()
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Returns whether no message may come before the window is opened.
    pub(super) fn is_closed(&self) -> bool {
        self.room == 0
    }

    /// Opens the window as wide as it was.
    pub(super) fn widen(&mut self) -> Vec<u8> {
        self.room = self.window;
        let flow = vec![
            Value::Uint(self.next_incoming),
            Value::Uint(self.room),
            Value::Uint(self.next_outgoing),
            Value::Uint(WINDOW),
        ];
        self.write_frame(0, FLOW, flow, &[]);
        self.take_output()
    }

    /// Nothing is on its way: what credit was lowered since is not used any more, and nothing is said of what was given
    /// up.
    pub(super) fn has_heard_all(&mut self) {
        self.given_up.clear();
        self.decided_twice.clear();
        for link in self.links.values_mut() {
            link.promised = link.limit;
        }
    }

    pub(super) fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    pub(super) fn has_read_all(&self) -> bool {
        self.input.is_empty()
    }

    pub(super) fn is_gone(&self, link: u32) -> bool {
        self.links.get(&link).is_none_or(|link| link.is_gone)
    }

    /// Returns whether a delivery to the client is not settled.
    pub(super) fn is_open(&self, delivery: u32) -> bool {
        self.unsettled.contains_key(&delivery)
    }

    pub(super) fn is_without_credit(&self, link: u32) -> bool {
        self.links
            .get(&link)
            .is_some_and(|link| link.credit(link.limit) == 0)
    }

    /// Returns whether there is no credit for a message behind so many that have not come yet.
    pub(super) fn lacks_credit(&self, link: u32, before: usize) -> bool {
        let credit = self
            .links
            .get(&link)
            .map_or(0, |link| link.credit(link.limit));
        usize::try_from(credit).expect("it fits") <= before
    }

    /// Gives an act the numbers that the client knows; returns whether it can be said.
    pub(super) fn fit(&mut self, act: &mut ClientAction) -> bool {
        let is_open = |at: &LinkKey| !self.is_gone(at.link);
        match act {
            ClientAction::Attach { at, kind, .. } => {
                let handles = self.links.values().map(|link| link.handle);
                let taken: Vec<u32> = handles.collect();
                let handle = (0..u32::MAX).find(|handle| !taken.contains(handle));
                let link = Link {
                    handle: handle.expect("there are many"),
                    kind: match kind {
                        LinkKind::Receiver { .. } => Kind::Receiver,
                        LinkKind::Responses => Kind::Responses,
                        LinkKind::Sender | LinkKind::Requests | LinkKind::Coordinator => {
                            Kind::Sender
                        }
                    },
                    is_attached: false,
                    is_gone: false,
                    is_refused: false,
                    message_max: 0,
                    count: 0,
                    limit: 0,
                    promised: 0,
                };
                self.links.insert(at.link, link);
                true
            }
            ClientAction::Close { .. } => true,
            ClientAction::Credit { at, limit, .. } => {
                let Some(link) = self.links.get_mut(&at.link).filter(|link| !link.is_gone) else {
                    return false;
                };
                *limit = link.count.wrapping_add(link.credit(*limit));
                link.limit = *limit;
                if link.credit(link.promised) < link.credit(link.limit) {
                    link.promised = link.limit;
                }
                true
            }
            ClientAction::Settle {
                at,
                token,
                delivery,
                ..
            } => {
                let unsettled = self.unsettled.iter();
                let mut found = unsettled.filter(|(_, of)| **of == (at.link, *token));
                let Some((&number, _)) = found.next() else {
                    return false;
                };
                *delivery = number;
                is_open(at)
            }
            ClientAction::Declare { at, .. }
            | ClientAction::Detach { at, .. }
            | ClientAction::Discharge { at, .. }
            | ClientAction::Request { at, .. } => is_open(at),
            ClientAction::Send {
                at,
                batch,
                settled,
                transaction,
                drafts,
                ..
            } => {
                // What is too large the engine refuses by itself, with more than an answer where nobody
                // waits for one.
                let bytes = drafts.iter().map(|draft| draft.encode().len() + 16).sum();
                let envelope = if *batch { ENVELOPE_BYTES } else { 0 };
                let is_small = is_open(at) && !self.links[&at.link].refuses(bytes, envelope);
                is_open(at) && (is_small || !(*settled || transaction.is_some()))
            }
            ClientAction::Returned { .. }
            | ClientAction::Timeout
            | ClientAction::Unsent { .. }
            | ClientAction::Written { .. } => false,
        }
    }

    /// Returns the bytes that say something.
    pub(super) fn say(&mut self, event: &Event, random: &mut Stream) -> Said {
        let mut is_refused = false;
        match event {
            Event::AttachRequested(link, attach) => self.write_attach(link.0, attach),
            Event::Closed { .. } => self.write_frame(0, 0x18, Vec::new(), &[]),
            Event::Detached { link, .. } => self.write_detach(link.0),
            Event::Credit(LinkCredit { link, limit, drain }) => {
                let link = &self.links[&link.0];
                let flow = vec![
                    Value::Uint(self.next_incoming),
                    Value::Uint(self.room),
                    Value::Uint(self.next_outgoing),
                    Value::Uint(WINDOW),
                    Value::Uint(link.handle),
                    Value::Uint(link.count),
                    Value::Uint(link.credit(*limit)),
                    Value::Null,
                    Value::Bool(*drain),
                ];
                self.write_frame(0, FLOW, flow, &[]);
            }
            Event::Disposition(IncomingDisposition {
                delivery,
                settled,
                outcome,
                transaction,
                ..
            }) => {
                let state = match transaction {
                    Some(id) => described(0x34, vec![Value::Binary(id.to_vec()), end(outcome)]),
                    None => end(outcome),
                };
                let disposition = vec![
                    Value::Bool(true),
                    Value::Uint(delivery.0),
                    Value::Null,
                    Value::Bool(*settled),
                    state,
                ];
                self.write_frame(0, DISPOSITION, disposition, &[]);
                if *settled {
                    self.decided.remove(&delivery.0);
                    if self.unsettled.remove(&delivery.0).is_some() {
                        self.given_up.insert(delivery.0);
                    }
                } else if !self.decided.insert(delivery.0) {
                    self.decided_twice.insert(delivery.0);
                }
            }
            Event::Transfer(IncomingTransfer {
                link,
                delivery,
                payload,
                message_format,
                settled,
                transaction,
            }) => {
                let link = &self.links[&link.0];
                let envelope = match message_format {
                    0 => 0,
                    _ => ENVELOPE_BYTES,
                };
                is_refused = link.refuses(payload.len(), envelope);
                let handle = link.handle;
                let mut rest = &payload[..];
                let mut is_first = true;
                loop {
                    let most = FRAME_PAYLOAD.min(rest.len());
                    let size = if random.percent(70) {
                        most
                    } else {
                        random.index(most + 1)
                    };
                    let (piece, after) = rest.split_at(size);
                    rest = after;
                    let mut transfer = vec![Value::Uint(handle)];
                    if is_first {
                        let tag = delivery.0.to_be_bytes().to_vec();
                        transfer.push(Value::Uint(delivery.0));
                        transfer.push(Value::Binary(tag));
                        transfer.push(Value::Uint(*message_format));
                    } else {
                        transfer.extend([Value::Null, Value::Null, Value::Null]);
                    }
                    transfer.push(Value::Bool(*settled));
                    transfer.push(Value::Bool(!rest.is_empty()));
                    if let (true, Some(id)) = (is_first, transaction) {
                        let state = described(0x34, vec![Value::Binary(id.to_vec())]);
                        transfer.extend([Value::Null, state]);
                    }
                    self.write_frame(0, TRANSFER, transfer, piece);
                    self.next_outgoing = self.next_outgoing.wrapping_add(1);
                    is_first = false;
                    if rest.is_empty() {
                        break;
                    }
                }
            }
            other => unreachable!("no client does {other:?}"),
        }
        Said {
            bytes: self.take_output(),
            is_refused,
        }
    }

    fn write_attach(&mut self, link: u32, attach: &Attach) {
        let handle = self.links[&link].handle;
        let filter = |filter: &Option<fe2o3_amqp_types::messaging::FilterSet>| {
            let entries = filter.iter().flat_map(|filter| filter.iter());
            let entries = entries.map(|(name, value)| (symbol(name.as_str()), plain(value)));
            match entries.collect::<Vec<_>>() {
                entries if entries.is_empty() => Value::Null,
                entries => Value::Map(entries),
            }
        };
        let source = attach.source.as_ref().map(|source| {
            let mut fields = vec![source.address.as_deref().map_or(Value::Null, string)];
            fields.resize(7, Value::Null);
            fields.push(filter(&source.filter));
            described(0x28, fields)
        });
        let target = match &attach.target {
            LinkTarget::Coordinator => Some(described(0x30, Vec::new())),
            LinkTarget::Node(target) => target.as_ref().map(|target| {
                let address = target.address.as_deref().map_or(Value::Null, string);
                described(0x29, vec![address])
            }),
        };
        let is_receiver = attach.role == LinkRole::Outgoing;
        let mut fields = vec![
            string(&attach.name),
            Value::Uint(handle),
            Value::Bool(is_receiver),
            Value::Ubyte(attach.snd_settle_mode.clone().into()),
            Value::Ubyte(attach.rcv_settle_mode.clone().into()),
            source.unwrap_or(Value::Null),
            target.unwrap_or(Value::Null),
            Value::Null,
            Value::Null,
            if is_receiver {
                Value::Null
            } else {
                Value::Uint(0)
            },
        ];
        if let Some(properties) = &attach.properties {
            fields.resize(13, Value::Null);
            let entries = properties.iter();
            let entries = entries.map(|(name, value)| (symbol(name.as_str()), plain(value)));
            fields.push(Value::Map(entries.collect()));
        }
        self.write_frame(0, ATTACH, fields, &[]);
    }

    /// Ends a link; nothing that comes on it is heard any more.
    fn write_detach(&mut self, link: u32) {
        let Some(found) = self.links.get_mut(&link) else {
            return;
        };
        found.is_gone = true;
        let handle = found.handle;
        // The rest of its message does not come.
        self.partial.take_if(|partial| partial.link == link);
        let ended = self.unsettled.extract_if(.., |_, (of, _)| *of == link);
        self.given_up.extend(ended.map(|(delivery, _)| delivery));
        self.write_frame(0, DETACH, vec![Value::Uint(handle), Value::Bool(true)], &[]);
    }

    fn write_frame(&mut self, kind: u8, code: u8, fields: Vec<Value>, payload: &[u8]) {
        let start = self.output.len();
        self.output.extend_from_slice(&[0, 0, 0, 0, 2, kind, 0, 0]);
        section(&mut self.output, code, &Value::List(fields));
        self.output.extend_from_slice(payload);
        let size = u32::try_from(self.output.len() - start).expect("it fits");
        self.output[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }

    /// Reads a piece of what the server sends; returns how many frames have ended in it.
    pub(super) fn read(&mut self, piece: &[u8], heard: &mut Vec<Heard>) -> Result<usize, String> {
        self.input.extend_from_slice(piece);
        let mut frames = 0;
        loop {
            let Some(&first) = self.input.first_chunk::<4>() else {
                return Ok(frames);
            };
            let size = match &first {
                b"AMQP" => 8,
                size => usize::try_from(u32::from_be_bytes(*size)).expect("it fits"),
            };
            if size < 8 || usize::try_from(self.frame_max).expect("it fits") < size {
                return Err(format!("a frame has {size} bytes"));
            }
            if self.input.len() < size {
                return Ok(frames);
            }
            let rest = self.input.split_off(size);
            let frame = std::mem::replace(&mut self.input, rest);
            if &first == b"AMQP" {
                self.has_header = true;
            } else {
                self.take_frame(&frame, heard)?;
                frames += 1;
            }
        }
    }

    fn take_frame(&mut self, frame: &[u8], heard: &mut Vec<Heard>) -> Result<(), String> {
        let [_, _, _, _, 2, kind, channel @ ..] = frame else {
            return Err(format!("{frame:?} is no frame"));
        };
        let (channel, mut body) = channel.split_at(2);
        if !self.has_header || channel != [0, 0] {
            return Err("a frame comes before the header, or on another channel".to_owned());
        }
        if body.is_empty() {
            return Ok(());
        }
        let Value::Described(code, fields) = read_value(&mut body)? else {
            return Err("a frame is not described".to_owned());
        };
        let (Value::Ulong(code), Value::List(fields)) = (*code, *fields) else {
            return Err("a frame has no list".to_owned());
        };
        let fields = Fields(fields);
        if *kind == 1 {
            return match code {
                0x40 => Ok(()),
                0x44 if *fields.get(0) == Value::Ubyte(0) => Ok(()),
                other => Err(format!("the SASL frame {other:#x} says {fields:?}")),
            };
        }
        match u8::try_from(code).unwrap_or(0) {
            0x10 | 0x11 => Ok(()),
            ATTACH => self.take_attach(&fields, heard),
            FLOW => self.take_flow(&fields, heard),
            TRANSFER => self.take_transfer(&fields, body, heard),
            DISPOSITION => self.take_disposition(&fields, heard),
            DETACH => self.take_detach(&fields, heard),
            _ => Err(format!("the frame {code:#x} says {fields:?}")),
        }
    }

    fn take_attach(&mut self, fields: &Fields, heard: &mut Vec<Heard>) -> Result<(), String> {
        let prefix = format!("link-{}-", self.id);
        let number = match fields.get(0) {
            Value::String(name) => name.strip_prefix(&prefix).and_then(|it| it.parse().ok()),
            _ => None,
        };
        let link: u32 = number.ok_or_else(|| format!("nobody attached {fields:?}"))?;
        let handle = fields.uint(1)?;
        if self.by_handle.insert(handle, link).is_some() {
            return Err(format!("the handle {handle} is taken"));
        }
        let found = self.links.get_mut(&link);
        let found = found.ok_or_else(|| format!("nobody attached {fields:?}"))?;
        if *fields.get(2) != Value::Bool(found.kind == Kind::Sender) {
            return Err(format!("the role is that of the client: {fields:?}"));
        }
        found.is_attached = true;
        found.message_max = match fields.get(10) {
            Value::Ulong(max) => *max,
            _ => 0,
        };
        if found.is_gone {
            return Ok(());
        }
        let (source, target) = (fields.get(5), fields.get(6));
        if (source, target) == (&Value::Null, &Value::Null) {
            found.is_refused = true;
            return Ok(());
        }
        heard.push(Heard::Accepted(link, grant(source, fields.get(13))?));
        Ok(())
    }

    fn take_flow(&mut self, fields: &Fields, heard: &mut Vec<Heard>) -> Result<(), String> {
        if *fields.get(4) == Value::Null {
            return Ok(());
        }
        let (handle, count) = (fields.uint(4)?, fields.uint(5)?);
        let number = self.by_handle.get(&handle).copied();
        let number = number.ok_or_else(|| format!("a flow of no link: {fields:?}"))?;
        let link = self.links.get_mut(&number);
        let link = link.ok_or_else(|| format!("a flow of no link: {fields:?}"))?;
        if link.kind != Kind::Sender && !link.is_gone && *fields.get(8) == Value::Bool(true) {
            if count.wrapping_sub(link.count) > WINDOW {
                return Err(format!("a drain counts back: {fields:?}"));
            }
            link.count = count;
            heard.push(Heard::Drained(number));
        }
        Ok(())
    }

    fn take_transfer(
        &mut self,
        fields: &Fields,
        payload: &[u8],
        heard: &mut Vec<Heard>,
    ) -> Result<(), String> {
        self.next_incoming = self.next_incoming.wrapping_add(1);
        if self.window != WINDOW {
            let room = self.room.checked_sub(1);
            self.room = room.ok_or_else(|| format!("the window is closed: {fields:?}"))?;
        }
        let handle = fields.uint(0)?;
        let link = self.by_handle.get(&handle).copied();
        let link = link.ok_or_else(|| format!("a transfer on no link: {fields:?}"))?;
        let settled = *fields.get(4) == Value::Bool(true);
        if self.is_gone(link) {
            return Ok(());
        }
        let mut partial = match self.partial.take() {
            Some(partial) if partial.link == link && partial.settled == settled => partial,
            Some(partial) => return Err(format!("{fields:?} within link {}", partial.link)),
            None => Partial {
                link,
                delivery: fields.uint(1)?,
                tag: match fields.get(2) {
                    Value::Binary(tag) => tag.clone(),
                    other => return Err(format!("the delivery-tag is {other:?}")),
                },
                settled,
                payload: Vec::new(),
            },
        };
        partial.payload.extend_from_slice(payload);
        if *fields.get(5) == Value::Bool(true) {
            self.partial = Some(partial);
            return Ok(());
        }
        let found = self.links.get_mut(&link);
        let found = found.ok_or_else(|| format!("a transfer on no link: {fields:?}"))?;
        if found.credit(found.promised) == 0 {
            return Err(format!("a transfer without credit: {fields:?}"));
        }
        found.count = found.count.wrapping_add(1);
        if found.kind == Kind::Responses {
            let answer = read_answer(&partial.payload)?;
            heard.push(Heard::Answered(link, answer));
            return Ok(());
        }
        let tag = <[u8; 16]>::try_from(&partial.tag[..]).map_err(|error| error.to_string())?;
        let token = LockToken::from_tag(tag);
        let is_new = settled
            || self
                .unsettled
                .insert(partial.delivery, (link, token))
                .is_none();
        if !is_new {
            return Err(format!("a delivery-id stands for two: {fields:?}"));
        }
        heard.push(Heard::Delivered {
            link,
            token,
            delete: settled,
            seen: read_message(&partial.payload)?,
        });
        Ok(())
    }

    fn take_disposition(&mut self, fields: &Fields, heard: &mut Vec<Heard>) -> Result<(), String> {
        let ours = *fields.get(0) == Value::Bool(true);
        let first = fields.uint(1)?;
        let last = match fields.get(2) {
            Value::Null => first,
            _ => fields.uint(2)?,
        };
        let end = read_end(fields.get(4))?;
        if *fields.get(3) != Value::Bool(ours || !matches!(end, End::Within(..))) {
            return Err(format!("it is settled, or it is not: {fields:?}"));
        }
        let settles = !ours && !matches!(end, End::Within(..));
        for delivery in first..=last {
            let end = end.clone();
            if settles && self.unsettled.remove(&delivery).is_none() {
                if self.decided_twice.remove(&delivery) {
                    continue;
                }
                if !self.given_up.remove(&delivery) {
                    return Err(format!("nobody waits for {fields:?}"));
                }
            }
            if settles {
                self.decided.remove(&delivery);
            }
            heard.push(Heard::Settled {
                ours,
                delivery,
                end,
            });
        }
        Ok(())
    }

    fn take_detach(&mut self, fields: &Fields, heard: &mut Vec<Heard>) -> Result<(), String> {
        let handle = fields.uint(0)?;
        let number = self.by_handle.remove(&handle);
        let number = number.ok_or_else(|| format!("a detach of no link: {fields:?}"))?;
        let link = self.links.get(&number);
        let link = link.ok_or_else(|| format!("a detach of no link: {fields:?}"))?;
        if !link.is_gone {
            let condition = match fields.get(2) {
                Value::Described(_, error) => match &**error {
                    Value::List(fields) => match fields.first() {
                        Some(Value::Symbol(condition)) => Some(condition.clone()),
                        _ => None,
                    },
                    _ => None,
                },
                _ => None,
            };
            let condition = condition.ok_or_else(|| format!("no reason: {fields:?}"))?;
            heard.push(if link.is_refused {
                Heard::Refused(number, condition)
            } else {
                Heard::Detached(number, condition)
            });
            self.write_detach(number);
        }
        self.partial.take_if(|partial| partial.link == number);
        self.links.remove(&number);
        Ok(())
    }
}

/// Bytes of a message in one frame at most.
const FRAME_PAYLOAD: usize = 60_000;

impl Link {
    /// Returns how much credit is left up to a limit.
    fn credit(&self, limit: u32) -> u32 {
        let ahead = limit.wrapping_sub(self.count);
        if ahead <= WINDOW { ahead } else { 0 }
    }

    /// Returns whether the engine takes no message of so many bytes, beside those of a batch's envelope.
    fn refuses(&self, bytes: usize, envelope: u64) -> bool {
        let max = match (self.is_attached, self.message_max) {
            // Nobody has looked yet at who sends this.
            (false, _) => u64::from(FRAME_SIZE_MAX),
            (true, 0) => jitney_base::limits::MESSAGE_SIZE_MAX,
            (true, max) => max + envelope,
        };
        max < u64::try_from(bytes).expect("it fits")
    }
}

#[derive(Debug)]
struct Fields(Vec<Value>);

impl Fields {
    fn get(&self, at: usize) -> &Value {
        self.0.get(at).unwrap_or(&Value::Null)
    }

    fn uint(&self, at: usize) -> Result<u32, String> {
        match self.get(at) {
            Value::Uint(number) => Ok(*number),
            other => Err(format!("the field {at} is {other:?}")),
        }
    }
}
