//! Inputs of a shard.

use std::any::Any;
use std::collections::VecDeque;

use bytes::Bytes;

use super::{Outgoing, ReadDone, Report, WrittenCheckpoint};
use jitney_base::ids::{ConnectionId, EntityId, LockToken, RequestId};
use jitney_base::time::ClockStep;
use jitney_broker::access::{Inquiry, Origin};
use jitney_broker::namespace::Denied;
use jitney_gateway::messages;
use jitney_gateway::request::{AnyAnswer, AnyRequest, Request, Requester};
use jitney_queue::ReceiveMode;

/// Something that a shard is told.
#[derive(Debug)]
pub enum Input {
    /// A connection is there, and comes from there.
    Connected(ConnectionId, Origin),
    /// The reports that one read of a connection produced.
    Reports(ConnectionId, Vec<Report>),
    /// A connection's task has ended, and had not taken this.
    Disconnected(ConnectionId, VecDeque<Outgoing>),
    /// Carry a request out; the answer is due when that is durable, and its bytes are read.
    Request(RequestId, Box<Call>),
    /// Hand one message out without a link. It is answered by a message, at its deadline, when it is cancelled or ended,
    /// and when the shard stops; it is abandoned when the store is away or another server owns the shard.
    Receive(RequestId, Box<ReceiveRequest>),
    /// A receive is to wait no longer: it is answered without a message, unless one is on its way to it.
    CancelReceive(RequestId),
    /// A client has left before the message of its receive was written to it: it is as if it had not been delivered.
    ReturnReceived(EntityId, LockToken),
    /// The keys, as a JSON Web Key Set, that sign identity tokens from now on.
    IdentityKeys(String),
    /// How much memory there is.
    Pressure(Pressure),
    /// The system's clock was set.
    ClockStep(ClockStep),
    /// The journal has made progress.
    Durable {
        /// The newest group that is durable, as the policy has it.
        durable: u64,
        /// The newest group that is synced.
        synced: u64,
    },
    /// Bodies that were asked for have been read.
    Read(ReadDone),
    /// A checkpoint was written, or could not be.
    CheckpointWritten(Result<WrittenCheckpoint, jitney_journal::Error>),
    /// Another server owns the shard: this one's appends are refused for good.
    AppendFenced,
    /// It is unknown whether this group was appended; [`Input::StoreBack`] follows when it is known.
    AppendUnknown {
        /// The group.
        group: u64,
    },
    /// The journal's store cannot be reached.
    StoreAway,
    /// It can be reached again, and what was appended is known.
    StoreBack,
    /// End all connections.
    Stop,
}

/// How much memory there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// Bytes that the journal's cache may take.
    pub cache_bytes: usize,
    /// The process is too large: no more messages are to be accepted.
    pub is_full: bool,
}

impl Default for Pressure {
    fn default() -> Self {
        Self {
            cache_bytes: usize::MAX,
            is_full: false,
        }
    }
}

/// A request of any kind, and who asks.
#[derive(Debug)]
pub struct Call {
    /// Who asks.
    pub credential: Credential,
    /// The request.
    pub request: Box<dyn AnyRequest>,
}

/// What shows who asks.
#[derive(Debug)]
pub enum Credential {
    /// It was shown before.
    Authorized(Requester),
    /// A token, which is verified in the step that carries the request out. If it is refused, nothing is done.
    Token(Box<Inquiry>),
}

impl Call {
    /// Makes a call of a request of one kind, for a requester who was authorized before.
    #[must_use]
    pub fn new<R: Request>(requester: Requester, request: R) -> Self {
        Self {
            credential: Credential::Authorized(requester),
            request: Box::new(request),
        }
    }

    /// Makes a call of a request of one kind by a token.
    #[must_use]
    pub fn by_token<R: Request>(inquiry: Inquiry, request: R) -> Self {
        Self {
            credential: Credential::Token(Box::new(inquiry)),
            request: Box::new(request),
        }
    }
}

/// The answer to a request, of any kind if nothing else is said, with the bytes of the messages in it, in their order: `None` for
/// those that are damaged.
#[derive(Debug)]
pub struct RequestAnswer<A = Box<dyn AnyAnswer>> {
    /// The answer.
    pub answer: Result<A, Denied>,
    /// The bytes.
    pub bodies: Vec<Option<Bytes>>,
}

impl RequestAnswer {
    /// Returns the answer to a request of one kind; `None` if it is that of another.
    #[must_use]
    pub fn of<R: Request>(self) -> Option<RequestAnswer<R::Answer>> {
        let answer = match self.answer {
            Ok(answer) => {
                let answer: Box<dyn Any> = answer;
                Ok(*answer.downcast().ok()?)
            }
            Err(denied) => Err(denied),
        };
        let bodies = self.bodies;
        Some(RequestAnswer { answer, bodies })
    }
}

/// A receive of one message, and who asks.
#[derive(Debug)]
pub struct ReceiveRequest {
    /// Who asks.
    pub requester: Requester,
    /// The receive.
    pub receive: messages::Receive,
}

/// The answer to a receive.
#[derive(Debug)]
pub enum ReceiveAnswer {
    /// A message.
    Message(Box<ReceivedMessage>),
    /// There was none in time.
    Nothing,
    /// The receive was refused, or has ended for this reason.
    Refused(Denied),
}

/// A message for a receive.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// The queue that it was in, and its lock.
    pub handed_out: messages::HandedOut,
    /// Its bytes.
    pub bytes: Bytes,
}

impl ReceivedMessage {
    /// Returns the input that gives the message back if it was not brought to its client; none if it was deleted when it was
    /// handed out.
    #[must_use]
    pub fn returned(&self) -> Option<Input> {
        let messages::HandedOut { queue, handover } = &self.handed_out;
        match handover.mode {
            ReceiveMode::PeekLock => Some(Input::ReturnReceived(*queue, handover.token)),
            ReceiveMode::ReceiveAndDelete => None,
        }
    }
}
