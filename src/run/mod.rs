//! `jitney serve`: the start of all parts, and the stop.

pub(super) mod arguments;
mod cluster;
mod config_file;
mod local;
mod profile;
mod protocols;
mod running;
mod signals;
pub(super) mod start;
mod start_error;
mod start_report;
mod stdin;
