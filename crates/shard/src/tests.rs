//! A shard with a log in memory.

use std::sync::Arc;

use super::*;
use crate::limits;
use jitney_amqp::{Event as Happened, LinkId};
use jitney_base::time::Millis;
use jitney_broker::access::PeerAddress;
use jitney_broker::access::Profile;
use jitney_broker::namespace::administration::ReadNamespace;
use jitney_broker::namespace::{JobAction, JobDescription, JobState, Lack, Room, Selection};
use jitney_gateway::messages::{Receive, SendMessages, SentAs};
use jitney_gateway::operations::{JobView, ListJobs, StartJob};
use jitney_gateway::request::{Request, Requester};
use jitney_journal::memory::MemoryDisk;
use jitney_journal::{Committer, Disk, Frame, LogReader as _, Options, Space};
use jitney_queue::{Description, ReceiveMode};

const NOW: Timestamp = Timestamp::EPOCH;

/// A shard and its log, which a test makes durable when it wants.
struct Bench {
    shard: Shard,
    disk: Arc<MemoryDisk>,
    committer: Committer,
    frames: Vec<Frame>,
    /// What the shard wants done, beside appending and syncing.
    outputs: Vec<Output>,
}

impl Bench {
    /// A shard with the queue `q`, durable.
    fn new() -> Self {
        let disk = Arc::new(MemoryDisk::new());
        let mut options = Options::new(1);
        options.segment_bytes = 4_096;
        let gateway = Gateway::new(1, Profile::Development);
        let shared: Arc<dyn Disk> = Arc::<MemoryDisk>::clone(&disk);
        let recovering = Recovering::recover(gateway, shared, options).unwrap();
        let ready = recovering.begin(NOW, Memory::default(), usize::MAX, |gateway, cx| {
            gateway
                .ensure_entity(cx, "q", Description::default())
                .map(drop)
        });
        let ready = ready.unwrap();
        let mut bench = Self {
            shard: ready.shard,
            disk,
            committer: ready.committer,
            frames: Vec::new(),
            outputs: Vec::new(),
        };
        bench.turn();
        bench.sync();
        bench.outputs.clear();
        bench
    }

    fn turn(&mut self) {
        self.turn_at(NOW);
    }

    /// Makes durable what no client waits for, too.
    fn sync_all(&mut self) {
        self.turn_at(NOW.after(limits::HELD_TIME_MAX));
        self.sync();
    }

    fn turn_at(&mut self, now: Timestamp) {
        self.shard.handle_timeout(now);
        self.shard.finish_turn(now);
        while let Some(output) = self.shard.poll_output() {
            match output {
                Output::Commit(frame) => self.frames.push(frame),
                Output::Sync => {}
                other => self.outputs.push(other),
            }
        }
    }

    /// Makes durable what was sealed, and does what comes of it.
    fn sync(&mut self) {
        self.committer.write(&self.frames).unwrap();
        self.committer.sync().unwrap();
        self.frames.clear();
        let synced = self.committer.synced();
        let durable = synced;
        self.shard.handle(NOW, Input::Durable { durable, synced });
        self.turn();
    }

    fn connect(&mut self, id: u32) -> ConnectionId {
        let id = ConnectionId(id);
        self.shard
            .handle(NOW, Input::Connected(id, Origin::default()));
        id
    }

    /// Lets a receiver of `q` in, with credit for one message.
    fn receive(&mut self, id: ConnectionId) {
        self.shard.configure(NOW, |gateway, cx| {
            gateway.attach_receiver(cx, id, LinkId(0), "q");
        });
    }

    /// Begins a receive from `q` without a link, which waits for a second.
    fn receive_unlinked(&mut self, request: u64, mode: ReceiveMode) {
        let path = "q".to_owned();
        let wait = Millis::from_secs(1);
        let wanted = ReceiveRequest {
            requester: Requester {
                host: None,
                authority: Authority::everything(),
            },
            receive: Receive { path, mode, wait },
        };
        let wanted = Box::new(wanted);
        self.shard
            .handle(NOW, Input::Receive(RequestId(request), wanted));
    }

    /// Takes what became of requests: the word of a message, or what there was in its place.
    fn ended(&mut self) -> Vec<(u64, String)> {
        let outputs = std::mem::take(&mut self.outputs).into_iter();
        let ended = outputs.filter_map(|output| match output {
            Output::Answer(request, Answer::Received(answer)) => {
                let shown = match answer {
                    ReceiveAnswer::Message(message) => {
                        String::from_utf8_lossy(&message.bytes[5..]).into_owned()
                    }
                    ReceiveAnswer::Nothing => "nothing".to_owned(),
                    ReceiveAnswer::Refused(denied) => denied.text,
                };
                Some((request.0, shown))
            }
            Output::Abandon(request) => Some((request.0, "abandoned".to_owned())),
            other => {
                self.outputs.push(other);
                None
            }
        });
        ended.collect()
    }

    fn send(&mut self, word: &str) {
        self.shard
            .configure(NOW, |gateway, cx| gateway.take_word(cx, "q", word));
    }

    /// Does the read that the shard wants.
    fn read(&mut self) {
        let is_read = |output: &Output| matches!(output, Output::Read(_));
        let at = self.outputs.iter().position(is_read).unwrap();
        let Output::Read(request) = self.outputs.remove(at) else {
            panic!("it was found");
        };
        let done = read(&*self.disk, request).unwrap();
        self.shard.handle(NOW, Input::Read(done));
        self.turn();
    }

    /// Changes the first letter of a word on the disk.
    fn damage(&self, word: &str) {
        let word = word.as_bytes();
        for (segment, length) in self.disk.segments().unwrap() {
            let mut bytes = vec![0; usize::try_from(length).unwrap()];
            self.disk.read(segment, 0, &mut bytes).unwrap();
            let places = bytes.windows(word.len());
            let places = (0..).zip(places).filter(|(_, bytes)| *bytes == word);
            for (at, _) in places {
                self.disk.write(segment, at, &[b"#"]).unwrap();
            }
        }
    }

    /// Lets the bodies of messages be read from the disk each time.
    fn cache_nothing(&mut self) {
        let nothing = Pressure {
            cache_bytes: 0,
            is_full: false,
        };
        self.shard.handle(NOW, Input::Pressure(nothing));
    }

    /// Takes what was sent to a connection.
    fn sent(&mut self, id: ConnectionId) -> Vec<Outgoing> {
        let outgoing = self.shard.outgoing(id);
        outgoing.map(std::mem::take).unwrap_or_default().into()
    }

    /// Takes the delivery-counts of the messages that were sent to a connection.
    fn deliveries(&mut self, id: ConnectionId) -> Vec<u32> {
        let sent = self.sent(id).into_iter();
        let counts = sent.filter_map(|outgoing| match outgoing {
            Outgoing::Deliver(_, handover, _) => Some(handover.stamps.delivery_count),
            Outgoing::Close(_) | Outgoing::Reply(_) | Outgoing::Respond(..) => None,
        });
        counts.collect()
    }

    /// Begins a job that deletes all messages of `q`.
    fn begin_job(&mut self, request: RequestId) {
        self.begin(request, JobAction::Delete);
    }

    fn begin(&mut self, request: RequestId, action: JobAction) {
        let description = JobDescription {
            selection: Selection::default(),
            action,
            most: None,
        };
        self.operate(
            request,
            StartJob {
                path: "q".to_owned(),
                description,
            },
        );
    }

    fn operate<R: Request>(&mut self, request: RequestId, operation: R) {
        let inquiry = Inquiry {
            peer: PeerAddress::default(),
            host: None,
            nowhere: None,
            token: None,
            path: String::new(),
            supplementary: Vec::new(),
        };
        let requester = Requester {
            host: None,
            authority: self.shard.authorize(NOW, &inquiry).unwrap(),
        };
        let call = Call::new(requester, operation);
        self.shard
            .handle(NOW, Input::Request(request, Box::new(call)));
    }

    /// Returns all jobs as an operator sees them, the newest first, after they have had some turns.
    fn jobs(&mut self) -> Vec<JobView> {
        for _ in 0..10 {
            self.turn();
            self.sync();
        }
        self.outputs.clear();
        self.operate(RequestId(1_000), ListJobs { before: None });
        self.turn();
        self.sync();
        let answer = self.outputs.drain(..).find_map(|output| match output {
            Output::Answer(_, Answer::Request(answer)) => answer.of::<ListJobs>(),
            _ => None,
        });
        answer.unwrap().answer.unwrap().jobs
    }

    /// Changes an entity until a checkpoint is to be written.
    fn write_until_checkpoint(&mut self) -> CheckpointTask {
        for count in 1..10_000 {
            let description = Description {
                max_delivery_count: count,
                ..Description::default()
            };
            self.shard.configure(NOW, |gateway, cx| {
                gateway.ensure_entity(cx, "q", description).unwrap();
            });
            self.turn();
            self.sync();
            let is_task = |output: &Output| matches!(output, Output::WriteCheckpoint(_));
            if let Some(at) = self.outputs.iter().position(is_task)
                && let Output::WriteCheckpoint(task) = self.outputs.remove(at)
            {
                return *task;
            }
        }
        panic!("no checkpoint is due");
    }
}

#[test]
fn a_checkpoint_that_fails_is_followed_by_another() {
    let mut bench = Bench::new();
    drop(bench.write_until_checkpoint());
    let failed = jitney_journal::Error::Full;
    bench
        .shard
        .handle(NOW, Input::CheckpointWritten(Err(failed)));
    let task = bench.write_until_checkpoint();
    let written = task.write(&*bench.disk);
    bench.shard.handle(NOW, Input::CheckpointWritten(written));
    assert_eq!(bench.disk.checkpoints().unwrap().len(), 1);
    drop(bench.write_until_checkpoint());
}

#[test]
fn a_checkpoint_has_no_step_of_a_job_that_the_log_before_it_has_not() {
    let mut bench = Bench::new();
    for request in 1..10_000 {
        bench.begin_job(RequestId(request));
        // The job begins, and has its first step in the same turn.
        bench.turn();
        bench.sync();
        let is_task = |output: &Output| matches!(output, Output::WriteCheckpoint(_));
        if bench.outputs.iter().any(is_task) {
            return;
        }
    }
    panic!("no checkpoint is due");
}

#[test]
fn where_there_is_no_room_messages_are_deleted_and_other_jobs_say_why_they_wait() {
    let mut bench = Bench::new();
    let moving = JobAction::Move {
        to: Some("q".to_owned()),
        action: None,
        body: None,
    };
    bench.send("x");
    bench.turn();
    bench.sync();
    let pressure = |is_full| {
        let cache_bytes = usize::MAX;
        Input::Pressure(Pressure {
            cache_bytes,
            is_full,
        })
    };
    bench.shard.handle(NOW, pressure(true));
    // The shard looks at its memory at the end of a turn.
    bench.turn();
    bench.begin(RequestId(1), moving);
    let waiting = bench.jobs().remove(0);
    assert_eq!(bench.shard.room(), Room::None(Lack::Memory));
    assert!(matches!(
        bench.shard.shortage(),
        Some(Shortage::Memory { .. })
    ));
    let refused = bench
        .shard
        .gateway
        .namespaces()
        .check_room("", "none is taken");
    let text = refused.unwrap_err().text;
    assert_eq!(text, "The broker's memory is full: none is taken.");
    assert_eq!(
        (waiting.job.state, waiting.job.changed),
        (JobState::Running, 0)
    );
    let why = waiting.waits.unwrap();
    assert!(
        why.contains("raise --memory-limit") && why.contains("'jitney purge'"),
        "{why}"
    );
    bench.begin_job(RequestId(2));
    let jobs = bench.jobs();
    assert_eq!(
        (jobs[0].job.state, jobs[0].job.changed),
        (JobState::Completed, 1)
    );
    assert_eq!(jobs[0].waits, None);
    assert_eq!(jobs[1].job.state, JobState::Running);
    bench.shard.handle(NOW, pressure(false));
    let jobs = bench.jobs();
    assert_eq!(
        (jobs[1].job.state, &jobs[1].waits),
        (JobState::Completed, &None)
    );
    assert_eq!(bench.shard.shortage(), None);
}

#[test]
fn a_shortage_is_told_with_what_is_there_and_what_is_needed() {
    let (free, needed) = (20 << 20, 128 << 20);
    let disk = Shortage::Disk(Some(Space { free, needed }));
    assert_eq!(disk.figures(), "20 MiB are free, 128 MiB are needed");
    let memory = |counted, most| Shortage::Memory { counted, most };
    assert_eq!(
        memory(120 << 20, 112 << 20).figures(),
        "120 MiB are counted, 112 MiB may be"
    );
    for unknown in [memory(0, 112 << 20), Shortage::Disk(None), Shortage::Store] {
        assert_eq!(unknown.figures(), "");
    }
}

#[test]
fn unfinished_calls_wait_for_no_timer() {
    let mut bench = Bench::new();
    assert!(!matches!(
        bench.shard.poll_timeout(),
        Some((_, Reason::Unfinished))
    ));
    bench.connect(1);
    bench.shard.configure(NOW, |gateway, cx| {
        gateway.leave_calls_unfinished(cx, ConnectionId(1), 1);
    });
    let due = bench.shard.poll_timeout();
    assert_eq!(due, Some((Timestamp::EPOCH, Reason::Unfinished)));
    bench.shard.handle_timeout(NOW);
    assert_ne!(bench.shard.poll_timeout(), due);
}

#[test]
fn a_delivery_waits_for_its_group() {
    let mut bench = Bench::new();
    let id = bench.connect(1);
    bench.receive(id);
    bench.send("x");
    bench.turn();
    assert!(bench.sent(id).is_empty());
    assert!(bench.shard.waits_for_disk_since().is_some());
    bench.sync();
    assert_eq!(bench.deliveries(id), [0]);
    assert_eq!(bench.shard.waits_for_disk_since(), None);
}

#[test]
fn a_message_that_waits_for_the_disk_when_its_connection_ends_is_returned() {
    let mut bench = Bench::new();
    let (gone, other) = (bench.connect(1), bench.connect(2));
    bench.receive(gone);
    bench.send("x");
    bench.turn();
    let closed = Report::Event(Happened::Closed {
        error: None,
        unsent: Vec::new(),
    });
    bench.shard.handle(NOW, Input::Reports(gone, vec![closed]));
    bench
        .shard
        .handle(NOW, Input::Disconnected(gone, VecDeque::new()));
    bench.receive(other);
    bench.turn();
    bench.sync();
    assert_eq!(bench.deliveries(other), [0], "it is free, and uncounted");
}

#[test]
fn replies_behind_one_whose_bytes_are_read_keep_their_order() {
    let mut bench = Bench::new();
    let id = bench.connect(1);
    bench.send("first");
    bench.sync_all();
    bench.cache_nothing();
    bench.receive(id);
    bench.turn();
    bench.sync();
    assert!(bench.sent(id).is_empty());
    let drained = QueuedReply {
        connection: id,
        durable_after: 0,
        reply: Reply::Drained(LinkId(0), 1),
    };
    bench.shard.release(drained);
    assert!(bench.sent(id).is_empty(), "it waits for the delivery");
    bench.read();
    let sent = bench.sent(id);
    let [
        Outgoing::Deliver(_, _, body),
        Outgoing::Reply(Reply::Drained(..)),
    ] = &sent[..]
    else {
        panic!("{sent:?}");
    };
    let word: &[u8] = b"first";
    assert!(body.windows(word.len()).any(|bytes| bytes == word));
}

#[test]
fn a_receiver_pays_no_credit_for_a_message_whose_bytes_are_damaged() {
    let mut bench = Bench::new();
    let id = bench.connect(1);
    bench.send("first");
    bench.send("second");
    bench.sync_all();
    bench.cache_nothing();
    bench.damage("first");
    bench.receive(id);
    bench.turn();
    bench.read();
    bench.sync();
    // The second message is on its way, with the same credit.
    bench.read();
    assert_eq!(bench.deliveries(id), [0]);
}

#[test]
fn records_that_no_client_waits_for_are_synced_with_the_next_or_in_time() {
    let mut bench = Bench::new();
    let id = bench.connect(1);
    bench.send("no client waits for this");
    bench.turn();
    assert!(bench.frames.is_empty());
    let in_time = NOW.after(limits::HELD_TIME_MAX);
    let due = bench.shard.poll_timeout();
    assert_eq!(due, Some((in_time, Reason::Held)));
    bench.receive(id);
    bench.turn();
    assert_eq!(bench.frames.len(), 1, "a delivery waits for it");
    assert!(!matches!(
        bench.shard.poll_timeout(),
        Some((_, Reason::Held))
    ));
    bench.sync();
    assert_eq!(bench.deliveries(id), [0]);
    bench.send("no client waits for this either");
    bench.turn();
    bench.turn();
    assert!(bench.frames.is_empty());
    bench.turn_at(in_time);
    assert_eq!(bench.frames.len(), 1, "it is time");
}

#[test]
fn what_is_held_is_sealed_when_it_is_large_and_when_the_shard_stops() {
    let mut bench = Bench::new();
    while bench.frames.is_empty() {
        assert!(bench.shard.journal().open_bytes() < limits::HELD_BYTES_MAX);
        bench.send(&"x".repeat(250));
        bench.turn();
    }
    bench.sync();
    bench.send("small");
    bench.turn();
    assert!(bench.frames.is_empty());
    bench.shard.handle(NOW, Input::Stop);
    bench.turn();
    assert_eq!(bench.frames.len(), 1);
    assert!(bench.shard.is_stopped());
}

#[test]
fn nothing_leaves_while_the_store_is_away_and_all_of_it_when_it_is_back() {
    let mut bench = Bench::new();
    let id = bench.connect(1);
    bench.receive(id);
    bench.send("x");
    bench.turn();
    bench.shard.handle(NOW, Input::AppendUnknown { group: 2 });
    assert!(!bench.shard.takes_input());
    assert_eq!(bench.shard.room(), Room::None(Lack::Store));
    bench.sync();
    assert!(bench.sent(id).is_empty());
    assert_eq!(bench.shard.poll_timeout(), None);
    bench.shard.handle(NOW, Input::StoreBack);
    assert_eq!(bench.deliveries(id), [0]);
    assert!(bench.shard.takes_input());
}

#[test]
fn a_fenced_shard_answers_nothing_and_closes_its_connections() {
    let mut bench = Bench::new();
    let id = bench.connect(1);
    bench.receive(id);
    bench.send("x");
    let inquiry = Inquiry {
        peer: PeerAddress::default(),
        host: None,
        nowhere: None,
        token: None,
        path: String::new(),
        supplementary: Vec::new(),
    };
    let authority = bench.shard.authorize(NOW, &inquiry).unwrap();
    let ask = |request: u64| {
        let requester = Requester {
            host: None,
            authority: authority.clone(),
        };
        let call = Call::new(requester, ReadNamespace);
        Input::Request(RequestId(request), Box::new(call))
    };
    bench.shard.handle(NOW, ask(1));
    bench.turn();
    bench.shard.handle(NOW, Input::AppendFenced);
    bench.shard.handle(NOW, ask(2));
    bench.sync();
    let sent = bench.sent(id);
    assert!(matches!(&sent[..], [Outgoing::Close(_)]), "{sent:?}");
    let abandoned = bench.outputs.iter().filter_map(|output| match output {
        Output::Abandon(request) => Some(request.0),
        Output::Answer(..) => panic!("{output:?}"),
        _ => None,
    });
    assert_eq!(abandoned.collect::<Vec<_>>(), [1, 2]);
    let late = bench.connect(2);
    bench.turn();
    assert!(matches!(&bench.sent(late)[..], [Outgoing::Close(_)]));
}

fn ends(of: &[(u64, &str)]) -> Vec<(u64, String)> {
    let all = of.iter();
    all.map(|&(request, end)| (request, end.to_owned()))
        .collect()
}

#[test]
fn a_receive_waits_for_its_group_and_for_its_bytes() {
    for mode in [ReceiveMode::PeekLock, ReceiveMode::ReceiveAndDelete] {
        let mut bench = Bench::new();
        bench.receive_unlinked(1, mode);
        bench.send("first");
        bench.turn();
        assert!(bench.ended().is_empty());
        bench.sync();
        assert_eq!(bench.ended(), ends(&[(1, "first")]));
        let mut bench = Bench::new();
        bench.send("second");
        bench.sync_all();
        bench.cache_nothing();
        bench.receive_unlinked(2, mode);
        bench.turn();
        bench.sync();
        assert!(bench.ended().is_empty());
        bench.read();
        assert_eq!(bench.ended(), ends(&[(2, "second")]));
    }
}

#[test]
fn a_receive_takes_another_message_if_the_bytes_of_the_first_are_damaged() {
    for mode in [ReceiveMode::PeekLock, ReceiveMode::ReceiveAndDelete] {
        let mut bench = Bench::new();
        bench.send("first");
        bench.send("second");
        bench.sync_all();
        bench.cache_nothing();
        bench.damage("first");
        bench.receive_unlinked(1, mode);
        bench.turn();
        bench.sync();
        bench.read();
        bench.sync();
        bench.read();
        assert_eq!(bench.ended(), ends(&[(1, "second")]));
        assert_eq!(bench.shard.statistics(Timestamp::EPOCH, 0).damaged, 1);
    }
}

#[test]
fn a_receive_ends_when_the_store_is_away_and_one_that_has_its_message_does_not() {
    let mut bench = Bench::new();
    for request in 1..=2 {
        bench.receive_unlinked(request, ReceiveMode::ReceiveAndDelete);
    }
    bench.send("first");
    bench.turn();
    bench.shard.handle(NOW, Input::StoreAway);
    bench.turn();
    assert_eq!(bench.ended(), ends(&[(2, "abandoned")]));
    bench.sync();
    assert!(bench.ended().is_empty());
    bench.shard.handle(NOW, Input::StoreBack);
    bench.turn();
    bench.read();
    assert_eq!(bench.ended(), ends(&[(1, "first")]));
    // What comes later is free.
    bench.send("second");
    bench.sync_all();
    bench.receive_unlinked(3, ReceiveMode::ReceiveAndDelete);
    bench.turn();
    bench.sync();
    assert_eq!(bench.ended(), ends(&[(3, "second")]));
}

#[test]
fn bytes_that_were_read_for_a_receive_while_the_store_was_away_stay_until_it_is_answered() {
    let mut bench = Bench::new();
    bench.send("first");
    bench.sync_all();
    bench.cache_nothing();
    bench.receive_unlinked(1, ReceiveMode::ReceiveAndDelete);
    bench.turn();
    bench.sync();
    // From now on nothing but the read needs the first segment: the second checkpoint begins behind it.
    for _ in 0..2 {
        let written = bench.write_until_checkpoint().write(&*bench.disk);
        bench.shard.handle(NOW, Input::CheckpointWritten(written));
        bench.turn();
    }
    bench.send("second");
    bench.turn_at(NOW.after(limits::HELD_TIME_MAX));
    bench.shard.handle(NOW, Input::StoreAway);
    bench.read();
    bench.shard.handle(NOW, Input::StoreBack);
    bench.turn();
    let is_removed = |bench: &Bench| {
        let mut outputs = bench.outputs.iter();
        outputs.any(|output| matches!(output, Output::RemoveSegments(_)))
    };
    assert!(!is_removed(&bench), "{:?}", bench.outputs);
    bench.sync();
    assert!(!is_removed(&bench), "{:?}", bench.outputs);
    bench.read();
    assert_eq!(bench.ended(), ends(&[(1, "first")]));
    assert!(is_removed(&bench), "nothing else kept it");
}

#[test]
fn an_answer_to_a_receive_that_was_kept_needs_no_bytes_of_the_log() {
    let mut bench = Bench::new();
    bench.send("first");
    bench.receive_unlinked(1, ReceiveMode::ReceiveAndDelete);
    bench.turn();
    bench.sync();
    let is_answer = |output: &Output| matches!(output, Output::Answer(..));
    let at = bench.outputs.iter().position(is_answer).unwrap();
    let Output::Answer(request, Answer::Received(ReceiveAnswer::Message(message))) =
        bench.outputs.remove(at)
    else {
        panic!("a message was handed out");
    };
    bench.cache_nothing();
    bench.shard.keep_received(request, *message);
    bench.sync();
    assert_eq!(bench.ended(), ends(&[(1, "first")]));
}

#[test]
fn a_fenced_shard_abandons_its_receives_and_stops() {
    let mut bench = Bench::new();
    for request in 1..=2 {
        bench.receive_unlinked(request, ReceiveMode::PeekLock);
    }
    bench.send("x");
    bench.turn();
    bench.shard.handle(NOW, Input::AppendFenced);
    bench.shard.handle(NOW, Input::Stop);
    bench.receive_unlinked(3, ReceiveMode::PeekLock);
    bench.turn();
    let mut ended = bench.ended();
    ended.sort_unstable();
    let all = [(1, "abandoned"), (2, "abandoned"), (3, "abandoned")];
    assert_eq!(ended, ends(&all));
    assert!(bench.shard.is_stopped());
}

#[test]
fn a_shard_that_stops_answers_its_receives_first() {
    let mut bench = Bench::new();
    for request in 1..=2 {
        bench.receive_unlinked(request, ReceiveMode::ReceiveAndDelete);
    }
    bench.send("x");
    bench.turn();
    bench.shard.handle(NOW, Input::Stop);
    bench.turn();
    assert_eq!(bench.ended(), ends(&[(2, "nothing")]));
    assert!(!bench.shard.is_stopped(), "a message is on its way");
    bench.receive_unlinked(3, ReceiveMode::ReceiveAndDelete);
    bench.turn();
    assert_eq!(bench.ended(), ends(&[(3, "abandoned")]));
    bench.sync();
    assert_eq!(bench.ended(), ends(&[(1, "x")]));
    assert!(bench.shard.is_stopped());
}

#[test]
fn a_shard_that_stops_answers_its_requests_first() {
    let mut bench = Bench::new();
    let requester = Requester {
        host: None,
        authority: Authority::everything(),
    };
    let request = SendMessages {
        path: "q".to_owned(),
        messages: vec![jitney_gateway::testing::message("x")],
        sent_as: SentAs::Messages,
    };
    let call = Box::new(Call::new(requester, request));
    bench.shard.handle(NOW, Input::Request(RequestId(1), call));
    bench.shard.handle(NOW, Input::Stop);
    bench.turn();
    assert!(!bench.shard.is_stopped(), "the message is not durable yet");
    bench.sync();
    let taken = |output: &Output| {
        matches!(
            output,
            Output::Answer(
                RequestId(1),
                Answer::Request(RequestAnswer { answer: Ok(_), .. })
            )
        )
    };
    assert!(bench.outputs.iter().any(taken), "{:?}", bench.outputs);
    assert!(bench.shard.is_stopped());
}

#[test]
fn a_receive_has_an_end() {
    let mut bench = Bench::new();
    bench.receive_unlinked(1, ReceiveMode::PeekLock);
    bench.turn();
    let until = NOW.after(Millis::from_secs(1));
    assert_eq!(bench.shard.gateway().poll_timeout(), Some(until));
    bench.turn_at(until);
    assert_eq!(bench.ended(), ends(&[(1, "nothing")]));
    bench.receive_unlinked(2, ReceiveMode::PeekLock);
    bench.shard.handle(NOW, Input::CancelReceive(RequestId(2)));
    bench.turn();
    assert_eq!(bench.ended(), ends(&[(2, "nothing")]));
}
