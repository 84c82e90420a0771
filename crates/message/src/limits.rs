//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

use jitney_amqp::limits::ENVELOPE_BYTES;
use jitney_base::limits::{MESSAGE_SIZE_MAX, MESSAGE_SIZE_STANDARD};

/// Largest message of an entity that sets no other, bytes: the Premium tier's default.
pub const MESSAGE_SIZE_DEFAULT: u64 = 1024 * 1024;
/// Bytes of one application-property, as it is encoded: the service's limit.
pub const PROPERTY_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a message's properties, application-properties and annotations together: the service's limit.
pub const PROPERTIES_BYTES_MAX: usize = 64 * 1024;
/// Messages in one batch: more than any batch of the default size can hold, so that its bytes are
/// the bound; of larger ones it bounds the work of one transfer, a tenth of a second.
pub const BATCH_MESSAGES_MAX: usize = 128 * 1024;
/// Bytes of the smallest message in a batch: a section's head and its length, and an empty value.
const BATCHED_MESSAGE_BYTES_MIN: u64 = 5 + 4;

const _: () = assert!(
    (MESSAGE_SIZE_DEFAULT + ENVELOPE_BYTES) / BATCHED_MESSAGE_BYTES_MIN < 128 * 1024,
    "batches of the default size are bounded by their bytes"
);
const _: () = assert!(MESSAGE_SIZE_STANDARD <= MESSAGE_SIZE_DEFAULT);
const _: () = assert!(MESSAGE_SIZE_DEFAULT <= MESSAGE_SIZE_MAX);
