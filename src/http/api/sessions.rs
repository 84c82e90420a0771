//! Message sessions.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::entities::{limited, number};
use super::messages::lock_of;
use super::problem::Problem;
use jitney_api::sessions::{Session, SessionStateRequest, Sessions};
use jitney_gateway::operations::{
    ListSessions, ReadSession, SessionAndState, SessionView, SetSessionState,
};

/// Which message sessions a list has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionsQuery {
    /// Those behind this id.
    after: Option<String>,
    /// As many at most, 100 if it is not given.
    #[param(minimum = 1, maximum = 100)]
    #[serde(default, deserialize_with = "number")]
    limit: Option<usize>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Lists message sessions that have messages or a state.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/sessions", operation_id = "list_sessions", tag = "sessions",
    params(("entity" = String, Path, description = "The path of a queue or a subscription"), SessionsQuery),
    responses((status = 200, body = Sessions), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>, entity: &str) -> Answer {
    let query: SessionsQuery = call.query()?;
    let most = limited(query.limit)?;
    let (path, after) = (entity.to_owned(), query.after);
    let list = ListSessions { path, after, most };
    let page = call.fetch(entity, list).await?;
    let sessions = page.sessions.iter();
    let sessions = sessions.map(|view| session_of(view, None)).collect();
    let next_after = page.next_after;
    call.answer(
        StatusCode::OK,
        &Sessions {
            sessions,
            next_after,
        },
    )
    .await
}

/// Returns a message session with its state.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/sessions/{id}", operation_id = "get_session", tag = "sessions",
    params(("entity" = String, Path, description = "The path of a queue or a subscription"), ("id" = String, Path, description = "Its id")),
    responses((status = 200, body = Session), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>, entity: &str, id: &str) -> Answer {
    let (path, id) = (entity.to_owned(), id.to_owned());
    let read = ReadSession { path, id };
    let SessionAndState { session, state } = call.fetch(entity, read).await?;
    // The state is in memory anyway; its base64 is there as a text, and in the answer.
    let length = state.as_ref().map_or(0, bytes::Bytes::len);
    call.reserve(length.div_ceil(3) * 4).await?;
    let shown = session_of(&session, state.as_deref());
    call.answer(StatusCode::OK, &shown).await
}

/// Sets or clears the state of a message session, also while a receiver holds it.
#[utoipa::path(put, path = "/api/v1/entities/{entity}/sessions/{id}", operation_id = "set_session_state", tag = "sessions", request_body = SessionStateRequest,
    params(("entity" = String, Path, description = "The path of a queue or a subscription"), ("id" = String, Path, description = "Its id")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn put(call: &Call<'_>, entity: &str, id: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let request: SessionStateRequest = call.json(body).await?;
    let state = request
        .state_base64
        .map(|text| STANDARD.decode(text))
        .transpose();
    let state =
        state.map_err(|error| Problem::wrong("state_base64", format!("state_base64: {error}.")))?;
    let (path, id) = (entity.to_owned(), id.to_owned());
    call.request(authority, SetSessionState { path, id, state })
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn session_of(view: &SessionView, state: Option<&[u8]>) -> Session {
    let lock = view.holder.as_ref();
    Session {
        id: view.id.clone(),
        messages: view.inspected.messages,
        state_bytes: view.inspected.state_bytes,
        lock: lock.map(|(holder, until)| lock_of(*until, Some(holder))),
        state_base64: state.map(|state| STANDARD.encode(state)),
    }
}
