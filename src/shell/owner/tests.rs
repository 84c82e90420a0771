//! The owner with a log in memory.

use std::io;

use super::upkeep::Checkpoint;
use super::*;
use crate::amqp::Event;
use crate::broker::{Input, Inquiry, Origin, Peer, Profile};
use crate::entity::queue::Description;
use crate::entity::{EntityId, Journal as _, Record};
use crate::shell::committer::Sync;
use crate::shell::reader::Reader;
use crate::storage;
use crate::storage::memory::MemoryDisk;

fn owner() -> Owner {
    let disk: SharedDisk = Arc::new(MemoryDisk::new());
    let mut options = storage::Options::new(1);
    options.segment_bytes = 4_096;
    let log = storage::recover(Arc::clone(&disk), options, &mut |_, _| Ok(())).unwrap();
    let (sender, mailbox) = mpsc::channel(limits::MAILBOX_LENGTH);
    Owner::new(Parts {
        broker: Broker::new(1, Profile::Development),
        writer: log.writer,
        clock: Arc::new(Clock::new(Timestamp::EPOCH)),
        reader: Reader::start(Arc::clone(&disk), sender.clone()).unwrap(),
        sender,
        mailbox,
        committer: Committer::start(log.committer, Sync::Always, log.last_frame).unwrap(),
        disk,
        keys_wanted: Arc::default(),
        vitals: Arc::new(Vitals::new()),
        memory: Memory::default(),
        plan: Plan::new(None, None, None),
    })
}

impl Owner {
    /// Writes until a checkpoint is due, and goes on until it is being written.
    async fn write_until_checkpoint(&mut self) {
        while !self.writer.checkpoint_due() {
            let entity = EntityId(1);
            self.writer.append(&Record::EntityDeleted { entity });
            self.seal();
        }
        self.take_checkpoint();
        let sealed = self.sealed;
        let synced = self.progress.wait_for(|progress| sealed <= progress.synced);
        drop(synced.await.unwrap());
        self.take_progress();
        self.take_checkpoint();
    }
}

#[tokio::test]
async fn a_checkpoint_whose_thread_does_not_start_or_panics_is_followed_by_another() {
    let mut owner = owner();
    let usual = owner.upkeep.start_thread;
    owner.upkeep.start_thread = |_, _| Err(io::ErrorKind::WouldBlock.into());
    owner.write_until_checkpoint().await;
    assert!(matches!(owner.upkeep.checkpoint, Checkpoint::None));
    owner.upkeep.start_thread = |_, panicked| {
        let panics = Box::new(|| panic!("as it is to"));
        upkeep::start_thread(panics, panicked)
    };
    for is_written in [false, true] {
        owner.write_until_checkpoint().await;
        assert!(matches!(owner.upkeep.checkpoint, Checkpoint::BeingWritten));
        let Some(Mail::CheckpointWritten(written)) = owner.mailbox.recv().await else {
            panic!("nothing else was sent");
        };
        assert_eq!(written.is_ok(), is_written);
        owner.checkpoint_written(written);
        assert!(matches!(owner.upkeep.checkpoint, Checkpoint::None));
        owner.upkeep.start_thread = usual;
    }
}

#[tokio::test]
async fn calls_that_are_left_unfinished_are_upkeep_which_waits_for_no_timer() {
    let mut owner = owner();
    let now = owner.clock.now();
    owner.step(now, Broker::handle_timeout);
    assert!(!owner.has_upkeep());
    owner.step(now, |broker, around| {
        broker.leave_calls_unfinished(around, ConnectionId(1), 1);
    });
    assert!(owner.has_upkeep());
    owner.step(now, Broker::handle_timeout);
    assert!(!owner.has_upkeep());
}

#[tokio::test]
async fn others_have_their_turn_while_calls_are_unfinished() {
    const MESSAGES: usize = 2 * limits::LOOKS;
    const CALLS: usize = 100;
    /// More mail than the runtime lets a task take that never waits.
    const OTHERS: usize = 150;
    let mut owner = owner();
    let (now, id) = (owner.clock.now(), ConnectionId(1));
    let outbox = Arc::new(Outbox::default());
    owner.take(
        now,
        Mail::Connected(id, Arc::clone(&outbox), Origin::default()),
    );
    owner.step(now, |broker, around| {
        broker.leave_calls_unfinished(around, id, CALLS);
    });
    owner.step(now, |broker, around| broker.fill(around, MESSAGES));
    let mailbox = owner.sender.clone();
    let running = tokio::spawn(owner.run());
    for _ in 0..OTHERS {
        let inquiry = Inquiry {
            peer: Peer::default(),
            host: None,
            token: None,
            path: "q".to_owned(),
            supplementary: Vec::new(),
        };
        let (answer, answered) = oneshot::channel();
        let mail = Mail::Authorize(Box::new(inquiry), answer);
        mailbox.send(mail).await.unwrap();
        answered.await.unwrap().unwrap();
    }
    let mut outgoing = VecDeque::new();
    outbox.take(&mut outgoing);
    let respond = |outgoing: &&Outgoing| matches!(outgoing, Outgoing::Respond(..));
    let done = outgoing.iter().filter(respond).count();
    assert!(
        (1..CALLS).contains(&done),
        "{done} calls have come to their end"
    );
    running.abort();
}

#[tokio::test]
async fn a_message_that_waits_for_the_disk_when_its_connection_ends_is_nobody_s() {
    let mut owner = owner();
    let now = Timestamp::EPOCH;
    let (gone, other) = (ConnectionId(1), ConnectionId(2));
    for id in [gone, other] {
        owner.take(now, Mail::Connected(id, Arc::default(), Origin::default()));
    }
    owner.step(now, |broker, around| {
        let made = broker.ensure_entity(around, "q", Description::default());
        made.unwrap();
        broker.let_receiver_in(around, (gone, LinkId(0)), "q");
        broker.take_word(around, "q", "x");
    });
    assert_eq!(owner.pending_deliveries(gone), [0]);
    owner.step(now, |broker, around| {
        let closed = Event::Closed {
            error: None,
            unsent: Vec::new(),
        };
        broker.apply(around, gone, Input::Event(closed));
    });
    owner.take(now, Mail::Disconnected(gone));
    owner.step(now, |broker, around| {
        broker.let_receiver_in(around, (other, LinkId(0)), "q");
    });
    assert_eq!(
        owner.pending_deliveries(other),
        [0],
        "it is free, and uncounted"
    );
}

impl Owner {
    /// Returns the delivery-counts of the messages that wait for the disk, to be brought to a connection.
    fn pending_deliveries(&self, id: ConnectionId) -> Vec<u32> {
        let pending = self.pending.iter().flatten();
        let delivered = pending.filter_map(|told| match told {
            Told::Reply(routed) if routed.connection == id => match &routed.reply {
                Reply::Deliver(_, handover) => Some(handover.stamps.delivery_count),
                _ => None,
            },
            _ => None,
        });
        delivered.collect()
    }
}
