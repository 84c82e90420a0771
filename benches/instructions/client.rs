//! A peer of the broker: a connection with one session, written by hand so that its frames are
//! those of SDKs, and not the engine's own.

use std::collections::BTreeMap;

use jitney_amqp::codec;
use serde_amqp::Value;
use serde_amqp::primitives::Binary;

use super::messages::{described, map, string, symbol, write_list};

/// How a receiver settles what it has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settling {
    /// One disposition for all neighbours, settled: generic clients and load tools.
    Ranges,
    /// A disposition for each delivery, which the broker answers: SDKs.
    Singly,
    /// Messages are sent settled.
    OnSend,
}

/// One connection, as its client has it.
#[derive(Debug, Default)]
pub(crate) struct Client {
    /// What is to be sent.
    pub(crate) output: Vec<u8>,
    next_delivery: u32,
    next_transfer: u32,
    next_handle: u32,
    /// Messages of ours that were accepted.
    pub(crate) accepted: usize,
    /// Messages that came in.
    pub(crate) received: usize,
    /// Deliveries that came in and are not settled by us.
    pub(crate) unsettled: Vec<u32>,
    /// Deliveries that we settled and that the broker answered.
    pub(crate) answered: usize,
    links: BTreeMap<u32, ReceivingLink>,
    /// The broker's handles.
    handles: BTreeMap<u32, u32>,
    transfers: u32,
}

#[derive(Debug, Default)]
struct ReceivingLink {
    credit: u32,
    delivery_count: u32,
    /// Deliveries up to which credit was granted.
    limit: u32,
}

const WINDOW: u32 = 1_000_000;

impl Client {
    /// Makes a connection whose opening is in the output.
    pub(crate) fn new(name: &str) -> Self {
        let mut client = Self::default();
        client.output.extend(b"AMQP\x00\x01\x00\x00");
        let open = vec![
            string(name),
            string("bench"),
            Value::Uint(65_536),
            Value::Ushort(1),
        ];
        client.frame(0x10, open, &[]);
        let begin = vec![
            Value::Null,
            Value::Uint(0),
            Value::Uint(WINDOW),
            Value::Uint(WINDOW),
        ];
        client.frame(0x11, begin, &[]);
        client
    }

    /// Attaches a link on which we send.
    pub(crate) fn attach_sender(&mut self, node: &str) -> u32 {
        let terminus = |code, address: &str| described(code, Value::List(vec![string(address)]));
        let handle = self.take_handle();
        let attach = vec![
            string(&format!("sender-{handle}")),
            Value::Uint(handle),
            Value::Bool(false),
            Value::Ubyte(0),
            Value::Ubyte(0),
            terminus(0x28, "here"),
            terminus(0x29, node),
            Value::Null,
            Value::Null,
            Value::Uint(0),
        ];
        self.frame(0x12, attach, &[]);
        handle
    }

    /// Attaches a link on which we receive, and grants credit that is kept up.
    pub(crate) fn attach_receiver(
        &mut self,
        node: &str,
        settling: Settling,
        session: Option<&str>,
        credit: u32,
    ) -> u32 {
        let handle = self.take_handle();
        let mut source = vec![Value::Null; 8];
        source[0] = string(node);
        if let Some(session) = session {
            let name = symbol("com.microsoft:session-filter");
            source[7] = map(vec![(name, string(session))]);
        }
        let mode = u8::from(settling == Settling::OnSend);
        let attach = vec![
            string(&format!("receiver-{handle}")),
            Value::Uint(handle),
            Value::Bool(true),
            Value::Ubyte(mode),
            Value::Ubyte(0),
            described(0x28, Value::List(source)),
            described(0x29, Value::List(vec![string("here")])),
        ];
        self.frame(0x12, attach, &[]);
        let link = ReceivingLink {
            credit,
            ..ReceivingLink::default()
        };
        self.links.insert(handle, link);
        self.top_up();
        handle
    }

    fn take_handle(&mut self) -> u32 {
        self.next_handle += 1;
        self.next_handle - 1
    }

    /// Sends a message, in as many frames as it takes.
    pub(crate) fn send(&mut self, handle: u32, message: &[u8], format: u32) {
        let mut chunks = message.chunks(65_000).peekable();
        let mut first = true;
        while let Some(chunk) = chunks.next() {
            let when_first = |value: Value| if first { value } else { Value::Null };
            let tag = Binary::from(self.next_delivery.to_be_bytes().to_vec());
            let transfer = vec![
                Value::Uint(handle),
                when_first(Value::Uint(self.next_delivery)),
                when_first(Value::Binary(tag)),
                when_first(Value::Uint(format)),
                Value::Bool(false),
                Value::Bool(chunks.peek().is_some()),
            ];
            self.frame(0x14, transfer, chunk);
            self.next_transfer += 1;
            first = false;
        }
        self.next_delivery += 1;
    }

    /// Settles all that has come in.
    pub(crate) fn settle(&mut self, settling: Settling) {
        let deliveries = std::mem::take(&mut self.unsettled);
        let accepted = || described(0x24, Value::List(Vec::new()));
        let word = |first: u32, last: Value, settled| {
            let (first, settled) = (Value::Uint(first), Value::Bool(settled));
            vec![Value::Bool(true), first, last, settled, accepted()]
        };
        match settling {
            Settling::OnSend => {}
            Settling::Singly => {
                for delivery in deliveries {
                    self.frame(0x15, word(delivery, Value::Null, false), &[]);
                }
            }
            Settling::Ranges => {
                if let (Some(&first), Some(&last)) = (deliveries.first(), deliveries.last()) {
                    self.answered += deliveries.len();
                    self.frame(0x15, word(first, Value::Uint(last), true), &[]);
                }
            }
        }
    }

    /// Grants credit anew where half of it is used up.
    pub(crate) fn top_up(&mut self) {
        let due = |link: &&mut ReceivingLink| {
            link.limit.wrapping_sub(link.delivery_count) <= link.credit / 2
        };
        let mut flows = Vec::new();
        for (handle, link) in &mut self.links {
            if due(&link) {
                link.limit = link.delivery_count.wrapping_add(link.credit);
                flows.push((*handle, link.delivery_count, link.credit));
            }
        }
        for (handle, count, credit) in flows {
            let flow = [
                self.transfers + 1,
                WINDOW,
                self.next_transfer,
                WINDOW,
                handle,
                count,
                credit,
            ];
            self.frame(0x13, flow.map(Value::Uint).to_vec(), &[]);
        }
    }

    fn frame(&mut self, code: u64, fields: Vec<Value>, payload: &[u8]) {
        let mut body = Vec::new();
        write_list(&mut body, code, fields);
        let size = u32::try_from(8 + body.len() + payload.len()).unwrap();
        self.output.extend(size.to_be_bytes());
        self.output.extend([2, 0, 0, 0]);
        self.output.extend(body);
        self.output.extend(payload);
    }

    /// Takes all that the broker has written.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let mut rest = bytes.strip_prefix(b"AMQP\x00\x01\x00\x00").unwrap_or(bytes);
        while let Some(head) = rest.first_chunk::<4>() {
            let size = usize::try_from(u32::from_be_bytes(*head)).unwrap();
            let (frame, after) = rest.split_at(size);
            rest = after;
            let body = &frame[8..];
            if body.is_empty() {
                continue;
            }
            let length = codec::value_length(body).unwrap();
            let Ok(Value::Described(performative)) = serde_amqp::from_slice(&body[..length]) else {
                panic!("a frame is no performative: {body:?}");
            };
            let Value::List(fields) = &performative.value else {
                panic!("a performative is no list");
            };
            self.take_performative(&performative.descriptor, fields);
        }
    }

    fn take_performative(
        &mut self,
        descriptor: &serde_amqp::descriptor::Descriptor,
        fields: &[Value],
    ) {
        let serde_amqp::descriptor::Descriptor::Code(code) = descriptor else {
            panic!("a descriptor is no code");
        };
        let number = |at: usize| match fields.get(at) {
            Some(Value::Uint(number)) => Some(*number),
            _ => None,
        };
        let is_true = |at: usize| fields.get(at) == Some(&Value::Bool(true));
        match code {
            0x10 | 0x11 | 0x13 => {}
            0x12 => {
                let Some(Value::String(name)) = fields.first() else {
                    panic!("a link has no name");
                };
                let ours = name.rsplit('-').next().unwrap().parse().unwrap();
                self.handles.insert(number(1).unwrap(), ours);
            }
            0x14 => {
                self.transfers += 1;
                if let Some(delivery) = number(1).filter(|_| !is_true(4)) {
                    self.unsettled.push(delivery);
                }
                if !is_true(5) {
                    self.received += 1;
                    let link = self.handles[&number(0).unwrap()];
                    let link = self.links.get_mut(&link).unwrap();
                    link.delivery_count = link.delivery_count.wrapping_add(1);
                }
            }
            0x15 => {
                let (first, last) = (number(1).unwrap(), number(2).or_else(|| number(1)).unwrap());
                let count = usize::try_from(last - first + 1).unwrap();
                let Some(Value::Described(state)) = fields.get(4) else {
                    panic!("a disposition has no state");
                };
                let accepted = serde_amqp::descriptor::Descriptor::Code(0x24);
                assert_eq!(state.descriptor, accepted, "{fields:?}");
                if is_true(0) {
                    self.accepted += count;
                } else {
                    self.answered += count;
                }
            }
            other => panic!("the broker ends something: {other:#x} {fields:?}"),
        }
    }
}
