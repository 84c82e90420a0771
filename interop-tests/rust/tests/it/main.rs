//! The scenarios of `../scenarios.md` through two Rust clients: the `azservicebus` SDK, and the generic `fe2o3-amqp`.

mod generic;
mod generic_transports;
mod restarts;
mod sdk_deferring;
mod sdk_expiring;
mod sdk_forwarding;
mod sdk_peeking;
mod sdk_receiving;
mod sdk_rules;
mod sdk_scheduling;
mod sdk_sending;
mod sdk_sessions;
mod sdk_settling;
mod sdk_topics;
mod sdk_transports;
