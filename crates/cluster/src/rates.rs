//! How busy namespaces are, as it is measured and as the store has it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::limits;

/// The measured rates of namespaces, by their numbers.
#[derive(Debug, Default)]
pub struct Rates(BTreeMap<i64, Measured>);

#[derive(Debug)]
struct Measured {
    /// Messages until then.
    messages: u64,
    at: Duration,
    /// Messages a second, of late.
    rate: i64,
}

impl Rates {
    /// Takes how many messages a namespace has had since its server has it, and the rate that the store has; returns the rate that the
    /// store is to have, if that is another.
    pub fn take(&mut self, now: Duration, id: i64, messages: u64, published: i64) -> Option<i64> {
        // A namespace that was moved is as busy as it was.
        let first = Measured {
            messages,
            at: now,
            rate: published,
        };
        let measured = self.0.entry(id).or_insert(first);
        let millis = now.saturating_sub(measured.at).as_millis();
        let millis = i64::try_from(millis).ok().filter(|millis| 0 < *millis)?;
        // A count that has become less is of another server's time.
        let count = messages.saturating_sub(measured.messages);
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let rate = count.saturating_mul(1_000) / millis;
        measured.rate = i64::midpoint(measured.rate, rate);
        (measured.messages, measured.at) = (messages, now);
        let change = (measured.rate - published).abs();
        let is_much = limits::RATE_CHANGE_MIN.max(published / 4) <= change;
        is_much.then_some(measured.rate)
    }

    /// Forgets namespaces that are not served any more.
    pub fn keep(&mut self, ids: &[i64]) {
        self.0.retain(|id, _| ids.contains(id));
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_rate_is_said_when_it_has_changed_by_a_lot() {
        let began = Duration::from_secs(1_000_000);
        let mut rates = Rates::default();
        let (mut messages, mut seconds) = (0, 0);
        let mut at = |rates: &mut Rates, rate: u64, published| {
            messages += 10 * rate;
            seconds += 10;
            rates.take(began + Duration::from_secs(seconds), 1, messages, published)
        };
        assert_eq!(at(&mut rates, 0, 0), None, "nothing is known yet");
        assert_eq!(at(&mut rates, 400, 0), None, "200 on average");
        assert_eq!(at(&mut rates, 400, 0), Some(300));
        assert_eq!(at(&mut rates, 400, 300), None);
        assert_eq!(at(&mut rates, 9_650, 300), Some(5_000));
        assert_eq!(at(&mut rates, 4_000, 5_000), None, "less than a quarter");
        assert_eq!(at(&mut rates, 0, 5_000), Some(2_250));
        // Another server has it, and gets it back with what the store says.
        rates.keep(&[2]);
        assert_eq!(at(&mut rates, 0, 2_250), None);
        assert_eq!(at(&mut rates, 2_000, 2_250), None);
    }
}
