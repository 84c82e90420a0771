//! The broker's parts put together as its shell does it, without tasks, sockets and files.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use jitney::amqp::{Config, Connection, Delivery, Identity, LinkId, SettleMode};
use jitney::broker::{
    Broker, ConnectionId, Input, Origin, Profile, Reply, Response, Routed, Surroundings,
};
use jitney::entity::queue::{Description, Handover, ReceiveMode};
use jitney::storage::memory::MemoryDisk;
use jitney::storage::{self, Committer, Options, Writer};
use jitney::time::{Millis, Timestamp};
use jitney::{limits, message};

use super::client::Client;

/// The broker, and its clients.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) clients: Vec<Client>,
    peers: Vec<Peer>,
    broker: Broker,
    writer: Writer,
    committer: Committer,
    sealed: u64,
    replies: Vec<Routed>,
    pending: Vec<Routed>,
}

/// The broker's end of one connection.
struct Peer {
    id: ConnectionId,
    engine: Connection,
    incoming: BytesMut,
    output: BytesMut,
    inputs: Vec<Input>,
    outgoing: Vec<Outgoing>,
    rendered: Vec<u8>,
    /// Bytes of messages written on each link that the broker was not told of.
    written: BTreeMap<LinkId, u64>,
}

/// A reply with the bytes that it needs.
enum Outgoing {
    Deliver(LinkId, Handover, Bytes),
    Reply(Reply),
    Respond(LinkId, Box<Response>, Vec<Bytes>),
}

/// Bytes that are read at a time, as in the shell.
const READ_BYTES: usize = 64 * 1024;
/// Bytes written of which the broker is told, as in the shell.
const WRITTEN_BYTES: u64 = limits::RECEIVER_WINDOW_BYTES.cast_unsigned() / 4;

impl World {
    /// A broker with these entities.
    pub(crate) fn new(entities: &[(&str, Description)]) -> Self {
        let disk = Arc::new(MemoryDisk::new());
        let log = storage::recover(disk, Options::new(1), &mut |_, _| Ok(())).unwrap();
        let mut world = Self {
            now: Timestamp::from_millis(1_800_000_000_000),
            clients: Vec::new(),
            peers: Vec::new(),
            broker: Broker::new(1, Profile::Development),
            writer: log.writer,
            committer: log.committer,
            sealed: 0,
            replies: Vec::new(),
            pending: Vec::new(),
        };
        for (path, description) in entities {
            world.step(|broker, around| {
                let made = broker.ensure_entity(around, path, description.clone());
                made.expect("an entity can be made");
            });
        }
        world.commit();
        world
    }

    /// Connects a client.
    pub(crate) fn connect(&mut self, client: Client) -> usize {
        let at = self.peers.len();
        let id = ConnectionId(u32::try_from(at).unwrap());
        let config = Config {
            container_id: format!("jitney_G{at}"),
            hostname: None,
            frame_size_max: limits::FRAME_SIZE_MAX,
            channel_max: limits::CHANNEL_MAX,
            handle_max: limits::HANDLE_MAX,
            idle_timeout: limits::IDLE_TIMEOUT,
            identity: Identity::Anonymous,
            has_certificate: false,
            trusts_peer: true,
        };
        self.broker.connected(id, Origin::default());
        self.peers.push(Peer {
            id,
            engine: Connection::server(config, self.now),
            incoming: BytesMut::new(),
            output: BytesMut::new(),
            inputs: Vec::new(),
            outgoing: Vec::new(),
            rendered: Vec::new(),
            written: BTreeMap::new(),
        });
        self.clients.push(client);
        at
    }

    /// Hands the broker what its clients have written, and them what it answers.
    pub(crate) fn turn(&mut self) {
        self.now = self.now.after(Millis::from_millis(1));
        for at in 0..self.peers.len() {
            let mut bytes = std::mem::take(&mut self.clients[at].output);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let incoming = &mut self.peers[at].incoming;
                incoming.reserve(READ_BYTES);
                let count = rest.len().min(incoming.capacity() - incoming.len());
                incoming.extend_from_slice(&rest[..count]);
                rest = &rest[count..];
            }
            bytes.clear();
            self.clients[at].output = bytes;
        }
        serve_turn(self);
        for (peer, client) in self.peers.iter_mut().zip(&mut self.clients) {
            client.take(&peer.output);
            peer.output.clear();
        }
    }

    fn step(&mut self, step: impl FnOnce(&mut Broker, &mut Surroundings<'_>)) {
        let mut around = Surroundings {
            now: self.now,
            journal: &mut self.writer,
            group: self.sealed + 1,
            replies: &mut self.replies,
        };
        step(&mut self.broker, &mut around);
        self.pending.append(&mut self.replies);
    }

    /// Makes the open group durable, and lets go what waited for it.
    fn commit(&mut self) {
        if let Some(frame) = self.writer.seal() {
            self.sealed += 1;
            self.committer.write(&[frame]).expect("memory is written");
            self.committer.sync().expect("memory is synced");
        }
        let mut pending = std::mem::take(&mut self.pending);
        for routed in pending.drain(..) {
            self.release(routed);
        }
        self.pending = pending;
        // Only now: what was received and deleted was needed until here.
        self.writer.durable(self.sealed);
    }

    fn release(&mut self, routed: Routed) {
        let find = |body| self.writer.cached(body).expect("bodies are in memory");
        let outgoing = match routed.reply {
            Reply::Deliver(link, handover) => {
                let body = find(handover.body);
                Outgoing::Deliver(link, handover, body)
            }
            Reply::Respond(link, response) => {
                let bodies = response.bodies().map(find).collect();
                Outgoing::Respond(link, response, bodies)
            }
            reply => Outgoing::Reply(reply),
        };
        let at = usize::try_from(routed.connection.0).unwrap();
        self.peers[at].outgoing.push(outgoing);
    }
}

/// Does all that the bytes that came in ask for: what is measured.
#[inline(never)]
fn serve_turn(world: &mut World) {
    for at in 0..world.peers.len() {
        let peer = &mut world.peers[at];
        peer.engine.handle_bytes(world.now, &mut peer.incoming);
        for (&link, bytes) in &mut peer.written {
            if WRITTEN_BYTES <= *bytes {
                let bytes = std::mem::take(bytes);
                peer.inputs.push(Input::Written { link, bytes });
            }
        }
        while let Some(event) = peer.engine.poll_event() {
            peer.inputs.push(Input::Event(event));
        }
        let (id, inputs) = (peer.id, std::mem::take(&mut peer.inputs));
        world.step(|broker, around| {
            for input in inputs {
                broker.apply(around, id, input);
            }
        });
    }
    world.step(Broker::handle_timeout);
    world.commit();
    for peer in &mut world.peers {
        let mut outgoing = std::mem::take(&mut peer.outgoing);
        for outgoing in outgoing.drain(..) {
            peer.send(outgoing);
        }
        peer.outgoing = outgoing;
        peer.engine.take_output(world.now, &mut peer.output);
    }
}

impl Peer {
    fn send(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Deliver(link, handover, body) => {
                self.rendered.clear();
                let rest = message::render_front(&mut self.rendered, &body, &handover.stamps);
                *self.written.entry(link).or_default() += u64::from(handover.body.length);
                let delivery = Delivery {
                    tag: handover.token.to_tag(),
                    settle_mode: match handover.mode {
                        ReceiveMode::PeekLock => SettleMode::OnReceipt,
                        ReceiveMode::ReceiveAndDelete => SettleMode::OnSend,
                    },
                    message_format: handover.stamps.message_format(),
                    payload: &[&self.rendered, rest],
                };
                let sent = self.engine.deliver(link, delivery);
                sent.expect("credit is not taken back");
            }
            Outgoing::Respond(link, response, bodies) => {
                let delivery = Delivery {
                    tag: [0; 16],
                    settle_mode: SettleMode::OnSend,
                    message_format: 0,
                    payload: &[&response.encode(&bodies)],
                };
                let sent = self.engine.deliver(link, delivery);
                sent.expect("responses have credit");
                self.inputs.push(Input::Answered(response.bytes()));
            }
            Outgoing::Reply(reply) => self.carry_out(reply),
        }
    }

    fn carry_out(&mut self, reply: Reply) {
        match reply {
            Reply::AcceptLink(link, accept) => self.engine.accept_link(link, accept),
            Reply::SettleIncoming {
                link,
                delivery,
                outcome,
                settled,
            } => {
                self.engine
                    .settle_incoming(link, delivery, &outcome, settled);
            }
            Reply::SettleOutgoing(link, delivery, outcome) => {
                self.engine.settle_outgoing(link, delivery, &outcome);
            }
            Reply::Admitted => self.engine.trust(),
            other => panic!("nobody asked for {other:?}"),
        }
    }
}
