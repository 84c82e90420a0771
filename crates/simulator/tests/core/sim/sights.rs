//! What the broker tells, as its client reads it.

use bytes::Bytes;
use jitney_amqp::{Accept, LinkId, Outcome, Refusal, Value as AmqpValue};
use jitney_base::ids::ConnectionId;
use jitney_base::ids::{BodyRef, LockToken};
use jitney_broker::namespace::Denied;
use jitney_gateway::messages::{HandedOut, ReceiveOutcome, ReceiveReply};
use jitney_gateway::{QueuedReply, Reply, StepReply};
use jitney_queue::{Handover, ReceiveMode};
use jitney_shard::{Outgoing, ReceiveAnswer, RequestId};

use super::acts::LinkKey;
use super::audit::ClientObservation;
use super::receives::NO_CONNECTION;
use super::wire::{read_answer, read_message};

/// Reads what a step tells as its client will.
pub(super) fn told(
    reply: &StepReply,
    body: &impl Fn(BodyRef) -> Result<Bytes, String>,
) -> Result<ClientObservation, String> {
    match reply {
        StepReply::Connection(routed) => look(routed, body),
        StepReply::Receive(ReceiveReply {
            request, outcome, ..
        }) => match outcome {
            ReceiveOutcome::Message(handed_out) => handed_to(*request, handed_out, body),
            ReceiveOutcome::Nothing => Ok(ClientObservation::Drained(receive(*request), 1)),
            ReceiveOutcome::Refused(denied) => Ok(refused_for(*request, denied)),
        },
    }
}

/// Reads the message that a receive was handed.
pub(super) fn handed_to(
    request: RequestId,
    handed_out: &HandedOut,
    body: &impl Fn(BodyRef) -> Result<Bytes, String>,
) -> Result<ClientObservation, String> {
    let handover = &handed_out.handover;
    delivered(receive(request), handover, &body(handover.body)?)
}

/// Reads the answer to a receive.
pub(super) fn answer_of(
    request: RequestId,
    answer: &ReceiveAnswer,
) -> Result<ClientObservation, String> {
    match answer {
        ReceiveAnswer::Message(message) => {
            let handover = &message.handed_out.handover;
            delivered(receive(request), handover, &message.bytes)
        }
        ReceiveAnswer::Nothing => Ok(ClientObservation::Drained(receive(request), 1)),
        ReceiveAnswer::Refused(denied) => Ok(refused_for(request, denied)),
    }
}

fn refused_for(request: RequestId, denied: &Denied) -> ClientObservation {
    let condition = jitney_gateway::denied::condition(denied.kind);
    ClientObservation::Refused(receive(request), condition.as_str().to_owned())
}

/// Returns what stands for the link of a receive.
pub(super) fn receive(request: RequestId) -> LinkKey {
    LinkKey {
        connection: NO_CONNECTION,
        link: u32::try_from(request.0).expect("few"),
    }
}

/// Reads a reply as its client will.
pub(super) fn look(
    routed: &QueuedReply,
    body: &impl Fn(BodyRef) -> Result<Bytes, String>,
) -> Result<ClientObservation, String> {
    let id = routed.connection;
    match &routed.reply {
        Reply::Deliver(link, handover) => delivered(at(id, *link), handover, &body(handover.body)?),
        Reply::Respond(link, response) => {
            let bodies: Result<Vec<Bytes>, String> = response.bodies().map(body).collect();
            let answer = read_answer(&response.encode(&bodies?))?;
            Ok(ClientObservation::Answered(at(id, *link), answer))
        }
        reply => look_at(id, reply),
    }
}

/// Reads what has left for a client.
pub(super) fn sent(id: ConnectionId, outgoing: &Outgoing) -> Result<ClientObservation, String> {
    match outgoing {
        Outgoing::Deliver(link, handover, body) => delivered(at(id, *link), handover, body),
        Outgoing::Respond(link, response, bodies) => {
            let answer = read_answer(&response.encode(bodies))?;
            Ok(ClientObservation::Answered(at(id, *link), answer))
        }
        Outgoing::Reply(reply) => look_at(id, reply),
        Outgoing::Close(refusal) => Err(format!("{id:?} is closed: {refusal:?}")),
    }
}

fn at(id: ConnectionId, link: LinkId) -> LinkKey {
    LinkKey {
        connection: id.0,
        link: link.0,
    }
}

fn delivered(at: LinkKey, handover: &Handover, body: &Bytes) -> Result<ClientObservation, String> {
    let mut rendered = Vec::new();
    jitney_message::render(&mut rendered, body, &handover.stamps);
    Ok(ClientObservation::Delivered {
        at,
        token: handover.token,
        delete: handover.mode == ReceiveMode::ReceiveAndDelete,
        seen: read_message(&rendered)?,
    })
}

fn look_at(id: ConnectionId, reply: &Reply) -> Result<ClientObservation, String> {
    let at = |link: LinkId| at(id, link);
    Ok(match reply {
        Reply::AcceptLink(link, accept) => ClientObservation::Accepted(at(*link), grant(accept)?),
        Reply::RefuseLink(link, denied) => ClientObservation::Refused(
            at(*link),
            jitney_gateway::denied::condition(denied.kind)
                .as_str()
                .to_owned(),
        ),
        Reply::Detach(link, denied) => ClientObservation::Detached(
            at(*link),
            jitney_gateway::denied::condition(denied.kind)
                .as_str()
                .to_owned(),
        ),
        Reply::Drained(link, limit) => ClientObservation::Drained(at(*link), *limit),
        Reply::ReturnCredit(link) => ClientObservation::CreditReturned(at(*link)),
        Reply::SettleIncoming {
            link,
            delivery,
            outcome,
            ..
        } => {
            let (at, delivery) = (at(*link), delivery.0);
            match outcome {
                Outcome::Accepted => ClientObservation::SettledIncoming(at, delivery, Ok(())),
                Outcome::Declared(id) => ClientObservation::Declared(at, delivery, id.to_vec()),
                Outcome::InTransaction(id, inner) if **inner == Outcome::Accepted => {
                    ClientObservation::TakenWithin(at, delivery, id.to_vec())
                }
                other => ClientObservation::SettledIncoming(at, delivery, Err(refused(other))),
            }
        }
        Reply::SettleOutgoing(link, delivery, outcome) => {
            let (at, delivery) = (at(*link), delivery.0);
            match (outcome, settlement(outcome)) {
                (_, Some(name)) => ClientObservation::SettledOutgoing(at, delivery, Ok(name)),
                (Outcome::InTransaction(id, inner), _) => match settlement(inner) {
                    Some(name) => ClientObservation::SettledWithin(at, delivery, id.to_vec(), name),
                    None => return Err(format!("{inner:?} in a transaction")),
                },
                (other, None) => {
                    ClientObservation::SettledOutgoing(at, delivery, Err(refused(other)))
                }
            }
        }
        Reply::Deliver(..)
        | Reply::Respond(..)
        | Reply::Close(_)
        | Reply::Authenticated(_)
        | Reply::Admitted => return Err(format!("nobody asked for {reply:?}")),
    })
}

/// The bytes of an answer, and whose it is.
pub(super) fn answered(routed: &QueuedReply) -> Option<(ConnectionId, u64)> {
    match &routed.reply {
        Reply::Respond(_, response) => Some((routed.connection, response.bytes())),
        _ => None,
    }
}

/// The year 1970 in ticks of 100 nanoseconds since the year 1 (`receiving.md#session-filter`).
const EPOCH: i64 = 621_355_968_000_000_000;

/// Reads which message session a link is let in to, and until when.
fn grant(accept: &Accept) -> Result<Option<(String, i64)>, String> {
    let Some(name) = &accept.message_session else {
        return Ok(None);
    };
    let properties = accept.properties.iter().flat_map(|fields| fields.iter());
    let mut until = properties.filter(|(key, _)| key.as_str() == "com.microsoft:locked-until-utc");
    match until.next() {
        Some((_, AmqpValue::Long(ticks))) => Ok(Some((name.clone(), (ticks - EPOCH) / 10_000))),
        other => Err(format!("the session {name} is locked until {other:?}")),
    }
}

/// Returns what the outcome of a decision is called, if it was carried out.
fn settlement(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Accepted => Some("accepted"),
        Outcome::Released => Some("released"),
        Outcome::Modified {
            undeliverable_here: true,
            ..
        } => Some("modified, undeliverable here"),
        Outcome::Modified { .. } => Some("modified"),
        Outcome::Rejected(None) => Some("rejected"),
        Outcome::Rejected(Some(_)) | Outcome::Declared(_) | Outcome::InTransaction(..) => None,
    }
}

fn condition(refusal: &Refusal) -> String {
    refusal.condition.as_str().to_owned()
}

fn refused(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rejected(Some(rejection)) => condition(&rejection.refusal),
        other => format!("{other:?}"),
    }
}

/// Returns whether there is no frame for what has left, or need not be one: its sender wants no answer, or has credit enough.
pub(super) fn is_silent(outgoing: &Outgoing) -> bool {
    let Outgoing::Reply(reply) = outgoing else {
        return false;
    };
    matches!(
        reply,
        Reply::SettleIncoming { settled: true, .. } | Reply::ReturnCredit(_)
    )
}

/// Returns the link that something is told about.
pub(super) fn at_of(sight: &ClientObservation) -> LinkKey {
    match sight {
        ClientObservation::Accepted(at, ..)
        | ClientObservation::Answered(at, ..)
        | ClientObservation::CreditReturned(at)
        | ClientObservation::Delivered { at, .. }
        | ClientObservation::Declared(at, ..)
        | ClientObservation::Detached(at, ..)
        | ClientObservation::Drained(at, ..)
        | ClientObservation::Refused(at, ..)
        | ClientObservation::SettledIncoming(at, ..)
        | ClientObservation::SettledOutgoing(at, ..)
        | ClientObservation::SettledWithin(at, ..)
        | ClientObservation::TakenWithin(at, ..) => *at,
    }
}

/// Returns the lock of a message whose receiver is to settle it.
pub(super) fn token_of(sight: &ClientObservation) -> Option<LockToken> {
    match sight {
        ClientObservation::Delivered {
            token,
            delete: false,
            ..
        } => Some(*token),
        _ => None,
    }
}
