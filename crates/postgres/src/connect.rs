//! Sessions of the database. Every one sets what a log needs, and verifies it: a role may have other defaults, and
//! a pooler may hand out sessions that another program has changed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    AsyncMessage, Client, Config, NoTls, Row, SimpleQueryMessage, Socket, Statement,
};
use tokio_postgres_rustls::MakeRustlsConnect;
use tracing::{debug, info, warn};

use super::StoreError;
use super::fence::random_uuid;
use super::hosts::{Hosts, place};
use super::timeline::{NewestTimeline, Timeline};
use crate::limits;
use jitney_base::secret::Secret;

/// How stores are reached: what the operator says of all of them.
#[derive(Debug, Clone, Default)]
pub struct StoreOptions {
    /// The URL of each, after `NAME=` where there are several.
    pub urls: Vec<Secret>,
    /// The file of the authorities of their certificates, as PEM; none means those of the system.
    pub ca: Option<PathBuf>,
    /// The name of this server, which the database shows of its sessions.
    pub server: Option<String>,
}

/// A store, and how it is reached.
pub struct Store {
    /// Its name among the stores of the fleet.
    name: String,
    hosts: Hosts,
    tls: Option<MakeRustlsConnect>,
    /// The host and the database, for the log: without the password.
    place: String,
    /// What the store says it is, from the first session on.
    identity: OnceLock<String>,
    /// Its first identity, which it keeps when it is restored: the other stores know it by that.
    origin: OnceLock<String>,
    /// Sessions on other timelines are connected to a former primary, and are not used.
    timeline: NewestTimeline,
    /// The database does not tell its timeline, which was logged.
    is_timeline_unknown: AtomicBool,
    /// How many other primaries the database has had.
    promotions: watch::Sender<u64>,
    /// The store was found to be another one than before.
    is_replaced: watch::Sender<bool>,
    /// This server stops: nothing waits for the store any more.
    is_closed: watch::Sender<bool>,
    /// Sessions that are free.
    idle: Mutex<Vec<Session>>,
    /// Bounds those that are in use, and free.
    lent: Arc<Semaphore>,
    /// Sessions that appends share: a namespace always has the same one.
    of_appends: [tokio::sync::Mutex<Option<Arc<Session>>>; limits::STORE_APPEND_SESSIONS],
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// The name of a store that was given without one.
pub const ONLY: &str = "store";

/// Takes `NAME=URL` apart. A URL has a `:` before the first `=`, and settings in its place (`host=... user=...`) have no URL behind that.
fn named(text: &str) -> Option<(&str, &str)> {
    let (name, url) = text.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let is_url = ["postgres://", "postgresql://"]
        .iter()
        .any(|scheme| url.starts_with(scheme));
    (is_name && is_url).then_some((name, url))
}

/// Routines of PostgreSQL that warn of something else than a commit which no standby has: that transaction numbers or those of
/// multixacts are about to be used up, and that a session which is to be ended has ended already.
const HARMLESS: [&str; 4] = [
    "GetNewTransactionId",
    "GetNewMultiXactId",
    "pg_terminate_backend",
    "pg_signal_backend",
];

/// The settings that every session has, and what they are for.
const SETTINGS: [(&str, &str); 8] = [
    // A take-over that reads in the transaction that raises the epoch would miss a group that was acknowledged.
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "off"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("idle_in_transaction_session_timeout", "0"),
    // The warning that the wait for a standby was cancelled must arrive.
    ("client_min_messages", "warning"),
    ("bytea_output", "hex"),
    ("search_path", "jitney"),
];

/// What to do about a pooler by which a session has what another has set.
pub(crate) const POOLED: &str = "a pooler hands the statements of a session to several sessions of the database. Use \
                                 pooling by session, or the database's own address";

/// A prepared statement is there that another session made, or one is not there that this session made.
const OF_POOLERS: [SqlState; 2] = [
    SqlState::DUPLICATE_PSTATEMENT,
    SqlState::INVALID_SQL_STATEMENT_NAME,
];

/// Time-outs that end a session in silence or a commit that waits, and that not every version has.
const TIMEOUTS: [&str; 2] = ["idle_session_timeout", "transaction_timeout"];

impl Store {
    /// Takes the options; returns the stores in the order of their names, and none if namespaces are in the data directory.
    ///
    /// # Errors
    ///
    /// What is wrong in them.
    pub fn all(options: &StoreOptions) -> Result<Vec<Self>, StoreError> {
        let malformed = |what: String| Err(StoreError::Url(what));
        if jitney_cluster::limits::STORES_MAX < options.urls.len() {
            let max = jitney_cluster::limits::STORES_MAX;
            return malformed(format!(
                "there are {}, and {max} at most are possible",
                options.urls.len()
            ));
        }
        let mut stores = BTreeMap::new();
        for text in &options.urls {
            let text = text.expose();
            let (name, url) = match named(text) {
                Some((name, url)) => (name.to_lowercase(), url),
                None if 1 < options.urls.len() => {
                    return malformed(
                        "each of several stores has a name that the servers agree on: --store NAME=URL".to_owned(),
                    );
                }
                None => (ONLY.to_owned(), text),
            };
            if limits::STORE_NAME_BYTES_MAX < name.len() {
                let max = limits::STORE_NAME_BYTES_MAX;
                return malformed(format!("the name {name} is longer than {max} characters"));
            }
            let store = Self::new(name.clone(), url, options)?;
            if stores.insert(name.clone(), store).is_some() {
                return malformed(format!("two stores have the name {name}"));
            }
        }
        Ok(stores.into_values().collect())
    }

    /// Takes the URL of a store, and the options of all.
    fn new(name: String, url: &str, options: &StoreOptions) -> Result<Self, StoreError> {
        let malformed = |what: String| StoreError::Url(what);
        let mut config = Config::from_str(url).map_err(|error| {
            malformed(format!(
                "this is no URL of a PostgreSQL database ({error}): postgres://USER:PASSWORD@HOST:PORT/DATABASE is right"
            ))
        })?;
        if config.get_hosts().is_empty() {
            return Err(malformed("the URL names no host".to_owned()));
        }
        let is_local = config.get_hosts().iter().all(is_local);
        if config.get_ssl_mode() == SslMode::Prefer {
            // A connection that is not encrypted because an attacker says so helps only the attacker.
            config.ssl_mode(if is_local {
                SslMode::Disable
            } else {
                SslMode::Require
            });
        }
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.connect_timeout(limits::STORE_CONNECT_WAIT.as_duration());
        config.keepalives_idle(limits::STORE_KEEPALIVE.as_duration());
        config.keepalives_interval(limits::STORE_KEEPALIVE.as_duration());
        config.keepalives_retries(3);
        config.tcp_user_timeout(limits::STORE_USER_TIMEOUT.as_duration());
        config.application_name(format!(
            "jitney {}",
            options.server.as_deref().unwrap_or("")
        ));
        let tls = if config.get_ssl_mode() == SslMode::Disable {
            None
        } else {
            Some(MakeRustlsConnect::new(client_tls(options)?))
        };
        Ok(Self {
            name,
            place: place(&config),
            hosts: Hosts::new(&config),
            tls,
            identity: OnceLock::new(),
            origin: OnceLock::new(),
            timeline: NewestTimeline::default(),
            is_timeline_unknown: AtomicBool::new(false),
            promotions: watch::Sender::new(0),
            is_replaced: watch::Sender::new(false),
            is_closed: watch::Sender::new(false),
            idle: Mutex::default(),
            lent: Arc::new(Semaphore::new(limits::STORE_SESSIONS_MAX)),
            of_appends: Default::default(),
        })
    }

    /// Returns its name among the stores of the fleet.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the store says it is, if it was reached.
    pub fn identity(&self) -> Option<&str> {
        self.identity.get().map(String::as_str)
    }

    /// Returns its first identity, if it was reached or the other stores know it.
    pub fn origin(&self) -> Option<&str> {
        self.origin.get().map(String::as_str)
    }

    /// Takes what the store says it is, from its first session.
    ///
    /// # Errors
    ///
    /// It was another before.
    pub fn expect(&self, identity: &str) -> Result<(), StoreError> {
        self.compare(&self.identity, identity)
    }

    /// Takes the store's first identity, from its first session or from the other stores.
    ///
    /// # Errors
    ///
    /// It was another before.
    pub fn expect_origin(&self, origin: &str) -> Result<(), StoreError> {
        self.compare(&self.origin, origin)
    }

    fn compare(&self, known: &OnceLock<String>, identity: &str) -> Result<(), StoreError> {
        let known = known.get_or_init(|| identity.to_owned());
        if *known != identity {
            self.is_replaced.send_replace(true);
            return Err(StoreError::Replaced {
                place: self.place.clone(),
                what: format!(
                    "it is another store now ({identity}) than at the start ({known}): it was restored, or the address \
                     names another database. Restart the server if that is right"
                ),
            });
        }
        Ok(())
    }

    /// Returns the host and the database.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Ends the waits for the store: the process would wait for them, and they for a store that is away.
    pub fn close(&self) {
        self.is_closed.send_replace(true);
    }

    /// Returns whether the waits for the store have been ended.
    pub fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Returns how many other primaries the database has had.
    pub fn promotions(&self) -> watch::Receiver<u64> {
        self.promotions.subscribe()
    }

    /// Waits until the store is closed.
    pub async fn until_closed(&self) {
        let mut is_closed = self.is_closed.subscribe();
        // The sender is this store's own.
        let _ = is_closed.wait_for(|is_closed| *is_closed).await;
    }

    /// Waits until the store is found to be another one than before.
    pub async fn until_replaced(&self) {
        let mut is_replaced = self.is_replaced.subscribe();
        // The sender is this store's own.
        let _ = is_replaced.wait_for(|is_replaced| *is_replaced).await;
    }

    /// Opens a session, and sets and verifies what every session has.
    ///
    /// # Errors
    ///
    /// The database cannot be reached, or is not what it was.
    pub async fn session(&self) -> Result<Session, StoreError> {
        let mut session = self.bare_session().await?;
        let query = "select identity::text, coalesce(origin, identity::text) from store";
        let row = session.one(query, &[]).await?;
        let (identity, origin): (String, String) = (self.get(&row, 0)?, self.get(&row, 1)?);
        self.expect_origin(&origin)?;
        self.expect(&identity)?;
        session.timeline = self.timeline_of(&session).await?;
        if let Some(timeline) = session.timeline {
            self.record(timeline)?;
        }
        Ok(session)
    }

    /// Asks for the timeline of a session; none if the database does not tell it, as services that replicate below PostgreSQL may.
    async fn timeline_of(&self, session: &Session) -> Result<Option<Timeline>, StoreError> {
        // The name of a WAL file begins with the timeline, in eight hexadecimal digits.
        let query = "select system_identifier, substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) from pg_control_system()";
        let row = match session.one(query, &[]).await {
            Ok(row) => row,
            // The role may not call a function, or the database has none, or refuses it for a reason of its own.
            Err(error) if error.is_refusal() => {
                self.note_untold(&error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (system, digits): (i64, Option<String>) = (self.get(&row, 0)?, self.get(&row, 1)?);
        let digits = digits.unwrap_or_default();
        let number = u32::from_str_radix(&digits, 16).ok();
        Ok(number.map(|number| Timeline::new(system, number)))
    }

    /// Records the timeline of a new session. After a promotion that ends the free sessions to the former primary.
    fn record(&self, timeline: Timeline) -> Result<(), StoreError> {
        let is_promoted = self.timeline.record(timeline).map_err(|newest| {
            self.unfit(format!(
                "it is a former primary, on {timeline}, and this server has seen {newest}. Let the address lead to the new \
                 one, or restart this server if the database was restored"
            ))
        })?;
        if is_promoted {
            info!(
                store = self.name,
                "the database has another primary: {timeline}"
            );
            self.idle().retain(|session| self.is_current(session));
            // Also of namespaces that this server has no more. One whose lock is held is being replaced.
            for place in &self.of_appends {
                if let Ok(mut place) = place.try_lock() {
                    place.take_if(|session| !self.is_current(session));
                }
            }
            self.promotions.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    /// Logs once that the database does not tell its timeline.
    fn note_untold(&self, why: &StoreError) {
        if !self.is_timeline_unknown.swap(true, Ordering::Relaxed) {
            warn!(
                store = self.name,
                "the database does not tell its timeline, so a former primary is recognized by its rows only: {why}"
            );
        }
    }

    /// Returns whether a session is not one to a former primary, as far as this server knows.
    pub fn is_current(&self, session: &Session) -> bool {
        self.timeline.is(session.timeline)
    }

    /// Returns whether something new may be asked on a session.
    pub fn is_usable(&self, session: &Session) -> bool {
        let is_condemned = session.is_condemned.load(Ordering::SeqCst);
        !is_condemned && !session.client.is_closed() && self.is_current(session)
    }

    /// Opens a session as [`Store::session`] does, also where the tables are not there yet.
    pub async fn bare_session(&self) -> Result<Session, StoreError> {
        let session = match &self.tls {
            Some(tls) => Box::pin(self.open(tls)).await?,
            None => Box::pin(self.open(&NoTls)).await?,
        };
        self.set_up(&session).await?;
        Ok(session)
    }

    async fn open<T>(&self, tls: &T) -> Result<Session, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + 'static + Send,
        T::Stream: Send + 'static,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let (client, mut connection) = self.hosts.connect(tls).await?;
        let warnings = Arc::new(AtomicU64::new(0));
        let (alive, mut ended) = oneshot::channel::<()>();
        let counted = Arc::clone(&warnings);
        let drive = async move {
            loop {
                let next = std::future::poll_fn(|cx| connection.poll_message(cx));
                tokio::select! {
                    message = next => match message {
                        Some(Ok(AsyncMessage::Notice(notice))) => {
                            debug!(code = notice.code().code(), "the store: {}", notice.message());
                            // Counted before the answer that it comes with is handed on.
                            if notice.code().code().starts_with("01") && !is_harmless(&notice) {
                                counted.fetch_add(1, Ordering::SeqCst);
                            }
                        }
                        Some(Ok(_)) => {}
                        Some(Err(error)) => {
                            debug!(%error, "a session of the store has ended");
                            return;
                        }
                        None => return,
                    },
                    // Its user is done with it: statements that are unanswered stay so.
                    _ = &mut ended => return,
                }
            }
        };
        tokio::spawn(drive);
        Ok(Session {
            client,
            warnings,
            place: self.place.clone(),
            is_condemned: AtomicBool::new(false),
            timeline: None,
            permit: None,
            _alive: alive,
        })
    }

    async fn set_up(&self, session: &Session) -> Result<(), StoreError> {
        let token = random_uuid();
        let settings = SETTINGS.iter();
        let sets = settings.map(|(name, value)| format!("set {name} = '{value}';"));
        let sets: String = sets.collect();
        // A role or a database may have less than is needed; what is more is kept.
        let sets = format!(
            "{sets} set jitney.session = '{token}'; \
             select set_config(name, '0', false) from pg_settings where name in ('{}'); \
             select set_config('synchronous_commit', 'on', false) \
             where current_setting('synchronous_commit') not in ('on', 'remote_apply')",
            TIMEOUTS.join("', '")
        );
        session.batch("set up a session", &sets).await?;
        let names: Vec<&str> = SETTINGS.iter().map(|(name, _)| *name).collect();
        let query = "select n, current_setting(n) from unnest($1::text[]) n";
        for row in session.rows(query, &[&names]).await? {
            let (name, found): (String, String) = (self.get(&row, 0)?, self.get(&row, 1)?);
            let wanted = SETTINGS.iter().find(|(known, _)| *known == name);
            if wanted.is_none_or(|(_, wanted)| *wanted != found) {
                return Err(self.unfit(format!("the session's setting {name} is {found}")));
            }
        }
        let query = "select current_setting('synchronous_commit'), pg_is_in_recovery(), \
                     current_setting('jitney.session', true), \
                     (select min(name) from pg_settings where name = any($1) and setting <> '0')";
        let row = session.one(query, &[&&TIMEOUTS[..]]).await?;
        if let Some(name) = self.get::<Option<String>>(&row, 3)? {
            return Err(self.unfit(format!("the session's setting {name} is not 0")));
        }
        let (commit, standby): (String, bool) = (self.get(&row, 0)?, self.get(&row, 1)?);
        if standby {
            return Err(self.unfit("it is a standby, which takes no writes".to_owned()));
        }
        // Anything else acknowledges what a standby has not.
        if !["on", "remote_apply"].contains(&&commit[..]) {
            return Err(self.unfit(format!(
                "synchronous_commit is {commit} for this role or database: set it to on"
            )));
        }
        let found: Option<String> = self.get(&row, 2)?;
        if found.as_ref() != Some(&token) {
            return Err(self.unfit(POOLED.to_owned()));
        }
        Ok(())
    }

    /// Returns a session that is free, or a new one. [`Store::give_back`] takes it when it is free again; after an error it is
    /// dropped, which ends it.
    ///
    /// # Errors
    ///
    /// Those of [`Store::session`].
    pub async fn take(&self) -> Result<Session, StoreError> {
        let permit = Arc::clone(&self.lent).acquire_owned().await;
        let permit = permit.expect("the semaphore of sessions is never closed");
        let idle = self.idle().pop();
        let mut session = match idle.filter(|session| self.is_usable(session)) {
            Some(session) => session,
            None => self.session().await?,
        };
        session.permit = Some(permit);
        Ok(session)
    }

    /// Returns the session for the appends of a namespace. One that a namespace has condemned is replaced.
    ///
    /// # Errors
    ///
    /// Those of [`Store::session`].
    pub async fn append_session(&self, namespace: i64) -> Result<Arc<Session>, StoreError> {
        let count = i64::try_from(self.of_appends.len()).unwrap_or(1);
        let at = usize::try_from(namespace.rem_euclid(count)).unwrap_or_default();
        let place = self
            .of_appends
            .get(at)
            .expect("the remainder is less than the length");
        let mut place = place.lock().await;
        let found = place.as_ref().filter(|session| self.is_usable(session));
        if let Some(session) = found {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.session().await?);
        *place = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Takes a session that is free again.
    pub fn give_back(&self, mut session: Session) {
        session.permit = None;
        let mut idle = self.idle();
        if self.is_current(&session) && idle.len() < limits::STORE_SESSIONS_IDLE {
            idle.push(session);
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error that the database is not what it should be.
    pub fn unfit(&self, what: String) -> StoreError {
        let place = self.place.clone();
        StoreError::Unfit { place, what }
    }

    /// Reads a column.
    pub fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
        &self,
        row: &'r Row,
        column: usize,
    ) -> Result<T, StoreError> {
        row.try_get(column).map_err(|source| StoreError::Database {
            place: self.place.clone(),
            what: "a column cannot be read",
            source,
        })
    }
}

/// A session of the database.
pub struct Session {
    client: Client,
    /// Warnings that have come, without those that are [harmless](HARMLESS).
    warnings: Arc<AtomicU64>,
    place: String,
    /// An append on it has an outcome that is unknown.
    is_condemned: AtomicBool,
    /// None if the database does not tell it.
    timeline: Option<Timeline>,
    /// Held while it is in use.
    permit: Option<OwnedSemaphorePermit>,
    /// The session ends when this is dropped, whatever it waits for.
    _alive: oneshot::Sender<()>,
}

/// The parameters of a statement.
pub type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

impl Session {
    /// Returns the timeline of the database that it is connected to; none if that is not told.
    pub const fn timeline(&self) -> Option<Timeline> {
        self.timeline
    }

    /// Returns how many warnings have come that are not harmless. One between a statement and its answer means that its commit did not
    /// wait for a standby.
    pub fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::SeqCst)
    }

    /// Lets no append use it any more.
    pub fn condemn(&self) {
        self.is_condemned.store(true, Ordering::SeqCst);
    }

    /// Returns the client, for statements whose answers are awaited elsewhere.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Runs statements without parameters.
    pub async fn batch(&self, what: &'static str, sql: &str) -> Result<(), StoreError> {
        self.certain(what, self.client.batch_execute(sql)).await
    }

    /// Runs a statement; returns how many rows it has changed.
    ///
    /// # Errors
    ///
    /// It failed, or it is unknown whether it is durable.
    pub async fn execute(&self, sql: &str, params: Params<'_>) -> Result<u64, StoreError> {
        self.certain("a statement", self.client.execute(sql, params))
            .await
    }

    /// Runs a query.
    pub async fn rows(&self, sql: &str, params: Params<'_>) -> Result<Vec<Row>, StoreError> {
        self.certain("a query", self.client.query(sql, params))
            .await
    }

    /// Runs a query for at most one row.
    pub async fn optional(&self, sql: &str, params: Params<'_>) -> Result<Option<Row>, StoreError> {
        self.certain("a query", self.client.query_opt(sql, params))
            .await
    }

    /// Runs a query for one row.
    pub async fn one(&self, sql: &str, params: Params<'_>) -> Result<Row, StoreError> {
        self.certain("a query", self.client.query_one(sql, params))
            .await
    }

    /// Returns the number of the database's process that it has now. The statement is not prepared: also a pooler that
    /// cannot do that answers it.
    pub async fn backend(&self) -> Result<String, StoreError> {
        let asked = self.client.simple_query("select pg_backend_pid()");
        let found = self.certain("a query", asked).await?;
        let number = found.iter().find_map(|message| {
            if let SimpleQueryMessage::Row(row) = message {
                row.get(0)
            } else {
                None
            }
        });
        Ok(number.unwrap_or_default().to_owned())
    }

    /// Prepares a statement.
    pub async fn prepare(&self, sql: &str) -> Result<Statement, StoreError> {
        self.certain("prepare a statement", self.client.prepare(sql))
            .await
    }

    /// Waits for an answer; one with a warning is an error, because the commit may not be on a standby.
    async fn certain<T>(
        &self,
        what: &'static str,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StoreError> {
        let before = self.warnings();
        let done = answered(&self.place, what, work).await?;
        if before != self.warnings() {
            return Err(StoreError::Unfit {
                place: self.place.clone(),
                what: format!("{what}: there was a warning: it is unknown whether it is durable"),
            });
        }
        Ok(done)
    }
}

/// Returns whether a warning says nothing of the commit that it comes with: it names the routine of PostgreSQL that has raised it.
fn is_harmless(notice: &DbError) -> bool {
    notice
        .routine()
        .is_some_and(|routine| HARMLESS.contains(&routine))
}

async fn answered<T>(
    place: &str,
    what: &'static str,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, StoreError> {
    let wait: Duration = limits::STORE_ANSWER_WAIT.as_duration();
    match timeout(wait, work).await {
        Ok(done) => done.map_err(|source| {
            let place = place.to_owned();
            let code = source.code();
            if code.is_some_and(|code| OF_POOLERS.contains(code)) {
                let what = POOLED.to_owned();
                return StoreError::Unfit { place, what };
            }
            StoreError::Database {
                place,
                what,
                source,
            }
        }),
        Err(_) => Err(StoreError::slow(place, what, wait)),
    }
}

fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    }
}

fn client_tls(options: &StoreOptions) -> Result<rustls::ClientConfig, StoreError> {
    let mut roots = rustls::RootCertStore::empty();
    match &options.ca {
        Some(file) => {
            let unreadable = |error: &dyn std::fmt::Display| {
                StoreError::Url(format!("--store-ca {}: {error}", file.display()))
            };
            let found = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| unreadable(&error))?;
                roots.add(certificate).map_err(|error| unreadable(&error))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| StoreError::Url(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::hosts::tests::{accept, listener, send, skip_body};

    fn stores(texts: &[&str]) -> Result<Vec<Store>, StoreError> {
        Store::all(&StoreOptions {
            urls: texts.iter().copied().map(Secret::new).collect(),
            ca: None,
            server: Some("one".to_owned()),
        })
    }

    fn store(url: &str) -> Result<Store, StoreError> {
        stores(&[url]).map(|mut all| all.remove(0))
    }

    #[test]
    fn several_stores_have_names() {
        let names = |texts: &[&str]| {
            let all = stores(texts)?;
            Ok::<_, StoreError>(
                all.iter()
                    .map(|it| it.name().to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let (a, b) = (
            "postgres://u:p=x@one.example/x",
            "postgresql://u@two.example/y",
        );
        assert!(names(&[]).unwrap().is_empty());
        assert_eq!(names(&[a]).unwrap(), ["store"]);
        assert_eq!(names(&["host=one.example user=u"]).unwrap(), ["store"]);
        assert_eq!(
            names(&[&format!("Two={b}"), &format!("one={a}")]).unwrap(),
            ["one", "two"]
        );
        for (wrong, what) in [
            (vec![a.to_owned(), format!("two={b}")], "NAME=URL"),
            (
                vec![format!("a={a}"), format!("A={b}")],
                "two stores have the name a",
            ),
            (vec![format!("{}={a}", "x".repeat(99))], "longer"),
            (vec!["a=one.example".to_owned()], "postgres://"),
            ((0..99).map(|at| format!("s{at}={a}")).collect(), "99"),
        ] {
            let wrong: Vec<&str> = wrong.iter().map(|it| &it[..]).collect();
            let error = names(&wrong).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    /// restore-with-old-servers: a restore gives the store another identity. `interop-tests/ha/test_store_commands.py` restores one.
    #[test]
    fn a_store_with_another_identity_than_before_is_not_the_same() {
        let store = store("postgres://u@db.example/x").unwrap();
        for _ in 0..2 {
            store.expect("before").unwrap();
        }
        let error = store.expect("restored").unwrap_err();
        assert!(matches!(error, StoreError::Replaced { .. }), "{error}");
        assert!(store.expect("before").is_ok());
    }

    #[test]
    fn the_password_is_in_no_message() {
        let found = store("postgres://user:secret@db.example:5433/messages").unwrap();
        assert_eq!(found.place(), "db.example:5433/messages");
        assert!(!format!("{found:?}").contains("secret"));
        let error = store("postgres://user:secret@host:port/x").unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[test]
    fn a_connection_beyond_this_machine_is_encrypted_unless_the_url_says_otherwise() {
        for (url, is_encrypted) in [
            ("postgres://u@db.example/x", true),
            ("postgres://u@127.0.0.1/x", false),
            ("postgres://u@localhost/x", false),
            ("postgres://u@db.example/x?sslmode=disable", false),
            ("postgres://u@127.0.0.1/x?sslmode=require", true),
        ] {
            assert_eq!(store(url).unwrap().tls.is_some(), is_encrypted, "{url}");
        }
    }

    /// A statement during which the database warns with the name of a routine of its own.
    async fn warned(routine: &str) -> Result<(), StoreError> {
        let (listener, address) = listener().await;
        let store = store(&format!("postgres://u@{address}/x")).unwrap();
        let database = async {
            let mut peer = accept(&listener, b"off").await;
            assert_eq!(peer.read_u8().await.unwrap(), b'Q');
            skip_body(&mut peer).await;
            let notice = format!("SWARNING\0VWARNING\0C01000\0Mas it is to\0R{routine}\0\0");
            send(&mut peer, b'N', notice.as_bytes()).await;
            send(&mut peer, b'C', b"BEGIN\0").await;
            send(&mut peer, b'Z', b"I").await;
        };
        let client = async {
            let session = store.open(&NoTls).await?;
            session.batch("begin", "begin").await
        };
        tokio::join!(client, database).0
    }

    #[tokio::test]
    async fn a_warning_of_something_else_than_the_commit_leaves_it_certain() {
        for routine in HARMLESS {
            warned(routine).await.unwrap();
        }
        for routine in ["SyncRepWaitForLSN", "exec_stmt_raise", ""] {
            let error = warned(routine).await.unwrap_err();
            assert!(matches!(error, StoreError::Unfit { .. }), "{error}");
        }
    }
}
