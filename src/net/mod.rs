//! Listening, and connections as streams of bytes: sockets, admission, TLS and its certificates, the PROXY protocol.

pub(super) mod admission;
pub(super) mod balancers;
pub(super) mod buffers;
pub(super) mod certs;
pub(super) mod exchange;
pub(super) mod fetch;
pub(super) mod listen;
pub(super) mod listen_address;
pub(super) mod listener;
pub(super) mod namespace_connections;
pub(super) mod proxy_protocol;
pub(super) mod scheme;
pub(super) mod socket;
pub(super) mod tls;
pub(super) mod unauthenticated;
mod warning;
pub(super) mod websocket;
