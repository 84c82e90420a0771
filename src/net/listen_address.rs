//! Addresses to listen at, as people write them.
//!
//! A port alone is at loopback, or at all addresses in a container.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The variable that the image sets: the broker is not the first process of a container that has an init.
const IN_CONTAINER: &str = "JITNEY_IN_CONTAINER";

/// Where the process runs, which gives the default addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Host {
    /// Clients are on the same machine.
    Machine,
    /// The process is what a container is for: its clients are outside.
    Container,
}

impl Host {
    /// Returns where this process runs. The first process of a container has the id 1. A broker that a person starts by hand in
    /// a container, such as one for development, has another.
    pub(crate) fn here() -> Self {
        if std::process::id() == 1 || std::env::var_os(IN_CONTAINER).is_some() {
            Self::Container
        } else {
            Self::Machine
        }
    }

    /// Returns the default address, and those that are listened on besides if the system has them.
    pub(crate) const fn addresses(self) -> (IpAddr, Option<IpAddr>) {
        match self {
            Self::Machine => (
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
            ),
            Self::Container => (IpAddr::V4(Ipv4Addr::UNSPECIFIED), None),
        }
    }
}

/// Why a text is no address to listen at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("the port is {0}; ports end at 65535")]
    Port(String),
    #[error("'{0}' is a name; an IP address of this machine is allowed, or localhost")]
    Name(String),
    #[error(
        "an address such as 5673, :5673, 127.0.0.1:5673, localhost:5673 or [::1]:5673 is allowed"
    )]
    Malformed,
    #[error("the port is missing; {0}:5673 is allowed")]
    NoPort(String),
}

/// Reads an address to listen at: a port, a port behind a colon, or `localhost` or an IP address with a port.
pub(crate) fn parse(text: &str) -> Result<SocketAddr, AddressError> {
    parse_at(text, Host::here())
}

fn parse_at(text: &str, here: Host) -> Result<SocketAddr, AddressError> {
    let text = text.trim();
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Ok(ip) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        let host = if ip.is_ipv6() {
            format!("[{ip}]")
        } else {
            ip.to_string()
        };
        return Err(AddressError::NoPort(host));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port),
        None if is_number(text) => ("", text),
        None if text.eq_ignore_ascii_case("localhost") => {
            return Err(AddressError::NoPort("localhost".to_owned()));
        }
        None => return Err(AddressError::Malformed),
    };
    if !is_number(port) {
        return Err(AddressError::Malformed);
    }
    let port: u16 = port
        .parse()
        .map_err(|_| AddressError::Port(port.to_owned()))?;
    let ip = match (host, here) {
        ("", Host::Machine) => Ipv4Addr::LOCALHOST.into(),
        ("" | "*", _) => Ipv4Addr::UNSPECIFIED.into(),
        (host, _) if host.eq_ignore_ascii_case("localhost") => Ipv4Addr::LOCALHOST.into(),
        (host, _) => host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .map_err(|_| {
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                if host.bytes().all(is_name) {
                    AddressError::Name(host.to_owned())
                } else {
                    AddressError::Malformed
                }
            })?,
    };
    Ok(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_people_write_it() {
        for (text, wanted) in [
            ("5673", "127.0.0.1:5673"),
            (":5673", "127.0.0.1:5673"),
            (" localhost:5673", "127.0.0.1:5673"),
            ("LOCALHOST:0", "127.0.0.1:0"),
            ("[::1]:5673", "[::1]:5673"),
            ("[fe80::1%3]:5673", "[fe80::1%3]:5673"),
            ("*:5673", "0.0.0.0:5673"),
            ("0.0.0.0:65535", "0.0.0.0:65535"),
            ("192.0.2.1:1", "192.0.2.1:1"),
        ] {
            assert_eq!(parse_at(text, Host::Machine), Ok(wanted.parse().unwrap()));
        }
        for text in ["5673", ":5673"] {
            let all = "0.0.0.0:5673".parse().unwrap();
            assert_eq!(parse_at(text, Host::Container), Ok(all));
        }
        let named = parse_at("localhost:5673", Host::Container);
        assert_eq!(named, Ok("127.0.0.1:5673".parse().unwrap()));
    }

    #[test]
    fn a_text_that_is_no_address_is_answered_with_what_is_right() {
        for (text, said) in [
            ("127.0.0.1:99999", "ports end at 65535"),
            ("65536", "ports end at 65535"),
            ("shop.example.com:5673", "'shop.example.com' is a name"),
            ("everywhere", "is allowed"),
            ("", "is allowed"),
            (":", "is allowed"),
            ("127.0.0.1", "the port is missing; 127.0.0.1:5673"),
            ("::1", "the port is missing; [::1]:5673"),
            ("localhost", "the port is missing; localhost:5673"),
            ("a b:7", "is allowed"),
            ("localhost:amqp", "is allowed"),
        ] {
            let error = parse_at(text, Host::Machine).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
