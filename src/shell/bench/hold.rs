//! Connections that are there and do nothing: what they cost, and what they do to others.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::client::{Client, Peer, Wanted};
use super::load::identity;
use super::process::Usage;
use super::report::float;
use super::{HoldArgs, LinkArg, tell};
use crate::amqp::LinkRole;

/// Connections that are being opened at the same time.
const OPENING: usize = 64;

/// Opens connections, tells of it, and holds them.
pub(super) fn run(args: &HoldArgs) -> Result<(), String> {
    super::block_on(hold(args))?
}

async fn hold(args: &HoldArgs) -> Result<(), String> {
    let before = args.pid.map(Usage::of).transpose()?;
    let began = Instant::now();
    let turns = Arc::new(Semaphore::new(OPENING));
    let (opened, mut opens) = mpsc::channel(OPENING);
    for number in 0..args.connections {
        let (args, turns, opened) = (args.clone(), turns.clone(), opened.clone());
        tokio::spawn(async move {
            let result = one(&args, number, &turns, &opened).await;
            // An error ends all; nobody listens any more then.
            let _ = opened.send(result).await;
        });
    }
    for _ in 0..args.connections {
        opens.recv().await.ok_or("nothing was opened")??;
    }
    let seconds = began.elapsed().as_secs_f64();
    let after = args.pid.map(Usage::of).transpose()?;
    let report = Report {
        connections: args.connections,
        seconds,
        usage: before.zip(after),
    };
    tell(&report, args.json.then(|| report.json()));
    let told = async {
        match args.seconds {
            Some(seconds) => {
                let span = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                tokio::time::sleep(span).await;
            }
            None => end_of_input().await,
        }
    };
    tokio::select! {
        () = told => Ok(()),
        // All are open: what is told now is that one has gone.
        result = opens.recv() => result.unwrap_or(Ok(())),
    }
}

/// Opens one connection, says so, and keeps it.
async fn one(
    args: &HoldArgs,
    number: usize,
    turns: &Semaphore,
    opened: &mpsc::Sender<Result<(), String>>,
) -> Result<(), String> {
    let turn = turns.acquire().await.map_err(|error| error.to_string())?;
    let peer = Peer {
        broker: args.broker,
        identity: identity(args.user.as_deref(), args.password.as_deref()),
        patience: Duration::ZERO,
    };
    let mut client = Client::open(&peer, &format!("idle-{number}")).await?;
    let role = args.link.map(|link| match link {
        LinkArg::Sending => LinkRole::Outgoing,
        LinkArg::Receiving => LinkRole::Incoming,
    });
    if let Some(role) = role {
        let wanted = Wanted {
            role,
            node: args.node.clone(),
            name: format!("idle-{number}"),
            message_session: None,
        };
        for link in client.attach(&[wanted]).await? {
            if let (LinkRole::Incoming, Some(credit)) = (role, args.credit) {
                client.engine().grant_credit(link, credit);
            }
        }
    }
    client.write()?;
    drop(turn);
    // Whoever listened has gone only when all has failed.
    let _ = opened.send(Ok(())).await;
    if args.deaf {
        std::future::pending().await
    } else {
        client.hold().await
    }
}

/// Waits until whoever started this closes its input.
async fn end_of_input() {
    let (ends, ended) = oneshot::channel::<()>();
    thread::spawn(move || {
        // An input that cannot be read has ended too.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(ends);
    });
    let _ = ended.await;
}

struct Report {
    connections: usize,
    seconds: f64,
    usage: Option<(Usage, Usage)>,
}

impl Report {
    fn json(&self) -> Value {
        let broker = self.usage.map(|(before, after)| {
            json!({
                "cpu_seconds": after.cpu_seconds - before.cpu_seconds,
                "resident_bytes_before": before.resident_bytes,
                "resident_bytes": after.resident_bytes,
                "peak_bytes": after.peak_bytes,
            })
        });
        json!({
            "connections": self.connections,
            "seconds": self.seconds,
            "broker": broker,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connections, seconds) = (self.connections, self.seconds);
        write!(f, "open                {connections} after {seconds:.2} s")?;
        if let Some((before, after)) = self.usage {
            let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
            let count = u64::try_from(connections).unwrap_or(1).max(1);
            let each = float(grown / count) / 1024.0;
            write!(f, "\nbroker's memory     {each:.1} KiB more for each")?;
        }
        Ok(())
    }
}
