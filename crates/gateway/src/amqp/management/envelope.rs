//! A request, as its message holds it: nothing of it is decoded but what is asked for.

use std::fmt;

use bytes::Bytes;

use super::values::Map;
use jitney_amqp::codec::Encoded;
use jitney_message::{Field, Message};

/// A request of a client to a service node.
#[derive(Default)]
pub(crate) struct RequestMessage {
    /// Goes back as the response's correlation-id, as it is encoded.
    pub(crate) message_id: Option<Bytes>,
    pub(crate) reply_to: Option<String>,
    pub(crate) operation: String,
    /// `type` of a put-token.
    pub(crate) kind: Option<String>,
    /// `name` of a put-token: what the token is for.
    pub(crate) name: Option<String>,
    /// `associated-link-name`: the link that the request is about.
    pub(crate) link: Option<String>,
    /// The value in its body, as it is encoded: a slice of the message. Empty if it has none.
    body: Bytes,
}

/// Without the body, which may be a token.
impl fmt::Debug for RequestMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestMessage")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

impl RequestMessage {
    /// Takes a request out of its message.
    ///
    /// # Errors
    ///
    /// The problem, and as much of the request as a response needs.
    pub(crate) fn read(payload: &Bytes) -> Result<Self, Box<(Self, String)>> {
        let message = match Message::parse(payload.clone()) {
            Ok(message) => message,
            Err(error) => return Err(Box::new((Self::default(), error.to_string()))),
        };
        let reply_to = message.field(Field::ReplyTo).map(Encoded::new);
        // Proton's `SyncRequestResponse` gives a correlation-id alone, and looks for it in the answer.
        let id = |field| {
            message
                .field(field)
                .filter(|value| !Encoded::new(value).is_null())
        };
        let id = id(Field::MessageId).or_else(|| id(Field::CorrelationId));
        let mut request = Self {
            message_id: id.map(Bytes::copy_from_slice),
            reply_to: reply_to.and_then(Encoded::text).map(str::to_owned),
            ..Self::default()
        };
        for (name, value) in message.application_properties() {
            let text = || Encoded::new(value).text().map(str::to_owned);
            match name {
                "operation" => request.operation = text().unwrap_or_default(),
                "type" => request.kind = text(),
                "name" => request.name = text(),
                "associated-link-name" => request.link = text(),
                _ => {}
            }
        }
        if request.operation.is_empty() {
            let text = "the application-property 'operation' is missing or is not a string";
            return Err(Box::new((request, text.to_owned())));
        }
        match message.value() {
            Ok(value) => request.body = payload.slice_ref(value),
            Err(error) => return Err(Box::new((request, error.to_string()))),
        }
        Ok(request)
    }

    /// Returns how many bytes it keeps beside its message.
    pub(super) fn bytes(&self) -> usize {
        let texts = [&self.reply_to, &self.kind, &self.name, &self.link];
        let texts = texts.into_iter().flatten().map(String::len);
        self.message_id.as_ref().map_or(0, Bytes::len) + self.operation.len() + texts.sum::<usize>()
    }

    /// Keeps what an answer needs that refuses it.
    pub(super) fn without_content(self) -> Self {
        Self {
            message_id: self.message_id,
            reply_to: self.reply_to,
            operation: self.operation,
            ..Self::default()
        }
    }

    /// Returns the body as text.
    pub(crate) fn body_text(&self) -> Option<&str> {
        Encoded::new(&self.body).text()
    }

    /// Returns the body as the map that management operations take.
    pub(super) fn map(&self) -> Result<Map<'_>, String> {
        let map = Map::new(Encoded::new(&self.body));
        map.ok_or_else(|| "the body must be an amqp-value that holds a map".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request for an operation, with a list of lists of nulls for its body.
    fn nested(inner: usize, outer: usize) -> Bytes {
        let list = |elements: &[u8], count: usize| {
            let size = u32::try_from(elements.len() + 4).unwrap().to_be_bytes();
            let count = u32::try_from(count).unwrap().to_be_bytes();
            [&[0xd0][..], &size, &count, elements].concat()
        };
        let value = list(&list(&vec![0x40; inner], inner).repeat(outer), outer);
        let operation = b"\x00\x53\x74\xc1\x0f\x02\xa1\x09operation\xa1\x01x";
        [&operation[..], &[0x00, 0x53, 0x77], &value]
            .concat()
            .into()
    }

    #[test]
    fn a_body_stays_in_the_bytes_that_came_until_it_is_asked_for() {
        let payload = nested(10_000, 50);
        let request = RequestMessage::read(&payload).unwrap();
        assert_eq!(request.operation, "x");
        assert!(payload.as_ptr_range().contains(&request.body.as_ptr()));
        assert!(request.map().is_err());
    }

    #[test]
    fn a_body_of_too_many_values_is_refused() {
        let (_, why) = *RequestMessage::read(&nested(60_000, 20)).unwrap_err();
        assert!(why.contains("elements together"), "{why}");
    }

    #[test]
    fn a_token_in_a_body_is_not_in_what_is_printed() {
        let token = b"\x00\x53\x74\xc1\x0f\x02\xa1\x09operation\xa1\x01x\x00\x53\x77\xa1\x05token";
        let request = RequestMessage::read(&Bytes::from_static(token)).unwrap();
        assert_eq!(request.body_text(), Some("token"));
        assert!(!format!("{request:?}").contains("token"));
    }

    #[test]
    fn a_body_that_is_no_value_is_refused_with_what_an_answer_needs() {
        let payload = b"\x00\x53\x73\xc0\x04\x01\xa1\x01m\x00\x53\x74\xc1\x0f\x02\xa1\x09operation\xa1\x01x\x00\x53\x75\xa0\x00";
        let (request, why) = *RequestMessage::read(&Bytes::from_static(payload)).unwrap_err();
        assert!(why.contains("amqp-value"), "{why}");
        assert_eq!(request.message_id.as_deref(), Some(&b"\xa1\x01m"[..]));
    }
}
