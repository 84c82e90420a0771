//! Ways in which a log could answer with wrong bytes, each tried.

use std::sync::Arc;

use super::memory::MemoryDisk;
use super::*;
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_base::time::{Millis, Timestamp};
use jitney_queue::{Journal, Record, StoredState};

fn enqueued(number: u64, body: &[u8]) -> Record<'_> {
    Record::Enqueued {
        entity: EntityId(3),
        number: SequenceNumber(number),
        at: Timestamp::from_millis(1_700_000_000_000),
        time_to_live: Millis::MAX,
        state: StoredState::Active,
        message_session: None,
        duplicate_key: None,
        amendments: None,
        body,
    }
}

fn open(disk: &Arc<dyn Disk>) -> Recovered {
    let options = Options {
        segment_bytes: 4 * 1024 * 1024,
        cache_bytes: 64 * 1024,
        store: 0x5eed,
        tail_records_max: u64::MAX,
        accepts_loss: false,
        newest_kind: NEWEST_KIND,
    };
    recover(Arc::clone(disk), options, &mut |_, _| Ok(())).unwrap()
}

fn put(log: &mut Recovered, number: u64, body: &[u8]) -> BodyRef {
    let place = log.writer.append(&enqueued(number, body)).unwrap();
    let frame = log.writer.seal().unwrap();
    log.committer.write(std::slice::from_ref(&frame)).unwrap();
    log.committer.sync().unwrap();
    log.writer.durable(frame.number);
    place
}

#[test]
fn bytes_read_ahead_of_what_was_written_are_never_taken_for_a_body() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut log = open(&disk);
    disk.start_segment(SegmentId(1)).unwrap();
    disk.write(SegmentId(1), 0, &[&vec![0; 4 * 1024 * 1024]])
        .unwrap();
    let first = put(&mut log, 1, &[1; 1024]);
    let mut log = open(&disk);
    let read = read_ahead(&*disk, first, 1024, log.writer.readable_until()).unwrap();
    log.writer.insert_read(read);
    let second = put(&mut log, 2, &[2; 1024]);
    for number in 3..200 {
        put(&mut log, number, &[3; 1024]);
    }
    if let Some(found) = log.writer.cached(second) {
        assert_eq!(found, vec![2; 1024]);
    }
}

#[test]
fn a_body_behind_the_end_of_its_segment_is_noticed_at_the_start() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut log = open(&disk);
    let body = put(&mut log, 1, &[1; 1024]);
    let mut log = open(&disk);
    log.writer.retain(body);
    assert!(log.writer.check_bodies().is_ok());
    log.writer.retain(BodyRef {
        length: 2048,
        ..body
    });
    assert!(matches!(
        log.writer.check_bodies(),
        Err(Error::Corrupt { .. })
    ));
}

#[test]
fn a_body_that_has_changed_on_the_disk_is_never_handed_out() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut log = open(&disk);
    let bodies: Vec<BodyRef> = (1..9).map(|n| put(&mut log, n, &[7; 100])).collect();
    let mut log = open(&disk);
    for damaged in &bodies {
        let offset = layout::Position::of(*damaged).offset + 50;
        disk.write(SegmentId(1), offset, &[&[8]]).unwrap();
        let until = log.writer.readable_until();
        for body in &bodies {
            let read = read_ahead(&*disk, *body, 1024, until);
            assert_eq!(read.is_err(), body == damaged, "{body:?}");
            if let Ok(read) = read {
                assert!(read.body(*damaged).is_none());
                log.writer.insert_read(read);
                assert!(log.writer.cached(*body).unwrap() == [7; 100][..]);
                let cached = log.writer.cached(*damaged);
                assert!(cached.is_none_or(|found| found == [7; 100][..]));
            }
        }
        disk.write(SegmentId(1), offset, &[&[7]]).unwrap();
    }
}

#[test]
fn small_bodies_that_are_all_alive_are_not_compacted_for_ever() {
    for length in [0, 1, 10, 40, 200] {
        let options = Options {
            segment_bytes: 16 * 1024,
            cache_bytes: 1024 * 1024,
            store: 1,
            tail_records_max: u64::MAX,
            accepts_loss: false,
            newest_kind: NEWEST_KIND,
        };
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut log = recover(disk, options, &mut |_, _| Ok(())).unwrap();
        let body = vec![7; length];
        let number = |at: u64| (1 << 48) + at;
        // Each in a frame of its own: that takes most space.
        let mut bodies: Vec<BodyRef> = (0..4000)
            .map(|at| put(&mut log, number(at), &body))
            .collect();
        let mut relocated = 0;
        for passing in 0..2000 {
            let place = put(&mut log, passing, &[9; 500]);
            log.writer.release(place);
            let at = log.writer.checkpoint_at();
            log.writer.checkpoint_written(at);
            let _ = log.writer.take_removable();
            let Some(positions) = log.writer.compaction_candidates() else {
                continue;
            };
            for (at, old) in (0..).zip(&mut bodies) {
                if positions.contains(old.position) {
                    let record = Record::Relocated {
                        entity: EntityId(3),
                        number: SequenceNumber(number(at)),
                        body: &body,
                    };
                    let new = log.writer.append(&record).unwrap();
                    log.writer.release(std::mem::replace(old, new));
                    relocated += 1;
                }
            }
            let frame = log.writer.seal().unwrap();
            log.committer.write(std::slice::from_ref(&frame)).unwrap();
            log.committer.sync().unwrap();
            log.writer.durable(frame.number);
        }
        assert!(
            relocated < 40_000,
            "{relocated} with bodies of {length} bytes"
        );
    }
}

#[test]
fn a_segment_stays_until_what_is_to_be_read_there_was_read() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut log = open(&disk);
    let body = put(&mut log, 1, &[7; 100]);
    log.writer.pin(body);
    log.writer.pin(body);
    log.writer.release(body);
    // All of them dead, and the last in the next segment.
    for number in 2.. {
        let place = put(&mut log, number, &vec![8; 64 * 1024]);
        log.writer.release(place);
        if layout::Position::of(place).segment != SegmentId(1) {
            break;
        }
    }
    put(&mut log, 0, &[]);
    let at = log.writer.checkpoint_at();
    log.writer.checkpoint_written(at);
    for _ in 0..2 {
        assert_eq!(log.writer.take_removable(), [], "it is to be read");
        log.writer.unpin(body);
    }
    assert_eq!(log.writer.take_removable(), [SegmentId(1)]);
}
