//! Which shard a connection belongs to: the one that serves the namespace that its peer names.
//!
//! A peer names its namespace in `open`; SASL comes before that. Until then the connection belongs to
//! no shard, and [`Routing`] decides what is to be done with its reports: an identity is shown to one
//! shard after the other until one accepts it, and shown again to the shard that `open` names. Nothing
//! else can come before `open`, and nothing is asked of a shard for a host that is not known.
//!
//! ```text
//!  Authenticating ──► the shard of the TLS name, then the others, until one accepts the identity
//!  Opened ──────────► the shard of the host, for good; the identity is shown to it if another had it
//!  Closed ──────────► the shard that has the connection, if any has
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Outgoing, Report};
use crate::limits;
use jitney_amqp::{Event, Identity};
use jitney_base::address;
use jitney_gateway::Reply;

/// A shard of this server: an index that no other shard has in the life of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardIndex(pub usize);

/// Which of all namespaces routes have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KnownNamespaces {
    /// Some, as far as is known: a host that names none of them means none.
    #[default]
    Some,
    /// All of them.
    All,
}

/// Which shard serves which namespace.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// By the name in lower case; none where another server serves the namespace.
    by_namespace: BTreeMap<String, Option<ShardIndex>>,
    /// The name of the first namespace.
    first: String,
    /// Other servers serve namespaces too.
    is_shared: bool,
    known: KnownNamespaces,
}

impl Routes {
    /// Takes the namespaces and their shards. The first answers to every host that is no other's.
    pub fn new<'n>(namespaces: impl IntoIterator<Item = (&'n str, ShardIndex)>) -> Self {
        let mut routes = Self::default();
        for (name, shard) in namespaces {
            let name = name.to_lowercase();
            if routes.by_namespace.is_empty() {
                routes.first.clone_from(&name);
            }
            routes.by_namespace.insert(name, Some(shard));
        }
        routes
    }

    /// Returns the routes of a server that shares the namespaces with others, of which it serves none yet.
    #[must_use]
    pub fn shared() -> Self {
        Self {
            is_shared: true,
            ..Self::default()
        }
    }

    /// Returns the routes with these namespaces, by their names in lower case: those that are not here already are served by
    /// other servers. The first answers to every host that is no other's, if these are all.
    #[must_use]
    pub fn with_known<'n>(
        &self,
        first: &str,
        names: impl IntoIterator<Item = &'n str>,
        known: KnownNamespaces,
    ) -> Self {
        let by_namespace = names.into_iter().map(|name| {
            let here = self.by_namespace.get(name).copied().flatten();
            (name.to_owned(), here)
        });
        Self {
            by_namespace: by_namespace.collect(),
            first: first.to_owned(),
            is_shared: self.is_shared,
            known,
        }
    }

    /// Returns whether these namespaces are known, by their names in lower case and in the order of them, and no others.
    #[must_use]
    pub fn knows<'n>(
        &self,
        names: impl IntoIterator<Item = &'n str>,
        known: KnownNamespaces,
    ) -> bool {
        let found = self.by_namespace.keys().map(String::as_str);
        self.known == known && found.eq(names)
    }

    /// Returns the routes with a namespace, whose name is in lower case, that another server serves.
    #[must_use]
    pub fn elsewhere(&self, namespace: &str) -> Self {
        let mut routes = self.clone();
        routes.by_namespace.insert(namespace.to_owned(), None);
        routes
    }

    /// Returns the routes with another namespace, whose name is in lower case.
    #[must_use]
    pub fn with(&self, namespace: &str, shard: ShardIndex) -> Self {
        let mut routes = self.clone();
        routes
            .by_namespace
            .insert(namespace.to_owned(), Some(shard));
        routes
    }

    /// Returns the routes without a namespace, whose name is in lower case.
    #[must_use]
    pub fn without(&self, namespace: &str) -> Self {
        let mut routes = self.clone();
        routes.by_namespace.remove(namespace);
        routes
    }

    /// Returns the namespaces by their names in lower case, and their shards; none of those that other servers serve.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, Option<ShardIndex>)> {
        let all = self.by_namespace.iter();
        all.map(|(name, shard)| (name.as_str(), *shard))
    }

    /// Returns whether other servers serve namespaces too.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Returns the namespace that a host names, in lower case, if another server serves it. None for a host that names no namespace
    /// while not all are known.
    #[must_use]
    pub fn elsewhere_of(&self, host: Option<&str>) -> Option<&str> {
        let is_named = self.known == KnownNamespaces::All || self.found(host).is_some();
        let is_elsewhere = self.is_shared && is_named && self.shard_of(host).is_none();
        is_elsewhere.then(|| self.namespace_of(host))
    }

    /// Returns whether there may be namespaces that are not known yet: a host that names none of the others may name one of them.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.is_shared && self.known == KnownNamespaces::Some
    }

    /// Returns the name of the first namespace, in lower case.
    #[must_use]
    pub fn first(&self) -> &str {
        &self.first
    }

    /// Returns whether there is a namespace of this name, whatever its case.
    #[must_use]
    pub fn has(&self, namespace: &str) -> bool {
        self.by_namespace.contains_key(&namespace.to_lowercase())
    }

    /// Returns the name, in lower case, of the namespace that a host names by its first label. A host that names none means the
    /// first namespace.
    #[must_use]
    pub fn namespace_of(&self, host: Option<&str>) -> &str {
        self.found(host).map_or(&*self.first, |(name, _)| name)
    }

    /// Returns the shard of the namespace that a host names; none if another server serves it.
    #[must_use]
    pub fn shard_of(&self, host: Option<&str>) -> Option<ShardIndex> {
        match self.found(host) {
            Some((_, shard)) => shard,
            None if self.is_partial() => None,
            None => self.by_namespace.get(&self.first).copied().flatten(),
        }
    }

    fn found(&self, host: Option<&str>) -> Option<(&str, Option<ShardIndex>)> {
        let label = address::namespace_label(host);
        // Without capitals, which hosts seldom have, nothing is allocated.
        let found = if label.chars().any(char::is_uppercase) || !label.is_ascii() {
            self.by_namespace.get_key_value(&label.to_lowercase())
        } else {
            self.by_namespace.get_key_value(label)
        };
        found.map(|(name, shard)| (name.as_str(), *shard))
    }

    /// Returns the shard that an identity is shown to after this one, if it began at `first`.
    fn next(&self, first: ShardIndex, after: ShardIndex) -> Option<ShardIndex> {
        let all: BTreeSet<ShardIndex> = self.by_namespace.values().copied().flatten().collect();
        let all = all.into_iter();
        let order = [first].into_iter().chain(all.filter(|at| *at != first));
        let mut behind = order.skip_while(|at| *at != after);
        behind.next();
        behind.next()
    }
}

/// A host that a peer has named, or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host(pub Option<String>);

/// The search for the shard of one connection.
#[derive(Debug)]
pub struct Routing {
    /// What TLS or HTTP has named.
    server_name: Option<String>,
    /// What the peer says it is.
    identity: Option<Identity>,
    /// The shard that has the connection.
    at: Option<ShardIndex>,
    is_over: bool,
    /// The host that the peer has named, if no shard here is known to serve it.
    elsewhere: Option<Host>,
    /// What the peer says it is was accepted for now: the namespace that it will name decides.
    is_accepted: bool,
}

impl Routing {
    /// Takes the host that TLS or HTTP has named.
    #[must_use]
    pub fn new(server_name: Option<String>) -> Self {
        Self {
            server_name,
            identity: None,
            at: None,
            is_over: false,
            elsewhere: None,
            is_accepted: false,
        }
    }

    /// Returns the shard that a connection's reports are for; `None` if no shard is to know of them. If
    /// the connection is another shard's, it is to be taken from there first.
    pub fn route(&mut self, routes: &Routes, reports: &mut Vec<Report>) -> Option<ShardIndex> {
        if self.is_over {
            return self.at;
        }
        let mut named = None;
        for report in reports.iter_mut() {
            match report {
                Report::Event(Event::Authenticating { identity }) => {
                    debug_assert!(
                        bytes(identity) <= limits::UNROUTED_BYTES_MAX,
                        "a frame before open is not longer"
                    );
                    let identity = identity.clone();
                    self.identity = Some(identity.clone());
                    let Some(first) = self.first(routes) else {
                        self.is_accepted = true;
                        continue;
                    };
                    self.at = Some(first);
                    *report = show(routes, first, first, identity);
                }
                Report::Event(Event::Opened { hostname, .. }) => {
                    let host = hostname.as_deref().or(self.server_name.as_deref());
                    named = Some(routes.shard_of(host));
                    if routes.is_shared && named == Some(None) {
                        self.elsewhere = Some(Host(host.map(str::to_owned)));
                    }
                }
                Report::Event(_)
                | Report::Returned { .. }
                | Report::Written { .. }
                | Report::Answered(_)
                | Report::TryIdentity(_) => {}
            }
        }
        if let Some(shard) = named {
            self.is_over = true;
            self.server_name = None;
            match shard {
                Some(shard) => self.serve_at(shard, reports),
                None => self.at = None,
            }
        }
        self.at
    }

    /// Takes the shard that has the namespace which the peer has named: what the peer says it is is shown to that, if it was not.
    pub fn serve_at(&mut self, shard: ShardIndex, reports: &mut Vec<Report>) {
        self.elsewhere = None;
        let identity = self.identity.take();
        if self.at.replace(shard) != Some(shard)
            && let Some(identity) = identity
        {
            reports.insert(0, Report::TryIdentity(identity));
        }
    }

    /// Looks at what a shard sends. If it refuses the identity and there is another shard to ask,
    /// takes the refusal, and returns that shard with what to report to it.
    pub fn ask_next(
        &mut self,
        routes: &Routes,
        outgoing: &mut VecDeque<Outgoing>,
    ) -> Option<(ShardIndex, Report)> {
        if self.is_over {
            return None;
        }
        let Some(Outgoing::Reply(Reply::Authenticated(false))) = outgoing.front() else {
            return None;
        };
        let first = self.first(routes)?;
        let next = routes.next(first, self.at?)?;
        let identity = self.identity.clone()?;
        outgoing.pop_front();
        self.at = Some(next);
        Some((next, show(routes, first, next, identity)))
    }

    /// Returns whether the namespace is known, and with it the shard.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns how many bytes of the peer's are kept.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.identity.as_ref().map_or(0, bytes)
    }

    /// Returns the first shard that an identity is shown to; none if it is accepted for now, because it may be of a namespace
    /// that another server serves.
    fn first(&self, routes: &Routes) -> Option<ShardIndex> {
        let named = self.server_name.as_deref();
        if routes.is_shared && routes.found(named).is_none() {
            return None;
        }
        routes.shard_of(named)
    }

    /// Returns, once, that the peer's identity is accepted for now.
    pub fn take_accepted(&mut self) -> bool {
        std::mem::take(&mut self.is_accepted)
    }

    /// Returns the host that the peer has named, if no shard here was known to serve it. Which namespace it means is to be
    /// asked of the routes of a later time: they may not have known the namespaces yet.
    #[must_use]
    pub fn elsewhere(&self) -> Option<&Host> {
        self.elsewhere.as_ref()
    }
}

/// Returns the report by which an identity is shown to a shard. A refusal by the last shard that is asked
/// is a failed authentication.
fn show(routes: &Routes, first: ShardIndex, shard: ShardIndex, identity: Identity) -> Report {
    match routes.next(first, shard) {
        Some(_) => Report::TryIdentity(identity),
        None => Report::Event(Event::Authenticating { identity }),
    }
}

fn bytes(identity: &Identity) -> usize {
    match identity {
        Identity::Plain { user, password } => user.len() + password.expose().len(),
        Identity::Unnamed | Identity::Anonymous | Identity::External => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jitney_base::secret::Secret;

    const A: ShardIndex = ShardIndex(0);
    const B: ShardIndex = ShardIndex(1);
    const C: ShardIndex = ShardIndex(2);

    fn routes() -> Routes {
        Routes::new([("a", A), ("Bee", B), ("c", C), ("also-a", A)])
    }

    fn plain() -> Report {
        Report::Event(Event::Authenticating { identity: key() })
    }

    fn key() -> Identity {
        Identity::Plain {
            user: "user".to_owned(),
            password: Secret::new("key"),
        }
    }

    fn opened(host: Option<&str>) -> Report {
        Report::Event(Event::Opened {
            container_id: "c".to_owned(),
            hostname: host.map(str::to_owned),
            identity: Identity::Anonymous,
            is_client_provider: false,
            product: Box::default(),
        })
    }

    fn refused() -> VecDeque<Outgoing> {
        [Outgoing::Reply(Reply::Authenticated(false))].into()
    }

    fn is_key(report: &Report) -> bool {
        match report {
            Report::Event(Event::Authenticating { identity }) | Report::TryIdentity(identity) => {
                *identity == key()
            }
            Report::Event(_)
            | Report::Returned { .. }
            | Report::Written { .. }
            | Report::Answered(_) => false,
        }
    }

    fn is_last(report: &Report) -> bool {
        matches!(report, Report::Event(Event::Authenticating { .. }))
    }

    #[test]
    fn a_host_names_its_namespace_by_its_first_label() {
        for (host, shard) in [
            (None, A),
            (Some(""), A),
            (Some("a.example"), A),
            (Some("also-a"), A),
            (Some("bee"), B),
            (Some("BEE.servicebus.windows.net"), B),
            (Some("c:5672"), C),
            (Some("c.example:5672"), C),
            (Some("d.example"), A),
            (Some("example.bee"), A),
            (Some("127.0.0.1"), A),
            (Some(".bee"), A),
        ] {
            assert_eq!(routes().shard_of(host), Some(shard), "{host:?}");
        }
    }

    #[test]
    fn nothing_is_a_shard_s_before_a_host_is_named() {
        let routes = routes();
        let mut routing = Routing::new(None);
        let closed = Report::Event(Event::Closed {
            error: None,
            unsent: Vec::new(),
        });
        assert_eq!(routing.route(&routes, &mut vec![closed]), None);
        let mut reports = vec![opened(Some("c.example")), Report::Answered(1)];
        assert_eq!(routing.route(&routes, &mut reports), Some(C));
        assert_eq!((reports.len(), routing.kept_bytes()), (2, 0));
        // It stays there, whatever a peer reports.
        let mut reports = vec![opened(Some("bee"))];
        assert_eq!(routing.route(&routes, &mut reports), Some(C));
        assert_eq!(reports.len(), 1);
    }

    #[test]
    fn the_name_of_tls_counts_where_open_has_none() {
        for (host, shard) in [(None, B), (Some("c"), C), (Some("unknown"), A)] {
            let mut routing = Routing::new(Some("bee.example".to_owned()));
            let mut reports = vec![opened(host)];
            assert_eq!(routing.route(&routes(), &mut reports), Some(shard));
        }
    }

    #[test]
    fn an_identity_is_shown_to_each_shard_until_one_accepts_it() {
        for (name, order) in [(None, [A, B, C]), (Some("bee".to_owned()), [B, A, C])] {
            let routes = routes();
            let mut routing = Routing::new(name);
            let mut reports = vec![plain()];
            let mut found = routing.route(&routes, &mut reports);
            assert!(reports.len() == 1 && routing.kept_bytes() == 7);
            assert!(is_key(&reports[0]) && !is_last(&reports[0]));
            for shard in order {
                assert_eq!(found, Some(shard));
                let mut outgoing = refused();
                let next = routing.ask_next(&routes, &mut outgoing);
                // The last refusal is the peer's.
                assert_eq!(outgoing.is_empty(), next.is_some());
                assert!(next.as_ref().is_none_or(|(_, report)| is_key(report)));
                let is_last = next.as_ref().map(|(_, report)| is_last(report));
                assert_eq!(is_last, next.as_ref().map(|(shard, _)| *shard == order[2]));
                found = next.map(|(shard, _)| shard);
            }
            assert_eq!(found, None);
        }
    }

    #[test]
    fn an_identity_that_one_shard_has_accepted_is_shown_to_the_one_that_open_names() {
        let routes = routes();
        for (host, shard, shown) in [("a", A, false), ("c", C, true)] {
            let mut routing = Routing::new(None);
            assert_eq!(routing.route(&routes, &mut vec![plain()]), Some(A));
            let mut reports = vec![opened(Some(host))];
            assert_eq!(routing.route(&routes, &mut reports), Some(shard));
            assert_eq!(reports.first().is_some_and(is_key), shown);
            assert!(!reports.iter().any(is_last), "one shard has accepted it");
            assert_eq!(reports.len(), 1 + usize::from(shown));
            assert_eq!(routing.kept_bytes(), 0);
            // What another shard says of it comes too late.
            let mut outgoing = refused();
            assert!(routing.ask_next(&routes, &mut outgoing).is_none());
            assert_eq!(outgoing.len(), 1);
        }
    }

    /// Routes of a server that has `b` of three namespaces.
    fn shared() -> Routes {
        Routes::shared()
            .with_known("a", ["a", "b", "c"], KnownNamespaces::All)
            .with("b", B)
    }

    #[test]
    fn a_namespace_that_another_server_has_is_named_and_no_shard_hears_of_it() {
        for (host, namespace) in [(Some("c.example"), "c"), (None, "a"), (Some("other"), "a")] {
            let mut routing = Routing::new(None);
            let mut reports = vec![opened(host)];
            assert_eq!(routing.route(&shared(), &mut reports), None, "{host:?}");
            assert_eq!(routing.elsewhere(), Some(&Host(host.map(str::to_owned))));
            assert!(routing.is_over());
            assert_eq!(shared().elsewhere_of(host), Some(namespace));
        }
        let mut routing = Routing::new(None);
        assert_eq!(
            routing.route(&shared(), &mut vec![opened(Some("b"))]),
            Some(B)
        );
        assert_eq!(routing.elsewhere(), None);
    }

    #[test]
    fn a_host_that_names_no_known_namespace_means_none_while_some_are_not_known() {
        let routes = Routes::shared()
            .with_known("a", ["a", "b"], KnownNamespaces::Some)
            .with("a", A);
        assert!(routes.is_partial() && !shared().is_partial());
        assert_eq!(routes.shard_of(Some("a.example")), Some(A));
        assert_eq!(routes.elsewhere_of(Some("b.example")), Some("b"));
        for host in [Some("c.example"), None] {
            assert_eq!(routes.shard_of(host), None, "{host:?}");
            assert_eq!(routes.elsewhere_of(host), None, "{host:?}");
        }
        assert!(
            routes.knows(["a", "b"], KnownNamespaces::Some)
                && !routes.knows(["a", "b"], KnownNamespaces::All)
        );
        let whole = routes.with_known("a", ["a", "b"], KnownNamespaces::All);
        assert_eq!(whole.shard_of(Some("c.example")), Some(A), "the first");
    }

    #[test]
    fn an_identity_is_accepted_for_now_where_other_servers_have_namespaces_too() {
        let routes = shared();
        let mut routing = Routing::new(None);
        assert_eq!(routing.route(&routes, &mut vec![plain()]), None);
        assert!(routing.take_accepted() && !routing.take_accepted());
        // The shard that `open` names judges it.
        let mut reports = vec![opened(Some("b"))];
        assert_eq!(routing.route(&routes, &mut reports), Some(B));
        assert!(reports.len() == 2 && is_key(&reports[0]) && !is_last(&reports[0]));
        // So does one that is taken over while the connection waits.
        let mut routing = Routing::new(None);
        routing.route(&routes, &mut vec![plain()]);
        let mut reports = vec![opened(Some("c"))];
        assert_eq!(routing.route(&routes, &mut reports), None);
        routing.serve_at(C, &mut reports);
        assert!(reports.len() == 2 && is_key(&reports[0]));
        assert_eq!(routing.elsewhere(), None);
    }

    #[test]
    fn a_name_of_tls_that_is_known_here_lets_its_shard_judge_the_identity() {
        let mut routing = Routing::new(Some("b.example".to_owned()));
        let mut reports = vec![plain()];
        assert_eq!(routing.route(&shared(), &mut reports), Some(B));
        assert!(!routing.take_accepted() && is_last(&reports[0]));
    }

    #[test]
    fn a_host_means_no_namespace_before_all_of_them_are_known() {
        let unknown = Routes::shared();
        let mut routing = Routing::new(None);
        let mut reports = vec![opened(Some("c.example"))];
        assert_eq!(routing.route(&unknown, &mut reports), None);
        let Some(Host(host)) = routing.elsewhere() else {
            panic!("it is asked again later");
        };
        assert_eq!(host.as_deref(), Some("c.example"));
        assert_eq!(unknown.elsewhere_of(host.as_deref()), None);
        // A namespace that is taken over before the others are known is not the one that is meant.
        let early = unknown.with("a", A);
        assert_eq!(early.shard_of(host.as_deref()), None);
        assert_eq!(early.shard_of(None), None);
    }
}
