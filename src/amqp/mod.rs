//! Connections over AMQP: the task of each, and the shard that it is in.

pub(super) mod connection;
mod membership;
