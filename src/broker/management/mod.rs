//! The management node of an entity, and the requests and responses of all service nodes.
//!
//! A request is a message with an operation among its application-properties; its response goes
//! out on a link that the request names in its reply-to (`protocol.md` §2.1, §7).

mod envelope;
mod operations;
mod response;
mod values;

use serde_amqp::Value;

use super::links::{Orphan, ServiceNode};
use super::send::Incoming;
use super::{Broker, ConnectionId, Link, LinkId, Reply, Routed, Surroundings};
use crate::amqp::{Fields, SessionId};
use crate::limits;

pub(super) use envelope::Request;
pub use response::Response;
pub(super) use response::{Body, Status};

/// The link property from which clients take the size of a batch: a `long` (`protocol.md` §4.2).
pub(super) fn batch_size_property(bytes: u64) -> Fields {
    let size = i64::try_from(bytes.min(limits::MESSAGE_SIZE_DEFAULT)).unwrap_or(i64::MAX);
    let mut properties = Fields::new();
    properties.insert(
        "com.microsoft:max-message-batch-size".into(),
        Value::Long(size),
    );
    properties
}

impl Broker {
    /// Carries a request out and sends its response on its way.
    pub(super) fn request(
        &mut self,
        around: &mut Surroundings<'_>,
        connection: ConnectionId,
        incoming: &Incoming,
    ) {
        let Some(Link::Requests { node, session }) = self.link(connection, incoming.link) else {
            return;
        };
        let (node, session) = (node.clone(), *session);
        let request = match Request::decode(incoming.payload.clone()) {
            Ok(request) => request,
            Err(invalid) => {
                let (request, text) = *invalid;
                let status = Status::invalid(&text);
                let response = Response::new(&request, status, Body::Empty);
                self.respond(
                    around,
                    connection,
                    Answer {
                        node,
                        session,
                        rests_on: 0,
                        response,
                    },
                );
                return;
            }
        };
        let (rests_on, status, body) = match &node {
            ServiceNode::Cbs => {
                let (status, body) = self.cbs_request(&request);
                (0, status, body)
            }
            ServiceNode::Management(address) => self.operate(around, address, &request),
        };
        let response = Response::new(&request, status, body);
        self.respond(
            around,
            connection,
            Answer {
                node,
                session,
                rests_on,
                response,
            },
        );
    }

    /// Finds the link for a response, and sends it when there is credit.
    fn respond(&mut self, around: &mut Surroundings<'_>, id: ConnectionId, reply: Answer) {
        let Answer {
            node,
            session,
            rests_on,
            response,
        } = reply;
        let connection = self.connection(id);
        let response = Box::new(response);
        match find(
            &connection.links,
            &node,
            session,
            response.reply_to.as_deref(),
        ) {
            Some(link) => {
                if let Some(Link::Responses(state)) = connection.links.get_mut(&link)
                    && state.waiting.len() < limits::RESPONSES_WAITING_MAX
                {
                    state.waiting.push_back((rests_on, response));
                }
                self.flush_responses(around, id, link);
            }
            None if connection.orphans.len() < limits::RESPONSES_WAITING_MAX => {
                connection.orphans.push_back(Orphan {
                    node,
                    session,
                    rests_on,
                    response,
                });
            }
            None => {}
        }
    }

    /// Gives responses that had no link to one that has just been attached.
    pub(super) fn adopt_orphans(
        &mut self,
        around: &mut Surroundings<'_>,
        id: ConnectionId,
        link: LinkId,
    ) {
        let orphans = std::mem::take(&mut self.connection(id).orphans);
        if orphans.is_empty() || !matches!(self.link(id, link), Some(Link::Responses(_))) {
            self.connection(id).orphans = orphans;
            return;
        }
        for Orphan {
            node,
            session,
            rests_on,
            response,
        } in orphans
        {
            self.respond(
                around,
                id,
                Answer {
                    node,
                    session,
                    rests_on,
                    response: *response,
                },
            );
        }
    }

    pub(super) fn respond_credit(
        &mut self,
        around: &mut Surroundings<'_>,
        id: ConnectionId,
        link: LinkId,
        limit: u32,
        drain: bool,
    ) {
        if let Some(Link::Responses(state)) = self.connection(id).links.get_mut(&link) {
            state.limit = limit;
        }
        self.flush_responses(around, id, link);
        if drain {
            if let Some(Link::Responses(state)) = self.connection(id).links.get_mut(&link) {
                state.sent = state.limit;
            }
            let reply = Reply::Drained(link, limit);
            around.replies.push(Routed {
                connection: id,
                rests_on: around.group,
                reply,
            });
        }
    }

    fn flush_responses(&mut self, around: &mut Surroundings<'_>, id: ConnectionId, link: LinkId) {
        let Some(Link::Responses(state)) = self.connection(id).links.get_mut(&link) else {
            return;
        };
        loop {
            let credit = state.limit.wrapping_sub(state.sent);
            if credit == 0 || credit >= 1 << 31 {
                return;
            }
            let Some((rests_on, response)) = state.waiting.pop_front() else {
                return;
            };
            state.sent = state.sent.wrapping_add(1);
            let reply = Reply::Respond(link, response);
            around.replies.push(Routed {
                connection: id,
                rests_on,
                reply,
            });
        }
    }
}

/// A response and where it is to go.
struct Answer {
    node: ServiceNode,
    session: SessionId,
    rests_on: u64,
    response: Response,
}

/// Finds the link that a reply-to names: by its target's address, else by its own name, else,
/// where nothing is named or Python names the node itself, the node's link in the request's
/// session (`protocol.md` §2.1).
fn find(
    links: &std::collections::BTreeMap<LinkId, Link>,
    node: &ServiceNode,
    session: SessionId,
    reply_to: Option<&str>,
) -> Option<LinkId> {
    let of_node = || {
        links.iter().filter_map(|(&id, link)| match link {
            Link::Responses(state) if state.node == *node => Some((id, state)),
            _ => None,
        })
    };
    let by_target = || of_node().filter(|(_, link)| link.target.as_deref() == reply_to);
    let Some(name) = reply_to else {
        return of_node()
            .find(|(_, link)| link.session == session)
            .map(|(id, _)| id);
    };
    by_target()
        .find(|(_, link)| link.session == session)
        .or_else(|| by_target().next())
        .or_else(|| of_node().find(|(_, link)| link.name == name))
        .map(|(id, _)| id)
}
