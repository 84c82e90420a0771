//! Which messages are meant: the selection of lists, searches and jobs, and a count of what one selects.

use axum::body::Body;
use axum::http::StatusCode;

use super::call::{Answer, Call, from_number};
use super::problem::Problem;
use crate::limits;
use jitney_api::selection::{CountRequest, MessageSelection, SelectionCount, State};
use jitney_base::time::{TICKS_PER_MILLI, Timestamp};
use jitney_broker::namespace::{Selection, Selector};
use jitney_gateway::admin::{parse_time, time};
use jitney_message::MessageState;

/// Counts the messages that a job with this selection would change, as they are now. Nothing changes.
#[utoipa::path(post, path = "/api/v1/jobs/count", operation_id = "count_selection", tag = "jobs", request_body = CountRequest,
    responses((status = 200, body = SelectionCount), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn count(call: &Call<'_>, body: Body) -> Answer {
    let authority = call.authorize("").await?;
    let request: CountRequest = call.json(body).await?;
    let selection = read_selection(request.selection, "selection.")?;
    let selector = compile(&selection, "selection.")?;
    let mut search = call.search(selector)?;
    let mut counted = SelectionCount {
        next: Some(request.from),
        ..SelectionCount::default()
    };
    for _ in 0..limits::SEARCHED_PAGES {
        let Some(from) = counted.next.filter(|_| !search.is_over()) else {
            break;
        };
        let (from, conditions) = (from_number("from", from)?, &search.selector().conditions);
        let (entity, most) = (&request.entity, jitney_gateway::limits::INSPECTED_MAX);
        let (view, bodies) = if search.selector().needs_bytes() {
            call.inspect(&authority, entity, from, conditions, most)
                .await?
        } else {
            let view = call.look(&authority, entity, from, conditions, most);
            (view.await?, Vec::new())
        };
        let chosen = search.choose(view, bodies).await?;
        counted.next = chosen.next.map(|next| next.0);
        counted.undecided += u64::try_from(chosen.undecided.len()).unwrap_or(u64::MAX);
        for message in chosen.messages {
            counted.messages += 1;
            counted.locked += u64::from(message.view.inspected.is_locked);
            counted.size_bytes += u64::from(message.view.inspected.body.length);
        }
    }
    call.answer(StatusCode::OK, &counted).await
}

/// Compiles a selection; `prefix` is in front of the names of its fields.
pub(super) fn compile(selection: &Selection, prefix: &str) -> Result<Selector, Problem> {
    let compiled = selection.compile();
    compiled
        .map_err(|error| Problem::wrong(format!("{prefix}{}", error.field()), format!("{error}.")))
}

/// Reads a time.
pub(super) fn instant(name: &str, text: Option<String>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else {
        return Ok(None);
    };
    let ticks = parse_time(&text);
    let at = ticks.map(|ticks| Timestamp::from_millis(ticks.div_euclid(TICKS_PER_MILLI)));
    at.map(Some).ok_or_else(|| {
        let text = format!("{name} is '{text}'; a time such as 2026-11-23T12:00:00Z is allowed.");
        Problem::wrong(name, text)
    })
}

/// Returns the form in which jobs have it. `prefix` is in front of the names of its fields.
pub(super) fn read_selection(
    selection: MessageSelection,
    prefix: &str,
) -> Result<Selection, Problem> {
    let at = |name: &str, text| instant(&format!("{prefix}{name}"), text);
    let max = i64::MAX.unsigned_abs();
    if let Some(number) = selection.numbers.iter().find(|number| max < **number) {
        let field = format!("{prefix}numbers");
        let text = format!("{field} has {number}, which is too large; up to {max} is allowed.");
        return Err(Problem::wrong(field, text));
    }
    Ok(Selection {
        states: selection.states.into_iter().map(read_state).collect(),
        numbers: selection.numbers,
        session_id: selection.session_id,
        enqueued_from: at("enqueued_from", selection.enqueued_from)?,
        enqueued_before: at("enqueued_before", selection.enqueued_before)?,
        scheduled_from: at("scheduled_from", selection.scheduled_from)?,
        scheduled_before: at("scheduled_before", selection.scheduled_before)?,
        message_id: selection.message_id,
        correlation_id: selection.correlation_id,
        reason: selection.reason,
        without_reason: selection.without_reason,
        description: selection.description,
        without_description: selection.without_description,
        filter: selection.filter,
        text: selection.text,
        json_path: selection.json_path,
    })
}

pub(super) fn selection_of(selection: &Selection) -> MessageSelection {
    MessageSelection {
        states: selection
            .states
            .iter()
            .map(|state| state_of(*state))
            .collect(),
        numbers: selection.numbers.clone(),
        session_id: selection.session_id.clone(),
        enqueued_from: selection.enqueued_from.map(time),
        enqueued_before: selection.enqueued_before.map(time),
        scheduled_from: selection.scheduled_from.map(time),
        scheduled_before: selection.scheduled_before.map(time),
        message_id: selection.message_id.clone(),
        correlation_id: selection.correlation_id.clone(),
        reason: selection.reason.clone(),
        without_reason: selection.without_reason,
        description: selection.description.clone(),
        without_description: selection.without_description,
        filter: selection.filter.clone(),
        text: selection.text.clone(),
        json_path: selection.json_path.clone(),
    }
}

pub(super) const fn state_of(state: MessageState) -> State {
    match state {
        MessageState::Active => State::Active,
        MessageState::Deferred => State::Deferred,
        MessageState::Scheduled => State::Scheduled,
    }
}

const fn read_state(state: State) -> MessageState {
    match state {
        State::Active => MessageState::Active,
        State::Deferred => MessageState::Deferred,
        State::Scheduled => MessageState::Scheduled,
    }
}
