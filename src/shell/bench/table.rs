//! The table of budgets: each row measured on a broker of its own with fresh data.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::load::{self, float};
use super::process::Usage;
use super::{LoadArgs, TableArgs};

/// Measures all rows and returns the table.
pub(super) async fn run(args: &TableArgs) -> Result<String, String> {
    let mut table = String::from("| # | what | budget | measured |\n|---|---|---|---|\n");
    let mut row = |number: &str, what: &str, budget: &str, measured: String| {
        eprintln!("row {number}: {measured}");
        let _ = writeln!(table, "| {number} | {what} | {budget} | {measured} |");
    };
    let one = throughput(args, |load| load).await?;
    row("1", "CPU s per million messages, 1 KiB, 1 pair", "4.0", one);
    let eight = throughput(args, |load| LoadArgs { pairs: 8, ..load }).await?;
    row("2", "the same, 8 pairs on one queue", "4.0", eight);
    let queues = throughput(args, |load| LoadArgs {
        pairs: 8,
        each: true,
        node: "bench.".to_owned(),
        ..load
    });
    row("2", "the same, 8 pairs on 8 queues", "4.0", queues.await?);
    row(
        "4",
        "e2e latency p50 / p99 at 2,000 a second",
        "0.5 / 2 ms",
        latency(args).await?,
    );
    let (memory, recovery, disk) = backlog(args).await?;
    let messages = args.backlog;
    row(
        "6",
        &format!("memory with {messages} messages of 1 KiB waiting, less 64 MiB of cache"),
        "250 MiB",
        memory,
    );
    row(
        "8",
        "start on no data, to the first accepted message",
        "50 ms",
        start(args).await?,
    );
    row(
        "9",
        &format!("recovery of {messages} messages after SIGKILL, to the first accepted message"),
        "2 s",
        recovery,
    );
    row("", "disk used with them waiting", "", disk);
    row(
        "12",
        "a topic with 1,000 subscriptions, correlation filters, 1 matching, to a plain queue",
        "1.3 x CPU",
        fan_out(args).await?,
    );
    Ok(table)
}

/// A broker of our own, in a process of its own.
struct Broker {
    child: Child,
    address: SocketAddr,
    data: PathBuf,
}

impl Broker {
    /// Starts this program's broker, and waits until it is ready.
    fn start(data: &Path) -> Result<Self, String> {
        Self::start_with(data, 0)
    }

    /// Starts it with a topic that has this many subscriptions.
    fn start_with(data: &Path, subscriptions: usize) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let (address, http) = (free_port()?, free_port()?);
        let config = data.with_extension("json");
        std::fs::write(&config, configuration(subscriptions)).map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args([
                "serve",
                "--amqp",
                &address.to_string(),
                "--http",
                &http.to_string(),
            ])
            .arg("--config")
            .arg(&config)
            .arg("--data-dir")
            .arg(data)
            .env("RUST_LOG", "info")
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stderr = child.stderr.take().ok_or("the broker has no log")?;
        let mut lines = BufReader::new(stderr).lines();
        let ready = lines.find(|line| {
            line.as_ref()
                .is_ok_and(|line| line.contains("Successfully Up"))
        });
        if ready.is_none() {
            return Err("the broker did not start".to_owned());
        }
        // The rest of its log is read, so that it can go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self {
            child,
            address,
            data: data.to_owned(),
        })
    }

    fn load(&self) -> LoadArgs {
        LoadArgs {
            broker: self.address,
            node: "bench.0".to_owned(),
            source: None,
            subject: None,
            each: false,
            messages: 1,
            size: 1024,
            pairs: 1,
            rate: None,
            credit: 1000,
            send_only: false,
            receive_only: false,
            user: None,
            password: None,
            pid: Some(self.child.id()),
            json: false,
        }
    }

    fn kill(mut self) -> PathBuf {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.data.clone()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Subscriptions of the topic, each with a correlation filter for a subject of its own.
const SUBSCRIPTIONS: usize = 1_000;

/// Makes the entities that the rows need.
fn configuration(subscriptions: usize) -> String {
    let subscriptions: Vec<String> = (0..subscriptions)
        .map(|at| {
            format!(
                r#"{{"Name":"s{at}","Rules":[{{"Name":"r","Properties":{{"FilterType":"Correlation",
                "CorrelationFilter":{{"Label":"subject {at}"}}}}}}]}}"#
            )
        })
        .collect();
    let queues: Vec<String> = (1..8)
        .map(|at| format!(r#"{{"Name":"bench.{at}"}}"#))
        .collect();
    format!(
        r#"{{"UserConfig":{{"Namespaces":[{{"Name":"bench","Queues":[{{"Name":"bench.0",
        "Properties":{{"DefaultMessageTimeToLive":"P1D","MaxSizeInMegabytes":100000}}}},{}],
        "Topics":[{{"Name":"topic","Subscriptions":[{}]}}]}}]}}}}"#,
        queues.join(","),
        subscriptions.join(",")
    )
}

/// Publishes to the topic, where one subscription of all wants the messages, and to a queue.
async fn fan_out(args: &TableArgs) -> Result<String, String> {
    let mut ratios = Vec::new();
    for _ in 0..args.runs {
        let scratch = Scratch::new()?;
        let broker = Broker::start_with(&scratch.data(), SUBSCRIPTIONS)?;
        let subject = Some("subject 500".to_owned());
        let to_queue = LoadArgs {
            messages: args.messages,
            subject: subject.clone(),
            ..broker.load()
        };
        let to_topic = LoadArgs {
            node: "topic".to_owned(),
            source: Some("topic/Subscriptions/s500".to_owned()),
            ..to_queue.clone()
        };
        let queue = load::run(&to_queue).await?.cpu_per_million();
        let topic = load::run(&to_topic).await?.cpu_per_million();
        ratios.extend(topic.zip(queue).map(|(topic, queue)| topic / queue));
    }
    Ok(format!("{:.2} x CPU", median(&mut ratios)))
}

/// A directory that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, String> {
        let name = format!("jitney-bench-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).map_err(|error| error.to_string())?;
        Ok(Self(path))
    }

    fn data(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays in the system's place for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn throughput(
    args: &TableArgs,
    shape: impl Fn(LoadArgs) -> LoadArgs,
) -> Result<String, String> {
    let (mut cpu, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let scratch = Scratch::new()?;
        let broker = Broker::start(&scratch.data())?;
        let load = shape(LoadArgs {
            messages: args.messages,
            ..broker.load()
        });
        let report = load::run(&load).await?;
        cpu.extend(report.cpu_per_million());
        rates.push(report.rate());
    }
    Ok(format!(
        "{:.2} CPU s ({:.0} messages a second)",
        median(&mut cpu),
        median(&mut rates)
    ))
}

async fn latency(args: &TableArgs) -> Result<String, String> {
    let (mut p50, mut p99) = (Vec::new(), Vec::new());
    for _ in 0..args.runs {
        let scratch = Scratch::new()?;
        let broker = Broker::start(&scratch.data())?;
        let load = LoadArgs {
            messages: 10_000,
            rate: Some(2_000),
            ..broker.load()
        };
        let report = load::run(&load).await?;
        p50.push(float(report.end_to_end.value_at_quantile(0.5)) / 1e3);
        p99.push(float(report.end_to_end.value_at_quantile(0.99)) / 1e3);
    }
    Ok(format!(
        "{:.2} / {:.2} ms",
        median(&mut p50),
        median(&mut p99)
    ))
}

async fn start(args: &TableArgs) -> Result<String, String> {
    let mut times = Vec::new();
    for _ in 0..args.runs {
        let scratch = Scratch::new()?;
        times.push(first_accepted(&scratch.data()).await?.1);
    }
    Ok(format!("{:.0} ms", median(&mut times) * 1e3))
}

/// Fills a queue, and returns the memory, the time to recover, and the bytes on the disk.
async fn backlog(args: &TableArgs) -> Result<(String, String, String), String> {
    const CACHE_BYTES: u64 = 64 * 1024 * 1024;
    let scratch = Scratch::new()?;
    let broker = Broker::start(&scratch.data())?;
    let load = LoadArgs {
        messages: args.backlog,
        send_only: true,
        ..broker.load()
    };
    load::run(&load).await?;
    let resident = Usage::of(broker.child.id())?.resident_bytes;
    let memory = resident.saturating_sub(CACHE_BYTES) / 1024 / 1024;
    let data = broker.kill();
    let disk = directory_bytes(&data)? / 1024 / 1024;
    let mut times = Vec::new();
    for _ in 0..args.runs {
        let (broker, time) = first_accepted(&data).await?;
        times.push(time);
        broker.kill();
    }
    let recovery = format!("{:.2} s", median(&mut times));
    Ok((format!("{memory} MiB"), recovery, format!("{disk} MiB")))
}

/// Starts a broker; returns the seconds until it accepted a message.
async fn first_accepted(data: &Path) -> Result<(Broker, f64), String> {
    let began = Instant::now();
    let broker = Broker::start(data)?;
    let load = LoadArgs {
        send_only: true,
        ..broker.load()
    };
    load::run(&load).await?;
    let time = began.elapsed();
    Ok((broker, time.max(Duration::from_micros(1)).as_secs_f64()))
}

fn directory_bytes(path: &Path) -> Result<u64, String> {
    let entries = std::fs::read_dir(path).map_err(|error| error.to_string())?;
    let sizes = entries.map(|entry| Ok(entry?.metadata()?.len()));
    sizes
        .sum::<Result<u64, std::io::Error>>()
        .map_err(|error| error.to_string())
}

fn free_port() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
