//! The JSON API of operators, `/api/v1`: what `jitney` commands and consoles use.
//!
//! A request carries the operator's key (`Authorization: Bearer KEY`), which is good for everything, or a token of the
//! namespace: `Listen` sees, `Send` sends, `Manage` does the rest. It is authorized before its body is read. The
//! namespace is that of the `Host`, or of the query `namespace`. `openapi.json` describes it.

#![allow(
    unused_qualifications,
    reason = "the macro that describes a path writes the names of its parameters in full"
)]

mod connections;
mod entities;
mod jobs;
mod messages;
mod openapi;
mod problem;
mod rules;
mod sessions;
#[cfg(test)]
mod tests;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::http::{self, Caller};
use super::listener::ServerState;
use super::mailbox::Mail;
use super::messages as messages_of_rest;
use super::status;
use crate::access::{Authority, Inquiry};
use crate::gateway::operations::{Operated, Operation};
use crate::gateway::rest::RestError;
use crate::limits;
use crate::namespace::administration::{AdminAnswer, AdminOperation};
use crate::shard::{Administration, OperationAnswer, OperationRequest};
use problem::Problem;

/// The beginning of the paths of the API.
const PREFIX: &str = "/api/v1/";

type Answer = Result<Response, Problem>;

/// Returns whether a request is for the API. What names a version of the administration API is for an entity of that name.
pub(super) fn is_for(parts: &Parts) -> bool {
    let query = parts.uri.query().unwrap_or_default();
    let mut names = query
        .split('&')
        .map(|pair| pair.split('=').next().unwrap_or_default());
    parts.uri.path().starts_with(PREFIX) && !names.any(|name| name == "api-version")
}

/// Answers a request.
pub(super) async fn answer(
    server: &ServerState,
    caller: &Caller,
    parts: &Parts,
    body: Body,
) -> Response {
    let call = Call::new(server, caller, parts);
    let answered = match call {
        Ok(call) => call.dispatch(body).await,
        Err(problem) => Err(problem),
    };
    answered.unwrap_or_else(|problem| problem.into_response())
}

/// A request.
struct Call<'a> {
    server: &'a ServerState,
    caller: &'a Caller,
    parts: &'a Parts,
    /// The host by which the namespace is called.
    host: String,
    /// The segments of the path behind `/api/v1`, decoded.
    segments: Vec<String>,
}

impl<'a> Call<'a> {
    fn new(server: &'a ServerState, caller: &'a Caller, parts: &'a Parts) -> Result<Self, Problem> {
        let path = parts.uri.path().strip_prefix(PREFIX).unwrap_or_default();
        let decode = |segment: &str| {
            let decoded = percent_decode_str(segment).decode_utf8();
            decoded.map(std::borrow::Cow::into_owned)
        };
        let segments = path
            .split('/')
            .map(decode)
            .collect::<Result<Vec<String>, _>>();
        let segments = segments.map_err(|_| Problem::bad_request("The path is not UTF-8."))?;
        let mut host = http::host(&parts.headers, &caller.origin);
        for (name, value) in status::pairs(&parts.uri) {
            if name == "namespace" {
                let name = decode(value);
                let name = name.map_err(|_| Problem::bad_request("namespace is not UTF-8."))?;
                if !server.shards.routes().has(&name) {
                    return Err(Problem::not_found(format!(
                        "There is no namespace '{name}'."
                    )));
                }
                host = name;
            }
        }
        Ok(Self {
            server,
            caller,
            parts,
            host,
            segments,
        })
    }

    async fn dispatch(&self, body: Body) -> Answer {
        let segments: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        let method = &self.parts.method;
        let is = |other: Method| *method == other;
        match segments.as_slice() {
            ["openapi.json"] if is(Method::GET) => Ok(openapi::answer()),
            ["entities"] if is(Method::GET) => entities::list(self).await,
            ["entities", entity] if is(Method::GET) => entities::get(self, entity).await,
            ["entities", entity] if is(Method::PUT) => entities::put(self, entity, body).await,
            ["entities", entity] if is(Method::DELETE) => entities::delete(self, entity).await,
            ["entities", entity, "rules"] if is(Method::GET) => rules::list(self, entity).await,
            ["entities", entity, "rules", rule] if is(Method::GET) => {
                rules::get(self, entity, rule).await
            }
            ["entities", entity, "rules", rule] if is(Method::PUT) => {
                rules::put(self, entity, rule, body).await
            }
            ["entities", entity, "rules", rule] if is(Method::DELETE) => {
                rules::delete(self, entity, rule).await
            }
            ["entities", entity, "messages"] if is(Method::GET) => {
                messages::list(self, entity).await
            }
            ["entities", entity, "messages", number] if is(Method::GET) => {
                messages::get(self, entity, number).await
            }
            ["entities", entity, "send"] if is(Method::POST) => {
                messages::send(self, entity, body).await
            }
            ["entities", entity, "dead-letters"] if is(Method::GET) => {
                messages::dead_letters(self, entity).await
            }
            ["entities", entity, "sessions"] if is(Method::GET) => {
                sessions::list(self, entity).await
            }
            ["entities", entity, "sessions", id] if is(Method::GET) => {
                sessions::get(self, entity, id).await
            }
            ["entities", entity, "sessions", id] if is(Method::PUT) => {
                sessions::put(self, entity, id, body).await
            }
            ["connections"] if is(Method::GET) => connections::list(self).await,
            ["connections", id] if is(Method::DELETE) => connections::close(self, id).await,
            ["jobs"] if is(Method::GET) => jobs::list(self).await,
            ["jobs"] if is(Method::POST) => jobs::start(self, body).await,
            ["jobs", id] if is(Method::GET) => jobs::get(self, id).await,
            ["jobs", id] if is(Method::DELETE) => jobs::cancel(self, id).await,
            _ => Err(self.nothing_here(&segments)),
        }
    }

    /// Says why there is no answer: another method is right, or nothing is at the path.
    fn nothing_here(&self, segments: &[&str]) -> Problem {
        let allowed = match segments {
            ["openapi.json"]
            | ["entities"]
            | [
                "entities",
                _,
                "rules" | "messages" | "dead-letters" | "sessions",
            ]
            | ["entities", _, "messages", _]
            | ["connections"] => "GET",
            ["entities", _] | ["entities", _, "rules", _] => "GET, PUT, DELETE",
            ["entities", _, "send"] => "POST",
            ["entities", _, "sessions", _] => "GET, PUT",
            ["connections", _] => "DELETE",
            ["jobs"] => "GET, POST",
            ["jobs", _] => "GET, DELETE",
            _ => {
                let path = self.parts.uri.path();
                return Problem::not_found(format!(
                    "There is nothing at {path}; {PREFIX}openapi.json says what there is."
                ));
            }
        };
        let text = format!("{} is not allowed here; {allowed} is.", self.parts.method);
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "not_allowed", text)
    }

    /// Returns the rights of a request that is about an entity; about the namespace if the path is empty.
    async fn authorize(&self, path: &str) -> Result<Authority, Problem> {
        let headers = &self.parts.headers;
        if self
            .server
            .operator
            .check(self.caller.address, headers)
            .is_ok()
        {
            self.caller.authorized();
            return Ok(Authority::everything());
        }
        let token = headers.get(header::AUTHORIZATION);
        let inquiry = Inquiry {
            peer: self.caller.origin.peer,
            host: Some(self.host.clone()),
            token: token
                .and_then(|value| value.to_str().ok())
                .map(ToOwned::to_owned),
            path: path.to_owned(),
            supplementary: Vec::new(),
        };
        Ok(http::authorize(self.server, self.caller, inquiry).await?)
    }

    /// Reads the query.
    fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let query = self.parts.uri.query().unwrap_or_default();
        serde_html_form::from_str(query)
            .map_err(|error| Problem::bad_request(format!("The query: {error}.")))
    }

    /// Reads a body of JSON.
    async fn json<T: DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
        let bytes = self.bytes(body).await?;
        let mut json = serde_json::Deserializer::from_slice(&bytes);
        serde_path_to_error::deserialize(&mut json).map_err(|error| {
            let path = error.path().to_string();
            Problem::bad_request(format!("The body, at {path}: {}.", error.into_inner()))
        })
    }

    async fn bytes(&self, body: Body) -> Result<Bytes, Problem> {
        let mut partials = self.server.shards.partials();
        let mut bytes = BytesMut::new();
        let take = |data: &[u8]| bytes.extend_from_slice(data);
        match messages_of_rest::read(body, limits::API_BODY_BYTES_MAX, &mut partials, take).await {
            Ok(()) => Ok(bytes.freeze()),
            Err(RestError::TooLong(max)) => {
                let text = format!("The body has more than {max} bytes.");
                Err(Problem::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "too_large",
                    text,
                ))
            }
            Err(RestError::Malformed(text)) => Err(Problem::bad_request(format!("{text}."))),
            Err(RestError::Denied(denied)) => Err(denied.into()),
        }
    }

    async fn operate(
        &self,
        authority: Authority,
        operation: Operation,
    ) -> Result<(Operated, Vec<Option<Bytes>>), Problem> {
        let request = Box::new(OperationRequest {
            host: Some(self.host.clone()),
            authority,
            operation,
        });
        let owner = self.server.shards.owner_of(&self.host);
        let answer = owner.ask(|answer| Mail::Operate(request, answer)).await;
        let OperationAnswer { done, bodies } = answer.ok_or_else(Problem::stopping)?;
        Ok((done?, bodies))
    }

    async fn administer(
        &self,
        authority: Authority,
        operation: AdminOperation,
    ) -> Result<AdminAnswer, Problem> {
        let request = Box::new(Administration {
            host: Some(self.host.clone()),
            authority,
            operation,
        });
        let owner = self.server.shards.owner_of(&self.host);
        let answer = owner.ask(|answer| Mail::Administer(request, answer)).await;
        Ok(answer.ok_or_else(Problem::stopping)??)
    }
}

/// Makes an answer of JSON.
fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("texts and numbers are JSON");
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// Adds the version of an entity to an answer.
fn with_version(mut response: Response, revision: u64) -> Response {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{revision}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}
