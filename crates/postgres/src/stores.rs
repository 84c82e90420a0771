//! The stores of a fleet: that all servers know the same, and in which of them the name of a namespace is reserved.
//!
//! Each store has the names and identities of all in its table `store`. A server that knows fewer is refused. One that knows more is
//! taken: the new ones are taken into use once no server is alive that does not know them, because that server would not find
//! their namespaces, and would reserve names elsewhere.
//!
//! The name of a namespace is reserved in the store that rendezvous hashing says, whichever store the namespace is in: two servers
//! cannot make one name in two stores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use aws_lc_rs::digest::{SHA256, digest};
use tracing::info;

use super::StoreError;
use super::connect::{Session, Store};
use super::fence::random_id;

/// The stores of a fleet, by their names.
#[derive(Debug)]
pub struct Stores {
    all: Vec<Arc<Store>>,
    /// The names and identities of all, as stores record them.
    set: OnceLock<String>,
    /// What the stores had recorded at the start, by their places.
    before: OnceLock<BTreeMap<usize, String>>,
    /// All stores have recorded it.
    is_agreed: AtomicBool,
    /// A database with which messages can be lost is used all the same.
    is_unchecked: AtomicBool,
    /// Stores that were away at the start and that this server cannot use, by their places.
    refused: Mutex<BTreeMap<usize, Refused>>,
}

/// Why a store cannot be used that was away at the start.
#[derive(Debug, Clone)]
pub struct Refused {
    /// When it was found out.
    pub at: Instant,
    /// The reason.
    pub why: String,
}

/// What a store says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its place among the stores.
    pub at: usize,
    identity: String,
    /// Its first identity.
    origin: String,
    name: Option<String>,
    /// The names and identities of all stores of its fleet.
    stores: Option<String>,
}

/// The prefix of a set that is not in use yet.
const CHANGING: &str = "changing ";

impl Recorded {
    /// Asks a store.
    pub async fn read(at: usize, store: &Store) -> Result<Self, StoreError> {
        let session = store.bare_session().await?;
        let row = session
            .one(
                "select identity::text, name, stores, coalesce(origin, identity::text) from store",
                &[],
            )
            .await?;
        Ok(Self {
            at,
            identity: store.get(&row, 0)?,
            name: store.get(&row, 1)?,
            stores: store.get(&row, 2)?,
            origin: store.get(&row, 3)?,
        })
    }
}

/// Where the names of namespaces are reserved, as a store says.
#[derive(Debug, Clone, Default)]
pub struct Reserving {
    /// What its servers call the store; none before they share it.
    pub name: Option<String>,
    /// The names and identities of all stores of its fleet, as it records them.
    pub stores: Option<String>,
}

impl Reserving {
    /// Asks a store.
    ///
    /// # Errors
    ///
    /// The store's; or its servers call it otherwise than this process was told.
    pub async fn read(store: &Store) -> Result<Self, StoreError> {
        let session = store.take().await?;
        let row = session.one("select name, stores from store", &[]).await?;
        store.give_back(session);
        Ok(Self {
            name: store.get(&row, 0)?,
            stores: store.get(&row, 1)?,
        })
    }

    /// Returns whether another set of stores is being taken into use.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        let stores = self.stores.as_deref().unwrap_or_default();
        stores.starts_with(CHANGING)
    }

    /// Returns the store in which a name is reserved, in lower case, if it is another one.
    #[must_use]
    pub fn elsewhere(&self, namespace: &str) -> Option<&str> {
        let of = reserved_in(self.stores.as_deref()?, namespace)?;
        (self.name.as_deref() != Some(of)).then_some(of)
    }
}

/// Returns the store of a set in which the name of a namespace is reserved.
fn reserved_in<'s>(set: &'s str, namespace: &str) -> Option<&'s str> {
    names_of(set).max_by_key(|name| weight(name, namespace))
}

/// Returns the names of the stores of a set, as stores record it.
fn names_of(set: &str) -> impl Iterator<Item = &str> {
    stores_of(set).map(|(name, _)| name)
}

/// Returns the names and the first identities of the stores of a set, as stores record it.
fn stores_of(set: &str) -> impl Iterator<Item = (&str, &str)> {
    let set = set.strip_prefix(CHANGING).unwrap_or(set);
    set.split(' ').filter_map(|it| it.split_once('='))
}

impl Stores {
    /// Takes the stores, of which there is one at least.
    pub fn new(all: Vec<Store>) -> Self {
        Self {
            all: all.into_iter().map(Arc::new).collect(),
            set: OnceLock::new(),
            before: OnceLock::new(),
            is_agreed: AtomicBool::new(false),
            is_unchecked: AtomicBool::new(false),
            refused: Mutex::default(),
        }
    }

    /// Uses databases all the same with which messages can be lost.
    pub fn use_unchecked(&self) {
        self.is_unchecked.store(true, Ordering::Relaxed);
    }

    /// Returns whether databases are used with which messages can be lost.
    pub fn is_unchecked(&self) -> bool {
        self.is_unchecked.load(Ordering::Relaxed)
    }

    /// Returns the stores that were away at the start and that this server cannot use.
    pub fn refused(&self) -> MutexGuard<'_, BTreeMap<usize, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the stores, in the order of their names.
    pub fn all(&self) -> &[Arc<Store>] {
        &self.all
    }

    /// Returns the names and identities of all, as stores record them.
    pub fn set(&self) -> &str {
        self.set.get().map_or("", String::as_str)
    }

    /// Returns the store with a place.
    pub fn store(&self, at: usize) -> &Arc<Store> {
        self.all.get(at).expect("places are those of this list")
    }

    /// Returns the store whose configuration counts: the others have copies of it.
    pub fn home(&self) -> &Arc<Store> {
        self.all.first().expect("there is one at least")
    }

    /// Returns what a store had recorded at the start.
    pub fn before(&self, at: usize) -> &str {
        let before = self.before.get().and_then(|all| all.get(&at));
        before.map_or("", String::as_str)
    }

    /// Compares what stores say of themselves with what this server knows.
    ///
    /// # Errors
    ///
    /// They are of another fleet, or its servers have other stores.
    pub fn check(&self, recorded: &[Recorded]) -> Result<(), StoreError> {
        for of_store in recorded {
            let store = self.store(of_store.at);
            store.expect_origin(&of_store.origin)?;
            store.expect(&of_store.identity)?;
        }
        for of_store in recorded {
            let store = self.store(of_store.at);
            let name = of_store.name.as_ref();
            if let Some(name) = name.filter(|name| *name != store.name()) {
                return Err(store.unfit(format!(
                    "its servers call it {name}, and this one calls it {}: start it with --store {name}=URL",
                    store.name()
                )));
            }
        }
        for of_store in recorded {
            let set = of_store.stores.as_deref().unwrap_or_default();
            self.check_set(self.store(of_store.at), set)?;
        }
        let mut identities = BTreeSet::new();
        let mut set = Vec::new();
        for store in &self.all {
            let Some(identity) = store.origin() else {
                return Err(store.unfit(format!(
                    "{} is new to the other stores, and cannot be reached: all stores must be reached when one is added",
                    store.name()
                )));
            };
            if !identities.insert(identity) {
                return Err(store.unfit(format!(
                    "{} is the same store as another of --store: each needs a database of its own",
                    store.name()
                )));
            }
            set.push(format!("{}={identity}", store.name()));
        }
        let set = self.set.get_or_init(|| set.join(" "));
        let before = recorded.iter();
        let before = before.filter_map(|it| Some((it.at, it.stores.clone()?)));
        self.before.get_or_init(|| before.collect());
        let is_agreed = recorded.iter().all(|it| it.stores.as_ref() == Some(set));
        self.is_agreed.store(is_agreed, Ordering::Relaxed);
        Ok(())
    }

    /// Checks that this server knows all stores that a store names.
    fn check_set(&self, store: &Store, set: &str) -> Result<(), StoreError> {
        for (name, identity) in stores_of(set) {
            let Some(known) = self.all.iter().find(|it| it.name() == name) else {
                let all: Vec<&str> = names_of(set).collect();
                let own: Vec<&str> = self.all.iter().map(|it| it.name()).collect();
                return Err(store.unfit(format!(
                    "its fleet has the stores {}, and this server was started with {}: give it the same --store as the others",
                    all.join(", "),
                    own.join(", ")
                )));
            };
            if known.expect_origin(identity).is_err() {
                return Err(known.unfit(format!(
                    "it is the store {}, and {} knows {name} as the store {identity}: the address names another database",
                    known.origin().unwrap_or_default(),
                    store.name()
                )));
            }
        }
        Ok(())
    }

    /// Returns the store in which the name of a namespace is reserved.
    pub fn of(&self, namespace: &str) -> usize {
        let all = self.all.iter().enumerate();
        let first = all.max_by_key(|(_, store)| weight(store.name(), namespace));
        first.map_or(0, |(at, _)| at)
    }

    /// Takes the stores into use that are new to the others, if there are any.
    ///
    /// # Errors
    ///
    /// Not all can be reached, or a server is alive that does not know them all: nothing may be made then.
    async fn agree(&self, server: &str) -> Result<(), StoreError> {
        if self.is_agreed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut sessions = Vec::new();
        for store in &self.all {
            sessions.push((store, store.take().await?));
        }
        self.check_servers(&sessions, server).await?;
        let (set, changing) = (self.set(), format!("{CHANGING}{}", self.set()));
        let begin = "update store set stores = $2, name = $3 where stores is distinct from $1";
        for (store, session) in &sessions {
            session
                .execute(begin, &[&set, &changing, &store.name()])
                .await?;
        }
        // From now on no server is registered that does not know all stores. One may have been, a moment before.
        self.check_servers(&sessions, server).await?;
        self.reserve_all(&sessions).await?;
        let end = "update store set stores = $1 where stores = $2";
        for (_, session) in &sessions {
            session.execute(end, &[&set, &changing]).await?;
        }
        for (store, session) in sessions {
            store.give_back(session);
        }
        self.is_agreed.store(true, Ordering::Relaxed);
        if 1 < self.all.len() {
            info!(stores = self.all.len(), "all stores are in use");
        }
        Ok(())
    }

    /// Checks that no other server is alive that knows other stores.
    async fn check_servers(
        &self,
        sessions: &[(&Arc<Store>, Session)],
        server: &str,
    ) -> Result<(), StoreError> {
        let query = "select string_agg(name, ', ' order by name) from server \
                     where alive and stores is distinct from $1 and name <> $2";
        for (store, session) in sessions {
            let row = session.one(query, &[&self.set(), &server]).await?;
            let others: Option<String> = store.get(&row, 0)?;
            if let Some(others) = others {
                return Err(store.unfit(format!(
                    "these servers are alive, and were started with other stores: {others}. No namespace is made until they are started \
                     with the same --store"
                )));
            }
        }
        Ok(())
    }

    /// Reserves the names of all namespaces in the stores in which they belong now.
    async fn reserve_all(&self, sessions: &[(&Arc<Store>, Session)]) -> Result<(), StoreError> {
        let mut all: BTreeMap<usize, (Vec<String>, Vec<&str>)> = BTreeMap::new();
        for (store, session) in sessions {
            for row in session.rows("select name from namespace", &[]).await? {
                let name: String = store.get(&row, 0)?;
                let (names, places) = all.entry(self.of(&name)).or_default();
                names.push(name);
                places.push(store.name());
            }
        }
        let reserve = "insert into reservation (name, store) select * from unnest($1::text[], $2::text[]) \
                       on conflict do nothing";
        for (at, (names, places)) in all {
            if let Some((_, session)) = sessions.get(at) {
                session.execute(reserve, &[&names, &places]).await?;
            }
        }
        Ok(())
    }

    /// Reserves the names of namespaces, in lower case, each in its store, and makes the namespaces whose names were free.
    /// Returns how many were made. A server takes them at its next look.
    ///
    /// # Errors
    ///
    /// A store cannot be reached, or its servers have other stores; the namespaces of the other stores were made.
    pub async fn make(&self, server: &str, names: &[String]) -> Result<u64, StoreError> {
        self.agree(server).await?;
        let mut all: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for name in names {
            all.entry(self.of(name)).or_default().push(name);
        }
        let (mut made, mut failed) = (0, None);
        for (at, names) in all {
            match self.make_in(self.store(at), &names).await {
                Ok(count) => made += count,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(made), Err)
    }

    async fn make_in(&self, store: &Store, names: &[&str]) -> Result<u64, StoreError> {
        // The store number of a log is random, and positive in the database.
        let logs: Vec<i64> = names.iter().map(|_| random_id() & i64::MAX).collect();
        let sql = "with agreed as (select 1 from store where stores = $1 for share), \
                   reserved as (insert into reservation (name, store) select w.name, $2::text \
                   from agreed, unnest($3::text[]) w(name) on conflict do nothing returning name) \
                   insert into namespace (name, log_store) select r.name, w.log \
                   from reserved r join unnest($3::text[], $4::bigint[]) w(name, log) on w.name = r.name \
                   on conflict (name) do nothing";
        let session = store.take().await?;
        let set = self.set();
        let made = session
            .execute(sql, &[&set, &store.name(), &names, &logs])
            .await?;
        if usize::try_from(made).unwrap_or(usize::MAX) < names.len() {
            let row = session.one("select stores from store", &[]).await?;
            let found: Option<String> = store.get(&row, 0)?;
            if found.as_deref() != Some(set) {
                self.is_agreed.store(false, Ordering::Relaxed);
                self.check_set(store, found.as_deref().unwrap_or_default())?;
                return Err(store.unfit("the stores of its fleet are being changed".to_owned()));
            }
        }
        store.give_back(session);
        Ok(made)
    }
}

/// Returns the weight of a store for a namespace, of which the greatest wins: the first eight bytes of the SHA-256 of `STORE/NAMESPACE`.
fn weight(store: &str, namespace: &str) -> u64 {
    let sum = digest(&SHA256, format!("{store}/{namespace}").as_bytes());
    let first = sum.as_ref().iter().take(8);
    first.fold(0, |weight, byte| weight << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StoreOptions;

    fn stores(names: &[&str]) -> Stores {
        let store = |name: &&str| format!("{name}=postgres://u@127.0.0.1/{name}");
        let options = StoreOptions {
            urls: names.iter().map(store).map(Into::into).collect(),
            ca: None,
            server: Some("one".to_owned()),
        };
        Stores::new(Store::all(&options).unwrap())
    }

    fn recorded(at: usize, identity: &str, stores: Option<&str>) -> Recorded {
        Recorded {
            at,
            identity: identity.to_owned(),
            origin: identity.to_owned(),
            name: None,
            stores: stores.map(str::to_owned),
        }
    }

    fn refused(stores: &Stores, recorded: &[Recorded]) -> String {
        stores.check(recorded).unwrap_err().to_string()
    }

    #[test]
    fn names_are_spread_over_stores_and_few_change_when_one_is_added() {
        let (three, four) = (stores(&["a", "b", "c"]), stores(&["a", "b", "c", "d"]));
        let mut counts = [0; 3];
        let mut changed = 0;
        for number in 0..3_000 {
            let name = format!("namespace-{number}");
            counts[three.of(&name)] += 1;
            let now = four.of(&name);
            if now != three.of(&name) {
                assert_eq!(now, 3, "to the new one only");
                changed += 1;
            }
        }
        assert!(
            counts.iter().all(|count| (900..1_100).contains(count)),
            "{counts:?}"
        );
        assert!((650..850).contains(&changed), "{changed}");
        assert_eq!(
            weight("a", "orders"),
            0xebf8_3eb8_3f92_03e6,
            "the same in every release"
        );
    }

    #[test]
    fn a_command_finds_the_store_of_a_name_as_servers_do() {
        let all = stores(&["a", "b", "c"]);
        for changing in ["", CHANGING] {
            let reserving = Reserving {
                name: Some("b".to_owned()),
                stores: Some(format!("{changing}a=1 b=2 c=3")),
            };
            assert_eq!(reserving.is_changing(), !changing.is_empty());
            for number in 0..100 {
                let name = format!("namespace-{number}");
                let of = all.store(all.of(&name)).name();
                let expected = (of != "b").then_some(of);
                assert_eq!(reserving.elsewhere(&name), expected, "{name}");
            }
        }
        let unshared = Reserving::default();
        assert_eq!(unshared.elsewhere("orders"), None);
        assert!(!unshared.is_changing());
    }

    #[test]
    fn a_store_that_was_restored_is_known_by_its_first_identity() {
        let set = "a=1 b=2";
        let mut both = [recorded(0, "1", Some(set)), recorded(1, "2", Some(set))];
        both[0].identity = "9".to_owned();
        let stores = stores(&["a", "b"]);
        stores.check(&both).unwrap();
        assert_eq!(stores.set(), set);
        assert!(stores.is_agreed.load(Ordering::Relaxed));
        assert_eq!(stores.all[0].identity(), Some("9"));
        // Restored again, while this server runs.
        assert!(stores.all[0].expect("8").is_err());
        assert!(stores.all[0].expect_origin("1").is_ok());
    }

    #[test]
    fn servers_have_the_same_stores() {
        let set = "a=1 b=2";
        let both = |stores| [recorded(0, "1", stores), recorded(1, "2", stores)];
        let of = || stores(&["a", "b"]);
        for before in [None, Some("a=1"), Some("changing a=1 b=2"), Some(set)] {
            let stores = of();
            stores.check(&both(before)).unwrap();
            assert_eq!(stores.set(), set);
            assert_eq!(
                stores.is_agreed.load(Ordering::Relaxed),
                before == Some(set)
            );
        }
        // What is away is known by the other.
        let one = of();
        one.check(&both(Some(set))[..1]).unwrap();
        assert_eq!(one.all[1].origin(), Some("2"));
        assert!(one.all[1].expect_origin("3").is_err());
        assert!(refused(&of(), &both(None)[..1]).contains("cannot be reached"));
        let text = refused(&of(), &both(Some("a=1 b=2 c=3")));
        assert!(text.contains("a, b, c"), "{text}");
        assert!(refused(&of(), &both(Some("changing a=1 c=3"))).contains("a, c"));
        let text = refused(&of(), &both(Some("a=1 b=9")));
        assert!(text.contains("another database"), "{text}");
        let text = refused(&of(), &[recorded(0, "1", None), recorded(1, "1", None)]);
        assert!(text.contains("the same store"), "{text}");
        let mut named = both(None);
        named[1].name = Some("other".to_owned());
        assert!(refused(&of(), &named).contains("--store other=URL"));
    }
}
