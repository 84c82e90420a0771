//! Receives over HTTP that wait for a message.

use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call};
use super::entities::{limited, number};
use super::problem::Problem;
use jitney_api::receives::{Mode, Receive, Receives};
use jitney_base::ids::RequestId;
use jitney_gateway::admin::time;
use jitney_gateway::operations::{EndReceive, ListReceives, ReceiveView};
use jitney_queue::ReceiveMode;

/// Which receives a list has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReceivesQuery {
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

/// Lists the receives over HTTP of the namespace that wait for a message.
#[utoipa::path(get, path = "/api/v1/receives", operation_id = "list_receives", tag = "connections", params(ReceivesQuery),
    responses((status = 200, body = Receives), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>) -> Answer {
    let query: ReceivesQuery = call.query()?;
    let most = limited(query.limit)?;
    let after = query.after.as_deref().map(receive_id).transpose()?;
    let list = ListReceives { after, most };
    let found = call.fetch("", list).await?;
    let receives = found.receives.into_iter().map(receive_of).collect();
    let next_after = found.next_after.map(|next| next.0.to_string());
    let page = Receives {
        receives,
        next_after,
    };
    call.answer(StatusCode::OK, &page).await
}

/// Ends a receive over HTTP that waits for a message: it is answered with status 503. Its client may receive again.
#[utoipa::path(delete, path = "/api/v1/receives/{id}", operation_id = "end_receive", tag = "connections",
    params(("id" = u64, Path, description = "Its id")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn end(call: &Call<'_>, id: &str) -> Answer {
    let id = receive_id(id)?;
    call.fetch("", EndReceive(id)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn receive_id(text: &str) -> Result<RequestId, Problem> {
    let id = text.parse().map(RequestId);
    id.map_err(|_| Problem::bad_request(format!("'{text}' is no id of a receive.")))
}

fn receive_of(view: ReceiveView) -> Receive {
    Receive {
        id: view.id.0,
        entity: view.entity,
        mode: match view.mode {
            ReceiveMode::PeekLock => Mode::PeekLock,
            ReceiveMode::ReceiveAndDelete => Mode::ReceiveAndDelete,
        },
        client: view.client.name,
        peer: view.client.peer,
        host: view.host,
        began_at: time(view.began),
        waits_until: time(view.until),
    }
}
