//! What clients of the REST interface ask of messages.

use tokio::sync::oneshot;

use super::{Owner, Told};
use crate::amqp::LinkId;
use crate::broker::ConnectionId;
use crate::shell::mailbox::{MessageRequest, Messaged, ReceiveRequest};
use crate::time::Timestamp;

impl Owner {
    /// Carries an operation out; what came of it is told when it is durable.
    pub(super) fn operate(
        &mut self,
        now: Timestamp,
        request: MessageRequest,
        answer: oneshot::Sender<Messaged>,
    ) {
        let MessageRequest {
            host,
            authority,
            operation,
        } = request;
        let done = self.step(now, |broker, around| {
            broker.message_operation(around, host.as_deref(), &authority, operation)
        });
        let rests_on = self.newest();
        self.hold(rests_on, Told::Messaged(answer, done));
    }

    /// Lets a receiver of one message in.
    pub(super) fn hand_out(
        &mut self,
        now: Timestamp,
        receiver: (ConnectionId, LinkId),
        request: ReceiveRequest,
    ) {
        let ReceiveRequest {
            host,
            authority,
            receive,
        } = request;
        self.step(now, |broker, around| {
            broker.receive_one(around, receiver, host.as_deref(), &authority, &receive);
        });
    }
}
