//! The owner's mailbox: inputs and requests, and bounds on how much of them may wait.
//!
//! Invariant: waiting input is bounded in bytes, and connections are served in turn: one with much
//! input waits for room like one with little, and their order differs by one read at most.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Semaphore, mpsc, oneshot};

use super::owner_message::{Control, MailboxPermit, OwnerMessage, ShardReport};
use jitney_base::ids::{ConnectionId, RequestId};
use jitney_broker::access::{Inquiry, TokenRefused};
use jitney_broker::namespace::Denied;
use jitney_gateway::request::{Request, Requester};
use jitney_shard::{Call, Report, RequestAnswer};

/// The sender's end of the owner's mailbox.
#[derive(Debug, Clone)]
pub(crate) struct Mailbox {
    mail: mpsc::Sender<OwnerMessage>,
    control: mpsc::Sender<Control>,
    /// In units of [`UNIT`] bytes.
    room: Arc<Semaphore>,
    /// All of it.
    units: usize,
}

/// Returns the name of a request that no other has in the life of the process.
pub(crate) fn next_request() -> RequestId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    RequestId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The unit of room, in bytes.
const UNIT: usize = 1024;

impl Mailbox {
    /// Takes the number of bytes of batches that may wait.
    pub(crate) fn new(
        mail: mpsc::Sender<OwnerMessage>,
        control: mpsc::Sender<Control>,
        bytes: usize,
    ) -> Self {
        let units = (bytes / UNIT).max(1);
        Self {
            mail,
            control,
            room: Arc::new(Semaphore::new(units)),
            units,
        }
    }

    /// Waits until the owner has ended.
    pub(crate) async fn closed(&self) {
        self.mail.closed().await;
    }

    /// Sends something when there is room for it; `None` if the owner has ended.
    pub(crate) async fn send(&self, mail: OwnerMessage) -> Option<()> {
        self.mail.send(mail).await.ok()
    }

    /// Hands the owner something that it takes at any time; `None` if it has ended.
    pub(crate) async fn control(&self, control: Control) -> Option<()> {
        self.control.send(control).await.ok()
    }

    /// Asks what the shard has and has done, with so many entities one by one; `None` if the owner has ended.
    pub(crate) async fn report(&self, most: usize) -> Option<ShardReport> {
        let (answer, answered) = oneshot::channel();
        self.control(Control::Report(most, answer)).await?;
        answered.await.ok()
    }

    /// Sends a request when there is room for it, and waits for its answer; `None` if the owner has ended.
    pub(crate) async fn ask<T>(
        &self,
        mail: impl FnOnce(oneshot::Sender<T>) -> OwnerMessage,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.send(mail(answer)).await?;
        answered.await.ok()
    }

    /// Has a request carried out, and waits for its answer; `None` if the owner has ended.
    pub(crate) async fn request<R: Request>(
        &self,
        requester: Requester,
        request: R,
    ) -> Option<Result<R::Answer, Denied>> {
        Some(self.request_in(None, requester, request).await?.answer)
    }

    /// Has a request carried out, whose messages have this room, and waits for its answer, and for the bytes of the messages in
    /// it; `None` if the owner has ended.
    pub(crate) async fn request_in<R: Request>(
        &self,
        room: Option<MailboxPermit>,
        requester: Requester,
        request: R,
    ) -> Option<RequestAnswer<R::Answer>> {
        let call = Box::new(Call::new(requester, request));
        let answer = self
            .ask(|answer| OwnerMessage::Request(call, room, answer))
            .await?;
        // The requester was authorized before this call, so the owner does not refuse a token here.
        answer.ok()?.of::<R>()
    }

    /// Has a request carried out for who shows this token, and waits for its answer; `None` if the owner has ended.
    pub(crate) async fn request_by_token<R: Request>(
        &self,
        inquiry: Inquiry,
        request: R,
    ) -> Option<Result<Result<R::Answer, Denied>, TokenRefused>> {
        let call = Box::new(Call::by_token(inquiry, request));
        let answer = self
            .ask(|answer| OwnerMessage::Request(call, None, answer))
            .await?;
        Some(match answer {
            Ok(answer) => Ok(answer.of::<R>()?.answer),
            Err(refused) => Err(refused),
        })
    }

    /// Sends the reports of a connection, of a number of bytes, in turn and when there is room;
    /// `None` if the owner has ended.
    pub(crate) async fn send_reports(
        &self,
        id: ConnectionId,
        reports: Vec<Report>,
        bytes: usize,
    ) -> Option<()> {
        let weight = bytes + reports.len() * size_of::<Report>();
        let permit = self.reserve(weight).await?;
        self.send(OwnerMessage::Reports(id, reports, permit)).await
    }

    /// Waits for room for a number of bytes.
    pub(crate) async fn reserve(&self, bytes: usize) -> Option<MailboxPermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT).clamp(1, self.units)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room);
        room.acquire_many_owned(units).await.ok()
    }
}

#[cfg(test)]
impl Mailbox {
    /// Makes one whose owner takes mail only.
    pub(crate) fn of_mail(mail: mpsc::Sender<OwnerMessage>) -> Self {
        let (control, _) = mpsc::channel(1);
        Self::new(mail, control, crate::limits::MAILBOX_BYTES_MAX)
    }
}
