//! The sentences of conditions.

use super::AttentionKind;
use super::conditions::{AttentionCondition, Detail, Limit, wide};
use crate::limits;
use crate::namespace::{ForwardingTarget, Lack, Namespaces, Room};
use jitney_base::address;
use jitney_base::ids::EntityId;
use jitney_queue::{Status, Stuck};

/// Characters of the reason of a job's failure that a sentence has.
const REASON_LENGTH_MAX: usize = 300;

/// Returns a number of things, as in `1 message` and `2 messages`.
fn counted(count: u64, thing: &str) -> String {
    let end = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{end}")
}

/// Returns the form of a verb behind a number.
fn verb<'a>(count: u64, one: &'a str, many: &'a str) -> &'a str {
    if count == 1 { one } else { many }
}

impl Namespaces {
    pub(super) fn attention_text(
        &self,
        entity: Option<EntityId>,
        condition: &AttentionCondition,
    ) -> String {
        let AttentionCondition {
            kind,
            count,
            detail,
            ..
        } = *condition;
        let messages = counted(count, "message");
        match kind {
            AttentionKind::MessagesRefused => self.refusal_text(),
            AttentionKind::RecentDeadLetters => recent_text(count, detail),
            AttentionKind::StuckReceiver => stuck_text(count, detail),
            AttentionKind::ForwardingFailed => {
                let target = self.target_text(entity);
                format!("{messages} could not be forwarded{target} in the last hour.")
            }
            AttentionKind::ForwardingBlocked => {
                let target = self.target_text(entity.map(EntityId::dead_letters));
                let letters = counted(count, "dead letter");
                let wait = verb(count, "waits", "wait");
                let them = verb(count, "it", "them");
                format!("{letters} {wait} to be forwarded{target}, which does not take {them}.")
            }
            AttentionKind::EntityFull => full_text(count, detail),
            AttentionKind::NamespaceNearLimit => near_limit_text(count, detail),
            AttentionKind::DisabledWithMessages => disabled_text(count, detail),
            AttentionKind::LocksExpire => locks_text(count, detail),
            AttentionKind::TransferDeadLetters => {
                let were = verb(count, "was", "were");
                format!("{messages} sent by way of the entity {were} refused by the target.")
            }
            AttentionKind::DeadLetters => {
                let letters = counted(count, "dead letter");
                let are = verb(count, "is", "are");
                format!("{letters} {are} there.")
            }
            AttentionKind::NoReceiver => {
                let wait = verb(count, "waits", "wait");
                format!("{messages} {wait}, and no receiver is attached.")
            }
            AttentionKind::OldLock => {
                let have = verb(count, "has", "have");
                let minutes = limits::ATTENTION_OLD_LOCK.as_millis() / 60_000;
                format!("{messages} {have} been locked for more than {minutes} minutes.")
            }
            AttentionKind::JobFailed | AttentionKind::JobSkipped => self.job_text(kind, detail),
        }
    }

    fn refusal_text(&self) -> String {
        let why = match self.room {
            Room::None(Lack::Disk) => "The broker's disk is full",
            Room::None(Lack::Memory) => "The broker's memory is full",
            Room::None(Lack::Store) | Room::Enough => "The broker cannot write to its store",
        };
        match self.figures.as_str() {
            "" => format!("{why}: messages are refused."),
            figures => format!("{why} ({figures}): messages are refused."),
        }
    }

    /// Returns the part of a sentence that names where a queue forwards to.
    fn target_text(&self, queue: Option<EntityId>) -> String {
        let node = queue.and_then(|id| self.node(id));
        match node.and_then(|node| node.forwards_to.as_ref()) {
            Some(ForwardingTarget::Entity(path)) => {
                format!(" to '{}'", address::without_namespace(path))
            }
            Some(ForwardingTarget::Subscriptions) => " to its subscriptions".to_owned(),
            None => String::new(),
        }
    }

    fn job_text(&self, kind: AttentionKind, detail: Detail) -> String {
        let Detail::Job { id, .. } = detail else {
            return String::new();
        };
        let Some((_, job)) = self.job(id) else {
            return format!("Job {} is forgotten.", id.0);
        };
        let cut = |text: &str| -> String { text.chars().take(REASON_LENGTH_MAX).collect() };
        if kind == AttentionKind::JobFailed {
            let error = cut(job.error.as_deref().unwrap_or("no reason is known"));
            return format!("Job {} failed: {error}", id.0);
        }
        let left = counted(job.skipped, "message");
        match job.last_skipped.as_deref() {
            Some(why) => format!(
                "Job {} left {left} unchanged; the last one: {}",
                id.0,
                cut(why)
            ),
            None => format!("Job {} left {left} unchanged.", id.0),
        }
    }
}

fn recent_text(count: u64, detail: Detail) -> String {
    let all = if let Detail::DeadLetters(all) = detail {
        wide(all)
    } else {
        count
    };
    let (messages, there) = (counted(count, "message"), counted(all, "dead letter"));
    let (were, are) = (verb(count, "was", "were"), verb(all, "is", "are"));
    format!("{messages} {were} dead-lettered in the last hour; {there} {are} there.")
}

fn full_text(percent: u64, detail: Detail) -> String {
    let Detail::Bytes { held, max } = detail else {
        return format!("{percent} % of the entity's size is used.");
    };
    let (held, max) = (mebibytes(held), mebibytes(max));
    format!("The entity holds {held} MiB, {percent} % of its {max} MiB.")
}

fn near_limit_text(percent: u64, detail: Detail) -> String {
    if let Detail::Limit(Limit::Entities) = detail {
        format!("The namespace has {percent} % of the entities that it may have.")
    } else {
        format!("{percent} % of the memory that the namespace may use is in use.")
    }
}

fn locks_text(count: u64, detail: Detail) -> String {
    let completed = if let Detail::Completed(completed) = detail {
        completed
    } else {
        0
    };
    let locks = counted(count, "lock");
    let were = verb(completed, "was", "were");
    let completed = counted(completed, "message");
    format!(
        "{locks} ended in the last hour before the message was settled; {completed} {were} completed."
    )
}

fn stuck_text(waiting: u64, detail: Detail) -> String {
    let wait = format!(
        "{} {} for it",
        counted(waiting, "message"),
        verb(waiting, "waits", "wait")
    );
    if let Detail::Receiver {
        stuck: Stuck::Holding,
        locked,
        ..
    } = detail
    {
        let locked = counted(wide(locked), "message");
        return format!("The receiver has {locked} locked and settles none; {wait}.");
    }
    format!("The receiver takes no message; {wait}.")
}

fn disabled_text(waiting: u64, detail: Detail) -> String {
    let what = if let Detail::Status(Status::ReceiveDisabled) = detail {
        "Receiving is disabled"
    } else if let Detail::Status(Status::SendDisabled) = detail {
        "Sending is disabled"
    } else {
        "The entity is disabled"
    };
    let wait = verb(waiting, "waits", "wait");
    format!("{what}, and {} {wait}.", counted(waiting, "message"))
}

const fn mebibytes(bytes: u64) -> u64 {
    bytes / (1024 * 1024)
}
