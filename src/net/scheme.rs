//! Whether a client came over TLS.

/// The scheme of the URLs that a peer uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// Returns the scheme of a client that came over TLS, or without it.
    pub(crate) const fn of(is_secure: bool) -> Self {
        if is_secure { Self::Https } else { Self::Http }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}
