//! Bounds of this crate on resources and times, each with its unit and its reason. Relations between bounds are asserted at the end.

use jitney_base::time::Millis;

/// Characters of an unknown name in the configuration up to which a similar known one is searched:
/// the length of the longest known name, and some more.
pub const CONFIG_NAME_MAX: usize = 64;
/// The shortest window of duplicate detection in the configuration: the emulator's, which is shorter
/// than the service's.
pub const CONFIG_DUPLICATE_WINDOW_MIN: Millis = Millis::from_secs(5);
/// Characters of the name of a namespace that the operator makes.
pub const NAMESPACE_NAME_LENGTH: usize = 50;
