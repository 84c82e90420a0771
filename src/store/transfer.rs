//! Namespaces that are moved from a data directory into the store, or copied from there into one.
//!
//! What is carried over is the state of a namespace and the bytes of its messages, not its log: a shard of a data directory may
//! have several namespaces in one log, and in the store each has its own. Where it was put it is read again, and compared, before
//! it is served: an import holds its namespaces in quarantine until all are compared, and an export makes the data directory
//! beside its place.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::admin::{self, HeldNamespace, NotDone, PendingChange};
use super::append::StoreCommitter;
use super::{removal, restored, take_over};
use crate::host::disk::FileDisk;
use crate::host::owner::StoreEvent;
use crate::host::placement::{self, Placement};
use crate::host::read_only::ReadOnlyLog;
use crate::limits;
use crate::system::files::{self, NotMade, Readers};
use jitney_broker::access::Profile;
use jitney_gateway::Gateway;
use jitney_journal::appender::Appender;
use jitney_journal::rows::{self, RowPlace};
use jitney_journal::{Disk, Frame, LogReader};
use jitney_postgres::{Fence, Owned, Reserving, Store, StoreError, StoreLog, random_bits, schema};
use jitney_shard::Recovering;
use jitney_shard::transfer::{Contents, Summary, put_into_files};

/// The files of the root key and of the operator's key in a data directory, and their columns in the store.
const KEYS: [(&str, &str); 2] = [("root.key", "root_key"), ("operator.key", "operator_key")];

/// A namespace that was moved or copied.
#[derive(Debug)]
pub(crate) struct Moved {
    pub(crate) name: String,
    pub(crate) entities: usize,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// The store has another root key than the data directory, if that has one.
    pub(crate) has_other_key: bool,
}

/// What becomes of a namespace in the store when it was exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterExport {
    /// A server takes it again.
    Served,
    /// It stays in quarantine.
    Held,
}

/// A namespace that was exported.
#[derive(Debug)]
pub(crate) struct Exported {
    pub(crate) moved: Moved,
    /// Why it is in quarantine in the store, if it is.
    pub(crate) quarantined: Option<String>,
}

impl Moved {
    fn new(name: &str, summary: Summary) -> Self {
        Self {
            name: name.to_owned(),
            entities: summary.entities,
            messages: summary.messages,
            bytes: summary.bytes,
            has_other_key: false,
        }
    }
}

fn refused<T>(what: String) -> Result<T, NotDone> {
    Err(NotDone::Refused(what))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> NotDone {
    let path = path.to_owned();
    move |source| NotDone::Io {
        path: path.clone(),
        source,
    }
}

fn gateway() -> Gateway {
    Gateway::new(0, Profile::Development)
}

/// Returns how the log of a namespace is kept in a store.
fn options(namespace: &Owned) -> jitney_journal::Options {
    let mut options = jitney_journal::Options::new(namespace.log_store);
    options.segment_bytes = limits::STORE_SEGMENT_BYTES;
    options
}

/// Moves the namespaces of a data directory, which stays as it is, into the store: all, or those that are named. They are served
/// when all of them are there.
///
/// # Errors
///
/// No broker may have the directory, and no namespace of these names may be in the store; it must be the one of its fleet in
/// which these names are reserved. The store's, those of the log.
pub(crate) fn import(
    runtime: &Handle,
    store: &Arc<Store>,
    directory: &Path,
    wanted: &[String],
) -> Result<Vec<Moved>, NotDone> {
    let mut shards = read_directory(directory)?;
    keep_wanted(&mut shards, wanted)?;
    let all: Vec<&SourceNamespace> = shards.iter().flat_map(|shard| &shard.namespaces).collect();
    let reserving = runtime.block_on(Reserving::read(store))?;
    let names: Vec<&str> = all.iter().map(|source| &source.name[..]).collect();
    check_place(&reserving, &names)?;
    for source in &all {
        runtime.block_on(make_free(store, &source.name))?;
    }
    let mut put = Vec::new();
    for shard in &shards {
        for source in &shard.namespaces {
            let (owned, fence) = runtime.block_on(begin(store, &source.name, &reserving))?;
            let (contents, log) = (&source.contents, &shard.log);
            let summary = put_into_store(runtime, store, &owned, &fence, contents, log)?;
            put.push((&source.name, fence, summary));
        }
    }
    let first = all.iter().find(|source| source.is_first);
    let first = first.map(|source| &source.name[..]);
    let has_other_key = runtime.block_on(keep_keys(store, directory, first))?;
    let held: Vec<(Arc<Fence>, Option<String>)> = put
        .iter()
        .map(|(_, it, _)| (Arc::clone(it), None))
        .collect();
    runtime.block_on(admin::give_back(store, &held))?;
    let moved = put.into_iter();
    let moved = moved.map(|(name, _, summary)| Moved {
        has_other_key,
        ..Moved::new(name, summary)
    });
    Ok(moved.collect())
}

/// Leaves only the namespaces that are named, if any are.
fn keep_wanted(shards: &mut [SourceShard], wanted: &[String]) -> Result<(), NotDone> {
    let wanted: BTreeSet<String> = wanted.iter().map(|name| name.to_lowercase()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let found = shards.iter().flat_map(|shard| &shard.namespaces);
    let found: BTreeSet<&str> = found.map(|source| &source.name[..]).collect();
    if let Some(name) = wanted.iter().find(|name| !found.contains(&name[..])) {
        let found: Vec<&str> = found.into_iter().collect();
        return refused(format!(
            "the data directory has no namespace '{name}': it has {}",
            found.join(", ")
        ));
    }
    for shard in shards {
        shard
            .namespaces
            .retain(|source| wanted.contains(&source.name));
    }
    Ok(())
}

/// Checks that the store is the one of its fleet in which these names are reserved.
fn check_place(reserving: &Reserving, names: &[&str]) -> Result<(), NotDone> {
    if reserving.is_changing() {
        return refused(
            "the stores of the fleet are being changed: nothing was imported; try it later"
                .to_owned(),
        );
    }
    let place = |name: &&&str| reserving.elsewhere(name);
    let other: Vec<String> = names
        .iter()
        .filter_map(|name| Some(format!("{name} ({})", place(&name)?)))
        .collect();
    if other.is_empty() {
        return Ok(());
    }
    let own = names.iter().filter(|name| place(name).is_none());
    let own: Vec<&str> = own.copied().collect();
    let own = if own.is_empty() {
        "none".to_owned()
    } else {
        own.join(", ")
    };
    refused(format!(
        "names of namespaces are reserved in other stores of the fleet: {}. Nothing was imported. Import each \
         namespace into the store in which its name is reserved, with --namespace NAME. Those of this store: {own}",
        other.join(", ")
    ))
}

/// A shard of a data directory.
struct SourceShard {
    log: ReadOnlyLog,
    namespaces: Vec<SourceNamespace>,
}

/// A namespace of a data directory.
struct SourceNamespace {
    /// In lower case.
    name: String,
    is_first: bool,
    contents: Contents,
}

/// Reads all shards of a data directory, which no broker may have open.
fn read_directory(directory: &Path) -> Result<Vec<SourceShard>, NotDone> {
    if !directory.is_dir() {
        return refused(format!("{} is no directory", directory.display()));
    }
    let placement = Placement::read(directory)?;
    let recorded = placement.filter(|it| it.first().is_some());
    let Some(placement) = recorded else {
        return refused(format!(
            "{} has no {} that names its namespaces: it is no data directory, or one of an old release. Start and stop \
             jitney serve with it once",
            directory.display(),
            placement::FILE
        ));
    };
    let mut shards = Vec::new();
    for number in placement.shards(1) {
        let place = placement::directory_of(directory, number);
        let log = match ReadOnlyLog::open(&place) {
            Err(jitney_journal::Error::Locked { .. }) => {
                return refused(format!(
                    "a broker runs with {}: stop it first",
                    place.display()
                ));
            }
            log => log?,
        };
        let options = jitney_journal::Options::new(0);
        let recovering = Recovering::read(gateway(), &log, options)?;
        let names: BTreeSet<&str> = placement.namespaces_of(number).collect();
        for found in recovering.namespaces() {
            if !names.contains(&found[..]) {
                return refused(format!(
                    "the log of shard {number} has entities of the namespace '{found}', which {} does not name there: start \
                     jitney serve with a configuration that names it, or delete its entities",
                    placement::FILE
                ));
            }
        }
        let namespaces = names.into_iter().map(|name| {
            let is_first = placement.first() == Some(name);
            SourceNamespace {
                name: name.to_owned(),
                is_first,
                contents: Contents::of(&recovering, (!is_first).then_some(name)),
            }
        });
        let namespaces = namespaces.collect();
        shards.push(SourceShard { log, namespaces });
    }
    Ok(shards)
}

/// Checks that a name is free, or makes it so where an import was ended, or where the namespace has no log.
async fn make_free(store: &Arc<Store>, name: &str) -> Result<(), NotDone> {
    let session = store.take().await?;
    let found = admin::find(store, &session, name).await?;
    let query = "select r.store from reservation r, store s where r.name = $1 and r.store is distinct from s.name";
    let reserved = session.optional(query, &[&name]).await?;
    store.give_back(session);
    if let Some(row) = reserved {
        let other: String = store.get(&row, 0)?;
        return refused(format!(
            "the namespace '{name}' is in the store {other} already: nothing was imported"
        ));
    }
    let Some(found) = found else {
        return Ok(());
    };
    let is_begun = found.pending == Some(PendingChange::Import);
    if !is_begun && (found.has_log || found.is_owned) {
        let by = found.server.map(|server| format!(", and {server} has it"));
        return refused(format!(
            "the namespace '{name}' is in the store {} already{}: nothing was imported. Remove it there first, with \
             jitney store delete {name}, if its messages are not needed",
            store.place(),
            by.unwrap_or_default()
        ));
    }
    let held = admin::hold(store, &found, PendingChange::Import).await?;
    removal::remove_held(store, &held.fence).await
}

/// Reserves the name of a namespace, with an empty log.
async fn begin(
    store: &Arc<Store>,
    name: &str,
    reserving: &Reserving,
) -> Result<(Owned, Arc<Fence>), NotDone> {
    let reserved = admin::reserve(store, name, PendingChange::Import, reserving).await?;
    let Some((owned, fence)) = reserved else {
        return refused(format!(
            "another program has made the namespace '{name}' a moment ago, or the stores of the fleet are being changed: try it again"
        ));
    };
    schema::make_segment(store, &fence, RowPlace::ROOT.segment()).await?;
    Ok((owned, fence))
}

/// Puts a namespace into its empty log in the store, and reads it from there again.
fn put_into_store(
    runtime: &Handle,
    store: &Arc<Store>,
    owned: &Owned,
    fence: &Arc<Fence>,
    contents: &Contents,
    from: &dyn LogReader,
) -> Result<Summary, NotDone> {
    let log = log_of(runtime, store, fence);
    let (empty, root) = rows::recover_rows(&*log, options(owned), &mut |_, _| Ok(()))?;
    let random = Box::new(random_bits);
    let appender = Appender::of_taken(owned.log_store, fence.claim(), root, random);
    let within = runtime.enter();
    let (told, _events) = watch::channel(StoreEvent::Back);
    let (mut committer, committing) = StoreCommitter::start(
        Arc::clone(store),
        Arc::clone(&log),
        appender,
        root.place,
        told,
    );
    drop(within);
    let mut append = |frame: Frame| {
        let durable = runtime.block_on(committer.commit(frame));
        durable.map_err(jitney_journal::Error::from)
    };
    let put = contents.put(from, &*log, empty.writer, &mut append)?;
    drop(committer);
    runtime.block_on(committing.join());
    let found = Contents::of(&read_log(&log, owned)?, None);
    compare(&owned.name, put, found.summary(&*log)?)?;
    Ok(put)
}

/// Returns the log of a namespace that is held.
fn log_of(runtime: &Handle, store: &Arc<Store>, fence: &Arc<Fence>) -> Arc<StoreLog> {
    let log = StoreLog::new(Arc::clone(store), Arc::clone(fence), runtime.clone());
    Arc::new(log)
}

/// Reads the log of a namespace that is held.
fn read_log(log: &StoreLog, owned: &Owned) -> Result<Recovering<()>, NotDone> {
    let (recovering, _) = Recovering::read_rows(gateway(), log, options(owned))?;
    Ok(recovering)
}

fn compare(name: &str, put: Summary, found: Summary) -> Result<(), NotDone> {
    if put == found {
        return Ok(());
    }
    refused(format!(
        "the namespace '{name}' was read again and is not what was put there ({} entities, {} messages and {} bytes instead of \
         {}, {} and {}): it is not served",
        found.entities, found.messages, found.bytes, put.entities, put.messages, put.bytes
    ))
}

/// Gives the store the keys of a data directory and its first namespace, where it has none. Returns whether it has another
/// root key.
async fn keep_keys(store: &Store, directory: &Path, first: Option<&str>) -> Result<bool, NotDone> {
    let session = store.take().await?;
    let sql = "update store set first_namespace = $1 where first_namespace is null";
    session.execute(sql, &[&first]).await?;
    let mut has_other = false;
    for (file, column) in KEYS {
        let path = directory.join(file);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(&path)(error)),
        };
        let sql = format!(
            "update store set {column} = coalesce({column}, $1) returning {column} is distinct from $1"
        );
        let row = session.one(&sql, &[&text]).await?;
        has_other |= column == "root_key" && store.get(&row, 0)?;
    }
    store.give_back(session);
    Ok(has_other)
}

/// Copies a namespace of the store into a new data directory. While it is read no server has it. It stays in the store: in
/// quarantine if it is to be [`AfterExport::Held`], or if it was before.
///
/// # Errors
///
/// There is no such namespace, or the directory is not empty. The store's, those of the log.
pub(crate) fn export(
    runtime: &Handle,
    store: &Arc<Store>,
    name: &str,
    directory: &Path,
    after: AfterExport,
) -> Result<Exported, NotDone> {
    let exported = files::make_whole(directory, ".exporting", |temporary| {
        let held = admin::hold_named(store, name, PendingChange::Export);
        let (owned, HeldNamespace { fence, before }) = runtime.block_on(held)?;
        let summary = put_into_directory(runtime, store, &owned, &fence, temporary);
        let after = match summary {
            Ok(_) => after,
            Err(_) => AfterExport::Served,
        };
        let quarantined = reason_after(before, after);
        let given = [(fence, quarantined.clone())];
        runtime.block_on(admin::give_back(store, &given))?;
        Ok::<_, NotDone>((summary?, quarantined))
    });
    let (summary, quarantined) = exported?;
    Ok(Exported {
        moved: Moved::new(&name.to_lowercase(), summary),
        quarantined,
    })
}

/// Returns why a namespace is in quarantine after an export, if it is: for the first reason, whatever the export was to do.
fn reason_after(before: Option<String>, after: AfterExport) -> Option<String> {
    before.or_else(|| match after {
        AfterExport::Served => None,
        AfterExport::Held => Some(admin::EXPORTED.to_owned()),
    })
}

impl From<NotMade> for NotDone {
    fn from(error: NotMade) -> Self {
        match error {
            NotMade::NotEmpty(path) => Self::Refused(format!(
                "{} exists and is not empty: an empty directory, or a name that is free, is allowed",
                path.display()
            )),
            NotMade::Left(path) => Self::Refused(format!(
                "{} exists: another export is under way, or one was ended; remove it if none is",
                path.display()
            )),
            NotMade::Io { path, source } => Self::Io { path, source },
        }
    }
}

/// Makes a data directory that has a namespace which is held, and reads it again.
fn put_into_directory(
    runtime: &Handle,
    store: &Arc<Store>,
    owned: &Owned,
    fence: &Arc<Fence>,
    directory: &Path,
) -> Result<Summary, NotDone> {
    let mut summary = Summary::default();
    if runtime.block_on(take_over::has_log(store, fence))? {
        let log = log_of(runtime, store, fence);
        let mut recovering = read_log(&log, owned)?;
        let skips = runtime.block_on(restored::skips(store, fence))?;
        recovering.skip_numbers(u64::from(skips) * jitney_shard::limits::RESTORED_NUMBERS);
        let contents = Contents::of(&recovering, None);
        let disk: Arc<dyn Disk> = FileDisk::open(directory)?;
        let kept = jitney_journal::Options::new(owned.log_store);
        summary = put_into_files(&contents, &*log, &disk, kept)?;
        // The next one that opens it must find it closed.
        drop(disk);
        compare(&owned.name, summary, summary_of(directory)?)?;
    }
    let mut placement = Placement::load(directory)?;
    placement.place(directory, &[&owned.name], 1, &[].into())?;
    placement.store(directory)?;
    write_keys(runtime, store, directory)?;
    Ok(summary)
}

/// Reads the first namespace of a data directory.
fn summary_of(directory: &Path) -> Result<Summary, NotDone> {
    let log = ReadOnlyLog::open(directory)?;
    let recovering = Recovering::read(gateway(), &log, jitney_journal::Options::new(0))?;
    Ok(Contents::of(&recovering, None).summary(&log)?)
}

/// Gives a data directory the keys of the store: clients keep theirs.
fn write_keys(runtime: &Handle, store: &Arc<Store>, directory: &Path) -> Result<(), NotDone> {
    let keys = runtime.block_on(async {
        let session = store.take().await?;
        let query = "select root_key, operator_key from store";
        let row = session.one(query, &[]).await?;
        store.give_back(session);
        let keys: [Option<String>; 2] = [store.get(&row, 0)?, store.get(&row, 1)?];
        Ok::<_, StoreError>(keys)
    })?;
    let texts = KEYS.iter().zip(keys).filter_map(|((file, _), key)| {
        let path: PathBuf = directory.join(file);
        Some((path, format!("{}\n", key?)))
    });
    let texts: Vec<(PathBuf, String)> = texts.collect();
    let all = texts.iter();
    let all = all.map(|(path, text)| (path.clone(), text.as_bytes(), Readers::Owner));
    let all: Vec<(PathBuf, &[u8], Readers)> = all.collect();
    files::replace(&all).map_err(|error| NotDone::Io {
        path: error.file,
        source: error.source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_ends_no_quarantine_and_replaces_no_reason() {
        let damaged = || Some("its log is damaged".to_owned());
        let (served, held) = (AfterExport::Served, AfterExport::Held);
        for after in [served, held] {
            assert_eq!(reason_after(damaged(), after), damaged());
        }
        let reason = reason_after(None, held);
        assert_eq!(reason.as_deref(), Some(admin::EXPORTED));
        assert_eq!(
            reason_after(reason.clone(), served),
            reason,
            "exported again"
        );
        assert_eq!(reason_after(None, served), None);
    }
}
