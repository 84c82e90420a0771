//! `loadgen hold`: idle connections, and the memory that they take in the broker.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use jitney_amqp::LinkRole;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::cli::{HoldArgs, LinkArg};
use crate::client::{Client, Endpoint, LinkSpec};
use crate::output::{self, Report};
use crate::process::Usage;
use crate::report::float;

/// The maximum number of connections that are being opened at the same time.
const OPENING_MAX: usize = 64;

/// Opens connections, prints the report, and holds the connections open.
pub(crate) fn run(args: &HoldArgs) -> Result<(), String> {
    crate::block_on(hold(args))?
}

async fn hold(args: &HoldArgs) -> Result<(), String> {
    let before = args.pid.map(Usage::of).transpose()?;
    let started = Instant::now();
    let permits = Arc::new(Semaphore::new(OPENING_MAX));
    let endpoint = args.endpoint.endpoint()?;
    let (sender, mut results) = mpsc::channel(OPENING_MAX);
    for number in 0..args.connections {
        let (args, endpoint) = (args.clone(), endpoint.clone());
        let (permits, sender) = (permits.clone(), sender.clone());
        tokio::spawn(async move {
            let result = hold_one(&args, &endpoint, number, &permits, &sender).await;
            // The receiver is gone if another connection has failed.
            let _ = sender.send(result).await;
        });
    }
    for _ in 0..args.connections {
        results.recv().await.ok_or("no connection was opened")??;
    }
    let seconds = started.elapsed().as_secs_f64();
    let after = args.pid.map(Usage::of).transpose()?;
    let report = HoldReport {
        connections: args.connections,
        seconds,
        usage: before.zip(after),
    };
    output::print(&report, args.format);
    let end = async {
        match args.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => end_of_input().await,
        }
    };
    tokio::select! {
        () = end => Ok(()),
        // All connections are open, so a further result is the failure of one of them.
        result = results.recv() => result.unwrap_or(Ok(())),
    }
}

/// Opens one connection, sends a result, and holds the connection open.
async fn hold_one(
    args: &HoldArgs,
    endpoint: &Endpoint,
    number: usize,
    permits: &Semaphore,
    sender: &mpsc::Sender<Result<(), String>>,
) -> Result<(), String> {
    let permit = permits.acquire().await.map_err(|error| error.to_string())?;
    let name = format!("idle-{number}");
    let mut client = Client::open(endpoint, &name).await?;
    let role = args.link.map(|link| match link {
        LinkArg::Sending => LinkRole::Outgoing,
        LinkArg::Receiving => LinkRole::Incoming,
    });
    if let Some(role) = role {
        let spec = LinkSpec {
            role,
            node: args.node.clone(),
            name,
            message_session: None,
        };
        for link in client.attach(&[spec]).await? {
            if let (LinkRole::Incoming, Some(credit)) = (role, args.credit) {
                client.engine().grant_credit(link, credit);
            }
        }
    }
    client.write()?;
    drop(permit);
    // The receiver is gone if another connection has failed.
    let _ = sender.send(Ok(())).await;
    if args.stop_reading {
        std::future::pending().await
    } else {
        client.hold().await
    }
}

/// Waits until standard input ends.
async fn end_of_input() {
    let (sender, ended) = oneshot::channel::<()>();
    thread::spawn(move || {
        // An input that cannot be read counts as ended.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(sender);
    });
    let _ = ended.await;
}

/// The report on open connections.
struct HoldReport {
    connections: usize,
    seconds: f64,
    usage: Option<(Usage, Usage)>,
}

impl Report for HoldReport {
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

impl fmt::Display for HoldReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (connections, seconds) = (self.connections, self.seconds);
        write!(
            f,
            "connections           {connections} open after {seconds:.2} s"
        )?;
        if let Some((before, after)) = self.usage {
            let grown = after.resident_bytes.saturating_sub(before.resident_bytes);
            let count = u64::try_from(connections).unwrap_or(1).max(1);
            let each = float(grown / count) / 1024.0;
            write!(f, "\nbroker memory         {each:.1} KiB per connection")?;
        }
        Ok(())
    }
}
