//! Looks and jobs, with a replay of their records.

mod jobs;

use std::collections::BTreeMap;

use super::*;
use crate::amqp::tests::{Bench, inquiry, message, scheduled};
use crate::limits;
use jitney_amqp::LinkId;
use jitney_base::ids::JobId;
use jitney_base::time::Millis;
use jitney_broker::access::Actor;
use jitney_broker::namespace::{Job, JobAction, JobDescription, JobState, Selection};
use jitney_message::{Draft, Field, Message, MessageState, Scalar};
use jitney_queue::{DeadLetter, Description, ReceiveMode, Record, Settlement};

const CONNECTION: ConnectionId = ConnectionId(4);
const DEAD: &str = "q/$DeadLetterQueue";

fn perform<R: Request>(bench: &mut Bench, request: R) -> Result<R::Answer, Denied> {
    let done = bench.run(|gateway, cx| {
        let authority = gateway.authorize(cx.now, &inquiry(None, None, ""));
        let authority = authority.unwrap();
        let host = None;
        gateway.serve(cx, &Requester { host, authority }, request)
    });
    bench.check_replay();
    done
}

pub(super) fn connections_from(
    bench: &mut Bench,
    from: (ConnectionId, LinkId),
    most: usize,
) -> (Vec<ConnectionView>, Option<(ConnectionId, LinkId)>) {
    let page = perform(bench, ListConnections { from, most }).unwrap();
    (page.connections, page.next)
}

fn look(bench: &mut Bench, path: &str, states: &[MessageState]) -> Vec<Inspected> {
    let operation = Inspect {
        path: path.to_owned(),
        from: SequenceNumber(0),
        conditions: Conditions {
            states: states.to_vec(),
            ..Conditions::default()
        },
        most: 100,
        bytes_max: 0,
    };
    let view = perform(bench, operation).unwrap();
    assert_eq!(view.next, None);
    let messages = view.messages.into_iter();
    messages.map(|message| message.inspected).collect()
}

fn numbers(found: &[Inspected]) -> Vec<u64> {
    found.iter().map(|message| message.number.0).collect()
}

fn start(bench: &mut Bench, path: &str, selection: Selection, action: JobAction) -> JobId {
    let description = JobDescription {
        selection,
        action,
        most: None,
    };
    let path = path.to_owned();
    perform(bench, StartJob { path, description }).unwrap().id
}

/// Does a step of a job.
fn work(bench: &mut Bench) {
    let Some(page) = bench.run(Gateway::job_page) else {
        return;
    };
    let bodies = page.bodies().into_iter();
    let bodies: BTreeMap<BodyRef, _> = bodies.map(|body| (body, bench.bytes(body))).collect();
    bench.run(|gateway, cx| gateway.work(cx, page, &|body| bodies.get(&body).cloned()));
    bench.check_replay();
}

/// Does a job to its end.
fn done(bench: &mut Bench, path: &str, selection: Selection, action: JobAction) -> Job {
    let id = start(bench, path, selection, action);
    while 0 < bench.gateway.namespaces().running_jobs() {
        work(bench);
    }
    bench.gateway.namespaces().job(id).unwrap().1.clone()
}

pub(super) fn all() -> Selection {
    Selection::default()
}

fn of_states(states: &[MessageState]) -> Selection {
    Selection {
        states: states.to_vec(),
        ..all()
    }
}

fn redrive() -> JobAction {
    JobAction::Move {
        to: None,
        action: None,
        body: None,
    }
}

/// A message with an application-property and a body.
fn with_property(name: &str, value: &str, body: &str) -> Message {
    let draft = Draft {
        fields: vec![(Field::MessageId, format!("id-{value}"))],
        properties: vec![(name.to_owned(), Scalar::Text(value.to_owned().into()))],
        ..Draft::default()
    };
    let mut composer = draft.begin(Timestamp::EPOCH);
    composer.push(body.as_bytes());
    Message::parse(composer.finish()).unwrap()
}

/// Receives the first message of `q` and settles it.
fn settle(bench: &mut Bench, settlement: Settlement) {
    let queue = bench.id("q");
    bench.run(|gateway, cx| {
        gateway.with_queue(cx, queue, |queue, cx| {
            let receiver = ConsumerId(7);
            queue.add_consumer(receiver, ReceiveMode::PeekLock);
            queue.set_credit(cx, receiver, 1);
            let token = cx
                .effects
                .deliveries
                .drain(..)
                .find_map(|delivery| match delivery {
                    jitney_queue::Delivery::Message(_, handover) => Some(handover.token),
                    _ => None,
                });
            queue.remove_consumer(receiver);
            queue.settle(cx, token.unwrap(), settlement).unwrap();
        });
    });
}

fn dead_letter(reason: &str) -> Settlement {
    let reason = DeadLetter {
        reason: Some(reason.to_owned()),
        description: Some("why".to_owned()),
        ..DeadLetter::default()
    };
    Settlement::DeadLetter(Some(reason.amended()))
}

#[test]
fn messages_are_seen_by_their_states_and_with_their_holders() {
    use MessageState::{Active, Deferred, Scheduled};
    let mut bench = Bench::new();
    for word in ["a", "b", "c"] {
        bench.send("q", message(word));
    }
    bench.send("q", scheduled(9_000, 1));
    settle(&mut bench, Settlement::Defer(None));
    bench.run(|gateway, cx| {
        gateway.connection(CONNECTION).container_id = "worker-7".to_owned();
        gateway.attach_receiver(cx, CONNECTION, LinkId(3), "q");
    });
    let found = look(&mut bench, "q", &[]);
    assert_eq!(numbers(&found), [1, 2, 3, 4]);
    let states: Vec<MessageState> = found.iter().map(|message| message.stamps.state).collect();
    assert_eq!(states, [Deferred, Active, Active, Scheduled]);
    let locked: Vec<bool> = found.iter().map(|message| message.is_locked).collect();
    assert_eq!(locked, [false, true, false, false]);
    assert_eq!(
        found[1].stamps.locked_until,
        Some(Timestamp::from_millis(61_000))
    );
    assert_eq!(found[3].due, Some(Timestamp::from_millis(9_000)));
    assert_eq!(
        numbers(&look(&mut bench, "q", &[Deferred, Scheduled])),
        [1, 4]
    );
    let operation = Inspect {
        path: "q".to_owned(),
        from: SequenceNumber(2),
        conditions: Conditions::default(),
        most: 1,
        bytes_max: jitney_queue::limits::PEEK_BYTES_MAX,
    };
    let view = perform(&mut bench, operation).unwrap();
    assert_eq!(view.next, Some(SequenceNumber(3)));
    let holder = view.messages[0].holder.clone().unwrap();
    assert_eq!(
        (holder.connection, holder.container_id.as_str()),
        (CONNECTION, "worker-7")
    );
    let (connections, next) = connections_from(&mut bench, (ConnectionId(0), LinkId(0)), 100);
    assert_eq!(next, None);
    let link = &connections[0].links[0];
    assert_eq!((link.role, link.entity.as_str()), (LinkRole::Receiver, "q"));
    assert_eq!((link.credit, link.locked), (Some(0), Some(1)));
}

#[test]
fn a_purge_takes_one_state_and_continues_after_a_restart() {
    let mut bench = Bench::new();
    for _ in 0..200 {
        bench.send("q", message("x"));
    }
    for _ in 0..100 {
        settle(&mut bench, Settlement::Defer(None));
    }
    let deferred = of_states(&[MessageState::Deferred]);
    let id = start(&mut bench, "q", deferred, JobAction::Delete);
    work(&mut bench);
    // What is deferred later stays.
    settle(&mut bench, Settlement::Defer(None));
    bench.send("q", message("y"));
    let before = bench.gateway.namespaces().job(id).unwrap().1.clone();
    assert!(0 < before.changed && before.changed < 100, "{before:?}");
    let mut bench = bench.restarted();
    assert_eq!(bench.gateway.namespaces().job(id).unwrap().1, &before);
    while 0 < bench.gateway.namespaces().running_jobs() {
        let Some(page) = bench.run(Gateway::job_page) else {
            break;
        };
        bench.run(|gateway, cx| gateway.work(cx, page, &|_| None));
    }
    let job = bench.gateway.namespaces().job(id).unwrap().1.clone();
    assert_eq!(job.state, JobState::Completed);
    // The one that was deferred meanwhile has a number that was given before the job began.
    assert_eq!((job.matched, job.changed, job.skipped), (101, 101, 0));
    let queue = bench.gateway.namespaces().queue(bench.id("q")).unwrap();
    assert_eq!((queue.len(), queue.deferred()), (100, 0));
}

#[test]
fn a_body_is_made_of_a_template_and_a_message_without_what_it_needs_stays() {
    let mut bench = Bench::new();
    let first = r#"{"order": {"id": 7}, "amount": "1,5"}"#;
    bench.send("q", with_property("color", "blue", first));
    bench.send("q", with_property("color", "red", "no JSON"));
    settle(&mut bench, dead_letter("BadAmount"));
    settle(&mut bench, dead_letter("BadAmount"));
    let body = r#"{"amount": 1.5, "order": {{body:/order}}, "color": "{{property:color}}"}"#;
    let action = JobAction::Move {
        to: None,
        action: Some("SET color = 'green'".to_owned()),
        body: Some(body.to_owned()),
    };
    let job = done(&mut bench, DEAD, all(), action);
    assert_eq!(
        (job.matched, job.changed, job.skipped),
        (2, 1, 1),
        "{job:?}"
    );
    assert!(job.last_skipped.unwrap().contains("no JSON"));
    assert_eq!(numbers(&look(&mut bench, DEAD, &[])), [2]);
    let found = look(&mut bench, "q", &[]);
    assert_eq!(numbers(&found), [3]);
    assert_eq!(found[0].stamps.delivery_count, 0);
    let rewritten = Message::parse(bench.bytes(found[0].body)).unwrap();
    let made = r#"{"amount": 1.5, "order": {"id":7}, "color": "green"}"#;
    assert_eq!(&rewritten.plain_body()[..], made.as_bytes());
    let none = jitney_message::Amendments::default();
    let properties: Vec<_> = none.properties_of(&rewritten).collect();
    assert_eq!(properties.len(), 1, "{properties:?}");
    let here = JobAction::Move {
        to: Some("q".to_owned()),
        action: None,
        body: Some("x".to_owned()),
    };
    let job = done(&mut bench, "q", all(), here);
    assert_eq!((job.changed, job.skipped), (0, 1), "{job:?}");
    let wrong = JobAction::Move {
        to: None,
        action: None,
        body: Some("{{subject}}".to_owned()),
    };
    let description = JobDescription {
        selection: all(),
        action: wrong,
        most: None,
    };
    let path = "q".to_owned();
    let denied = perform(&mut bench, StartJob { path, description }).unwrap_err();
    assert!(
        denied.text.contains("action.body: '{{subject}}'"),
        "{denied:?}"
    );
}

#[test]
fn a_message_with_a_new_body_lives_as_long_as_its_sender_said() {
    let mut bench = Bench::new();
    let life = Millis::from_millis(60_000);
    for time_to_live in [Some(life), None] {
        let draft = Draft {
            time_to_live,
            ..Draft::default()
        };
        let mut composer = draft.begin(bench.now);
        composer.push(b"x");
        bench.send("q", Message::parse(composer.finish()).unwrap());
        settle(&mut bench, dead_letter("BadAmount"));
    }
    let action = JobAction::Move {
        to: None,
        action: None,
        body: Some("y".to_owned()),
    };
    let job = done(&mut bench, DEAD, all(), action);
    assert_eq!((job.changed, job.skipped), (2, 0), "{job:?}");
    let lives: Vec<Millis> = look(&mut bench, "q", &[])
        .iter()
        .map(|found| found.stamps.time_to_live)
        .collect();
    assert_eq!(lives, [life, Millis::MAX]);
}

#[test]
fn a_job_continues_after_a_restart_though_numbers_have_rolled_over() {
    let mut bench = Bench::new();
    let last = SequenceNumber((1 << 48) - 1);
    let entity = bench.id("q");
    bench.run(|gateway, cx| {
        let record = Record::Counter { entity, next: last };
        cx.journal.append(&record);
        gateway
            .namespaces_mut()
            .replay(&record, None)
            .expect("a counter can be replayed");
    });
    for word in ["a", "b", "c"] {
        bench.send("q", message(word));
    }
    let id = start(&mut bench, "q", all(), JobAction::Delete);
    bench.send("q", message("later"));
    // The second restart is from a checkpoint, which does not know of the roll-over.
    let mut bench = bench.restarted().restarted();
    while 0 < bench.gateway.namespaces().running_jobs() {
        let page = bench.run(Gateway::job_page).unwrap();
        bench.run(|gateway, cx| gateway.work(cx, page, &|_| None));
    }
    let job = bench.gateway.namespaces().job(id).unwrap().1.clone();
    assert_eq!((job.matched, job.changed), (3, 3), "{job:?}");
    let seen = bench.seen("q");
    assert_eq!(seen, [(2, 0)]);
}

#[test]
fn dead_letters_go_back_mended_and_leave_their_reasons_behind() {
    let mut bench = Bench::new();
    bench.send("q", with_property("color", "blue", "one"));
    bench.send(
        "q",
        with_property("color", "red", r#"{"order": {"id": 7}}"#),
    );
    settle(&mut bench, dead_letter("NoStock"));
    settle(&mut bench, dead_letter("NoStock"));
    let path = Selection {
        json_path: Some("$.order[?@ > 5]".to_owned()),
        reason: Some("NoStock".to_owned()),
        ..all()
    };
    let action = JobAction::Move {
        to: None,
        action: Some("SET color = 'green'; SET sys.Label = 'mended'".to_owned()),
        body: None,
    };
    let job = done(&mut bench, DEAD, path, action);
    assert_eq!(
        (job.matched, job.changed, job.skipped),
        (1, 1, 0),
        "{job:?}"
    );
    assert_eq!(numbers(&look(&mut bench, DEAD, &[])), [1]);
    let found = look(&mut bench, "q", &[]);
    assert_eq!(numbers(&found), [3]);
    assert_eq!(found[0].stamps.delivery_count, 0);
    let amendments = found[0].stamps.amendments.clone().unwrap();
    let original = Message::parse(bench.bytes(found[0].body)).unwrap();
    let properties: Vec<_> = amendments.properties_of(&original).collect();
    assert_eq!(properties.len(), 1, "{properties:?}");
    assert_eq!(
        Scalar::decode(properties[0].1),
        Scalar::Text("green".into())
    );
    let label = amendments.field_of(&original, Field::Label).unwrap();
    assert_eq!(Scalar::decode(label), Scalar::Text("mended".into()));
}

#[test]
fn a_dead_letter_of_a_subscription_goes_back_to_it_alone() {
    let mut bench = Bench::new();
    bench.send("t", with_property("n", "1", "one"));
    let subscription = "t/Subscriptions/a";
    let dead = JobAction::DeadLetter {
        reason: Some("Poison".to_owned()),
        description: None,
    };
    assert_eq!(done(&mut bench, subscription, all(), dead).changed, 1);
    let dead = "t/Subscriptions/a/$DeadLetterQueue";
    assert_eq!(look(&mut bench, dead, &[]).len(), 1);
    let text = Selection {
        text: Some("one".to_owned()),
        message_id: Some("id-1".to_owned()),
        filter: Some("DeadLetterReason = 'Poison' AND n = '1'".to_owned()),
        ..all()
    };
    assert_eq!(done(&mut bench, dead, text, redrive()).changed, 1);
    assert_eq!(look(&mut bench, subscription, &[]).len(), 1);
    assert_eq!(look(&mut bench, "t/Subscriptions/b", &[]).len(), 1);
    assert_eq!(look(&mut bench, dead, &[]).len(), 0);
}

#[test]
fn what_cannot_be_moved_stays_and_the_job_says_why() {
    let mut bench = Bench::new();
    bench.run(|gateway, cx| {
        let small = Description {
            max_bytes: 30,
            ..Description::default()
        };
        gateway.ensure_entity(cx, "small", small).unwrap();
        let sessions = Description {
            requires_session: true,
            ..Description::default()
        };
        gateway.ensure_entity(cx, "sessions", sessions).unwrap();
    });
    for word in ["aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"] {
        bench.send("q", message(word));
    }
    let to = |to: &str| JobAction::Move {
        to: Some(to.to_owned()),
        action: None,
        body: None,
    };
    let job = done(&mut bench, "q", all(), to("sessions"));
    assert_eq!((job.changed, job.skipped), (0, 2));
    assert!(job.last_skipped.unwrap().contains("session"));
    let job = done(&mut bench, "q", all(), to("small"));
    assert_eq!((job.changed, job.skipped), (1, 1));
    assert!(job.last_skipped.unwrap().contains("maximum size"));
    // One that a receiver has is left alone.
    bench.run(|gateway, cx| gateway.attach_receiver(cx, CONNECTION, LinkId(3), "q"));
    let job = done(&mut bench, "q", all(), JobAction::Delete);
    assert_eq!((job.matched, job.changed, job.skipped), (1, 0, 1));
    assert_eq!(job.state, JobState::Completed);
    let job = done(&mut bench, "q", all(), redrive());
    assert!(job.last_skipped.unwrap().contains("locked"));
}

#[test]
fn scheduled_messages_are_selected_by_their_time() {
    let mut bench = Bench::new();
    bench.send("q", message("active"));
    for (due, id) in [(9_000, 1), (3_000, 2), (6_000, 3)] {
        bench.send("q", scheduled(due, id));
    }
    let due = |from: Option<i64>, before: Option<i64>| Selection {
        scheduled_from: from.map(Timestamp::from_millis),
        scheduled_before: before.map(Timestamp::from_millis),
        ..all()
    };
    for (selection, wanted) in [
        (due(Some(6_000), None), &[2, 4][..]),
        (due(None, Some(6_000)), &[3]),
        (due(Some(3_000), Some(9_000)), &[3, 4]),
        (due(Some(9_001), None), &[]),
    ] {
        let conditions = selection.compile().unwrap().conditions;
        let operation = Inspect {
            path: "q".to_owned(),
            from: SequenceNumber(0),
            conditions,
            most: 10,
            bytes_max: 0,
        };
        let view = perform(&mut bench, operation).unwrap();
        let found: Vec<u64> = view
            .messages
            .iter()
            .map(|it| it.inspected.number.0)
            .collect();
        assert_eq!(found, wanted, "{selection:?}");
    }
    let job = done(&mut bench, "q", due(Some(6_000), None), JobAction::Delete);
    assert_eq!((job.total, job.changed), (Some(4), 2));
}

#[test]
fn dead_letters_without_a_reason_are_selected() {
    let mut bench = Bench::new();
    bench.send("q", message("a"));
    bench.send("q", message("b"));
    settle(&mut bench, Settlement::DeadLetter(None));
    let reason = dead_letter("Bad");
    settle(&mut bench, reason);
    let without = || Selection {
        without_reason: true,
        ..all()
    };
    let job = done(
        &mut bench,
        "q/$DeadLetterQueue",
        without(),
        JobAction::Delete,
    );
    assert_eq!((job.matched, job.changed), (1, 1));
    assert_eq!(numbers(&look(&mut bench, "q/$DeadLetterQueue", &[])), [2]);
    let job = done(
        &mut bench,
        "q/$DeadLetterQueue",
        without(),
        JobAction::Delete,
    );
    assert_eq!(job.matched, 0);
}

#[test]
fn the_audit_log_is_filtered() {
    let entry = |actor: &str, operation: &str, entity: &str, at: i64| AuditEntry {
        at: Timestamp::from_millis(at),
        count: 1,
        last_at: None,
        namespace: String::new(),
        actor: Actor {
            name: actor.to_owned(),
            peer: String::new(),
        },
        operation: operation.to_owned(),
        entity: entity.to_owned(),
        detail: String::new(),
    };
    let filter = AuditFilter {
        actor: Some("KEY a".to_owned()),
        operation: Some("update".to_owned()),
        entity: Some("Orders".to_owned()),
        since: Some(Timestamp::from_millis(10)),
    };
    assert!(filter.holds_for(&entry("key App", "update", "orders", 10)));
    for other in [
        entry("operator", "update", "orders", 10),
        entry("key App", "delete", "orders", 10),
        entry("key App", "update", "other", 10),
        entry("key App", "update", "orders", 9),
    ] {
        assert!(!filter.holds_for(&other), "{other:?}");
        assert!(AuditFilter::default().holds_for(&other));
    }
}

#[test]
fn what_becomes_due_while_a_job_reads_is_forwarded() {
    let mut bench = Bench::new();
    bench.send("one", scheduled(2_000, 1));
    bench.send("one", scheduled(9_000, 2));
    let second = Selection {
        numbers: vec![2],
        ..all()
    };
    let action = JobAction::Move {
        to: Some("t".to_owned()),
        action: None,
        body: None,
    };
    start(&mut bench, "one", second, action);
    let page = bench.run(Gateway::job_page).unwrap();
    let bodies: BTreeMap<BodyRef, _> = page
        .bodies()
        .into_iter()
        .map(|body| (body, bench.bytes(body)))
        .collect();
    bench.run(|gateway, cx| {
        cx.now = Timestamp::from_millis(2_000);
        gateway.work(cx, page, &|body| bodies.get(&body).cloned());
    });
    assert_eq!(bench.seen("t/Subscriptions/a").len(), 1);
    assert_eq!(bench.seen("one"), []);
    assert_eq!(bench.seen("q").len(), 1);
}

#[test]
fn deferred_and_scheduled_messages_are_put_back_and_put_off() {
    let mut bench = Bench::new();
    bench.send("q", message("a"));
    bench.send("q", scheduled(9_000, 1));
    settle(&mut bench, Settlement::Defer(None));
    let due = Timestamp::from_millis(50_000);
    let job = done(&mut bench, "q", all(), JobAction::Reschedule { due });
    assert_eq!((job.changed, job.skipped), (1, 1));
    assert_eq!(
        look(&mut bench, "q", &[MessageState::Scheduled])[0].due,
        Some(due)
    );
    let job = done(
        &mut bench,
        "q",
        of_states(&[MessageState::Deferred]),
        JobAction::Activate,
    );
    assert_eq!(job.changed, 1);
    assert_eq!(
        numbers(&look(&mut bench, "q", &[MessageState::Active])),
        [1]
    );
    // A scheduled one gets a new number, as at its time.
    let job = done(
        &mut bench,
        "q",
        of_states(&[MessageState::Scheduled]),
        JobAction::Activate,
    );
    assert_eq!(job.changed, 1);
    assert_eq!(
        numbers(&look(&mut bench, "q", &[MessageState::Active])),
        [1, 3]
    );
    let two = Selection {
        numbers: vec![3, 1, 99],
        ..all()
    };
    assert_eq!(done(&mut bench, "q", two, JobAction::Delete).changed, 2);
}

#[test]
fn a_step_reads_a_bounded_number_of_bytes() {
    let mut bench = Bench::new();
    let large = "x".repeat(700 * 1024);
    for body in [&large, &large, "small"] {
        bench.send("q", with_property("n", "1", body));
    }
    let to = JobAction::Move {
        to: Some("t".to_owned()),
        action: None,
        body: None,
    };
    let id = start(&mut bench, "q", all(), to);
    let mut steps = Vec::new();
    while 0 < bench.gateway.namespaces().running_jobs() {
        let page = bench.run(Gateway::job_page).unwrap();
        let bodies = page.bodies();
        steps.push(bodies.len());
        let bodies: BTreeMap<BodyRef, _> = bodies
            .into_iter()
            .map(|body| (body, bench.bytes(body)))
            .collect();
        bench.run(|gateway, cx| gateway.work(cx, page, &|body| bodies.get(&body).cloned()));
    }
    assert_eq!(steps, [1, 2]);
    let job = bench.gateway.namespaces().job(id).unwrap().1;
    assert_eq!((job.changed, job.skipped), (3, 0), "{job:?}");
    assert_eq!(look(&mut bench, "t/Subscriptions/b", &[]).len(), 3);
}

#[test]
fn a_job_ends_when_it_is_cancelled_or_its_queue_is_gone() {
    let mut bench = Bench::new();
    bench.send("q", message("a"));
    let id = start(&mut bench, "q", all(), JobAction::Delete);
    let view = perform(&mut bench, CancelJob(id)).unwrap();
    assert_eq!(view.job.state, JobState::Cancelled);
    work(&mut bench);
    assert_eq!(look(&mut bench, "q", &[]).len(), 1);
    let id = start(&mut bench, DEAD, all(), JobAction::Delete);
    bench.run(|gateway, cx| gateway.delete_entity(cx, "q"));
    work(&mut bench);
    let (_, job) = bench.gateway.namespaces().job(id).unwrap();
    assert_eq!(job.state, JobState::Failed);
    assert!(job.error.as_deref().unwrap().contains("deleted"));
    let list = ListJobs { before: None };
    let JobsPage { jobs, next } = perform(&mut bench, list).unwrap();
    assert_eq!(next, None);
    assert_eq!(jobs.len(), 2);
    assert_eq!(jobs[0].path, DEAD);
}

#[test]
fn jobs_and_selections_are_bounded() {
    let mut bench = Bench::new();
    let refused = |bench: &mut Bench, selection: Selection, action: JobAction| {
        let description = JobDescription {
            selection,
            action,
            most: None,
        };
        let path = "q".to_owned();
        match perform(bench, StartJob { path, description }) {
            Err(denied) => denied.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let filter = Selection {
        filter: Some("color = ".to_owned()),
        ..all()
    };
    let text = refused(&mut bench, filter, JobAction::Delete);
    assert!(
        text.contains("selection.filter") && text.contains("character"),
        "{text}"
    );
    let numbers = Selection {
        numbers: (0..1_001).collect(),
        ..all()
    };
    assert!(refused(&mut bench, numbers, JobAction::Delete).contains("1000 are the most"));
    for (path, part) in [
        (jobs::deep_path(), "more than 32 deep in one another"),
        ("$.a[?@ = 1]".to_owned(), "at character 8"),
    ] {
        let selection = Selection {
            json_path: Some(path),
            ..all()
        };
        let text = refused(&mut bench, selection, JobAction::Delete);
        assert!(
            text.contains("selection.json_path") && text.contains(part),
            "{text}"
        );
    }
    let nowhere = JobAction::Move {
        to: Some("nowhere".to_owned()),
        action: None,
        body: None,
    };
    assert!(refused(&mut bench, all(), nowhere).contains("no entity 'nowhere'"));
    for _ in 0..limits::JOBS_RUNNING_MAX / 2 {
        start(&mut bench, "q", all(), JobAction::Delete);
    }
    let text = refused(&mut bench, all(), JobAction::Delete);
    assert!(text.contains("8 may run now"), "{text}");
    while 0 < bench.gateway.namespaces().running_jobs() {
        work(&mut bench);
    }
    for _ in 0..2 * jitney_broker::limits::JOBS_ENDED_MAX {
        done(&mut bench, "q", all(), JobAction::Delete);
    }
    assert_eq!(
        bench.gateway.namespaces().jobs().count(),
        jitney_broker::limits::JOBS_ENDED_MAX
    );
}

#[test]
fn the_states_of_sessions_are_seen_and_set() {
    let mut bench = Bench::new();
    bench.run(|gateway, cx| {
        let sessions = Description {
            requires_session: true,
            lock_duration: Millis::from_millis(30_000),
            ..Description::default()
        };
        gateway.ensure_entity(cx, "sessions", sessions).unwrap();
    });
    let path = || "sessions".to_owned();
    for id in ["a", "b", "c"] {
        let (id, state) = (id.to_owned(), Some(b"state".to_vec()));
        perform(
            &mut bench,
            SetSessionState {
                path: path(),
                id,
                state,
            },
        )
        .unwrap();
    }
    let list = ListSessions {
        path: path(),
        after: None,
        most: 2,
    };
    let page = perform(&mut bench, list).unwrap();
    let ids: Vec<_> = page.sessions.iter().map(|it| it.id.as_str()).collect();
    assert_eq!(
        (ids, page.next_after.as_deref()),
        (vec!["a", "b"], Some("b"))
    );
    let id = "b".to_owned();
    let found = perform(&mut bench, ReadSession { path: path(), id }).unwrap();
    assert_eq!(found.state.as_deref(), Some(b"state".as_slice()));
    assert_eq!(found.session.inspected.state_bytes, Some(5));
    let id = "a".to_owned();
    let path = "q".to_owned();
    let refused = perform(
        &mut bench,
        SetSessionState {
            path,
            id,
            state: None,
        },
    );
    assert_eq!(refused.unwrap_err().kind, DeniedKind::NotAllowed);
}

#[test]
fn queues_with_messages_are_listed_from_any_of_them_on() {
    let mut bench = Bench::new();
    bench.send("q", message("a"));
    bench.send("q", message("b"));
    settle(&mut bench, dead_letter("Bad"));
    let mut from = |from: Option<&str>| {
        let from = from.map(ToOwned::to_owned);
        let page = perform(&mut bench, ListQueues { from }).unwrap();
        assert_eq!(page.next, None);
        page.addresses
    };
    assert_eq!(from(None), ["q", DEAD]);
    assert_eq!(from(Some("q")), ["q", DEAD]);
    assert_eq!(from(Some(DEAD)), [DEAD]);
    assert_eq!(from(Some("r")), [""; 0]);
}

#[test]
fn scheduled_messages_are_counted_in_spans_of_time() {
    let mut bench = Bench::new();
    for at in [10_000, 10_999, 11_000, 19_999] {
        bench.send("q", scheduled(at, 1));
    }
    let mut count = |from: Option<i64>, before: Option<i64>, spans| {
        let operation = CountScheduled {
            path: "q".to_owned(),
            spans: Spans {
                from: from.map(Timestamp::from_millis),
                before: before.map(Timestamp::from_millis),
                count: spans,
                position: None,
            },
        };
        perform(&mut bench, operation).unwrap()
    };
    let whole = count(None, None, 10);
    assert_eq!(whole.counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert_eq!(whole.from, Timestamp::from_millis(10_000));
    assert_eq!(whole.before, Timestamp::from_millis(20_000));
    assert_eq!((whole.total, whole.next), (4, None));
    assert_eq!(whole.beginning_of(1), Timestamp::from_millis(11_000));
    let part = count(Some(10_500), Some(11_500), 3);
    assert_eq!((part.counts, part.total), (vec![0, 2, 0], 4));
    // A span that is no time at all has nothing in it.
    assert_eq!(count(Some(10_000), Some(10_000), 2).counts, [0, 0]);
}
