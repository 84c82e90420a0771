//! Whether a client came over TLS.

use super::proxy_protocol::field;

/// The scheme of the URLs that a peer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// Returns the scheme of a client by the first byte of the field about TLS in a header of the PROXY protocol.
    pub(crate) const fn of_bits(bits: u8) -> Self {
        if bits & field::CLIENT_SSL == 0 {
            Self::Http
        } else {
            Self::Https
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}
