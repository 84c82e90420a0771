//! Who may do what: everything that asks about rights asks here.
//!
//! A peer proves rights by tokens on `$cbs`, by a key or a certificate in SASL, or by a token in a
//! request of the administration API. What it has proved is a [`Grant`]: rights on an entity and
//! all below it, for a time. A link needs a grant for as long as it lives.

mod grant;
mod jwt;
mod sas;
mod tally;
#[cfg(test)]
mod tests;
mod throttle;

use crate::broker::{Denied, DeniedKind};
use std::collections::BTreeMap;
use std::fmt;

use tracing::{debug, info};

use super::errors::host_shown;
use super::{Broker, Connection, ConnectionId, Link, Reply, Routed, StepContext};
use crate::address;
use crate::amqp::{Identity, LinkId};
use crate::ids::EntityId;
use crate::limits;
use crate::rights::{AuthorizationRule, Right, Rights};
use crate::time::{ClockStep, Millis, Timestamp};

use grant::is_within;
pub use grant::{Authority, Grant, Inquiry};
pub use jwt::{JwksError, TokenIssuer};
pub(super) use sas::audience_path;
use sas::{Resource, SasToken};

/// How tokens and rights are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// For a laptop and CI: any well-formed token is good, and a peer without one may do all, as
    /// with the emulator's well-known key.
    #[default]
    Development,
    /// Tokens, keys and certificates are verified, and who lacks a right is kept out.
    Verified,
}

/// A machine that peers are at, as far as they can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Peer(pub u128);

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(address) = u32::try_from(self.0) {
            let [a, b, c, d] = address.to_be_bytes();
            return write!(f, "{a}.{b}.{c}.{d}");
        }
        // The network: hosts of one are not told apart.
        let part = |place: u32| (self.0 >> (112 - 16 * place)) & 0xffff;
        let (a, b, c, d) = (part(0), part(1), part(2), part(3));
        write!(f, "{a:x}:{b:x}:{c:x}:{d:x}::/64")
    }
}

/// Where a connection comes from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Its machine.
    pub peer: Peer,
    /// The name of the server that it asked TLS for.
    pub server_name: Option<String>,
    /// Whom its certificate names, if it showed one and it was verified.
    pub certificate: Option<String>,
}

/// What is wrong with a token, in the service's words and numbers (`administration.md#errors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    Missing,
    /// The signature is of no key that there is.
    Signature,
    /// It is for something else.
    Audience,
    /// It is of somebody who is not trusted.
    Issuer,
    /// It is no token.
    Malformed,
    /// Its time is over.
    Expired,
    /// Its connection has as many as it may have.
    Full,
    /// It lacks the right.
    Rights,
    /// Too many attempts failed: none is looked at for a while.
    Throttled(Millis),
}

/// Why a token was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", self.fault.word())]
pub struct TokenRefused {
    /// What is wrong with it.
    pub fault: Fault,
    /// It is to be told in the log by itself; else it is part of a sum.
    pub is_told: bool,
    text: String,
}

impl Fault {
    /// The word with which the service's sentence begins.
    fn word(self) -> &'static str {
        match self {
            Self::Missing => "MissingToken: ",
            Self::Signature => "InvalidSignature: ",
            Self::Audience => "InvalidAudience: ",
            Self::Issuer => "IssuerNotFound: ",
            Self::Malformed => "MalformedToken: ",
            Self::Expired => "ExpiredToken: ",
            Self::Full | Self::Rights => "",
            Self::Throttled(_) => "ServerBusy: ",
        }
    }
}

impl TokenRefused {
    /// Returns the sub-code by which the administration API tells it (`administration.md#errors`).
    #[must_use]
    pub fn sub_code(&self) -> u32 {
        match self.fault {
            Fault::Missing => 40_102,
            Fault::Signature => 40_103,
            Fault::Audience => 40_104,
            Fault::Malformed => 40_105,
            Fault::Expired => 40_106,
            Fault::Issuer => 40_109,
            Fault::Rights => 40_100,
            Fault::Full | Fault::Throttled(_) => 50_004,
        }
    }

    fn new(fault: Fault, text: String) -> Self {
        let is_told = true;
        Self {
            fault,
            is_told,
            text,
        }
    }
}

/// The keys of the namespaces, and what is known of those that try them.
#[derive(Debug, Default)]
pub(super) struct Access {
    profile: Profile,
    /// The rules of each namespace, by the prefix of its paths.
    rules: BTreeMap<String, Vec<AuthorizationRule>>,
    throttle: throttle::Throttle,
    /// What of refusals is told in the log.
    tally: tally::Tally,
    /// Whose identity tokens are good.
    issuer: Option<TokenIssuer>,
}

impl Access {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// Follows a clock that was set: what runs by elapsed time goes on as before.
    pub(super) fn follow_clock(&mut self, step: ClockStep) {
        self.throttle.follow_clock(step);
        self.tally.follow_clock(step);
    }
}

impl Broker {
    /// Gives a namespace its authorization rules, in place of those it had.
    pub fn set_authorization(&mut self, namespace: &str, rules: Vec<AuthorizationRule>) {
        let prefix = self.prefix_of(namespace);
        self.access.rules.insert(prefix, rules);
    }

    /// Trusts an issuer of identity tokens, or none.
    pub fn set_token_issuer(&mut self, issuer: Option<TokenIssuer>) {
        self.access.issuer = issuer;
    }

    /// Takes the keys that the issuer of identity tokens has published.
    ///
    /// # Errors
    ///
    /// If they are none; the old ones stay then.
    pub fn set_identity_keys(&mut self, keys: &str) -> Result<usize, JwksError> {
        match &mut self.access.issuer {
            Some(issuer) => issuer.set_keys(keys),
            None => Ok(0),
        }
    }

    /// Returns whether a token named a key of the issuer that is not known, since the last call.
    #[must_use]
    pub fn wants_identity_keys(&self) -> bool {
        let issuer = self.access.issuer.as_ref();
        issuer.is_some_and(TokenIssuer::wants_keys)
    }

    /// A connection is there, and this is known of it.
    pub fn connected(&mut self, id: ConnectionId, origin: Origin) {
        self.connection(id).origin = origin;
    }

    /// Checks whom a peer says it is, in SASL.
    pub(super) fn authenticate(
        &mut self,
        cx: &mut StepContext<'_>,
        id: ConnectionId,
        identity: &Identity,
    ) {
        let origin = self.connection(id).origin.clone();
        let must_wait = self
            .access
            .throttle
            .wait(cx.now, origin.peer, identity.name())
            .is_some();
        let grants = match (self.access.profile, identity) {
            (Profile::Development, _) => vec![Grant::all()],
            (Profile::Verified, _) if must_wait => Vec::new(),
            (Profile::Verified, Identity::Plain { user, password }) => {
                let rules = self.namespace_rules().chain(self.entity_rules());
                let named = rules.filter(|(_, rule)| rule.name == *user);
                let found = named.filter(|(_, rule)| {
                    // All keys are compared, that the time tells nothing.
                    let keys = rule.keys().map(|key| equal(key.expose(), password));
                    keys.fold(false, |found, is_it| found | is_it)
                });
                found.map(Grant::of_rule).collect()
            }
            (Profile::Verified, Identity::External) => {
                let name = origin.certificate.as_deref().unwrap_or_default();
                let rules = self.namespace_rules();
                let found = rules.filter(|(_, rule)| rule.name == name);
                found.map(Grant::of_rule).collect()
            }
            (Profile::Verified, _) => Vec::new(),
        };
        let is_genuine = !grants.is_empty();
        if !is_genuine && !must_wait {
            self.access
                .throttle
                .failed(cx.now, origin.peer, identity.name());
        }
        if !is_genuine && self.access.tally.note(cx.now, origin.peer) {
            info!(connection = id.0, peer = %origin.peer, "SASL failed");
        }
        self.connection(id).grants = grants;
        self.replies.push(Routed {
            connection: id,
            rests_on: 0,
            reply: Reply::Authenticated(is_genuine),
        });
    }

    /// A connection was opened: one that has proved a right already is let in.
    pub(super) fn opened(&mut self, id: ConnectionId, hostname: Option<&str>) {
        let profile = self.access.profile;
        let server_name = self.connection(id).origin.server_name.clone();
        let named = hostname.or(server_name.as_deref());
        let prefix = self.namespace_of(named);
        let connection = self.connection(id);
        connection.prefix = prefix;
        host_shown(named).clone_into(&mut connection.host);
        if profile == Profile::Development || !connection.grants.is_empty() {
            self.let_in(id);
        }
    }

    /// Takes a token that a peer puts for an audience; it replaces the one for the same audience.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
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
            "jwt" => sas::is_sas(token),
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
        if self.access.profile == Profile::Development {
            return if is_sas {
                SasToken::parse(token).map(drop)
            } else {
                check_jwt_shape(token)
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
        let host = Some(&*host);
        let verified = self.verify(cx.now, peer, &prefix, host, token, &audience);
        let verified = verified.inspect_err(|refused| {
            if self.access.tally.note(cx.now, peer) {
                let audience: String = audience.chars().take(limits::LOGGED_MAX).collect();
                info!(connection = id.0, audience, fault = ?refused.fault, "a token was refused");
            }
        })?;
        let grant = Grant {
            scope: audience,
            ..verified.grant
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
            self.check_kept_bytes(id, grant.kept_bytes())
                .map_err(|text| TokenRefused::new(Fault::Full, text))?;
        }
        self.token_ends.insert((grant.expires_at, id));
        let connection = self.connection(id);
        connection.grants.retain(|old| !same(&old));
        let shrinks = old.as_ref().is_some_and(|old| old.rights != grant.rights);
        connection.grants.push(grant);
        if let Some(at) = old.map(|old| old.expires_at)
            && connection.grants.iter().all(|grant| grant.expires_at != at)
        {
            self.token_ends.remove(&(at, id));
        }
        self.keep_tokens(id);
        self.let_in(id);
        if shrinks {
            self.end_unauthorized(cx, id, "");
        }
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

    /// Checks the tokens of a request over HTTP, of which the first must hold for the path that it
    /// names on a host. What the request turns out to be about is checked once more, by what is
    /// returned here.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn authorize(
        &mut self,
        now: Timestamp,
        inquiry: &Inquiry,
    ) -> Result<Authority, TokenRefused> {
        let authorized = self.authority(now, inquiry);
        authorized.map_err(|refused| TokenRefused {
            is_told: self.access.tally.note(now, inquiry.peer),
            ..refused
        })
    }

    fn authority(&mut self, now: Timestamp, inquiry: &Inquiry) -> Result<Authority, TokenRefused> {
        let host = inquiry.host.as_deref();
        let prefix = &self.namespace_of(host);
        if self.access.profile == Profile::Development {
            let grant = Grant {
                scope: prefix.to_owned(),
                ..Grant::all()
            };
            return Ok(Authority {
                owner: grant.scope.clone(),
                reach: vec![grant.clone()],
                grant,
            });
        }
        let Some(token) = &inquiry.token else {
            return Err(TokenRefused::new(
                Fault::Missing,
                "The request has no authorization header.".to_owned(),
            ));
        };
        let resource = format!("{prefix}{}", sas::path_key(&inquiry.path));
        let token = without_scheme(token);
        let verified = self.verify(now, inquiry.peer, prefix, host, token, &resource)?;
        let mut reach = vec![verified.grant.clone()];
        for token in &inquiry.supplementary {
            // One that is good for nothing reaches nothing.
            let verified = self.verify_supplementary(now, prefix, without_scheme(token), host);
            reach.extend(verified.map(|verified| verified.grant));
        }
        Ok(Authority {
            grant: verified.grant,
            owner: verified.owner,
            reach,
        })
    }

    /// Verifies a token for whatever it is for.
    fn verify_supplementary(
        &self,
        now: Timestamp,
        prefix: &str,
        token: &str,
        host: Option<&str>,
    ) -> Option<Verified> {
        if !sas::is_sas(token) {
            return self.verify_jwt(now, prefix, token).ok();
        }
        let mut token = SasToken::parse(token).ok()?;
        // JavaScript signs the name of the host here, whatever it is called
        // (`administration.md#headers`).
        self.resolve_host(prefix, host, &mut token);
        self.verify_sas(now, prefix, token, None).ok()
    }

    /// Takes a token for the bare name of the host that its client calls as one for the namespace,
    /// unless an entity has that name.
    fn resolve_host(&self, prefix: &str, host: Option<&str>, token: &mut SasToken<'_>) {
        let host = host.and_then(|host| host.split(':').next());
        if let Resource::Unclear(name) = &token.resource
            && host.is_some_and(|host| host.eq_ignore_ascii_case(name))
            && self.resolve_path(&format!("{prefix}{name}")).is_none()
        {
            token.resource = Resource::Path(String::new());
        }
    }

    /// Returns whether a connection may do something with an entity, or, without a right, whether
    /// it may know of it at all.
    pub(super) fn may(&self, id: ConnectionId, path: &str, right: Option<Right>) -> bool {
        if self.access.profile == Profile::Development {
            return true;
        }
        let path = address::key(path);
        let allows = |grant: &Grant| right.is_none_or(|right| grant.rights.allow(right));
        self.connections.get(&id).is_some_and(|connection| {
            let mut grants = connection.grants.iter();
            grants.any(|grant| grant.covers(&path) && allows(grant))
        })
    }

    /// Returns whether a connection has proved anything.
    pub(super) fn is_admitted(&self, id: ConnectionId) -> bool {
        self.access.profile == Profile::Development
            || self
                .connections
                .get(&id)
                .is_some_and(|connection| !connection.grants.is_empty())
    }

    /// Tells in sums of the refusals that were not told by themselves, when it is time.
    pub(super) fn tell_refusals(&mut self, now: Timestamp) {
        while let Some((peer, refusals)) = self.access.tally.end(now) {
            if 0 < refusals {
                let seconds = limits::REFUSALS_SPAN.as_millis() / 1_000;
                info!(%peer, refusals, seconds, "tokens, keys and requests were refused");
            }
        }
    }

    /// Returns when [`Broker::tell_refusals`] has something to do.
    pub(super) fn next_refusals(&self) -> Option<Timestamp> {
        self.access.tally.next_end()
    }

    /// Ends what rested on tokens whose time is over.
    pub(super) fn end_tokens(&mut self, cx: &mut StepContext<'_>) {
        while let Some(&(at, id)) = self.token_ends.first() {
            if cx.now < at {
                return;
            }
            self.token_ends.pop_first();
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            let before = connection.grants.len();
            connection.grants.retain(|grant| cx.now < grant.expires_at);
            if connection.grants.len() < before {
                self.keep_tokens(id);
                let text = format!(
                    "ExpiredToken: The token is expired. Expiration time: '{}'. ",
                    super::errors::stamp(at)
                );
                self.end_unauthorized(cx, id, &text);
            }
        }
    }

    /// Ends the links of a connection that it has no right to any more.
    fn end_unauthorized(&mut self, cx: &mut StepContext<'_>, id: ConnectionId, why: &str) {
        let Some(connection) = self.connections.get(&id) else {
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
            let resource = self.node(id)?.address.resource();
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

    /// Says that a right is missing, whether there is such an entity or not.
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

    /// Verifies a token for a resource, and counts it if it is bad.
    fn verify(
        &mut self,
        now: Timestamp,
        peer: Peer,
        prefix: &str,
        host: Option<&str>,
        token: &str,
        resource: &str,
    ) -> Result<Verified, TokenRefused> {
        let name = sas::name_of_key(token);
        if let Some(wait) = self.access.throttle.wait(now, peer, &name) {
            return Err(TokenRefused::new(
                Fault::Throttled(wait),
                "Too many authentications failed; try again later.".to_owned(),
            ));
        }
        let verified = if sas::is_sas(token) {
            SasToken::parse(token).and_then(|mut token| {
                // Clients in Rust sign the host's name without a scheme, and a container's has no dot.
                self.resolve_host(prefix, host, &mut token);
                self.verify_sas(now, prefix, token, Some(resource))
            })
        } else {
            self.verify_jwt(now, prefix, token)
        };
        // A token that was signed with a key of ours is nobody's guess.
        let is_guess = |refused: &TokenRefused| {
            matches!(
                refused.fault,
                Fault::Signature | Fault::Malformed | Fault::Issuer
            )
        };
        if verified.as_ref().is_err_and(is_guess) {
            self.access.throttle.failed(now, peer, &name);
        }
        verified
    }

    /// The algorithm of `cbs.md#shared-access-signatures`.
    fn verify_sas(
        &self,
        now: Timestamp,
        prefix: &str,
        token: SasToken<'_>,
        resource: Option<&str>,
    ) -> Result<Verified, TokenRefused> {
        let path = match &token.resource {
            Resource::Path(path) => path,
            Resource::Unclear(text) => {
                return Err(TokenRefused::new(
                    Fault::Malformed,
                    format!(
                        "The SAS token is malformed: the field 'sr' is '{text}', which is no URL; \
                         it must be one, such as 'sb://host/{text}'."
                    ),
                ));
            }
        };
        let scope = format!("{prefix}{path}");
        // All keys of the name are tried, that the time tells nothing of which there are.
        let mut proved: Option<(&str, Rights)> = None;
        for (owner, rule) in self.rules_for(prefix, &scope) {
            if !token.names(&rule.name) {
                continue;
            }
            for key in rule.keys() {
                if token.is_signed_with(key) {
                    proved = proved.or(Some((owner, rule.rights)));
                }
            }
        }
        let Some((owner, rights)) = proved else {
            return Err(TokenRefused::new(
                Fault::Signature,
                "The token has an invalid signature.".to_owned(),
            ));
        };
        if token.expires_at <= now {
            return Err(TokenRefused::new(
                Fault::Expired,
                format!(
                    "The token is expired. Expiration time: '{}'.",
                    super::errors::stamp(token.expires_at)
                ),
            ));
        }
        if let Some(resource) = resource.filter(|resource| !is_within(resource, &scope)) {
            return Err(TokenRefused::new(
                Fault::Audience,
                format!(
                    "The token is for '{path}', and does not hold for '{}'.",
                    address::without_namespace(resource)
                ),
            ));
        }
        let owner = owner.to_owned();
        let grant = Grant {
            scope,
            rights,
            expires_at: token.expires_at,
            is_of_token: true,
        };
        Ok(Verified { grant, owner })
    }

    /// An identity token holds for a whole namespace.
    fn verify_jwt(
        &self,
        now: Timestamp,
        prefix: &str,
        token: &str,
    ) -> Result<Verified, TokenRefused> {
        let Some(issuer) = &self.access.issuer else {
            return Err(TokenRefused::new(
                Fault::Malformed,
                "The token is no shared access signature, and no issuer of other tokens is trusted \
                 here."
                    .to_owned(),
            ));
        };
        let claims = issuer.verify(now, token)?;
        debug!(subject = claims.subject, "an identity token was accepted");
        let grant = Grant {
            scope: prefix.to_owned(),
            rights: claims.rights,
            expires_at: claims.expires_at,
            is_of_token: true,
        };
        let owner = prefix.to_owned();
        Ok(Verified { grant, owner })
    }

    /// Returns the rules whose keys may sign for a resource, and what each is for: those of the
    /// namespace, of the entities above, and of its entity.
    fn rules_for<'a>(
        &'a self,
        prefix: &'a str,
        resource: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a AuthorizationRule)> {
        let own = self.access.rules.get(prefix).into_iter().flatten();
        let ends = resource.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain([resource.len()]);
        let of_entities = ends.filter_map(|end| {
            let path = resource.get(..end)?;
            let queue = self.queue(self.by_path.get(path)?.base)?;
            let rules = queue.description().authorization.iter();
            Some(rules.map(move |rule| (path, rule)))
        });
        own.map(move |rule| (prefix, rule))
            .chain(of_entities.flatten())
    }

    /// Returns the rules of the namespaces, and what each is for.
    fn namespace_rules(&self) -> impl Iterator<Item = (String, &AuthorizationRule)> {
        let namespaces = self.access.rules.iter();
        namespaces.flat_map(|(prefix, rules)| rules.iter().map(|rule| (prefix.clone(), rule)))
    }

    /// Returns the rules of entities, likewise.
    fn entity_rules(&self) -> impl Iterator<Item = (String, &AuthorizationRule)> {
        let entities = self.keyed.iter().filter_map(|base| self.node(*base));
        entities.flat_map(|node| {
            let scope = address::key(&node.address.path);
            let rules = node.queue.description().authorization.iter();
            rules.map(move |rule| (scope.clone(), rule))
        })
    }

    fn let_in(&mut self, id: ConnectionId) {
        let connection: &mut Connection = self.connection(id);
        if !std::mem::replace(&mut connection.admitted, true) {
            self.replies.push(Routed {
                connection: id,
                rests_on: 0,
                reply: Reply::Admitted,
            });
        }
    }
}

/// What a token gives where it is good, and what its key is for.
struct Verified {
    grant: Grant,
    owner: String,
}

/// Takes `Bearer` from an authorization.
fn without_scheme(token: &str) -> &str {
    let parts = token.split_once(' ');
    let bearer = parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
    bearer.map_or(token, |(_, token)| token.trim())
}

/// Returns bits from which nobody finds what they were made of.
pub(super) fn one_way(bytes: &[u8]) -> u64 {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(first)
}

/// Compares in a time that depends on lengths only.
fn equal(one: &str, other: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

fn check_jwt_shape(token: &str) -> Result<(), TokenRefused> {
    let parts: Vec<&str> = token.split('.').collect();
    if parts.len() == 3 && parts.iter().take(2).all(|part| !part.is_empty()) {
        return Ok(());
    }
    Err(TokenRefused::new(
        Fault::Malformed,
        "The JWT is malformed: it does not have three parts.".to_owned(),
    ))
}
