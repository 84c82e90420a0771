//! The shards of this server: their owners and mailboxes, the files of their logs, and what they are made of at the
//! start.

pub(super) mod backup;
pub(super) mod committer;
pub(super) mod configuration;
pub(super) mod disk;
pub(super) mod history;
pub(super) mod mailbox;
pub(super) mod memory;
pub(super) mod namespaces;
pub(super) mod oidc;
pub(super) mod outbox;
pub(super) mod owner;
pub(super) mod owner_message;
pub(super) mod page_file;
pub(super) mod partials;
pub(super) mod placement;
pub(super) mod provision;
pub(super) mod quota;
pub(super) mod read_only;
pub(super) mod reader;
pub(super) mod reload;
pub(super) mod restore;
pub(super) mod root_key;
pub(super) mod shards;
pub(super) mod traces;
pub(super) mod vitals;
