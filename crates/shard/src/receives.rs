//! Receives without a link: their answers wait for groups of records and for bytes, as deliveries do.

use super::durability::Pending;
use super::{
    Answer, Cause, DamageUser, Output, ReadDone, ReadPurpose, ReceiveAnswer, ReceiveRequest,
    ReceivedMessage, Shard, Store, delivery,
};
use jitney_base::ids::{EntityId, LockToken, RequestId};
use jitney_base::time::Timestamp;
use jitney_gateway::Gateway;
use jitney_gateway::messages::ReceiveOutcome;

impl Shard {
    pub(super) fn receive(&mut self, now: Timestamp, request: RequestId, wanted: &ReceiveRequest) {
        if self.is_stopping || self.store != Store::Here {
            self.outputs.push_back(Output::Abandon(request));
            return;
        }
        let ReceiveRequest { requester, receive } = wanted;
        self.step(now, Cause::Request, |gateway, cx| {
            gateway.receive_one(cx, request, requester, receive);
        });
    }

    pub(super) fn cancel_receive(&mut self, now: Timestamp, request: RequestId) {
        self.step(now, Cause::Request, |gateway, cx| {
            gateway.cancel_receive(cx, request);
        });
    }

    pub(super) fn return_received(&mut self, now: Timestamp, queue: EntityId, token: LockToken) {
        self.step(now, Cause::Request, |gateway, cx| {
            gateway.return_received(cx, queue, token);
        });
    }

    /// Lets the receives that wait take what is available, or nothing: the shard stops.
    pub(super) fn drain_receives(&mut self, now: Timestamp) {
        self.step(now, Cause::Request, Gateway::drain_receives);
    }

    /// What comes of a receive may leave: it does, unless the message's bytes must be read first.
    pub(super) fn release_receive(&mut self, request: RequestId, outcome: ReceiveOutcome) {
        let answer = match outcome {
            ReceiveOutcome::Message(handed_out) => {
                let body = handed_out.handover.body;
                let Some(bytes) = self.journal.cached(body) else {
                    self.receives.insert(request, handed_out);
                    return self.read(ReadPurpose::Receive(request), vec![body]);
                };
                let message = ReceivedMessage {
                    handed_out: *handed_out,
                    bytes,
                };
                return self.answer_receive(request, message);
            }
            ReceiveOutcome::Nothing => ReceiveAnswer::Nothing,
            ReceiveOutcome::Refused(denied) => ReceiveAnswer::Refused(denied),
        };
        self.outputs
            .push_back(Output::Answer(request, Answer::Received(answer)));
    }

    pub(super) fn answer_receive(&mut self, request: RequestId, message: ReceivedMessage) {
        if self.gateway.namespaces().is_traced() {
            let token = message.handed_out.handover.token;
            let released = delivery::released(token, &message.bytes);
            self.outputs.push_back(Output::Trace(released));
        }
        self.gateway.receive_answered(request);
        let answer = ReceiveAnswer::Message(Box::new(message));
        self.outputs
            .push_back(Output::Answer(request, Answer::Received(answer)));
    }

    /// Answers a receive whose message's bytes were read, or lets it wait for another if they are damaged.
    pub(super) fn receive_read(&mut self, now: Timestamp, request: RequestId, done: ReadDone) {
        let Some(handed_out) = self.receives.remove(&request) else {
            return;
        };
        if self.store != Store::Here {
            // It is read again when the store is back. Its lock may be over and the message gone by now, and its segment
            // with it but for this.
            self.journal.pin(handed_out.handover.body);
            self.receives_again.push(request);
            self.receives.insert(request, handed_out);
            return;
        }
        let body = handed_out.handover.body;
        if let Some(bytes) = done.keep(body) {
            let handed_out = *handed_out;
            self.answer_receive(request, ReceivedMessage { handed_out, bytes });
        } else if let Some(damage) = done.damage_of(body) {
            let user = DamageUser::Receive(request, &handed_out);
            self.observe_damage(user, std::slice::from_ref(damage));
            let contained = self.step(now, Cause::Damage, |gateway, cx| {
                gateway.received_damaged(cx, request, &handed_out, damage)
            });
            self.report_damage(contained);
        } else {
            debug_assert!(false, "{body:?} was to be read");
        }
        self.keep_stretches(done);
    }

    /// Reads what was read for receives while the store was away.
    pub(super) fn read_receives_again(&mut self) {
        for request in std::mem::take(&mut self.receives_again) {
            if let Some(handed_out) = self.receives.get(&request) {
                let body = handed_out.handover.body;
                self.read(ReadPurpose::Receive(request), vec![body]);
                self.journal.unpin(body);
            }
        }
    }

    /// Keeps the answer to a receive that the server could not give: it is given once it can be.
    pub fn keep_received(&mut self, request: RequestId, message: ReceivedMessage) {
        let pending = Pending::Received(request, Box::new(message));
        self.durability.defer(self.newest_group(), pending);
    }

    /// Abandons the receives that no message is on its way to: the store is away.
    pub(super) fn abandon_receives(&mut self, now: Timestamp) {
        let waiting = self.gateway.abandon_receives(now).into_iter();
        self.outputs.extend(waiting.map(Output::Abandon));
    }
}
