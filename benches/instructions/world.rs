//! A server without tasks, sockets and files, and its clients.

use jitney_amqp::Config;
use jitney_base::ids::ConnectionId;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::Profile;
use jitney_gateway::Gateway;
use jitney_queue::Description;
use jitney_shard::inline::Inline;

use super::client::Client;

/// A server, and its clients; a client's connection has the client's place as its id.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) clients: Vec<Client>,
    server: Inline,
}

impl World {
    /// A server with these entities.
    pub(crate) fn new(entities: &[(&str, Description)]) -> Self {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let gateway = Gateway::new(1, Profile::Development);
        let server = Inline::start(gateway, now, |gateway, cx| {
            for (path, description) in entities {
                let made = gateway.ensure_entity(cx, path, description.clone());
                made.expect("an entity can be made");
            }
        });
        Self {
            now,
            clients: Vec::new(),
            server,
        }
    }

    /// Connects a client.
    pub(crate) fn connect(&mut self, client: Client) -> usize {
        let at = self.clients.len();
        let config = Config::server(format!("jitney_G{at}"));
        self.server.connect(self.now, id(at), config);
        self.clients.push(client);
        at
    }

    /// Hands the server what its clients have written, and them what it answers.
    pub(crate) fn turn(&mut self) {
        self.now = self.now.after(Millis::from_millis(1));
        for (at, client) in self.clients.iter_mut().enumerate() {
            self.server.receive(id(at), &client.output);
            client.output.clear();
        }
        serve_turn(&mut self.server, self.now);
        for (at, client) in self.clients.iter_mut().enumerate() {
            let output = self.server.output(id(at)).unwrap();
            client.take(output);
            output.clear();
        }
    }
}

/// Does all that the bytes that came in ask for: what is measured.
#[inline(never)]
fn serve_turn(server: &mut Inline, now: Timestamp) {
    server.turn(now);
}

fn id(at: usize) -> ConnectionId {
    ConnectionId(u32::try_from(at).unwrap())
}
