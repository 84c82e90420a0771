//! The JSON API of operators, `/api/v1`: what `jitney` commands and consoles use.
//!
//! A request carries the operator's key (`Authorization: Bearer KEY`), which is good for everything, or a token of the
//! namespace: `Listen` sees, `Send` sends, `Manage` does the rest. It is authorized before its body is read. The
//! namespace is that of the `Host`, or of the query `namespace`. `openapi.json` describes it.

#![allow(
    unused_qualifications,
    reason = "the macro that describes a path writes the names of its parameters in full"
)]

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
mod openapi;
mod page;
mod problem;
mod receives;
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
use call::{Answer, Call, PREFIX, named};
use problem::Problem;

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
const OF_SERVER: [&str; 5] = ["namespaces", "server", "fleet", "openapi.json", "docs"];

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
    let mut response = answered.unwrap_or_else(IntoResponse::into_response);
    // Answers have keys and messages, which no cache keeps and no browser takes for a page.
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let no_sniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, no_sniff);
    response
}

impl Call<'_> {
    async fn dispatch(&self, body: Body) -> Answer {
        let segments: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        let (method, rest) = (self.parts.method.as_str(), segments.as_slice());
        match rest {
            ["entities", entity, rest @ ..] => self.of_entity(entity, rest, body).await,
            ["entities"] => match method {
                "GET" => entities::list(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["messages"] => match method {
                "GET" => search::search(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["connections"] => match method {
                "GET" => connections::list(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["connections", id] => match method {
                "DELETE" => connections::close(self, id).await,
                _ => Err(Problem::method(method, "DELETE")),
            },
            ["connections", id, "links", link] => match method {
                "DELETE" => connections::close_link(self, id, link).await,
                _ => Err(Problem::method(method, "DELETE")),
            },
            ["receives"] => match method {
                "GET" => receives::list(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["receives", id] => match method {
                "DELETE" => receives::end(self, id).await,
                _ => Err(Problem::method(method, "DELETE")),
            },
            ["configuration"] => match method {
                "GET" => configuration::get(self).await,
                "PUT" => configuration::put(self, body).await,
                _ => Err(Problem::method(method, "GET, PUT")),
            },
            ["audit"] => match method {
                "GET" => audit::list(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["changes"] => match method {
                "GET" => changes::events(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["history"] => match method {
                "GET" => history::of_namespace(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["jobs"] => match method {
                "GET" => jobs::list(self).await,
                "POST" => jobs::start(self, body).await,
                _ => Err(Problem::method(method, "GET, POST")),
            },
            ["jobs", "count"] => match method {
                "POST" => selection::count(self, body).await,
                _ => Err(Problem::method(method, "POST")),
            },
            ["jobs", id] => match method {
                "GET" => jobs::get(self, id).await,
                "DELETE" => jobs::cancel(self, id).await,
                _ => Err(Problem::method(method, "GET, DELETE")),
            },
            _ => self.of_server(rest, body).await,
        }
    }

    /// Answers what is about the server.
    async fn of_server(&self, rest: &[&str], body: Body) -> Answer {
        let method = self.parts.method.as_str();
        match rest {
            ["access"] => match method {
                "GET" => namespaces::access(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["namespaces"] => match method {
                "GET" => namespaces::list(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["namespaces", name] => match method {
                "PUT" => namespaces::make(self, name).await,
                "DELETE" => namespaces::drop_one(self, name).await,
                _ => Err(Problem::method(method, "PUT, DELETE")),
            },
            ["fleet"] => match method {
                "GET" => fleet::get(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["fleet", "namespaces", name, "release"] => match method {
                "POST" => fleet::release(self, name).await,
                _ => Err(Problem::method(method, "POST")),
            },
            ["server"] => match method {
                "GET" => server::get(self).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["server", "backups"] => match method {
                "POST" => backups::make(self, body).await,
                _ => Err(Problem::method(method, "POST")),
            },
            ["openapi.json"] => match method {
                "GET" => Ok(openapi::answer()),
                _ => Err(Problem::method(method, "GET")),
            },
            _ => Err(self.nothing_here()),
        }
    }

    async fn of_entity(&self, entity: &str, rest: &[&str], body: Body) -> Answer {
        let method = self.parts.method.as_str();
        match rest {
            [] => match method {
                "GET" => entities::get(self, entity).await,
                "PUT" => entities::put(self, entity, body).await,
                "DELETE" => entities::delete(self, entity).await,
                _ => Err(Problem::method(method, "GET, PUT, DELETE")),
            },
            ["authorization-rules", rest @ ..] => {
                authorization_rules::answer(self, entity, rest, body).await
            }
            ["lock"] => match method {
                "POST" => locks::lock(self, entity, body).await,
                _ => Err(Problem::method(method, "POST")),
            },
            ["settle"] => match method {
                "POST" => locks::settle(self, entity, body).await,
                _ => Err(Problem::method(method, "POST")),
            },
            ["rules"] => match method {
                "GET" => rules::list(self, entity).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["rules", rule] => match method {
                "GET" => rules::get(self, entity, rule).await,
                "PUT" => rules::put(self, entity, rule, body).await,
                "DELETE" => rules::delete(self, entity, rule).await,
                _ => Err(Problem::method(method, "GET, PUT, DELETE")),
            },
            ["messages"] => match method {
                "GET" => messages::list(self, entity).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["messages", number] => match method {
                "GET" => messages::get(self, entity, number).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["send"] => match method {
                "POST" => sending::send(self, entity, body).await,
                _ => Err(Problem::method(method, "POST")),
            },
            ["rule-tests"] => match method {
                "POST" => rule_tests::test(self, entity, body).await,
                _ => Err(Problem::method(method, "POST")),
            },
            ["schedule"] => match method {
                "GET" => schedule::count(self, entity).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["history"] => match method {
                "GET" => history::of_entity(self, entity).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["dead-letters"] => match method {
                "GET" => messages::dead_letters(self, entity).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["sessions"] => match method {
                "GET" => sessions::list(self, entity).await,
                _ => Err(Problem::method(method, "GET")),
            },
            ["sessions", id] => match method {
                "GET" => sessions::get(self, entity, id).await,
                "PUT" => sessions::put(self, entity, id, body).await,
                _ => Err(Problem::method(method, "GET, PUT")),
            },
            _ => Err(self.nothing_here()),
        }
    }

    fn nothing_here(&self) -> Problem {
        let path = self.parts.uri.path();
        Problem::not_found(format!(
            "There is nothing at {path}; {PREFIX}openapi.json says what there is."
        ))
    }
}
