//! `jitney env`: the environment of programs that use the broker, as lines for a shell or for a file.
//!
//! Administration clients of most SDKs use TLS only, and check the certificate. No connection string can say which authority to
//! trust, but variables can: those of Python's requests, OpenSSL, Go, .NET on Linux, Node and Java. Some of them replace the
//! system's authorities, so they get a bundle of both.

use std::fmt::{Display, Write as _};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::connection_string::{place_of, url_host};
use super::error::CommandError;
use super::shell::{block_on, ended};
use crate::host::root_key;
use crate::net::listen::{AMQPS_PORT, HTTPS_PORT};
use crate::net::{certs, exchange};
use crate::system::files::{self, Readers};
use crate::system::print;

/// The broker that is asked by default: localhost, as in the certificate, at the emulator's port.
const DEFAULT_URL: &str = "http://localhost:5300";

/// The arguments of `jitney env`.
#[derive(Debug, Args)]
pub(super) struct EnvironmentArgs {
    /// The broker's address, which must be on this machine: any of its ports will do. The default is `http://localhost:5300`.
    #[arg(long, value_name = "URL", env = "JITNEY_URL")]
    url: Option<String>,
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

/// How long an answer may take.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Where systems keep their authorities.
const SYSTEM_AUTHORITIES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Runs `jitney env`. The exit codes are those of other commands.
pub(crate) fn run(args: &EnvironmentArgs) -> ExitCode {
    ended(block_on(environment(args)))
}

async fn environment(args: &EnvironmentArgs) -> Result<ExitCode, CommandError> {
    let broker = Broker::reach(args.url.as_deref().unwrap_or(DEFAULT_URL)).await?;
    let (is_open, _) = broker.get("/api/v1/server").await?;
    let (StatusCode::OK, authority) = broker.get("/ca.pem").await? else {
        let text = "The broker has no authority of its own: its certificate is one that was given to it, and clients trust it as any \
                    other.";
        return Err(CommandError::Refused(text.to_owned()));
    };
    let der = CertificateDer::from_pem_slice(authority.as_bytes());
    let der = der.map_err(|error| broker.is_strange(&error))?;
    let directory = match &args.directory {
        Some(directory) => directory.clone(),
        None => cache(&broker)?,
    };
    fs::create_dir_all(&directory).map_err(|error| CommandError::of_file(&directory, &error))?;
    let directory = fs::canonicalize(&directory).unwrap_or(directory);
    let at = |name: &str| directory.join(name);
    let others = others(&directory).unwrap_or_default();
    let bundle = certs::bundle(&authority, &others);
    let failed = |error: String| CommandError::Refused(error);
    let store = certs::trust_store(&der).map_err(|error| failed(error.to_string()))?;
    let written = files::replace(&[
        (at("ca.pem"), authority.as_bytes(), Readers::OfDirectory),
        (at("bundle.pem"), bundle.as_bytes(), Readers::OfDirectory),
        (at("ca.p12"), &store, Readers::OfDirectory),
    ]);
    written.map_err(|error| failed(error.to_string()))?;
    let mut lines = PrintedLines::new(args.format);
    let connection = if is_open == StatusCode::OK {
        Some(broker.emulator_string())
    } else {
        broker.root_string(args).await?
    };
    match connection {
        Some(connection) => lines.add("SERVICEBUS_CONNECTION_STRING", &connection),
        None => lines.say(
            "keys are verified, and there is no root key here: give --data-dir, or set SERVICEBUS_CONNECTION_STRING",
        ),
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
    print::line(lines.text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// A broker on this machine: an authority that comes from elsewhere without TLS could be anybody's.
struct Broker {
    host: String,
    address: SocketAddr,
}

impl Broker {
    async fn reach(url: &str) -> Result<Self, CommandError> {
        let (_, host, port) = place_of(url)?;
        let place = format!("{}:{port}", url_host(&host));
        let unreachable = |why: &str| {
            CommandError::Unreachable(format!(
                "Cannot reach the broker at {place}: {why}. Start one with `jitney serve`, or say where it is with --url"
            ))
        };
        let addresses = tokio::net::lookup_host((host.as_str(), port)).await;
        let addresses = addresses.map(Vec::from_iter);
        let addresses = addresses.map_err(|error| unreachable(&error.to_string()))?;
        let mut fault = "no address".to_owned();
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(stream) => {
                    let local = stream.local_addr();
                    let is_own = local.is_ok_and(|local| local.ip() == address.ip());
                    if !is_own && !address.ip().is_loopback() {
                        return Err(CommandError::Usage(format!(
                            "{place} is not on this machine: copy ca.pem from the data directory of the broker, and see \
                             docs/clients/README.md"
                        )));
                    }
                    return Ok(Self { host, address });
                }
                Err(error) => fault = error.to_string(),
            }
        }
        Err(unreachable(&fault))
    }

    /// Returns the host and the port, as they are in a URL.
    fn place(&self) -> String {
        format!("{}:{}", url_host(&self.host), self.address.port())
    }

    fn is_strange(&self, why: &impl Display) -> CommandError {
        let place = self.place();
        CommandError::Unreachable(format!("{place}: the answer is not a broker's: {why}"))
    }

    /// Returns the status and the text of a page.
    async fn get(&self, path: &str) -> Result<(StatusCode, String), CommandError> {
        let ask = async {
            let stream = TcpStream::connect(self.address).await?;
            let request = Request::get(path).header(HOST, self.place());
            exchange::page(stream, request.body(Empty::<Bytes>::new())?).await
        };
        match timeout(ANSWER_WAIT, ask).await {
            Ok(answer) => answer.map_err(|error| self.is_strange(&error)),
            Err(_) => {
                let text = format!("{} has not answered in 5 seconds", self.place());
                Err(CommandError::Unreachable(text))
            }
        }
    }

    /// Returns the connection string of a broker that verifies no keys.
    fn emulator_string(&self) -> String {
        root_key::emulator_string(&url_host(&self.host), self.address.port())
    }

    /// Returns the connection string with the root key; none if that is not known here.
    async fn root_string(&self, args: &EnvironmentArgs) -> Result<Option<String>, CommandError> {
        let (host, port) = (url_host(&self.host), self.address.port());
        let key = root_key::stored(&args.data_dir);
        let key = key.map_err(|error| CommandError::Refused(error.to_string()))?;
        let Some(key) = key else {
            return Ok(None);
        };
        let listens = async |port| {
            let place = SocketAddr::new(self.address.ip(), port);
            TcpStream::connect(place).await.is_ok()
        };
        let needs_port = !listens(AMQPS_PORT).await || !listens(HTTPS_PORT).await;
        let port = needs_port.then_some(port);
        Ok(Some(root_key::root_string(&host, port, key.expose())))
    }
}

/// Returns the directory of the user's cache for the files of a broker. A directory that others could have made is no place for what
/// programs trust.
fn cache(broker: &Broker) -> Result<PathBuf, CommandError> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = of("XDG_CACHE_HOME").map(PathBuf::from);
    let own = own.or_else(|| Some(PathBuf::from(of("HOME")?).join(".cache")));
    let text = "HOME is not set: give --directory DIR, for the files of authorities";
    let own = own.ok_or_else(|| CommandError::Usage(text.to_owned()))?;
    Ok(own.join("jitney").join(name_of(&broker.place())))
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

/// The lines that are printed.
struct PrintedLines {
    format: Format,
    text: String,
}

impl PrintedLines {
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
        let mut lines = PrintedLines::new(Format::Shell);
        lines.add("NAME", "it's; $HOME");
        assert_eq!(lines.text, "export NAME='it'\\''s; $HOME'\n");
        let mut lines = PrintedLines::new(Format::File);
        lines.add("NAME", "a=b;c");
        assert_eq!(lines.text, "NAME=a=b;c\n");
    }

    #[test]
    fn the_files_of_brokers_are_apart() {
        assert_ne!(name_of("localhost:5300"), name_of("localhost:5301"));
        assert!(!name_of("[::1]:5300/../x").contains('/'));
    }
}
