//! What evaluating rules may cost, counted in steps of about 10 ns.
//!
//! Three bounds: for one filter, for all rules of a topic and one message, and for one turn of the
//! broker. The first two are answered with a failure of the rule, the last with a pause.

use std::cell::Cell;

use super::evaluate::Failure;
use crate::limits;
use crate::message::{Amendments, Message, Part};

/// Steps that filters may take before others have their turn.
#[derive(Debug)]
pub struct Share {
    left: u64,
}

impl Share {
    /// Returns whether nothing is left of it.
    #[must_use]
    pub const fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// The last filter of a share may take more than is left.
    pub(super) const fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
    }
}

impl Default for Share {
    fn default() -> Self {
        let left = limits::SHARE_STEPS;
        Self { left }
    }
}

/// Counts the steps of one evaluation after the other, for one message.
#[derive(Debug, Default)]
pub(super) struct Meter {
    most: Cell<u64>,
    spent: Cell<u64>,
    /// What it costs to look for a name, once that is known.
    properties: Cell<Option<u64>>,
    annotations: Cell<Option<u64>>,
    fields: Cell<Option<u64>>,
}

impl Meter {
    /// Begins to count an evaluation that may take so many steps.
    pub(super) fn begin(&self, most: u64) {
        self.most.set(most);
        self.spent.set(0);
    }

    /// Returns what the evaluation has taken.
    pub(super) const fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Counts some steps.
    ///
    /// # Errors
    ///
    /// [`Failure::TooSlow`] if there are more than there may be.
    #[inline]
    pub(super) fn charge(&self, steps: u64) -> Result<(), Failure> {
        let spent = self.spent.get().saturating_add(steps);
        self.spent.set(spent);
        if self.most.get() < spent {
            return Err(Failure::TooSlow(self.most.get()));
        }
        Ok(())
    }

    /// Counts the steps of work on some bytes, of which so many take one.
    #[inline]
    pub(super) fn charge_bytes(&self, bytes: usize, per_step: usize) -> Result<(), Failure> {
        self.charge(u64::try_from(bytes / per_step).unwrap_or(u64::MAX))
    }

    /// Counts the search for a name in a section of a message.
    pub(super) fn charge_search(
        &self,
        message: &Message,
        changed: &Amendments,
        part: Part,
    ) -> Result<(), Failure> {
        let known = match part {
            Part::ApplicationProperties => &self.properties,
            Part::MessageAnnotations => &self.annotations,
            Part::Properties => &self.fields,
        };
        let steps = known.get().unwrap_or_else(|| {
            let steps = message.steps_to_search(part);
            known.set(Some(steps));
            steps
        });
        let changes = u64::try_from(changed.len()).unwrap_or(u64::MAX);
        self.charge(steps.saturating_add(changes))
    }
}

/// What is left of the steps that a message's rules may take together.
///
/// Subscriptions come one after the other, and each may take its part of what those before it have
/// left: the first ones cannot take the last ones' parts.
#[derive(Debug, Default)]
pub(super) struct Allowance {
    left: u64,
    /// Subscriptions that have not begun.
    subscriptions: u64,
    /// The one whose turn it is, and what it has left.
    current: Option<(u32, u64)>,
}

impl Allowance {
    /// Begins with so many steps for rules of these subscriptions, which come in order.
    pub(super) fn new(left: u64, of_rules: impl Iterator<Item = u32>) -> Self {
        let mut last = None;
        let mut subscriptions = 0;
        for subscription in of_rules {
            subscriptions += u64::from(last != Some(subscription));
            last = Some(subscription);
        }
        Self {
            left,
            subscriptions,
            current: None,
        }
    }

    /// Returns what a rule of a subscription may take.
    pub(super) fn of(&mut self, subscription: u32) -> u64 {
        match self.current {
            Some((current, own)) if current == subscription => own,
            _ => {
                let own = self.left / self.subscriptions.max(1);
                self.subscriptions = self.subscriptions.saturating_sub(1);
                self.current = Some((subscription, own));
                own
            }
        }
    }

    /// Notes what a rule of the current subscription has taken.
    pub(super) const fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        if let Some((_, own)) = &mut self.current {
            *own = own.saturating_sub(steps);
        }
    }
}
