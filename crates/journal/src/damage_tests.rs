//! Files of a log cut, zeroed, flipped and removed at thousands of places: each time the start is
//! refused with the place and the flag, or the damage is contained and told, or it is one of those
//! that the page of the format names.

use super::faulty::Dice;
use super::tests::{Messages, Model, OPTIONS, open, open_accepting, replay, written};
use super::*;

/// Bytes of one of [`written`]'s frames.
const FRAME: usize = 152;
/// Bytes of a segment's header.
const HEADER: usize = 64;
/// Bytes of a body, and where it begins in its frame.
const BODY: usize = 100;

fn frame(nth: usize) -> usize {
    HEADER + nth * FRAME
}

/// Checks that a refusal says where and what may be done.
fn check_refusal(error: &Error, damage: &str) {
    let text = error.to_string();
    let helps = text.contains("--accept-data-loss") || text.contains("backup");
    assert!(helps, "{damage}: {text}");
}

#[test]
fn damage_in_bodies_alone_costs_nothing_but_these() {
    // The body follows kind, entity, number, time, life, state, session, key and length.
    let start = written(1).messages[&1].position - layout::Position::START.to_u64();
    let start = usize::try_from(start).unwrap();
    for offset in 0..BODY {
        let model = written(10);
        for nth in [2, 5] {
            model.disk.damage(SegmentId(1), frame(nth) + start + offset);
        }
        let (recovered, messages) = open(model.disk.clone()).unwrap();
        assert_eq!(messages.len(), 10, "byte {offset}");
        let numbers: Vec<u64> = recovered.damaged.iter().map(|it| it.number.0).collect();
        assert_eq!(numbers, [3, 6], "byte {offset}");
        for (number, place) in messages {
            let read = read_ahead(&*model.disk, place, 256, u64::MAX);
            assert_eq!(read.is_err(), numbers.contains(&number), "message {number}");
        }
    }
}

#[test]
fn a_bad_sector_costs_its_own_message_and_not_those_that_are_read_with_it() {
    let start = written(1).messages[&1].position - layout::Position::START.to_u64();
    let start = usize::try_from(start).unwrap();
    for offset in [0, BODY / 2, BODY - 1] {
        let model = written(10);
        let (_, messages) = open(model.disk.clone()).unwrap();
        model.disk.spoil(SegmentId(1), frame(5) + start + offset);
        for (number, place) in messages {
            match read_ahead(&*model.disk, place, 8 * FRAME, u64::MAX) {
                Ok(_) => assert_ne!(number, 6, "byte {offset}"),
                Err(Error::Body { what, .. }) => {
                    assert_eq!(number, 6, "byte {offset}: {what}");
                }
                Err(error) => panic!("message {number}: {error}"),
            }
        }
    }
}

#[test]
fn a_file_that_is_shorter_than_it_was_made_is_refused_and_the_flag_goes_on() {
    let whole = written(4);
    let (_, length) = whole.disk.segments().unwrap()[0];
    let length = usize::try_from(length).unwrap();
    for cut in HEADER..length {
        let model = written(4);
        model.disk.cut(SegmentId(1), cut);
        let Err(error) = open(model.disk.clone()) else {
            panic!("cut to {cut}");
        };
        check_refusal(&error, &format!("cut to {cut}"));
        let (recovered, messages) = open_accepting(model.disk.clone()).unwrap();
        assert_eq!(
            messages.len(),
            ((cut - HEADER) / FRAME).min(4),
            "cut to {cut}"
        );
        assert!(!recovered.losses.is_empty());
        assert!(recovered.writer.checkpoint_due() || messages.is_empty());
        assert_eq!(
            model.disk.segments().unwrap()[0].1,
            u64::try_from(length).unwrap()
        );
    }
}

#[test]
fn a_log_that_ends_before_its_checkpoint_is_refused() {
    for offset in HEADER..frame(4) {
        let mut model = written(4);
        model.checkpoint().unwrap();
        model.disk.zero(SegmentId(1), offset);
        let found = open(model.disk.clone()).map(|_| ());
        // Zeros where zeros were are no damage.
        if offset < frame(4) - 8 {
            let error = found.expect_err("the checkpoint names a later place");
            check_refusal(&error, &format!("zeroed from {offset}"));
        }
        assert!(
            open_accepting(model.disk.clone()).is_ok(),
            "zeroed from {offset}"
        );
    }
}

#[test]
fn what_is_cut_off_at_the_end_is_told_in_bytes_and_frames() {
    let mut model = written(3);
    for _ in 0..2 {
        model.enqueue(100);
        model.seal();
    }
    model.write().unwrap();
    // The first of two that were never synced.
    model.disk.damage(SegmentId(1), frame(3) + 40);
    let (recovered, messages) = open(model.disk.clone()).unwrap();
    assert_eq!(messages.len(), 3);
    let cut = recovered.cut.unwrap();
    let expected = Cut {
        segment: SegmentId(1),
        offset: u64::try_from(frame(3)).unwrap(),
        bytes: u64::try_from(2 * FRAME).unwrap(),
        frames: 2,
    };
    assert_eq!(cut, expected);
}

#[test]
fn with_the_flag_frames_behind_a_damaged_one_are_found() {
    for offset in 0..FRAME {
        let model = written(40);
        model.disk.damage(SegmentId(1), frame(4) + offset);
        let (recovered, messages) = open_accepting(model.disk.clone()).unwrap();
        let lost = recovered.losses.len();
        assert_eq!(messages.len(), 40 - lost, "byte {offset}");
        assert_eq!(recovered.last_frame, 40, "byte {offset}");
        assert!(lost == 1 || recovered.damaged.len() == 1, "byte {offset}");
    }
}

#[test]
fn after_a_failed_sync_the_tail_is_written_again() {
    for seed in 0..100 {
        let mut model = written(2);
        model.enqueue(100);
        model.disk.fail_sync(0);
        assert!(model.sync().is_err());
        // The next start finds the frame in memory, where the system takes it for written.
        model.kill();
        assert_eq!(model.synced, 3);
        model.crash(seed);
        assert_eq!(model.messages.len(), 3);
    }
}

#[test]
fn the_header_of_a_new_segment_is_written_again_after_a_failed_sync() {
    // Nothing of a segment is known to be synced when the sync of its header fails.
    let mut model = written(25);
    model.enqueue(100);
    model.disk.fail_sync(0);
    let failed = model.sync().is_err();
    assert!(failed, "the segment was to be begun");
    model.kill();
    model.enqueue(100);
    model.sync().unwrap();
    model.crash(3);
    assert!(model.messages.len() > 25);
}

#[test]
fn a_segment_s_header_says_how_long_its_file_was_made() {
    let model = written(1);
    let mut header = [0; HEADER];
    model.disk.read(SegmentId(1), 0, &mut header).unwrap();
    assert_eq!(header[40..48], 4096_u64.to_le_bytes());
    assert_eq!(header[48..], [0; 16]);
}

/// One change of a log's files.
#[derive(Debug)]
enum Change {
    Flip(SegmentId, usize),
    Cut(SegmentId, usize),
    Zero(SegmentId, usize),
    Remove(SegmentId),
    FlipCheckpoint(usize),
    RemoveCheckpoint,
}

fn change(model: &Model, dice: &mut Dice) -> Change {
    let segments = model.disk.segments().unwrap();
    let nth = usize::try_from(dice.below(u64::try_from(segments.len()).unwrap())).unwrap();
    let (id, length) = segments[nth];
    let at = usize::try_from(dice.below(length)).unwrap();
    match dice.below(12) {
        0 => Change::Remove(id),
        1 | 2 => Change::Cut(id, at),
        3 | 4 => Change::Zero(id, at),
        5 => Change::FlipCheckpoint(usize::try_from(dice.below(400)).unwrap()),
        6 => Change::RemoveCheckpoint,
        _ => Change::Flip(id, at),
    }
}

fn carry_out(model: &Model, change: &Change) {
    let checkpoint = model.disk.checkpoints().unwrap().last().copied();
    match *change {
        Change::Flip(id, at) => model.disk.damage(id, at),
        Change::Cut(id, at) => model.disk.cut(id, at),
        Change::Zero(id, at) => model.disk.zero(id, at),
        Change::Remove(id) => model.disk.remove_segment(id).unwrap(),
        Change::FlipCheckpoint(at) => {
            let Some(number) = checkpoint else { return };
            let mut bytes = [0; 4096];
            let length = model.disk.read_checkpoint(number, 0, &mut bytes).unwrap();
            model.disk.damage_checkpoint(number, at % length);
        }
        Change::RemoveCheckpoint => {
            let Some(number) = checkpoint else { return };
            model.disk.remove_checkpoint(number).unwrap();
        }
    }
}

#[test]
fn no_damage_anywhere_loses_in_silence_what_another_record_names() {
    let (mut refused, mut contained, mut harmless) = (0, 0, 0);
    for seed in 0..3_000 {
        let mut dice = Dice::new(seed);
        let mut model = written(20 + dice.below(60));
        if dice.below(2) == 0 {
            model.checkpoint().unwrap();
            for _ in 0..dice.below(30) {
                model.enqueue(100);
                model.sync().unwrap();
            }
        }
        let before = model.messages.clone();
        let newest = model.disk.segments().unwrap().last().unwrap().0;
        let change = change(&model, &mut dice);
        carry_out(&model, &change);
        match open(model.disk.clone()) {
            Err(error) => {
                refused += 1;
                check_refusal(&error, &format!("{seed} {change:?}"));
            }
            Ok((recovered, messages)) => {
                let bad = messages.values().filter(|place| {
                    let until = recovered.writer.readable_until();
                    read_ahead(&*model.disk, **place, 256, until).is_err()
                });
                let bad = bad.count();
                contained += usize::from(0 < bad);
                harmless += usize::from(bad == 0 && messages == before);
                if messages != before {
                    // The missing part is at the end, in the newest segment: the page names it.
                    let in_newest = match change {
                        Change::Flip(id, _) | Change::Zero(id, _) | Change::Remove(id) => {
                            id == newest
                        }
                        _ => false,
                    };
                    let kept = messages.len();
                    let is_tail = before.values().take(kept).eq(messages.values());
                    assert!(in_newest && is_tail, "{seed} {change:?}: {kept} messages");
                    let said = recovered.cut.is_some();
                    let flipped = matches!(change, Change::Flip(..));
                    assert!(said || !flipped, "{seed} {change:?}: nothing is said");
                }
            }
        }
    }
    assert!(
        500 < refused && 100 < contained && 100 < harmless,
        "{refused} {contained} {harmless}"
    );
}

#[test]
fn a_log_that_is_only_read_is_the_one_of_a_recovery_and_stays_as_it_is() {
    let mut model = written(5);
    model.checkpoint().unwrap();
    model.enqueue(100);
    model.sync().unwrap();
    let (end, kept) = (model.writer.durable_end(), model.messages.clone());
    model.enqueue(100);
    model.sync().unwrap();
    // The first record of the last frame: it is torn.
    let offset = usize::try_from(end.offset).unwrap() + 32;
    model.disk.damage(end.segment, offset);
    let bytes = || {
        let (segment, length) = model.disk.segments().unwrap().pop().unwrap();
        let mut bytes = vec![0; usize::try_from(length).unwrap()];
        model.disk.read(segment, 0, &mut bytes).unwrap();
        bytes
    };
    let before = bytes();
    let mut messages = Messages::new();
    let read = read_log(&*model.disk, OPTIONS, &mut |record, body| {
        replay(&mut messages, record, body)
    });
    let read = read.unwrap();
    assert_eq!(bytes(), before);
    assert_eq!(messages, kept);
    let (recovered, again) = open(model.disk.clone()).unwrap();
    assert_ne!(bytes(), before, "what is torn is cut off");
    assert_eq!(again, messages);
    assert!(read.cut.is_some());
    assert_eq!(read.cut, recovered.cut);
    assert_eq!(read.writer.durable_end(), recovered.writer.durable_end());
    assert_eq!(read.last_frame, recovered.last_frame);
    assert_eq!(
        (read.records, read.frames),
        (recovered.records, recovered.frames)
    );
}
