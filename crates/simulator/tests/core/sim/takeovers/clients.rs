//! What clients see of a take-over, one case at a time and by name: a shard whose log is in rows of the modelled database,
//! and the shard of the next owner.

use std::collections::BTreeMap;

use jitney_base::ids::LockToken;
use jitney_base::time::Millis;
use jitney_queue::Description;

use super::super::acts::{
    Ask, ClientAction, LinkKey, LinkKind, Part, Place, Session, TransactionId, Verdict, Wish,
};
use super::super::audit::ClientObservation;
use super::super::plan::{Fault, LogPlace, Planned};
use super::super::wire::{Answer, Draft, IdFrom, Seen, Value};
use super::super::world::{Failed, Harness, Mode, Stop};

const SEGMENT_BYTES: u64 = 65_536;
const QUEUE: Place = Place {
    queue: 0,
    part: Part::Main,
};
const SESSION: Session = 0;
const SESSION_LOST: &str = "com.microsoft:session-lock-lost";

/// Links of a connection that asks the management node.
const REQUESTS: u32 = 10;
const RESPONSES: u32 = 11;

/// A queue, and the clients of it.
struct Script {
    world: Harness,
    requests: usize,
}

fn done<T>(result: Result<T, Stop>) -> T {
    result.unwrap_or_else(|stop| panic!("{stop:?}"))
}

fn draft(id: u64) -> Draft {
    Draft {
        id,
        same_as: None,
        id_from: IdFrom::Sender,
        time_to_live: None,
        due: None,
        properties: BTreeMap::new(),
        session: None,
        padding: 4,
        tail: String::new(),
        malformed: false,
        bare: false,
    }
}

impl Script {
    fn new(seed: u64, description: Description) -> Self {
        let planned = Planned {
            path: "queue-0".to_owned(),
            description,
            first: 1,
            topic: None,
            rules: Vec::new(),
        };
        let world = Harness::new(seed, SEGMENT_BYTES, &[planned], Mode::Quiet, LogPlace::Rows);
        let mut script = Self {
            world: done(world),
            requests: 0,
        };
        script.settle();
        script
    }

    fn act(&mut self, act: &ClientAction) {
        done(self.world.step(act));
        done(self.world.finish_turn());
    }

    /// Makes all groups durable, and returns the replies that the clients receive.
    fn settle(&mut self) -> Vec<ClientObservation> {
        for _ in 0..2 {
            done(self.world.work_all());
            done(self.world.sync_all());
        }
        done(self.world.finish_turn());
        let released = std::mem::take(&mut self.world.released);
        released.into_iter().map(|(_, sight)| sight).collect()
    }

    fn attach(
        &mut self,
        connection: u32,
        link: u32,
        kind: LinkKind,
    ) -> (LinkKey, Vec<ClientObservation>) {
        let (at, place) = (LinkKey { connection, link }, QUEUE);
        self.act(&ClientAction::Attach { at, place, kind });
        (at, self.settle())
    }

    /// Sends a message over a connection of its own; it is not durable yet.
    fn begin_to_send(&mut self, connection: u32, draft: Draft) -> LinkKey {
        let (at, _) = self.attach(connection, 1, LinkKind::Sender);
        self.act(&ClientAction::Send {
            at,
            delivery: 0,
            drafts: vec![draft],
            batch: false,
            settled: false,
            transaction: None,
        });
        at
    }

    fn send(&mut self, connection: u32, draft: Draft) {
        let at = self.begin_to_send(connection, draft);
        let told = self.settle();
        let is_taken = |it: &ClientObservation| matches!(it, ClientObservation::SettledIncoming(to, 0, Ok(())) if *to == at);
        assert!(told.iter().any(is_taken), "{told:?}");
    }

    /// Attaches a receiver with some credit; returns what it gets.
    fn receive(
        &mut self,
        connection: u32,
        wish: Option<Wish>,
    ) -> (LinkKey, Vec<(LockToken, Seen)>) {
        let delete = false;
        let (at, told) = self.attach(connection, 1, LinkKind::Receiver { delete, wish });
        assert!(
            matches!(told[..], [ClientObservation::Accepted(..)]),
            "{told:?}"
        );
        let (limit, drain) = (10, false);
        self.act(&ClientAction::Credit { at, limit, drain });
        let told = self.settle().into_iter();
        let received = told.filter_map(|sight| match sight {
            ClientObservation::Delivered { token, seen, .. } => Some((token, seen)),
            _ => None,
        });
        (at, received.collect())
    }

    /// Asks the management node over a connection.
    fn ask(&mut self, connection: u32, transaction: Option<TransactionId>, ask: Ask) -> Answer {
        if self.requests == 0 {
            self.attach(connection, REQUESTS, LinkKind::Requests);
            let (at, _) = self.attach(connection, RESPONSES, LinkKind::Responses);
            let (limit, drain) = (10, false);
            self.act(&ClientAction::Credit { at, limit, drain });
        }
        self.requests += 1;
        let [at, answers] = [REQUESTS, RESPONSES].map(|link| LinkKey { connection, link });
        self.act(&ClientAction::Request {
            at,
            id: format!("r{}", self.requests),
            reply_to: answers.reply_to(),
            about: None,
            transaction,
            ask,
        });
        let mut told = self.settle().into_iter();
        let answer = told.find_map(|sight| match sight {
            ClientObservation::Answered(_, answer) => Some(answer),
            _ => None,
        });
        answer.expect("it is answered")
    }

    /// The append of what was done is sent, and its connection is lost before the answer.
    fn lose_answer(&mut self) {
        done(self.world.write(usize::MAX));
        done(self.world.sync());
        assert_eq!(done(self.world.fail_rows(Fault::Store)), Failed::Goes);
        done(self.world.sync());
        assert!(self.world.is_away(), "it is unknown what was appended");
    }

    /// Another server takes the namespace, after so many milliseconds.
    fn take_over(&mut self, fault: Fault, millis: i64) {
        assert_eq!(done(self.world.fail_rows(fault)), Failed::Ends);
        self.world.now += millis;
        self.requests = 0;
        done(self.world.restart());
    }
}

#[test]
fn a_message_that_is_sent_again_after_a_take_over_is_there_once() {
    // "duplicate-across-unknown": the first one was appended, or it was not.
    let mut found = [0; 2];
    for seed in 1..=20 {
        let mut script = Script::new(
            seed,
            Description {
                detects_duplicates: true,
                duplicate_window: Millis::from_secs(600),
                ..Description::default()
            },
        );
        script.begin_to_send(1, draft(1));
        script.lose_answer();
        assert!(script.world.released.is_empty(), "nothing is answered");
        script.take_over(Fault::Crash, 1_000);
        let same_as = Some(1);
        script.send(
            2,
            Draft {
                same_as,
                ..draft(2)
            },
        );
        let (_, received) = script.receive(3, None);
        let ids: Vec<u64> = received.iter().map(|(_, seen)| seen.id).collect();
        match ids[..] {
            [1] => found[0] += 1,
            [2] => found[1] += 1,
            _ => panic!("seed {seed}: {ids:?}"),
        }
    }
    assert!(found.iter().all(|count| 0 < *count), "{found:?}");
}

#[test]
fn a_message_that_is_due_during_a_take_over_becomes_active_after_it() {
    // "scheduled-during-gap".
    let mut script = Script::new(1, Description::default());
    let due = Some(script.world.now + 5_000);
    script.send(1, Draft { due, ..draft(1) });
    let (_, received) = script.receive(2, None);
    assert!(received.is_empty(), "it is not due");
    script.take_over(Fault::Crash, 10_000);
    let activated_at = script.world.now;
    let mut numbers = Vec::new();
    for connection in 3..5 {
        let (_, received) = script.receive(connection, None);
        let [(_, seen)] = &received[..] else {
            panic!("{received:?}");
        };
        assert_eq!(seen.enqueued_at, activated_at);
        numbers.push(seen.number);
        // The next owner finds it as active as it was.
        script.take_over(Fault::Crash, 1_000);
    }
    assert_eq!(numbers, [2, 2]);
}

#[test]
fn a_message_session_is_not_its_holder_s_after_a_take_over() {
    // "session-held-by-two".
    let mut script = Script::new(
        1,
        Description {
            requires_session: true,
            ..Description::default()
        },
    );
    let session = SESSION;
    let sent = Draft {
        session: Some(session),
        ..draft(1)
    };
    script.send(1, sent);
    let wish = Some(Wish::Named(session));
    let (holder, received) = script.receive(2, wish);
    let token = received[0].0;
    let renewed = script.ask(2, None, Ask::RenewSession { session });
    assert_eq!(renewed.code, 200, "{renewed:?}");
    script.act(&ClientAction::Settle {
        at: holder,
        delivery: 0,
        token,
        settled: false,
        verdict: Verdict::Complete,
        transaction: None,
    });
    // The group of it is never appended.
    script.take_over(Fault::Fenced, 1_000);
    assert!(script.world.released.is_empty(), "nothing is answered");
    // The former holder is connected again, and has not accepted the session again.
    let verdict = Verdict::Complete;
    let tokens = vec![token];
    for ask in [
        Ask::RenewSession { session },
        Ask::Dispose { tokens, verdict },
    ] {
        let refused = script.ask(3, None, ask);
        assert_eq!(refused.code, 410, "{refused:?}");
        assert_eq!(refused.condition.as_deref(), Some(SESSION_LOST));
    }
    let (_, received) = script.receive(4, wish);
    assert_eq!(received.len(), 1, "another client holds it now");
    assert_eq!(received[0].1.id, 1);
    let delete = false;
    let (_, told) = script.attach(3, 1, LinkKind::Receiver { delete, wish });
    assert!(
        matches!(&told[..], [ClientObservation::Refused(..)]),
        "{told:?}"
    );
    let refused = script.ask(3, None, Ask::RenewSession { session });
    assert_eq!(refused.condition.as_deref(), Some(SESSION_LOST));
}

#[test]
fn a_number_that_was_told_in_a_transaction_is_not_given_again_after_a_take_over() {
    // "told-transaction-number".
    let mut script = Script::new(1, Description::default());
    let (at, _) = script.attach(1, 1, LinkKind::Coordinator);
    script.act(&ClientAction::Declare { at, delivery: 0 });
    let told = script.settle();
    let [ClientObservation::Declared(_, 0, id)] = &told[..] else {
        panic!("{told:?}");
    };
    let due = Some(script.world.now + 60_000);
    let drafts = vec![Draft { due, ..draft(1) }];
    let answer = script.ask(1, Some(id.clone()), Ask::Schedule { drafts });
    let numbers = answer.body.get("sequence-numbers");
    assert_eq!(numbers, Some(&Value::Array(vec![Value::Long(1)])));
    script.take_over(Fault::Crash, 1_000);
    script.send(2, draft(2));
    let (_, received) = script.receive(3, None);
    let found: Vec<_> = received.iter().map(|(_, it)| (it.id, it.number)).collect();
    assert_eq!(found, [(2, 2)], "number 1 is of what came to nothing");
}
