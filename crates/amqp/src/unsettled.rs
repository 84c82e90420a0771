//! Deliveries that we sent and that are not settled, by their numbers.
//!
//! Promises: pushing, finding and settling a delivery costs the same however many there are; memory
//! is proportional to the unsettled ones, even if one is left unsettled while millions pass it (a
//! client whose lock was lost settles elsewhere, or never); a disposition of a huge range costs no
//! more than the deliveries it covers, and is processed in shares; each outcome is reported once.
//!
//! Numbers are 32 bits on the wire and wrap; here they are counted without a wrap. Recent ones are
//! in a queue of slots. When few of its slots are taken, those in front move to a map of
//! stragglers, each at most once.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::{LinkId, Tag, serial};
use crate::limits;

#[derive(Debug)]
pub(super) struct Unsettled {
    /// The number of the first slot.
    first: u64,
    slots: VecDeque<Option<Sent>>,
    /// Slots that are taken.
    taken: usize,
    /// Older than every slot.
    stragglers: BTreeMap<u64, Sent>,
}

/// A delivery that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) link: LinkId,
    pub(super) tag: Tag,
    /// Its receiver has decided, and our answer is due.
    decided: bool,
    /// Its receiver has decided in a transaction.
    pub(super) provisional: bool,
}

/// Deliveries by their numbers, which are counted without a wrap: the first and the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    from: u64,
    to: u64,
}

/// How a receiver's word about a delivery is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decision {
    /// Until we answer; a repetition is not heard.
    Pending,
    /// In a transaction, which may come to nothing: there may be another.
    Provisional,
    /// Settled already: forgotten.
    Final,
}

/// Numbers begin in the second round, so that numbers before the first are representable.
const ROUND: u64 = 1 << 32;
/// Slots below which moving stragglers away does not pay.
const SLOTS_MIN: usize = 256;

impl Unsettled {
    pub(super) fn new(first: u32) -> Self {
        Self {
            first: ROUND + u64::from(first),
            slots: VecDeque::new(),
            taken: 0,
            stragglers: BTreeMap::new(),
        }
    }

    /// Numbers a delivery that its receiver will decide about.
    pub(super) fn push(&mut self, link: LinkId, tag: Tag) -> u32 {
        let number = self.next();
        self.slots.push_back(Some(Sent {
            link,
            tag,
            decided: false,
            provisional: false,
        }));
        self.taken += 1;
        self.tidy();
        wire(number)
    }

    /// Numbers a delivery that is sent settled: there is nothing to remember.
    pub(super) fn push_settled(&mut self) -> u32 {
        let number = self.next();
        self.slots.push_back(None);
        self.tidy();
        wire(number)
    }

    /// Forgets a delivery, and returns it if it was unsettled.
    pub(super) fn take(&mut self, id: u32) -> Option<Sent> {
        let number = self.number(id)?;
        let Some(at) = number.checked_sub(self.first) else {
            return self.stragglers.remove(&number);
        };
        let slot = self.slots.get_mut(usize::try_from(at).ok()?)?;
        let was = slot.take()?;
        self.taken -= 1;
        self.tidy();
        Some(was)
    }

    /// Returns whether a delivery is unsettled.
    pub(super) fn is_unsettled(&self, id: u32) -> bool {
        let Some(number) = self.number(id) else {
            return false;
        };
        let Some(at) = number.checked_sub(self.first) else {
            return self.stragglers.contains_key(&number);
        };
        let slot = usize::try_from(at).ok().and_then(|at| self.slots.get(at));
        slot.is_some_and(Option::is_some)
    }

    /// Returns the deliveries that the numbers `first..=last` on the wire represent, of those that
    /// were numbered so far.
    pub(super) fn span(&self, first: u32, last: u32) -> Option<Span> {
        let from = self.number(first)?;
        let to = self.number(last).unwrap_or_else(|| self.next());
        (from <= to).then_some(Span { from, to })
    }

    /// Returns how many deliveries of a span are unsettled.
    pub(super) fn count(&self, span: Span) -> usize {
        let old = self.stragglers.range(span.from..=span.to).count();
        let slots = self.slots.range(self.slots_of(span));
        old + slots.filter(|slot| slot.is_some()).count()
    }

    /// Takes a receiver's word about a span of deliveries, and reports each of them about which it
    /// is new. Stops when it has looked at `most`, and returns the span that is left.
    pub(super) fn decide(
        &mut self,
        span: Span,
        decision: Decision,
        most: usize,
        mut report: impl FnMut(u32, Sent),
    ) -> Option<Span> {
        let mut left = most;
        let mut rest = None;
        let mut word = |number: u64, sent: &mut Sent| {
            if left == 0 {
                let (from, to) = (number, span.to);
                rest = Some(Span { from, to });
                return false;
            }
            left -= 1;
            if !sent.decided {
                report(wire(number), *sent);
                sent.decided = decision == Decision::Pending;
                sent.provisional |= decision == Decision::Provisional;
            }
            true
        };
        let mut settled = Vec::new();
        let is_final = decision == Decision::Final;
        let mut goes_on = true;
        for (&number, sent) in self.stragglers.range_mut(span.from..=span.to) {
            goes_on = word(number, sent);
            if !goes_on {
                break;
            }
            if is_final {
                settled.push(number);
            }
        }
        for number in settled {
            self.stragglers.remove(&number);
        }
        let slots = self.slots_of(span);
        let numbers = span.from.max(self.first)..;
        for (slot, number) in self.slots.range_mut(slots).zip(numbers) {
            let Some(sent) = slot else { continue };
            if !goes_on || !word(number, sent) {
                break;
            }
            if is_final {
                *slot = None;
                self.taken -= 1;
            }
        }
        // Outcomes without settlement leave every delivery in its slot.
        if is_final {
            self.tidy();
        }
        rest
    }

    /// Returns the slots of the deliveries of a span that are no stragglers.
    fn slots_of(&self, span: Span) -> Range<usize> {
        let base = self.first;
        let at = |number: u64| usize::try_from(number.saturating_sub(base)).unwrap_or(usize::MAX);
        let end = at(span.to.saturating_add(1)).min(self.slots.len());
        at(span.from).min(end)..end
    }

    /// Forgets the deliveries of a link that has ended.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.stragglers.retain(|_, sent| sent.link != link);
        for slot in &mut self.slots {
            if slot.is_some_and(|sent| sent.link == link) {
                *slot = None;
                self.taken -= 1;
            }
        }
        self.tidy();
    }

    /// Gives memory back that is not used.
    pub(super) fn rest(&mut self) {
        self.slots.shrink_to_fit();
    }

    fn next(&self) -> u64 {
        let slots = u64::try_from(self.slots.len()).unwrap_or(u64::MAX);
        self.first.saturating_add(slots)
    }

    /// Returns the number that an id on the wire represents; none for one that was not given out
    /// yet.
    fn number(&self, id: u32) -> Option<u64> {
        let next = self.next();
        // Ranges may begin before the first number that was given.
        let back = serial::ahead(id, wire(next)).filter(|&back| back > 0)?;
        Some(next.saturating_sub(u64::from(back)))
    }

    /// Restores the promises: no empty slot in front, few empty ones at all, and a bound.
    #[inline]
    fn tidy(&mut self) {
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 1;
        }
        if SLOTS_MIN < self.slots.len() || !self.stragglers.is_empty() {
            self.tidy_many();
        }
    }

    /// Maintenance that is needed only with many deliveries, or stragglers.
    fn tidy_many(&mut self) {
        while SLOTS_MIN < self.slots.len() && self.taken < self.slots.len() / 4 {
            if let Some(Some(sent)) = self.slots.pop_front() {
                self.stragglers.insert(self.first, sent);
                self.taken -= 1;
            }
            self.first += 1;
        }
        // The oldest are forgotten: they got no outcome while this many followed.
        if limits::UNSETTLED_MAX < self.stragglers.len() + self.taken
            && self.stragglers.pop_first().is_none()
        {
            self.slots.pop_front();
            self.taken -= 1;
            self.first += 1;
        }
    }
}

fn wire(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const LINK: LinkId = LinkId(3);

    fn decided(unsettled: &mut Unsettled, first: u32, last: u32, decision: Decision) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut span = unsettled.span(first, last);
        while let Some(some) = span {
            span = unsettled.decide(some, decision, SHARE, |id, _| ids.push(id));
        }
        ids
    }

    /// Small enough that most ranges take more than one.
    const SHARE: usize = 7;

    #[test]
    fn a_decision_is_reported_once_and_settled_once() {
        let mut unsettled = Unsettled::new(1);
        for _ in 0..4 {
            unsettled.push(LINK, [0; 16]);
        }
        assert_eq!(decided(&mut unsettled, 0, 2, Decision::Pending), [1, 2]);
        assert_eq!(decided(&mut unsettled, 1, 3, Decision::Provisional), [3]);
        assert_eq!(decided(&mut unsettled, 3, 900, Decision::Pending), [3, 4]);
        assert!(decided(&mut unsettled, 4, 4, Decision::Final).is_empty());
        assert!(unsettled.take(4).is_none());
        assert!(unsettled.take(3).unwrap().provisional);
        // It was decided about before, so that its decision in a transaction was not reported.
        assert!(!unsettled.take(1).unwrap().provisional);
        assert!(unsettled.take(1).is_none());
    }

    #[test]
    fn one_that_stays_behind_costs_no_memory() {
        let mut unsettled = Unsettled::new(u32::MAX - 1_000);
        let straggler = unsettled.push(LINK, [9; 16]);
        for _ in 0..100_000 {
            let id = unsettled.push(LINK, [0; 16]);
            assert!(unsettled.take(id).is_some());
        }
        assert!(unsettled.slots.len() <= SLOTS_MIN);
        assert_eq!(unsettled.stragglers.len(), 1);
        let all = decided(&mut unsettled, straggler, straggler, Decision::Pending);
        assert_eq!(all, [straggler]);
        assert!(unsettled.take(straggler).is_some());
        assert!(unsettled.stragglers.is_empty());
    }

    #[test]
    fn the_oldest_are_forgotten_at_the_bound() {
        let mut unsettled = Unsettled::new(1);
        for _ in 0..limits::UNSETTLED_MAX + 2 {
            unsettled.push(LINK, [0; 16]);
        }
        assert_eq!(unsettled.taken, limits::UNSETTLED_MAX);
        assert!(unsettled.take(2).is_none());
        assert!(unsettled.take(3).is_some());
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(u32),
        PushSettled,
        Settle(u32),
        Decide(u32, u32, bool),
        Forget(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let back = 0..600_u32;
        prop_oneof![
            8 => (0..3_u32).prop_map(Step::Push),
            2 => Just(Step::PushSettled),
            6 => back.clone().prop_map(Step::Settle),
            2 => (back.clone(), back, any::<bool>()).prop_map(|(a, b, c)| Step::Decide(a, b, c)),
            1 => (0..3_u32).prop_map(Step::Forget),
        ]
    }

    proptest! {
        /// Held against a map from numbers to links.
        #[test]
        fn it_is_a_map(first: u32, steps in prop::collection::vec(step(), 0..2_000)) {
            let mut unsettled = Unsettled::new(first);
            let mut model = BTreeMap::new();
            let mut next = ROUND + u64::from(first);
            for step in steps {
                let id = |back: u32| wire(next).wrapping_sub(back);
                match step {
                    Step::Push(link) => {
                        let given = unsettled.push(LinkId(link), [0; 16]);
                        prop_assert_eq!(given, wire(next));
                        model.insert(next, LinkId(link));
                        next += 1;
                    }
                    Step::PushSettled => {
                        unsettled.push_settled();
                        next += 1;
                    }
                    Step::Settle(back) => {
                        let known = model.remove(&next.saturating_sub(u64::from(back)));
                        prop_assert_eq!(unsettled.take(id(back)).is_some(), known.is_some());
                    }
                    Step::Decide(from, to, settles) => {
                        let decision = if settles { Decision::Final } else { Decision::Provisional };
                        let seen = decided(&mut unsettled, id(from), id(to), decision);
                        let range = next.saturating_sub(u64::from(from))
                            ..=next.saturating_sub(u64::from(to));
                        let within = |number: &u64| from > 0 && range.contains(number);
                        let known: Vec<_> = model.keys().copied().filter(within).collect();
                        let ids: Vec<_> = known.iter().map(|&number| wire(number)).collect();
                        prop_assert_eq!(seen, ids);
                        if settles {
                            model.retain(|number, _| !known.contains(number));
                        }
                    }
                    Step::Forget(link) => {
                        unsettled.forget(LinkId(link));
                        model.retain(|_, known| *known != LinkId(link));
                    }
                }
                prop_assert_eq!(unsettled.taken + unsettled.stragglers.len(), model.len());
            }
        }
    }
}
