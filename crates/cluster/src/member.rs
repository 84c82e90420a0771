//! What a server remembers of one store from one heartbeat and one poll to the next, and what follows for itself.

use std::collections::BTreeSet;
use std::time::Duration;

use jitney_base::time::Millis;

use crate::clocks::ClockComparison;
use crate::deaths::{Death, Healing, Pauses, Rest};
use crate::heartbeats::{DepartedServers, Heartbeats};
use crate::lateness::Lateness;
use crate::lease::Lease;
use crate::name::NameClaim;
use crate::planner::Fitness;
use crate::rates::Rates;
use crate::view::{NamespaceRow, StoreView};

/// What a server remembers of one store.
#[derive(Debug, Default)]
pub struct MemberState {
    /// Its incarnation; empty while this server has not joined the others.
    pub incarnation: String,
    /// The claim to its name.
    pub claim: NameClaim,
    /// This server has left, and sends no more heartbeats.
    pub has_left: bool,
    /// The heartbeats of the other servers.
    pub heartbeats: Heartbeats<String>,
    /// The servers that are not alive.
    pub departed: DepartedServers,
    /// For how long namespaces were served.
    pub healing: Healing,
    /// Namespaces in quarantine for a while.
    pub pauses: Pauses,
    /// Its rest after deaths.
    pub rest: Rest,
    /// How early the answers to its heartbeats come.
    pub(crate) lateness: Lateness,
    /// This server has released its namespaces, because the answers to its heartbeats come too late.
    pub is_late: bool,
    /// Its clock beside the database's.
    pub clock: ClockComparison,
    /// The store is another one than at the start.
    pub is_replaced: bool,
    /// How busy its namespaces are.
    pub rates: Rates,
    /// Namespaces to which a configuration is being applied.
    pub configuring: BTreeSet<i64>,
}

impl MemberState {
    /// Returns whether this server may serve a namespace whose take-over has ended, which began under this lease. Otherwise it was declared
    /// dead meanwhile, has released all that it had, or has left: what it had then was dropped before this namespace was there.
    #[must_use]
    pub fn may_serve(&self, lease: &Lease) -> bool {
        !lease.has_ended() && !self.is_late && !self.has_left
    }

    /// Returns whether this server may take namespaces of the store, if it is to have some: it has joined, its clock is near enough
    /// to the database's, its lease holds most of the time, and the store is still the one of the start.
    #[must_use]
    pub fn may_take(&self) -> bool {
        self.clock.is_in_time()
            && !self.is_late
            && !self.incarnation.is_empty()
            && !self.is_replaced
    }

    /// Returns whether this server is to have namespaces of the store.
    #[must_use]
    pub fn fitness(&self, now: Duration) -> Fitness {
        if !self.clock.is_in_time() {
            return Fitness::Unfit;
        }
        if self.is_late || self.rest.rests(now) {
            return Fitness::Resting;
        }
        Fitness::Fit
    }

    /// Returns those of the namespaces that this server has, which are in order, of which something is counted that is to be counted
    /// anew, because they were served for so long without a death.
    pub(crate) fn healed(
        &self,
        view: &StoreView,
        own: &[i64],
        long: Millis,
        is_counted: fn(&NamespaceRow) -> bool,
    ) -> Vec<i64> {
        let found = view.namespaces.values();
        let found = found.filter(|it| own.binary_search(&it.id).is_ok());
        let long = long.as_duration();
        let healed = found.filter(|it| is_counted(it) && long <= self.healing.healthy(it.id));
        healed.map(|it| it.id).collect()
    }

    /// Returns whether the deaths of this server are to be counted anew.
    #[must_use]
    pub(crate) fn is_forgiven(&self, now: Duration) -> bool {
        self.rest.is_forgiven(now) && !self.is_late && !self.incarnation.is_empty()
    }
}

/// Returns the server whose death counts for a namespace that a server takes.
#[must_use]
pub fn counted_death<'a>(taker: &str, namespace: &'a NamespaceRow) -> Option<&'a str> {
    let server = namespace.died.as_deref()?;
    let death = Death {
        server,
        before: namespace.died_before.as_deref(),
        taker,
    };
    death.counts().then_some(server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clocks;
    use crate::limits;

    fn joined() -> MemberState {
        MemberState {
            incarnation: "x".to_owned(),
            ..MemberState::default()
        }
    }

    /// database-clock and server-clock, each off by an hour: nothing is taken, since times to live would end early.
    #[test]
    fn a_server_takes_no_namespaces_while_its_clock_and_the_database_s_are_an_hour_apart() {
        let (hour, now) = (3_600_000, 1_000 * 3_600_000);
        let mut state = joined();
        assert!(!state.may_take(), "the clocks were not compared");
        for (own, of_database) in [
            (now, now + hour),
            (now, now - hour),
            (now + hour, now),
            (now - hour, now),
        ] {
            state
                .clock
                .compare(clocks::offset_of(own, of_database, 200));
            assert!(!state.may_take(), "{own} {of_database}");
            state.clock.compare(clocks::offset_of(now, now, 200));
            assert!(state.may_take());
        }
    }

    /// restore-with-old-servers: what a server sees of a store that was restored is not what it has in memory.
    #[test]
    fn a_server_takes_no_namespaces_before_it_has_joined_or_of_a_store_that_is_another_one() {
        let mut state = joined();
        state.clock.compare(0);
        assert!(state.may_take());
        state.is_replaced = true;
        assert!(!state.may_take());
        state.is_replaced = false;
        state.incarnation.clear();
        assert!(!state.may_take());
    }

    #[test]
    fn a_server_that_has_died_too_often_or_is_late_rests_and_one_whose_clock_is_off_is_unfit() {
        let mut state = joined();
        let now = Duration::from_secs(1_000);
        assert_eq!(state.fitness(now), Fitness::Unfit, "not compared");
        state.clock.compare(0);
        assert_eq!(state.fitness(now), Fitness::Fit);
        state.rest.begin(now, limits::SERVER_DEATHS_MAX);
        assert_eq!(state.fitness(now), Fitness::Resting);
        assert!(state.may_take(), "if there is no other server");
        assert_eq!(
            state.fitness(now + limits::SERVER_REST.as_duration()),
            Fitness::Fit
        );
        state.rest.forgive();
        state.is_late = true;
        assert_eq!(state.fitness(now), Fitness::Resting);
        assert!(!state.may_take(), "it could not serve");
        state.clock.compare(-1_001);
        assert_eq!(state.fitness(now), Fitness::Unfit);
    }
}
