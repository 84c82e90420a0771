//! The types of the JSON API, `/api/v1`: what requests have in them and what answers do, for those who write them and those
//! who read them. `README.md` says where to begin.
//!
//! A field that is absent from an answer has no value: it is empty, zero or false. Unknown fields of requests are refused, and
//! so are those of what both have: properties of entities, selections, filters and actions. Others of answers are passed over. What a
//! release adds to an answer has a default, so that its command line reads the answers of older brokers.

#![allow(
    missing_docs,
    reason = "docs are the descriptions in the OpenAPI document, where a name that says all has none"
)]

pub mod attention;
pub mod audit;
pub mod authorization_rules;
pub mod backups;
pub mod changes;
pub mod configuration;
pub mod connections;
pub mod entities;
pub mod fleet;
pub mod history;
pub mod jobs;
pub mod locks;
pub mod messages;
pub mod namespaces;
pub mod problem;
pub mod receives;
pub mod rule_tests;
pub mod rules;
pub mod schedule;
pub mod search;
pub mod selection;
pub mod sending;
pub mod server;
pub mod sessions;
#[cfg(test)]
mod tests;
