//! The administration API as its clients use it.

mod answers;
mod hostile;
mod laws;
mod refusals;
mod requests;

use super::{AdminAnswer, AdminError, AdminOperation, AdminRequest, RequestHead};

const HOST: &str = "contoso.localhost:5300";

/// Reads the head of a request, its path and query as they are.
fn asked(method: &str, target: &str, if_match: Option<&str>) -> Result<AdminRequest, AdminError> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    AdminRequest::read(&RequestHead {
        method,
        path,
        query,
        host: HOST,
        if_match,
    })
}

/// Returns the operation of a request whose body adds nothing.
fn operation(method: &str, target: &str) -> Result<AdminOperation, AdminError> {
    let asked = asked(method, target, None)?;
    assert!(!asked.needs_body(), "{method} {target}");
    asked.operation(b"this is not looked at")
}

/// Returns the operation of a request that makes or changes something.
fn put(target: &str, if_match: Option<&str>, body: &str) -> Result<AdminOperation, AdminError> {
    let asked = asked("PUT", target, if_match)?;
    assert!(asked.needs_body(), "{target}");
    asked.operation(body.as_bytes())
}

/// Returns an entry with a description of which this is the content.
fn entry(kind: &str, content: &str) -> String {
    format!(
        "<entry xmlns='http://www.w3.org/2005/Atom'><content type='application/xml'>\
         <{kind} xmlns='http://schemas.microsoft.com/netservices/2010/10/servicebus/connect' \
         xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>{content}</{kind}></content></entry>"
    )
}
