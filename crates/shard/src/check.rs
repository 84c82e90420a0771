//! A check of a journal without a shard: the recovery of a start reads all of it, then the live
//! bodies and the frames before the checkpoint are read as well. Nothing is written.

use std::collections::BTreeSet;

use super::Recovering;
use jitney_base::ids::BodyRef;
use jitney_broker::namespace::{FoundBody, SearchPosition};
use jitney_gateway::Gateway;
use jitney_journal::{Cut, Error, LogEnd, LogReader, LogStatistics, SegmentId, Stretch};
use jitney_queue::Positions;

/// The contents of a journal, and what is wrong with it.
#[derive(Debug)]
pub struct Checked {
    /// None if so much is damaged that nothing can be said of the rest.
    pub contents: Option<JournalContents>,
    /// In the order of their places.
    pub damage: Vec<Finding>,
}

/// The contents of a journal.
#[derive(Debug)]
pub struct JournalContents {
    /// Segments and bytes.
    pub log: LogStatistics,
    /// Groups that were read.
    pub groups: u64,
    /// Where the log ends, and the newest group.
    pub end: LogEnd,
    /// Messages.
    pub messages: u64,
    /// What a crash has left after the end.
    pub torn: Option<Cut>,
    /// The namespaces that have entities, but for the first, in lower case.
    pub namespaces: BTreeSet<String>,
}

/// The place of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DamagePlace {
    /// A checkpoint, by its number.
    Checkpoint(u64),
    /// A segment, and how far from its begin, bytes.
    Segment(SegmentId, u64),
    /// The records do not fit one another.
    Records,
}

/// The consequence of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageEffect {
    /// A broker does not start with it.
    StopsStart,
    /// A broker does not start with it, and `--accept-data-loss` does not help.
    StopsAnyStart,
    /// A message has lost its bytes: it will be dead-lettered without them.
    Message,
    /// No message needs these bytes.
    None,
}

/// Bytes that are not as they were written.
#[derive(Debug)]
pub struct Finding {
    /// Where.
    pub place: DamagePlace,
    /// The fault.
    pub what: String,
    /// The consequence.
    pub effect: DamageEffect,
    /// The entity and the number of the message that is concerned.
    pub message: Option<(String, u64)>,
}

/// Reads all of a journal. A gateway without entities is made for each time that it is read.
///
/// # Errors
///
/// The journal cannot be read, or is of another version.
pub fn check(
    gateway: impl Fn() -> Gateway,
    log: &dyn LogReader,
    options: jitney_journal::Options,
) -> Result<Checked, Error> {
    let strict = Recovering::read(gateway(), log, options);
    let (recovering, mut damage) = match strict {
        Ok(recovering) => (recovering, Vec::new()),
        Err(error) => {
            let first = finding(error)?;
            let mut options = options;
            options.accepts_loss = true;
            match Recovering::read(gateway(), log, options) {
                Ok(recovering) => (recovering, vec![first]),
                Err(error) => {
                    let effect = DamageEffect::StopsAnyStart;
                    let damage = vec![Finding { effect, ..first }];
                    finding(error)?;
                    let contents = None;
                    return Ok(Checked { contents, damage });
                }
            }
        }
    };
    let recovered = recovering.recovered();
    for loss in &recovered.losses {
        let place = DamagePlace::Segment(loss.segment, loss.offset);
        if damage.iter().all(|known| known.place != place) {
            damage.push(lost(place, loss.what, DamageEffect::StopsStart));
        }
    }
    let bodies = damaged_bodies(&recovering, log)?;
    let concerned: BTreeSet<DamagePlace> = bodies.iter().map(|found| found.place).collect();
    damage.extend(bodies);
    let older = jitney_journal::check_older(log, recovered)?;
    for found in recovered.damaged.iter().chain(&older.damaged) {
        let (segment, offset) = found.position();
        let place = DamagePlace::Segment(segment, offset);
        if !concerned.contains(&place) {
            damage.push(lost(place, "its checksum is wrong", DamageEffect::None));
        }
    }
    for loss in &older.losses {
        let place = DamagePlace::Segment(loss.segment, loss.offset);
        damage.push(lost(place, loss.what, DamageEffect::None));
    }
    damage.sort_by_key(|found| found.place);
    let contents = Some(JournalContents {
        log: recovered.writer.statistics(),
        groups: recovered.frames + older.frames,
        end: recovered.writer.durable_end(),
        messages: recovering.messages,
        torn: recovered.cut,
        namespaces: recovering.namespaces(),
    });
    Ok(Checked { contents, damage })
}

fn lost(place: DamagePlace, what: &str, effect: DamageEffect) -> Finding {
    Finding {
        place,
        what: what.to_owned(),
        effect,
        message: None,
    }
}

/// Returns the damage that an error of recovery is about.
fn finding(error: Error) -> Result<Finding, Error> {
    match error {
        Error::Corrupt {
            segment,
            offset,
            what,
        } => Ok(lost(
            DamagePlace::Segment(segment, offset),
            what,
            DamageEffect::StopsStart,
        )),
        Error::CorruptCheckpoint { number, what } => {
            let place = DamagePlace::Checkpoint(number);
            Ok(lost(place, what, DamageEffect::StopsAnyStart))
        }
        Error::Replay(what) => Ok(lost(DamagePlace::Records, &what, DamageEffect::StopsStart)),
        Error::Body { .. }
        | Error::Full
        | Error::Io { .. }
        | Error::Locked { .. }
        | Error::CorruptRows { .. }
        | Error::Store(_)
        | Error::Fenced
        | Error::Version { .. } => Err(error),
    }
}

/// Reads all live bodies, and returns those that are not as they were written.
fn damaged_bodies(recovering: &Recovering<()>, log: &dyn LogReader) -> Result<Vec<Finding>, Error> {
    let namespaces = recovering.gateway().namespaces();
    let until = recovering.recovered().writer.readable_until();
    let everywhere: Positions = std::iter::once(0..u64::MAX).collect();
    let mut live: Vec<FoundBody> = Vec::new();
    let mut next = Some(SearchPosition::default());
    while let Some(from) = next {
        let (found, rest) =
            namespaces.search_bodies(&everywhere, from, jitney_broker::limits::COMPACTION_SCAN);
        live.extend(found);
        next = rest;
    }
    live.sort_by_key(|found| found.body.position);
    let mut damage = Vec::new();
    let mut stretch: Option<Stretch> = None;
    for found in &live {
        let held = stretch.as_ref().and_then(|it| it.body(found.body));
        if held.is_some() {
            continue;
        }
        match read(log, found.body, until) {
            Ok(read) => stretch = Some(read),
            Err(Error::Body {
                segment,
                offset,
                what,
            }) => damage.push(Finding {
                place: DamagePlace::Segment(segment, offset),
                what,
                effect: DamageEffect::Message,
                message: Some((namespaces.name_of(found.entity), found.number.0)),
            }),
            Err(error) => return Err(error),
        }
    }
    Ok(damage)
}

fn read(log: &dyn LogReader, body: BodyRef, until: u64) -> Result<Stretch, Error> {
    jitney_journal::read_ahead(
        log,
        body,
        jitney_journal::limits::RECOVERY_READ_BYTES,
        until,
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::limits;
    use crate::{Output, Shard};
    use jitney_base::memory::Memory;
    use jitney_base::time::Timestamp;
    use jitney_broker::access::Profile;
    use jitney_broker::namespace::EntityRefused;
    use jitney_journal::memory::MemoryDisk;
    use jitney_journal::{Disk, Frame, Options};
    use jitney_queue::Description;

    const NOW: Timestamp = Timestamp::EPOCH;

    fn gateway() -> Gateway {
        Gateway::new(1, Profile::Development)
    }

    /// Takes the groups that a shard has sealed.
    fn groups(shard: &mut Shard) -> Vec<Frame> {
        shard.finish_turn(NOW);
        shard.finish_turn(NOW.after(limits::HELD_TIME_MAX));
        let outputs = std::iter::from_fn(|| shard.poll_output());
        let groups = outputs.filter_map(|output| match output {
            Output::Commit(frame) => Some(frame),
            _ => None,
        });
        groups.collect()
    }

    /// A log with three messages in the queue `q`, and where their bodies are.
    fn log() -> (Arc<dyn Disk>, Vec<BodyRef>) {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let recovering =
            Recovering::recover(gateway(), Arc::clone(&disk), Options::new(1)).unwrap();
        let ready = recovering.begin(NOW, Memory::default(), usize::MAX, |gateway, cx| {
            gateway
                .ensure_entity(cx, "q", Description::default())
                .map(drop)
        });
        let ready = ready.map_err(|_: EntityRefused| "q").unwrap();
        let (mut shard, mut committer) = (ready.shard, ready.committer);
        for word in ["one", "two", "three"] {
            shard.configure(NOW, |gateway, cx| gateway.take_word(cx, "q", word));
            committer.write(&groups(&mut shard)).unwrap();
            // A group that was synced before a later one was written is not taken for a torn end.
            committer.sync().unwrap();
        }
        let mut bodies = Vec::new();
        let namespaces = shard.gateway().namespaces();
        namespaces.for_each_body(|body| bodies.push(body));
        (disk, bodies)
    }

    fn checked(disk: &Arc<dyn Disk>) -> Checked {
        check(gateway, &**disk, Options::new(1)).unwrap()
    }

    /// Changes a byte of the first segment.
    fn flip(disk: &Arc<dyn Disk>, offset: u64) {
        let mut byte = [0];
        disk.read(SegmentId(1), offset, &mut byte).unwrap();
        disk.write(SegmentId(1), offset, &[&[byte[0] ^ 1]]).unwrap();
    }

    #[test]
    fn what_is_sound_is_counted() {
        let (disk, _) = log();
        let found = checked(&disk);
        assert!(found.damage.is_empty(), "{:?}", found.damage);
        let contents = found.contents.unwrap();
        assert_eq!(contents.messages, 3);
        assert_eq!(contents.groups, contents.end.frame);
        assert_eq!(contents.torn, None);
    }

    #[test]
    fn a_damaged_body_is_reported_with_its_message() {
        let (disk, bodies) = log();
        let offset = bodies[1].position & ((1 << 36) - 1);
        flip(&disk, offset + 1);
        let found = checked(&disk);
        let [damage] = &found.damage[..] else {
            panic!("{:?}", found.damage);
        };
        assert_eq!(damage.place, DamagePlace::Segment(SegmentId(1), offset));
        assert_eq!(damage.effect, DamageEffect::Message);
        assert_eq!(damage.message, Some(("q".to_owned(), 2)));
        assert_eq!(found.contents.unwrap().messages, 3);
    }

    #[test]
    fn a_damaged_group_stops_the_start_and_the_rest_is_counted() {
        let (disk, bodies) = log();
        let first = bodies[0].position & ((1 << 36) - 1);
        // The kind of the record before the body, or the header of its group.
        flip(&disk, 64 + 16);
        flip(&disk, first - 4);
        let found = checked(&disk);
        let stops = |it: &&Finding| it.effect == DamageEffect::StopsStart;
        assert_eq!(found.damage.iter().filter(stops).count(), 1, "{found:?}");
        assert!(found.contents.is_some());
    }
}
