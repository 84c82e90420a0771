//! Bounds of the administration API, each with its unit and its reason.

/// Length of the body of a request, bytes: the longest that clients write, a correlation filter
/// with all that a message's properties may hold, is some 100 KiB.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Nesting of elements: clients need nine, for the value of a parameter of a default rule.
pub(super) const DEPTH_MAX: usize = 16;
/// Elements of one document: 1,000 properties of a correlation filter have 3,000.
pub(super) const ELEMENTS_MAX: usize = 4_096;
/// Attributes of one element, declarations of namespaces among them: clients write three.
pub(super) const ATTRIBUTES_MAX: usize = 16;
/// Length of the value of an attribute, bytes: the longest are names of namespaces.
pub(super) const ATTRIBUTE_BYTES_MAX: usize = 1_024;
/// Length of the text of an element, bytes: the service's limit for one property of a message.
pub(super) const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Length of a path and its query, bytes: the longest names, each character encoded.
pub(super) const TARGET_BYTES_MAX: usize = 8 * 1024;
/// Characters of a wrong value that are quoted in an error.
pub(super) const SHOWN_MAX: usize = 64;
pub(super) use crate::limits::LISTED_MAX as PAGE_ENTRIES_MAX;
/// Seconds after which a client may retry when the broker was busy.
pub(super) const BUSY_SECONDS: u32 = 10;
