//! What follows for a server from a poll of a store: what it says of itself, whom it declares dead, what it corrects, and what it may take.

use std::time::Duration;

use crate::deaths::Served;
use crate::limits;
use crate::member::MemberState;
use crate::planner::Fitness;
use crate::view::{NamespaceRow, ServerRow, StoreView};

/// A row of the store that a server is to correct after a poll. Another server may do the same, and may be faster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Correction {
    /// Remove the rows of these incarnations, if they own nothing: those that have a new name at each start would be there for ever.
    Forget(Vec<String>),
    /// Let servers take a namespace again whose pause of this number is over.
    EndPause(i64, i32),
    /// Count the deaths of this incarnation's server anew, and then call [`MemberState::forgiven`].
    Forgive(String),
    /// Count anew what is counted of namespaces that this incarnation has.
    CountAnew {
        /// The incarnation.
        incarnation: String,
        /// Those whose deaths are counted anew.
        deaths: Vec<i64>,
        /// Those whose pauses are.
        pauses: Vec<i64>,
    },
}

impl MemberState {
    /// Takes the servers of a store; returns this one's incarnation and fitness if its row has another fitness, and puts the right one
    /// into the row.
    pub fn fitness_to_tell(
        &self,
        now: Duration,
        servers: &mut [ServerRow],
    ) -> Option<(String, Fitness)> {
        let fitness = self.fitness(now);
        let mut servers = servers.iter_mut();
        let own = servers.find(|it| it.incarnation == self.incarnation)?;
        if own.fitness == fitness {
            return None;
        }
        own.fitness = fitness;
        Some((self.incarnation.clone(), fitness))
    }

    /// Takes the servers of a store; returns the others that are silent. Each is to be declared dead, unless it has sent a heartbeat
    /// since; then the store is to be read again, because their namespaces have no owner.
    pub fn silent<'a>(
        &mut self,
        now: Duration,
        own: &str,
        servers: &'a [ServerRow],
    ) -> Vec<&'a ServerRow> {
        let others = servers.iter();
        let others = others.filter(|it| it.is_alive && it.name != own);
        let others = others.map(|it| (it.incarnation.clone(), it.beat));
        let silent = self.heartbeats.silent(now, others);
        let servers = servers.iter();
        servers
            .filter(|it| silent.contains(&it.incarnation))
            .collect()
    }

    /// Takes a view, and the namespaces that this server has, in order; returns what is to be corrected.
    pub fn corrections(&mut self, now: Duration, view: &StoreView, own: &[i64]) -> Vec<Correction> {
        let mut corrections = Vec::new();
        for (id, number) in self.pauses_over(now, view) {
            corrections.push(Correction::EndPause(id, number));
        }
        if self.is_forgiven(now) {
            corrections.push(Correction::Forgive(self.incarnation.clone()));
        }
        let deaths = self.healed(view, own, limits::TAKEOVER_HEALTHY, |it| it.deaths != 0);
        let pauses = self.healed(view, own, limits::QUARANTINE_HEALTHY, |it| it.pauses != 0);
        if !deaths.is_empty() || !pauses.is_empty() {
            corrections.push(Correction::CountAnew {
                incarnation: self.incarnation.clone(),
                deaths,
                pauses,
            });
        }
        let gone = view.servers.iter().filter(|it| !it.is_alive);
        let gone = gone.map(|it| (&it.incarnation[..], it.is_leaving));
        let forgotten = self.departed.forgotten(now, gone);
        if !forgotten.is_empty() {
            corrections.push(Correction::Forget(forgotten));
        }
        corrections
    }

    /// The deaths of this server are counted anew.
    pub fn forgiven(&mut self) {
        self.rest.forgive();
    }

    /// Returns a namespace that this server was to take, if it may still: another server may have been faster, also in finding that the
    /// log is at fault.
    #[must_use]
    pub fn acquirable<'a>(
        &self,
        own: &str,
        view: &'a StoreView,
        id: i64,
    ) -> Option<&'a NamespaceRow> {
        let found = view.namespaces.values().find(|it| it.id == id)?;
        let is_free =
            found.quarantined.is_none() && found.server.as_ref().is_none_or(|owner| owner == own);
        (is_free && self.may_take()).then_some(found)
    }

    /// Notes for how long namespaces were served without a death, by whichever server; returns those in quarantine whose pause is
    /// over, each with the number of the pause.
    fn pauses_over(&mut self, now: Duration, view: &StoreView) -> Vec<(i64, i32)> {
        let served = view.namespaces.values().map(|it| Served {
            id: it.id,
            deaths: it.deaths,
            is_served: it.server.is_some(),
        });
        self.healing.look(now, served);
        let paused = view.namespaces.values().filter(|it| it.is_paused);
        self.pauses.over(now, paused.map(|it| (it.id, it.pauses)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerRow {
        ServerRow {
            name: name.to_owned(),
            incarnation: format!("incarnation of {name}"),
            beat: 1,
            is_alive: true,
            address: String::new(),
            is_leaving: false,
            fitness: Fitness::Fit,
            formats: 0,
        }
    }

    fn dead(name: &str) -> ServerRow {
        ServerRow {
            is_alive: false,
            ..server(name)
        }
    }

    fn namespace(id: i64, owner: Option<&str>) -> NamespaceRow {
        NamespaceRow {
            id,
            epoch: 1,
            server: owner.map(str::to_owned),
            quarantined: None,
            rate: 0,
            quota: None,
            log_store: 0,
            name: format!("namespace {id}"),
            died: None,
            deaths: 1,
            died_before: None,
            pauses: 0,
            timeline: None,
            is_paused: false,
            applied: None,
            formats: 0,
        }
    }

    fn view(servers: Vec<ServerRow>, namespaces: Vec<NamespaceRow>) -> StoreView {
        let namespaces = namespaces.into_iter();
        StoreView {
            servers,
            namespaces: namespaces.map(|it| (it.name.clone(), it)).collect(),
            ..StoreView::default()
        }
    }

    fn joined() -> MemberState {
        let mut state = MemberState {
            incarnation: "incarnation of own".to_owned(),
            ..MemberState::default()
        };
        state.clock.compare(0);
        state
    }

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(1_000_000 + seconds)
    }

    #[test]
    fn the_fitness_of_a_server_is_told_when_it_changes() {
        let mut state = joined();
        let mut servers = vec![server("own"), server("other")];
        assert_eq!(state.fitness_to_tell(at(0), &mut servers), None);
        state.is_late = true;
        let told = state.fitness_to_tell(at(0), &mut servers);
        assert_eq!(
            told,
            Some(("incarnation of own".to_owned(), Fitness::Resting))
        );
        assert_eq!(state.fitness_to_tell(at(0), &mut servers), None);
        assert_eq!(servers[1].fitness, Fitness::Fit);
    }

    #[test]
    fn another_server_whose_heartbeat_does_not_change_is_to_be_declared_dead_and_this_one_is_not() {
        let mut state = joined();
        let servers = [server("own"), server("other"), dead("dead")];
        let names = |silent: Vec<&ServerRow>| -> Vec<String> {
            silent.into_iter().map(|it| it.name.clone()).collect()
        };
        for second in 0..3 {
            assert!(state.silent(at(second), "own", &servers).is_empty());
        }
        assert_eq!(names(state.silent(at(3), "own", &servers)), ["other"]);
    }

    #[test]
    fn deaths_are_counted_anew_of_namespaces_that_this_server_has_had_for_long() {
        let mut state = joined();
        let servers = || vec![server("own")];
        let view = view(
            servers(),
            vec![namespace(1, Some("own")), namespace(2, Some("own"))],
        );
        let healthy = limits::TAKEOVER_HEALTHY.as_duration().as_secs();
        for second in 0..=healthy {
            let corrections = state.corrections(at(second), &view, &[1]);
            if second < healthy {
                assert_eq!(corrections, [], "after {second} s");
            } else {
                let anew = Correction::CountAnew {
                    incarnation: "incarnation of own".to_owned(),
                    deaths: vec![1],
                    pauses: Vec::new(),
                };
                assert_eq!(corrections, [anew], "and not of the one that it has not");
            }
        }
    }

    #[test]
    fn what_another_server_has_taken_meanwhile_or_is_in_quarantine_is_not_acquired() {
        let mut state = joined();
        let mut quarantined = namespace(3, None);
        quarantined.quarantined = Some("its log is damaged".to_owned());
        let rows = vec![
            namespace(1, None),
            namespace(2, Some("other")),
            quarantined,
            namespace(4, Some("own")),
        ];
        let view = view(Vec::new(), rows);
        let may = |state: &MemberState| -> Vec<i64> {
            let ids = 1..6;
            ids.filter(|id| state.acquirable("own", &view, *id).is_some())
                .collect()
        };
        assert_eq!(may(&state), [1, 4]);
        state.is_late = true;
        assert!(may(&state).is_empty());
    }
}
