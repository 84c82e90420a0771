//! Outputs: the work that a shard gives to its server.

use super::{CheckpointTask, ReadRequest, ReceiveAnswer, RequestAnswer};
use jitney_base::ids::{ConnectionId, RequestId};
use jitney_broker::access::TokenRefused;
use jitney_broker::namespace::TraceEvent;
use jitney_journal::{Frame, SegmentId};

/// Something for the server to carry out.
#[derive(Debug)]
pub enum Output {
    /// Append this group of records to the journal, behind those before it; tell of it with
    /// [`Input::Durable`](super::Input::Durable).
    Commit(Frame),
    /// Sync what was appended so far, whatever the policy.
    Sync,
    /// Read bodies; answer with [`Input::Read`](super::Input::Read).
    Read(ReadRequest),
    /// Write a checkpoint; answer with
    /// [`Input::CheckpointWritten`](super::Input::CheckpointWritten), also if it cannot be begun.
    WriteCheckpoint(Box<CheckpointTask>),
    /// Remove segments that nothing needs.
    RemoveSegments(Vec<SegmentId>),
    /// Give a connection what is in [`Shard::outgoing`](super::Shard::outgoing).
    Send(ConnectionId),
    /// Close a connection behind what it is given, or without that if its peer does not read.
    Close(ConnectionId),
    /// Answer a request.
    Answer(RequestId, Answer),
    /// A request is not answered: its result is unknown.
    Abandon(RequestId),
    /// Fetch the keys that sign identity tokens: a token was signed with one that is not known.
    FetchIdentityKeys,
    /// Something has happened to a message: only after [`Shard::turn_traces_on`](super::Shard::turn_traces_on).
    Trace(TraceEvent),
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// To [`Input::Request`](super::Input::Request).
    Request(RequestAnswer),
    /// To the same, if its token was refused: nothing was done.
    Unauthorized(TokenRefused),
    /// To [`Input::Receive`](super::Input::Receive).
    Received(ReceiveAnswer),
}
