//! The journal's store: it is away, or another server has it.

use super::*;

impl Harness {
    pub(in crate::sim) fn is_away(&self) -> bool {
        self.is_away
    }

    /// The journal's store is away, or it is back.
    pub(in crate::sim) fn lose_store(&mut self) -> Result<(), Stop> {
        let back = self.is_away;
        self.is_away = !back;
        let lost = if self.random.percent(50) {
            Input::StoreAway
        } else {
            Input::AppendUnknown { group: self.sealed }
        };
        if !back {
            self.expect_abandoned();
        }
        self.handle(if back { Input::StoreBack } else { lost });
        self.judge()
    }

    /// Another server owns the journal: connections are closed, and nothing else is sent.
    pub(in crate::sim) fn fence(&mut self) -> Result<(), Stop> {
        self.handle(Input::AppendFenced);
        self.shard.handle_timeout(Timestamp::from_millis(self.now));
        self.shard.finish_turn(Timestamp::from_millis(self.now));
        let mut gone = BTreeSet::new();
        while let Some(output) = self.shard.poll_output() {
            let id = match output {
                Output::Send(id) => id,
                Output::Abandon(request) | Output::Answer(request, _) => {
                    gone.insert(request);
                    continue;
                }
                _ => continue,
            };
            let sent = self.shard.outgoing(id).map(std::mem::take);
            for outgoing in sent.unwrap_or_default() {
                if !matches!(outgoing, Outgoing::Close(_)) {
                    let text = format!("{outgoing:?} leaves a fenced shard");
                    return Err(Stop::Wrong(text));
                }
            }
        }
        self.check_abandoned(&gone)?;
        let seen = self.seen.take();
        if seen.is_empty() {
            Ok(())
        } else {
            Err(Stop::Wrong("a fenced shard goes on".to_owned()))
        }
    }
}
