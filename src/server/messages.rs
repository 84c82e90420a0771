//! The REST interface to messages: requests in, and a receiver for those that wait.
//!
//! A request is authorized before its body is read. A receive is a link on a connection to the
//! owner, which an HTTP connection makes with its first receive: it waits in its queue as any
//! receiver does, and a message wakes it.
//!
//! Invariant: a message is locked for a client. If the client disconnects before the answer is
//! written, the message is taken back as if it had not been delivered.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::header_case::Spelling;
use super::http::{self, Caller};
use super::listener::{self, ServerState};
use super::mailbox::{Mail, Partials};
use super::membership::Membership;
use super::shards::Shards;
use crate::access::{Authority, Inquiry, Origin};
use crate::amqp::{Event, LinkId};
use crate::gateway::messages::{MessageOperation, Receive};
use crate::gateway::rest::{self, Content, RequestLine, RestError, RestResponse};
use crate::gateway::{Reply, Tracking};
use crate::ids::ConnectionId;
use crate::limits;
use crate::message::Message;
use crate::namespace::{Denied, DeniedKind};
use crate::queue::Handover;
use crate::shard::routing::ShardIndex;
use crate::shard::{Input, MessageRequest, Messaged, Outgoing, ReceiveRequest, Report};

/// A pending receive, and the request that waits for it.
pub(super) struct PendingReceive {
    request: ReceiveRequest,
    until: Instant,
    answer: oneshot::Sender<Received>,
}

/// The outcome of a receive.
enum Received {
    /// A message, and the channel to notify when it is being written.
    Message(Box<Handover>, Bytes, oneshot::Sender<()>),
    Nothing,
    Refused(Denied),
}

/// Answers a request.
pub(super) async fn answer(
    server: &ServerState,
    caller: &Caller,
    line: Result<RequestLine, RestError>,
    parts: &Parts,
    body: Body,
) -> Response {
    let host = http::host(&parts.headers, &caller.origin);
    let request = Request {
        server,
        caller,
        host: &host,
        parts,
    };
    request.answer(line, body).await.unwrap_or_else(|refusal| {
        let id = http::tracking_id(server);
        let refused = refusal.render(&Tracking {
            id: &id,
            system: host.split([':', '.']).next().unwrap_or_default(),
            at: server.clock.now(),
        });
        respond(refused, None)
    })
}

/// A request, and the connection it came on.
struct Request<'a> {
    server: &'a ServerState,
    caller: &'a Caller,
    host: &'a str,
    parts: &'a Parts,
}

impl Request<'_> {
    /// Authorizes a request, reads its body, and then carries it out: each step costs more than the
    /// one before.
    async fn answer(
        &self,
        line: Result<RequestLine, RestError>,
        body: Body,
    ) -> Result<Response, RestError> {
        let authority = self.authorize().await?;
        match line? {
            RequestLine::Send { path } => {
                let vitals = self.server.shards.vitals_of(self.host);
                let quota = vitals.as_ref().map(|vitals| vitals.quota());
                if let Some(quota) = quota {
                    quota.wait().await?;
                }
                let mut partials = self.server.shards.partials();
                let messages = self.messages(body, &mut partials).await?;
                if let Some(quota) = quota {
                    quota.take(messages.iter().map(|message| message.bytes().len()).sum());
                }
                let operation = MessageOperation::Send { path, messages };
                self.operate(authority, operation).await?;
                Ok(respond(RestResponse::plain(201), None))
            }
            RequestLine::Locked {
                path,
                token,
                action,
            } => {
                self.leave_out(body).await?;
                let operation = MessageOperation::Locked {
                    path,
                    token,
                    action,
                };
                self.operate(authority, operation).await?;
                Ok(respond(RestResponse::plain(200), None))
            }
            RequestLine::Receive { path, mode, wait } => {
                self.leave_out(body).await?;
                let scheme = self.caller.scheme.name();
                let entity = format!("{scheme}://{}/{path}", self.host);
                let receive = Receive { path, mode };
                let wait = Duration::from_millis(wait.as_millis().unsigned_abs());
                let received = self.receive(authority, receive, wait).await?;
                Ok(match received {
                    Received::Message(handover, bytes, written) => {
                        respond(rest::deliver(&handover, bytes, &entity), Some(written))
                    }
                    Received::Nothing => respond(RestResponse::plain(204), None),
                    Received::Refused(refused) => return Err(refused.into()),
                })
            }
        }
    }

    async fn authorize(&self) -> Result<Authority, RestError> {
        let token = self.parts.headers.get(header::AUTHORIZATION);
        let token = token.and_then(|value| value.to_str().ok());
        let inquiry = Inquiry {
            peer: self.caller.origin.peer,
            host: Some(self.host.to_owned()),
            token: token.map(ToOwned::to_owned),
            path: self.parts.uri.path().to_owned(),
            supplementary: Vec::new(),
        };
        Ok(http::authorize(self.server, self.caller, inquiry).await?)
    }

    /// Reads the messages of a request.
    async fn messages(
        &self,
        body: Body,
        partials: &mut Partials,
    ) -> Result<Vec<Message>, RestError> {
        let spelling = self.parts.extensions.get::<Spelling>();
        let spelling = spelling.cloned().unwrap_or_default();
        let headers = self.parts.headers.iter();
        let headers = headers.map(|(name, value)| (spelling.of(name.as_str()), value.as_bytes()));
        let headers: Vec<(&str, &[u8])> = headers.collect();
        let now = self.server.clock.now();
        match rest::content(&headers)? {
            Content::Batch => {
                let mut whole = Vec::new();
                let take = |bytes: &[u8]| whole.extend_from_slice(bytes);
                read(body, limits::REST_BATCH_BYTES_MAX, partials, take).await?;
                rest::batch(&whole, now)
            }
            Content::One(draft) => {
                let mut composer = draft.begin(now);
                let max = usize::try_from(limits::MESSAGE_SIZE_MAX).unwrap_or(usize::MAX);
                read(body, max, partials, |bytes| composer.push(bytes)).await?;
                let message = Message::parse(composer.finish());
                let message = message.map_err(|error| RestError::Malformed(error.to_string()))?;
                Ok(vec![message])
            }
        }
    }

    /// Reads a body without content: a disconnect is seen only after it.
    async fn leave_out(&self, body: Body) -> Result<(), RestError> {
        let mut partials = self.server.shards.partials();
        read(body, limits::HTTP_HEAD_BYTES_MAX, &mut partials, |_| ()).await
    }

    async fn operate(
        &self,
        authority: Authority,
        operation: MessageOperation,
    ) -> Result<(), RestError> {
        let bytes = match &operation {
            MessageOperation::Send { messages, .. } => {
                let bytes = messages.iter().map(|message| message.bytes().len());
                Some(bytes.sum())
            }
            MessageOperation::Locked { .. } => None,
        };
        let owner = self.server.shards.owner_of(self.host);
        let owner = owner.ok_or_else(stopping)?;
        let permit = match bytes {
            Some(bytes) => Some(owner.reserve(bytes).await.ok_or_else(stopping)?),
            None => None,
        };
        let request = Box::new(MessageRequest {
            host: Some(self.host.to_owned()),
            authority,
            operation,
        });
        let done: Option<Messaged> = owner
            .ask(|answer| Mail::Message(request, answer, permit))
            .await;
        done.ok_or_else(stopping)??;
        Ok(())
    }

    async fn receive(
        &self,
        authority: Authority,
        receive: Receive,
        wait: Duration,
    ) -> Result<Received, RestError> {
        let (answer, answered) = oneshot::channel();
        let wanted = PendingReceive {
            request: ReceiveRequest {
                host: Some(self.host.to_owned()),
                authority,
                receive,
            },
            until: Instant::now() + wait,
            answer,
        };
        let sent = self.caller.receives.send(wanted).await;
        sent.map_err(|_| stopping())?;
        answered.await.map_err(|_| stopping())
    }
}

fn stopping() -> RestError {
    Denied::new(
        DeniedKind::Full,
        "The broker is stopping, or the namespace's database cannot be reached: try again.",
        "",
    )
    .into()
}

/// Reads a body with a bounded length in a bounded time, within the budget of all bodies that are
/// being read.
pub(super) async fn read(
    mut body: Body,
    max: usize,
    partials: &mut Partials,
    mut take: impl FnMut(&[u8]),
) -> Result<(), RestError> {
    let deadline = Instant::now() + limits::HTTP_READ_DEADLINE.as_duration();
    let mut total = 0;
    loop {
        let Ok(frame) = timeout_at(deadline, body.frame()).await else {
            return Err(RestError::Malformed(format!(
                "the body did not come within {} seconds",
                limits::HTTP_READ_DEADLINE.as_duration().as_secs()
            )));
        };
        let Some(frame) = frame else {
            return Ok(());
        };
        let frame = frame.map_err(|error| RestError::Malformed(format!("the body: {error}")))?;
        let Some(data) = frame.data_ref() else {
            continue;
        };
        total += data.len();
        if max < total {
            partials.set(0);
            discard(body).await;
            return Err(RestError::TooLong(max));
        }
        if partials.room() < total {
            let text = "Too many large messages are coming in; send it again a little later.";
            return Err(Denied::new(DeniedKind::Full, text, "").into());
        }
        partials.set(total);
        take(data);
    }
}

/// Reads the rest of a body for a bounded time, and keeps nothing of it: many clients read no answer while they write.
async fn discard(mut body: Body) {
    let rest = async { while let Some(Ok(_)) = body.frame().await {} };
    // A client that writes for longer loses the answer.
    let _ = timeout(limits::HTTP_LAST_WAIT.as_duration(), rest).await;
}

/// Makes an answer. Values that no header can have are left out.
fn respond(answer: RestResponse, written: Option<oneshot::Sender<()>>) -> Response {
    let mut response = Response::new(match written {
        Some(written) => Body::new(MessageBody {
            body: Some(answer.body).filter(|body| !body.is_empty()),
            written: Some(written),
        }),
        None => Body::from(answer.body),
    });
    *response.status_mut() =
        StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let mut names = Vec::new();
    for (spelled, value) in answer.headers {
        let name = HeaderName::from_bytes(spelled.as_bytes());
        let value = HeaderValue::from_str(&value);
        if let (Ok(name), Ok(value)) = (name, value)
            && !headers.contains_key(&name)
            && headers.try_insert(name, value).is_ok()
        {
            names.push(spelled);
        }
    }
    response.extensions_mut().insert(Spelled(names));
    response
}

/// The names of an answer's headers, in the case for the client.
#[derive(Debug, Clone)]
pub(super) struct Spelled(pub(super) Vec<String>);

/// The body of a message, which sends a notice when it is being written. It has no
/// `Content-Length`, because old clients take each header that they do not know for a property,
/// `Content-Length` among them, and expect chunks from the service.
struct MessageBody {
    body: Option<Bytes>,
    written: Option<oneshot::Sender<()>>,
}

impl hyper::body::Body for MessageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(written) = self.written.take() {
            // The receiver of the notice ends only with the broker.
            let _ = written.send(());
        }
        Poll::Ready(self.body.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none() && self.written.is_none()
    }
}

/// Serves the receives of one HTTP connection, one after the other, until it ends. It has a place in the
/// shard of the last one's host.
pub(super) async fn hand_out(
    server: &ServerState,
    origin: &Origin,
    mut receives: mpsc::Receiver<PendingReceive>,
    mut ending: watch::Receiver<bool>,
) {
    let mut receiver: Option<Receiver> = None;
    while let Some(wanted) = receives.recv().await {
        let shard = server
            .shards
            .routes()
            .shard_of(wanted.request.host.as_deref());
        // A client may name another host on the same connection.
        if let Some(other) = receiver.take_if(|receiver| Some(receiver.membership.shard()) != shard)
        {
            other.leave().await;
        }
        if let (None, Some(shard)) = (&receiver, shard) {
            receiver = Receiver::enter(&server.shards, shard, origin).await;
        }
        let Some(receiver) = &mut receiver else {
            return;
        };
        if receiver.receive(wanted, &mut ending).await.is_none() {
            return;
        }
    }
    if let Some(receiver) = receiver {
        receiver.leave().await;
    }
}

/// A connection to a shard, over which messages are received one at a time.
struct Receiver {
    id: ConnectionId,
    membership: Membership,
    outgoing: VecDeque<Outgoing>,
    /// The last link: each receive has its own.
    link: LinkId,
}

/// The state of a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for a message.
    Waiting,
    /// It takes an available message, or none.
    Draining,
    /// The client has disconnected: it takes nothing more.
    Leaving,
}

/// The owner's reply to a receive.
enum ReceiveReply {
    Message(Box<Handover>, Bytes),
    Nothing,
    Refused(Denied),
}

impl Receiver {
    async fn enter(shards: &Shards, shard: ShardIndex, origin: &Origin) -> Option<Self> {
        let id = listener::next_id();
        Some(Self {
            id,
            membership: Membership::enter(shards, shard, id, origin.clone()).await?,
            outgoing: VecDeque::new(),
            link: LinkId(0),
        })
    }

    async fn leave(self) {
        self.membership.leave_early().await;
    }

    async fn report(&self, inputs: Vec<Report>) -> Option<()> {
        self.membership.report(inputs, 0).await
    }

    async fn receive(
        &mut self,
        wanted: PendingReceive,
        ending: &mut watch::Receiver<bool>,
    ) -> Option<()> {
        let PendingReceive {
            request,
            until,
            mut answer,
        } = wanted;
        self.link = LinkId(self.link.0.wrapping_add(1));
        let link = self.link;
        let mail = Mail::Input(Input::Receive(self.id, link, Box::new(request)));
        self.membership.send(mail).await?;
        let mut stage = Stage::Waiting;
        let reply = loop {
            if let Some(reply) = self.next_reply() {
                break reply;
            }
            let next = tokio::select! {
                () = self.membership.outbox().filled() => continue,
                () = answer.closed(), if stage != Stage::Leaving => Stage::Leaving,
                () = sleep_until(until), if stage == Stage::Waiting => Stage::Draining,
                _ = ending.wait_for(|ending| *ending), if stage == Stage::Waiting => {
                    Stage::Draining
                }
            };
            stage = next;
            let limit = u32::from(stage == Stage::Draining);
            let credit = Event::Credit {
                link,
                limit,
                drain: true,
            };
            self.report(vec![Report::Event(credit)]).await?;
        };
        let mut inputs = match reply {
            ReceiveReply::Message(handover, bytes) => self.hand(handover, bytes, answer).await,
            ReceiveReply::Nothing => {
                let _ = answer.send(Received::Nothing);
                Vec::new()
            }
            ReceiveReply::Refused(denied) => {
                let _ = answer.send(Received::Refused(denied));
                Vec::new()
            }
        };
        inputs.push(Report::Event(Event::Detached {
            link,
            error: None,
            unsent: Vec::new(),
        }));
        self.report(inputs).await
    }

    /// Hands a message to its request; returns the reports for the owner.
    async fn hand(
        &self,
        handover: Box<Handover>,
        body: Bytes,
        answer: oneshot::Sender<Received>,
    ) -> Vec<Report> {
        let link = self.link;
        let token = handover.token;
        let bytes = u64::from(handover.body.length);
        let (written, is_written) = oneshot::channel();
        let _ = answer.send(Received::Message(handover, body, written));
        let mut inputs = Vec::with_capacity(4);
        if is_written.await.is_err() {
            // The link needs nothing more, not even the credit it gives back.
            let none = Event::Credit {
                link,
                limit: 0,
                drain: false,
            };
            inputs.push(Report::Event(none));
            inputs.push(Report::Returned { token, link });
        }
        inputs.push(Report::Written { link, bytes });
        inputs
    }

    /// Returns the owner's reply about the last link; only the first counts.
    fn next_reply(&mut self) -> Option<ReceiveReply> {
        self.membership.outbox().take(&mut self.outgoing);
        let link = self.link;
        let mut reply = None;
        for outgoing in self.outgoing.drain(..) {
            let now = match outgoing {
                Outgoing::Deliver(at, handover, bytes) if at == link => {
                    ReceiveReply::Message(Box::new(handover), bytes)
                }
                Outgoing::Reply(Reply::Drained(at, _)) if at == link => ReceiveReply::Nothing,
                Outgoing::Reply(Reply::RefuseLink(at, denied) | Reply::Detach(at, denied))
                    if at == link =>
                {
                    ReceiveReply::Refused(denied)
                }
                Outgoing::Close(_)
                | Outgoing::Deliver(..)
                | Outgoing::Reply(_)
                | Outgoing::Respond(..) => continue,
            };
            reply.get_or_insert(now);
        }
        reply
    }
}

#[cfg(test)]
mod tests {
    use hyper::body::Body as _;

    use super::*;

    #[tokio::test]
    async fn a_message_comes_in_chunks_and_is_told_as_written() {
        for body in [None, Some(Bytes::from_static(b"hi"))] {
            let (written, told) = oneshot::channel();
            let expected = body.clone().unwrap_or_default();
            let handed = MessageBody {
                body,
                written: Some(written),
            };
            // With a known length, or at its end, it would be sent with `Content-Length`.
            assert_eq!(handed.size_hint().exact(), None);
            assert!(!handed.is_end_stream());
            assert_eq!(handed.collect().await.unwrap().to_bytes(), expected);
            told.await.unwrap();
        }
    }
}
