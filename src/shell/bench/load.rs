//! One load: senders, receivers, and what it took.
//!
//! Each side has a thread and an event loop of its own, as a sending and a receiving program would.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::LoadArgs;
use super::client::{Client, Peer, Wanted};
use super::progress::{Plan, Progress, Said};
use super::receiver::{Counted, Receiver, Receiving};
use super::report::{Report, Used, float, histogram};
use super::sender::{Due, STAMP_BYTES, Sender, Sending};
use crate::amqp::{Identity, LinkRole};

/// Runs a load.
pub(super) fn run(args: &LoadArgs) -> Result<Report, String> {
    check(args)?;
    let (says, hears) = mpsc::channel();
    let progress = Arc::new(Progress::new(plan(args), says));
    let (go, waits) = watch::channel(false);
    let (ends, ended) = mpsc::channel();
    let mut sides = 0;
    let mut start = |side: Side| -> Result<(), String> {
        let (args, progress, go) = (args.clone(), progress.clone(), waits.clone());
        let ends = ends.clone();
        let threads = thread::Builder::new().name(format!("bench-{side:?}"));
        let body = move || {
            let result = super::block_on(work(side, args, progress.clone(), go));
            // Whoever waits for this side's connections must hear of its failure too.
            progress.say(Said::Ready);
            let _ = ends.send(result.and_then(|result| result));
        };
        threads.spawn(body).map_err(|error| error.to_string())?;
        sides += 1;
        hears.recv().map_err(|error| error.to_string())?;
        match ended.try_recv() {
            Ok(Err(error)) => Err(error),
            _ => Ok(()),
        }
    };
    // Receivers first: a message is received as soon as there is one.
    if !args.send_only {
        start(Side::Receiving)?;
    }
    if !args.receive_only {
        start(Side::Sending)?;
    }
    progress.begin();
    go.send_replace(true);
    let duration = args.duration.map(Duration::from_secs_f64);
    let timer = progress.clone();
    thread::spawn(move || {
        for said in hears {
            if let (Said::Counting, Some(duration)) = (said, duration) {
                thread::sleep(duration);
                timer.end();
            }
        }
    });
    let mut done = Vec::with_capacity(sides);
    for _ in 0..sides {
        done.push(ended.recv().map_err(|error| error.to_string())??);
    }
    report(args, &progress, done)
}

/// Puts together what both sides have seen.
fn report(args: &LoadArgs, progress: &Progress, sides: Vec<Done>) -> Result<Report, String> {
    let (mut acknowledged, mut end_to_end, mut early) = (histogram(), histogram(), 0);
    for done in sides {
        let latency = match done.side {
            Side::Sending => &mut acknowledged,
            Side::Receiving => &mut end_to_end,
        };
        latency
            .add(done.latency)
            .map_err(|error| error.to_string())?;
        early += done.early;
    }
    let (began, ended) = progress.marks().ok_or("nothing was counted")?;
    let (accepted, received) = (
        ended.accepted - began.accepted,
        ended.received - began.received,
    );
    let messages = if args.send_only {
        float(accepted)
    } else {
        float(received) / float(args.copies)
    };
    let (first_accepted, first_received) = progress.firsts();
    let seconds = |micros: u64| float(micros) / 1e6;
    let usage = match (began.usage.clone()?, ended.usage.clone()?) {
        (Some(before), Some(after)) => Some(Used::between(before, after)),
        _ => None,
    };
    Ok(Report {
        messages,
        accepted,
        received,
        received_in_all: progress.received_in_all(),
        early,
        seconds: ended.at.duration_since(began.at).as_secs_f64(),
        acknowledged,
        end_to_end,
        first_accepted_at: first_accepted.map(seconds),
        first_received_at: first_received.map(seconds),
        usage,
    })
}

fn check(args: &LoadArgs) -> Result<(), String> {
    let size = args.size;
    if size < STAMP_BYTES {
        return Err(format!("--size is {size}, and {STAMP_BYTES} is the least"));
    }
    for (flag, value) in [
        ("--pairs", args.pairs),
        ("--batch", args.batch),
        ("--nodes", args.nodes),
        ("--sources", args.sources),
        ("--window", args.window),
    ] {
        if value == 0 {
            return Err(format!("{flag} is 0, and 1 is the least"));
        }
    }
    if args.copies == 0 || args.credit == 0 {
        return Err("--copies or --credit is 0, and 1 is the least".to_owned());
    }
    if args
        .duration
        .is_some_and(|seconds| !(0.0..=86_400.0).contains(&seconds))
    {
        return Err("--duration is not between 0 and 86,400 seconds".to_owned());
    }
    Ok(())
}

fn plan(args: &LoadArgs) -> Plan {
    Plan {
        messages: match args.duration {
            None => Some(args.warm_up + args.messages),
            Some(_) => None,
        },
        warm_up: args.warm_up,
        copies: args.copies,
        senders: if args.receive_only { 0 } else { args.pairs },
        receives: !args.send_only,
        pid: args.pid,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Receiving,
    Sending,
}

/// What one side, or one of its connections, has seen.
struct Done {
    side: Side,
    latency: Histogram<u64>,
    early: u64,
}

/// One side of the load: makes its connections, waits for the word, and works.
async fn work(
    side: Side,
    args: LoadArgs,
    progress: Arc<Progress>,
    go: watch::Receiver<bool>,
) -> Result<Done, String> {
    let peer = args.peer();
    let mut connecting = JoinSet::new();
    for pair in 0..args.pairs {
        let (peer, wanted) = (peer.clone(), wanted(&args, side, pair));
        connecting.spawn(async move {
            let (peer, wanted) = (peer, wanted);
            let mut client = Client::open(&peer, &format!("{side:?}-{pair}")).await?;
            let links = client.attach(&wanted).await?;
            Ok::<_, String>((pair, client, links))
        });
    }
    let mut clients = Vec::with_capacity(args.pairs);
    while let Some(connected) = connecting.join_next().await {
        clients.push(connected.map_err(|error| error.to_string())??);
    }
    progress.say(Said::Ready);
    let mut working = JoinSet::new();
    for (pair, client, links) in clients {
        let (progress, mut go) = (progress.clone(), go.clone());
        match side {
            Side::Receiving => {
                let receiver = Receiver::new(receiving(&args), links, progress.clone());
                working.spawn(async move {
                    // The word comes, or the program ends.
                    let _ = go.wait_for(|go| *go).await;
                    receive(client, receiver, &progress).await
                });
            }
            Side::Sending => {
                let sender = Sender::new(sending(&args, pair), links, progress.clone());
                working.spawn(async move {
                    let _ = go.wait_for(|go| *go).await;
                    send(client, sender, &progress).await
                });
            }
        }
    }
    let mut all = Done {
        side,
        latency: histogram(),
        early: 0,
    };
    while let Some(done) = working.join_next().await {
        let done = done.map_err(|error| error.to_string())??;
        all.latency
            .add(done.latency)
            .map_err(|error| error.to_string())?;
        all.early += done.early;
    }
    Ok(all)
}

async fn receive(
    mut client: Client,
    mut receiver: Receiver,
    progress: &Progress,
) -> Result<Done, String> {
    client.run(&mut receiver, &mut progress.finished()).await?;
    client.close().await?;
    Ok(Done {
        side: Side::Receiving,
        latency: receiver.latency,
        early: receiver.early,
    })
}

async fn send(mut client: Client, mut sender: Sender, progress: &Progress) -> Result<Done, String> {
    client.run(&mut sender, &mut progress.finished()).await?;
    client.close().await?;
    Ok(Done {
        side: Side::Sending,
        latency: sender.latency,
        early: 0,
    })
}

/// Returns the links of one connection: its share of the nodes, or of the message sessions.
fn wanted(args: &LoadArgs, side: Side, pair: usize) -> Vec<Wanted> {
    let role = match side {
        Side::Receiving => LinkRole::Incoming,
        Side::Sending => LinkRole::Outgoing,
    };
    let link = |at: usize, node: String, message_session: Option<String>| Wanted {
        role,
        node,
        name: format!("{side:?}-{pair}-{at}"),
        message_session,
    };
    let sources = args.source.as_ref().filter(|_| side == Side::Receiving);
    let nodes: Vec<String> = match sources {
        Some(source) => (0..args.sources)
            .map(|at| source.replace("{}", &at.to_string()))
            .collect(),
        None => args.node_names(),
    };
    if side == Side::Receiving
        && let Some(sessions) = args.message_sessions
        && let Some(node) = nodes.first()
    {
        let mine = (pair..sessions).step_by(args.pairs);
        return mine
            .map(|at| link(at, node.clone(), Some(session_name(at))))
            .collect();
    }
    let count = nodes.len();
    let named = nodes.into_iter().enumerate();
    if args.pairs <= count {
        let mine = named.filter(|(at, _)| at % args.pairs == pair);
        mine.map(|(at, node)| link(at, node, None)).collect()
    } else {
        // More connections than nodes: each has one.
        let mine = named.filter(|(at, _)| *at == pair % count);
        mine.map(|(at, node)| link(at, node, None)).collect()
    }
}

fn session_name(at: usize) -> String {
    format!("session-{at}")
}

fn receiving(args: &LoadArgs) -> Receiving {
    Receiving {
        credit: args.credit,
        size: args.size,
        defer_every: args.defer_every,
        counted: if args.receive_only {
            Counted::All
        } else {
            Counted::Own
        },
    }
}

fn sending(args: &LoadArgs, pair: usize) -> Sending {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (pairs, batch) = (number(args.pairs), number(args.batch));
    let rate = args.rate.map(|rate| {
        let apart = Duration::from_secs(1) * batch / rate.max(1);
        (apart * pairs, apart * number(pair))
    });
    let sessions = args.message_sessions.unwrap_or(0);
    Sending {
        messages: plan(args).messages.map(|all| share(all, args.pairs, pair)),
        warm_up: share(args.warm_up, args.pairs, pair),
        size: args.size,
        batch: args.batch,
        window: args.window,
        rate,
        subject: args.subject.clone(),
        message_sessions: (0..sessions).map(session_name).collect(),
        due: match (args.due_in, args.due_at) {
            (Some(seconds), _) => Due::In(millis(seconds)),
            (None, Some(at)) => Due::At(at),
            (None, None) => Due::AtOnce,
        },
    }
}

fn millis(seconds: f64) -> u64 {
    let span = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn share(all: u64, parts: usize, part: usize) -> u64 {
    let (parts, part) = (
        u64::try_from(parts).unwrap_or(1),
        u64::try_from(part).unwrap_or(0),
    );
    all / parts + u64::from(part < all % parts)
}

impl LoadArgs {
    fn peer(&self) -> Peer {
        Peer {
            broker: self.broker,
            identity: identity(self.user.as_deref(), self.password.as_deref()),
            patience: Duration::from_millis(millis(self.patience)),
        }
    }

    fn node_names(&self) -> Vec<String> {
        let count = if self.each { self.pairs } else { self.nodes };
        if !self.each && count == 1 {
            return vec![self.node.clone()];
        }
        (0..count).map(|at| format!("{}{at}", self.node)).collect()
    }
}

/// Who signs in with SASL.
pub(super) fn identity(user: Option<&str>, password: Option<&str>) -> Identity {
    match (user, password) {
        (Some(user), Some(password)) => Identity::Plain {
            user: user.to_owned(),
            password: password.to_owned(),
        },
        _ => Identity::Anonymous,
    }
}
