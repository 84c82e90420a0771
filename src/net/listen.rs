//! The addresses that the broker listens on: those of the options, defaults in their place, and well-known ports besides
//! where they are free.
//!
//! An address that the operator names must be had, or the start ends. The default addresses must be had too. The other ports
//! are those to which some SDKs go whatever the connection string says (`docs/clients/README.md`): 5671 for AMQP with TLS, 443
//! and 80 for administration, and the emulator's 5300. Every port takes every protocol.

use std::io::ErrorKind;
use std::net::SocketAddr;

use clap::Args;
use tokio::net::TcpListener;
use tracing::field::display;
use tracing::{debug, info};

use super::balancers::BalancerArgs;
use super::listen_address::{self, Host};
use crate::system::logging::START;

/// The flag of the addresses of AMQP.
pub(crate) const AMQP: &str = "--amqp";
/// The flag of the addresses of AMQP with TLS.
pub(super) const AMQPS: &str = "--amqps";
/// The flag of the addresses of health and administration.
pub(crate) const HTTP: &str = "--http";
/// The flag of the addresses of administration with TLS.
pub(super) const HTTPS: &str = "--https";
/// The flag of the addresses of metrics alone.
pub(crate) const METRICS: &str = "--metrics";

/// The ports of the service and of its emulator.
pub(crate) const AMQP_PORT: u16 = 5672;
pub(crate) const AMQPS_PORT: u16 = 5671;
pub(crate) const EMULATOR_HTTP_PORT: u16 = 5300;
pub(crate) const HTTP_PORT: u16 = 80;
pub(crate) const HTTPS_PORT: u16 = 443;

/// Listeners. Every address takes every protocol: AMQP, TLS, HTTP and WebSockets are distinguished
/// by the first bytes of a connection. An address is a port, as in 5673 or :5673, or `localhost` or an IP address with one.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ListenArgs {
    /// The address for AMQP clients. The default is port 5672 of this machine (127.0.0.1 and `::1`), and of all addresses where
    /// the broker is the first process of a container.
    #[arg(long, value_name = "ADDR", value_parser = listen_address::parse)]
    pub(crate) amqp: Vec<SocketAddr>,
    /// The address for AMQP clients with TLS. The default is port 5671 of the first --amqp, if it
    /// is free.
    #[arg(long, value_name = "ADDR", value_parser = listen_address::parse)]
    pub(super) amqps: Vec<SocketAddr>,
    /// The address of the administration API and health, over HTTP. The default is port 5300 of the addresses that --amqp has by
    /// default, with ports 80 and 443 if they are free: some SDKs go there whatever the connection string says.
    #[arg(long, value_name = "ADDR", value_parser = listen_address::parse)]
    pub(crate) http: Vec<SocketAddr>,
    /// The port of the --http addresses, if it differs: the emulator's variable sets it. Port 5300 of this machine stays, if it
    /// is free.
    #[arg(long, value_name = "PORT", env = "EMULATOR_HTTP_PORT")]
    pub(crate) http_port: Option<u16>,
    /// The address of the administration API and WebSockets with TLS; the SDKs connect to port 443.
    #[arg(long, value_name = "ADDR", value_parser = listen_address::parse)]
    pub(super) https: Vec<SocketAddr>,
    /// Balancers.
    #[command(flatten)]
    pub(crate) balancers: BalancerArgs,
}

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WantedAddress {
    flag: &'static str,
    address: SocketAddr,
    need: Need,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The start ends without it.
    Required,
    /// It is listened on if it is free and permitted.
    WhereFree,
}

impl ListenArgs {
    /// Returns the addresses to listen on, those that must be had first. `metrics` are the addresses of metrics alone.
    fn wanted(&self, host: Host, metrics: &[SocketAddr]) -> Vec<WantedAddress> {
        let (own, twin) = host.addresses();
        let mut required = Vec::new();
        let mut where_free = Vec::new();
        let http_port = self.http_port.unwrap_or(EMULATOR_HTTP_PORT);
        for (flag, given, port) in [
            (AMQP, &self.amqp, Some(AMQP_PORT)),
            (AMQPS, &self.amqps, None),
            (HTTP, &self.http, Some(http_port)),
            (HTTPS, &self.https, None),
        ] {
            let moved = self.http_port.filter(|_| flag == HTTP);
            let given = given.iter().map(|address| {
                let port = moved.unwrap_or_else(|| address.port());
                (flag, SocketAddr::new(address.ip(), port))
            });
            let before = required.len();
            required.extend(given);
            if let Some(port) = port.filter(|_| before == required.len()) {
                required.push((flag, SocketAddr::new(own, port)));
                where_free.extend(twin.map(|twin| (flag, SocketAddr::new(twin, port))));
            }
        }
        required.extend(metrics.iter().map(|address| (METRICS, *address)));
        let beside_default = |given: &Vec<SocketAddr>| twin.filter(|_| given.is_empty());
        if self.amqps.is_empty() {
            let first = self.amqp.first().map_or(own, SocketAddr::ip);
            let all = [Some(first), beside_default(&self.amqp)];
            let all = all.into_iter().flatten();
            where_free.extend(all.map(|ip| (AMQPS, SocketAddr::new(ip, AMQPS_PORT))));
        }
        if self.http.is_empty() {
            for ip in [Some(own), twin].into_iter().flatten() {
                where_free.push((HTTP, SocketAddr::new(ip, EMULATOR_HTTP_PORT)));
                where_free.push((HTTP, SocketAddr::new(ip, HTTP_PORT)));
                if self.https.is_empty() {
                    where_free.push((HTTPS, SocketAddr::new(ip, HTTPS_PORT)));
                }
            }
        }
        // NServiceBus administers the emulator at 5300, whatever port the connection string has.
        let first = self.http.first().filter(|first| first.ip().is_loopback());
        let port_of = |first: &SocketAddr| self.http_port.unwrap_or_else(|| first.port());
        if let Some(first) = first.filter(|first| port_of(first) != 0) {
            where_free.push((HTTP, SocketAddr::new(first.ip(), EMULATOR_HTTP_PORT)));
        }
        let mut all: Vec<WantedAddress> = Vec::new();
        let required = required.into_iter().map(|it| (it, Need::Required));
        let where_free = where_free.into_iter().map(|it| (it, Need::WhereFree));
        for ((flag, address), need) in required.chain(where_free) {
            let is_known = all.iter().any(|it| it.address == address);
            if need == Need::Required || !is_known {
                all.push(WantedAddress {
                    flag,
                    address,
                    need,
                });
            }
        }
        all
    }
}

/// Why an address that must be had cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("{flag}: cannot listen on {address}: {source}{remedy}")]
pub(crate) struct ListenError {
    flag: &'static str,
    address: SocketAddr,
    /// What helps, as the end of the sentence.
    remedy: String,
    source: std::io::Error,
}

/// A bound port.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) address: SocketAddr,
    /// The flag that names such an address.
    pub(crate) flag: &'static str,
}

/// Binds the ports.
///
/// # Errors
///
/// The first address that must be had and cannot.
pub(crate) async fn listen_all(
    args: &ListenArgs,
    metrics: &[SocketAddr],
) -> Result<Vec<Listener>, ListenError> {
    let mut listeners = Vec::new();
    for wanted in args.wanted(Host::here(), metrics) {
        match (listen(wanted.flag, wanted.address).await, wanted.need) {
            (Ok(listener), _) => listeners.push(listener),
            (Err(error), Need::Required) => return Err(error),
            (Err(error), Need::WhereFree) => debug!("{error}"),
        }
    }
    let addresses = |flag| {
        let own = listeners
            .iter()
            .filter(move |it: &&Listener| it.flag == flag);
        let all: Vec<String> = own.map(|it| it.address.to_string()).collect();
        (!all.is_empty()).then(|| display(all.join(",")))
    };
    info!(
        target: START,
        amqp = addresses(AMQP),
        amqps = addresses(AMQPS),
        http = addresses(HTTP),
        https = addresses(HTTPS),
        metrics = addresses(METRICS),
        "listening"
    );
    Ok(listeners)
}

async fn listen(flag: &'static str, address: SocketAddr) -> Result<Listener, ListenError> {
    let failed = |source| ListenError::new(flag, address, source);
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    let address = socket.local_addr().map_err(failed)?;
    Ok(Listener {
        socket,
        address,
        flag,
    })
}

impl ListenError {
    pub(crate) fn new(flag: &'static str, address: SocketAddr, source: std::io::Error) -> Self {
        Self {
            flag,
            address,
            remedy: remedy(address, source.kind()),
            source,
        }
    }
}

/// Returns the name of this machine, or of the container.
pub(crate) fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "localhost".to_owned(),
        name => name.to_owned(),
    }
}

/// Returns what helps where an address cannot be listened on, as the end of a sentence.
fn remedy(address: SocketAddr, fault: ErrorKind) -> String {
    let port = address.port();
    if fault == ErrorKind::PermissionDenied {
        format!(
            "; a port below 1024 needs a right: setcap cap_net_bind_service=+ep on the program, or \
             sysctl net.ipv4.ip_unprivileged_port_start={port}"
        )
    } else if fault == ErrorKind::AddrNotAvailable {
        let all = if address.is_ipv4() { "0.0.0.0" } else { "[::]" };
        format!("; it is no address of this machine: {all}:{port} is all of them")
    } else if fault == ErrorKind::AddrInUse {
        format!("; another process listens at it: `ss -ltnp 'sport = :{port}'` shows which")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(args: &ListenArgs, host: Host, need: Need) -> Vec<String> {
        let all = args.wanted(host, &[]).into_iter();
        let all = all.filter(|wanted| wanted.need == need);
        all.map(|it| format!("{} {}", it.flag, it.address))
            .collect()
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_ports_of_the_sdks_are_listened_on_by_default_where_they_are_free() {
        let args = ListenArgs::default();
        let required = addresses(&args, Host::Machine, Need::Required);
        assert_eq!(required, ["--amqp 127.0.0.1:5672", "--http 127.0.0.1:5300"]);
        let besides = addresses(&args, Host::Machine, Need::WhereFree);
        let expected = [
            "--amqp [::1]:5672",
            "--http [::1]:5300",
            "--amqps 127.0.0.1:5671",
            "--amqps [::1]:5671",
            "--http 127.0.0.1:80",
            "--https 127.0.0.1:443",
            "--http [::1]:80",
            "--https [::1]:443",
        ];
        assert_eq!(besides, expected);
    }

    #[test]
    fn the_first_process_of_a_container_listens_on_all_addresses() {
        let args = ListenArgs::default();
        let required = addresses(&args, Host::Container, Need::Required);
        assert_eq!(required, ["--amqp 0.0.0.0:5672", "--http 0.0.0.0:5300"]);
        let besides = addresses(&args, Host::Container, Need::WhereFree);
        let expected = [
            "--amqps 0.0.0.0:5671",
            "--http 0.0.0.0:80",
            "--https 0.0.0.0:443",
        ];
        assert_eq!(besides, expected);
    }

    #[test]
    fn an_address_of_the_operator_replaces_the_defaults_of_its_kind() {
        let args = ListenArgs {
            amqp: vec![at("10.0.0.1:7000")],
            http: vec![at("10.0.0.1:8080")],
            ..ListenArgs::default()
        };
        let required = addresses(&args, Host::Machine, Need::Required);
        assert_eq!(required, ["--amqp 10.0.0.1:7000", "--http 10.0.0.1:8080"]);
        // Nothing beyond this machine that was not asked for, but 5671, which has always been there.
        let besides = addresses(&args, Host::Machine, Need::WhereFree);
        assert_eq!(besides, ["--amqps 10.0.0.1:5671"]);
    }

    #[test]
    fn the_emulators_port_stays_where_http_is_moved_on_this_machine() {
        let args = ListenArgs {
            http_port: Some(8080),
            ..ListenArgs::default()
        };
        let required = addresses(&args, Host::Machine, Need::Required);
        assert_eq!(required, ["--amqp 127.0.0.1:5672", "--http 127.0.0.1:8080"]);
        let besides = addresses(&args, Host::Machine, Need::WhereFree);
        assert!(
            besides.contains(&"--http 127.0.0.1:5300".to_owned()),
            "{besides:?}"
        );
        let args = |http| ListenArgs {
            http: vec![at(http)],
            ..ListenArgs::default()
        };
        let of = |http| addresses(&args(http), Host::Machine, Need::WhereFree);
        assert!(of("127.0.0.1:8080").contains(&"--http 127.0.0.1:5300".to_owned()));
        // Who asks for any free port wants that one alone.
        assert_eq!(
            of("127.0.0.1:0"),
            [
                "--amqp [::1]:5672",
                "--amqps 127.0.0.1:5671",
                "--amqps [::1]:5671"
            ]
        );
    }

    #[test]
    fn what_helps_is_said_with_the_fault() {
        let text = remedy(at("127.0.0.1:443"), ErrorKind::PermissionDenied);
        assert!(
            text.contains("cap_net_bind_service") && text.contains("port_start=443"),
            "{text}"
        );
        let text = remedy(at("192.0.2.1:5672"), ErrorKind::AddrNotAvailable);
        assert!(text.contains("0.0.0.0:5672"), "{text}");
    }
}
