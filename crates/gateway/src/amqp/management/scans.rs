//! The part of a turn for requests that look at messages: other work has its turn, however much they look at.

use std::collections::VecDeque;

use jitney_amqp::LinkId;
use jitney_base::ids::ConnectionId;
use jitney_queue::ScanBudget;

/// The requests of a turn that look at messages.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    /// What is left of the turn's budget.
    budget: ScanBudget,
    /// Links whose next answer needs more of the budget than there was, the first one first.
    unfinished: VecDeque<(ConnectionId, LinkId)>,
}

impl Scans {
    /// Begins a turn: the budget is whole again.
    pub(crate) fn begin_turn(&mut self) {
        self.budget = ScanBudget::default();
    }

    /// Returns whether nothing is left of the budget.
    pub(super) fn is_spent(&self) -> bool {
        self.budget.is_spent()
    }

    /// Counts so many messages that were looked at.
    pub(crate) fn spend(&mut self, messages: usize) {
        self.budget.spend(messages);
    }

    /// Takes what is left of the budget, to be put back.
    pub(super) fn take_budget(&mut self) -> ScanBudget {
        std::mem::take(&mut self.budget)
    }

    pub(super) fn put_budget(&mut self, left: ScanBudget) {
        self.budget = left;
    }

    /// Notes a link whose next answer continues in another turn.
    pub(super) fn leave_unfinished(&mut self, id: ConnectionId, link: LinkId) {
        if !self.unfinished.contains(&(id, link)) {
            self.unfinished.push_back((id, link));
        }
    }

    /// Returns how many links have such answers.
    pub(super) fn unfinished(&self) -> usize {
        self.unfinished.len()
    }

    /// Takes the next such link.
    pub(super) fn next_unfinished(&mut self) -> Option<(ConnectionId, LinkId)> {
        self.unfinished.pop_front()
    }
}
