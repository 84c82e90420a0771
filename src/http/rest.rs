//! The REST interface to messages.
//!
//! A request is authorized before its body is read. A receive waits at the owner for its message ([`super::receive`]).

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use tokio::time::{Instant, timeout, timeout_at};

use super::header_case::Spelling;
use super::receive::{self, Received, Undelivered};
use super::request::{self, Caller};
use super::state::ServerState;
use crate::host::partials::Partials;
use crate::limits;
use jitney_base::ids::LockToken;
use jitney_base::secret::Secret;
use jitney_broker::access::{Authority, Inquiry};
use jitney_broker::namespace::{Denied, DeniedKind};
use jitney_gateway::Tracking;
use jitney_gateway::messages::{Receive, RenewOne, SendMessages, SentAs, SettleOne};
use jitney_gateway::request::{self as gateway, Requester};
use jitney_gateway::rest::{self, Content, LockAction, RequestLine, RestError, RestResponse};
use jitney_message::Message;
use jitney_queue::Settlement;
use jitney_shard::ReceiveRequest;

/// Answers a request.
pub(super) async fn answer(
    server: &ServerState,
    caller: &Caller,
    line: Result<RequestLine, RestError>,
    parts: &Parts,
    body: Body,
) -> Response {
    let host = request::host(&parts.headers, &caller.origin);
    let request = Request {
        server,
        caller,
        host: &host,
        parts,
    };
    request.answer(line, body).await.unwrap_or_else(|refusal| {
        let id = request::tracking_id(server);
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
                self.send(authority, path, messages).await?;
                Ok(respond(RestResponse::plain(201), None))
            }
            RequestLine::Locked {
                path,
                token,
                action,
            } => {
                self.leave_out(body).await?;
                match action {
                    LockAction::Complete => {
                        let settlement = Settlement::Complete;
                        self.settle(authority, path, token, settlement).await?;
                    }
                    LockAction::Unlock => {
                        let settlement = Settlement::Abandon(None);
                        self.settle(authority, path, token, settlement).await?;
                    }
                    LockAction::Renew => {
                        let renewal = RenewOne { path, token };
                        self.request(authority, renewal).await?;
                    }
                }
                Ok(respond(RestResponse::plain(200), None))
            }
            RequestLine::Receive { path, mode, wait } => {
                self.leave_out(body).await?;
                let scheme = self.caller.scheme.name();
                let entity = format!("{scheme}://{}/{path}", self.host);
                let receive = Receive { path, mode, wait };
                Ok(match self.receive(authority, receive).await? {
                    Received::Message(message, undelivered) => {
                        let handover = &message.handed_out.handover;
                        let answer = rest::deliver(handover, message.bytes, &entity);
                        respond(answer, Some(undelivered))
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
            nowhere: None,
            token: token.map(Secret::new),
            path: self.parts.uri.path().to_owned(),
            supplementary: Vec::new(),
        };
        Ok(request::authorize(self.server, self.caller, inquiry).await?)
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
                let max =
                    usize::try_from(jitney_base::limits::MESSAGE_SIZE_MAX).unwrap_or(usize::MAX);
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

    /// Returns for whom the owner carries a request out.
    fn requester(&self, authority: Authority) -> Requester {
        Requester {
            host: Some(self.host.to_owned()),
            authority,
        }
    }

    async fn send(
        &self,
        authority: Authority,
        path: String,
        messages: Vec<Message>,
    ) -> Result<(), RestError> {
        let bytes = messages.iter().map(|message| message.bytes().len()).sum();
        let owner = self.server.shards.owner_of(self.host);
        let owner = owner.ok_or_else(request::stopping)?;
        let room = owner.reserve(bytes).await.ok_or_else(request::stopping)?;
        let sent = SendMessages {
            path,
            messages,
            sent_as: SentAs::Batch,
        };
        let requester = self.requester(authority);
        let answer = owner.request_in(Some(room), requester, sent).await;
        answer.ok_or_else(request::stopping)?.answer?;
        Ok(())
    }

    async fn settle(
        &self,
        authority: Authority,
        path: String,
        token: LockToken,
        settlement: Settlement,
    ) -> Result<(), RestError> {
        let settled = SettleOne {
            path,
            token,
            settlement,
        };
        self.request(authority, settled).await
    }

    async fn request<R: gateway::Request>(
        &self,
        authority: Authority,
        wanted: R,
    ) -> Result<R::Answer, RestError> {
        let owner = self.server.shards.owner_of(self.host);
        let owner = owner.ok_or_else(request::stopping)?;
        let answer = owner.request(self.requester(authority), wanted).await;
        Ok(answer.ok_or_else(request::stopping)??)
    }

    async fn receive(&self, authority: Authority, receive: Receive) -> Result<Received, RestError> {
        let owner = self.server.shards.owner_of(self.host);
        let owner = owner.ok_or_else(request::stopping)?;
        let wanted = ReceiveRequest {
            requester: self.requester(authority),
            receive,
        };
        let received = receive::receive(owner, wanted, self.caller.ending.clone()).await;
        Ok(received.ok_or_else(request::stopping)?)
    }
}

/// Reads a body with a bounded length in a bounded time, within the budget of all bodies that are
/// being read.
pub(crate) async fn read(
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
fn respond(answer: RestResponse, message: Option<Undelivered>) -> Response {
    let mut response = Response::new(match message {
        Some(undelivered) => Body::new(MessageBody {
            body: Some(answer.body).filter(|body| !body.is_empty()),
            undelivered: Some(undelivered),
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

/// The body of a message, which counts as delivered when it is being written. It has no
/// `Content-Length`, because old clients take each header that they do not know for a property,
/// `Content-Length` among them, and expect chunks from the service.
struct MessageBody {
    body: Option<Bytes>,
    undelivered: Option<Undelivered>,
}

impl hyper::body::Body for MessageBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(undelivered) = self.undelivered.take() {
            undelivered.delivered();
        }
        Poll::Ready(self.body.take().map(|body| Ok(Frame::data(body))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none() && self.undelivered.is_none()
    }
}

#[cfg(test)]
mod tests {
    use hyper::body::Body as _;
    use tokio::sync::mpsc;

    use super::*;
    use crate::host::mailbox::Mailbox;
    use crate::host::owner_message::OwnerMessage;
    use jitney_base::ids::{EntityId, LockToken};
    use jitney_shard::Input;

    #[tokio::test]
    async fn a_message_comes_in_chunks_and_is_given_back_unless_it_is_being_written() {
        for body in [None, Some(Bytes::from_static(b"hi"))] {
            let (mail, mut owner) = mpsc::channel(1);
            let message = |body| MessageBody {
                body,
                undelivered: Some(Undelivered::of(
                    Mailbox::of_mail(mail.clone()),
                    Input::ReturnReceived(EntityId(3), LockToken::new(1, 2)),
                )),
            };
            let written = message(body.clone());
            // With a known length, or at its end, it would be sent with `Content-Length`.
            assert_eq!(written.size_hint().exact(), None);
            assert!(!written.is_end_stream());
            let expected = body.clone().unwrap_or_default();
            assert_eq!(written.collect().await.unwrap().to_bytes(), expected);
            assert!(owner.is_empty());
            drop(message(body));
            let given_back = owner.recv().await;
            assert!(matches!(
                given_back,
                Some(OwnerMessage::Input(Input::ReturnReceived(EntityId(3), _)))
            ));
        }
    }
}
