//! Who has which message session.

use super::*;

impl Model {
    /// Whoever waits for a message session gets one that nobody has and that has messages, the
    /// first the one with the oldest message.
    pub(super) fn grant_sessions(
        &mut self,
        round: &mut Round,
        place: Place,
        fresh: &BTreeSet<u64>,
    ) -> Result<(), String> {
        while let Some(&(at, _)) = self.queue(place).waiting.first() {
            if self.queue(place).free_sessions().is_empty() {
                break;
            }
            self.queue_mut(place).waiting.remove(0);
            self.grant(round, place, at, fresh)?;
        }
        Ok(())
    }

    /// A link is let in to any session.
    pub(in crate::sim) fn grant(
        &mut self,
        round: &mut Round,
        place: Place,
        at: LinkKey,
        fresh: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let free = self.queue(place).free_sessions();
        let (session, until) = round.granted(at)?;
        let Some(&first) = free.get(&session) else {
            return Err(format!("session {session} was granted, free are {free:?}"));
        };
        let older = |(_, ordinal): &(&Session, &u64)| **ordinal < first && !fresh.contains(ordinal);
        let older = free.iter().find(older);
        // Between partitions there is no older and younger.
        if let Some((older, _)) = older.filter(|_| !self.description(place).partitioned) {
            return Err(format!("session {session} was granted, {older} is older"));
        }
        self.hold(round, place, session, at, until)
    }

    /// A link has a session from now on.
    pub(in crate::sim) fn hold(
        &mut self,
        round: &mut Round,
        place: Place,
        session: Session,
        at: LinkKey,
        until: i64,
    ) -> Result<(), String> {
        self.oust(round, place, session)?;
        let expected = round
            .now
            .saturating_add(self.description(place).lock_duration.as_millis());
        if until != expected {
            return Err(format!(
                "{at:?} holds {session} until {until}, not {expected}"
            ));
        }
        let holders = &mut self.queue_mut(place).holders;
        match holders.insert(session, Holder { at, until }) {
            None => Ok(()),
            Some(other) => Err(format!("{session} has two holders: {other:?}, {at:?}")),
        }
    }

    /// The link that held a session until its lock ended is ended.
    pub(super) fn oust(
        &mut self,
        round: &mut Round,
        place: Place,
        session: Session,
    ) -> Result<(), String> {
        match self.queue_mut(place).lapsed.remove(&session) {
            Some(holder) => self.lose_session(round, place, holder.at),
            None => Ok(()),
        }
    }

    /// A link is ended because its session's lock is over.
    pub(super) fn lose_session(
        &mut self,
        round: &mut Round,
        place: Place,
        at: LinkKey,
    ) -> Result<(), String> {
        self.queue_mut(place).receivers.remove(&at);
        self.links.remove(&at);
        round.answer(&format!("{at:?} loses its session"), |sight| {
            matches!(sight, ClientObservation::Detached(link, condition)
                if *link == at && condition == "com.microsoft:session-lock-lost")
        })?;
        Ok(())
    }
}
