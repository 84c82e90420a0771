//! `jitney env`: the environment of programs that use the broker, as lines for a shell or for a file.
//!
//! Administration clients of most SDKs use TLS only, and check the certificate. No connection string can say which authority to
//! trust, but variables can: those of Python's requests, OpenSSL, Go, .NET on Linux, Node and Java. Some of them replace the
//! system's authorities, so they get a bundle of both.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::certs;
use super::commands;
use super::exchange::exchange;
use super::files::{self, Readers};
use super::listen::{AMQPS_PORT, EMULATOR_HTTP_PORT, HTTPS_PORT};
use super::print;
use super::root_key::{self, ROOT};

/// The arguments of `jitney env`.
#[derive(Debug, Args)]
pub(super) struct EnvironmentArgs {
    /// The host and port of the broker, which must be on this machine. Any of its ports will do.
    #[arg(long, value_name = "HOST:PORT", default_value_t = format!("localhost:{EMULATOR_HTTP_PORT}"))]
    broker: String,
    /// The data directory of the broker, where its root key is found.
    #[arg(long, value_name = "DIR", default_value = "jitney-data")]
    data_dir: PathBuf,
    /// The directory for the files of authorities. The default is a directory of the user's cache.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print the options of Java, too.
    #[arg(long)]
    java: bool,
    /// The form of the lines.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// `export NAME='VALUE'`, for `eval "$(jitney env)"`.
    #[default]
    Shell,
    /// `NAME=VALUE`, for files such as those of `docker run --env-file` and `$GITHUB_ENV`.
    File,
}

/// Why there is no environment.
#[derive(Debug, thiserror::Error)]
enum EnvironmentError {
    #[error(
        "{0}: no broker answers there ({1}): start it with `jitney serve`, or give --broker HOST:PORT"
    )]
    Unreachable(String, String),
    #[error(
        "{0} is not on this machine: copy ca.pem from the data directory of the broker, and see docs/clients/README.md"
    )]
    Elsewhere(String),
    #[error("{0}: the answer is not a broker's: {1}")]
    Strange(String, String),
    #[error(
        "the broker has no authority of its own: its certificate is one that was given to it, and clients trust it as any other"
    )]
    NoAuthority,
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Write(#[from] files::NotReplaced),
    #[error(transparent)]
    Key(#[from] root_key::KeysError),
    #[error("the trust store for Java cannot be written")]
    Random,
    /// A directory that others could have made is no place for what programs trust.
    #[error("HOME is not set: give --directory DIR, for the files of authorities")]
    NoHome,
}

impl EnvironmentError {
    /// As of other commands: 1 refused, 2 wrongly called, 3 unreachable.
    const fn exit_code(&self) -> u8 {
        match self {
            Self::Elsewhere(_) | Self::NoHome => 2,
            Self::Unreachable(..) | Self::Strange(..) => 3,
            Self::NoAuthority
            | Self::File { .. }
            | Self::Write(_)
            | Self::Key(_)
            | Self::Random => 1,
        }
    }
}

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How long an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Where systems keep their authorities.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Runs `jitney env`.
pub(super) fn run(args: &EnvironmentArgs) -> ExitCode {
    let found = commands::block_on(environment(args));
    let found = found.unwrap_or_else(|source| {
        Err(EnvironmentError::File {
            path: PathBuf::from("the runtime"),
            source,
        })
    });
    match found {
        Ok(lines) => {
            print::line(lines.trim_end());
            ExitCode::SUCCESS
        }
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

async fn environment(args: &EnvironmentArgs) -> Result<String, EnvironmentError> {
    let address = reach(&args.broker).await?;
    let is_open = get(&args.broker, address, "/api/v1/server").await?.0 == StatusCode::OK;
    let (StatusCode::OK, authority) = get(&args.broker, address, "/ca.pem").await? else {
        return Err(EnvironmentError::NoAuthority);
    };
    let der = CertificateDer::from_pem_slice(authority.as_bytes());
    let der =
        der.map_err(|error| EnvironmentError::Strange(args.broker.clone(), error.to_string()))?;
    let directory = match &args.directory {
        Some(directory) => directory.clone(),
        None => cache(&args.broker).ok_or(EnvironmentError::NoHome)?,
    };
    fs::create_dir_all(&directory).map_err(|source| EnvironmentError::File {
        path: directory.clone(),
        source,
    })?;
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    let at = |name: &str| directory.join(name);
    let others = others(&directory);
    let bundle = bundle(&authority, others.as_deref());
    let store = certs::trust_store(&der).map_err(|_| EnvironmentError::Random)?;
    files::replace(&[
        (at("ca.pem"), authority.as_bytes(), Readers::OfDirectory),
        (at("bundle.pem"), bundle.as_bytes(), Readers::OfDirectory),
        (at("ca.p12"), &store, Readers::OfDirectory),
    ])?;
    let mut lines = Lines::new(args.format);
    let connection = connection_string(args, address, is_open).await?;
    match connection {
        Some(connection) => lines.add("SERVICEBUS_CONNECTION_STRING", &connection),
        None => lines.say("keys are verified, and there is no root key here: give --data-dir, or set SERVICEBUS_CONNECTION_STRING"),
    }
    lines.add("NODE_EXTRA_CA_CERTS", &at("ca.pem").display().to_string());
    for name in ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"] {
        lines.add(name, &at("bundle.pem").display().to_string());
    }
    if args.java {
        let store = at("ca.p12");
        let options = format!(
            "-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStorePassword={}",
            store.display(),
            certs::STORE_PASSWORD
        );
        lines.add("JAVA_TOOL_OPTIONS", &options);
    }
    Ok(lines.text)
}

/// Finds the broker's address on this machine: an authority that comes from elsewhere without TLS could be anybody's.
async fn reach(broker: &str) -> Result<SocketAddr, EnvironmentError> {
    let unreachable = |why: String| EnvironmentError::Unreachable(broker.to_owned(), why);
    let with_port = match broker.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => broker.to_owned(),
        _ => format!("{broker}:{EMULATOR_HTTP_PORT}"),
    };
    let addresses = tokio::net::lookup_host(&with_port).await;
    let addresses = addresses.map_err(|error| unreachable(error.to_string()))?;
    let mut fault = "no address".to_owned();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let local = stream.local_addr();
                let is_own = local.is_ok_and(|local| local.ip() == address.ip());
                if !is_own && !address.ip().is_loopback() {
                    return Err(EnvironmentError::Elsewhere(broker.to_owned()));
                }
                return Ok(address);
            }
            Err(error) => fault = error.to_string(),
        }
    }
    Err(unreachable(fault))
}

/// Returns the status and the text of a page.
async fn get(
    broker: &str,
    address: SocketAddr,
    path: &str,
) -> Result<(StatusCode, String), EnvironmentError> {
    let asked = timeout(ANSWER_WAIT, ask(broker, address, path)).await;
    match asked {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(EnvironmentError::Strange(
            broker.to_owned(),
            error.to_string(),
        )),
        Err(_) => Err(EnvironmentError::Unreachable(
            broker.to_owned(),
            "no answer in 5 seconds".to_owned(),
        )),
    }
}

async fn ask(
    broker: &str,
    address: SocketAddr,
    path: &str,
) -> Result<(StatusCode, String), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::connect(address).await?;
    let request = Request::get(path).header(HOST, broker);
    let request = request.body(Empty::<Bytes>::new())?;
    exchange(stream, request, async |response| {
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX);
        let bytes = body.collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    })
    .await?
}

/// Returns the connection string; none if its key is not known here.
async fn connection_string(
    args: &EnvironmentArgs,
    address: SocketAddr,
    is_open: bool,
) -> Result<Option<String>, EnvironmentError> {
    let host = args
        .broker
        .rsplit_once(':')
        .map_or(&*args.broker, |(host, _)| host);
    let port = address.port();
    if is_open {
        return Ok(Some(root_key::emulator_string(host, port)));
    }
    let Some(key) = root_key::stored(&args.data_dir)? else {
        return Ok(None);
    };
    // Without a port, clients go to these two.
    let listens = async |port| {
        let place = SocketAddr::new(address.ip(), port);
        TcpStream::connect(place).await.is_ok()
    };
    let port = if listens(AMQPS_PORT).await && listens(HTTPS_PORT).await {
        String::new()
    } else {
        format!(":{port}")
    };
    Ok(Some(format!(
        "Endpoint=sb://{host}{port};SharedAccessKeyName={ROOT};SharedAccessKey={}",
        key.expose()
    )))
}

/// Returns the directory of the user's cache for the files of a broker.
fn cache(broker: &str) -> Option<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = of("XDG_CACHE_HOME").map(PathBuf::from);
    let own = own.or_else(|| Some(PathBuf::from(of("HOME")?).join(".cache")));
    Some(own?.join("jitney").join(name_of(broker)))
}

/// Returns the name of the directory for the files of a broker.
fn name_of(broker: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let safe = broker.chars().map(|c| if is_safe(c) { c } else { '-' });
    safe.collect()
}

/// Returns the authorities that programs of this machine trust so far: those of the variables, but for a bundle that was written
/// here, or the system's.
fn others(directory: &Path) -> Option<String> {
    let named = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"].map(std::env::var_os);
    let named = named.into_iter().flatten().map(PathBuf::from);
    let named = named.filter(|file| !file.starts_with(directory));
    let all = named.chain(SYSTEM_AUTHORITIES.map(PathBuf::from));
    all.filter_map(|file| fs::read_to_string(file).ok())
        .find(|text| text.contains("-----BEGIN CERTIFICATE-----"))
}

/// Returns the authority and others in one text.
fn bundle(authority: &str, others: Option<&str>) -> String {
    let others = others.unwrap_or_default();
    if others.contains(authority.trim()) {
        return others.to_owned();
    }
    format!("{}\n{others}", authority.trim_end())
}

/// The lines that are printed.
struct Lines {
    format: Format,
    text: String,
}

impl Lines {
    fn new(format: Format) -> Self {
        let text = String::new();
        Self { format, text }
    }

    fn add(&mut self, name: &str, value: &str) {
        let line = match self.format {
            Format::Shell => format!("export {name}='{}'", value.replace('\'', r"'\''")),
            Format::File => format!("{name}={value}"),
        };
        writeln!(self.text, "{line}").expect("a string takes all");
    }

    /// Adds a comment, which shells and files pass over.
    fn say(&mut self, text: &str) {
        writeln!(self.text, "# {text}").expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_one_word_for_a_shell() {
        let mut lines = Lines::new(Format::Shell);
        lines.add("NAME", "it's; $HOME");
        assert_eq!(lines.text, "export NAME='it'\\''s; $HOME'\n");
        let mut lines = Lines::new(Format::File);
        lines.add("NAME", "a=b;c");
        assert_eq!(lines.text, "NAME=a=b;c\n");
    }

    #[test]
    fn a_bundle_has_the_authority_once() {
        let once = bundle("ours\n", Some("others\n"));
        assert_eq!(once, "ours\nothers\n");
        assert_eq!(bundle("ours\n", Some(&once)), once);
        assert_eq!(bundle("ours\n", None), "ours\n");
    }

    #[test]
    fn the_files_of_brokers_are_apart() {
        assert_ne!(name_of("localhost:5300"), name_of("localhost:5301"));
        assert!(!name_of("[::1]:5300/../x").contains('/'));
    }
}
