//! HTTP: the connection, the requests, and what answers them.

pub(super) mod answers;
pub(super) mod api;
mod atom;
pub(super) mod connection;
mod console;
mod foreign;
mod header_case;
pub(super) mod metrics;
pub(super) mod operator;
mod proxy;
mod receive;
pub(super) mod refusals;
mod request;
mod rest;
pub(super) mod sign_in;
pub(super) mod state;
mod status;
