//! `jitney store`: the operator's commands on a store that servers share. They use the database itself, whether servers run or
//! not.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::arguments::ConsentArgs;
use super::shell::Output;
use super::table::Table;
use crate::limits;
use crate::store::{self, AfterExport, Exported, Moved, NotDone, Release, Restored, Store, Tables};
use crate::system::logging::{self, LogArgs, LogFormat};
use crate::system::print;

/// What can be done with a store. The exit code is 0 if it is done, 1 if it is refused, 2 if it was called wrongly, 3 if the
/// store cannot be reached or used, and 4 if there is no such namespace.
#[derive(Debug, Subcommand)]
pub(super) enum StoreCommand {
    /// List the namespaces of the store, with the server that has each, and with the reasons of quarantines.
    List(ListNamespacesArgs),
    /// Move the namespaces of a data directory into the store. No broker may have the directory, which stays as it is; do not serve
    /// it again after that. Messages keep their sequence numbers.
    Import(ImportArgs),
    /// Copy a namespace of the store into a new data directory for `jitney serve --data-dir`. While it is read no server has it. It
    /// stays in the store with its messages, and is served from there again after that, unless it is in quarantine.
    Export(ExportArgs),
    /// After the database was restored to an earlier point in time: let servers that knew it before stop, and give no sequence
    /// number twice. Run it before servers are started, and again after each restore.
    Restored(StoreUrl),
    /// Let servers take a namespace that is in quarantine.
    Release(NamespaceArgs),
    /// Bound what the clients of a namespace may send together. Its server reads from them more slowly while they send more, and
    /// refuses nothing over AMQP.
    Quota(QuotaArgs),
    /// Delete a namespace with all its messages.
    #[command(alias = "drop")]
    Delete(DeleteArgs),
}

/// Which store.
#[derive(Debug, Args)]
pub(super) struct StoreUrl {
    /// The database: postgres://USER:PASSWORD@HOST:PORT/DATABASE. If the servers have several stores, the URL of one of
    /// them.
    #[arg(
        long,
        value_name = "[NAME=]URL",
        env = "JITNEY_STORE",
        hide_env_values = true
    )]
    store: String,
    /// The certificate authorities of the database, as PEM. The default is those of the system.
    #[arg(long, value_name = "FILE")]
    store_ca: Option<PathBuf>,
}

/// List the namespaces.
#[derive(Debug, Args)]
pub(super) struct ListNamespacesArgs {
    /// Which store.
    #[command(flatten)]
    url: StoreUrl,
    /// The form of the output.
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// Move namespaces into the store.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Which store.
    #[command(flatten)]
    url: StoreUrl,
    /// The data directory.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Move only this namespace; may be given several times. Without it, all namespaces are moved. If the servers have several
    /// stores, import into each store the namespaces whose names are reserved in it.
    #[arg(long, value_name = "NAME")]
    namespace: Vec<String>,
    /// Use the database although its version or a setting that durability needs is refused: for offers that replicate below PostgreSQL.
    #[arg(long)]
    store_unchecked: bool,
}

/// Copy a namespace of the store into a data directory.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Which store.
    #[command(flatten)]
    url: StoreUrl,
    /// Its name.
    namespace: String,
    /// The data directory that is made; it must not exist, or be empty.
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
    /// Leave the namespace in quarantine, so that no message comes into the store after the export: until `jitney store release`, or
    /// until it is deleted.
    #[arg(long)]
    hold: bool,
}

/// One namespace.
#[derive(Debug, Args)]
pub(super) struct NamespaceArgs {
    /// Which store.
    #[command(flatten)]
    url: StoreUrl,
    /// Its name.
    namespace: String,
}

/// Bound what clients may send.
#[derive(Debug, Args)]
pub(super) struct QuotaArgs {
    /// Which store.
    #[command(flatten)]
    url: StoreUrl,
    /// Its name.
    namespace: String,
    #[command(flatten)]
    quota: QuotaBound,
}

/// The bound.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct QuotaBound {
    /// Bytes a second, of frames over AMQP and of messages over HTTP, 65536 at least. What comes in one second may come at once.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(limits::QUOTA_MIN..))]
    bytes_per_second: Option<u64>,
    /// Nothing is bounded.
    #[arg(long)]
    none: bool,
}

/// Delete a namespace.
#[derive(Debug, Args)]
pub(super) struct DeleteArgs {
    /// Which store.
    #[command(flatten)]
    url: StoreUrl,
    /// Its name.
    namespace: String,
    #[command(flatten)]
    consent: ConsentArgs,
}

const LISTED: Table = Table::of(&[
    ("NAME", "/name"),
    ("NUMBER", "/number"),
    ("EPOCH", "/epoch"),
    ("SERVER", "/server"),
    ("SEGMENTS", "/segments"),
    ("BYTES", "/bytes"),
    ("QUOTA", "/quota"),
    ("FIRST", "/first"),
    ("IN QUARANTINE", "/quarantined"),
]);

const NEWEST: Table = Table::of(&[("NAMESPACE", "/name"), ("NEWEST GROUP", "/group")]);

/// Carries a command out.
pub(crate) fn run(command: &StoreCommand) -> ExitCode {
    // A command that waits for the database says so there.
    let logs = LogArgs {
        log_format: LogFormat::Text,
        log_requests: false,
    };
    if let Err(error) = logging::start(&logs) {
        print::complain(error);
        return ExitCode::from(2);
    }
    if let StoreCommand::Delete(args) = command {
        let question = format!(
            "Delete the namespace {} with all its messages?",
            args.namespace
        );
        if let Err(error) = args.consent.confirm(&question) {
            print::complain(format_args!("jitney: {error}"));
            return ExitCode::from(error.exit_code());
        }
    }
    let runtime = match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            return ExitCode::from(3);
        }
    };
    match carry_out(&runtime, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

fn carry_out(runtime: &Runtime, command: &StoreCommand) -> Result<(), NotDone> {
    let open = |url: &StoreUrl, tables: Tables| -> Result<Arc<Store>, NotDone> {
        runtime.block_on(store::open(&url.store, url.store_ca.clone(), tables))
    };
    match command {
        StoreCommand::List(args) => {
            let store = open(&args.url, Tables::Needed)?;
            let all = runtime.block_on(store::list(&store))?;
            let rows: Vec<Value> = all.iter().map(|it| json!(it)).collect();
            match args.output {
                Output::Json => print::json(&json!({"namespaces": rows})),
                Output::Table => print::line(LISTED.render(&rows)),
            }
        }
        StoreCommand::Import(args) => {
            let tables = if args.store_unchecked {
                Tables::MadeUnchecked
            } else {
                Tables::Made
            };
            let store = open(&args.url, tables)?;
            let moved = store::import(runtime.handle(), &store, &args.data_dir, &args.namespace)?;
            show_import(&moved, store.place());
        }
        StoreCommand::Export(args) => {
            let store = open(&args.url, Tables::Needed)?;
            let (name, directory) = (&args.namespace, &args.data_dir);
            let after = if args.hold {
                AfterExport::Held
            } else {
                AfterExport::Served
            };
            let done = store::export(runtime.handle(), &store, name, directory, after)?;
            show_export(&done, directory);
        }
        StoreCommand::Restored(url) => {
            let store = open(url, Tables::Needed)?;
            show_restored(&runtime.block_on(store::restored(&store))?);
        }
        StoreCommand::Release(args) => {
            let store = open(&args.url, Tables::Needed)?;
            let released = runtime.block_on(store::lift(&store, &args.namespace))?;
            show_release(&args.namespace, released)?;
        }
        StoreCommand::Quota(args) => {
            let store = open(&args.url, Tables::Needed)?;
            let (name, quota) = (&args.namespace, args.quota.bytes_per_second);
            if !runtime.block_on(store::set_quota(&store, name, quota))? {
                return Err(NotDone::Unknown(name.clone()));
            }
            match quota {
                Some(bytes) => print::line(format_args!(
                    "{name}: its clients may send {bytes} bytes a second together"
                )),
                None => print::line(format_args!("{name}: it has no quota")),
            }
        }
        StoreCommand::Delete(args) => {
            let store = open(&args.url, Tables::Needed)?;
            runtime.block_on(store::remove(&store, &args.namespace))?;
            print::line(format_args!(
                "{}: deleted. A server that is started with a configuration that names it makes it again, without messages.",
                args.namespace
            ));
        }
    }
    Ok(())
}

fn show_release(name: &str, released: Release) -> Result<(), NotDone> {
    match released {
        Release::Done(why) => {
            print::line(format_args!(
                "{name}: released. It was in quarantine: {why}"
            ));
            Ok(())
        }
        Release::NotHeld => Err(NotDone::Refused(format!(
            "the namespace '{name}' is in no quarantine"
        ))),
        Release::Begun(why) => Err(NotDone::Refused(format!(
            "the namespace '{name}' cannot be released: {why}"
        ))),
        Release::Unknown => Err(NotDone::Unknown(name.to_owned())),
    }
}

fn contents(moved: &Moved) -> String {
    format!(
        "all of it ({} entities, {} messages, {} bytes)",
        moved.entities, moved.messages, moved.bytes
    )
}

fn show_export(done: &Exported, directory: &Path) {
    print::line(format_args!(
        "{}: {} is in {}, and verified",
        done.moved.name,
        contents(&done.moved),
        directory.display()
    ));
    match &done.quarantined {
        Some(why) => print::line(format_args!(
            "It is in quarantine in the store, and no server takes it: {why}"
        )),
        None => print::line(
            "It is served from the store as before: what is sent there from now on is not in the directory.",
        ),
    }
}

fn show_import(moved: &[Moved], place: &str) {
    for one in moved {
        print::line(format_args!(
            "{}: {} is in the store {place}, and verified",
            one.name,
            contents(one)
        ));
    }
    print::line(
        "Servers of the store serve them from now on. Do not serve the data directory any more.",
    );
    if moved.iter().any(|one| one.has_other_key) {
        print::line(
            "The store has another root key than the data directory: clients that use RootManageSharedAccessKey need the store's.",
        );
    }
}

fn show_restored(done: &Restored) {
    print::line(format_args!(
        "The store has the new identity {}; the old one was {}. {} sessions of servers were ended. Servers that knew the old \
         identity drop their namespaces, and must be restarted.",
        done.identity, done.identity_before, done.sessions_ended
    ));
    print::line(
        "Everything that was acknowledged after the restored point in time is lost: messages, entities, rules and states of \
         message sessions. Messages that were completed after it are there again, and can come twice.\n\
         Each partition of an entity leaves out 2^36 sequence numbers, so that no number is given twice. Duplicates of lost messages are not \
         recognized.",
    );
    for name in &done.ended {
        print::line(format_args!(
            "The quarantine of {name} was ended: its log lacked what was acknowledged after that point."
        ));
    }
    for (name, why) in &done.kept {
        print::line(format_args!(
            "{name} stays in quarantine, and no server takes it: {why}. jitney store release {name} ends that."
        ));
    }
    let rows = done.namespaces.iter();
    let rows = rows.map(|(name, group)| json!({"name": name, "group": group}));
    let rows: Vec<Value> = rows.collect();
    print::line(NEWEST.render(&rows));
}
