//! Which messages are meant: the selection of lists, searches and jobs, and a count of what one selects.

use axum::body::Body;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::{Answer, Call, from_number};
use super::problem::Problem;
use crate::limits;
use jitney_base::time::{TICKS_PER_MILLI, Timestamp};
use jitney_broker::namespace::{Selection, Selector};
use jitney_gateway::admin::{parse_time, time};
use jitney_message::MessageState;

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// To be received, or locked.
    Active,
    /// Received by its number only.
    Deferred,
    /// Waits for its time.
    Scheduled,
}

/// Which messages.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MessageSelection {
    /// States; none means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) states: Vec<State>,
    /// Sequence numbers; none means all.
    #[schema(max_items = 1000)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) numbers: Vec<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    /// Enqueued at this time or later.
    #[schema(example = "2026-11-23T12:00:00Z")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) enqueued_from: Option<String>,
    /// Enqueued before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) enqueued_before: Option<String>,
    /// Scheduled for this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scheduled_from: Option<String>,
    /// Scheduled for a time before this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) scheduled_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) correlation_id: Option<String>,
    /// The reason of a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Those that have no reason of a dead letter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) without_reason: bool,
    /// The error description of a dead letter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// Those that have no error description of a dead letter.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) without_description: bool,
    /// A SQL filter over properties, as rules have.
    #[schema(example = "color = 'red'")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) filter: Option<String>,
    /// A text that the body contains, within its first MiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    /// A `JSONPath` [RFC 9535] that finds something in the body, which must be JSON of at most a MiB.
    #[schema(example = "$.order[?@.total > 100]")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) json_path: Option<String>,
}

/// A selection whose messages are counted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CountRequest {
    /// The path of a queue, a topic, a subscription, or one of their sub-queues.
    #[schema(example = "orders/$DeadLetterQueue")]
    entity: String,
    #[serde(default)]
    selection: MessageSelection,
    /// The first sequence number to look at: `next` of the answer before.
    #[serde(default)]
    from: u64,
}

/// Messages that a selection means.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(super) struct SelectionCount {
    messages: u64,
    /// Those of them that a receiver has locked: a job would leave them as they are.
    locked: u64,
    /// Bytes of all of them as their senders encoded them.
    size_bytes: u64,
    /// Messages that are not counted because evaluating `json_path` in their bodies takes too many steps: a job would leave
    /// them as they are.
    #[serde(skip_serializing_if = "is_zero")]
    undecided: u64,
    /// What `from` is to be to continue; without it, all were looked at. One answer looks at a bounded number of messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

/// Counts the messages that a job with this selection would change, as they are now. Nothing changes.
#[utoipa::path(post, path = "/api/v1/jobs/count", operation_id = "count_selection", tag = "jobs", request_body = CountRequest,
    responses((status = 200, body = SelectionCount), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn count(call: &Call<'_>, body: Body) -> Answer {
    let authority = call.authorize("").await?;
    let request: CountRequest = call.json(body).await?;
    let selection = request.selection.read("selection.")?;
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

/// Returns whether a count is left out of an answer.
#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the macro that serializes a field passes a reference"
)]
pub(super) const fn is_zero(count: &u64) -> bool {
    *count == 0
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

impl MessageSelection {
    /// Returns the form in which jobs have it. `prefix` is in front of the names of its fields.
    pub(super) fn read(self, prefix: &str) -> Result<Selection, Problem> {
        let at = |name: &str, text| instant(&format!("{prefix}{name}"), text);
        let max = i64::MAX.unsigned_abs();
        if let Some(number) = self.numbers.iter().find(|number| max < **number) {
            let field = format!("{prefix}numbers");
            let text = format!("{field} has {number}, which is too large; up to {max} is allowed.");
            return Err(Problem::wrong(field, text));
        }
        Ok(Selection {
            states: self.states.into_iter().map(Into::into).collect(),
            numbers: self.numbers,
            session_id: self.session_id,
            enqueued_from: at("enqueued_from", self.enqueued_from)?,
            enqueued_before: at("enqueued_before", self.enqueued_before)?,
            scheduled_from: at("scheduled_from", self.scheduled_from)?,
            scheduled_before: at("scheduled_before", self.scheduled_before)?,
            message_id: self.message_id,
            correlation_id: self.correlation_id,
            reason: self.reason,
            without_reason: self.without_reason,
            description: self.description,
            without_description: self.without_description,
            filter: self.filter,
            text: self.text,
            json_path: self.json_path,
        })
    }

    pub(super) fn of(selection: &Selection) -> Self {
        Self {
            states: selection
                .states
                .iter()
                .map(|state| (*state).into())
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
}

impl From<MessageState> for State {
    fn from(state: MessageState) -> Self {
        match state {
            MessageState::Active => Self::Active,
            MessageState::Deferred => Self::Deferred,
            MessageState::Scheduled => Self::Scheduled,
        }
    }
}

impl From<State> for MessageState {
    fn from(state: State) -> Self {
        match state {
            State::Active => Self::Active,
            State::Deferred => Self::Deferred,
            State::Scheduled => Self::Scheduled,
        }
    }
}
