//! The owner with a log in memory.

use std::cell::Cell;

use super::*;
use crate::host::committer::{CommitterHandle, Sync};
use crate::host::mailbox::Mailbox;
use crate::limits;
use jitney_base::memory::Memory;
use jitney_base::time::Millis;
use jitney_broker::access::{Authority, Inquiry, Origin, PeerAddress, Profile};
use jitney_broker::namespace::{Denied, DeniedKind, EntityRefused};
use jitney_gateway::Gateway;
use jitney_gateway::messages::Receive;
use jitney_gateway::request::Requester;
use jitney_journal::Disk;
use jitney_journal::memory::MemoryDisk;
use jitney_queue::{Description, ReceiveMode};
use jitney_shard::{Answer, Outgoing, Pressure, Ready, ReceiveRequest, Recovering, RequestAnswer};

fn owner() -> Owner {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut options = jitney_journal::Options::new(1);
    options.segment_bytes = 4_096;
    let gateway = Gateway::new(1, Profile::Development);
    let recovering = Recovering::recover(gateway, Arc::clone(&disk), options).unwrap();
    let now = Timestamp::EPOCH;
    let ready = recovering.begin(now, Memory::default(), usize::MAX, |_, _| {
        Ok::<(), EntityRefused>(())
    });
    let Ready {
        shard,
        committer,
        last_group,
        ..
    } = ready.unwrap();
    let (sender, mailbox) = mpsc::channel(limits::MAILBOX_LENGTH);
    let (_, control) = mpsc::channel(1);
    Owner::new(OwnerParts {
        shard,
        clock: Arc::new(Clock::new(now)),
        reader: Reader::start(Arc::<dyn Disk>::clone(&disk), sender.clone(), Reader::end).unwrap(),
        sender,
        mailbox,
        control,
        committer: Box::new(CommitterHandle::start(committer, Sync::Always, last_group).unwrap()),
        store: None,
        log: disk,
        keys_wanted: Arc::default(),
        vitals: Arc::new(Vitals::new()),
        traces: None,
    })
}

impl Owner {
    /// Writes until a checkpoint has been begun.
    async fn write_until_checkpoint(&mut self) {
        let (now, mut none) = (Timestamp::EPOCH, Vec::new());
        for count in 1..10_000 {
            let description = Description {
                max_delivery_count: count,
                ..Description::default()
            };
            self.shard.configure(now, |gateway, cx| {
                gateway.ensure_entity(cx, "q", description).unwrap();
            });
            let before = STARTED.with(Cell::get);
            self.turn(now, &mut none);
            while self.shard.waits_for_disk_since().is_some() {
                self.progress.changed().await.unwrap();
                self.turn(now, &mut none);
            }
            if before != STARTED.with(Cell::get) {
                return;
            }
        }
        panic!("no checkpoint was begun");
    }
}

thread_local! {
    /// How many threads for checkpoints a test has begun.
    static STARTED: Cell<u32> = const { Cell::new(0) };
}

#[tokio::test]
async fn a_checkpoint_whose_thread_does_not_start_or_panics_is_followed_by_another() {
    let mut owner = owner();
    owner.start_thread = |_, _| {
        STARTED.with(|started| started.set(started.get() + 1));
        Err(io::ErrorKind::WouldBlock.into())
    };
    owner.write_until_checkpoint().await;
    owner.start_thread = |_, panicked| {
        STARTED.with(|started| started.set(started.get() + 1));
        start_thread(Box::new(|| panic!("as it is to")), panicked)
    };
    for is_written in [false, true] {
        owner.write_until_checkpoint().await;
        let Some(OwnerMessage::Input(Input::CheckpointWritten(written))) =
            owner.mailbox.recv().await
        else {
            panic!("nothing else was sent");
        };
        assert_eq!(written.is_ok(), is_written);
        let written = Input::CheckpointWritten(written);
        owner.shard.handle(Timestamp::EPOCH, written);
        owner.start_thread = |work, panicked| {
            STARTED.with(|started| started.set(started.get() + 1));
            start_thread(work, panicked)
        };
    }
}

#[tokio::test]
async fn an_owner_reports_while_its_store_is_away() {
    let mut owner = owner();
    let (control, of_owner) = mpsc::channel(1);
    owner.control = of_owner;
    let mail = owner.sender.clone();
    owner.shard.handle(Timestamp::EPOCH, Input::StoreAway);
    assert!(!owner.shard.takes_input());
    tokio::spawn(owner.run());
    mail.send(OwnerMessage::Input(Input::Stop)).await.unwrap();
    let mailbox = Mailbox::new(mail, control, 1);
    let pressure = Control::Pressure(Pressure::default());
    mailbox.control(pressure).await.unwrap();
    let report = tokio::time::timeout(Duration::from_secs(30), mailbox.report(1)).await;
    assert!(report.expect("it is asked at once").is_some());
}

#[tokio::test]
async fn others_have_their_turn_while_calls_are_unfinished() {
    const MESSAGES: usize = 2 * jitney_queue::limits::SCAN_BUDGET;
    const CALLS: usize = 100;
    /// More mail than the runtime lets a task take that never waits.
    const OTHERS: usize = 150;
    let mut owner = owner();
    let (now, id) = (owner.clock.now(), ConnectionId(1));
    let outbox = Arc::new(Outbox::default());
    owner.take(
        now,
        OwnerMessage::Connected(id, Arc::clone(&outbox), Origin::default()),
    );
    owner.shard.configure(now, |gateway, cx| {
        gateway.leave_calls_unfinished(cx, id, CALLS);
        gateway.fill(cx, MESSAGES);
    });
    let mailbox = owner.sender.clone();
    let running = tokio::spawn(owner.run());
    for _ in 0..OTHERS {
        let inquiry = Inquiry {
            peer: PeerAddress::default(),
            host: None,
            nowhere: None,
            token: None,
            path: "q".to_owned(),
            supplementary: Vec::new(),
        };
        let (answer, answered) = oneshot::channel();
        let mail = OwnerMessage::Authorize(Box::new(inquiry), answer);
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

/// frozen-between-check-and-send: a server is frozen between the look at its lease and what it sends.
#[tokio::test]
async fn nothing_is_sent_by_an_owner_whose_lease_lapses_in_its_turn() {
    let mut owner = owner();
    let (now, id) = (owner.clock.now(), ConnectionId(1));
    let lease = Arc::new(Lease::default());
    let (_events, events) = watch::channel(StoreEvent::Back);
    owner.store = Some(StoreState {
        parts: StoreParts {
            lease: Arc::clone(&lease),
            events,
        },
        is_lapsed: false,
        is_unknown: false,
    });
    let outbox = Arc::new(Outbox::default());
    let connected = OwnerMessage::Connected(id, Arc::clone(&outbox), Origin::default());
    owner.take(now, connected);
    owner.shard.configure(now, |gateway, cx| {
        gateway.leave_calls_unfinished(cx, id, 1);
    });
    let sent = || {
        let mut outgoing = VecDeque::new();
        outbox.take(&mut outgoing);
        outgoing.len()
    };
    // The server is frozen after the look, and others have the namespace when it continues.
    for _ in 0..10 {
        lease.hold();
        owner.look_at_lease(now);
        owner.shard.handle_timeout(now);
        owner.shard.finish_turn(now);
        lease.lapse();
        owner.carry_out_all(now);
    }
    assert_eq!(sent(), 0);
    let (asker, mut answered) = oneshot::channel();
    let request = mailbox::next_request();
    owner.requests.insert(request, Asker::Request(asker));
    let answer = RequestAnswer {
        answer: Err(Denied::new(DeniedKind::Full, "", "")),
        bodies: Vec::new(),
    };
    owner.carry_out(now, Output::Answer(request, Answer::Request(answer)));
    assert!(answered.try_recv().is_err(), "it is not answered");
    // There is a beat again: nothing is lost.
    lease.hold();
    owner.turn(now, &mut Vec::new());
    assert_ne!(sent(), 0);
}

impl Owner {
    /// Begins a receive from `q`, which waits for long.
    fn begin_to_receive(&mut self, mode: ReceiveMode) -> oneshot::Receiver<ReceiveAnswer> {
        let wanted = ReceiveRequest {
            requester: Requester {
                host: None,
                authority: Authority::everything(),
            },
            receive: Receive {
                path: "q".to_owned(),
                mode,
                wait: Millis::from_secs(60),
            },
        };
        let (asker, answer) = oneshot::channel();
        let request = mailbox::next_request();
        let until = Instant::now() + Duration::from_mins(1);
        let mail = OwnerMessage::Receive(request, Box::new(wanted), until, asker);
        self.take(self.clock.now(), mail);
        answer
    }

    fn send_to_queue(&mut self) {
        self.shard.configure(self.clock.now(), |gateway, cx| {
            let _ = gateway.ensure_entity(cx, "q", Description::default());
            gateway.take_word(cx, "q", "x");
        });
    }

    /// Takes turns until all is durable.
    async fn settle(&mut self) {
        let mut none = Vec::new();
        self.turn(self.clock.now(), &mut none);
        while self.shard.waits_for_disk_since().is_some() {
            self.progress.changed().await.unwrap();
            self.turn(self.clock.now(), &mut none);
        }
        self.turn(self.clock.now(), &mut none);
    }
}

#[tokio::test]
async fn a_message_whose_client_has_left_is_given_back() {
    let mut owner = owner();
    owner.send_to_queue();
    drop(owner.begin_to_receive(ReceiveMode::PeekLock));
    owner.settle().await;
    let mut answer = owner.begin_to_receive(ReceiveMode::PeekLock);
    owner.settle().await;
    let Ok(ReceiveAnswer::Message(message)) = answer.try_recv() else {
        panic!("the message is there");
    };
    assert_eq!(message.handed_out.handover.stamps.delivery_count, 0);
}

/// frozen-between-check-and-send: the message of a receive is kept until the server may answer again.
#[tokio::test]
async fn a_receive_is_answered_when_the_lease_holds_again_or_not_at_all() {
    let mut owner = owner();
    let lease = Arc::new(Lease::default());
    let (_events, events) = watch::channel(StoreEvent::Back);
    owner.store = Some(StoreState {
        parts: StoreParts {
            lease: Arc::clone(&lease),
            events,
        },
        is_lapsed: false,
        is_unknown: false,
    });
    lease.hold();
    owner.send_to_queue();
    let mut answer = owner.begin_to_receive(ReceiveMode::PeekLock);
    let mut waiting = owner.begin_to_receive(ReceiveMode::ReceiveAndDelete);
    let now = owner.clock.now();
    owner.shard.finish_turn(now);
    owner.carry_out_all(now);
    // The server is frozen after the look at its lease, and the disk is done meanwhile.
    let progress = owner.committer.flush();
    owner.committer.hand_over();
    if let Some(progress) = progress {
        owner.learn(now, progress);
    }
    while owner.shard.waits_for_disk_since().is_some() {
        owner.progress.changed().await.unwrap();
        let progress = *owner.progress.borrow_and_update();
        owner.learn(now, progress);
    }
    lease.lapse();
    owner.carry_out_all(now);
    assert!(answer.try_recv().is_err());
    owner.turn(now, &mut Vec::new());
    let abandoned = waiting.try_recv();
    assert!(matches!(
        abandoned,
        Err(oneshot::error::TryRecvError::Closed)
    ));
    lease.hold();
    owner.turn(now, &mut Vec::new());
    assert!(matches!(answer.try_recv(), Ok(ReceiveAnswer::Message(_))));
}
