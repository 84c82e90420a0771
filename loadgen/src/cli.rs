//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use jitney_amqp::Identity;
use jitney_base::secret::Secret;

use crate::client::Endpoint;
use crate::encode::STAMP_BYTES;
use crate::stream::trust;

/// Generates load on an AMQP 1.0 broker and reports throughput and latency.
///
/// The program sends messages to a broker and receives them over TCP or TLS. It can also hold idle
/// connections, and measure requests to the management node of a queue as Azure Service Bus defines it.
#[derive(Debug, Parser)]
#[command(version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send messages, receive them, and report throughput and latency.
    ///
    /// The latency of a message is counted from the time at which the message was due to be sent. With
    /// --rate that is its place in the schedule, even if the sender was late.
    Load(Box<LoadArgs>),
    /// Open connections and hold them open until standard input ends.
    Hold(HoldArgs),
    /// Schedule messages, cancel each of them, and report the latency of the requests.
    Cancel(RequestArgs),
    /// Defer messages, receive each by its sequence number, and report the latency of the requests.
    Deferred(RequestArgs),
}

/// The broker, and the credentials of the client.
#[derive(Debug, Clone, Args)]
pub(crate) struct EndpointArgs {
    /// Address and port of the broker.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:5672")]
    pub(crate) broker: SocketAddr,
    /// Host name in the AMQP open, if it differs from the address: it names a namespace.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// User name for SASL PLAIN; without it the client uses SASL ANONYMOUS.
    #[arg(long, requires = "password")]
    pub(crate) user: Option<String>,
    /// Password for SASL PLAIN.
    #[arg(long, requires = "user")]
    pub(crate) password: Option<String>,
    /// Connect with TLS. FILE has the certificates to trust, as PEM; the broker's certificate must be for --host, or
    /// without it for the IP address.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls: Option<PathBuf>,
    /// Retry for this time while the broker refuses connections.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = seconds)]
    pub(crate) connect_timeout: Duration,
}

/// The format of the report.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FormatArgs {
    /// Print the report as one JSON object; latencies are in microseconds.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The options of `loadgen load`.
#[derive(Debug, Clone, Args)]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Address of the node; with --nodes or --node-per-pair, the number of each node is appended.
    #[arg(long, default_value = "queue.1")]
    pub(crate) node: String,
    /// Number of nodes; their links are distributed over the connections of the pairs.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least(1), conflicts_with = "node_per_pair")]
    pub(crate) nodes: usize,
    /// Give each pair a node of its own.
    #[arg(long)]
    pub(crate) node_per_pair: bool,
    /// Address of the node to receive from, if it differs, such as a subscription of a topic; {} is
    /// replaced by the number of the source.
    #[arg(long, value_name = "NODE")]
    pub(crate) source: Option<String>,
    /// Number of nodes to receive from.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least(1), requires = "source")]
    pub(crate) sources: usize,
    /// Number of copies of each message that are received, as from several subscriptions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) copies: u64,
    /// Subject of each message, for the rules of subscriptions.
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// Send to this number of message sessions in turn, and receive from each over a link of its own.
    #[arg(long, value_name = "N")]
    pub(crate) message_sessions: Option<usize>,
    /// Number of messages.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) messages: u64,
    /// Run for this time instead of for a number of messages.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "messages")]
    pub(crate) duration: Option<Duration>,
    /// Number of messages before those that are counted.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warm_up: u64,
    /// Size of a message body in bytes; at least 8.
    #[arg(long, value_name = "BYTES", default_value_t = 1024, value_parser = at_least(STAMP_BYTES))]
    pub(crate) size: usize,
    /// Number of messages in one transfer, in the batch format of Azure Service Bus.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least(1), conflicts_with = "message_sessions")]
    pub(crate) batch: usize,
    /// Number of senders, and of receivers; each has a connection of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least(1))]
    pub(crate) pairs: usize,
    /// Messages per second, all senders together; without it, senders are limited by the broker only.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
    /// Link credit of each receiving link.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) credit: u32,
    /// Maximum number of unsettled messages of a sender.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = at_least(1))]
    pub(crate) window: usize,
    /// Schedule each message for this time after it is sent; latency is counted from the scheduled time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "due_at")]
    pub(crate) due_in: Option<Duration>,
    /// Schedule all messages for one time, in milliseconds since 1970.
    #[arg(long, value_name = "MILLIS")]
    pub(crate) due_at: Option<u64>,
    /// Defer one in N messages, and complete the others.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) defer_every: Option<u64>,
    /// Send messages, and receive none.
    #[arg(long, conflicts_with = "receive_only")]
    pub(crate) send_only: bool,
    /// Receive messages, and send none; latency includes messages that were sent earlier.
    #[arg(long)]
    pub(crate) receive_only: bool,
    /// Process id of a broker on this machine: the report includes the CPU time and the memory of the
    /// process and its descendants.
    #[arg(long)]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The options of `loadgen hold`.
#[derive(Debug, Clone, Args)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Number of connections.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least(1))]
    pub(crate) connections: usize,
    /// Attach a link on each connection.
    #[arg(long, value_enum)]
    pub(crate) link: Option<LinkArg>,
    /// Address of the node of the link.
    #[arg(long, default_value = "queue.1")]
    pub(crate) node: String,
    /// Link credit of a receiving link. Messages that arrive stay unsettled, and no credit is added.
    #[arg(long, value_name = "N")]
    pub(crate) credit: Option<u32>,
    /// Stop reading from the sockets when all connections are open.
    #[arg(long)]
    pub(crate) stop_reading: bool,
    /// Hold the connections for this time instead of until standard input ends.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) duration: Option<Duration>,
    /// Process id of a broker on this machine: the report includes the memory of the process and its
    /// descendants.
    #[arg(long)]
    pub(crate) pid: Option<u32>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

/// The direction of a held connection's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkArg {
    /// A link to the broker.
    Sending,
    /// A link from the broker.
    Receiving,
}

/// The options of `loadgen cancel` and `loadgen deferred`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RequestArgs {
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Address of the queue.
    #[arg(long, default_value = "queue.1")]
    pub(crate) node: String,
    /// Number of messages.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub(crate) messages: usize,
    /// Size of a message body in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 1024)]
    pub(crate) size: usize,
    /// Length of the period, beginning one day from now, over which scheduled messages are spread.
    #[arg(long, value_name = "SECONDS", default_value = "864000", value_parser = seconds)]
    pub(crate) due_in: Duration,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
}

impl EndpointArgs {
    /// Returns the broker's address and the client's identity.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, String> {
        Ok(Endpoint {
            broker: self.broker,
            host: self
                .host
                .clone()
                .unwrap_or_else(|| self.broker.ip().to_string()),
            identity: match (&self.user, &self.password) {
                (Some(user), Some(password)) => Identity::Plain {
                    user: user.clone(),
                    password: Secret::new(password.clone()),
                },
                _ => Identity::Anonymous,
            },
            trust: self.tls.as_deref().map(trust).transpose()?,
            connect_timeout: self.connect_timeout,
        })
    }
}

fn at_least(min: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(u64::try_from(min).unwrap_or(u64::MAX)..)
}

/// The longest time that an option takes: some 30 years.
const SECONDS_MAX: f64 = 1e9;

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().map_err(|error| error.to_string())?;
    if !(0.0..=SECONDS_MAX).contains(&number) {
        return Err(format!("must be 0 to {SECONDS_MAX} seconds"));
    }
    Ok(Duration::from_secs_f64(number))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Command, String> {
        let cli = Cli::try_parse_from(["loadgen"].iter().chain(arguments));
        cli.map(|cli| cli.command)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        for (flag, value, range) in [
            ("--size", "7", "8.."),
            ("--pairs", "0", "1.."),
            ("--rate", "0", "1.."),
            ("--copies", "0", "1.."),
            ("--credit", "0", "1.."),
            ("--duration", "-1", "0 to"),
            ("--due-in", "1e10", "0 to"),
        ] {
            let text = parsed(&["load", &format!("{flag}={value}")]).unwrap_err();
            assert!(text.contains(flag) && text.contains(range), "{text}");
        }
    }

    #[test]
    fn a_load_is_limited_by_messages_or_by_time() {
        let Ok(Command::Load(args)) = parsed(&["load", "--duration", "0.5"]) else {
            panic!("it is a command");
        };
        assert_eq!(args.duration, Some(Duration::from_millis(500)));
        assert!(parsed(&["load", "--duration", "0.5", "--messages", "2"]).is_err());
        assert!(parsed(&["load", "--send-only", "--receive-only"]).is_err());
    }

    #[test]
    fn a_user_needs_a_password() {
        let Ok(Command::Cancel(args)) = parsed(&["cancel", "--user", "a", "--password", "b"])
        else {
            panic!("it is a command");
        };
        let plain = Identity::Plain {
            user: "a".to_owned(),
            password: Secret::new("b"),
        };
        assert_eq!(args.endpoint.endpoint().unwrap().identity, plain);
        assert!(parsed(&["cancel", "--user", "a"]).is_err());
        assert!(parsed(&["cancel", "--password", "b"]).is_err());
    }
}
