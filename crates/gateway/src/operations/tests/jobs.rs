//! Selections of dead letters, jobs with costly selections, jobs of other releases, jobs where there is no room, and new
//! bodies.

use super::*;
use jitney_broker::access::Profile;
use jitney_broker::namespace::{Lack, Room};
use jitney_queue::limits;

/// A `JSONPath` for whose nesting a parser may take very long.
pub(super) fn deep_path() -> String {
    format!("${}{}", "[?@".repeat(40), "]".repeat(40))
}

#[test]
fn dead_letters_are_selected_by_reason_and_description_as_the_broker_recorded_them() {
    let mut bench = Bench::new();
    for (reason, description) in [
        (Some("Bad"), Some("one")),
        (Some("Bad"), Some("two")),
        (None, Some("two")),
        (Some(""), None),
    ] {
        // What the sender calls so is no reason.
        bench.send("q", with_property("DeadLetterReason", "Bad", "a"));
        let text = |text: Option<&str>| text.map(str::to_owned);
        let letter = DeadLetter {
            reason: text(reason),
            description: text(description),
            ..DeadLetter::default()
        };
        settle(&mut bench, Settlement::DeadLetter(Some(letter.amended())));
    }
    let selection = |reason: Option<&str>, description: Option<&str>| Selection {
        reason: reason.map(str::to_owned),
        without_reason: reason.is_none(),
        description: description.map(str::to_owned),
        without_description: description.is_none(),
        ..all()
    };
    let mut matched = |selection| {
        let activated = done(&mut bench, DEAD, selection, JobAction::Activate);
        activated.matched
    };
    assert_eq!(matched(selection(Some("Bad"), Some("one"))), 1);
    assert_eq!(matched(selection(Some("Bad"), Some("two"))), 1);
    assert_eq!(matched(selection(None, Some("two"))), 1);
    assert_eq!(matched(selection(None, None)), 1);
    assert_eq!(matched(selection(Some("Bad"), None)), 0);
    let of_reason = Selection {
        reason: Some("Bad".to_owned()),
        ..all()
    };
    assert_eq!(matched(of_reason), 2);
    let too_long = Selection {
        description: Some("x".repeat(limits::DEAD_LETTER_TEXT_MAX + 1)),
        ..all()
    };
    assert!(too_long.compile().is_err());
}

#[test]
fn a_message_in_which_a_json_path_takes_too_long_is_skipped_with_the_reason() {
    let mut bench = Bench::new();
    bench.send("q", with_property("color", "red", "[1, [2]]"));
    let body = format!("[{}0]", "0,".repeat(100_000));
    bench.send("q", with_property("color", "red", &body));
    let costly = Selection {
        json_path: Some("$[?count($..*) == 3]".to_owned()),
        ..all()
    };
    let job = done(&mut bench, "q", costly, JobAction::Delete);
    assert_eq!((job.matched, job.changed, job.skipped), (1, 1, 1));
    let why = job.last_skipped.unwrap();
    assert!(why.contains("more than 1000000 steps"), "{why}");
    assert_eq!(numbers(&look(&mut bench, "q", &[])), [2]);
}

#[test]
fn jobs_that_free_nothing_wait_on_a_full_disk_and_purges_go_on() {
    let mut bench = Bench::new();
    bench.send("q", message("x"));
    let moving = JobAction::Move {
        to: Some("q".to_owned()),
        action: None,
        body: None,
    };
    let id = start(&mut bench, "q", all(), moving);
    let full = Room::None(Lack::Disk);
    bench.gateway.namespaces_mut().set_room(full);
    let waits = |bench: &mut Bench| perform(bench, ReadJob(id)).unwrap().waits;
    let why = waits(&mut bench).unwrap();
    assert!(
        why.contains("disk is full") && why.contains("make space in the file system"),
        "{why}"
    );
    let purged = start(&mut bench, "q", all(), JobAction::Delete);
    for _ in 0..3 {
        work(&mut bench);
    }
    let state = |bench: &Bench, id| bench.gateway.namespaces().job(id).unwrap().1.clone();
    assert_eq!(state(&bench, purged).changed, 1);
    assert_eq!(state(&bench, purged).state, JobState::Completed);
    assert_eq!(state(&bench, id).state, JobState::Running);
    bench.gateway.namespaces_mut().set_room(Room::Enough);
    assert_eq!(waits(&mut bench), None);
    work(&mut bench);
    assert_eq!(state(&bench, id).state, JobState::Completed);
}

#[test]
fn a_job_that_this_release_refuses_has_failed_after_a_restart() {
    let mut bench = Bench::new();
    bench.send("q", message("x"));
    let known = Selection {
        json_path: Some("$.known".to_owned()),
        ..all()
    };
    let id = start(&mut bench, "q", known, JobAction::Delete);
    let (queue, job) = bench.gateway.namespaces().job(id).unwrap();
    let state = serde_json::to_string(job).unwrap();
    let state = state.replace("$.known", &deep_path());
    let mut later = Gateway::new(1, Profile::Development);
    let record = Record::Job {
        entity: queue,
        job: id,
        state: Some(state.as_bytes()),
    };
    // As often as an earlier release has recorded its progress.
    for _ in 0..100 {
        later.namespaces_mut().replay(&record, None).unwrap();
    }
    bench.run(|_, cx| later.namespaces_mut().replayed(cx));
    assert_eq!(later.namespaces().running_jobs(), 0);
    let (_, failed) = later.namespaces().job(id).unwrap();
    assert_eq!(failed.state, JobState::Failed);
    let why = failed.error.as_deref().unwrap();
    assert!(
        why.contains("selection.json_path") && why.contains("more than 32 deep"),
        "{why}"
    );
}

#[test]
fn a_message_with_a_new_body_has_no_stamp_of_the_queue_that_it_was_in() {
    let mut bench = Bench::new();
    let partitioned = Description {
        partitioned: true,
        detects_duplicates: true,
        default_time_to_live: Millis::from_millis(90_000),
        ..Description::default()
    };
    bench
        .run(|gateway, cx| gateway.ensure_entity(cx, "p", partitioned))
        .unwrap();
    let draft = Draft {
        fields: vec![(Field::MessageId, "m".to_owned())],
        time_to_live: Some(Millis::from_millis(60_000)),
        ..Draft::default()
    };
    let with_body = |body: &[u8]| {
        let mut composer = draft.begin(Timestamp::EPOCH);
        composer.push(body);
        Message::parse(composer.finish()).unwrap()
    };
    bench.send("p", with_body(b"x"));
    let action = JobAction::Move {
        to: Some("q".to_owned()),
        action: None,
        body: Some("y".to_owned()),
    };
    let job = done(&mut bench, "p", all(), action);
    assert_eq!((job.changed, job.skipped), (1, 0), "{job:?}");
    let found = look(&mut bench, "q", &[]);
    let rewritten = Message::parse(bench.bytes(found[0].body)).unwrap();
    // The message-id was its key there, and its life ended at another time.
    assert_eq!(rewritten.partition_key(), None);
    let as_sent = with_body(b"y");
    let shown = |message: &Message| {
        let mut out = Vec::new();
        let stamps = jitney_message::Stamps {
            time_to_live: Millis::MAX,
            ..found[0].stamps.clone()
        };
        jitney_message::render_without_body(&mut out, message.bytes(), &stamps);
        out
    };
    assert_eq!(shown(&rewritten), shown(&as_sent));
}

#[test]
fn dead_letters_that_wait_behind_one_that_is_moved_away_go_where_they_have_room() {
    let mut bench = Bench::new();
    let small = Description {
        max_bytes: 20,
        ..Description::default()
    };
    let dying = Description {
        default_time_to_live: Millis::from_secs(1),
        dead_letter_on_expiration: true,
        forward_dead_letters_to: Some("small".to_owned()),
        ..Description::default()
    };
    bench.run(|gateway, cx| {
        gateway.ensure_entity(cx, "small", small).unwrap();
        gateway.ensure_entity(cx, "dying", dying).unwrap();
    });
    for word in ["aaaaaaaaaaaaaaaa", "b"] {
        bench.send("dying", message(word));
    }
    bench.now = bench.now.after(Millis::from_secs(1));
    bench.run(|_, _| ());
    assert_eq!(bench.seen("dying/dead"), [(1, 0), (2, 0)]);
    let first = Selection {
        numbers: vec![1],
        ..all()
    };
    let away = JobAction::Move {
        to: Some("q".to_owned()),
        action: None,
        body: None,
    };
    let job = done(&mut bench, "dying/$DeadLetterQueue", first, away);
    assert_eq!((job.changed, job.skipped), (1, 0));
    assert_eq!(bench.seen("dying/dead"), []);
    assert_eq!(bench.seen("small"), [(1, 2)]);
}
