//! A request, taken out of its message.

use std::borrow::Cow;

use bytes::Bytes;
use fe2o3_amqp_types::messaging::message::DecodeIntoMessage;
use fe2o3_amqp_types::messaging::{Body as MessageBody, MessageId, Properties};
use fe2o3_amqp_types::primitives::SimpleValue;
use serde_amqp::Value;
use serde_amqp::read::SliceReader;

use super::values::{Map, text};
use crate::message::Message;

/// What a client asks of a service node.
#[derive(Debug, Default)]
pub(in crate::broker) struct Request {
    /// Goes back as the response's correlation-id, in the type it came in.
    pub(in crate::broker) message_id: Option<MessageId>,
    pub(in crate::broker) reply_to: Option<String>,
    pub(in crate::broker) operation: String,
    /// `type` of a put-token.
    pub(in crate::broker) kind: Option<String>,
    /// `name` of a put-token: what the token is for.
    pub(in crate::broker) name: Option<String>,
    /// `associated-link-name`: the link that the request is about.
    pub(in crate::broker) link: Option<String>,
    pub(in crate::broker) body: Value,
}

impl Request {
    /// Decodes a request.
    ///
    /// # Errors
    ///
    /// What is wrong, and as much of the request as an answer needs.
    pub(in crate::broker) fn decode(payload: Bytes) -> Result<Self, Box<(Self, String)>> {
        // Lengths and nesting are checked before anything is decoded.
        let payload = match Message::parse(payload) {
            Ok(message) => message.bytes().clone(),
            Err(error) => return Err(Box::new((Self::default(), error.to_string()))),
        };
        let message = MessageBody::<Value>::decode_message_from_reader(SliceReader::new(&payload));
        let message = message.map_err(|error| {
            Box::new((
                Self::default(),
                format!("the request could not be decoded: {error}"),
            ))
        })?;
        let properties = message.properties.unwrap_or_default();
        let Properties {
            message_id,
            reply_to,
            ..
        } = properties;
        let mut request = Self {
            message_id,
            reply_to,
            ..Self::default()
        };
        for (name, value) in message
            .application_properties
            .into_iter()
            .flat_map(|all| all.0)
        {
            let SimpleValue::String(value) = value else {
                continue;
            };
            match name.as_str() {
                "operation" => request.operation = value,
                "type" => request.kind = Some(value),
                "name" => request.name = Some(value),
                "associated-link-name" => request.link = Some(value),
                _ => {}
            }
        }
        if request.operation.is_empty() {
            let text = "the application-property 'operation' is missing or is not a string";
            return Err(Box::new((request, text.to_owned())));
        }
        match message.body {
            MessageBody::Value(value) => request.body = value.0,
            MessageBody::Empty => {}
            MessageBody::Data(_) | MessageBody::Sequence(_) => {
                return Err(Box::new((
                    request,
                    "the body must be an amqp-value".to_owned(),
                )));
            }
        }
        Ok(request)
    }

    /// Returns the body as text.
    pub(in crate::broker) fn body_text(&self) -> Option<Cow<'_, str>> {
        text(&self.body)
    }

    /// Returns the body as the map that management operations take.
    pub(super) fn map(&self) -> Result<Map<'_>, String> {
        match &self.body {
            Value::Map(map) => Ok(Map::new(map)),
            _ => Err("the body must be an amqp-value that holds a map".to_owned()),
        }
    }
}
