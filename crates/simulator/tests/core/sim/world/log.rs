//! The log is written and made durable, and the broker starts again on what it has.

use super::*;

impl Harness {
    /// Writes some of the frames that wait.
    pub(in crate::sim) fn write(&mut self, count: usize) -> Result<(), Stop> {
        if let Some(rows) = &mut self.rows {
            let count = count.min(self.frames.len());
            rows.commit(self.frames.drain(..count));
            return Ok(());
        }
        let frames: Vec<Frame> = self.frames.iter().take(count).cloned().collect();
        match self.committer().write(&frames) {
            Ok(()) => {
                if let Some(last) = frames.last() {
                    let bytes = u64::try_from(last.bytes.len()).expect("fits");
                    self.ends.written = last.position + bytes;
                    if self.ends.attempted < last.number {
                        self.ends.claimed = self.ends.synced;
                    }
                }
                self.frames.drain(..frames.len());
                self.written = frames.last().map_or(self.written, |frame| frame.number);
                Ok(())
            }
            Err(Error::Full) => {
                let last = frames.last().map_or(0, |frame| frame.number);
                self.ends.attempted = self.ends.attempted.max(last);
                Ok(())
            }
            Err(_) => Err(Stop::Ends),
        }
    }

    /// Returns what writes the log, which is on the disk.
    pub(in crate::sim) fn committer(&mut self) -> &mut Committer {
        let committer = self.committer.as_mut();
        committer.expect("a log on the disk has a committer")
    }

    /// Makes durable what was written, and lets go what waited for it.
    pub(in crate::sim) fn sync(&mut self) -> Result<(), Stop> {
        if self.rows.is_some() {
            return self.pass_rows();
        }
        self.committer().sync().map_err(|_| Stop::Ends)?;
        // Of frames that were written in part before the disk was full, some may count.
        self.durable = self.written;
        (self.ends.synced, self.ends.proved) = (self.ends.written, self.ends.claimed);
        self.known.push((self.disk.recorded_count(), self.durable));
        self.auditor.durable(self.durable);
        let (durable, synced) = (self.durable, self.durable);
        self.handle(Input::Durable { durable, synced });
        self.judge()
    }

    pub(in crate::sim) fn sync_all(&mut self) -> Result<(), Stop> {
        self.write(usize::MAX)?;
        if self.rows.is_some() {
            return self.pass_all_rows();
        }
        self.sync()
    }

    /// Starts the broker again on what is on the disk.
    pub(in crate::sim) fn restart(&mut self) -> Result<(), Stop> {
        let (now, entities) = (self.now, &self.entities);
        let (started, committer, found) = match &mut self.rows {
            Some(rows) => {
                let (started, found) =
                    rows.start(&mut self.random, self.segment_bytes, now, entities)?;
                (started, None, found)
            }
            None => {
                let (started, committer) = start(
                    &self.disk,
                    &mut self.random,
                    &mut self.unreadable,
                    self.segment_bytes,
                    now,
                    entities,
                )?;
                let last = started.last;
                (started, Some(committer), last)
            }
        };
        let last = started.last;
        self.trace
            .note(|| format!("restarted after group {found}, and begins after {last}"));
        self.auditor.restarted(found)?;
        if found < last {
            // The group that shows that the log is this server's.
            self.auditor.sealed(last);
            self.auditor.durable(last);
        }
        self.latest = self.latest.max(self.now);
        if self.latest < started.newest {
            let newest = started.newest;
            return Err(Stop::Wrong(format!(
                "{newest} is in the log, and no clock was there"
            )));
        }
        self.shard = started.shard;
        self.seen = started.seen;
        self.committer = committer;
        (self.sealed, self.written, self.durable) = (last, last, last);
        self.frames.clear();
        self.connections.clear();
        self.places.clear();
        self.departed.clear();
        self.is_away = false;
        self.unreleased.clear();
        self.released.clear();
        self.reads.clear();
        self.checkpoint = None;
        self.moved.clear();
        self.moved_from.clear();
        self.amended.clear();
        self.asked.clear();
        self.forget_receives();
        self.answers.clear();
        let proved = self.ends.proved;
        self.ends = Ends {
            written: proved,
            synced: proved,
            claimed: proved,
            attempted: 0,
            proved,
        };
        if let Some(wires) = &mut self.wires {
            wires.clear();
        }
        self.describe_all()?;
        self.damage[1] += started.contained.len();
        let told = &started.contained;
        self.trace
            .note(|| format!("    {told:?} have lost their bytes"));
        let observed = Observed {
            now: self.now,
            group: self.sealed + 1,
            sights: &[],
        };
        self.auditor
            .hits_at_start(observed, started.contained, &self.paths)?;
        self.step(&ClientAction::Timeout)
    }
}
