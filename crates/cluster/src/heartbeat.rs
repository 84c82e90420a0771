//! The heartbeat of a server in one store: what it asks of the store, and what follows from each answer.
//!
//! A server reads the row of its name, enters under a new incarnation if no other server has the name, and then raises the number of its
//! heartbeat every half second. The caller carries out a [`HeartbeatRequest`], hands over what the store has answered, carries out the
//! [`HeartbeatEffect`], and continues with the next request, if there is one.

use std::time::Duration;

use crate::lateness::Pace;
use crate::member::MemberState;
use crate::name::{Name, NameRow};
use crate::view::StoreView;

/// Whether all owners of a server make progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// They do.
    Made,
    /// One does not. A server that said that it is alive would keep a namespace that no server serves.
    Stuck,
}

/// What a server asks of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeartbeatRequest {
    /// Read the row of its name: [`MemberState::name_read`].
    ReadName,
    /// Enter under a new incarnation: [`MemberState::entered`].
    Enter(Entry),
    /// Raise the number of the heartbeat of this incarnation, if it is alive: [`MemberState::beaten`].
    Beat(String),
    /// Raise it, and with that release all namespaces, and say that this server takes none: [`MemberState::all_released`].
    ReleaseAll(String),
}

/// How a server enters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The new incarnation.
    pub incarnation: String,
    /// The incarnation and the heartbeat in whose place it enters, or an empty one: another row than this is not replaced.
    pub seen: (String, i64),
    /// Who enters in the place of another one.
    pub replaces: Replaces,
    /// The answers to the heartbeats of this server came too late.
    pub is_late: bool,
}

/// Whose place a server takes when it enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaces {
    /// That of an incarnation which is gone: if it is alive in the store still, it has died.
    Another,
    /// Its own: the answer to an attempt before is lost.
    Itself,
}

/// When a heartbeat was sent and answered, in milliseconds of the clock of the [lease](crate::lease), and what the server knows then.
#[derive(Debug, Clone, Copy)]
pub struct Moment<'a> {
    /// When the request was sent: the other servers count from when it is in the store, which may be long before its answer is here.
    pub sent: u64,
    /// When the answer came.
    pub now: u64,
    /// The name of the server.
    pub server: &'a str,
    /// The servers and the namespaces, as the last poll has found them.
    pub view: &'a StoreView,
}

/// What a heartbeat has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnRow {
    /// The row of the incarnation, which is alive: its number was raised.
    Alive,
    /// None: the server was declared dead, or another one has its name.
    Gone,
}

/// What the caller is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeartbeatEffect {
    /// Log that another server has the name, or may have it.
    Waits(Name),
    /// Begin a lease, which holds from the first heartbeat on; log the deaths of the server if it rests for them.
    Joined(i32),
    /// Let the lease hold by a heartbeat that was sent then.
    Renew(u64),
    /// As [`HeartbeatEffect::Renew`]; log that the answers come in time again.
    RenewWell(u64),
    /// Drop all namespaces, which were released; log the deaths of the server if it rests for them.
    Released(i32),
    /// End the lease and drop all namespaces: other servers have them, or may have them.
    Lost,
    /// End the lease, drop all namespaces and forget the view, for good.
    Replaced,
}

/// What follows from an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HeartbeatStep {
    /// What is to be done.
    pub effect: Option<HeartbeatEffect>,
    /// What is to be asked next; none until the next heartbeat is due.
    pub next: Option<HeartbeatRequest>,
}

impl HeartbeatStep {
    fn only(effect: HeartbeatEffect) -> Self {
        Self {
            effect: Some(effect),
            next: None,
        }
    }
}

impl MemberState {
    /// Returns what a server asks when its heartbeat is due.
    #[must_use]
    pub fn next_heartbeat(&self, progress: Progress) -> Option<HeartbeatRequest> {
        if self.has_left || self.is_replaced || progress == Progress::Stuck {
            return None;
        }
        if self.incarnation.is_empty() {
            return Some(HeartbeatRequest::ReadName);
        }
        Some(HeartbeatRequest::Beat(self.incarnation.clone()))
    }

    /// Takes the row of its name, and a new incarnation, under which it enters if it may.
    pub fn name_read(
        &mut self,
        now: Duration,
        row: Option<NameRow>,
        incarnation: String,
    ) -> HeartbeatStep {
        if self.has_left {
            return HeartbeatStep::default();
        }
        let before = self.claim.found();
        let name = self.claim.judge(now, row.as_ref());
        match name {
            Name::Free => HeartbeatStep {
                effect: None,
                next: Some(HeartbeatRequest::Enter(self.enter(row, incarnation))),
            },
            Name::Unclear | Name::Taken => HeartbeatStep {
                effect: (before != name).then_some(HeartbeatEffect::Waits(name)),
                next: None,
            },
        }
    }

    fn enter(&mut self, row: Option<NameRow>, incarnation: String) -> Entry {
        let seen = row.map(|row| (row.incarnation, row.beat));
        let seen = seen.unwrap_or_default();
        let replaces = if self.claim.is_own(&seen.0) {
            Replaces::Itself
        } else {
            Replaces::Another
        };
        self.claim.enters(&incarnation);
        Entry {
            incarnation,
            seen,
            replaces,
            is_late: self.is_late,
        }
    }

    /// Takes how often this server has died, from the store that it has entered.
    pub fn entered(&mut self, now: Duration, entry: Entry, deaths: i32) -> HeartbeatStep {
        self.rest.begin(now, deaths);
        self.incarnation.clone_from(&entry.incarnation);
        HeartbeatStep {
            effect: Some(HeartbeatEffect::Joined(deaths)),
            next: Some(HeartbeatRequest::Beat(entry.incarnation)),
        }
    }

    /// Takes what became of a heartbeat.
    pub fn beaten(&mut self, at: Moment<'_>, found: OwnRow) -> HeartbeatStep {
        if found == OwnRow::Gone {
            if self.has_left {
                // It has left while the heartbeat was on its way.
                return HeartbeatStep::default();
            }
            return self.lose();
        }
        match self.lateness.answered(at.sent, at.now) {
            Pace::Late if at.view.has_another_taker(at.server) => {
                self.lateness.released();
                self.is_late = true;
                HeartbeatStep {
                    effect: Some(HeartbeatEffect::Renew(at.sent)),
                    next: Some(HeartbeatRequest::ReleaseAll(self.incarnation.clone())),
                }
            }
            Pace::Well => {
                self.is_late = false;
                HeartbeatStep::only(HeartbeatEffect::RenewWell(at.sent))
            }
            Pace::Late | Pace::Same => HeartbeatStep::only(HeartbeatEffect::Renew(at.sent)),
        }
    }

    /// Takes how often this server has died, if the store had a row of this incarnation that is alive: the next heartbeat finds out
    /// why it had none.
    pub fn all_released(&mut self, now: Duration, deaths: Option<i32>) -> HeartbeatStep {
        let Some(deaths) = deaths else {
            return HeartbeatStep::default();
        };
        self.rest.begin(now, deaths);
        HeartbeatStep::only(HeartbeatEffect::Released(deaths))
    }

    /// Takes that a request has no answer. It may have been carried out all the same.
    pub fn heartbeat_failed(&mut self, request: &HeartbeatRequest) -> HeartbeatStep {
        match request {
            // Other servers may have the namespaces by now: this one must not answer for them when its next heartbeat is answered.
            HeartbeatRequest::ReleaseAll(_) => self.lose(),
            HeartbeatRequest::ReadName | HeartbeatRequest::Enter(_) | HeartbeatRequest::Beat(_) => {
                HeartbeatStep::default()
            }
        }
    }

    /// Takes that the store is another one than this server has known: what the server has in memory is not in there.
    pub fn replaced(&mut self) -> HeartbeatStep {
        if std::mem::replace(&mut self.is_replaced, true) {
            return HeartbeatStep::default();
        }
        HeartbeatStep::only(HeartbeatEffect::Replaced)
    }

    /// It is to join as a server that is new.
    fn lose(&mut self) -> HeartbeatStep {
        self.incarnation.clear();
        HeartbeatStep::only(HeartbeatEffect::Lost)
    }
}

#[cfg(test)]
mod tests;
