//! Namespaces in stores: PostgreSQL databases that several servers share, each namespace in one store, and owned by one of the
//! servers at a time. Crate `postgres` has the sessions, the tables and the logs, crate `cluster` the decisions.
//!
//! | file | what |
//! |---|---|
//! | `arguments.rs` | the arguments of the command line |
//! | `common.rs` | what all servers have in common: keys, configuration |
//! | `authority.rs` | the authority of the certificates that servers show to clients |
//! | `append.rs` | the committer of a namespace: appends rows, and finds out what became of them |
//! | `take_over.rs` | how a server takes a namespace over |
//! | `served.rs` | the namespaces that this server owns, as shards |
//! | `configuration.rs` | the configuration that servers share |
//! | `configure.rs` | which of them is the newest, and to which namespace it was applied |
//! | `heartbeats.rs` | a server says in each store that it is alive |
//! | `poller.rs` | a server looks at each store, and does what is decided |
//! | `measure.rs` | the messages a second of the namespaces that this server has |
//! | `history.rs` | the histories of the namespaces that this server has |
//! | `fleet.rs` | this server's part of the fleet |
//! | `health.rs` | what an operator is to know of them |
//! | `admin.rs` | namespaces that a command holds so that no server has them; their list, and the end of a quarantine |
//! | `transfer.rs` | namespaces moved between a data directory and a store |
//! | `removal.rs` | namespaces removed from a store |
//! | `restored.rs` | what is to be done after the database was restored to an earlier point in time |
//!
//! `docs/high-availability.md` has the guarantees; `docs/store-format.md` the tables to the byte.

mod admin;
mod append;
mod arguments;
mod authority;
mod common;
mod configuration;
mod configure;
mod fleet;
mod health;
mod heartbeats;
mod history;
mod measure;
mod poller;
mod removal;
mod restored;
mod served;
mod take_over;
mod transfer;

pub(super) use admin::{NotDone, Release, Tables, lift, list, open, set_quota};
pub(super) use arguments::StoreArgs;
pub(super) use authority::FleetAuthority;
pub(super) use common::{Common, StoreSetup, prepare};
pub(super) use configuration::{Published, StoreConfiguration, hash_of, parse};
pub(super) use fleet::{Fleet, FleetParts};
pub(super) use health::{Health, StoreHealth};
pub(super) use jitney_cluster::planner::Fitness;
pub(super) use jitney_cluster::view::{FleetView, NamespaceRow, ServerRow, StoreView};
pub(super) use jitney_postgres::{Store, StoreError, Stores};
pub(super) use removal::remove;
pub(super) use restored::{Restored, restored};
pub(super) use served::ServedParts;
pub(super) use transfer::{AfterExport, Exported, Moved, export, import};
