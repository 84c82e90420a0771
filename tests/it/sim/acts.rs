//! What clients and operators do, in the form in which the auditor judges it and from which the
//! broker's inputs are made.

use std::collections::BTreeMap;

use bytes::Bytes;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, Target};
use jitney::amqp::{
    Attach, Condition, DeliveryId, Event, Fields, LinkId, LinkRole, LinkTarget, Outcome, Refusal,
    Rejection, SessionId, Value as AmqpValue,
};
use jitney::broker::Input;
use jitney::entity::LockToken;

use super::wire::{self, Draft, Value};

/// A queue, or its dead letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) queue: usize,
    pub(super) dead: bool,
}

/// A link of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinkKey {
    pub(super) connection: u32,
    pub(super) link: u32,
}

/// What a link is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkKind {
    /// Sends to a queue.
    Sender,
    /// Receives from a queue, and deletes at once if so.
    Receiver { delete: bool },
    /// Sends requests to the management node.
    Requests,
    /// Gets responses from it.
    Responses,
}

/// Something that happens to the broker.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Attach {
        at: LinkKey,
        place: Place,
        kind: LinkKind,
    },
    Close {
        connection: u32,
    },
    Credit {
        at: LinkKey,
        limit: u32,
        drain: bool,
    },
    Detach {
        at: LinkKey,
    },
    Request {
        at: LinkKey,
        id: String,
        /// The response link that is to have the answer; it may not be there.
        reply_to: String,
        ask: Ask,
    },
    Returned {
        at: LinkKey,
        token: LockToken,
    },
    Send {
        at: LinkKey,
        delivery: u32,
        drafts: Vec<Draft>,
        batch: bool,
        settled: bool,
    },
    Settle {
        at: LinkKey,
        delivery: u32,
        token: LockToken,
        settled: bool,
        verdict: Verdict,
    },
    Timeout,
    Written {
        at: LinkKey,
        bytes: u64,
    },
}

/// A management operation.
#[derive(Debug, Clone)]
pub(super) enum Ask {
    Cancel {
        numbers: Vec<i64>,
    },
    Deferred {
        numbers: Vec<i64>,
        delete: bool,
    },
    Dispose {
        tokens: Vec<LockToken>,
        verdict: Verdict,
    },
    Peek {
        from: i64,
        count: i32,
    },
    Purge {
        count: i32,
        before: i64,
    },
    Renew {
        tokens: Vec<LockToken>,
    },
    Schedule {
        drafts: Vec<Draft>,
    },
    Unknown,
}

/// What a receiver decides.
#[derive(Debug, Clone)]
pub(super) enum Verdict {
    Abandon(BTreeMap<String, String>),
    Complete,
    DeadLetter {
        reason: Option<String>,
        description: Option<String>,
        properties: BTreeMap<String, String>,
    },
    Defer(BTreeMap<String, String>),
    /// Over a link only.
    Release,
}

impl Place {
    pub(super) fn main(queue: usize) -> Self {
        Self { queue, dead: false }
    }

    pub(super) fn dead(queue: usize) -> Self {
        Self { queue, dead: true }
    }

    pub(super) fn address(self) -> String {
        let suffix = if self.dead { "/$DeadLetterQueue" } else { "" };
        format!("queue-{}{suffix}", self.queue)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.address())
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.queue, if self.dead { " dead" } else { "" })
    }
}

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.connection, self.link)
    }
}

impl LinkKey {
    /// Returns the name that requests use for a response link.
    pub(super) fn reply_to(self) -> String {
        format!("reply-{}-{}", self.connection, self.link)
    }
}

impl Act {
    /// Returns the input, and the connection that it comes from.
    pub(super) fn input(&self) -> Option<(u32, Input)> {
        let (at, event) = match self {
            Self::Timeout => return None,
            Self::Close { connection } => {
                let event = Event::Closed { error: None };
                return Some((*connection, Input::Event(event)));
            }
            Self::Returned { at, token } => {
                let (token, link) = (*token, LinkId(at.link));
                return Some((at.connection, Input::Returned { token, link }));
            }
            Self::Written { at, bytes } => {
                let (link, bytes) = (LinkId(at.link), *bytes);
                return Some((at.connection, Input::Written { link, bytes }));
            }
            Self::Attach { at, place, kind } => (at, attach(*at, *place, *kind)),
            Self::Credit { at, limit, drain } => {
                let (link, limit, drain) = (LinkId(at.link), *limit, *drain);
                (at, Event::Credit { link, limit, drain })
            }
            Self::Detach { at } => {
                let link = LinkId(at.link);
                (at, Event::Detached { link, error: None })
            }
            Self::Request {
                at,
                id,
                reply_to,
                ask,
            } => {
                let payload = ask.message(id, reply_to);
                (at, transfer(*at, 0, payload, false, false))
            }
            Self::Send {
                at,
                delivery,
                drafts,
                batch,
                settled,
            } => {
                let payload = if *batch {
                    wire::batch(drafts)
                } else {
                    drafts[0].encode()
                };
                (at, transfer(*at, *delivery, payload, *batch, *settled))
            }
            Self::Settle {
                at,
                delivery,
                token,
                settled,
                verdict,
            } => {
                let event = Event::Disposition {
                    link: LinkId(at.link),
                    delivery: DeliveryId(*delivery),
                    tag: token.to_tag(),
                    settled: *settled,
                    outcome: verdict.outcome(),
                    transaction: None,
                };
                (at, event)
            }
        };
        Some((at.connection, Input::Event(event)))
    }
}

fn transfer(at: LinkKey, delivery: u32, payload: Vec<u8>, batch: bool, settled: bool) -> Event {
    Event::Transfer {
        link: LinkId(at.link),
        delivery: DeliveryId(delivery),
        payload: Bytes::from(payload),
        message_format: if batch { 0x8001_3700 } else { 0 },
        settled,
        transaction: None,
    }
}

fn attach(at: LinkKey, place: Place, kind: LinkKind) -> Event {
    let (role, address, answers, snd_settle_mode) = match kind {
        LinkKind::Sender => (
            LinkRole::Incoming,
            place.address(),
            None,
            SenderSettleMode::Unsettled,
        ),
        LinkKind::Receiver { delete: false } => (
            LinkRole::Outgoing,
            place.address(),
            None,
            SenderSettleMode::Unsettled,
        ),
        LinkKind::Receiver { delete: true } => (
            LinkRole::Outgoing,
            place.address(),
            None,
            SenderSettleMode::Settled,
        ),
        LinkKind::Requests => (
            LinkRole::Incoming,
            format!("{place}/$management"),
            None,
            SenderSettleMode::Unsettled,
        ),
        LinkKind::Responses => (
            LinkRole::Outgoing,
            format!("{place}/$management"),
            Some(at.reply_to()),
            SenderSettleMode::Settled,
        ),
    };
    let (source, target) = match role {
        LinkRole::Incoming => (None, Some(address)),
        LinkRole::Outgoing => (Some(address), answers),
    };
    let source = source.map(|address| Source {
        address: Some(address),
        ..Source::default()
    });
    let target = target.map(|address| Target {
        address: Some(address),
        ..Target::default()
    });
    let attach = Attach {
        name: format!("link-{}-{}", at.connection, at.link),
        role,
        session: SessionId(0),
        source,
        target: LinkTarget::Node(target),
        snd_settle_mode,
        rcv_settle_mode: ReceiverSettleMode::Second,
        message_size_max: 0,
        properties: None,
    };
    Event::AttachRequested(LinkId(at.link), Box::new(attach))
}

impl Verdict {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Complete => Outcome::Accepted,
            Self::Release => Outcome::Released,
            Self::Abandon(properties) => modified(false, properties),
            Self::Defer(properties) => modified(true, properties),
            Self::DeadLetter {
                reason,
                description,
                properties,
            } => {
                let mut info = fields(properties);
                let texts = [
                    ("DeadLetterReason", reason),
                    ("DeadLetterErrorDescription", description),
                ];
                for (name, text) in texts {
                    if let Some(text) = text {
                        info.insert(name.into(), AmqpValue::String(text.clone()));
                    }
                }
                if info.is_empty() {
                    return Outcome::Rejected(None);
                }
                let refusal = Refusal {
                    condition: Condition::DeadLetter,
                    description: String::new(),
                };
                let info = Some(Box::new(info));
                Outcome::Rejected(Some(Box::new(Rejection { refusal, info })))
            }
        }
    }

    /// Returns the word of an update-disposition, and what goes with it.
    fn entries(&self) -> (&'static str, Vec<(&'static str, Value)>) {
        let modify = |properties: &BTreeMap<String, String>| {
            if properties.is_empty() {
                Vec::new()
            } else {
                vec![("properties-to-modify", wire::strings(properties))]
            }
        };
        match self {
            Self::Complete => ("completed", Vec::new()),
            Self::Abandon(properties) => ("abandoned", modify(properties)),
            Self::Defer(properties) => ("defered", modify(properties)),
            Self::DeadLetter {
                reason,
                description,
                properties,
            } => {
                let mut entries = modify(properties);
                let texts = [
                    ("deadletter-reason", reason),
                    ("deadletter-description", description),
                ];
                for (name, text) in texts {
                    if let Some(text) = text {
                        entries.push((name, Value::String(text.clone())));
                    }
                }
                ("suspended", entries)
            }
            Self::Release => unreachable!("the management node knows no release"),
        }
    }
}

fn modified(undeliverable_here: bool, properties: &BTreeMap<String, String>) -> Outcome {
    Outcome::Modified {
        delivery_failed: true,
        undeliverable_here,
        annotations: (!properties.is_empty()).then(|| Box::new(fields(properties))),
    }
}

fn fields(properties: &BTreeMap<String, String>) -> Fields {
    let mut fields = Fields::new();
    for (name, value) in properties {
        fields.insert(name.as_str().into(), AmqpValue::String(value.clone()));
    }
    fields
}

impl Ask {
    /// Returns the request as a message.
    pub(super) fn message(&self, id: &str, reply_to: &str) -> Vec<u8> {
        let (operation, body) = self.encode();
        wire::request(id, reply_to, operation, body)
    }

    fn encode(&self) -> (&'static str, Value) {
        let longs =
            |numbers: &[i64]| Value::Array(numbers.iter().map(|n| Value::Long(*n)).collect());
        let uuids = |tokens: &[LockToken]| {
            Value::Array(tokens.iter().map(|t| Value::Uuid(t.to_uuid())).collect())
        };
        match self {
            Self::Cancel { numbers } => (
                "com.microsoft:cancel-scheduled-message",
                wire::map(vec![("sequence-numbers", longs(numbers))]),
            ),
            Self::Deferred { numbers, delete } => (
                "com.microsoft:receive-by-sequence-number",
                wire::map(vec![
                    ("sequence-numbers", longs(numbers)),
                    ("receiver-settle-mode", Value::Uint(u32::from(!delete))),
                ]),
            ),
            Self::Dispose { tokens, verdict } => {
                let (word, mut entries) = verdict.entries();
                entries.push(("disposition-status", Value::String(word.to_owned())));
                entries.push(("lock-tokens", uuids(tokens)));
                ("com.microsoft:update-disposition", wire::map(entries))
            }
            Self::Peek { from, count } => (
                "com.microsoft:peek-message",
                wire::map(vec![
                    ("from-sequence-number", Value::Long(*from)),
                    ("message-count", Value::Int(*count)),
                ]),
            ),
            Self::Purge { count, before } => (
                "com.microsoft:batch-delete-messages",
                wire::map(vec![
                    ("message-count", Value::Int(*count)),
                    ("enqueued-time-utc", Value::Timestamp(*before)),
                ]),
            ),
            Self::Renew { tokens } => (
                "com.microsoft:renew-lock",
                wire::map(vec![("lock-tokens", uuids(tokens))]),
            ),
            Self::Schedule { drafts } => {
                let messages = drafts.iter().map(|draft| {
                    wire::map(vec![
                        ("message-id", Value::String(format!("m{}", draft.id))),
                        ("message", Value::Binary(draft.encode())),
                    ])
                });
                let messages = Value::List(messages.collect());
                (
                    "com.microsoft:schedule-message",
                    wire::map(vec![("messages", messages)]),
                )
            }
            Self::Unknown => ("com.microsoft:no-such-thing", wire::map(Vec::new())),
        }
    }
}
