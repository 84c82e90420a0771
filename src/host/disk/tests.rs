//! The disk in files.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::limits;
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_journal::Options;
use jitney_queue::{Journal, Record};

const SEGMENT_BYTES: u64 = 3 * 1024 * 1024 / 2;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn bytes_are_read_as_they_were_written_and_zeros_behind_them() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FileDisk::open_with(directory.path(), SEGMENT_BYTES).unwrap();
    disk.start_segment(SegmentId(1)).unwrap();
    let large = vec![5; 3 * limits::PREPARE_WRITE_BYTES / 2];
    disk.write(SegmentId(1), 100, &[b"ab", &large, b"", b"cd"])
        .unwrap();
    disk.sync(SegmentId(1)).unwrap();
    let length = 104 + large.len();
    let mut read = vec![1; length + 100];
    assert_eq!(disk.read(SegmentId(1), 0, &mut read).unwrap(), length);
    let expected = [&[0; 100][..], b"ab", &large, b"cd"].concat();
    assert!(read[..length] == expected[..]);
    disk.truncate(SegmentId(1), 101).unwrap();
    assert_eq!(disk.read(SegmentId(1), 0, &mut read).unwrap(), length);
    assert!(read[..101] == expected[..101] && read[101..length].iter().all(|byte| *byte == 0));
}

#[test]
fn what_is_made_is_for_its_owner_only() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("deep/data");
    let disk = FileDisk::open_with(&directory, SEGMENT_BYTES).unwrap();
    disk.start_segment(SegmentId(1)).unwrap();
    disk.write_checkpoint(7).unwrap().finish().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    // A directory that an operator made readable stays so, and a warning is logged.
    let open = fs::Permissions::from_mode(0o750);
    fs::set_permissions(&directory, open).unwrap();
    let found = files::make_private_directory(&directory).unwrap();
    assert_eq!((found, mode(&directory)), (Some(0o750), 0o750));
}

#[test]
fn a_file_is_opened_as_soon_as_there_is_a_descriptor() {
    let path = Path::new("of-the-log");
    for none in [Errno::MFILE, Errno::NFILE] {
        let mut left = 3;
        let open = || {
            left -= 1;
            if 0 < left {
                return Err(none.into());
            }
            tempfile::tempfile()
        };
        assert!(open_patiently(path, open, || true).is_ok());
        assert_eq!(left, 0);
        let stopped = open_patiently(path, || Err(none.into()), || false);
        assert!(stopped.is_err());
    }
    let other = open_patiently(path, || Err(Errno::ACCESS.into()), || panic!("it waits"));
    assert!(other.is_err());
}

#[test]
fn a_directory_is_for_one_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FileDisk::open_with(directory.path(), SEGMENT_BYTES).unwrap();
    let second = FileDisk::open_with(directory.path(), SEGMENT_BYTES).map(|_| ());
    assert!(matches!(second, Err(Error::Locked { .. })), "{second:?}");
    drop(disk);
    assert!(FileDisk::open_with(directory.path(), SEGMENT_BYTES).is_ok());
}

#[test]
fn a_removed_segment_becomes_a_spare_of_the_right_length_unless_a_backup_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let disk = FileDisk::open_with(path, SEGMENT_BYTES).unwrap();
    for id in 1..=2 {
        disk.start_segment(SegmentId(id)).unwrap();
        disk.write(SegmentId(id), SEGMENT_BYTES, &[b"longer"])
            .unwrap();
    }
    assert_eq!(
        disk.segments().unwrap(),
        [
            (SegmentId(1), SEGMENT_BYTES + 6),
            (SegmentId(2), SEGMENT_BYTES + 6)
        ]
    );
    fs::hard_link(path.join("0000000000000002.seg"), path.join("backup")).unwrap();
    disk.remove_segment(SegmentId(1)).unwrap();
    disk.remove_segment(SegmentId(2)).unwrap();
    assert!(disk.segments().unwrap().is_empty());
    drop(disk);
    assert_eq!(
        fs::metadata(path.join("backup")).unwrap().len(),
        SEGMENT_BYTES + 6
    );
    let names = names(path);
    let spares: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("spare-"))
        .collect();
    assert!(!spares.is_empty() && spares.len() <= 2, "{names:?}");
    for spare in spares {
        assert_eq!(fs::metadata(path.join(spare)).unwrap().len(), SEGMENT_BYTES);
    }
}

#[test]
fn a_checkpoint_is_there_only_when_it_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FileDisk::open_with(directory.path(), SEGMENT_BYTES).unwrap();
    let mut sink = disk.write_checkpoint(7).unwrap();
    sink.write(b"abc").unwrap();
    drop(sink);
    assert!(disk.checkpoints().unwrap().is_empty());
    let mut sink = disk.write_checkpoint(7).unwrap();
    sink.write(b"abc").unwrap();
    sink.finish().unwrap();
    assert_eq!(disk.checkpoints().unwrap(), [7]);
    let mut read = [0; 8];
    assert_eq!(disk.read_checkpoint(7, 1, &mut read).unwrap(), 2);
    assert_eq!(&read[..2], b"bc");
    disk.remove_checkpoint(7).unwrap();
    assert!(disk.checkpoints().unwrap().is_empty());
}

#[test]
fn a_log_in_files_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        cache_bytes: 0,
        store: 9,
        tail_records_max: u64::MAX,
        accepts_loss: false,
        newest_kind: jitney_journal::NEWEST_KIND,
    };
    let bytes = vec![3; 100_000];
    let record = |number| Record::Relocated {
        entity: EntityId(1),
        number: SequenceNumber(number),
        body: &bytes,
    };
    for life in 0..3 {
        let disk = FileDisk::open_with(directory.path(), SEGMENT_BYTES).unwrap();
        let mut found = Vec::new();
        let mut replay = |_: &Record<'_>, body: Option<BodyRef>| {
            found.extend(body);
            Ok(())
        };
        let mut log =
            jitney_journal::recover(Arc::<FileDisk>::clone(&disk), options, &mut replay).unwrap();
        assert_eq!(found.len(), life * 40);
        for body in found {
            let read = jitney_journal::read_ahead(&*disk, body, 1024, u64::MAX).unwrap();
            assert!(read.body(body).unwrap() == vec![3; 100_000]);
        }
        for number in 0..40 {
            log.writer.append(&record(number));
            let frame = log.writer.seal().unwrap();
            log.committer.write(&[frame]).unwrap();
        }
        log.committer.sync().unwrap();
    }
}

#[test]
fn a_prepared_segment_that_cannot_be_renamed_is_used_later() {
    let directory = tempfile::tempdir().unwrap();
    let disk = FileDisk::open_with(directory.path(), SEGMENT_BYTES).unwrap();
    disk.start_segment(SegmentId(1)).unwrap();
    // The thread that prepares segments rests while there is one.
    let path = loop {
        let spare = names(directory.path())
            .into_iter()
            .find(|name| name.contains("spare"));
        if let Some(spare) = spare {
            break directory.path().join(spare);
        }
        std::thread::yield_now();
    };
    let elsewhere = directory.path().join("elsewhere");
    fs::rename(&path, &elsewhere).unwrap();
    assert!(disk.start_segment(SegmentId(2)).is_err());
    fs::rename(&elsewhere, &path).unwrap();
    disk.start_segment(SegmentId(2)).unwrap();
    assert!(!path.exists(), "it has become the segment");
}
