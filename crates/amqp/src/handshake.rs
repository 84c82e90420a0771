//! Headers, SASL and open: how a connection begins.

use bytes::{Buf, BytesMut};
use serde_amqp::primitives::Symbol;

use super::connection::{End, Phase, illegal, undecodable};
use super::frame::{self, AMQP_HEADER, FrameKind, HEADER_BYTES, SASL_HEADER};
use super::{
    Condition, Connection, Event, Fields, Identity, Product, Refusal, Value, state, trace,
};
use crate::codec::{List, ListWriter, Undecodable, descriptor};
use crate::limits;
use jitney_base::secret::Secret;
use jitney_base::time::Millis;

/// The mechanisms that we offer, in the service's order: JavaScript takes the first that it
/// knows (`transport.md#sasl`).
const MECHANISMS: [&str; 3] = ["MSSBCBS", "PLAIN", "ANONYMOUS"];
/// Offered after them to a peer that showed a certificate.
const EXTERNAL: &str = "EXTERNAL";

/// The SASL codes of success, and of failed authentication [5.3.3.6].
const SASL_OK: u8 = 0;
const SASL_AUTH: u8 = 1;

/// Capabilities that are offered to peers that desire them: JMS clients require them.
const DELAYED_DELIVERY: &str = "DELAYED_DELIVERY";
const SHARED_SUBSCRIPTIONS: &str = "SHARED-SUBS";
/// The property with the name of Microsoft's JMS client.
const CLIENT_PROVIDER: &str = "com.microsoft:is-client-provider";
/// Characters of a peer's product, and of its version, that are kept.
const PRODUCT_LENGTH_MAX: usize = 128;

impl Connection {
    /// Takes a protocol header; returns whether there may be more to read.
    pub(super) fn take_header(&mut self, input: &mut BytesMut) -> bool {
        let Some(&header) = input.first_chunk::<HEADER_BYTES>() else {
            // Bytes that cannot become a header are refused at once.
            if !b"AMQP".starts_with(input.get(..4).unwrap_or(input)) {
                self.refuse_header();
            }
            return false;
        };
        input.advance(HEADER_BYTES);
        trace::header(trace::Direction::In, &header);
        let sasl_is_over = self.handshake.identity != Identity::Unnamed;
        match (self.end, header) {
            (End::Server, SASL_HEADER) if !sasl_is_over => {
                self.out.extend_from_slice(&SASL_HEADER);
                self.write_mechanisms();
                self.handshake.phase = Phase::Sasl;
            }
            (End::Server, AMQP_HEADER) => {
                self.out.extend_from_slice(&AMQP_HEADER);
                self.handshake.phase = Phase::Open;
            }
            (End::Client, SASL_HEADER) if self.config.identity != Identity::Unnamed => {
                self.handshake.phase = Phase::Sasl;
            }
            (End::Client, AMQP_HEADER) => {
                self.write_open();
                self.handshake.phase = Phase::Open;
            }
            (End::Server | End::Client, _) => {
                self.refuse_header();
                return false;
            }
        }
        true
    }

    /// Answers a header that is not ours with ours, and ends [2.2].
    fn refuse_header(&mut self) {
        let ours = match self.handshake.identity {
            Identity::Unnamed => SASL_HEADER,
            Identity::Anonymous | Identity::External | Identity::Plain { .. } => AMQP_HEADER,
        };
        self.out.extend_from_slice(&ours);
        let description = "The peer speaks another protocol.".to_owned();
        self.finish(Some(Refusal {
            condition: Condition::NotImplemented,
            description,
        }));
    }

    pub(super) fn begin_client(&mut self) {
        let init = match &self.config.identity {
            Identity::Unnamed => {
                self.out.extend_from_slice(&AMQP_HEADER);
                return;
            }
            Identity::Anonymous => ("ANONYMOUS", Vec::new()),
            Identity::External => (EXTERNAL, Vec::new()),
            Identity::Plain { user, password } => (
                "PLAIN",
                format!("\0{user}\0{}", password.expose()).into_bytes(),
            ),
        };
        self.out.extend_from_slice(&SASL_HEADER);
        frame::write(&mut self.out, FrameKind::Sasl, 0, |out| {
            let mut list = ListWriter::begin(out, descriptor::SASL_INIT);
            list.symbol(init.0);
            list.binary(&init.1);
            list.end();
        });
    }

    pub(super) fn handle_sasl(&mut self, body: &[u8]) -> Result<(), Refusal> {
        let (code, mut list) = List::described(body).map_err(undecodable)?;
        match (self.end, code) {
            (End::Server, descriptor::SASL_INIT) => {
                self.handle_sasl_init(&mut list).map_err(undecodable)
            }
            (End::Client, descriptor::SASL_MECHANISMS) => Ok(()),
            (End::Client, descriptor::SASL_OUTCOME) => match list.ubyte().map_err(undecodable)? {
                Some(SASL_OK) => {
                    self.handshake.identity = self.config.identity.clone();
                    self.out.extend_from_slice(&AMQP_HEADER);
                    self.handshake.phase = Phase::Header;
                    Ok(())
                }
                code => {
                    let description = format!("The peer's SASL outcome is {code:?}.");
                    let condition = Condition::UnauthorizedAccess;
                    self.finish(Some(Refusal {
                        condition,
                        description,
                    }));
                    Ok(())
                }
            },
            (End::Server | End::Client, other) => Err(illegal(&format!(
                "the SASL frame {other:#x} is out of its place"
            ))),
        }
    }

    fn handle_sasl_init(&mut self, list: &mut List<'_>) -> Result<(), Undecodable> {
        let mechanism = list.symbol()?.unwrap_or_default();
        let response = list.binary()?.unwrap_or_default();
        let identity = match mechanism {
            "MSSBCBS" | "ANONYMOUS" => Some(Identity::Anonymous),
            "PLAIN" => plain(response),
            EXTERNAL if self.config.has_certificate => Some(Identity::External),
            _ => None,
        };
        match identity {
            Some(Identity::Anonymous) => {
                self.handshake.identity = Identity::Anonymous;
                self.accept_identity();
            }
            Some(identity) => {
                self.handshake.identity = identity.clone();
                self.handshake.phase = Phase::Deciding;
                self.events.push_back(Event::Authenticating { identity });
            }
            None => self.refuse_identity(),
        }
        Ok(())
    }

    /// Answers [`Event::Authenticating`]: the peer is authenticated. The input that came meanwhile must be given to
    /// `handle_bytes` again.
    pub fn authenticated(&mut self) {
        if self.handshake.phase == Phase::Deciding {
            self.accept_identity();
            // An authenticated peer is authorized.
            self.config.trusts_peer = true;
        }
    }

    /// Answers [`Event::Authenticating`]: the peer is not who it claims to be, and the connection ends.
    pub fn refuse_authentication(&mut self) {
        if self.handshake.phase == Phase::Deciding {
            self.refuse_identity();
        }
    }

    /// Answers [`Event::Authenticating`] where it is decided later: SASL continues, and the peer is no more than before.
    pub fn authenticated_for_now(&mut self) {
        if self.handshake.phase == Phase::Deciding {
            self.accept_identity();
        }
    }

    /// Answers [`Event::Opened`] of a connection that holds its open ([`Config::holds_open`](super::Config::holds_open)): it is
    /// served here. The input that came meanwhile must be given to `handle_bytes` again.
    pub fn serve_here(&mut self) {
        if self.handshake.phase == Phase::Routing {
            if self.end == End::Server {
                self.write_open();
            }
            self.opened();
        }
    }

    /// The peer is authorized: the limit of sessions is the usual one.
    pub fn trust(&mut self) {
        self.config.trusts_peer = true;
    }

    fn accept_identity(&mut self) {
        frame::write(&mut self.out, FrameKind::Sasl, 0, |out| {
            let mut outcome = ListWriter::begin(out, descriptor::SASL_OUTCOME);
            outcome.ubyte(SASL_OK);
            outcome.binary(b"Welcome!");
            outcome.end();
        });
        self.handshake.phase = Phase::Header;
    }

    fn refuse_identity(&mut self) {
        frame::write(&mut self.out, FrameKind::Sasl, 0, |out| {
            let mut outcome = ListWriter::begin(out, descriptor::SASL_OUTCOME);
            outcome.ubyte(SASL_AUTH);
            outcome.end();
        });
        // The reason is not sent, because the peer may be guessing.
        self.finish(Some(Refusal {
            condition: Condition::UnauthorizedAccess,
            description: "SASL failed.".to_owned(),
        }));
    }

    fn write_mechanisms(&mut self) {
        let external = self.config.has_certificate.then_some(EXTERNAL);
        let names: Vec<&str> = MECHANISMS.into_iter().chain(external).collect();
        frame::write(&mut self.out, FrameKind::Sasl, 0, |out| {
            let mut list = ListWriter::begin(out, descriptor::SASL_MECHANISMS);
            list.raw(&symbols(&names));
            list.end();
        });
    }

    pub(super) fn write_open(&mut self) {
        let config = self.config.clone();
        let offered = self.handshake.offered.clone();
        self.write(0, |out| {
            let mut list = ListWriter::begin(out, descriptor::OPEN);
            list.string(&config.container_id);
            match &config.hostname {
                Some(hostname) => list.string(hostname),
                None => list.null(),
            }
            list.uint(config.frame_size_max);
            list.ushort(config.channel_max);
            list.uint(u32::try_from(config.idle_timeout.as_millis()).unwrap_or(u32::MAX));
            if !offered.is_empty() {
                list.null();
                list.null();
                list.raw(&symbols(&offered));
            }
            list.end();
        });
    }

    pub(super) fn handle_open(&mut self, mut list: List<'_>) -> Result<(), Refusal> {
        if self.handshake.phase != Phase::Open {
            return Err(illegal("the connection is open already"));
        }
        let peer = PeerOpen::read(&mut list).map_err(undecodable)?;
        if peer.frame_size_max < limits::FRAME_SIZE_MIN {
            let description = format!(
                "The max-frame-size is {}, and {} is the least.",
                peer.frame_size_max,
                limits::FRAME_SIZE_MIN
            );
            return Err(Refusal {
                condition: Condition::InvalidField,
                description,
            });
        }
        self.peer.frame_max = peer.frame_size_max;
        self.peer.channel_max = peer.channel_max;
        self.peer.idle_timeout = peer.idle_timeout;
        if self.end == End::Server {
            self.handshake.offered = peer.offers();
        }
        self.handshake.phase = Phase::Routing;
        if !self.config.holds_open {
            self.serve_here();
        }
        self.events.push_back(Event::Opened {
            container_id: peer.container_id,
            hostname: peer.hostname,
            identity: self.handshake.identity.clone(),
            is_client_provider: peer.is_client_provider,
            product: Box::new(peer.product),
        });
        Ok(())
    }
}

struct PeerOpen {
    container_id: String,
    hostname: Option<String>,
    frame_size_max: u32,
    channel_max: u16,
    idle_timeout: Option<Millis>,
    /// The desired capabilities.
    desired: Vec<Symbol>,
    is_client_provider: bool,
    product: Product,
}

impl PeerOpen {
    fn read(list: &mut List<'_>) -> Result<Self, Undecodable> {
        let container_id = list
            .string()?
            .ok_or(Undecodable::Missing("container-id"))?
            .to_owned();
        let hostname = list.string()?.map(str::to_owned);
        let frame_size_max = list.uint()?.unwrap_or(u32::MAX);
        let channel_max = list.ushort()?.unwrap_or(u16::MAX);
        let idle_timeout = list.uint()?.filter(|&millis| millis > 0);
        let idle_timeout = idle_timeout.map(|millis| Millis::from_millis(i64::from(millis)));
        let _outgoing_locales = list.raw()?;
        let _incoming_locales = list.raw()?;
        let _offered = list.raw()?;
        let desired = list.raw()?.map(capabilities).unwrap_or_default();
        // The other fields are ignored, whatever their types.
        let properties = state::field_map(list.raw()?).unwrap_or_default();
        let product = Product {
            name: text_of(properties.as_deref(), "product"),
            version: text_of(properties.as_deref(), "version"),
        };
        let mut properties = properties.iter().flat_map(|fields| fields.iter());
        let is_client_provider = properties
            .any(|(name, value)| name.as_str() == CLIENT_PROVIDER && *value == Value::Bool(true));
        Ok(Self {
            container_id,
            hostname,
            frame_size_max,
            channel_max,
            idle_timeout,
            desired,
            is_client_provider,
            product,
        })
    }

    /// Returns the desired capabilities that are offered.
    fn offers(&self) -> Vec<&'static str> {
        let desired = |name: &&str| self.desired.iter().any(|wish| wish.as_str() == *name);
        let shares = self.is_client_provider.then_some(SHARED_SUBSCRIPTIONS);
        let offers = [DELAYED_DELIVERY].into_iter().chain(shares);
        offers.filter(desired).collect()
    }
}

/// Returns the beginning of a property that is a text, or nothing.
fn text_of(properties: Option<&Fields>, name: &str) -> String {
    let mut properties = properties.into_iter().flat_map(|fields| fields.iter());
    let found = properties.find(|(key, _)| key.as_str() == name);
    let text = match found {
        Some((_, Value::String(text))) => text.as_str(),
        Some((_, Value::Symbol(text))) => text.as_str(),
        Some(_) | None => "",
    };
    text.chars().take(PRODUCT_LENGTH_MAX).collect()
}

/// Reads capabilities: a symbol, or several.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a value of another type counts as absent"
)]
fn capabilities(bytes: &[u8]) -> Vec<Symbol> {
    let symbol = |value| match value {
        Value::Symbol(symbol) => Some(symbol),
        _ => None,
    };
    match serde_amqp::from_slice::<Value>(bytes) {
        Ok(Value::Array(all)) => all.into_iter().filter_map(symbol).collect(),
        Ok(one) => symbol(one).into_iter().collect(),
        Err(_) => Vec::new(),
    }
}

/// Encodes a few short names as an array of symbols.
fn symbols(names: &[&str]) -> Vec<u8> {
    let mut array = Vec::new();
    for name in names {
        array.push(u8::try_from(name.len()).unwrap_or(u8::MAX));
        array.extend_from_slice(name.as_bytes());
    }
    let count = u8::try_from(names.len()).unwrap_or(u8::MAX);
    let size = u8::try_from(array.len() + 2).unwrap_or(u8::MAX);
    [&[0xe0, size, count, 0xa3][..], &array].concat()
}

/// Reads a PLAIN response: `[authorization] NUL user NUL password` (RFC 4616).
fn plain(response: &[u8]) -> Option<Identity> {
    let mut parts = response.split(|&byte| byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    if user.is_empty() || parts.next().is_some() {
        return None;
    }
    let user = String::from_utf8(user.to_vec()).ok()?;
    let password = String::from_utf8(password.to_vec()).ok()?;
    let password = Secret::new(password);
    Some(Identity::Plain { user, password })
}
