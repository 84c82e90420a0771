//! The scenarios of `../scenarios.md` through two Rust clients: the `azservicebus` SDK, and the generic `fe2o3-amqp`.

mod generic;
mod generic_doors;
mod sdk_deferring;
mod sdk_doors;
mod sdk_peeking;
mod sdk_receiving;
mod sdk_scheduling;
mod sdk_sending;
mod sdk_settling;
