//! The parts with side effects: tasks, sockets, files, the clock, signals. It decides nothing.
//!
//! ```text
//!  connection tasks ──inputs──► owner task ──frames──► committer ──► disk
//!         ▲                        │  ▲                    │
//!         └──────── outboxes ──────┘  └──── durable ───────┘
//! ```
//!
//! The tasks of a shard run on its thread (`runtime.rs`). The committer is a part of the owner for what is small, and a
//! thread for the rest.
#![allow(
    clippy::disallowed_methods,
    reason = "the server is where clocks are read and tasks are made"
)]

mod admission;
mod answers;
mod api;
mod atom;
mod backup;
mod balancers;
mod buffers;
mod certs;
pub mod cli;
pub mod clock;
mod commands;
mod committer;
mod config_file;
mod configuration;
mod connection;
mod console;
pub mod disk;
mod exchange;
mod fetch;
mod files;
mod foreign;
mod header_case;
mod health;
mod history;
mod http;
mod lease;
pub mod limits;
mod listen;
mod listen_address;
mod listener;
mod logging;
mod mail;
mod mailbox;
mod membership;
mod memory;
mod messages;
mod metrics;
mod namespace_connections;
mod namespaces;
mod oidc;
mod operator;
mod outbox;
mod owner;
mod page_file;
mod partials;
mod peer;
mod placement;
mod print;
mod profile;
mod protocols;
mod provision;
mod proxy;
mod proxy_protocol;
mod quota;
mod read_only;
mod reader;
mod receive;
mod refusals;
mod reload;
mod request;
mod restore;
mod root_key;
mod running;
mod runtime;
mod scheme;
mod serve;
mod serve_arguments;
mod shards;
mod shared;
mod sign_in;
mod signals;
mod socket;
mod start_error;
mod start_report;
mod startup;
mod state;
mod status;
mod store;
mod supervisor;
mod tls;
mod traces;
mod unauthenticated;
mod vitals;
mod warning;
mod websocket;
