//! Requests of the administration API.

use super::parts;
use jitney_gateway::admin::{AdminRequest, RequestHead};

/// The longest text of a refusal, bytes: it quotes the request in part only.
const REFUSAL_BYTES_MAX: usize = 1_000;

/// Reads a request: a line `METHOD TARGET`, then its body. The text of a refusal must be short.
pub(super) fn run(input: &[u8]) {
    let parts = parts(input);
    let head = String::from_utf8_lossy(parts.first().copied().unwrap_or_default());
    let body = parts.get(1).copied().unwrap_or_default();
    let (method, target) = head.split_once(' ').unwrap_or(("PUT", &head));
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let request = RequestHead {
        method,
        path,
        query,
        host: "localhost:5300",
        if_match: parts.get(2).map(|_| "*"),
    };
    let refused = match AdminRequest::read(&request) {
        Ok(asked) => asked.operation(body).err(),
        Err(refusal) => Some(refusal),
    };
    if let Some(refusal) = refused {
        let length = refusal.to_string().len();
        assert!(
            length <= REFUSAL_BYTES_MAX,
            "a refusal of {length} bytes: {refusal}"
        );
    }
}
