//! What deaths of servers say of a namespace, and of a server: decisions without I/O.
//!
//! A namespace may end each server that takes it, and a server may be unable to keep any namespace. A death counts for the namespace only
//! if it had died at another server before, or if no other server has taken it; and it always counts for the server. A namespace
//! whose owners die too often is left alone, for longer each time. A server that dies too often rests: it has no namespaces while
//! another server may take them.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits;
use jitney_base::time::Millis;

/// The death of an owner of a namespace, as the server sees it that takes the namespace.
#[derive(Debug, Clone, Copy)]
pub struct Death<'a> {
    /// The name of the server that has died.
    pub server: &'a str,
    /// The name of the server whose death was counted last.
    pub before: Option<&'a str>,
    /// The name of the server that takes the namespace.
    pub taker: &'a str,
}

impl Death<'_> {
    /// Returns whether it counts for the namespace.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.before != Some(self.server) || self.taker == self.server
    }
}

/// Returns whether the owners of a namespace have died so often that the next one would, too: it is to be left alone.
#[must_use]
pub const fn is_deadly(deaths: i32) -> bool {
    limits::TAKEOVERS_MAX < deaths
}

/// For how long namespaces were served without a death of an owner, as this server has seen it, by their numbers.
#[derive(Debug, Default)]
pub struct Healing {
    seen: BTreeMap<i64, (i32, Duration)>,
    /// When they were looked at last.
    looked: Option<Duration>,
}

/// A namespace as a look has found it.
#[derive(Debug, Clone, Copy)]
pub struct Served {
    /// Its number in the store.
    pub id: i64,
    /// The deaths that are counted.
    pub deaths: i32,
    /// A server that is alive has it.
    pub is_served: bool,
}

impl Healing {
    /// Takes all namespaces. The time without a server does not count, nor does that without looks, but for two beats of it. Which server
    /// had the namespace makes no difference.
    pub fn look(&mut self, now: Duration, namespaces: impl IntoIterator<Item = Served>) {
        let span = self.looked.replace(now);
        let span = span.map_or(Duration::ZERO, |looked| now.saturating_sub(looked));
        let span = span.min(2 * limits::HEARTBEAT.as_duration());
        let mut before = std::mem::take(&mut self.seen);
        for Served {
            id,
            deaths,
            is_served,
        } in namespaces
        {
            let known = before.remove(&id).filter(|known| deaths <= known.0);
            let mut healthy = known.map_or(Duration::ZERO, |known| known.1);
            if known.is_some() && is_served {
                healthy += span;
            }
            self.seen.insert(id, (deaths, healthy));
        }
    }

    /// Returns for how long a namespace was served since the last death of an owner.
    #[must_use]
    pub fn healthy(&self, id: i64) -> Duration {
        self.seen
            .get(&id)
            .map_or(Duration::ZERO, |(_, healthy)| *healthy)
    }
}

/// Namespaces that are left alone for a while because of deaths, as this server has seen them, by their numbers.
#[derive(Debug, Default)]
pub struct Pauses {
    /// Which pause it is, and when it was seen first.
    since: BTreeMap<i64, (i32, Duration)>,
}

impl Pauses {
    /// Takes the namespaces that are left alone for a while, each with the number of this pause; returns those whose pause is over.
    pub fn over(
        &mut self,
        now: Duration,
        paused: impl IntoIterator<Item = (i64, i32)>,
    ) -> Vec<(i64, i32)> {
        let mut before = std::mem::take(&mut self.since);
        let mut over = Vec::new();
        for (id, number) in paused {
            let known = before.remove(&id).filter(|known| known.0 == number);
            let since = known.map_or(now, |known| known.1);
            if pause(number) <= now.saturating_sub(since) {
                over.push((id, number));
            }
            self.since.insert(id, (number, since));
        }
        over
    }
}

/// Returns how long a namespace is left alone for the n-th time.
fn pause(number: i32) -> Duration {
    doubled(
        limits::QUARANTINE_PAUSE,
        number.saturating_sub(1),
        limits::QUARANTINE_PAUSE_MAX,
    )
}

/// The rest of this server after deaths.
#[derive(Debug, Default)]
pub struct Rest {
    /// When it ends, or has ended; and how many deaths are counted.
    until: Option<(Duration, i32)>,
}

impl Rest {
    /// Begins after so many deaths, the last one just now.
    pub fn begin(&mut self, now: Duration, deaths: i32) {
        let span = rest(deaths);
        self.until = Some((now + span, deaths));
    }

    /// Returns whether this server rests.
    #[must_use]
    pub fn rests(&self, now: Duration) -> bool {
        self.until.is_some_and(|(until, _)| now < until)
    }

    /// Returns whether the deaths are to be counted anew.
    #[must_use]
    pub fn is_forgiven(&self, now: Duration) -> bool {
        let healthy = limits::SERVER_HEALTHY.as_duration();
        self.until
            .is_some_and(|(until, deaths)| 0 < deaths && until + healthy <= now)
    }

    /// The deaths are counted anew.
    pub fn forgive(&mut self) {
        self.until = None;
    }
}

/// Returns how long a server rests after so many deaths.
#[must_use]
pub fn rest(deaths: i32) -> Duration {
    let further = deaths.saturating_sub(limits::SERVER_DEATHS_MAX);
    if further < 0 {
        return Duration::ZERO;
    }
    doubled(limits::SERVER_REST, further, limits::SERVER_REST_MAX)
}

/// Returns a span that was doubled some times, or the greatest one.
fn doubled(first: Millis, times: i32, most: Millis) -> Duration {
    let factor = u32::try_from(times.max(0))
        .ok()
        .and_then(|times| 1_u32.checked_shl(times));
    let span = factor.and_then(|factor| first.as_duration().checked_mul(factor));
    let most = most.as_duration();
    span.map_or(most, |span| span.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Counts deaths as the statement of a take-over does.
    #[derive(Default)]
    struct Count {
        deaths: i32,
        before: Option<String>,
    }

    impl Count {
        fn dies(&mut self, server: &str, taker: &str) -> i32 {
            let before = self.before.clone();
            let death = Death {
                server,
                before: before.as_deref(),
                taker,
            };
            if death.counts() {
                self.deaths += 1;
                self.before = Some(server.to_owned());
            }
            self.deaths
        }
    }

    /// A server that is frozen again and again, and gets its namespaces back in between.
    #[test]
    fn deaths_at_one_server_count_once_for_a_namespace() {
        let mut count = Count::default();
        for _ in 0..10 {
            assert_eq!(count.dies("flapping", "well"), 1);
        }
        assert!(!is_deadly(count.deaths));
        assert_eq!(count.dies("well", "other"), 2);
        assert_eq!(count.dies("flapping", "other"), 3, "it goes round");
    }

    /// poison-namespace: what ends one owner after the other is not given to a further one. `interop-tests/ha/test_databases.py` kills
    /// the owners.
    #[test]
    fn a_namespace_is_put_into_quarantine_at_the_fourth_death_of_an_owner() {
        let mut count = Count::default();
        for (server, taker) in [("a", "b"), ("b", "a"), ("a", "c")] {
            assert!(!is_deadly(count.dies(server, taker)));
        }
        assert!(is_deadly(count.dies("c", "a")));
        // There is one server only, and it cannot be told which of the two is at fault.
        let mut count = Count::default();
        for death in 1..=4 {
            assert_eq!(count.dies("alone", "alone"), death);
        }
    }

    #[test]
    fn a_namespace_is_healthy_after_a_minute_whichever_servers_had_it() {
        let begun = Duration::from_secs(1_000_000);
        let mut healing = Healing::default();
        let mut at = 0;
        let mut serve = |halves: u64, deaths, is_served| {
            for _ in 0..halves {
                let served = Served {
                    id: 1,
                    deaths,
                    is_served,
                };
                healing.look(begun + Duration::from_millis(500 * at), [served]);
                at += 1;
            }
            healing.healthy(1)
        };
        assert_eq!(serve(101, 2, true), secs(50));
        // It moves, and is without a server meanwhile.
        assert_eq!(serve(10, 2, false), secs(50));
        assert_eq!(serve(20, 2, true), secs(60));
        // That they are counted anew is no death.
        assert_eq!(serve(2, 0, true), secs(61));
        assert_eq!(serve(1, 1, true), Duration::ZERO);
        assert_eq!(serve(2, 1, true), secs(1));
    }

    #[test]
    fn time_without_looks_is_not_healthy() {
        let begun = Duration::from_secs(1_000_000);
        let mut healing = Healing::default();
        let served = Served {
            id: 1,
            deaths: 1,
            is_served: true,
        };
        healing.look(begun, [served]);
        healing.look(begun + secs(600), [served]);
        assert_eq!(healing.healthy(1), secs(1));
        assert_eq!(healing.healthy(2), Duration::ZERO);
    }

    #[test]
    fn a_quarantine_because_of_deaths_ends_after_a_pause_that_grows() {
        let begun = Duration::from_secs(1_000_000);
        let mut pauses = Pauses::default();
        let mut over = |after, number| !pauses.over(begun + secs(after), [(1, number)]).is_empty();
        assert!(!over(0, 1) && !over(59, 1) && over(60, 1));
        assert!(over(61, 1), "it did not succeed");
        // The next owner has died.
        assert!(!over(70, 2) && !over(189, 2) && over(190, 2));
        assert!(!over(200, 30) && !over(3_799, 30) && over(3_800, 30));
        assert!(pauses.over(begun + secs(9_000), []).is_empty());
        assert!(pauses.over(begun + secs(9_001), [(1, 1)]).is_empty());
    }

    #[test]
    fn a_server_that_has_died_twice_in_ten_minutes_rests_and_longer_each_time() {
        let begun = Duration::from_secs(1_000_000);
        let at = |seconds| begun + secs(seconds);
        let mut rest = Rest::default();
        assert!(!rest.rests(begun) && !rest.is_forgiven(at(9_000)));
        rest.begin(begun, 1);
        assert!(!rest.rests(begun), "the first death");
        assert!(!rest.is_forgiven(at(599)) && rest.is_forgiven(at(600)));
        rest.begin(at(300), 2);
        assert!(rest.rests(at(359)) && !rest.rests(at(360)));
        assert!(!rest.is_forgiven(at(959)) && rest.is_forgiven(at(960)));
        rest.begin(at(400), 3);
        assert!(rest.rests(at(519)) && !rest.rests(at(520)));
        rest.begin(at(0), 1_000);
        assert!(rest.rests(at(1_799)) && !rest.rests(at(1_800)));
        rest.forgive();
        assert!(!rest.rests(begun) && !rest.is_forgiven(at(9_000)));
    }
}
