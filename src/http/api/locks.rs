//! Messages that are locked by their numbers, and the settlement of locked messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::Body;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::call::{Answer, Call, Object, from_number};
use super::messages::Shown;
use super::page::Page;
use super::problem::Problem;
use super::selection::compile;
use super::sending::property_value;
use jitney_api::locks::{
    LockRequest, LockedMessage, Outcome, Received, SettlementResult, Settlements,
};
use jitney_api::messages::BodyShown;
use jitney_base::ids::{LockToken, SequenceNumber};
use jitney_broker::namespace::{Denied, Selection};
use jitney_gateway::operations::{LockMessages, SettleMessages};
use jitney_gateway::rest::uuid;
use jitney_message::Amendments;
use jitney_queue::{DeadLetter, Settlement};
use jitney_rules::hyphenated;

/// Locked messages to be settled.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SettleRequest {
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<SettlementRequest>)]
    settlements: Vec<Object<SettlementRequest>>,
}

/// How one message is settled.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SettlementRequest {
    #[schema(example = "8b1f6f0e-5a55-4f0c-9a3e-0c1c5a7e2f11")]
    lock_token: String,
    outcome: Outcome,
    /// Why it is dead-lettered.
    #[serde(default)]
    reason: Option<String>,
    /// More about that.
    #[serde(default)]
    description: Option<String>,
    /// Application-properties that are set; not of a message that is completed.
    #[serde(default)]
    properties: BTreeMap<String, serde_json::Value>,
}

/// Bytes of a locked message that is shown without its body and properties, at most.
const LOCKED_BYTES: usize = 2 * 1024;
/// Settlements in one request.
pub(super) const SETTLED_MAX: usize = 1_000;

/// Returns the numbers, if they are not too many.
pub(super) fn read_numbers(request: LockRequest) -> Result<Vec<SequenceNumber>, Problem> {
    let wanted = request.sequence_numbers;
    let max = jitney_gateway::limits::INSPECTED_MAX;
    if wanted.is_empty() || max < wanted.len() {
        let count = wanted.len();
        let text = format!("sequence_numbers has {count} entries; 1 to {max} are allowed.");
        return Err(Problem::wrong("sequence_numbers", text));
    }
    wanted
        .into_iter()
        .map(|number| from_number("sequence_numbers", number))
        .collect()
}

impl SettleRequest {
    /// Returns the settlements, if they are of different messages and not too many.
    pub(super) fn read(self) -> Result<Vec<(LockToken, Settlement)>, Problem> {
        let count = self.settlements.len();
        if count == 0 || SETTLED_MAX < count {
            let text = format!("settlements has {count} entries; 1 to {SETTLED_MAX} are allowed.");
            return Err(Problem::wrong("settlements", text));
        }
        let (mut settlements, mut seen) = (Vec::new(), BTreeSet::new());
        for (at, Object(settlement)) in self.settlements.into_iter().enumerate() {
            let read = settlement.read(&format!("settlements[{at}]"))?;
            if !seen.insert(read.0) {
                let field = format!("settlements[{at}].lock_token");
                let text = format!("{field}: another entry has it, too.");
                return Err(Problem::wrong(field, text));
            }
            settlements.push(read);
        }
        let weight: usize = settlements.iter().map(|(_, it)| it.size()).sum();
        if jitney_amqp::limits::DISPOSITION_BYTES_MAX < weight {
            let max = jitney_amqp::limits::DISPOSITION_BYTES_MAX;
            let text = format!(
                "The properties and texts of all settlements have more than {max} bytes: settle fewer at a time."
            );
            return Err(Problem::wrong("settlements", text));
        }
        Ok(settlements)
    }
}

/// Locks active or deferred messages by their numbers, and returns them: all of them, or none if one cannot be locked. The
/// locks last as long as those of receivers. A message that is not settled until then counts a failed delivery; a deferred one
/// stays deferred.
#[utoipa::path(post, path = "/api/v1/entities/{entity}/lock", operation_id = "lock_messages", tag = "messages", request_body = LockRequest,
    params(("entity" = String, Path, description = "The path of a queue or a subscription without message sessions, or of one of their sub-queues")),
    responses((status = 200, body = Received), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn lock(call: &Call<'_>, entity: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let request: LockRequest = call.json(body).await?;
    let numbers = read_numbers(request)?;
    // There is room for the tokens, and for a page of messages, before any is locked.
    call.reserve_sources(jitney_queue::limits::PEEK_BYTES_MAX)
        .await?;
    call.reserve(numbers.len() * LOCKED_BYTES).await?;
    let mut page = Page::begin(call, "messages").await?;
    let wanted = numbers.iter().map(|number| number.0).collect();
    let lock = LockMessages {
        path: entity.to_owned(),
        numbers,
    };
    let locked = call.request(authority.clone(), lock).await?;
    let tokens: BTreeMap<u64, LockToken> = locked
        .into_iter()
        .map(|(number, token)| (number.0, token))
        .collect();
    let selection = Selection {
        numbers: wanted,
        ..Selection::default()
    };
    let selector = compile(&selection, "")?;
    let shown = Shown {
        body: BodyShown::Full,
        encoded: true,
    };
    let bare = Shown {
        body: BodyShown::None,
        encoded: false,
    };
    let mut next = Some(SequenceNumber(0));
    let max = jitney_gateway::limits::INSPECTED_MAX;
    while let Some(from) = next {
        // What has no room is shown without its body: it is locked, and the client needs its token.
        let conditions = &selector.conditions;
        let inspected = call.inspect(&authority, entity, from, conditions, max);
        let (view, bodies) = match inspected.await {
            Err(problem) if problem.is_busy() => {
                let view = call.look(&authority, entity, from, conditions, max);
                (view.await?, Vec::new())
            }
            other => other?,
        };
        next = view.next;
        let messages = view
            .messages
            .iter()
            .zip(bodies.iter().map(Some).chain(std::iter::repeat(None)));
        for (message, bytes) in messages {
            let Some(token) = tokens.get(&message.inspected.number.0) else {
                continue;
            };
            let locked = |shown: Shown, bytes| LockedMessage {
                lock_token: hyphenated(token.to_uuid()),
                message: shown.of(message, bytes),
            };
            if page.is_full() || page.push(&locked(shown, bytes)).is_err() {
                page.add_room(LOCKED_BYTES);
                page.push(&locked(bare, None))?;
            }
        }
    }
    let messages = Vec::new();
    page.respond(&Received { messages })
}

/// Settles locked messages, whichever client has locked them. Each has a result of its own.
#[utoipa::path(post, path = "/api/v1/entities/{entity}/settle", operation_id = "settle_messages", tag = "messages", request_body = SettleRequest,
    params(("entity" = String, Path, description = "The path of a queue, a subscription, or one of their sub-queues")),
    responses((status = 200, body = Settlements), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn settle(call: &Call<'_>, entity: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let request: SettleRequest = call.json(body).await?;
    let settlements = request.read()?;
    let tokens: Vec<LockToken> = settlements.iter().map(|&(token, _)| token).collect();
    let path = entity.to_owned();
    let settle = SettleMessages { path, settlements };
    let results = call.request(authority, settle).await?;
    let results = tokens.into_iter().zip(results);
    let results = results.map(|(token, result)| result_of(token, result));
    let results = results.collect();
    call.answer(StatusCode::OK, &Settlements { results }).await
}

impl SettlementRequest {
    fn read(self, name: &str) -> Result<(LockToken, Settlement), Problem> {
        let wrong = |field: &str, why: &str| {
            let field = format!("{name}.{field}");
            let text = format!("{field}: {why}.");
            Problem::wrong(field, text)
        };
        let token = uuid(&self.lock_token).ok_or_else(|| {
            let why = format!("'{}' is no UUID", self.lock_token);
            wrong("lock_token", &why)
        })?;
        let mut changes = Amendments::default();
        for (property, value) in &self.properties {
            let read = property_value(name, property, value)?;
            let mut encoded = Vec::new();
            read.encode(&mut encoded);
            changes.set_encoded(property, encoded);
        }
        let is_dead = self.outcome == Outcome::DeadLetter;
        if !is_dead && (self.reason.is_some() || self.description.is_some()) {
            return Err(wrong(
                "reason",
                "only a message that is dead-lettered has one",
            ));
        }
        if self.outcome == Outcome::Complete && !self.properties.is_empty() {
            return Err(wrong("properties", "a completed message is removed"));
        }
        let changed = (!self.properties.is_empty()).then(|| Arc::new(changes.clone()));
        let settlement = match self.outcome {
            Outcome::Complete => Settlement::Complete,
            Outcome::Abandon => Settlement::Abandon(changed),
            Outcome::Defer => Settlement::Defer(changed),
            Outcome::DeadLetter => {
                let reason = DeadLetter {
                    reason: self.reason,
                    description: self.description,
                    amendments: changes,
                };
                Settlement::DeadLetter(Some(reason.amended()))
            }
        };
        Ok((LockToken::from_uuid(token), settlement))
    }
}

fn result_of(token: LockToken, result: Result<(), Denied>) -> SettlementResult {
    let denied = result.err();
    SettlementResult {
        lock_token: hyphenated(token.to_uuid()),
        settled: denied.is_none(),
        code: denied.as_ref().map(|denied| denied.kind.name().into()),
        detail: denied.map(|denied| denied.text),
    }
}
