//! The grants of connections: what each has proved, the links that need it, and what ends with it.

use std::collections::BTreeSet;

use tracing::info;

use super::{Link, QueuedReply, Reply};
use crate::Gateway;
use crate::denied::host_shown;
use crate::limits;
use jitney_amqp::{Identity, LinkId};
use jitney_base::address;
use jitney_base::ids::{ConnectionId, EntityId};
use jitney_base::rights::{AuthorizationRule, Right};
use jitney_base::time::Timestamp;
use jitney_broker::access::{
    self, Attempt, Authority, Credentials, FailedAttempts, Fault, Grant, Inquiry, JwksError,
    Origin, Proof, TokenIssuer, TokenRefused, TokenRequest, audience_path,
};
use jitney_broker::namespace::{Denied, DeniedKind, StepContext};

/// When the tokens of connections end.
#[derive(Debug, Default)]
pub(crate) struct TokenEnds {
    /// One that was replaced may still be here.
    ends: BTreeSet<(Timestamp, ConnectionId)>,
}

impl TokenEnds {
    pub(crate) fn insert(&mut self, at: Timestamp, id: ConnectionId) {
        self.ends.insert((at, id));
    }

    pub(crate) fn remove(&mut self, at: Timestamp, id: ConnectionId) {
        self.ends.remove(&(at, id));
    }

    /// Returns when the next one ends.
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.ends.first().map(|&(at, _)| at)
    }

    /// Takes the next one whose time is over.
    fn next(&mut self, now: Timestamp) -> Option<(Timestamp, ConnectionId)> {
        let is_over = self.ends.first().is_some_and(|&(at, _)| at <= now);
        if is_over { self.ends.pop_first() } else { None }
    }

    /// Checks that the end of a grant is known.
    pub(crate) fn check(&self, id: ConnectionId, grant: &Grant) {
        assert!(!grant.is_of_token || self.ends.contains(&(grant.expires_at, id)));
    }
}

impl Gateway {
    /// Gives a namespace its authorization rules, in place of those it had.
    pub fn set_authorization(&mut self, namespace: &str, rules: Vec<AuthorizationRule>) {
        let prefix = self.namespaces.prefix_of(namespace);
        self.access.set_rules(prefix, rules);
    }

    /// Trusts an issuer of identity tokens, or none.
    pub fn set_token_issuer(&mut self, issuer: Option<TokenIssuer>) {
        self.access.set_token_issuer(issuer);
    }

    /// Takes the keys that the issuer of identity tokens has published.
    ///
    /// # Errors
    ///
    /// If they are none; the old ones stay then.
    pub fn set_identity_keys(&mut self, keys: &str) -> Result<usize, JwksError> {
        self.access.set_identity_keys(keys)
    }

    /// Returns whether a token named a key of the issuer that is not known, since the last call.
    #[must_use]
    pub fn wants_identity_keys(&self) -> bool {
        self.access.wants_identity_keys()
    }

    /// Checks the tokens of a request over HTTP, of which the first must hold for the path that it names on a
    /// host. What the request turns out to be about is checked once more, by what is returned here.
    ///
    /// # Errors
    ///
    /// The token's problem.
    pub fn authorize(
        &mut self,
        now: Timestamp,
        inquiry: &Inquiry,
    ) -> Result<Authority, TokenRefused> {
        let directory = self.namespaces.directory();
        let prefix = match &inquiry.nowhere {
            Some(name) => address::namespace_prefix(name),
            None => directory.namespace_of(inquiry.host.as_deref()),
        };
        self.access.authorize(directory, now, &prefix, inquiry)
    }

    /// A connection was accepted; `origin` is what is known of it.
    pub fn connected(&mut self, id: ConnectionId, origin: Origin) {
        self.connection(id).origin = origin;
    }

    /// Counts failed authentications together with the other gateways that have a clone of `attempts`.
    pub fn share_failed_attempts(&mut self, attempts: FailedAttempts) {
        self.access.share_failed_attempts(attempts);
    }

    /// Checks the identity that a peer claims in SASL.
    pub(crate) fn authenticate(
        &mut self,
        now: Timestamp,
        id: ConnectionId,
        identity: &Identity,
        attempt: Attempt,
    ) {
        let origin = self.connection(id).origin.clone();
        let proof = match identity {
            Identity::Plain { password, .. } => Proof::Password(password.expose()),
            Identity::External => Proof::Certificate,
            Identity::Unnamed | Identity::Anonymous => Proof::None,
        };
        let credentials = Credentials {
            name: identity.name(),
            proof,
        };
        let directory = self.namespaces.directory();
        let found = self
            .access
            .authenticate(directory, now, &origin, &credentials, attempt);
        if found.is_logged {
            info!(connection = id.0, peer = %origin.peer, "SASL failed");
        }
        let is_genuine = !found.grants.is_empty();
        self.connection(id).grants = found.grants;
        self.replies.push(QueuedReply {
            connection: id,
            durable_after: 0,
            reply: Reply::Authenticated(is_genuine),
        });
    }

    /// Handles `open`. A connection that SASL has authorized is admitted.
    pub(crate) fn opened(&mut self, id: ConnectionId, hostname: Option<&str>) {
        let server_name = self.connection(id).origin.server_name.clone();
        let named = hostname.or(server_name.as_deref());
        let prefix = self.namespaces.directory().namespace_of(named);
        let verifies = self.access.verifies();
        let connection = self.connection(id);
        connection.prefix = prefix;
        host_shown(named).clone_into(&mut connection.host);
        if !verifies || !connection.grants.is_empty() {
            self.admit(id);
        }
    }

    /// Takes a token that a peer puts for an audience; it replaces the one for the same audience.
    ///
    /// # Errors
    ///
    /// The token's problem.
    pub(super) fn put_token(
        &mut self,
        cx: &mut StepContext<'_>,
        id: ConnectionId,
        kind: &str,
        audience: &str,
        token: &str,
    ) -> Result<(), TokenRefused> {
        let is_sas = match kind {
            // Python names a SAS token "jwt": what it is, it says itself.
            "servicebus.windows.net:sastoken" => true,
            "jwt" | "amqp:jwt" => access::is_sas(token),
            other => {
                return Err(TokenRefused::new(
                    Fault::Malformed,
                    format!(
                        "The token type '{other}' is not known; 'servicebus.windows.net:sastoken' \
                         and 'jwt' are."
                    ),
                ));
            }
        };
        if !self.access.verifies() {
            return if is_sas {
                access::check_sas_shape(token)
            } else {
                access::check_jwt_shape(token)
            };
        }
        let (prefix, peer, host) = {
            let connection = self.connection(id);
            let host = connection.host.clone();
            (connection.prefix.clone(), connection.origin.peer, host)
        };
        let audience = audience_path(audience, &host);
        let characters = audience.chars().count();
        if limits::AUDIENCE_LENGTH_MAX < characters {
            return Err(TokenRefused::new(
                Fault::Audience,
                format!(
                    "The audience has {characters} characters, and {} is the most.",
                    limits::AUDIENCE_LENGTH_MAX
                ),
            ));
        }
        let audience = format!("{prefix}{audience}");
        let request = TokenRequest {
            peer,
            prefix: &prefix,
            host: Some(&host),
            token,
            resource: &audience,
        };
        let directory = self.namespaces.directory();
        let verified = self.access.verify_token(directory, cx.now, &request);
        let verified = verified.inspect_err(|refused| {
            if refused.is_logged {
                let audience: String = audience
                    .chars()
                    .take(jitney_broker::limits::LOGGED_MAX)
                    .collect();
                let (fault, rule) = (refused.fault, refused.rule.as_deref());
                info!(
                    connection = id.0,
                    audience,
                    ?fault,
                    rule,
                    "a token was refused"
                );
            }
        })?;
        let grant = Grant {
            scope: audience,
            ..verified
        };
        self.take_grant(cx, id, grant)
    }

    /// Takes what a token gives, in the place of what another gave for the same audience.
    fn take_grant(
        &mut self,
        cx: &mut StepContext<'_>,
        id: ConnectionId,
        grant: Grant,
    ) -> Result<(), TokenRefused> {
        let connection = self.connection(id);
        let same = |old: &&Grant| old.is_of_token && old.scope == grant.scope;
        let old = connection.grants.iter().find(same).cloned();
        if old.is_none() {
            let max = limits::GRANTS_MAX;
            if max <= connection.grants.len() {
                let text = format!("There are {max} tokens on this connection already.");
                return Err(TokenRefused::new(Fault::Full, text));
            }
            self.check_memory_bytes(id, grant.memory_bytes())
                .map_err(|text| TokenRefused::new(Fault::Full, text))?;
        }
        self.connections.token_ends.insert(grant.expires_at, id);
        let connection = self.connection(id);
        connection.grants.retain(|old| !same(&old));
        let shrinks = old.as_ref().is_some_and(|old| old.rights != grant.rights);
        connection.grants.push(grant);
        if let Some(at) = old.map(|old| old.expires_at)
            && connection.grants.iter().all(|grant| grant.expires_at != at)
        {
            self.connections.token_ends.remove(at, id);
        }
        self.keep_tokens(id);
        self.admit(id);
        if shrinks {
            self.end_unauthorized(cx, id, "");
        }
        self.answer_early_attaches(cx, id);
        Ok(())
    }

    /// Forgets the token that a peer put for an audience.
    pub(super) fn delete_token(
        &mut self,
        cx: &mut StepContext<'_>,
        id: ConnectionId,
        audience: &str,
    ) {
        let connection = self.connection(id);
        let path = audience_path(audience, &connection.host);
        let audience = format!("{}{path}", connection.prefix);
        let is_that = |old: &Grant| old.is_of_token && old.scope == audience;
        connection.grants.retain(|old| !is_that(old));
        self.keep_tokens(id);
        self.end_unauthorized(cx, id, "");
    }

    /// Returns whether a connection may do something with an entity, or, without a right, whether
    /// it may know of it at all.
    pub(crate) fn may(&self, id: ConnectionId, path: &str, right: Option<Right>) -> bool {
        if !self.access.verifies() {
            return true;
        }
        let path = address::key(path);
        let allows = |grant: &Grant| right.is_none_or(|right| grant.rights.allow(right));
        self.connections.get(id).is_some_and(|connection| {
            let mut grants = connection.grants.iter();
            grants.any(|grant| grant.covers(&path) && allows(grant))
        })
    }

    /// Returns whether a connection is authorized for anything.
    pub(crate) fn is_authorized(&self, id: ConnectionId) -> bool {
        !self.access.verifies()
            || self
                .connections
                .get(id)
                .is_some_and(|connection| !connection.grants.is_empty())
    }

    /// Logs the sums of refusals that were not logged one by one, when it is time.
    pub(crate) fn log_refusals(&mut self, now: Timestamp) {
        while let Some((peer, refusals)) = self.access.next_refusals(now) {
            if 0 < refusals {
                let seconds = jitney_broker::limits::REFUSALS_SPAN.as_millis() / 1_000;
                info!(%peer, refusals, seconds, "tokens, keys and requests were refused");
            }
        }
    }

    /// Ends what rested on tokens whose time is over.
    pub(crate) fn end_tokens(&mut self, cx: &mut StepContext<'_>) {
        while let Some((at, id)) = self.connections.token_ends.next(cx.now) {
            let Some(connection) = self.connections.get_mut(id) else {
                continue;
            };
            let before = connection.grants.len();
            connection.grants.retain(|grant| cx.now < grant.expires_at);
            if connection.grants.len() < before {
                self.keep_tokens(id);
                let text = format!(
                    "ExpiredToken: The token is expired. Expiration time: '{}'. ",
                    at.to_service_text()
                );
                self.end_unauthorized(cx, id, &text);
            }
        }
    }

    /// Ends the links of a connection that it has no right to any more.
    fn end_unauthorized(&mut self, cx: &mut StepContext<'_>, id: ConnectionId, why: &str) {
        let Some(connection) = self.connections.get(id) else {
            return;
        };
        let doomed = connection.links.iter().filter_map(|(&link, state)| {
            let mut needs = self.needed(state).into_iter();
            let (path, right) = needs.find(|(path, right)| !self.may(id, path, *right))?;
            Some((link, path, right))
        });
        let doomed: Vec<(LinkId, String, Option<Right>)> = doomed.collect();
        for (link, path, right) in doomed {
            let denied = self.unauthorized(id, &path, right, why);
            self.end_link(cx, id, link, denied);
        }
    }

    /// Returns what a link needs: entities, and the rights to them.
    fn needed(&self, link: &Link) -> Vec<(String, Option<Right>)> {
        let of_queue = |id: EntityId, right| {
            let resource = self.namespaces.node(id)?.address.resource();
            Some((resource, Some(right)))
        };
        match link {
            Link::Sender {
                queue, destination, ..
            } => {
                let destination = destination.as_ref();
                let onward = destination.map(|path| (path.to_string(), Some(Right::Send)));
                of_queue(*queue, Right::Send)
                    .into_iter()
                    .chain(onward)
                    .collect()
            }
            Link::Receiver { queue, .. } | Link::Waiting { queue, .. } => {
                of_queue(*queue, Right::Listen).into_iter().collect()
            }
            Link::Requests { node, .. } => {
                node.resource().map(|it| (it, None)).into_iter().collect()
            }
            Link::Responses(link) => {
                let resource = link.node.resource();
                resource.map(|it| (it, None)).into_iter().collect()
            }
            Link::Coordinator { .. } => Vec::new(),
        }
    }

    /// Says that a right is missing: the same whether there is such an entity or not.
    pub(super) fn unauthorized(
        &self,
        connection: ConnectionId,
        path: &str,
        right: Option<Right>,
        why: &str,
    ) -> Denied {
        let claims = match right {
            Some(right) => right.to_string(),
            None => "Send' or 'Listen".to_owned(),
        };
        let shown = address::without_namespace(path);
        let host = self.host_of(connection);
        let text = format!(
            "{why}Unauthorized access. '{claims}' claim(s) are required to perform this operation. \
             Resource: 'sb://{host}/{shown}'."
        );
        Denied::new(DeniedKind::Unauthorized, &text, path)
    }

    fn admit(&mut self, id: ConnectionId) {
        let connection = self.connection(id);
        if !std::mem::replace(&mut connection.authorized, true) {
            self.replies.push(QueuedReply {
                connection: id,
                durable_after: 0,
                reply: Reply::Admitted,
            });
        }
    }
}
