//! A namespace taken out of one journal and put into another, whole: its state as a checkpoint, and the bytes of its
//! messages in front of it. Messages keep their numbers; what was done before is left out of the new journal.
//!
//! What was put is counted and summed up by [`Contents::summary`], which reads all bytes of all messages: if the summaries of
//! both journals are the same, so are the namespaces.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use bytes::Bytes;

use super::Recovering;
use crate::limits;
use jitney_base::address;
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::Snapshot;
use jitney_journal::{Checkpoints, Disk, Error, Frame, LogReader, Stretch, Writer};
use jitney_queue::{Journal as _, Record};

/// A namespace as a journal has it.
#[derive(Debug)]
pub struct Contents {
    snapshot: Snapshot,
    /// The newest time of its journal.
    newest: Timestamp,
    /// Up to where its journal can be read.
    until: u64,
}

/// What a namespace has, to compare two journals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Queues, topics and subscriptions.
    pub entities: usize,
    /// Messages, those of dead-letter queues among them.
    pub messages: u64,
    /// Bytes of messages; of those that share them, once.
    pub bytes: u64,
    /// The sum of the hashes of all records of its state, those of messages with their bytes.
    pub digest: u64,
}

/// What the groups of a journal go to. When it returns they are durable, or will be before the checkpoint is.
pub type Append<'a> = dyn FnMut(Frame) -> Result<(), Error> + 'a;

impl Contents {
    /// Takes a namespace out of a journal that was read: the first, or one of another name.
    #[must_use]
    pub fn of<C>(recovering: &Recovering<C>, name: Option<&str>) -> Self {
        let snapshot = recovering.gateway().namespaces().snapshot();
        let prefix = name.map(address::namespace_prefix).unwrap_or_default();
        let recovered = recovering.recovered();
        Self {
            snapshot: snapshot.of_namespace(&prefix),
            newest: recovered.newest,
            until: recovered.writer.readable_until(),
        }
    }

    /// Counts what it has and sums it up; all bytes of its messages are read from its journal.
    ///
    /// # Errors
    ///
    /// A message cannot be read as it was written.
    pub fn summary(&self, log: &dyn LogReader) -> Result<Summary, Error> {
        let mut bodies = self.bodies();
        self.read(log, &mut bodies, |_, _| Ok(()))?;
        Ok(self.summed(&bodies))
    }

    /// Puts it into a journal that is empty: `append` gets the groups with its messages' bytes, `to` the checkpoint. Returns
    /// what [`Contents::summary`] does.
    ///
    /// # Errors
    ///
    /// A message cannot be read as it was written, or the other journal cannot be written.
    pub fn put(
        &self,
        from: &dyn LogReader,
        to: &dyn Checkpoints,
        mut writer: Writer,
        append: &mut Append<'_>,
    ) -> Result<Summary, Error> {
        let mut bodies = self.bodies();
        self.read(from, &mut bodies, |place, body| {
            // It is never replayed: the checkpoint is behind it. Its position is what counts.
            let record = Record::Relocated {
                entity: place.entity,
                number: place.number,
                body,
            };
            let new = writer.append(&record);
            place.new = new.expect("a record with a body has a place for it");
            if limits::TRANSFER_GROUP_BYTES <= writer.open_bytes() {
                flush(&mut writer, append)?;
            }
            Ok(())
        })?;
        flush(&mut writer, append)?;
        writer.follow_clock(self.newest);
        jitney_journal::write_checkpoint(to, writer.checkpoint_at(), |emit| {
            self.snapshot.records(&mut |record| {
                if let Record::Alive { body, .. } = record {
                    let new = find(&bodies, *body).new;
                    emit(&with_body(record, new));
                } else {
                    emit(record);
                }
            });
        })?;
        Ok(self.summed(&bodies))
    }

    /// Returns the places of all bytes of messages, in the order of their positions.
    fn bodies(&self) -> Vec<BodyPlace> {
        let mut bodies = Vec::new();
        self.snapshot.records(&mut |record| {
            if let Record::Alive {
                entity,
                number,
                body,
                ..
            } = *record
            {
                bodies.push(BodyPlace {
                    entity,
                    number,
                    old: body,
                    new: body,
                    hash: 0,
                });
            }
        });
        bodies.sort_by_key(|place| place.old.position);
        bodies.dedup_by_key(|place| place.old.position);
        bodies
    }

    /// Reads the bytes of messages, and hashes them.
    fn read(
        &self,
        log: &dyn LogReader,
        bodies: &mut [BodyPlace],
        mut visit: impl FnMut(&mut BodyPlace, &Bytes) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut stretch: Option<Stretch> = None;
        for place in bodies {
            let held = stretch.as_ref().and_then(|it| it.body(place.old));
            let body = match held {
                Some(body) => body,
                None => {
                    let ahead = jitney_journal::limits::RECOVERY_READ_BYTES;
                    let read = jitney_journal::read_ahead(log, place.old, ahead, self.until)?;
                    let body = read.body(place.old);
                    stretch = Some(read);
                    body.expect("a stretch has the body that it was read for")
                }
            };
            place.hash = hash(&body);
            visit(place, &body)?;
        }
        Ok(())
    }

    /// Sums up what there is; the bytes were read.
    fn summed(&self, bodies: &[BodyPlace]) -> Summary {
        let lengths = bodies.iter().map(|place| u64::from(place.old.length));
        let mut summary = Summary {
            entities: self.snapshot.entity_count(),
            bytes: lengths.sum(),
            ..Summary::default()
        };
        self.snapshot.records(&mut |record| {
            let mut hasher = DefaultHasher::new();
            // A record's text has all of its fields.
            let text = if let Record::Alive { body, .. } = record {
                summary.messages += 1;
                find(bodies, *body).hash.hash(&mut hasher);
                let nowhere = BodyRef {
                    position: 0,
                    ..*body
                };
                format!("{:?}", with_body(record, nowhere))
            } else {
                format!("{record:?}")
            };
            text.hash(&mut hasher);
            // Whatever their order is.
            summary.digest = summary.digest.wrapping_add(hasher.finish());
        });
        summary
    }
}

/// The bytes of a message.
#[derive(Debug)]
struct BodyPlace {
    /// One of the messages that have them.
    entity: EntityId,
    number: SequenceNumber,
    /// Where they are.
    old: BodyRef,
    /// Where they are in the other journal.
    new: BodyRef,
    hash: u64,
}

fn find(bodies: &[BodyPlace], body: BodyRef) -> &BodyPlace {
    let found = bodies.binary_search_by_key(&body.position, |place| place.old.position);
    let found = found.ok().and_then(|at| bodies.get(at));
    found.expect("all bodies were listed")
}

fn hash(body: &Bytes) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    hasher.finish()
}

/// Returns the record of a message, with its bytes in another place.
fn with_body<'a>(record: &Record<'a>, new: BodyRef) -> Record<'a> {
    let mut moved = record.clone();
    if let Record::Alive { body, .. } = &mut moved {
        *body = new;
    }
    moved
}

/// Ends the open group, and hands it on.
fn flush(writer: &mut Writer, append: &mut Append<'_>) -> Result<(), Error> {
    let Some(frame) = writer.seal() else {
        return Ok(());
    };
    let number = frame.number;
    append(frame)?;
    writer.durable(number);
    Ok(())
}

/// Puts a namespace into a journal in files, which is empty.
///
/// # Errors
///
/// Those of [`Contents::put`].
pub fn put_into_files(
    contents: &Contents,
    from: &dyn LogReader,
    to: &Arc<dyn Disk>,
    options: jitney_journal::Options,
) -> Result<Summary, Error> {
    let empty = jitney_journal::recover(Arc::clone(to), options, &mut |_, _| {
        Err("it has records already".to_owned())
    })?;
    let mut committer = empty.committer;
    let mut append = |frame: Frame| {
        committer.write(&[frame])?;
        committer.sync()
    };
    contents.put(from, &**to, empty.writer, &mut append)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Output;
    use jitney_base::memory::Memory;
    use jitney_broker::access::Profile;
    use jitney_broker::namespace::{EntityRefused, StepContext};
    use jitney_gateway::Gateway;
    use jitney_journal::Options;
    use jitney_journal::memory::MemoryDisk;
    use jitney_queue::{Description, EntityKind};

    const NOW: Timestamp = Timestamp::EPOCH;

    fn gateway() -> Gateway {
        Gateway::new(1, Profile::Development)
    }

    fn read(disk: &Arc<dyn Disk>) -> Recovering {
        Recovering::recover(gateway(), Arc::clone(disk), Options::new(1)).unwrap()
    }

    /// Begins with what a disk has, takes a step, and makes it durable.
    fn change<T>(
        recovering: Recovering,
        step: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> T,
    ) -> T {
        let begun = recovering.begin(NOW, Memory::default(), usize::MAX, |_, _| Ok::<(), ()>(()));
        let ready = begun.unwrap();
        let (mut shard, mut committer) = (ready.shard, ready.committer);
        let done = shard.configure(NOW, step);
        for now in [NOW, NOW.after(limits::HELD_TIME_MAX)] {
            shard.finish_turn(now);
        }
        while let Some(output) = shard.poll_output() {
            if let Output::Commit(frame) = output {
                committer.write(&[frame]).unwrap();
            }
        }
        committer.sync().unwrap();
        done
    }

    /// A log with messages in the queue `q` of the first namespace, and in one of another namespace that forwards to
    /// a topic there with two subscriptions.
    fn log() -> Arc<dyn Disk> {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        change(read(&disk), |gateway, cx| {
            let mut make = |path: &str, kind, forward_to: Option<&str>| {
                let description = Description {
                    kind,
                    forward_to: forward_to.map(str::to_owned),
                    ..Description::default()
                };
                gateway.ensure_entity(cx, path, description).map(drop)
            };
            make("q", EntityKind::Queue, None)?;
            make("//other/q", EntityKind::Queue, None)?;
            make("//other/t", EntityKind::Topic, None)?;
            make("//other/t/Subscriptions/a", EntityKind::Subscription, None)?;
            make("//other/t/Subscriptions/b", EntityKind::Subscription, None)?;
            make("//other/way", EntityKind::Queue, Some("//other/t"))?;
            for path in ["q", "//other/q", "//other/q", "//other/t", "//other/way"] {
                gateway.take_word(cx, path, &format!("of {path}"));
            }
            Ok::<(), EntityRefused>(())
        })
        .unwrap();
        disk
    }

    fn put(contents: &Contents, from: &Arc<dyn Disk>) -> (Arc<dyn Disk>, Summary) {
        let to: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut options = Options::new(2);
        options.segment_bytes = 4_096;
        let summary = put_into_files(contents, &**from, &to, options).unwrap();
        (to, summary)
    }

    #[test]
    fn a_namespace_of_several_becomes_the_first_of_its_own_log() {
        let from = log();
        let contents = Contents::of(&read(&from), Some("other"));
        let (to, summary) = put(&contents, &from);
        // Subscriptions share the bytes of a message.
        let texts = [
            "of //other/q",
            "of //other/q",
            "of //other/t",
            "of //other/way",
        ];
        let bytes = texts.iter().map(|it| u64::try_from(it.len() + 5).unwrap());
        assert_eq!(
            (summary.entities, summary.messages, summary.bytes),
            (5, 6, bytes.sum())
        );
        assert_eq!(contents.summary(&*from).unwrap(), summary);
        assert_eq!(
            Contents::of(&read(&to), None).summary(&*to).unwrap(),
            summary
        );
        let number = change(read(&to), |gateway, cx| {
            let namespaces = gateway.namespaces();
            assert!(namespaces.resolve_path("Q").is_some());
            assert!(namespaces.resolve_path("//other/q").is_none());
            let way = namespaces.resolve_path("way").unwrap();
            let description = namespaces.queue(way).unwrap().description();
            assert_eq!(description.forward_to.as_deref(), Some("t"));
            gateway.take_word(cx, "way", "more");
            let queue = gateway.namespaces().resolve_path("q").unwrap();
            let message = jitney_gateway::testing::message("third");
            gateway.take_messages(cx, queue, vec![message]).unwrap()
        });
        assert_eq!(number, [SequenceNumber(3)], "numbers continue");
        let after = Contents::of(&read(&to), None).summary(&*to).unwrap();
        assert_eq!(after.messages, summary.messages + 3);
    }

    #[test]
    fn the_first_namespace_leaves_the_others_behind() {
        let from = log();
        let contents = Contents::of(&read(&from), None);
        let (to, summary) = put(&contents, &from);
        assert_eq!((summary.entities, summary.messages), (1, 1));
        assert_eq!(
            Contents::of(&read(&to), None).summary(&*to).unwrap(),
            summary
        );
        let none = Contents::of(&read(&from), Some("unknown"));
        let (to, summary) = put(&none, &from);
        assert_eq!((summary.entities, summary.messages), (0, 0));
        assert_eq!(
            Contents::of(&read(&to), None).summary(&*to).unwrap(),
            summary
        );
    }

    #[test]
    fn every_difference_changes_the_summary() {
        let from = log();
        let of = |disk: &Arc<dyn Disk>| {
            let contents = Contents::of(&read(disk), Some("other"));
            contents.summary(&**disk).unwrap()
        };
        let before = of(&from);
        assert_eq!(of(&log()), before, "it is the same for the same");
        let digest = |word: &str| {
            let disk = log();
            change(read(&disk), |gateway, cx| {
                gateway.take_word(cx, "//other/q", word);
            });
            of(&disk).digest
        };
        assert_ne!(digest("one"), before.digest);
        assert_ne!(digest("one"), digest("two"), "bytes count");
        let disk = log();
        let mut recovering = read(&disk);
        recovering.skip_numbers(1);
        change(recovering, |_, _| ());
        let skipped = of(&disk);
        assert_eq!(skipped.messages, before.messages);
        assert_ne!(skipped.digest, before.digest, "numbers that are next count");
    }

    #[test]
    fn a_damaged_message_is_not_moved() {
        let from = log();
        let contents = Contents::of(&read(&from), None);
        let places = contents.bodies();
        let (segment, offset) = jitney_journal::rows::place(places[0].old.position);
        let mut byte = [0];
        from.read(segment, offset + 1, &mut byte).unwrap();
        from.write(segment, offset + 1, &[&[byte[0] ^ 1]]).unwrap();
        assert!(contents.summary(&*from).is_err());
        let to: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        assert!(put_into_files(&contents, &*from, &to, Options::new(2)).is_err());
        assert!(
            to.checkpoints().unwrap().is_empty(),
            "nothing was published"
        );
    }

    #[test]
    fn numbers_that_are_left_out_stay_so() {
        let disk = log();
        let mut recovering = read(&disk);
        recovering.skip_numbers(limits::RESTORED_NUMBERS);
        let take = |gateway: &mut Gateway, cx: &mut StepContext<'_>| {
            let queue = gateway.namespaces().resolve_path("q").unwrap();
            let message = jitney_gateway::testing::message("next");
            gateway.take_messages(cx, queue, vec![message]).unwrap()
        };
        let first = SequenceNumber(limits::RESTORED_NUMBERS + 2);
        assert_eq!(change(recovering, take), [first]);
        let second = SequenceNumber(first.0 + 1);
        assert_eq!(change(read(&disk), take), [second], "also after a start");
    }
}
