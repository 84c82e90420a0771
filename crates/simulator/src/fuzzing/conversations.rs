//! Whole conversations: bytes of two clients in, through the engine and a shard with its log, and
//! bytes out.

use super::{NOW, SEPARATOR, make_entities, parts};
use jitney_amqp::Config;
use jitney_base::ids::ConnectionId;
use jitney_base::time::{ClockStep, Millis, Timestamp};
use jitney_broker::access::Profile;
use jitney_gateway::Gateway;
use jitney_journal::Options;
use jitney_shard::inline::Inline;
use jitney_shard::limits;
use jitney_shard::{Input, Pressure};

/// Small, so that a conversation fills some and maintenance has something to do. Bytes.
const SEGMENT_BYTES: u64 = 4_096;

/// Plays each part of an input by its first byte: the lowest bit selects the client, the next five
/// an event before it (see [`Conversation::prepare`]).
pub(super) fn run(input: &[u8]) {
    let mut conversation = Conversation::new();
    for part in parts(input) {
        let Some((&first, bytes)) = part.split_first() else {
            continue;
        };
        let client = usize::from(first & 1);
        conversation.prepare(client, first >> 1);
        conversation.feed(client, bytes);
    }
    conversation.end();
}

/// Makes an input of one client's bytes.
pub fn input<'s>(said: impl Iterator<Item = &'s [u8]>) -> Vec<u8> {
    let mut input = Vec::new();
    for bytes in said {
        if !input.is_empty() {
            input.extend_from_slice(&SEPARATOR);
        }
        input.push(0);
        input.extend_from_slice(bytes);
    }
    input
}

/// Two clients and their server.
struct Conversation {
    now: Timestamp,
    server: Inline,
    clients: [ConnectionId; 2],
    next: u32,
}

impl Conversation {
    fn new() -> Self {
        let gateway = Gateway::new(1, Profile::Development);
        let mut conversation = Self {
            now: NOW,
            server: Inline::start_with(options(), gateway, NOW, make_entities),
            clients: [ConnectionId(0); 2],
            next: 1,
        };
        for client in 0..2 {
            conversation.connect(client);
        }
        conversation
    }

    fn connect(&mut self, client: usize) {
        let id = ConnectionId(self.next);
        self.next += 1;
        let config = Config::server("jitney");
        self.server.connect(self.now, id, config);
        if let Some(known) = self.clients.get_mut(client) {
            *known = id;
        }
    }

    fn id(&self, client: usize) -> ConnectionId {
        self.clients.get(client).copied().unwrap_or(ConnectionId(0))
    }

    /// Plays an event before a client's bytes: its connection is cut, time passes, the clock is
    /// set, the store fails for a while, or the cache is emptied.
    fn prepare(&mut self, client: usize, what: u8) {
        let now = self.now;
        match what & 7 {
            1 => {
                self.server.cut(now, self.id(client));
                self.connect(client);
            }
            2 => self.now = now.after(Millis::from_secs(61)),
            3 => self.set_clock(ClockStep::from_millis(-3_600_000)),
            4 => self.set_clock(ClockStep::from_millis(3_600_000)),
            5 => self.server.shard.handle(now, Input::StoreAway),
            6 => self.server.shard.handle(now, Input::StoreBack),
            7 => {
                let pressure = Pressure {
                    cache_bytes: 0,
                    is_full: what & 8 != 0,
                };
                self.server.shard.handle(now, Input::Pressure(pressure));
            }
            _ => {}
        }
        self.server.turn(self.now);
    }

    fn set_clock(&mut self, step: ClockStep) {
        self.now = self.now.moved(step);
        self.server.shard.handle(self.now, Input::ClockStep(step));
    }

    /// Hands a client's bytes to the engine; the output must be frames.
    fn feed(&mut self, client: usize, bytes: &[u8]) {
        let id = self.id(client);
        self.server.receive(id, bytes);
        self.server.turn(self.now);
        let output = self.server.output(id).map(bytes::BytesMut::split);
        check_frames(&output.unwrap_or_default());
    }

    /// Ends both connections: the log must then match the shard.
    fn end(mut self) {
        self.server.shard.handle(self.now, Input::StoreBack);
        for id in self.clients {
            self.server.cut(self.now, id);
        }
        // After this turn the log has the records that no client waits for, too.
        self.now = self.now.after(limits::HELD_TIME_MAX);
        self.server.turn(self.now);
        let mut alive = 0;
        self.server
            .shard
            .gateway()
            .namespaces()
            .for_each_body(|_| alive += 1);
        let gateway = Gateway::new(2, Profile::Development);
        let recovered = self.server.recover(gateway, options());
        let found = recovered.map(|recovered| recovered.messages);
        assert!(
            matches!(found, Ok(found) if found == alive),
            "{alive} messages are alive, and a start finds {found:?}"
        );
    }
}

fn options() -> Options {
    Options {
        segment_bytes: SEGMENT_BYTES,
        ..Options::new(1)
    }
}

/// Checks that bytes are protocol headers and whole frames.
fn check_frames(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let length = match bytes.first_chunk::<4>() {
            Some(b"AMQP") => 8,
            Some(&size) => usize::try_from(u32::from_be_bytes(size)).unwrap_or(usize::MAX),
            None => 0,
        };
        let rest = bytes.get(length..).filter(|_| 8 <= length);
        assert!(rest.is_some(), "{bytes:?} begins with no frame");
        bytes = rest.unwrap_or_default();
    }
}
