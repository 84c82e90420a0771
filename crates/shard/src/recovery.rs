//! A shard's start: its namespaces are built up from the journal, configured, and made ready.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Parts, Shard};
use crate::limits;
use jitney_base::ids::MessageIds;
use jitney_base::memory::Memory;
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{Contained, Damage, Salvage, Salvaged, StepContext};
use jitney_gateway::Gateway;
use jitney_journal::appender::Appended;
use jitney_journal::rows::{RowLog, recover_rows};
use jitney_journal::{Committer, Disk, Frame, LogReader, Recovered, Replay};
use jitney_queue::Record;

/// A shard whose journal was read, and that has not begun. `C` is what writes the journal, as [`Recovered`] has it.
pub struct Recovering<C = Committer> {
    gateway: Gateway,
    recovered: Recovered<C>,
    accepts_loss: bool,
    /// Messages that were found.
    pub messages: u64,
    /// The records that were left out because the log is damaged.
    pub salvaged: Salvaged,
}

/// A shard that has begun, and what is to be told of it.
pub struct Ready<C = Committer> {
    /// The shard.
    pub shard: Shard,
    /// Appends its groups to the log.
    pub committer: C,
    /// The newest group of the log.
    pub last_group: u64,
    /// Messages whose bytes are damaged, or lost: they are in the dead-letter queue without them.
    pub contained: Vec<Contained>,
    /// Damaged bodies whose messages were settled before.
    pub settled: Vec<Damage>,
}

impl Recovering {
    /// Reads a journal, gets it ready to be written, and builds up the namespaces that `gateway` has none of yet.
    ///
    /// # Errors
    ///
    /// The journal cannot be read, or something of it is lost and `options` do not accept that; or its end cannot be
    /// written.
    pub fn recover(
        gateway: Gateway,
        disk: Arc<dyn Disk>,
        options: jitney_journal::Options,
    ) -> Result<Self, jitney_journal::Error> {
        Self::replay(gateway, options, |replay| {
            jitney_journal::recover(disk, options, replay)
        })
    }
}

impl Recovering<()> {
    /// Reads a journal in files as [`Recovering::recover`] does, and changes nothing of it.
    ///
    /// # Errors
    ///
    /// The journal cannot be read, or something of it is lost and `options` do not accept that.
    pub fn read(
        gateway: Gateway,
        log: &dyn LogReader,
        options: jitney_journal::Options,
    ) -> Result<Self, jitney_journal::Error> {
        Self::replay(gateway, options, |replay| {
            jitney_journal::read_log(log, options, replay)
        })
    }

    /// Reads a journal that is kept in rows; returns its last row, too.
    ///
    /// # Errors
    ///
    /// The journal cannot be read, or something of it is lost.
    pub fn read_rows(
        gateway: Gateway,
        log: &dyn RowLog,
        options: jitney_journal::Options,
    ) -> Result<(Self, Appended), jitney_journal::Error> {
        let mut last = Appended::ROOT;
        let recovering = Self::replay(gateway, options, |replay| {
            let recovered;
            (recovered, last) = recover_rows(log, options, replay)?;
            Ok(recovered)
        })?;
        Ok((recovering, last))
    }
}

impl<C> Recovering<C> {
    fn replay(
        mut gateway: Gateway,
        options: jitney_journal::Options,
        recover: impl FnOnce(&mut Replay<'_>) -> Result<Recovered<C>, jitney_journal::Error>,
    ) -> Result<Self, jitney_journal::Error> {
        let mut records: u64 = 0;
        let mut salvage = options.accepts_loss.then(Salvage::default);
        let mut replay = |record: &Record<'_>, body| {
            records += 1;
            if records.is_multiple_of(limits::RELIEF_RECORDS) {
                gateway.namespaces_mut().pack_indexes();
            }
            match &mut salvage {
                Some(salvage) => {
                    salvage.replay(gateway.namespaces_mut(), record, body);
                    Ok(())
                }
                None => {
                    let replayed = gateway.namespaces_mut().replay(record, body);
                    replayed.map_err(|error| error.to_string())
                }
            }
        };
        let mut recovered = recover(&mut replay)?;
        let salvaged = salvage.map(|salvage| salvage.finish(gateway.namespaces()));
        gateway.namespaces_mut().count_shared();
        let mut messages: u64 = 0;
        gateway.namespaces().for_each_body(|body| {
            messages += 1;
            recovered.writer.retain(body);
        });
        if !options.accepts_loss {
            recovered.writer.check_bodies()?;
        }
        Ok(Self {
            gateway,
            recovered,
            accepts_loss: options.accepts_loss,
            messages,
            salvaged: salvaged.unwrap_or_default(),
        })
    }

    /// Returns what the journal's recovery found.
    #[must_use]
    pub fn recovered(&self) -> &Recovered<C> {
        &self.recovered
    }

    /// Seals a group without records, which is to be durable before [`Recovering::begin`]: it shows that the journal is
    /// this server's.
    pub fn barrier(&mut self) -> Frame {
        let frame = self.recovered.writer.barrier();
        self.recovered.last_frame = frame.number;
        self.recovered.writer.durable(frame.number);
        frame
    }

    /// Leaves out so many sequence numbers of every entity, before anything that is due is done. That is durable with the
    /// shard's first group. Returns the number of that; none if there is nothing to be recorded.
    pub fn skip_numbers(&mut self, count: u64) -> Option<u64> {
        let group = self.recovered.last_frame + 1;
        if 0 < count {
            let mut cx = StepContext {
                now: self.recovered.newest,
                journal: &mut self.recovered.writer,
                group,
            };
            self.gateway.namespaces_mut().skip_numbers(&mut cx, count);
        }
        (0 < self.recovered.writer.open_bytes()).then_some(group)
    }

    pub(super) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Returns the namespaces that have entities, but for the first, in lower case.
    #[must_use]
    pub fn namespaces(&self) -> BTreeSet<String> {
        self.gateway.namespaces().namespaces_with_entities()
    }

    /// The clock is behind the journal's newest time, and is followed.
    pub fn follow_clock(&mut self, now: Timestamp) {
        self.recovered.writer.follow_clock(now);
    }

    /// Begins: the namespaces are configured, messages on their way are forwarded, and damage is contained. What
    /// is recorded of that is durable with the shard's first group.
    ///
    /// # Errors
    ///
    /// Those of `configure`.
    pub fn begin<E>(
        self,
        now: Timestamp,
        memory: Memory,
        in_flight_bytes: usize,
        configure: impl FnOnce(&mut Gateway, &mut StepContext<'_>) -> Result<(), E>,
    ) -> Result<Ready<C>, E> {
        let Self {
            mut gateway,
            recovered,
            accepts_loss,
            ..
        } = self;
        let Recovered {
            mut writer,
            committer,
            last_frame,
            damaged,
            losses,
            ..
        } = recovered;
        let lost_bodies = writer.lost_bodies();
        let message_ids = MessageIds::of_log(writer.store());
        gateway.namespaces_mut().set_message_ids(message_ids);
        let mut cx = StepContext {
            now,
            journal: &mut writer,
            group: last_frame + 1,
        };
        gateway.namespaces_mut().arm(now);
        configure(&mut gateway, &mut cx)?;
        gateway.replayed(&mut cx);
        let (mut contained, mut settled) = (Vec::new(), Vec::new());
        for found in &damaged {
            let damage = Damage {
                body: found.body,
                place: found.place(),
            };
            match gateway.body_damaged(&mut cx, found.entity, found.number, &damage) {
                Some(found) => contained.push(found),
                None => settled.push(damage),
            }
        }
        if accepts_loss {
            contained.extend(gateway.namespaces_mut().contain_lost(
                &mut cx,
                &lost_bodies,
                jitney_journal::lost_place,
            ));
        }
        if !losses.is_empty() || !damaged.is_empty() {
            // The checkpoint that losses make due replaces the log without them; a damaged frame is
            // not taken for a torn one while another is behind it.
            gateway.namespaces_mut().restate(&mut cx);
        }
        let shard = Shard::new(Parts {
            gateway,
            journal: writer,
            last_group: last_frame,
            memory,
            in_flight_bytes,
        });
        Ok(Ready {
            shard,
            committer,
            last_group: last_frame,
            contained,
            settled,
        })
    }
}
