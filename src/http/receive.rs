//! Receives over HTTP, as requests to the owner.
//!
//! The owner has a receive until it is answered: with a message, at its deadline, or because nothing can come any more. A request
//! that waits for longer than it should, as while the store is away, gives up by itself.
//!
//! Invariant: a message is handed out for a client. If the client leaves before it is being written, the receive takes none,
//! or the message is given back as if it had not been delivered.

use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout_at};

use crate::host::mailbox::{self, Mailbox};
use crate::host::owner_message::OwnerMessage;
use crate::limits;
use jitney_base::ids::RequestId;
use jitney_broker::namespace::Denied;
use jitney_shard::{Input, ReceiveAnswer, ReceiveRequest, ReceivedMessage};

/// What comes of a receive.
pub(crate) enum Received {
    /// A message, and what gives it back.
    Message(Box<ReceivedMessage>, Undelivered),
    /// There was none in time.
    Nothing,
    /// It was refused, or has ended for this reason.
    Refused(Denied),
}

/// Receives a message for a client, whose connection may have to end before there is one. `None` if the namespace's owner cannot
/// answer. Cancel-safe: the client has left then.
pub(crate) async fn receive(
    owner: Mailbox,
    wanted: ReceiveRequest,
    ending: watch::Receiver<bool>,
) -> Option<Received> {
    let until = Instant::now() + wanted.receive.wait.as_duration();
    let longest = limits::OWNER_WAIT.as_duration();
    receive_within(longest, owner, wanted, until, ending).await
}

/// Receives a message until then, and waits for the owner's answer for so much longer at most.
async fn receive_within(
    longest: Duration,
    owner: Mailbox,
    wanted: ReceiveRequest,
    until: Instant,
    mut ending: watch::Receiver<bool>,
) -> Option<Received> {
    let received = async {
        let mut open = OpenReceive::begin(owner, wanted, until).await?;
        tokio::select! {
            received = open.answered() => return received,
            _ = ending.wait_for(|ending| *ending) => {}
        }
        open.cancel().await;
        open.answered().await
    };
    timeout_at(until + longest, received).await.ok().flatten()
}

/// A receive that the owner has.
struct OpenReceive {
    owner: Mailbox,
    request: RequestId,
    answer: oneshot::Receiver<ReceiveAnswer>,
    is_answered: bool,
}

impl OpenReceive {
    /// Hands a receive to the owner, which waits for a message until then; `None` if the owner has ended.
    async fn begin(owner: Mailbox, wanted: ReceiveRequest, until: Instant) -> Option<Self> {
        let request = mailbox::next_request();
        let (asker, answer) = oneshot::channel();
        let open = Self {
            owner,
            request,
            answer,
            is_answered: false,
        };
        let mail = OwnerMessage::Receive(request, Box::new(wanted), until, asker);
        open.owner.send(mail).await?;
        Some(open)
    }

    /// Says that the receive is to wait no longer.
    async fn cancel(&self) {
        let cancel = Input::CancelReceive(self.request);
        // An owner that has ended has answered before, or does not answer.
        let _ = self.owner.send(OwnerMessage::Input(cancel)).await;
    }

    /// Waits for the answer; `None` if there will be none.
    async fn answered(&mut self) -> Option<Received> {
        let answer = (&mut self.answer).await;
        self.is_answered = true;
        Some(match answer.ok()? {
            ReceiveAnswer::Message(message) => {
                let undelivered = Undelivered::new(&self.owner, &message);
                Received::Message(message, undelivered)
            }
            ReceiveAnswer::Nothing => Received::Nothing,
            ReceiveAnswer::Refused(denied) => Received::Refused(denied),
        })
    }
}

impl Drop for OpenReceive {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        // From now on, the owner itself gives a message back.
        self.answer.close();
        match self.answer.try_recv() {
            Ok(ReceiveAnswer::Message(message)) => drop(Undelivered::new(&self.owner, &message)),
            Ok(ReceiveAnswer::Nothing | ReceiveAnswer::Refused(_)) => {}
            Err(_) => send_later(&self.owner, Input::CancelReceive(self.request)),
        }
    }
}

/// A message that is not being written to its client yet: it is given back when this is dropped.
pub(crate) struct Undelivered {
    owner: Mailbox,
    returned: Option<Input>,
}

impl Undelivered {
    fn new(owner: &Mailbox, message: &ReceivedMessage) -> Self {
        Self {
            owner: owner.clone(),
            returned: message.returned(),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(owner: Mailbox, returned: Input) -> Self {
        let returned = Some(returned);
        Self { owner, returned }
    }

    /// The message is being written.
    pub(crate) fn delivered(mut self) {
        self.returned = None;
    }
}

impl Drop for Undelivered {
    fn drop(&mut self) {
        if let Some(returned) = self.returned.take() {
            send_later(&self.owner, returned);
        }
    }
}

/// Hands an input to an owner as soon as there is room for it.
fn send_later(owner: &Mailbox, input: Input) {
    let owner = owner.clone();
    // Without a runtime the process ends, and the owner with it.
    if let Ok(runtime) = Handle::try_current() {
        // Where the owner has gone, so have its receives and locks.
        runtime.spawn(async move { owner.send(OwnerMessage::Input(input)).await });
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use jitney_base::ids::{BodyRef, EntityId, LockToken};
    use jitney_base::time::{Millis, Timestamp};
    use jitney_broker::access::Authority;
    use jitney_gateway::messages::{HandedOut, Receive};
    use jitney_gateway::request::Requester;
    use jitney_message::{MessageState, Stamps};
    use jitney_queue::{Handover, ReceiveMode};

    /// A receive, and the mailbox of its owner.
    struct Bench {
        owner: Mailbox,
        mail: mpsc::Receiver<OwnerMessage>,
        end: watch::Sender<bool>,
    }

    impl Bench {
        fn new() -> Self {
            let (sender, mail) = mpsc::channel(4);
            Self {
                owner: Mailbox::of_mail(sender),
                mail,
                end: watch::Sender::new(false),
            }
        }

        fn receive(&self) -> impl Future<Output = Option<Received>> + use<> {
            receive(self.owner.clone(), wanted(), self.end.subscribe())
        }

        async fn begun(&mut self) -> (RequestId, oneshot::Sender<ReceiveAnswer>) {
            match self.mail.recv().await {
                Some(OwnerMessage::Receive(request, _, _, asker)) => (request, asker),
                other => panic!("{other:?}"),
            }
        }

        async fn is_told(&mut self, expected: &str) {
            match self.mail.recv().await {
                Some(OwnerMessage::Input(input)) => {
                    let input = format!("{input:?}");
                    assert!(input.starts_with(expected), "{input} is no {expected}");
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn wanted() -> ReceiveRequest {
        ReceiveRequest {
            requester: Requester {
                host: None,
                authority: Authority::everything(),
            },
            receive: Receive {
                path: "q".to_owned(),
                mode: ReceiveMode::PeekLock,
                wait: Millis::from_secs(30),
            },
        }
    }

    fn message(mode: ReceiveMode) -> ReceiveAnswer {
        let handover = Handover {
            token: LockToken::new(1, 2),
            mode,
            body: BodyRef {
                position: 0,
                length: 0,
            },
            stamps: Stamps {
                sequence_number: 1,
                enqueued_sequence_number: 1,
                partition_id: None,
                default_message_id: [0; 16],
                keyed_by_id: false,
                enqueued_time: Timestamp::EPOCH,
                locked_until: None,
                lock_token: None,
                delivered: true,
                delivery_count: 0,
                acquired: false,
                state: MessageState::Active,
                time_to_live: Millis::MAX,
                dead_letter_source: None,
                amendments: None,
            },
        };
        let queue = EntityId(3);
        ReceiveAnswer::Message(Box::new(ReceivedMessage {
            handed_out: HandedOut { queue, handover },
            bytes: bytes::Bytes::new(),
        }))
    }

    #[tokio::test]
    async fn a_client_that_leaves_cancels_its_receive() {
        let mut bench = Bench::new();
        let waiting = tokio::spawn(bench.receive());
        let (request, _asker) = bench.begun().await;
        waiting.abort();
        bench.is_told(&format!("CancelReceive({request:?})")).await;
    }

    #[tokio::test]
    async fn a_message_whose_client_leaves_is_given_back_unless_it_was_deleted() {
        for mode in [ReceiveMode::PeekLock, ReceiveMode::ReceiveAndDelete] {
            let mut bench = Bench::new();
            // The client leaves before the request has the answer, or before that is written.
            for is_received in [false, true] {
                let waiting = tokio::spawn(bench.receive());
                let (_, asker) = bench.begun().await;
                assert!(asker.send(message(mode)).is_ok());
                if is_received {
                    drop(waiting.await.unwrap());
                } else {
                    waiting.abort();
                }
                if mode == ReceiveMode::PeekLock {
                    bench.is_told("ReturnReceived(EntityId(3)").await;
                }
            }
            tokio::task::yield_now().await;
            assert!(bench.mail.is_empty());
        }
    }

    #[tokio::test]
    async fn a_receive_takes_what_comes_when_its_connection_must_end() {
        let mut bench = Bench::new();
        let waiting = tokio::spawn(bench.receive());
        let (request, asker) = bench.begun().await;
        bench.end.send(true).unwrap();
        bench.is_told(&format!("CancelReceive({request:?})")).await;
        assert!(asker.send(message(ReceiveMode::ReceiveAndDelete)).is_ok());
        let received = waiting.await.unwrap();
        assert!(matches!(received, Some(Received::Message(..))));
        // It is told once, and the next receive is told at once.
        let waiting = tokio::spawn(bench.receive());
        let (request, asker) = bench.begun().await;
        bench.is_told(&format!("CancelReceive({request:?})")).await;
        assert!(asker.send(ReceiveAnswer::Nothing).is_ok());
        assert!(matches!(waiting.await.unwrap(), Some(Received::Nothing)));
        assert!(bench.mail.is_empty());
    }

    #[tokio::test]
    async fn a_receive_gives_up_whose_owner_does_not_answer() {
        let mut bench = Bench::new();
        let (owner, ending) = (bench.owner.clone(), bench.end.subscribe());
        let (longest, until) = (Duration::from_millis(10), Instant::now());
        let waiting = receive_within(longest, owner, wanted(), until, ending);
        let waiting = tokio::spawn(waiting);
        let (request, _asker) = bench.begun().await;
        assert!(waiting.await.unwrap().is_none());
        bench.is_told(&format!("CancelReceive({request:?})")).await;
    }

    #[tokio::test]
    async fn a_receive_without_an_answer_ends_and_so_does_one_without_an_owner() {
        let mut bench = Bench::new();
        let waiting = tokio::spawn(bench.receive());
        let (_, asker) = bench.begun().await;
        drop(asker);
        assert!(waiting.await.unwrap().is_none());
        assert!(bench.mail.is_empty());
        bench.mail.close();
        assert!(bench.receive().await.is_none());
    }
}
