//! `jitney health`: asks a broker whether it is well, for containers that have no shell and no other program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Request, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{shell, words};
use crate::http::operator::{self, OperatorArgs, Peer};
use crate::net::{exchange, listen_address};
use crate::system::print;

/// The arguments of `jitney health`.
#[derive(Debug, Args)]
pub(super) struct HealthArgs {
    /// The address of the broker's HTTP port, or of its --metrics, such as `http://127.0.0.1:5300` or 127.0.0.1:5300.
    #[arg(long = "url", alias = "http", value_name = "URL", default_value = "http://127.0.0.1:5300", value_parser = address)]
    http: SocketAddr,
    /// The port of --url, if it differs: the emulator's variable sets it.
    #[arg(long, value_name = "PORT", env = "EMULATOR_HTTP_PORT")]
    http_port: Option<u16>,
    /// An entity that must exist: a queue, a topic, or TOPIC/Subscriptions/NAME. It may be given several times.
    #[arg(long = "entity", value_name = "PATH")]
    entities: Vec<String>,
    /// The namespace of the entities. The default is the first one.
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The data directory of the broker, where the operator's key is found if --entity needs it.
    #[arg(long, value_name = "DIR", default_value = "jitney-data")]
    data_dir: PathBuf,
    /// The operator's key.
    #[command(flatten)]
    operator: OperatorArgs,
    /// How long the answer may take, such as 5s or PT5S.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = words::wait)]
    timeout: Duration,
}

/// Reads an address, which may be a URL without a path.
fn address(text: &str) -> Result<SocketAddr, String> {
    if text.starts_with("https://") {
        let text =
            "it is asked over plain HTTP, which every port takes: http://ADDRESS:PORT is allowed";
        return Err(text.to_owned());
    }
    let bare = text.strip_prefix("http://").unwrap_or(text);
    let bare = bare.strip_suffix('/').unwrap_or(bare);
    listen_address::parse(bare).map_err(|error| error.to_string())
}

/// Asks once. The exit code is 0 if the broker is well.
pub(crate) fn run(args: &HealthArgs) -> ExitCode {
    let asked = shell::block_on(ask(args));
    match asked.unwrap_or_else(|error| Err(error.to_string())) {
        Ok((StatusCode::OK, text)) => {
            print::line(text);
            ExitCode::SUCCESS
        }
        Ok((status, text)) => {
            print::complain(format_args!("jitney: {status}: {}", text.trim_end()));
            ExitCode::FAILURE
        }
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn ask(args: &HealthArgs) -> Result<(StatusCode, String), String> {
    let mut address = args.http;
    if let Some(port) = args.http_port {
        address.set_port(port);
    }
    match timeout(args.timeout, request(args, address)).await {
        Ok(answer) => answer.map_err(|error| format!("{address}: {error}")),
        Err(_) => Err(format!(
            "{address} has not answered in {} seconds",
            args.timeout.as_secs_f64()
        )),
    }
}

async fn request(
    args: &HealthArgs,
    address: SocketAddr,
) -> Result<(StatusCode, String), Box<dyn std::error::Error + Send + Sync>> {
    let entities = args.entities.iter();
    let entities =
        entities.map(|path| format!("entity={}", utf8_percent_encode(path, NON_ALPHANUMERIC)));
    let path = format!("/health/ready?{}", entities.collect::<Vec<_>>().join("&"));
    let host = match &args.namespace {
        Some(name) => format!("{name}.localhost"),
        None => address.to_string(),
    };
    let mut request = Request::get(path).header(HOST, host);
    let stream = TcpStream::connect(address).await?;
    if !args.entities.is_empty()
        && let Some(known) = operator::known(&args.operator, &args.data_dir)?
        && let Some(key) = known.for_peer(Peer::of(&stream))
    {
        request = request.header(AUTHORIZATION, format!("Bearer {}", key.expose()));
    }
    let request = request.body(Empty::<Bytes>::new())?;
    exchange::page(stream, request).await
}
