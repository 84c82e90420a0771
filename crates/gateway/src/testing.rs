//! What tests of this crate and of those above do with a gateway without frames.

#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "a test that fails may do so in any way"
)]

use fe2o3_amqp_types::definitions::{ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp_types::messaging::{Source, Target};
use fe2o3_amqp_types::primitives::OrderedMap;
use jitney_amqp::LinkId;
use jitney_amqp::{
    Attach, DeliveryId, Event, IncomingTransfer, LinkCredit, LinkRole, LinkTarget, SessionId,
};
use jitney_base::ids::{ConnectionId, EntityId, SequenceNumber};
use jitney_broker::namespace::{Denied, StepContext};
use jitney_message::Message;
use jitney_queue::ReceiveMode;
use jitney_queue::limits;
use serde_amqp::Value;

use crate::amqp::{Link, consumer_id};
use crate::{Gateway, Report};

/// A message whose body is one word.
#[must_use]
pub fn message(word: &str) -> Message {
    let mut bytes = vec![0x00, 0x53, 0x75, 0xa0, u8::try_from(word.len()).unwrap()];
    bytes.extend_from_slice(word.as_bytes());
    Message::parse(bytes.into()).unwrap()
}

/// Where requests go, and where answers come from.
pub(crate) const REQUESTS: LinkId = LinkId(1);
pub(crate) const RESPONSES: LinkId = LinkId(2);

/// Asks for a link to a node, or from it.
pub(crate) fn attach(link: LinkId, path: &str) -> Report {
    let (role, source, target) = match link {
        REQUESTS => (LinkRole::Incoming, "me", path),
        _ => (LinkRole::Outgoing, path, "me"),
    };
    let target = Target::builder().address(target).build();
    let attach = Attach {
        name: format!("link {}", link.0),
        role,
        session: SessionId(0),
        source: Some(Source::builder().address(source).build()),
        target: LinkTarget::Node(Some(target)),
        snd_settle_mode: SenderSettleMode::default(),
        rcv_settle_mode: ReceiverSettleMode::default(),
        message_size_max: 0,
        properties: None,
    };
    Report::Event(Event::AttachRequested(link, Box::new(attach)))
}

/// Asks for a receiver of a message session: of this one, or of the next that is free. Its name is `link 3` if it is the
/// third.
#[cfg(test)]
pub(crate) fn attach_session(link: LinkId, path: &str, session: Option<&str>) -> Report {
    let Report::Event(Event::AttachRequested(link, mut attach)) = attach(link, path) else {
        unreachable!("it is an attach")
    };
    let wanted = session.map_or(Value::Null, |id| Value::String(id.to_owned()));
    let filter = [("com.microsoft:session-filter".into(), wanted)];
    if let Some(source) = &mut attach.source {
        source.filter = Some(filter.into_iter().collect());
    }
    Report::Event(Event::AttachRequested(link, attach))
}

/// A request, with a map in its body.
pub(crate) fn request(operation: &str, entries: Vec<(&str, Value)>) -> Report {
    request_about(None, operation, entries)
}

/// A request that is about a link, with a map in its body.
pub(crate) fn request_about(
    link: Option<&str>,
    operation: &str,
    entries: Vec<(&str, Value)>,
) -> Report {
    let of = |text: &str| Value::String(text.to_owned());
    let operation = of(&format!("com.microsoft:{operation}"));
    let link = link.map(|link| (of("associated-link-name"), of(link)));
    let properties = [(of("operation"), operation)].into_iter().chain(link);
    let properties: OrderedMap<Value, Value> = properties.collect();
    let entries = entries.into_iter().map(|(name, value)| (of(name), value));
    let mut payload = vec![0x00, 0x53, 0x74];
    payload.extend(serde_amqp::to_vec(&Value::Map(properties)).unwrap());
    payload.extend([0x00, 0x53, 0x77]);
    payload.extend(serde_amqp::to_vec(&Value::Map(entries.collect())).unwrap());
    Report::Event(Event::Transfer(IncomingTransfer {
        link: REQUESTS,
        delivery: DeliveryId(0),
        payload: payload.into(),
        message_format: 0,
        settled: false,
        transaction: None,
    }))
}

/// Lets a client attach its links to a node, with credit for many answers.
pub(crate) fn attach_both(
    gateway: &mut Gateway,
    cx: &mut StepContext<'_>,
    id: ConnectionId,
    path: &str,
) {
    let node = format!("{path}/$management");
    gateway.apply(cx, id, attach(REQUESTS, &node));
    gateway.apply(cx, id, attach(RESPONSES, &node));
    let (link, limit, drain) = (RESPONSES, 1_000, false);
    let credit = Event::Credit(LinkCredit { link, limit, drain });
    gateway.apply(cx, id, Report::Event(credit));
}

/// A request that looks for messages of a message session that there is none of.
pub(crate) fn search() -> Report {
    let entries = vec![
        ("from-sequence-number", Value::Long(0)),
        ("message-count", Value::Int(10)),
        ("session-id", Value::String("none".to_owned())),
    ];
    request("peek-message", entries)
}

impl Gateway {
    /// Attaches a receiver to a queue, with credit for one message, as an attach and a flow do.
    ///
    /// # Panics
    ///
    /// There is no such queue.
    pub fn attach_receiver(
        &mut self,
        cx: &mut StepContext<'_>,
        connection: ConnectionId,
        link: LinkId,
        path: &str,
    ) {
        let queue = self.namespaces.resolve_path(path).unwrap();
        let state = Link::Receiver { queue, name: None };
        self.connection(connection).links.insert(link, state);
        let consumer = consumer_id(connection, link);
        self.with_queue(cx, queue, |queue, cx| {
            queue.add_consumer(consumer, ReceiveMode::PeekLock);
            queue.set_credit(cx, consumer, 1);
        });
    }

    /// Takes messages into a queue; returns their numbers.
    pub fn take_messages(
        &mut self,
        cx: &mut StepContext<'_>,
        queue: EntityId,
        messages: Vec<Message>,
    ) -> Result<Vec<SequenceNumber>, Denied> {
        self.with_namespaces(cx, |namespaces, cx| {
            namespaces.take_messages(cx, queue, messages)
        })
    }

    /// Takes a message into a queue whose body is one word.
    pub fn take_word(&mut self, cx: &mut StepContext<'_>, path: &str, word: &str) {
        let queue = self.namespaces.resolve_path(path).unwrap();
        self.take_messages(cx, queue, vec![message(word)]).unwrap();
    }

    /// Makes a queue `q` and lets a connection look for what is not there, so often; others have used
    /// up this turn's budget.
    ///
    /// # Panics
    ///
    /// The queue cannot be made.
    pub fn leave_calls_unfinished(
        &mut self,
        cx: &mut StepContext<'_>,
        id: ConnectionId,
        calls: usize,
    ) {
        let description = jitney_queue::Description::default();
        self.ensure_entity(cx, "q", description).unwrap();
        attach_both(self, cx, id, "q");
        self.scans.spend(limits::SCAN_BUDGET);
        for _ in 0..calls {
            self.apply(cx, id, search());
        }
        assert!(self.has_unfinished());
    }

    /// Sends small messages to the queue `q`.
    ///
    /// # Panics
    ///
    /// They are refused.
    pub fn fill(&mut self, cx: &mut StepContext<'_>, count: usize) {
        let q = self.namespaces.resolve_path("q").unwrap();
        let taken = self.take_messages(cx, q, vec![message("x"); count]);
        assert_eq!(taken.unwrap().len(), count);
    }
}
