//! Deliveries that were settled by the commit of a transaction.
//!
//! Their receiver decided about them provisionally, and may decide once more although they are
//! settled. It waits for an answer then, which a delivery that is not known does not get.

use std::collections::VecDeque;

use super::serial;
use crate::limits;

/// The numbers of such deliveries of one AMQP session: the newest ones, in order.
#[derive(Debug, Default)]
pub(super) struct Discharged(VecDeque<u32>);

impl Discharged {
    pub(super) fn note(&mut self, id: u32) {
        if self.0.len() == limits::DISCHARGED_DELIVERIES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(id);
    }

    /// Takes out those of `first..=last`: each is answered once.
    pub(super) fn take(&mut self, first: u32, last: u32) -> Vec<u32> {
        let is_meant = |id: u32| {
            let ahead = serial::ahead(first, id);
            ahead.is_some() && serial::ahead(id, last).is_some()
        };
        let taken = self.0.iter().copied().filter(|&id| is_meant(id)).collect();
        self.0.retain(|&id| !is_meant(id));
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known_and_each_is_taken_once() {
        let mut discharged = Discharged::default();
        let max = u32::try_from(limits::DISCHARGED_DELIVERIES_MAX).unwrap();
        // Numbers wrap meanwhile.
        let id = |count: u32| u32::MAX.wrapping_add(count);
        for count in 0..max + 2 {
            discharged.note(id(count));
        }
        assert!(
            discharged.take(id(0), id(1)).is_empty(),
            "they were the oldest"
        );
        assert_eq!(discharged.take(id(0), id(3)), [id(2), id(3)]);
        assert!(discharged.take(id(3), id(3)).is_empty());
        assert_eq!(discharged.take(id(5), id(5)), [id(5)]);
        assert_eq!(discharged.0.len(), limits::DISCHARGED_DELIVERIES_MAX - 3);
    }
}
