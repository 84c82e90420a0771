//! Stores: PostgreSQL databases that servers share, their sessions, tables and logs.
//!
//! A [`Store`] lends [`Session`]s, each of which is set up and verified, and connected to the newest primary. What is done with them
//! is a statement that names its [`Fence`], so that a server which lost a namespace changes nothing of it. Times are those of the
//! machine; nothing here decides which server has which namespace.
//!
//! `docs/store-format.md` has the tables to the byte, `docs/high-availability.md` the guarantees.

#![allow(
    clippy::disallowed_methods,
    reason = "sessions are tasks, and wait for a database"
)]
#![cfg_attr(
    test,
    allow(
        clippy::wildcard_enum_match_arm,
        reason = "a test fails on any other variant"
    )
)]

mod checks;
mod connect;
mod error;
mod fence;
pub mod history;
mod hosts;
pub mod limits;
mod log;
pub mod ownership;
pub mod schema;
mod sql;
mod stores;
mod timeline;
mod view;

pub use checks::{UnsafeSettings, check, check_connections};
pub use connect::{ONLY, Params, Session, Store, StoreOptions};
pub use error::{StoreError, chain};
pub use fence::{Fence, Owned, Uuid, random_bits, random_id, random_uuid};
pub use log::StoreLog;
pub use sql::{signed, unsigned};
pub use stores::{Recorded, Refused, Reserving, Stores};
pub use timeline::Timeline;
pub use tokio_postgres::types::ToSql;
pub use tokio_postgres::{Error as StatementError, Statement};
pub use view::read as read_view;
