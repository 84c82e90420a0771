//! A request of the API: whose it is, which namespace it means, what it may, and what it reserves.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use utoipa::{IntoParams, ToSchema};

use super::problem::{self, Problem};
use super::searches::Search;
use crate::host::mailbox::Mailbox;
use crate::host::owner_message::MailboxPermit;
use crate::host::partials::Partials;
use crate::http::answers::Reservation;
use crate::http::operator::NotOperator;
use crate::http::request::{self, Caller, pairs};
use crate::http::rest;
use crate::http::state::ServerState;
use crate::limits;
use jitney_base::address;
use jitney_base::ids::SequenceNumber;
use jitney_base::secret::Secret;
use jitney_broker::access::{self, Authority, Inquiry};
use jitney_broker::namespace::{Denied, DeniedKind, Selector};
use jitney_gateway::operations::{Inspect, MessagesView};
use jitney_gateway::request::{Request, Requester};
use jitney_gateway::rest::RestError;
use jitney_queue::Conditions;
use jitney_shard::RequestAnswer;

/// The beginning of the paths of the API.
pub(super) const PREFIX: &str = "/api/v1/";

pub(super) type Answer = Result<Response, Problem>;

/// Reads the namespace in a query.
pub(super) fn named(parts: &Parts) -> Result<Option<String>, Problem> {
    let mut named = pairs(&parts.uri).filter(|(name, _)| *name == "namespace");
    let Some((_, value)) = named.next() else {
        return Ok(None);
    };
    if named.next().is_some() {
        let text = "The query has 'namespace' twice; once is right.".to_owned();
        return Err(Problem::wrong("namespace".to_owned(), text));
    }
    match percent_decode_str(value).decode_utf8() {
        Ok(name) => Ok(Some(name.into_owned())),
        Err(_) => Err(Problem::wrong(
            "namespace".to_owned(),
            "The namespace in the query is not UTF-8.".to_owned(),
        )),
    }
}

/// A request.
pub(super) struct Call<'a> {
    pub(super) server: &'a ServerState,
    pub(super) caller: &'a Caller,
    pub(super) parts: &'a Parts,
    /// The host by which the namespace is called.
    pub(super) host: String,
    /// The value of the query parameter `namespace`, if there is no namespace of that name. The 404 is for authorized callers; others
    /// get 401.
    pub(super) missing: Option<String>,
    /// The segments of the path behind `/api/v1`, decoded.
    pub(super) segments: Vec<String>,
    /// The bytes of its answer, and of what that is made of.
    pub(super) reservation: Arc<Reservation>,
    /// Of these, bytes of messages that the answer is made of.
    sources: AtomicUsize,
    /// The bytes of its body.
    partials: Mutex<Vec<Partials>>,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        server: &'a ServerState,
        caller: &'a Caller,
        parts: &'a Parts,
    ) -> Result<Self, Problem> {
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
        let named = named(parts)?;
        let missing = named.clone();
        let missing = missing.filter(|name| !server.shards.routes().has(name));
        let host = named.unwrap_or_else(|| request::host(&parts.headers, &caller.origin));
        let namespace = server.shards.routes().namespace_of(Some(&host)).to_owned();
        let close = Arc::clone(&caller.close);
        Ok(Self {
            server,
            caller,
            parts,
            host,
            missing,
            segments,
            reservation: Arc::new(server.answers.begin(namespace, close)),
            sources: AtomicUsize::new(0),
            partials: Mutex::default(),
        })
    }

    /// Returns the name of the namespace, in lower case.
    pub(super) fn namespace(&self) -> String {
        let routes = self.server.shards.routes();
        routes.namespace_of(Some(&self.host)).to_owned()
    }

    /// Returns the prefix of the paths of the namespace's entities.
    pub(super) fn prefix(&self) -> String {
        let routes = self.server.shards.routes();
        let name = routes.namespace_of(Some(&self.host));
        // A shard that is a namespace's alone has no other to tell it from.
        if name == routes.first() || routes.is_shared() {
            return String::new();
        }
        address::namespace_prefix(name)
    }

    /// Returns the operator's rights, if the request is the operator's.
    pub(super) fn authorize_operator(&self) -> Result<Authority, Problem> {
        let checked = request::check_operator(self.server, self.caller, self.parts);
        checked.map_err(|refused| match refused {
            NotOperator::Unauthorized(text) => {
                Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", text.trim_end())
            }
            NotOperator::Throttled(_) => {
                Denied::new(DeniedKind::Full, jitney_broker::access::TOO_MANY_FAILED, "").into()
            }
        })?;
        Ok(Authority::everything().from_peer(self.caller.origin.peer))
    }

    /// Returns the rights of a request that is about an entity; about the namespace if the path is empty.
    pub(super) async fn authorize(&self, path: &str) -> Result<Authority, Problem> {
        let authority = self.authorize_for(path).await?;
        match &self.missing {
            None => Ok(authority),
            Some(_) if self.server.shards.routes().is_partial() => Err(Problem::unknown_yet()),
            Some(name) => {
                let text = format!("There is no namespace '{name}'.");
                Err(Problem::not_found(text))
            }
        }
    }

    pub(super) async fn authorize_for(&self, path: &str) -> Result<Authority, Problem> {
        if self.is_operator() {
            self.caller.authorized();
            return Ok(Authority::everything().from_peer(self.caller.origin.peer));
        }
        let inquiry = self.inquiry(path);
        let token = inquiry.token.clone();
        let authorized = request::authorize(self.server, self.caller, inquiry).await;
        authorized.map_err(|denied| of_token(denied, token.as_ref()))
    }

    /// Has the namespace's owner carry a request out for who sends it: its token, which must be for this path, goes with it.
    pub(super) async fn fetch<R: Request>(
        &self,
        path: &str,
        request: R,
    ) -> Result<R::Answer, Problem> {
        // A peer that is unauthenticated so far is to be so no longer than its token takes, and not until the answer is durable.
        let is_first = request::held_permit(&self.caller.permit).is_some();
        if is_first || self.missing.is_some() || self.is_operator() {
            let authority = self.authorize(path).await?;
            return self.request(authority, request).await;
        }
        let inquiry = self.inquiry(path);
        let token = inquiry.token.clone();
        let answer = request::request_by_token(self.server, self.caller, inquiry, request).await;
        answer.map_err(|denied| of_token(denied, token.as_ref()))
    }

    /// Returns whether the request is the operator's.
    pub(super) fn is_operator(&self) -> bool {
        let operator = &self.server.operator;
        operator.is_operators(self.caller.address, &self.parts.headers)
    }

    /// Returns the question of what the request's token is good for at a path.
    pub(super) fn inquiry(&self, path: &str) -> Inquiry {
        let token = self.parts.headers.get(header::AUTHORIZATION);
        let token = token.and_then(|value| value.to_str().ok());
        Inquiry {
            peer: self.caller.origin.peer,
            host: Some(self.host.clone()),
            nowhere: self.missing.clone(),
            token: token.map(Secret::new),
            path: path.to_owned(),
            supplementary: Vec::new(),
        }
    }

    /// Reads the query.
    pub(super) fn query<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        let query = self.parts.uri.query().unwrap_or_default();
        let query = serde_html_form::Deserializer::from_bytes(query.as_bytes());
        serde_path_to_error::deserialize(query).map_err(|error| {
            let path = error.path().to_string();
            let why = problem::fault(&error.into_inner());
            Problem::wrong(path, format!("The query: {why}."))
        })
    }

    /// Reads a body of JSON.
    pub(super) async fn json<T: DeserializeOwned>(&self, body: Body) -> Result<T, Problem> {
        let bytes = self.bytes(body).await?;
        read_json(&bytes)
    }

    pub(super) async fn bytes(&self, body: Body) -> Result<Bytes, Problem> {
        self.bytes_up_to(body, limits::API_BODY_BYTES_MAX).await
    }

    pub(super) async fn bytes_up_to(&self, body: Body, max: usize) -> Result<Bytes, Problem> {
        let mut partials = self.server.shards.partials();
        let mut bytes = BytesMut::new();
        let take = |data: &[u8]| bytes.extend_from_slice(data);
        match rest::read(body, max, &mut partials, take).await {
            Ok(()) => {
                // It counts until the request is answered.
                let mut held = self.partials.lock().unwrap_or_else(PoisonError::into_inner);
                held.push(partials);
                Ok(bytes.freeze())
            }
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

    /// Has the namespace's owner carry a request out.
    pub(super) async fn request<R: Request>(
        &self,
        authority: Authority,
        request: R,
    ) -> Result<R::Answer, Problem> {
        Ok(self.request_in(None, authority, request).await?.0)
    }

    /// Has the namespace's owner carry a request out, whose messages have this room in its mailbox. Returns also the bytes of the
    /// messages in the answer.
    pub(super) async fn request_in<R: Request>(
        &self,
        room: Option<MailboxPermit>,
        authority: Authority,
        request: R,
    ) -> Result<(R::Answer, Vec<Option<Bytes>>), Problem> {
        let requester = Requester {
            host: Some(self.host.clone()),
            authority,
        };
        let owner = self.owner()?;
        let answer = owner.request_in(room, requester, request).await;
        let RequestAnswer { answer, bodies } = answer.ok_or_else(Problem::stopping)?;
        Ok((answer?, bodies))
    }

    /// Returns the mailbox of the namespace's owner.
    pub(super) fn owner(&self) -> Result<Mailbox, Problem> {
        let owner = self.server.shards.owner_of(&self.host);
        owner.ok_or_else(Problem::stopping)
    }

    /// Begins a search for the messages that a selection means.
    pub(super) fn search(&self, selector: Selector) -> Result<Search, Problem> {
        self.server.searches.begin(self.namespace(), selector)
    }

    /// Reserves bytes for the answer; waits for a while until there is room for them.
    pub(super) async fn reserve(&self, bytes: usize) -> Result<(), Problem> {
        let reserved = self.reservation.reserve(bytes).await;
        reserved.map_err(|_| Problem::busy())
    }

    /// Reserves so many bytes in all for messages that the answer is made of.
    pub(super) async fn reserve_sources(&self, bytes: usize) -> Result<(), Problem> {
        let more = bytes.saturating_sub(self.sources.load(Ordering::Relaxed));
        self.reserve(more).await?;
        self.sources.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Looks at messages of one queue without their bytes.
    pub(super) async fn look(
        &self,
        authority: &Authority,
        path: &str,
        from: SequenceNumber,
        conditions: &Conditions,
        most: usize,
    ) -> Result<MessagesView, Problem> {
        let inspect = Inspect {
            path: path.to_owned(),
            from,
            conditions: conditions.clone(),
            most,
            bytes_max: 0,
        };
        self.request(authority.clone(), inspect).await
    }

    /// Looks at messages of one queue, with their bytes, for which room is reserved first.
    pub(super) async fn inspect(
        &self,
        authority: &Authority,
        path: &str,
        from: SequenceNumber,
        conditions: &Conditions,
        most: usize,
    ) -> Result<(MessagesView, Vec<Option<Bytes>>), Problem> {
        let mut bytes_max = jitney_queue::limits::PEEK_BYTES_MAX;
        loop {
            self.reserve_sources(bytes_max).await?;
            let inspect = Inspect {
                path: path.to_owned(),
                from,
                conditions: conditions.clone(),
                most,
                bytes_max,
            };
            let asked = self.request_in(None, authority.clone(), inspect);
            let (view, bodies) = asked.await?;
            let lengths = view.messages.iter();
            let longest = lengths.map(|message| message.inspected.body.length).max();
            let longest = usize::try_from(longest.unwrap_or_default()).unwrap_or(usize::MAX);
            if view.with_bytes {
                // One at a time is there as texts and in base64, too.
                self.reserve_sources(bytes_max + 2 * longest).await?;
                return Ok((view, bodies));
            }
            // The first has more bytes than a page.
            bytes_max = longest;
        }
    }
}

/// Returns what is said of a refusal, which may be that of a token.
fn of_token(denied: Denied, token: Option<&Secret>) -> Problem {
    let problem = Problem::from(denied);
    if problem.is_unauthorized() && token.is_some_and(|it| is_unknown_bearer(it.expose())) {
        return problem.with_detail(UNKNOWN_BEARER);
    }
    problem
}

/// What is said of a `Bearer` that can be nothing that is known.
const UNKNOWN_BEARER: &str = "SubCode=40105. MalformedToken: The text after \"Authorization: Bearer\" is neither the operator's key nor a JSON Web Token. \
     The operator's key is in operator.key in the data directory, or in the file of --operator-key-file; servers that share a store have \
     the store's. A token of the namespace is sent as \"Authorization: SharedAccessSignature sr=...&sig=...&se=...&skn=...\".";

/// Returns whether an authorization has a `Bearer` that is no JSON Web Token by its shape.
pub(super) fn is_unknown_bearer(authorization: &str) -> bool {
    let Some((scheme, token)) = authorization.split_once(' ') else {
        return false;
    };
    scheme.eq_ignore_ascii_case("bearer")
        && !access::is_sas(token.trim())
        && token.trim().split('.').count() != 3
}

/// What every query may have.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct NamespaceQuery {
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// A value that is read from an object: serde reads structs from arrays, too.
#[derive(Debug, Default, ToSchema)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfMap<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for OfMap<T> {
            type Value = Object<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(OfMap(PhantomData))
    }
}

/// Reads a body of JSON: an object, and nothing behind it.
pub(super) fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let wrong = |path: String, error: &serde_json::Error| {
        let text = format!("The body, at {path}: {}.", problem::fault(error));
        Problem::wrong(path, text)
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let read: Result<Object<T>, _> = serde_path_to_error::deserialize(&mut json);
    let Object(read) = read.map_err(|error| {
        let path = error.path().to_string();
        wrong(path, &error.into_inner())
    })?;
    json.end().map_err(|error| wrong(".".to_owned(), &error))?;
    Ok(read)
}

/// Reads a number of a query's or body's field up to the largest that JSON's readers agree on: sequence numbers are smaller.
pub(super) fn from_number(field: &str, from: u64) -> Result<SequenceNumber, Problem> {
    let max = i64::MAX.unsigned_abs();
    if max < from {
        let text = format!("The number {from} is too large; up to {max} is allowed.");
        return Err(Problem::wrong(field, text));
    }
    Ok(SequenceNumber(from))
}

/// Adds the version of an entity to an answer.
pub(super) fn with_version(mut response: Response, revision: u64) -> Response {
    if let Ok(value) = HeaderValue::from_str(&format!("\"{revision}\"")) {
        response.headers_mut().insert(header::ETAG, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_to_its_end() {
        let read =
            |body: &str| read_json::<serde_json::Map<String, serde_json::Value>>(body.as_bytes());
        assert_eq!(read("{\"a\": 1} \r\n").unwrap().len(), 1);
        for (body, said) in [
            ("{\"a\": 1} x", "trailing characters"),
            ("{\"a\": 1}{}", "trailing characters"),
            ("[1]", "an object"),
            ("", "EOF"),
        ] {
            let problem = serde_json::to_value(read(body).unwrap_err()).unwrap();
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(said), "{body}: {detail}");
        }
    }

    #[test]
    fn a_bearer_that_is_no_token_by_its_shape_is_told_from_those_that_are() {
        for unknown in ["Bearer 0123456789abcdef", "bearer a.b", "Bearer "] {
            assert!(is_unknown_bearer(unknown), "{unknown}");
        }
        for known in [
            "Bearer a.b.c",
            "Bearer SharedAccessSignature sr=a&sig=b&se=1&skn=c",
            "SharedAccessSignature sr=a&sig=b&se=1&skn=c",
            "Basic dTpw",
            "Bearer",
        ] {
            assert!(!is_unknown_bearer(known), "{known}");
        }
    }
}
