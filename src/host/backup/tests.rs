//! Backups of logs in files.

use super::*;
use crate::host::disk::FileDisk;
use crate::host::restore::{RestoreError, restore};
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_journal::limits;
use jitney_journal::{Disk as _, Options, Recovered};
use jitney_queue::{Journal as _, Record};

const SEGMENT_BYTES: u64 = 3 * 1024 * 1024 / 2;
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
/// Bytes of a body.
const BODY: usize = 100_000;

/// A data directory with a log, and a place for backups.
struct Bench {
    root: tempfile::TempDir,
    source: Source,
    log: Recovered,
}

fn opened(directory: &Path) -> (Arc<FileDisk>, Recovered, usize) {
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        cache_bytes: 0,
        store: 9,
        tail_records_max: u64::MAX,
        accepts_loss: false,
        newest_kind: jitney_journal::NEWEST_KIND,
    };
    let disk = FileDisk::open_with(directory, SEGMENT_BYTES).unwrap();
    let mut found = Vec::new();
    let mut replay = |_: &Record<'_>, body: Option<BodyRef>| {
        found.extend(body);
        Ok(())
    };
    let log = jitney_journal::recover(Arc::<FileDisk>::clone(&disk), options, &mut replay).unwrap();
    for body in &found {
        let read = jitney_journal::read_ahead(&*disk, *body, 0, u64::MAX).unwrap();
        assert!(read.body(*body).unwrap() == vec![3; BODY]);
    }
    (disk, log, found.len())
}

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("data");
        let (disk, log, _) = opened(&directory);
        let disks = vec![(0, disk)];
        let source = Source { directory, disks };
        fs::write(root.path().join("data/root.key"), "a key").unwrap();
        Self { root, source, log }
    }

    fn disk(&self) -> &FileDisk {
        &self.source.disks[0].1
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&mut self, count: u64) {
        for number in 0..count {
            self.log.writer.append(&Record::Relocated {
                entity: EntityId(1),
                number: SequenceNumber(number),
                body: &vec![3; BODY],
            });
            let frame = self.log.writer.seal().unwrap();
            let number = frame.number;
            self.log.committer.write(&[frame]).unwrap();
            self.log.committer.sync().unwrap();
            self.log.writer.durable(number);
        }
    }

    fn back_up(&self) -> Result<NewBackup, BackupError> {
        let end = self.log.writer.durable_end();
        let positions = || vec![(0, end)];
        self.source.back_up(&self.path("backup"), positions, NOW)
    }

    /// Restores the backup, and counts what is in its log.
    fn restored(&self, name: &str) -> usize {
        restore(&self.path("backup"), &self.path(name)).unwrap();
        let (_, log, count) = opened(&self.path(name));
        assert_eq!(log.cut, None);
        let key = fs::read_to_string(self.path(name).join("root.key"));
        assert_eq!(key.unwrap(), "a key");
        count
    }
}

#[test]
fn what_was_durable_is_restored_and_a_torn_end_is_not() {
    let mut bench = Bench::new();
    bench.write(40);
    let end = bench.log.writer.durable_end();
    // A group that is being written.
    bench
        .disk()
        .write(end.segment, end.offset, &[&[7; 500]])
        .unwrap();
    bench.back_up().unwrap();
    assert_eq!(bench.restored("restored"), 40);
}

#[test]
fn only_what_is_new_is_copied_and_what_is_old_is_removed() {
    let mut bench = Bench::new();
    bench.write(40);
    let first = bench.back_up().unwrap();
    assert_eq!(first.copied, first.manifest.files.len() as u64);
    bench.write(3);
    let second = bench.back_up().unwrap();
    assert!(second.copied <= 2, "{second:?}");
    assert!(second.copied_bytes < 2 * SEGMENT_BYTES);
    let third = bench.back_up().unwrap();
    assert_eq!((third.copied, third.copied_bytes), (0, 0));
    let stored = fs::read_dir(bench.path("backup/files")).unwrap().count();
    assert_eq!(stored, third.manifest.files.len());
    assert_eq!(bench.restored("restored"), 43);
}

#[test]
fn a_segment_with_other_contents_is_copied_again() {
    let mut bench = Bench::new();
    bench.write(40);
    bench.back_up().unwrap();
    // As after a restore of an older backup, which was written on.
    let first = bench.path("data/0000000000000001.seg");
    let mut bytes = fs::read(&first).unwrap();
    bytes[200_000] ^= 1;
    fs::write(&first, bytes).unwrap();
    assert_eq!(bench.back_up().unwrap().copied, 1);
}

#[test]
fn a_changed_byte_of_a_backup_is_refused() {
    let mut bench = Bench::new();
    bench.write(20);
    bench.back_up().unwrap();
    let entries = fs::read_dir(bench.path("backup/files")).unwrap();
    let files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    for file in files {
        let good = fs::read(&file).unwrap();
        let mut bad = good.clone();
        let middle = bad.len() / 2;
        bad[middle] ^= 1;
        for bad in [bad, good[..good.len() - 1].to_vec()] {
            fs::write(&file, bad).unwrap();
            let error = restore(&bench.path("backup"), &bench.path("restored")).unwrap_err();
            assert!(matches!(&error, RestoreError::Damaged(at) if *at == file));
            assert!(!bench.path("restored").exists());
            assert!(!bench.path("restored.restoring").exists());
        }
        fs::write(&file, good).unwrap();
    }
    let path = bench.path("backup/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"group\": 2", "\"group\": 3", 1)).unwrap();
    let error = restore(&bench.path("backup"), &bench.path("restored")).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
    fs::write(&path, text).unwrap();
    assert_eq!(bench.restored("restored"), 20);
    let again = restore(&bench.path("backup"), &bench.path("restored"));
    assert!(matches!(again, Err(RestoreError::NotEmpty(_))));
}

#[test]
fn a_restore_follows_no_link_and_makes_no_file_longer_than_one_can_be() {
    let mut bench = Bench::new();
    bench.write(20);
    bench.back_up().unwrap();
    let manifest = Manifest::read(&bench.path("backup")).unwrap().unwrap();
    let refused = |what: &str| {
        let error = restore(&bench.path("backup"), &bench.path("restored")).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(!bench.path("restored").exists());
        assert!(!bench.path("restored.restoring").exists());
    };
    // A file, and the directory of all, that lie elsewhere.
    let file = manifest.files[0].place(&bench.path("backup"));
    fs::rename(&file, bench.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.path("elsewhere"), &file).unwrap();
    refused("a symbolic link");
    fs::remove_file(&file).unwrap();
    fs::rename(bench.path("elsewhere"), &file).unwrap();
    let files = bench.path("backup/files");
    fs::rename(&files, bench.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(bench.path("elsewhere"), &files).unwrap();
    refused("is no directory");
    fs::remove_file(&files).unwrap();
    fs::rename(bench.path("elsewhere"), &files).unwrap();
    // Zeros behind the bytes are a segment's at most.
    let segment = |files: &[StoredFile]| {
        files
            .iter()
            .position(|it| it.path.strip_suffix(".seg").is_some())
    };
    let at = segment(&manifest.files).unwrap();
    let with_length = |length: u64| {
        let mut changed = manifest.clone();
        changed.files[at].length = length;
        changed.store(&bench.path("backup")).unwrap();
    };
    with_length((1 << 36) + 1);
    refused("no file of a data directory has as many");
    with_length(1 << 36);
    restore(&bench.path("backup"), &bench.path("restored")).unwrap();
    let made = fs::metadata(bench.path("restored").join(&manifest.files[at].path));
    assert_eq!(made.unwrap().len(), limits::SEGMENT_BYTES);
    // A manifest that is a pipe is not waited for.
    let path = bench.path("backup/manifest.json");
    fs::remove_file(&path).unwrap();
    fs::remove_dir_all(bench.path("restored")).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    refused("a pipe");
}

#[test]
fn a_backup_that_fails_leaves_the_one_before_it() {
    let mut bench = Bench::new();
    bench.write(20);
    bench.back_up().unwrap();
    bench.write(20);
    let failed = bench
        .source
        .back_up(&bench.path("backup"), Vec::new, NOW)
        .unwrap_err();
    assert!(matches!(failed, BackupError::Ended(_)), "{failed}");
    // One that was killed has left a file.
    fs::write(bench.path("backup/files").join(COPYING), "half").unwrap();
    assert_eq!(bench.restored("restored"), 20);
    bench.back_up().unwrap();
    assert!(!bench.path("backup/files").join(COPYING).exists());
    assert_eq!(bench.restored("again"), 40);
}

#[test]
fn segments_that_are_removed_meanwhile_are_kept() {
    let mut bench = Bench::new();
    bench.write(40);
    let count = bench.disk().segments().unwrap().len();
    let end = bench.log.writer.durable_end();
    let removing = || {
        bench.disk().remove_segment(SegmentId(1)).unwrap();
        vec![(0, end)]
    };
    bench
        .source
        .back_up(&bench.path("backup"), removing, NOW)
        .unwrap();
    assert_eq!(bench.disk().segments().unwrap().len(), count - 1);
    assert_eq!(bench.restored("restored"), 40);
}

#[tokio::test]
async fn messages_that_are_in_no_data_directory_are_not_backed_up() {
    let root = tempfile::tempdir().unwrap();
    let target = root.path().join("backup");
    for (kept, right) in [
        (Kept::Memory, ["--ephemeral"; 2]),
        (Kept::Store, ["pg_dump", "jitney store export"]),
    ] {
        let (mail, _) = tokio::sync::mpsc::channel(1);
        let shards = Arc::new(Shards::of(vec![("one", mail)]));
        let backups = Arc::new(Backups::new(kept));
        let made = backups.make(shards, target.clone(), NOW).await;
        let Err(BackupError::Argument(text)) = &made else {
            panic!("{made:?}");
        };
        assert!(right.iter().all(|word| text.contains(word)), "{text}");
        assert!(!target.exists());
    }
}

#[test]
fn directories_that_are_not_for_backups_are_refused() {
    let bench = Bench::new();
    fs::create_dir(bench.path("other")).unwrap();
    fs::write(bench.path("other/file"), "").unwrap();
    let link = |to, at| std::os::unix::fs::symlink(bench.path(to), bench.path(at)).unwrap();
    link("data", "link");
    fs::create_dir(bench.path("linked")).unwrap();
    link("other", "linked/files");
    for (target, why) in [
        (PathBuf::from("backup"), "absolute"),
        (bench.path("data/backup"), "in the data directory"),
        (bench.path("link/a/b"), "in the data directory"),
        (bench.path("new/../data/b"), "'..'"),
        (bench.path("other"), "'file'"),
        (bench.path("other/file"), "no directory"),
        (bench.path("linked"), "symbolic link"),
    ] {
        let error = bench.source.check_target(&target).unwrap_err();
        assert!(error.to_string().contains(why), "{target:?}: {error}");
    }
    assert!(bench.source.check_target(&bench.path("a/b")).is_ok());
}
