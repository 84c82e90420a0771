//! What clients and operators do, in the form in which the auditor judges it and from which the
//! broker's inputs are made.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{FilterSet, Source, Target};
use jitney_amqp::{
    Attach, Condition, DeliveryId, EncodedFields, Event, Fields, IncomingDisposition,
    IncomingTransfer, LinkCredit, LinkId, LinkRole, LinkTarget, Outcome, Refusal, Rejection,
    SessionId, Value as AmqpValue,
};
use jitney_base::ids::LockToken;
use jitney_gateway::Report;

use super::wire::{self, Draft, Value};

/// One of the queues of an entity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) queue: usize,
    pub(super) part: Part,
}

/// What a queue is to its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Main,
    Dead,
    /// What could not be forwarded.
    Transfer,
}

/// A message session, by a number that is its name.
pub(super) type Session = u8;

/// Message sessions that there may be.
pub(super) const SESSIONS: Session = 4;

/// Which message session a receiver wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Named(Session),
    /// Any that is free, within so many milliseconds.
    Next(u32),
}

/// Returns what a message session is called.
pub(super) fn session_name(session: Session) -> String {
    format!("s{session}")
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
    Receiver { delete: bool, wish: Option<Wish> },
    /// Sends requests to the management node.
    Requests,
    /// Gets responses from it.
    Responses,
    /// Declares and discharges transactions.
    Coordinator,
}

/// What a transaction is called.
pub(super) type TransactionId = Vec<u8>;

/// Something that happens to the broker.
#[derive(Debug, Clone)]
pub(super) enum ClientAction {
    Attach {
        at: LinkKey,
        place: Place,
        kind: LinkKind,
    },
    Close {
        connection: u32,
        /// What was still to be delivered to it, of each link in the order in which it was told: it is free
        /// again.
        unsent: Vec<(LinkKey, Place, LockToken)>,
        /// What the client's window kept back, or its not reading: it is free again before that.
        kept: Vec<(LinkKey, LockToken)>,
    },
    Credit {
        at: LinkKey,
        limit: u32,
        drain: bool,
    },
    Declare {
        at: LinkKey,
        delivery: u32,
    },
    Detach {
        at: LinkKey,
        /// What the client's window kept back: it is free again.
        kept: Vec<LockToken>,
    },
    Discharge {
        at: LinkKey,
        delivery: u32,
        id: TransactionId,
        fail: bool,
    },
    Request {
        at: LinkKey,
        id: String,
        /// The response link that is to have the answer; it may not be there.
        reply_to: String,
        /// The link that it is about.
        about: Option<LinkKey>,
        transaction: Option<TransactionId>,
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
        transaction: Option<TransactionId>,
    },
    Settle {
        at: LinkKey,
        delivery: u32,
        token: LockToken,
        settled: bool,
        verdict: Verdict,
        transaction: Option<TransactionId>,
    },
    /// What a client's window kept back of a link that the broker has ended is free again.
    Unsent {
        at: LinkKey,
        tokens: Vec<LockToken>,
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
        session: Option<Session>,
    },
    Dispose {
        tokens: Vec<LockToken>,
        verdict: Verdict,
    },
    GetState {
        session: Session,
    },
    ListSessions {
        skip: i32,
        top: i32,
        /// Those whose state was set after it, or those in use.
        since: Option<i64>,
    },
    Peek {
        from: i64,
        count: i32,
        session: Option<Session>,
    },
    Purge {
        count: i32,
        before: i64,
        session: Option<Session>,
    },
    Renew {
        tokens: Vec<LockToken>,
    },
    RenewSession {
        session: Session,
    },
    Schedule {
        drafts: Vec<Draft>,
    },
    SetState {
        session: Session,
        state: Option<Vec<u8>>,
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
        Self {
            queue,
            part: Part::Main,
        }
    }

    pub(super) fn dead(queue: usize) -> Self {
        Self {
            queue,
            part: Part::Dead,
        }
    }

    pub(super) fn all(queue: usize) -> [Self; 3] {
        [Part::Main, Part::Dead, Part::Transfer].map(|part| Self { queue, part })
    }

    pub(super) fn is_dead(self) -> bool {
        self.part != Part::Main
    }

    pub(super) fn address(self, paths: &[String]) -> String {
        let suffix = match self.part {
            Part::Main => "",
            Part::Dead => "/$DeadLetterQueue",
            Part::Transfer => "/$Transfer/$DeadLetterQueue",
        };
        let path = paths.get(self.queue).map_or("nowhere", String::as_str);
        format!("{path}{suffix}")
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.queue, self.part)
    }
}

impl std::fmt::Debug for LinkKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.connection, self.link)
    }
}

impl LinkKey {
    pub(super) fn name(self) -> String {
        format!("link-{}-{}", self.connection, self.link)
    }

    /// Returns the name that requests use for a response link.
    pub(super) fn reply_to(self) -> String {
        format!("reply-{}-{}", self.connection, self.link)
    }
}

impl ClientAction {
    /// Returns the connection that it comes from.
    pub(super) fn connection(&self) -> Option<u32> {
        match self {
            Self::Timeout => None,
            Self::Close { connection, .. } => Some(*connection),
            Self::Attach { at, .. }
            | Self::Credit { at, .. }
            | Self::Declare { at, .. }
            | Self::Detach { at, .. }
            | Self::Discharge { at, .. }
            | Self::Request { at, .. }
            | Self::Returned { at, .. }
            | Self::Send { at, .. }
            | Self::Settle { at, .. }
            | Self::Unsent { at, .. }
            | Self::Written { at, .. } => Some(at.connection),
        }
    }

    /// Returns the input, and the connection that it comes from; entities have these paths.
    pub(super) fn input(&self, paths: &[String]) -> Option<(u32, Report)> {
        let (at, event) = match self {
            Self::Timeout => return None,
            Self::Close { connection, .. } => {
                let event = Event::Closed {
                    error: None,
                    unsent: Vec::new(),
                };
                return Some((*connection, Report::Event(event)));
            }
            Self::Returned { at, token } => {
                let (token, link) = (*token, LinkId(at.link));
                return Some((at.connection, Report::Returned { token, link }));
            }
            Self::Unsent { at, tokens } => {
                let (link, tags) = (LinkId(at.link), tokens.iter().map(|it| it.to_tag()));
                let tags = tags.collect();
                return Some((at.connection, Report::Event(Event::Unsent { link, tags })));
            }
            Self::Written { at, bytes } => {
                let (link, bytes) = (LinkId(at.link), *bytes);
                return Some((at.connection, Report::Written { link, bytes }));
            }
            Self::Attach { at, place, kind } => {
                let address = place.address(paths);
                (at, attach(*at, address, *kind))
            }
            Self::Credit { at, limit, drain } => {
                let (link, limit, drain) = (LinkId(at.link), *limit, *drain);
                (at, Event::Credit(LinkCredit { link, limit, drain }))
            }
            Self::Detach { at, .. } => {
                let link = LinkId(at.link);
                (
                    at,
                    Event::Detached {
                        link,
                        error: None,
                        unsent: Vec::new(),
                    },
                )
            }
            Self::Request {
                at,
                id,
                reply_to,
                about,
                transaction,
                ask,
            } => {
                let payload = ask.message(id, reply_to, *about);
                (at, message(*at, 0, payload, transaction.as_ref()))
            }
            Self::Declare { at, delivery } => (at, message(*at, *delivery, wire::declare(), None)),
            Self::Discharge {
                at,
                delivery,
                id,
                fail,
            } => {
                let payload = if *fail {
                    wire::roll_back(id)
                } else {
                    wire::commit(id)
                };
                (at, message(*at, *delivery, payload, None))
            }
            Self::Send {
                at,
                delivery,
                drafts,
                batch,
                settled,
                transaction,
            } => {
                let (payload, message_format) = if *batch {
                    (wire::batch(drafts), 0x8001_3700)
                } else {
                    (drafts[0].encode(), 0)
                };
                let event = Event::Transfer(IncomingTransfer {
                    link: LinkId(at.link),
                    delivery: DeliveryId(*delivery),
                    payload: Bytes::from(payload),
                    message_format,
                    settled: *settled,
                    transaction: transaction.clone().map(Bytes::from),
                });
                (at, event)
            }
            Self::Settle {
                at,
                delivery,
                token,
                settled,
                verdict,
                transaction,
            } => {
                let event = Event::Disposition(IncomingDisposition {
                    link: LinkId(at.link),
                    delivery: DeliveryId(*delivery),
                    tag: token.to_tag(),
                    settled: *settled,
                    outcome: verdict.outcome(),
                    transaction: transaction.clone().map(Bytes::from),
                });
                (at, event)
            }
        };
        Some((at.connection, Report::Event(event)))
    }
}

/// Makes the event of one message that is not settled.
fn message(
    at: LinkKey,
    delivery: u32,
    payload: Vec<u8>,
    transaction: Option<&TransactionId>,
) -> Event {
    Event::Transfer(IncomingTransfer {
        link: LinkId(at.link),
        delivery: DeliveryId(delivery),
        payload: Bytes::from(payload),
        message_format: 0,
        settled: false,
        transaction: transaction.cloned().map(Bytes::from),
    })
}

fn attach(at: LinkKey, node: String, kind: LinkKind) -> Event {
    let (role, address, answers, snd_settle_mode) = match kind {
        LinkKind::Sender | LinkKind::Coordinator => {
            (LinkRole::Incoming, node, None, SenderSettleMode::Unsettled)
        }
        LinkKind::Receiver { delete: false, .. } => {
            (LinkRole::Outgoing, node, None, SenderSettleMode::Unsettled)
        }
        LinkKind::Receiver { delete: true, .. } => {
            (LinkRole::Outgoing, node, None, SenderSettleMode::Settled)
        }
        LinkKind::Requests => (
            LinkRole::Incoming,
            format!("{node}/$management"),
            None,
            SenderSettleMode::Unsettled,
        ),
        LinkKind::Responses => (
            LinkRole::Outgoing,
            format!("{node}/$management"),
            Some(at.reply_to()),
            SenderSettleMode::Settled,
        ),
    };
    let (source, target) = match role {
        LinkRole::Incoming => (None, Some(address)),
        LinkRole::Outgoing => (Some(address), answers),
    };
    let wish = match kind {
        LinkKind::Receiver { wish, .. } => wish,
        _ => None,
    };
    let filter = wish.map(|wish| {
        let value = match wish {
            Wish::Named(session) => AmqpValue::String(session_name(session)),
            Wish::Next(_) => AmqpValue::Null,
        };
        let mut filter = FilterSet::new();
        filter.insert("com.microsoft:session-filter".into(), value);
        filter
    });
    let properties = match wish {
        Some(Wish::Next(millis)) => {
            let mut properties = Fields::new();
            properties.insert("com.microsoft:timeout".into(), AmqpValue::Uint(millis));
            Some(properties)
        }
        Some(Wish::Named(_)) | None => None,
    };
    let source = source.map(|address| Source {
        address: Some(address),
        filter,
        ..Source::default()
    });
    let target = target.map(|address| Target {
        address: Some(address),
        ..Target::default()
    });
    let attach = Attach {
        name: at.name(),
        role,
        session: SessionId(0),
        source,
        target: if kind == LinkKind::Coordinator {
            LinkTarget::Coordinator
        } else {
            LinkTarget::Node(target)
        },
        snd_settle_mode,
        rcv_settle_mode: ReceiverSettleMode::Second,
        message_size_max: 0,
        properties,
    };
    Event::AttachRequested(LinkId(at.link), Box::new(attach))
}

impl Verdict {
    fn outcome(&self) -> Outcome {
        match self {
            Self::Complete => Outcome::Accepted,
            Self::Release => Outcome::Released,
            Self::Abandon(properties) => Outcome::Modified {
                delivery_failed: true,
                undeliverable_here: false,
                annotations: annotations(properties),
            },
            Self::Defer(properties) => Outcome::Modified {
                delivery_failed: true,
                undeliverable_here: true,
                annotations: annotations(properties),
            },
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
                let info = Some(EncodedFields::from(&info));
                Outcome::Rejected(Some(Arc::new(Rejection { refusal, info })))
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

fn annotations(properties: &BTreeMap<String, String>) -> Option<EncodedFields> {
    (!properties.is_empty()).then(|| EncodedFields::from(&fields(properties)))
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
    pub(super) fn message(&self, id: &str, reply_to: &str, about: Option<LinkKey>) -> Vec<u8> {
        let (operation, body) = self.encode();
        let about = about.map(LinkKey::name);
        wire::request(id, reply_to, operation, about.as_deref(), body)
    }

    /// Returns the name of the management operation.
    pub(super) fn operation(&self) -> &'static str {
        self.encode().0
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
            Self::Deferred {
                numbers,
                delete,
                session,
            } => (
                "com.microsoft:receive-by-sequence-number",
                with_session(
                    *session,
                    vec![
                        ("sequence-numbers", longs(numbers)),
                        ("receiver-settle-mode", Value::Uint(u32::from(!delete))),
                    ],
                ),
            ),
            Self::Dispose { tokens, verdict } => {
                let (word, mut entries) = verdict.entries();
                entries.push(("disposition-status", Value::String(word.to_owned())));
                entries.push(("lock-tokens", uuids(tokens)));
                ("com.microsoft:update-disposition", wire::map(entries))
            }
            Self::GetState { session } => (
                "com.microsoft:get-session-state",
                with_session(Some(*session), Vec::new()),
            ),
            Self::ListSessions { skip, top, since } => (
                "com.microsoft:get-message-sessions",
                wire::map(vec![
                    (
                        "last-updated-time",
                        Value::Timestamp(since.unwrap_or(IN_USE)),
                    ),
                    ("skip", Value::Int(*skip)),
                    ("top", Value::Int(*top)),
                ]),
            ),
            Self::Peek {
                from,
                count,
                session,
            } => (
                "com.microsoft:peek-message",
                with_session(
                    *session,
                    vec![
                        ("from-sequence-number", Value::Long(*from)),
                        ("message-count", Value::Int(*count)),
                    ],
                ),
            ),
            Self::Purge {
                count,
                before,
                session,
            } => (
                "com.microsoft:batch-delete-messages",
                with_session(
                    *session,
                    vec![
                        ("message-count", Value::Int(*count)),
                        ("enqueued-time-utc", Value::Timestamp(*before)),
                    ],
                ),
            ),
            Self::Renew { tokens } => (
                "com.microsoft:renew-lock",
                wire::map(vec![("lock-tokens", uuids(tokens))]),
            ),
            Self::Schedule { drafts } => {
                let messages = drafts.iter().map(|draft| {
                    wire::map(vec![
                        (
                            "message-id",
                            draft.message_id().map_or(Value::Null, Value::String),
                        ),
                        ("message", Value::Binary(draft.encode())),
                    ])
                });
                let messages = Value::List(messages.collect());
                (
                    "com.microsoft:schedule-message",
                    wire::map(vec![("messages", messages)]),
                )
            }
            Self::RenewSession { session } => (
                "com.microsoft:renew-session-lock",
                with_session(Some(*session), Vec::new()),
            ),
            Self::SetState { session, state } => {
                let state = state.clone().map_or(Value::Null, Value::Binary);
                (
                    "com.microsoft:set-session-state",
                    with_session(Some(*session), vec![("session-state", state)]),
                )
            }
            Self::Unknown => ("com.microsoft:no-such-thing", wire::map(Vec::new())),
        }
    }
}

/// A last-updated-time with which the sessions in use are asked for: the end of the year 9999.
const IN_USE: i64 = 253_402_300_799_999;

fn with_session(session: Option<Session>, mut entries: Vec<(&str, Value)>) -> Value {
    let session = session.map(|session| Value::String(session_name(session)));
    entries.extend(session.map(|name| ("session-id", name)));
    wire::map(entries)
}
