//! The workloads by their names: each is what so many messages make the core do.

use jitney_message::BATCH_FORMAT;
use jitney_queue::{Description, EntityKind};

use super::client::{Client, Settling};
use super::messages::{Extras, batch, message, peek};
use super::world::World;

/// Something that is measured.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    run: fn(usize),
}

/// All of them, the canonical one first.
pub(crate) const ALL: [Workload; 10] = [
    Workload {
        name: "pair-1k",
        title: "send, receive and complete 1 KiB, 64 at a time, completed as ranges",
        run: |count| Plan::default().run(count),
    },
    Workload {
        name: "pair-1k-singly",
        title: "the same, each message completed by itself and answered",
        run: |count| {
            Plan {
                settling: Settling::Singly,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "pair-1k-alone",
        title: "the same, one message at a time",
        run: |count| {
            Plan {
                settling: Settling::Singly,
                at_a_time: 1,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "pair-100",
        title: "send, receive and complete 100 B, 64 at a time, completed as ranges",
        run: |count| {
            Plan {
                size: 100,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "batch-100",
        title: "send as batch messages of 100, receive and complete 1 KiB",
        run: |count| {
            Plan {
                at_a_time: 100,
                sending: Sending::Batch,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "topic-10",
        title: "publish 1 KiB to a topic, receive and complete from each of 10 subscriptions",
        run: |count| {
            Plan {
                subscriptions: 10,
                at_a_time: 16,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "sessions-8",
        title: "send, receive and complete 1 KiB in 8 message sessions in turn",
        run: |count| {
            Plan {
                sessions: 8,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "receive-and-delete",
        title: "send, receive and delete 1 KiB, 64 at a time",
        run: |count| {
            Plan {
                settling: Settling::OnSend,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "schedule",
        title: "schedule 1 KiB 10 ms ahead, receive and complete when they are due",
        run: |count| {
            Plan {
                sending: Sending::Scheduled,
                ..Plan::default()
            }
            .run(count);
        },
    },
    Workload {
        name: "peek",
        title: "look at messages of 1 KiB with $management, 100 in each request",
        run: run_peek,
    },
];

/// Runs a workload with so many messages.
pub(crate) fn run(name: &str, count: usize) {
    let workload = ALL.iter().find(|workload| workload.name == name);
    (workload.expect("a workload of this name").run)(count);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    Plain,
    /// All that is sent at a time as one message.
    Batch,
    Scheduled,
}

/// Messages are sent, received and settled, some at a time.
struct Plan {
    size: usize,
    at_a_time: usize,
    sending: Sending,
    settling: Settling,
    /// Subscriptions of the topic that is sent to; 0 for a queue.
    subscriptions: usize,
    /// Message sessions; 0 for a queue without.
    sessions: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            size: 1024,
            at_a_time: 64,
            sending: Sending::Plain,
            settling: Settling::Ranges,
            subscriptions: 0,
            sessions: 0,
        }
    }
}

/// Credit of each receiver.
const CREDIT: u32 = 1_000;
/// How far ahead messages are scheduled, milliseconds: some turns.
const SCHEDULED_AHEAD: i64 = 10;

impl Plan {
    fn run(&self, count: usize) {
        let mut world = self.world();
        let mut sender = Client::new("sender");
        let handle = sender.attach_sender("entity");
        let sender = world.connect(sender);
        let mut receiver = Client::new("receiver");
        for (node, session) in self.sources() {
            receiver.attach_receiver(&node, self.settling, session.as_deref(), CREDIT);
        }
        let receiver = world.connect(receiver);
        world.turn();
        world.turn();
        let copies = self.subscriptions.max(1);
        let mut sent = 0;
        let mut idle = 0;
        loop {
            let client = &mut world.clients[receiver];
            client.settle(self.settling);
            client.top_up();
            let answers = client.answered;
            let is_settled = self.settling == Settling::OnSend || answers == count * copies;
            let received = client.received;
            if is_settled && received == count * copies {
                break;
            }
            let number = self.at_a_time.min(count - sent);
            self.send(&mut world, sender, handle, sent, number);
            sent += number;
            world.turn();
            let client = &world.clients[receiver];
            let is_idle = number == 0 && client.received == received && client.answered == answers;
            idle = if is_idle { idle + 1 } else { 0 };
            assert!(idle < 100, "{received} of {count} messages have come");
        }
        let expected = match self.sending {
            Sending::Batch => count.div_ceil(self.at_a_time),
            Sending::Plain | Sending::Scheduled => count,
        };
        assert_eq!(world.clients[sender].accepted, expected);
    }

    fn world(&self) -> World {
        let of_kind = |kind| Description {
            kind,
            requires_session: self.sessions > 0,
            ..Description::default()
        };
        if self.subscriptions == 0 {
            return World::new(&[("entity", of_kind(EntityKind::Queue))]);
        }
        let sources = self.sources();
        let mut entities = vec![("entity", of_kind(EntityKind::Topic))];
        for (path, _) in &sources {
            entities.push((path, of_kind(EntityKind::Subscription)));
        }
        World::new(&entities)
    }

    /// The nodes that are received from, with the message sessions.
    fn sources(&self) -> Vec<(String, Option<String>)> {
        if self.subscriptions > 0 {
            let path = |at| (format!("entity/Subscriptions/subscription-{at}"), None);
            return (0..self.subscriptions).map(path).collect();
        }
        let queue = || "entity".to_owned();
        if self.sessions > 0 {
            let session = |at| (queue(), Some(format!("session-{at}")));
            return (0..self.sessions).map(session).collect();
        }
        vec![(queue(), None)]
    }

    fn send(&self, world: &mut World, sender: usize, handle: u32, from: usize, number: usize) {
        let due = world.now.as_millis() + SCHEDULED_AHEAD;
        let encode = |id: usize| {
            let session = id.checked_rem(self.sessions);
            let extras = Extras {
                session: session.map(|at| format!("session-{at}")),
                due: (self.sending == Sending::Scheduled).then_some(due),
            };
            message(id, self.size, &extras)
        };
        let messages: Vec<Vec<u8>> = (from..from + number).map(encode).collect();
        let client = &mut world.clients[sender];
        match self.sending {
            Sending::Batch if number > 0 => client.send(handle, &batch(&messages), BATCH_FORMAT),
            Sending::Batch => {}
            Sending::Plain | Sending::Scheduled => {
                for message in &messages {
                    client.send(handle, message, 0);
                }
            }
        }
    }
}

/// Messages in each peek.
const PEEKED: usize = 100;

fn run_peek(count: usize) {
    let mut world = World::new(&[("entity", Description::default())]);
    let mut client = Client::new("client");
    let sender = client.attach_sender("entity");
    let requests = client.attach_sender("entity/$management");
    client.attach_receiver("entity/$management", Settling::OnSend, None, CREDIT);
    for id in 0..PEEKED {
        let message = message(id, 1024, &Extras::default());
        client.send(sender, &message, 0);
    }
    let client = world.connect(client);
    world.turn();
    world.turn();
    for id in 0..count.div_ceil(PEEKED) {
        let request = peek(id, "here", PEEKED);
        world.clients[client].send(requests, &request, 0);
        world.clients[client].top_up();
        world.turn();
    }
    assert_eq!(world.clients[client].received, count.div_ceil(PEEKED));
}
