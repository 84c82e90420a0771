//! The server that has a namespace measures its messages a second, and says so in the store when that has changed by a
//! lot: all servers spread namespaces by it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tracing::debug;

use super::fleet::FleetStore;
use crate::host::mailbox::Mailbox;
use crate::host::owner_message::ShardReport;
use crate::limits;
use crate::system::clock::uptime;
use jitney_postgres::StoreError;

/// Returns how many messages have come and were handed out.
fn messages(report: &ShardReport) -> u64 {
    let all = report.statistics.gateway.namespaces.others.values();
    all.map(|it| it.counters.incoming + it.counters.delivered)
        .sum()
}

/// What an owner says of its namespace.
struct OwnerCount {
    id: i64,
    /// Messages since this server has it.
    messages: u64,
    at: Duration,
}

/// Asks all owners at the same time. One that does not answer in time is left out.
async fn count(owners: Vec<(i64, Mailbox)>) -> Vec<OwnerCount> {
    let mut asked = JoinSet::new();
    for (id, owner) in owners {
        asked.spawn(async move {
            let report = owner.report(0);
            let report = timeout(limits::RATE_WAIT.as_duration(), report).await;
            Some(OwnerCount {
                id,
                messages: messages(&report.ok()??),
                at: uptime(),
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
        for OwnerCount { id, messages, at } in count(served).await {
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
    use tokio::sync::mpsc;

    use super::*;
    use crate::host::owner_message::Control;

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
}
