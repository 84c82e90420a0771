//! The cost of evaluating rules, counted in steps of about 10 ns.
//!
//! Three bounds: for one filter, for all rules of a topic and one message, and for one turn of the
//! broker. The first two are answered with a failure of the rule, the last with a pause.

use std::cell::Cell;

use super::evaluate::EvaluationError;
use crate::limits;
use jitney_message::{Amendments, Message, Part};

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

    /// Takes steps from it. The last filter of a share may take more than is left.
    pub const fn spend(&mut self, steps: u64) {
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
    /// The cost of a lookup by name.
    properties: Cell<Option<u64>>,
    annotations: Cell<Option<u64>>,
    fields: Cell<Option<u64>>,
}

impl Meter {
    /// Begins to count an evaluation with a limit of steps.
    pub(super) fn begin(&self, most: u64) {
        self.most.set(most);
        self.spent.set(0);
    }

    /// Returns the steps that the evaluation has taken.
    pub(super) const fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// Counts some steps.
    ///
    /// # Errors
    ///
    /// [`EvaluationError::TooSlow`] if there are more than there may be.
    #[inline]
    pub(super) fn charge(&self, steps: u64) -> Result<(), EvaluationError> {
        let spent = self.spent.get().saturating_add(steps);
        self.spent.set(spent);
        if self.most.get() < spent {
            return Err(EvaluationError::TooSlow(self.most.get()));
        }
        Ok(())
    }

    /// Counts the steps of work on some bytes.
    #[inline]
    pub(super) fn charge_bytes(
        &self,
        bytes: usize,
        per_step: usize,
    ) -> Result<(), EvaluationError> {
        self.charge(u64::try_from(bytes / per_step).unwrap_or(u64::MAX))
    }

    /// Counts the search for a name in a section of a message.
    pub(super) fn charge_search(
        &self,
        message: &Message,
        changed: &Amendments,
        part: Part,
    ) -> Result<(), EvaluationError> {
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

/// The steps that are left for the rules of a message.
///
/// Subscriptions are evaluated one after the other, and each may take its share of the steps that
/// are left: the first ones cannot take the shares of the last ones.
#[derive(Debug, Default)]
pub(super) struct StepBudget {
    left: u64,
    /// Subscriptions that have not begun.
    subscriptions: u64,
    /// The current subscription, and the steps that it has left.
    current: Option<(u32, u64)>,
}

impl StepBudget {
    /// Begins with a number of steps for the rules of these subscriptions, in order.
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

    /// Returns the steps that a rule of a subscription may take.
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

    /// Records the steps that a rule of the current subscription has taken.
    pub(super) const fn spend(&mut self, steps: u64) {
        self.left = self.left.saturating_sub(steps);
        if let Some((_, own)) = &mut self.current {
            *own = own.saturating_sub(steps);
        }
    }
}
