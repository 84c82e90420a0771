//! What the server says of itself over HTTP: whether it is well, its metrics, and its authority's certificate.
//!
//! `/health` is the emulator's page (`emulator.md#ports-and-health`). `/health/live` says that the process answers, and `/health/ready` that
//! messages are accepted, and that the entities are there that the request names. A server of a fleet accepts none while it reaches no
//! store, whether it has namespaces or not: a balancer is to give its clients to others.

use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::percent_decode_str;
use serde_json::json;

use super::operator::NotOperator;
use super::request::{self, Caller, pairs};
use super::state::ServerState;
use crate::host::owner_message::OwnerMessage;
use crate::limits;
use crate::net::admission::ListenerKind;
use crate::store::Fleet;
use jitney_shard::Shortage;

/// A page of the server's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusPage {
    Authority,
    Health,
    Live,
    Metrics,
    Ready,
}

impl StatusPage {
    /// Returns the page that a request is for. What names a version of the administration API is for an entity of that
    /// name.
    pub(crate) fn of(method: &str, uri: &Uri) -> Option<Self> {
        let mut queried = pairs(uri);
        let is_read = method == Method::GET.as_str() || method == Method::HEAD.as_str();
        if !is_read || queried.any(|(name, _)| name == "api-version") {
            return None;
        }
        match uri.path() {
            "/ca.pem" => Some(Self::Authority),
            "/health" => Some(Self::Health),
            "/health/live" => Some(Self::Live),
            "/health/ready" => Some(Self::Ready),
            "/metrics" => Some(Self::Metrics),
            _ => None,
        }
    }

    /// Returns whether it tells all clients the same.
    pub(super) const fn is_public(self) -> bool {
        match self {
            Self::Authority | Self::Health | Self::Live => true,
            Self::Metrics | Self::Ready => false,
        }
    }
}

/// Answers a request for a page.
pub(super) async fn answer(
    server: &ServerState,
    caller: &Caller,
    page: StatusPage,
    parts: &Parts,
) -> Response {
    match page {
        StatusPage::Authority if caller.kind == ListenerKind::Metrics => not_here(),
        StatusPage::Authority => authority(server),
        StatusPage::Health => health(server),
        StatusPage::Live => healthy(),
        StatusPage::Metrics => match check_operator(server, caller, parts) {
            Ok(()) => {
                let fleet = server.fleet.as_deref();
                server
                    .metrics
                    .answer(&server.shards, fleet, &parts.headers)
                    .await
            }
            Err(refused) => refuse(refused),
        },
        StatusPage::Ready => ready(server, caller, parts).await,
    }
}

/// Answers a request at `--metrics` that is for something else.
pub(super) fn not_here() -> Response {
    let text = "This address is for GET /metrics and GET /health only.\n";
    (StatusCode::NOT_FOUND, text).into_response()
}

/// The emulator's answers; tools compare the first.
fn healthy() -> Response {
    const HEALTHY: &str = r#"{"status":"healthy","message":"Service is healthy."}"#;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::OK, kind, HEALTHY).into_response()
}

fn unhealthy(found: &serde_json::Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::SERVICE_UNAVAILABLE, kind, found.to_string()).into_response()
}

/// Says whether messages would be taken soon in every shard.
fn health(server: &ServerState) -> Response {
    unwell(server).unwrap_or_else(healthy)
}

/// Returns the answer that says why the server cannot be used; none if it can. In a fleet, a namespace that takes no message is no
/// reason: its server passes clients on to the others, and serves its other namespaces.
fn unwell(server: &ServerState) -> Option<Response> {
    if let Some(fleet) = &server.fleet {
        let found = Standing::of(fleet).complaint()?;
        return Some(unhealthy(
            &json!({ "status": "unhealthy", "message": found }),
        ));
    }
    let stuck = server.shards.stuck();
    (!stuck.is_empty()).then(|| unhealthy(&are_stuck(&stuck, &server.shards.shortages())))
}

/// What a server is to the stores of its fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It serves none of the namespaces of a store that is another one than at its start.
    Replaced,
    NotJoined,
    /// Its lease of each store has ended.
    Away,
    /// It may answer for the namespaces of some store.
    Serves,
}

impl Standing {
    fn of(fleet: &Fleet) -> Self {
        if fleet.is_replaced() {
            Self::Replaced
        } else if fleet.holds_some_lease() {
            Self::Serves
        } else if fleet.has_joined_some_store() {
            Self::Away
        } else {
            Self::NotJoined
        }
    }

    /// Returns why the server cannot be used; none if it can.
    const fn complaint(self) -> Option<&'static str> {
        match self {
            Self::Replaced => Some(
                "A store was restored or replaced after this server started: restart this server.",
            ),
            Self::NotJoined => Some("This server has not joined the servers of its store yet."),
            Self::Away => {
                Some("This server reaches no store now: it serves no namespace until it does.")
            }
            Self::Serves => None,
        }
    }
}

/// Says that no message would be taken in some shards, or not soon, and which of them lack disk or memory.
fn are_stuck(shards: &[u32], shortages: &[(u32, Shortage)]) -> serde_json::Value {
    let mut found = json!({
        "status": "unhealthy",
        "message": "Service not available. Please try after some time.",
        "shards": shards,
    });
    let shortages = shortages.iter().map(|(shard, shortage)| {
        json!({
            "shard": shard,
            "of": shortage.name(),
            "free_bytes": shortage.free(),
            "missing_bytes": shortage.missing(),
            "message": shortage.to_string(),
            "action": shortage.remedy(),
        })
    });
    let shortages: Vec<_> = shortages.collect();
    if let (false, Some(fields)) = (shortages.is_empty(), found.as_object_mut()) {
        fields.insert("shortages".to_owned(), shortages.into());
    }
    found
}

/// Says whether the server can be used: every shard is well, and the entities exist that the request names.
async fn ready(server: &ServerState, caller: &Caller, parts: &Parts) -> Response {
    if let Some(response) = unwell(server) {
        return response;
    }
    let named = pairs(&parts.uri).filter(|(name, _)| *name == "entity");
    let named = named.map(|(_, path)| percent_decode_str(path).decode_utf8_lossy().into_owned());
    let paths: Vec<String> = named.take(limits::HEALTH_ENTITIES_MAX + 1).collect();
    if limits::HEALTH_ENTITIES_MAX < paths.len() {
        let text = format!(
            "At most {} entities are looked for in one request.\n",
            limits::HEALTH_ENTITIES_MAX
        );
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    if paths.is_empty() {
        return healthy();
    }
    if let Err(refused) = check_operator(server, caller, parts) {
        return refuse(refused);
    }
    let host = request::host(&parts.headers, &caller.origin);
    let Some(owner) = server.shards.owner_of(&host) else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let asked = owner.ask(|answer| OwnerMessage::Missing(host, paths, answer));
    match asked.await {
        Some(missing) if missing.is_empty() => healthy(),
        Some(missing) => unhealthy(&json!({
            "status": "unhealthy",
            "message": "Entities are missing.",
            "missing": missing,
        })),
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Checks that a request is the operator's. At `--metrics` every request is.
fn check_operator(server: &ServerState, caller: &Caller, parts: &Parts) -> Result<(), NotOperator> {
    if caller.kind == ListenerKind::Metrics {
        caller.authorized();
        return Ok(());
    }
    request::check_operator(server, caller, parts)
}

fn refuse(refused: NotOperator) -> Response {
    match refused {
        NotOperator::Unauthorized(text) => {
            let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, scheme, text).into_response()
        }
        NotOperator::Throttled(wait) => {
            let seconds = wait.as_duration().as_secs() + 1;
            let after = [(header::RETRY_AFTER, seconds.to_string())];
            let text = format!("{}\n", jitney_broker::access::TOO_MANY_FAILED);
            (StatusCode::SERVICE_UNAVAILABLE, after, text).into_response()
        }
    }
}

/// The certificate of the authority that clients are to trust.
fn authority(server: &ServerState) -> Response {
    match server.tls.ca_pem() {
        Some(pem) => {
            let kind = [(header::CONTENT_TYPE, "application/x-pem-file")];
            (kind, pem.to_string()).into_response()
        }
        None => {
            let text = "There is no authority of the broker's own: its certificate is one that \
                        the operator gave it. --tls-ca names a file to be handed out here.\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_journal::Space;

    #[test]
    fn a_shard_that_is_stuck_is_named() {
        let body = are_stuck(&[0, 3], &[]);
        assert_eq!(body["status"], "unhealthy");
        assert_eq!(body["shards"], json!([0, 3]));
        assert_eq!(body.get("shortages"), None);
    }

    #[test]
    fn what_a_shard_lacks_is_told_with_how_much_and_what_helps() {
        let (free, needed) = (60 << 20, 128 << 20);
        let disk = Shortage::Disk(Some(Space { free, needed }));
        let (counted, most) = (100 << 20, 90 << 20);
        let memory = Shortage::Memory { counted, most };
        let body = are_stuck(&[0, 1], &[(0, disk), (1, memory)]);
        let [disk, memory] = [0, 1].map(|at| body["shortages"][at].clone());
        assert_eq!(disk["of"], "disk");
        assert_eq!(
            (&disk["free_bytes"], &disk["missing_bytes"]),
            (&json!(free), &json!(needed - free))
        );
        let text = disk["message"].as_str().unwrap();
        assert!(
            text.contains("60 MiB are free, and 128 MiB are needed"),
            "{text}"
        );
        let action = disk["action"].as_str().unwrap();
        assert!(
            action.contains("file system") && action.contains("jitney purge"),
            "{action}"
        );
        assert_eq!(
            (&memory["of"], &memory["missing_bytes"]),
            (&json!("memory"), &json!(10 << 20))
        );
        let action = memory["action"].as_str().unwrap();
        assert!(
            action.contains("--memory-limit") && action.contains("jitney purge"),
            "{action}"
        );
    }

    #[test]
    fn a_server_that_reaches_no_store_cannot_be_used_and_says_why() {
        assert_eq!(Standing::Serves.complaint(), None);
        for (standing, part) in [
            (Standing::NotJoined, "has not joined"),
            (Standing::Away, "reaches no store"),
            (Standing::Replaced, "restart this server"),
        ] {
            let found = standing.complaint().expect("it is unhealthy");
            assert!(found.contains(part), "{found}");
        }
    }

    #[test]
    fn a_page_is_read_and_an_entity_of_its_name_is_administered() {
        let page = |method, uri: &str| StatusPage::of(method, &uri.parse().unwrap());
        assert_eq!(page("GET", "/health"), Some(StatusPage::Health));
        assert_eq!(page("HEAD", "/health/live"), Some(StatusPage::Live));
        assert_eq!(
            page("GET", "/health/ready?entity=a"),
            Some(StatusPage::Ready)
        );
        assert_eq!(
            page("GET", "/metrics?x=api-version"),
            Some(StatusPage::Metrics)
        );
        for (method, uri) in [
            ("GET", "/metrics?api-version=2021-05"),
            ("GET", "/health?a=b&api-version=2021-05"),
            ("PUT", "/metrics"),
            ("DELETE", "/health"),
            ("GET", "/metrics/"),
            ("GET", "/metrics/messages/head"),
            ("GET", "/"),
        ] {
            assert_eq!(page(method, uri), None, "{method} {uri}");
        }
    }
}
