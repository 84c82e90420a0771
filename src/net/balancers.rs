//! The balancers in front of the listeners of clients: from the addresses that the operator has named, a header of the PROXY
//! protocol says who the client is. From those it is required, and from all others it is not believed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Args;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tracing::warn;

use super::proxy_protocol::{HeaderError, ProxyHeader, field};
use super::scheme::Scheme;
use super::warning::Warning;
use crate::limits;

/// The arguments of `jitney serve` for balancers.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BalancerArgs {
    /// The balancers that send a header of the PROXY protocol, version 2, before each connection at --amqp, --amqps, --http and
    /// --https: addresses or networks. Their header is required and says who the client is; a header from any other address is
    /// refused.
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    pub(super) proxy_protocol_from: Vec<Network>,
}

/// An address, or all that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    address: IpAddr,
    /// The prefix length: how many bits are the same.
    bits: u8,
}

/// Why a text names no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NetworkError {
    #[error("an address or a network is expected, such as 10.0.0.7, 10.0.0.0/24 or 2001:db8::/32")]
    Malformed,
    #[error("{address} has {bits} bits, and the prefix length /{named} is longer")]
    Bits {
        address: IpAddr,
        bits: u8,
        named: u8,
    },
    #[error("the address has bits behind the prefix; the network is {0}")]
    Beyond(Network),
    #[error(
        "the network has every address, so that every client could pretend to be another; name the addresses of the balancers"
    )]
    All,
}

impl Network {
    /// Returns whether an address is in the network.
    fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        bits_of(address) == bits_of(self.address)
            && first_bits(address, self.bits) == first_bits(self.address, self.bits)
    }
}

/// Returns how many bits an address has.
const fn bits_of(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// Returns an address with all bits but the first ones zero.
fn first_bits(address: IpAddr, count: u8) -> IpAddr {
    let count = u32::from(count);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - count).unwrap_or_default();
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - count).unwrap_or_default();
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, named) = match text.trim().split_once('/') {
            Some((address, bits)) => (
                address,
                Some(bits.parse().map_err(|_| NetworkError::Malformed)?),
            ),
            None => (text.trim(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| NetworkError::Malformed)?;
        // Addresses of IPv4 within IPv6 are compared as IPv4's.
        let address = address.to_canonical();
        let bits = bits_of(address);
        let named = named.unwrap_or(bits);
        if bits < named {
            return Err(NetworkError::Bits {
                address,
                bits,
                named,
            });
        }
        if named == 0 {
            return Err(NetworkError::All);
        }
        let network = Self {
            address: first_bits(address, named),
            bits: named,
        };
        if network.address != address {
            return Err(NetworkError::Beyond(network));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The balancers that are named, and the headers that are awaited.
#[derive(Debug)]
pub(crate) struct Balancers {
    named: Vec<Network>,
    awaited: Arc<Semaphore>,
    /// About refused headers.
    warning: Mutex<Warning>,
}

/// Returns how many connections of balancers, whose header is awaited, there may be within a number of slots.
pub(super) fn headers_awaited(slots: usize) -> usize {
    limits::PROXY_HEADERS_AWAITED_MAX.min(slots / 16).max(1)
}

/// A connection of a balancer whose header is awaited.
#[derive(Debug)]
pub(crate) struct AwaitedHeader {
    _permit: OwnedSemaphorePermit,
}

/// What a balancer says of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forwarded {
    /// The client's address; none of a connection of the balancer's own.
    pub(crate) address: Option<SocketAddr>,
    /// The name of the server that the client asked TLS for, if the balancer has ended TLS.
    pub(crate) server_name: Option<String>,
    /// How the client has come to the balancer.
    pub(crate) scheme: Scheme,
}

impl Forwarded {
    /// What is known of a connection that comes from no balancer.
    pub(crate) const DIRECT: Self = Self {
        address: None,
        server_name: None,
        scheme: Scheme::Http,
    };

    fn of(header: &ProxyHeader) -> Self {
        let name = header.field(field::AUTHORITY);
        let tls = header.field(field::SSL).and_then(<[u8]>::first);
        Self {
            address: header.source,
            server_name: name
                .filter(|name| name.len() <= limits::PEER_NAME_BYTES_MAX)
                .and_then(|name| String::from_utf8(name.to_vec()).ok()),
            scheme: tls.map_or(Scheme::Http, |bits| Scheme::of_bits(*bits)),
        }
    }
}

impl Balancers {
    /// Takes the balancers' addresses, and the number of slots of connections.
    pub(crate) fn new(args: &BalancerArgs, slots: usize) -> Self {
        Self {
            named: args.proxy_protocol_from.clone(),
            awaited: Arc::new(Semaphore::new(headers_awaited(slots))),
            warning: Mutex::default(),
        }
    }

    /// Returns whether an address is a balancer's.
    pub(crate) fn contain(&self, address: IpAddr) -> bool {
        self.named.iter().any(|network| network.contains(address))
    }

    /// Takes a place among the connections whose header is awaited, if one is free.
    pub(crate) fn await_header(&self, balancer: IpAddr) -> Option<AwaitedHeader> {
        let permit = Arc::clone(&self.awaited).try_acquire_owned();
        if permit.is_err() {
            self.warn(|| {
                warn!(%balancer, "connection refused: too many connections of balancers have not sent their header of the PROXY protocol yet");
            });
        }
        permit.ok().map(|permit| AwaitedHeader { _permit: permit })
    }

    /// Reads the header of a balancer's connection; none if it is refused, which is logged.
    pub(crate) async fn read_header(
        &self,
        stream: &mut TcpStream,
        balancer: IpAddr,
        _awaited: AwaitedHeader,
    ) -> Option<Forwarded> {
        let wait = limits::PROXY_HEADER_WAIT.as_duration();
        match timeout(wait, ProxyHeader::read(stream)).await {
            Ok(Ok(header)) => return Some(Forwarded::of(&header)),
            // A health check that connects, and ends.
            Ok(Err(HeaderError::Ended)) => {}
            Ok(Err(error)) => self.warn(|| {
                warn!(%balancer, "connection refused: {error}. --proxy-protocol-from requires one from this address");
            }),
            Err(_) => self.warn(|| {
                let seconds = wait.as_secs();
                warn!(%balancer, "connection refused: no header of the PROXY protocol within {seconds} s. --proxy-protocol-from requires one from this address");
            }),
        }
        None
    }

    /// Logs at a bounded rate.
    fn warn(&self, log: impl FnOnce()) {
        // It is not partial when a thread panics.
        let warning = self.warning.lock();
        let is_due = warning.unwrap_or_else(PoisonError::into_inner).is_due();
        if is_due {
            log();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_contains_the_addresses_that_begin_with_its_bits() {
        for (text, contained, others) in [
            (
                "10.0.0.7",
                &["10.0.0.7", "::ffff:10.0.0.7"][..],
                &["10.0.0.6", "::10.0.0.7"][..],
            ),
            (
                "10.0.0.0/24",
                &["10.0.0.0", "10.0.0.255"],
                &["10.0.1.0", "9.255.255.255"],
            ),
            (
                "128.0.0.0/1",
                &["128.0.0.0", "255.1.2.3"],
                &["127.255.255.255", "8000::"],
            ),
            (
                "2001:db8::/33",
                &["2001:db8:7fff::1"],
                &["2001:db8:8000::", "10.0.0.7"],
            ),
            ("::1", &["::1"], &["::", "127.0.0.1"]),
            ("::ffff:10.0.0.7", &["10.0.0.7"], &["10.0.0.6"]),
            (" 10.0.0.0/8 ", &["10.1.2.3"], &["11.0.0.0"]),
        ] {
            for one in contained {
                assert!(network(text).contains(address(one)), "{text} {one}");
            }
            for other in others {
                assert!(!network(text).contains(address(other)), "{text} {other}");
            }
        }
    }

    #[test]
    fn a_text_that_is_no_network_is_refused_with_what_would_be_right() {
        let wrong = |text: &str| text.parse::<Network>().unwrap_err().to_string();
        for text in [
            "",
            "balancer",
            "10.0.0",
            "10.0.0.0/",
            "10.0.0.0/x",
            "10.0.0.0/-1",
            "/8",
            "10.0.0.0/8/8",
        ] {
            assert!(wrong(text).contains("such as 10.0.0.7"), "{text}");
        }
        assert_eq!(
            wrong("10.0.0.0/33"),
            "10.0.0.0 has 32 bits, and the prefix length /33 is longer"
        );
        assert!(wrong("10.0.0.7/24").ends_with("the network is 10.0.0.0/24"));
        assert!(wrong("2001:db8::1/32").ends_with("the network is 2001:db8::/32"));
        for all in ["0.0.0.0/0", "::/0"] {
            assert!(wrong(all).contains("every address"), "{all}");
        }
    }

    /// Sends bytes as a balancer; returns what is taken of them.
    async fn forwarded(bytes: &[u8]) -> Option<Forwarded> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut near = TcpStream::connect(address).await.unwrap();
        near.write_all(bytes).await.unwrap();
        let (mut stream, from) = listener.accept().await.unwrap();
        let balancers = Balancers::new(&BalancerArgs::default(), 100);
        let awaited = balancers.await_header(from.ip()).unwrap();
        balancers.read_header(&mut stream, from.ip(), awaited).await
    }

    #[tokio::test]
    async fn a_balancer_says_who_the_client_is_and_how_it_came() {
        let source: SocketAddr = "192.0.2.7:5555".parse().unwrap();
        let mut header = ProxyHeader::new(source);
        let mut expected = Forwarded {
            address: Some(source),
            ..Forwarded::DIRECT
        };
        assert_eq!(forwarded(&header.encode()).await.as_ref(), Some(&expected));
        header.add(field::SSL, vec![1, 0, 0, 0, 1]);
        header.add(field::AUTHORITY, b"one.example".to_vec());
        // Kinds that vendors have given other meanings, one of which was ours.
        header.add(0xe0, b"sender".to_vec());
        header.add(0xea, b"sender".to_vec());
        expected.scheme = Scheme::Https;
        expected.server_name = Some("one.example".to_owned());
        assert_eq!(forwarded(&header.encode()).await, Some(expected));
        let own = ProxyHeader::default().encode();
        assert_eq!(forwarded(&own).await, Some(Forwarded::DIRECT));
    }

    #[tokio::test]
    async fn a_name_that_cannot_be_one_is_left_out() {
        for name in [vec![0xff], vec![b'n'; limits::PEER_NAME_BYTES_MAX + 1]] {
            let mut header = ProxyHeader::new("192.0.2.7:5555".parse().unwrap());
            header.add(field::AUTHORITY, name);
            let found = forwarded(&header.encode()).await.unwrap();
            assert_eq!(found.server_name, None);
        }
    }

    #[tokio::test]
    async fn a_balancer_without_a_header_is_refused() {
        assert_eq!(forwarded(b"AMQP\0\x01\0\0").await, None);
        assert_eq!(
            forwarded(b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n").await,
            None
        );
    }

    #[test]
    fn a_bounded_number_of_headers_is_awaited() {
        let balancers = Balancers::new(&BalancerArgs::default(), 64);
        let balancer = address("10.0.0.7");
        let mut awaited: Vec<_> = std::iter::from_fn(|| balancers.await_header(balancer)).collect();
        assert_eq!(awaited.len(), headers_awaited(64));
        awaited.pop();
        assert!(balancers.await_header(balancer).is_some());
    }
}
