//! The JSON API of operators, `/api/v1`: what `jitney` commands and consoles use.
//!
//! A request carries the operator's key (`Authorization: Bearer KEY`), which is good for everything, or a token of the
//! namespace: `Listen` sees, `Send` sends, `Manage` does the rest. It is authorized before its body is read. The
//! namespace is that of the `Host`, or of the query `namespace`. `openapi.json` describes it.

#![allow(
    unused_qualifications,
    reason = "the macro that describes a path writes the names of its parameters in full"
)]

mod attention;
mod audit;
mod authorization_rules;
mod backups;
mod call;
mod changes;
mod configuration;
mod connections;
mod decoding;
mod entities;
mod fleet;
#[cfg(any(test, feature = "testing"))]
pub(crate) mod fuzzing;
mod history;
mod jobs;
mod locks;
mod messages;
mod namespaces;
mod page;
mod problem;
mod receives;
mod routes;
mod rule_tests;
mod rules;
mod schedule;
mod search;
mod searches;
mod selection;
mod sending;
mod server;
mod sessions;
#[cfg(test)]
mod tests;
mod version;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::request::Caller;
use super::state::ServerState;
use call::{Call, PREFIX, named};

pub(crate) use changes::{Changes, follow};
pub(crate) use searches::Searches;

/// Returns whether a request is for the API. What names a version of the administration API is for an entity of that name.
pub(crate) fn is_for(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    let mut names = query
        .split('&')
        .map(|pair| pair.split('=').next().unwrap_or_default());
    parts.uri.path().starts_with(PREFIX) && !names.any(|name| name == "api-version")
}

/// Returns the namespace that a request names in its query.
pub(crate) fn namespace_of(parts: &Parts) -> Option<String> {
    if !is_for(parts) {
        return None;
    }
    // What is wrong with the query is said where the request is answered.
    named(parts).ok().flatten()
}

/// Returns whether a request is about the server, and not about a namespace.
pub(super) fn is_of_server(parts: &Parts) -> bool {
    let rest = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
    let first = rest
        .trim_start_matches('/')
        .split('/')
        .next()
        .unwrap_or_default();
    is_for(parts) && OF_SERVER.contains(&first)
}

/// The first segments of paths that are about the server.
const OF_SERVER: [&str; 4] = ["namespaces", "server", "fleet", "openapi.json"];

/// Answers a request.
pub(super) async fn answer(
    server: &ServerState,
    caller: &Caller,
    parts: &Parts,
    body: Body,
) -> Response {
    let call = Call::new(server, caller, parts);
    let answered = match call {
        Ok(call) => routes::dispatch(&call, body).await,
        Err(problem) => Err(problem),
    };
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    // Answers have keys and messages, which no cache keeps and no browser takes for a page.
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let no_sniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, no_sniff);
    response
}
