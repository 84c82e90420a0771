//! The namespaces of the server, for its operator; and what a client may do, for itself.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call, NamespaceQuery};
use super::configuration::{self, ConfigJson};
use super::problem::Problem;
use crate::host::namespaces::{NamespaceError, NamespaceInfo, ServerNamespaces, fitting};
use crate::host::owner_message::Reload;
use crate::host::reload;
use crate::store::{Fleet, NotDone, StoreError};
use jitney_api::authorization_rules::RightName;
use jitney_api::namespaces::{Access, Namespace, NamespaceList};
use jitney_base::rights::Right;
use jitney_broker::access::Authority;
use jitney_config::Namespace as Configured;

/// Lists the namespaces of the server. Only the operator may.
#[utoipa::path(get, path = "/api/v1/namespaces", operation_id = "list_namespaces", tag = "server",
    responses((status = 200, body = NamespaceList), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>) -> Answer {
    call.authorize_operator()?;
    let all = call.server.namespaces.all().into_iter();
    let namespaces = all.map(shown).collect();
    call.answer(StatusCode::OK, &NamespaceList { namespaces })
        .await
}

/// What a new namespace has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct MakeQuery {
    /// The name of the namespace in the body whose entities are made; it may be left out if the body has only one.
    from: Option<String>,
    /// Without effect.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Makes a namespace, in the shard with the fewest. The root key of the server is good in it, if there is one. With a
/// `Config.json` of the emulator as the body it has the entities of that: if one of them cannot be made, there is no namespace.
/// Only the operator may.
#[utoipa::path(put, path = "/api/v1/namespaces/{name}", operation_id = "create_namespace", tag = "server",
    params(("name" = String, Path, description = "Its name: letters, digits and hyphens"), MakeQuery),
    request_body = Option<ConfigJson>,
    responses((status = 201, body = Namespace), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn make(call: &Call<'_>, name: &str, body: Body) -> Answer {
    let query: MakeQuery = call.query()?;
    let authority = call.authorize_operator()?;
    let body = call.bytes(body).await?;
    let entities = if body.is_empty() {
        None
    } else {
        Some(entities_of(&body, name, query.from)?)
    };
    let made = match (&call.server.fleet, entities) {
        (None, entities) => make_here(call, name, entities, authority).await?,
        (Some(fleet), None) => make_in_store(fleet, name).await?,
        (Some(_), Some(_)) => {
            let text = "Servers share the namespaces: make it without a body, and then put its configuration.";
            return Err(Problem::new(StatusCode::CONFLICT, "not_allowed", text));
        }
    };
    call.answer(StatusCode::CREATED, &shown(made)).await
}

/// Returns the entities that a namespace is to have: those of the one in a configuration, or of the one with the name `from`.
fn entities_of(body: &[u8], name: &str, from: Option<String>) -> Result<Configured, Problem> {
    let (config, _) = configuration::parsed(body)?;
    let from = from.or_else(|| match config.namespaces.as_slice() {
        [only] => Some(only.name.clone()),
        _ => None,
    });
    configuration::chosen(config, name, from.as_deref())
}

/// Makes a namespace of this server, and the entities that it is to have.
async fn make_here(
    call: &Call<'_>,
    name: &str,
    entities: Option<Configured>,
    authority: Authority,
) -> Result<NamespaceInfo, Problem> {
    let namespaces = &call.server.namespaces;
    let made = namespaces.make(name, authority.clone()).await?;
    let Some(entities) = entities else {
        return Ok(made);
    };
    let reload = Reload {
        namespaces: vec![entities],
        new: Vec::new(),
        deleted: Vec::new(),
        keys: None,
        actor: authority.actor().clone(),
    };
    let owner = call.server.shards.owner_of(&made.name);
    let owner = owner.ok_or_else(Problem::stopping)?;
    let done = reload::apply(&owner, reload).await;
    let refused = done.ok_or_else(Problem::stopping)?.refused;
    if refused.is_empty() {
        return Ok(made);
    }
    namespaces.delete_one(&made.name, authority).await?;
    Err(Problem::bad_request(refused.join("\n")))
}

/// Deletes a namespace with all its entities and messages, and closes its connections. Only the operator may.
#[utoipa::path(delete, path = "/api/v1/namespaces/{name}", operation_id = "delete_namespace", tag = "server",
    params(("name" = String, Path, description = "Its name")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
        (status = "5XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn delete_one(call: &Call<'_>, name: &str) -> Answer {
    let authority = call.authorize_operator()?;
    let namespaces = &call.server.namespaces;
    match &call.server.fleet {
        Some(fleet) => delete_in_store(namespaces, fleet, name).await?,
        None => namespaces.delete_one(name, authority).await?,
    }
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Makes a namespace in the store that servers share, and returns once it is recorded: a server takes it within a second.
async fn make_in_store(fleet: &Fleet, name: &str) -> Result<NamespaceInfo, Problem> {
    let name = fitting(name)?;
    let made = fleet.make_namespace(&name).await;
    if !made.map_err(|error| of_store(&error))? {
        return Err(NamespaceError::Exists(name).into());
    }
    Ok(NamespaceInfo {
        name,
        shard: None,
        is_first: false,
        is_configured: false,
    })
}

/// Deletes a namespace of the store that servers share, and returns once all that it had is gone.
///
/// # Errors
///
/// It is still there, or it is in quarantine with a part of what it had.
async fn delete_in_store(
    namespaces: &ServerNamespaces,
    fleet: &Fleet,
    name: &str,
) -> Result<(), Problem> {
    let name = name.to_lowercase();
    namespaces.check_deletion(&name, NamespaceError::FirstOfStore)?;
    match fleet.remove_namespace(&name).await {
        Ok(()) => Ok(()),
        Err(NotDone::Unknown(name)) => Err(NamespaceError::Unknown(name).into()),
        Err(NotDone::Store(error)) => Err(of_store(&error)),
        Err(error) => Err(Problem::new(
            StatusCode::CONFLICT,
            "in_use",
            error.to_string(),
        )),
    }
}

fn of_store(error: &StoreError) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", error.to_string())
}

/// Says who the client is, and what it may do in the namespace.
#[utoipa::path(get, path = "/api/v1/access", operation_id = "get_access", tag = "server", params(NamespaceQuery),
    responses((status = 200, body = Access), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn access(call: &Call<'_>) -> Answer {
    let _: NamespaceQuery = call.query()?;
    let authority = call.authorize("").await?;
    let names = call.server.namespaces.all().into_iter();
    let is_operator = authority.is_operator();
    let prefix = call.prefix();
    let rights = [
        (Right::Send, RightName::Send),
        (Right::Listen, RightName::Listen),
        (Right::Manage, RightName::Manage),
    ];
    let may = |right| authority.check(&prefix, right).is_ok();
    let rights = rights.into_iter().filter(|(right, _)| may(*right));
    let access = Access {
        actor: authority.actor().name.clone(),
        operator: is_operator,
        rights: rights.map(|(_, name)| name).collect(),
        namespace: call.namespace(),
        namespaces: is_operator.then(|| names.map(|it| it.name).collect()),
        fleet: call.server.fleet.is_some(),
        open: call.server.is_open,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    call.answer(StatusCode::OK, &access).await
}

fn shown(info: NamespaceInfo) -> Namespace {
    Namespace {
        name: info.name,
        shard: info.shard,
        first: info.is_first,
        configured: info.is_configured,
    }
}

impl From<NamespaceError> for Problem {
    fn from(error: NamespaceError) -> Self {
        let (status, reason) = match &error {
            NamespaceError::Name(_) => (StatusCode::BAD_REQUEST, "argument"),
            NamespaceError::TooManyConnections => (StatusCode::TOO_MANY_REQUESTS, "limit"),
            NamespaceError::Exists(_) => (StatusCode::CONFLICT, "exists"),
            NamespaceError::Unknown(_) => (StatusCode::NOT_FOUND, "not_found"),
            NamespaceError::Configured(_)
            | NamespaceError::First(_)
            | NamespaceError::FirstOfStore(_) => (StatusCode::CONFLICT, "not_allowed"),
            NamespaceError::Busy(_) => (StatusCode::CONFLICT, "in_use"),
            NamespaceError::Denied(denied) => return denied.clone().into(),
            NamespaceError::Stopping => return Self::stopping(),
            NamespaceError::Record(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal"),
        };
        Self::new(status, reason, error.to_string())
    }
}
