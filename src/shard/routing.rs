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

use std::collections::{BTreeMap, VecDeque};

use super::{Outgoing, Report};
use crate::address;
use crate::amqp::{Event, Identity};
use crate::gateway::Reply;
use crate::limits;

/// A shard of this server: an index into the list that the server has of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardIndex(pub usize);

impl ShardIndex {
    /// The shard of the first namespace, which answers to every host that is no other's.
    pub const FIRST: Self = Self(0);
}

/// Which shard serves which namespace.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    /// By the name in lower case.
    by_namespace: BTreeMap<String, ShardIndex>,
    /// The name of the first namespace.
    first: String,
    /// How many shards there are.
    shards: usize,
}

impl Routes {
    /// Takes the namespaces and their shards, of which there are so many. The first answers to every host that is no other's.
    pub fn new<'n>(
        shards: usize,
        namespaces: impl IntoIterator<Item = (&'n str, ShardIndex)>,
    ) -> Self {
        let mut routes = Self {
            shards,
            ..Self::default()
        };
        for (name, shard) in namespaces {
            let name = name.to_lowercase();
            if routes.by_namespace.is_empty() {
                routes.first.clone_from(&name);
            }
            routes.by_namespace.insert(name, shard);
        }
        routes
    }

    /// Returns the routes with another namespace, whose name is in lower case.
    #[must_use]
    pub fn with(&self, namespace: &str, shard: ShardIndex) -> Self {
        let mut routes = self.clone();
        routes.by_namespace.insert(namespace.to_owned(), shard);
        routes
    }

    /// Returns the routes without a namespace, whose name is in lower case.
    #[must_use]
    pub fn without(&self, namespace: &str) -> Self {
        let mut routes = self.clone();
        routes.by_namespace.remove(namespace);
        routes
    }

    /// Returns the namespaces by their names in lower case, and their shards.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, ShardIndex)> {
        let all = self.by_namespace.iter();
        all.map(|(name, shard)| (name.as_str(), *shard))
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

    /// Returns the shard of the namespace that a host names.
    #[must_use]
    pub fn shard_of(&self, host: Option<&str>) -> ShardIndex {
        self.found(host)
            .map_or(ShardIndex::FIRST, |(_, shard)| shard)
    }

    fn found(&self, host: Option<&str>) -> Option<(&str, ShardIndex)> {
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
        let all = (0..self.shards).map(ShardIndex);
        let order = [first].into_iter().chain(all.filter(|at| *at != first));
        let mut behind = order.skip_while(|at| *at != after);
        behind.next();
        behind.next()
    }
}

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
                    let first = self.first(routes);
                    self.identity = Some(identity.clone());
                    self.at = Some(first);
                    *report = show(routes, first, first, identity);
                }
                Report::Event(Event::Opened { hostname, .. }) => {
                    let host = hostname.as_deref().or(self.server_name.as_deref());
                    named = Some(routes.shard_of(host));
                }
                Report::Event(_)
                | Report::Returned { .. }
                | Report::Written { .. }
                | Report::Answered(_)
                | Report::TryIdentity(_) => {}
            }
        }
        if let Some(shard) = named {
            let identity = self.identity.take();
            self.is_over = true;
            self.server_name = None;
            if self.at.replace(shard) != Some(shard)
                && let Some(identity) = identity
            {
                reports.insert(0, Report::TryIdentity(identity));
            }
        }
        self.at
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
        let first = self.first(routes);
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

    fn first(&self, routes: &Routes) -> ShardIndex {
        routes.shard_of(self.server_name.as_deref())
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
        Identity::Plain { user, password } => user.len() + password.len(),
        Identity::Unnamed | Identity::Anonymous | Identity::External => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ShardIndex = ShardIndex(0);
    const B: ShardIndex = ShardIndex(1);
    const C: ShardIndex = ShardIndex(2);

    fn routes() -> Routes {
        Routes::new(3, [("a", A), ("Bee", B), ("c", C), ("also-a", A)])
    }

    fn plain() -> Report {
        Report::Event(Event::Authenticating { identity: key() })
    }

    fn key() -> Identity {
        Identity::Plain {
            user: "user".to_owned(),
            password: "key".to_owned(),
        }
    }

    fn opened(host: Option<&str>) -> Report {
        Report::Event(Event::Opened {
            container_id: "c".to_owned(),
            hostname: host.map(str::to_owned),
            identity: Identity::Anonymous,
            is_client_provider: false,
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
            assert_eq!(routes().shard_of(host), shard, "{host:?}");
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
}
