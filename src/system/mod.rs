//! What the server takes from the operating system: the clock, files, threads, and log lines on standard error. It
//! imports no other part of the server.

pub(super) mod clock;
pub(super) mod files;
pub(super) mod logging;
pub(super) mod print;
pub(super) mod runtime;
pub(super) mod service;
pub(super) mod supervisor;
