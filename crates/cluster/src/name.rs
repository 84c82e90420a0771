//! The claim of a name: whether a server may enter a store under it.
//!
//! If two servers had one name, and each took it from the other, both would drop their namespaces at each turn, and the deaths of the
//! owners would put these into quarantine. So a server enters only when no other one beats under its name: at its start, and also
//! after it was declared dead, since another server with its name may have come meanwhile.

use std::time::Duration;

use crate::heartbeats::Heartbeats;

/// The row of the server's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRow {
    /// The incarnation of the server that entered under it last.
    pub incarnation: String,
    /// The number of its last heartbeat.
    pub beat: i64,
    /// It has not left, and was not declared dead.
    pub is_alive: bool,
}

/// What the row says of the name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Name {
    /// No other server has it.
    #[default]
    Free,
    /// Another server had it a moment ago: it may have been killed, or this server's own process before.
    Unclear,
    /// Another server beats under it.
    Taken,
}

/// The claim of this server to its name, beside another server of the same name as this one has seen it.
#[derive(Debug, Default)]
pub struct NameClaim {
    /// The incarnation under which this server has entered last, or has tried to: the answer may be lost.
    own: String,
    beats: Heartbeats<String>,
    first: Option<NameRow>,
    /// What was found last.
    found: Name,
}

impl NameClaim {
    /// Takes the row of the name, or that there is none. Another server that is alive keeps the name until its beat was seen unchanged
    /// for as long as the other servers wait before they declare it dead.
    pub fn judge(&mut self, now: Duration, row: Option<&NameRow>) -> Name {
        let other = row.filter(|row| row.is_alive && row.incarnation != self.own);
        let Some(other) = other else {
            return self.is_free();
        };
        let beat = (other.incarnation.clone(), other.beat);
        if !self.beats.silent(now, [beat]).is_empty() {
            return self.is_free();
        }
        let first = self.first.get_or_insert_with(|| other.clone());
        if self.found == Name::Free {
            self.found = Name::Unclear;
        }
        if first != other {
            self.found = Name::Taken;
        }
        self.found
    }

    /// Takes the incarnation under which this server tries to enter.
    pub fn enters(&mut self, incarnation: &str) {
        incarnation.clone_into(&mut self.own);
    }

    /// Returns whether this server has tried to enter under that incarnation last.
    #[must_use]
    pub fn is_own(&self, incarnation: &str) -> bool {
        self.own == incarnation
    }

    /// Returns what the row before has said of the name.
    #[must_use]
    pub fn found(&self) -> Name {
        self.found
    }

    fn is_free(&mut self) -> Name {
        *self = Self {
            own: std::mem::take(&mut self.own),
            ..Self::default()
        };
        self.found
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::limits;

    fn row(incarnation: &str, beat: i64) -> NameRow {
        NameRow {
            incarnation: incarnation.to_owned(),
            beat,
            is_alive: true,
        }
    }

    #[test]
    fn a_server_enters_under_a_name_whose_server_is_silent_or_gone_or_is_itself() {
        let began = Duration::from_secs(1_000_000);
        let beats = |count: u32| began + limits::HEARTBEAT.as_duration() * count;
        let mut claim = NameClaim::default();
        assert_eq!(claim.judge(began, None), Name::Free);
        let dead = NameRow {
            is_alive: false,
            ..row("x", 7)
        };
        assert_eq!(claim.judge(began, Some(&dead)), Name::Free);
        let silent = row("x", 7);
        for count in 0..6 {
            assert_eq!(claim.judge(beats(count), Some(&silent)), Name::Unclear);
        }
        assert_eq!(claim.judge(beats(6), Some(&silent)), Name::Free);
        // It has entered as `own`, and does not know that: the answer was lost.
        claim.enters("own");
        let own = row("own", 1);
        assert_eq!(claim.judge(beats(7), Some(&own)), Name::Free);
    }

    #[test]
    fn a_server_that_beats_keeps_its_name_until_it_is_silent() {
        let began = Duration::from_secs(1_000_000);
        let at = |millis| began + Duration::from_millis(millis);
        let mut claim = NameClaim::default();
        claim.enters("own");
        let first = row("x", 7);
        assert_eq!(claim.judge(began, Some(&first)), Name::Unclear);
        for beat in 1..20_u32 {
            let beaten = row("x", 7 + i64::from(beat));
            let now = began + limits::HEARTBEAT.as_duration() * beat;
            assert_eq!(claim.judge(now, Some(&beaten)), Name::Taken);
        }
        // The store was away meanwhile, and neither could beat.
        let last = row("x", 26);
        assert_eq!(claim.judge(at(90_000), Some(&last)), Name::Taken);
        for half in 1..4 {
            let now = at(90_000 + 500 * half);
            assert_eq!(claim.judge(now, Some(&last)), Name::Taken);
        }
        assert_eq!(claim.judge(at(92_000), Some(&last)), Name::Free);
    }

    #[test]
    fn a_server_that_takes_the_place_of_another_one_has_the_name_too() {
        let began = Duration::from_secs(1_000_000);
        let mut claim = NameClaim::default();
        let [before, after] = ["x", "y"].map(|incarnation| row(incarnation, 1));
        assert_eq!(claim.judge(began, Some(&before)), Name::Unclear);
        assert_eq!(claim.judge(began, Some(&after)), Name::Taken);
    }
}
