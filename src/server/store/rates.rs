//! How busy namespaces are. The server that has a namespace measures its messages a second, and says so in the store when that has
//! changed by a lot: all servers spread namespaces by it.

use std::collections::BTreeMap;
use std::time::Instant;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::debug;

use super::StoreError;
use super::fleet::FleetStore;
use crate::server::limits;
use crate::server::mailbox::{Mailbox, ShardReport};

/// The measured rates of namespaces, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Rates(BTreeMap<i64, Measured>);

#[derive(Debug)]
struct Measured {
    /// Messages until then.
    messages: u64,
    at: Instant,
    /// Messages a second, of late.
    rate: i64,
}

impl Rates {
    /// Takes how many messages a namespace has had since its server has it, and the rate that the store has; returns the rate that the
    /// store is to have, if that is another.
    fn take(&mut self, now: Instant, id: i64, messages: u64, published: i64) -> Option<i64> {
        // A namespace that was moved is as busy as it was.
        let first = Measured {
            messages,
            at: now,
            rate: published,
        };
        let measured = self.0.entry(id).or_insert(first);
        let millis = now.saturating_duration_since(measured.at).as_millis();
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
    fn keep(&mut self, ids: &[i64]) {
        self.0.retain(|id, _| ids.contains(id));
    }
}

/// Returns how many messages have come and were handed out.
fn messages(report: &ShardReport) -> u64 {
    let all = report.statistics.gateway.namespaces.others.values();
    all.map(|it| it.counters.incoming + it.counters.delivered)
        .sum()
}

/// What an owner says of its namespace.
struct Counted {
    id: i64,
    /// Messages since this server has it.
    messages: u64,
    at: Instant,
}

/// Asks all owners at the same time. One that does not answer in time is left out.
async fn count(owners: Vec<(i64, Mailbox)>) -> Vec<Counted> {
    let mut asked = JoinSet::new();
    for (id, owner) in owners {
        asked.spawn(async move {
            let report = owner.report(0);
            let report = timeout(limits::RATE_WAIT.as_duration(), report).await;
            Some(Counted {
                id,
                messages: messages(&report.ok()??),
                at: Instant::now(),
            })
        });
    }
    let counted = asked.join_all().await;
    counted.into_iter().flatten().collect()
}

impl FleetStore {
    /// Measures the rates of the namespaces that this server has, until the stop.
    pub(super) async fn rate(&self, mut stopped: watch::Receiver<bool>) {
        let mut ticks = interval(limits::RATE_INTERVAL.as_duration());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            // What is not said now is said the next time.
            if let Err(error) = self.rate_once().await {
                debug!(%error, "rates of namespaces are not recorded");
            }
        }
    }

    async fn rate_once(&self) -> Result<(), StoreError> {
        let view = self.view.load_full();
        let namespaces = view.namespaces.values();
        let published: BTreeMap<i64, i64> = namespaces.map(|it| (it.id, it.rate)).collect();
        let served = self.serving.mailboxes();
        let ids: Vec<i64> = served.iter().map(|(id, _)| *id).collect();
        self.state().rates.keep(&ids);
        let (mut changed, mut rates) = (Vec::new(), Vec::new());
        for Counted { id, messages, at } in count(served).await {
            let Some(published) = published.get(&id) else {
                continue;
            };
            if let Some(rate) = self.state().rates.take(at, id, messages, *published) {
                changed.push(id);
                rates.push(rate);
            }
        }
        if changed.is_empty() || !view.is_reached {
            return Ok(());
        }
        let sql = "insert into namespace_state (namespace, rate) select * from unnest($1::bigint[], $2::bigint[]) \
                   on conflict (namespace) do update set rate = excluded.rate";
        let session = self.store.take().await?;
        session.execute(sql, &[&changed, &rates]).await?;
        self.store.give_back(session);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;
    use crate::server::mailbox::Control;

    #[tokio::test]
    async fn owners_that_do_not_answer_are_waited_for_at_the_same_time() {
        let (senders, mut mailboxes): (Vec<_>, Vec<_>) = (0..3).map(|_| mpsc::channel(1)).unzip();
        let owners = senders.into_iter().map(|control| {
            let (mail, _) = mpsc::channel(1);
            Mailbox::new(mail, control, 1_000)
        });
        let counting = tokio::spawn(count((1..).zip(owners).collect()));
        let mut answers = Vec::new();
        for mailbox in &mut mailboxes {
            let Some(Control::Report(_, answer)) = mailbox.recv().await else {
                panic!("each owner is asked");
            };
            answers.push(answer);
        }
        let is_awaited = answers.iter().all(|answer| !answer.is_closed());
        assert!(is_awaited, "the last was asked while the first was awaited");
        drop(answers);
        assert!(counting.await.unwrap().is_empty());
    }

    #[test]
    fn a_rate_is_said_when_it_has_changed_by_a_lot() {
        let began = Instant::now();
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
