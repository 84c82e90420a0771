//! The batch format: a message whose data sections are messages (`messaging.md#batches`).

use bytes::Bytes;

use super::Malformed;
use super::parse::section;
use crate::limits;
use jitney_amqp::codec::value::binary;
use jitney_amqp::codec::{descriptor, value_length};

/// Splits a batch into its messages, which share its buffer; none if it has no data section.
///
/// Other fields of the envelope are routing hints, and ignored.
///
/// # Errors
///
/// [`Malformed`] if it is not a message, or holds more than [`limits::BATCH_MESSAGES_MAX`].
pub fn split_batch(batch: &Bytes) -> Result<Vec<Bytes>, Malformed> {
    let mut messages = Vec::new();
    let mut rest: &[u8] = batch;
    while !rest.is_empty() {
        let (code, value) = section(rest)?;
        let length = value_length(value).map_err(|error| Malformed(error.to_string()))?;
        let (value, after) = value.split_at(length);
        if code == descriptor::DATA {
            let message = binary(value);
            let message =
                message.ok_or_else(|| Malformed("a data section is no binary".to_owned()))?;
            if limits::BATCH_MESSAGES_MAX <= messages.len() {
                let max = limits::BATCH_MESSAGES_MAX;
                return Err(Malformed(format!(
                    "the batch holds more than {max} messages, the most that are taken at once"
                )));
            }
            messages.push(batch.slice_ref(message));
        }
        rest = after;
    }
    Ok(messages)
}
