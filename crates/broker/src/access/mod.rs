//! Verification: what a token, a key or a certificate proves.
//!
//! A peer proves rights by tokens on `$cbs`, by a key or a certificate in SASL, or by a token in an HTTP
//! request. The result is a [`Grant`]: rights on an entity and all below it, for a time. Which connection has
//! which grants, and what ends with them, is the gateway's (crate `gateway`).

mod grant;
mod jwt;
mod sas;
mod tally;
mod throttle;

use std::collections::BTreeMap;
use std::fmt;

use tracing::debug;

use crate::limits;
use jitney_base::address;
use jitney_base::rights::AuthorizationRule;
use jitney_base::time::{ClockStep, Millis, Timestamp};

use grant::is_within;
pub use grant::{Actor, Authority, Grant, Inquiry};
pub use jwt::{JwksError, TokenIssuer};
pub use sas::audience_path;
use sas::{Resource, SasToken};
pub use tally::Tally as RefusalTally;
pub use throttle::FailedAttempts;

/// The text of the refusal for a peer that has tried too many wrong keys.
pub const TOO_MANY_FAILED: &str = "Too many authentications failed; try again later.";

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

/// The machine of a peer: an IPv4 address, or a /64 network of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PeerAddress(pub u128);

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Ok(address) = u32::try_from(self.0) {
            let [a, b, c, d] = address.to_be_bytes();
            return write!(f, "{a}.{b}.{c}.{d}");
        }
        // Hosts of one network count as one.
        let part = |place: u32| (self.0 >> (112 - 16 * place)) & 0xffff;
        let (a, b, c, d) = (part(0), part(1), part(2), part(3));
        write!(f, "{a:x}:{b:x}:{c:x}:{d:x}::/64")
    }
}

/// Where a connection comes from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Its machine.
    pub peer: PeerAddress,
    /// The name of the server that it asked TLS for.
    pub server_name: Option<String>,
    /// Whom its certificate names, if it showed one and it was verified.
    pub certificate: Option<String>,
    /// Its port, if this server took the connection itself.
    pub port: Option<u16>,
    /// It came over TLS.
    pub is_secure: bool,
}

/// The problem of a token, in the service's words and numbers (`administration.md#errors`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is none.
    Missing,
    /// The signature is of no key that there is.
    Signature,
    /// It is for something else.
    Audience,
    /// Its issuer is not trusted.
    Issuer,
    /// It is no token.
    Malformed,
    /// Its time is over.
    Expired,
    /// Its connection has as many as it may have.
    Full,
    /// It lacks the right.
    Rights,
    /// Too many attempts failed: no bad one is answered for a while.
    Throttled(Millis),
}

/// Why a token was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{text}", self.fault.word())]
pub struct TokenRefused {
    /// The problem.
    pub fault: Fault,
    /// It is logged by itself; else it is part of a sum.
    pub is_logged: bool,
    /// The name of the authorization rule that a shared access signature gives, cut to what is logged.
    pub rule: Option<String>,
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

    /// Returns whether the token may be a guess: one that was signed with a key of ours is none.
    fn is_guess(&self) -> bool {
        matches!(
            self.fault,
            Fault::Signature | Fault::Malformed | Fault::Issuer
        )
    }

    /// Says that no bad token is answered as one for a while.
    #[must_use]
    pub fn throttled(wait: Millis) -> Self {
        Self::new(Fault::Throttled(wait), TOO_MANY_FAILED.to_owned())
    }

    /// Makes a refusal that is logged.
    #[must_use]
    pub fn new(fault: Fault, text: String) -> Self {
        let is_logged = true;
        Self {
            fault,
            is_logged,
            rule: None,
            text,
        }
    }

    /// Notes the name of the rule that the token gives, if it gives one.
    fn of_rule(self, name: &str) -> Self {
        let name: String = name.chars().take(limits::LOGGED_MAX).collect();
        let rule = Some(name).filter(|name| !name.is_empty());
        Self { rule, ..self }
    }
}

/// Where the authorization rules of entities are found.
pub trait RuleSource {
    /// Returns the rules of the entity whose path has this key; none if there is no such entity.
    fn rules_at(&self, key: &str) -> &[AuthorizationRule];

    /// Returns the rules of all entities, each with the key of its entity's path.
    fn all_rules(&self) -> impl Iterator<Item = (&str, &AuthorizationRule)>;

    /// Returns whether there is an entity at a path.
    fn is_entity(&self, path: &str) -> bool;
}

/// The identity that a peer claims in SASL.
pub struct Credentials<'a> {
    /// Its name.
    pub name: &'a str,
    /// How it proves that.
    pub proof: Proof<'a>,
}

/// Whether other shards are asked about the same identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// If it is refused here, it is refused: that counts as a failed authentication.
    Last,
    /// Another shard is asked if it is refused here, or one has accepted it.
    OneOfSeveral,
}

/// How a peer proves in SASL that it has a name.
pub enum Proof<'a> {
    /// By the certificate that it showed in TLS.
    Certificate,
    /// Not at all.
    None,
    /// By a key of the authorization rule of this name.
    Password(&'a str),
}

/// The result of SASL.
pub struct Authenticated {
    /// The peer's grants; none if its identity is not genuine.
    pub grants: Vec<Grant>,
    /// The failure is logged by itself; else it is part of a sum.
    pub is_logged: bool,
}

/// A token that is to hold for a resource.
pub struct TokenRequest<'a> {
    /// The machine that it came from.
    pub peer: PeerAddress,
    /// The prefix of the paths of the namespace.
    pub prefix: &'a str,
    /// The host by which the client calls the namespace.
    pub host: Option<&'a str>,
    /// The token.
    pub token: &'a str,
    /// The path for which it must hold, with the prefix.
    pub resource: &'a str,
}

/// The keys of the namespaces, and what is known of those that try them.
#[derive(Debug, Default)]
pub struct Access {
    profile: Profile,
    /// The rules of each namespace, by the prefix of its paths.
    rules: BTreeMap<String, Vec<AuthorizationRule>>,
    failed_attempts: FailedAttempts,
    /// The refusals that are logged.
    tally: RefusalTally,
    /// Whose identity tokens are good.
    issuer: Option<TokenIssuer>,
}

impl Access {
    /// Makes the state without keys and rules.
    #[must_use]
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// Counts failed authentications together with the other holders of `attempts`.
    pub fn share_failed_attempts(&mut self, attempts: FailedAttempts) {
        self.failed_attempts = attempts;
    }

    /// Follows a clock that was set: what runs by elapsed time has as much left as before.
    pub fn follow_clock(&mut self, step: ClockStep) {
        self.failed_attempts.follow_clock(step);
        self.tally.follow_clock(step);
    }

    /// Gives a namespace, by the prefix of its paths, its authorization rules in place of those it had.
    pub fn set_rules(&mut self, prefix: String, rules: Vec<AuthorizationRule>) {
        self.rules.insert(prefix, rules);
    }

    /// Trusts an issuer of identity tokens, or none.
    pub fn set_token_issuer(&mut self, issuer: Option<TokenIssuer>) {
        self.issuer = issuer;
    }

    /// Takes the keys that the issuer of identity tokens has published.
    ///
    /// # Errors
    ///
    /// If they are none; the old ones stay then.
    pub fn set_identity_keys(&mut self, keys: &str) -> Result<usize, JwksError> {
        match &mut self.issuer {
            Some(issuer) => issuer.set_keys(keys),
            None => Ok(0),
        }
    }

    /// Says whether tokens of an issuer wait for its keys.
    pub fn wants_identity_keys(&self) -> bool {
        let issuer = self.issuer.as_ref();
        issuer.is_some_and(TokenIssuer::wants_keys)
    }

    /// Returns whether tokens, keys and certificates are verified.
    pub fn verifies(&self) -> bool {
        self.profile == Profile::Verified
    }

    /// Checks the credentials of SASL. Without grants, they are not genuine.
    pub fn authenticate(
        &mut self,
        source: &impl RuleSource,
        now: Timestamp,
        origin: &Origin,
        credentials: &Credentials<'_>,
        attempt: Attempt,
    ) -> Authenticated {
        if !self.verifies() {
            return Authenticated {
                grants: vec![Grant::all()],
                is_logged: false,
            };
        }
        let (peer, name) = (origin.peer, credentials.name);
        let grants: Vec<Grant> = match credentials.proof {
            Proof::Password(password) => {
                let of_entities = source.all_rules();
                let of_entities = of_entities.map(|(key, rule)| (key.to_owned(), rule));
                let rules = self.namespace_rules().chain(of_entities);
                let named = rules.filter(|(_, rule)| rule.name == name);
                let found = named.filter(|(_, rule)| {
                    // All keys are compared, so that the time depends on none of them.
                    let keys = rule.keys().map(|key| equal(key.expose(), password));
                    keys.fold(false, |found, is_it| found | is_it)
                });
                found
                    .map(|(scope, rule)| Grant::of_rule(scope, rule))
                    .collect()
            }
            Proof::Certificate => {
                let subject = origin.certificate.as_deref().unwrap_or_default();
                let rules = self.namespace_rules();
                let found = rules.filter(|(_, rule)| rule.name == subject);
                found
                    .map(|(scope, rule)| Grant::of_rule(scope, rule))
                    .collect()
            }
            Proof::None => Vec::new(),
        };
        let is_genuine = !grants.is_empty();
        if !is_genuine && self.failed_attempts.wait(now, peer, name).is_none() {
            match attempt {
                Attempt::Last => self.failed_attempts.failed(now, peer, name),
                Attempt::OneOfSeveral => self.failed_attempts.refused_by_one(now, peer, name),
            }
        }
        let is_logged = !is_genuine && attempt == Attempt::Last && self.tally.note(now, peer);
        Authenticated { grants, is_logged }
    }

    /// Verifies a token for a resource, and counts it if it is bad. `is_logged` of a refusal says whether it is
    /// logged by itself.
    pub fn verify_token(
        &mut self,
        source: &impl RuleSource,
        now: Timestamp,
        request: &TokenRequest<'_>,
    ) -> Result<Grant, TokenRefused> {
        let verified = self.verify(source, now, request);
        let verified = verified.map_err(|refused| TokenRefused {
            is_logged: self.tally.note(now, request.peer),
            ..refused
        })?;
        Ok(Grant {
            whose: verified.name,
            ..verified.grant
        })
    }

    /// Checks the tokens of a request over HTTP, of which the first must hold for the path that it
    /// names on a host. What the request turns out to be about is checked once more, by what is
    /// returned here.
    ///
    /// # Errors
    ///
    /// The token's problem.
    pub fn authorize(
        &mut self,
        source: &impl RuleSource,
        now: Timestamp,
        prefix: &str,
        inquiry: &Inquiry,
    ) -> Result<Authority, TokenRefused> {
        let authorized = self.authority(source, now, prefix, inquiry);
        authorized.map_err(|refused| TokenRefused {
            is_logged: self.tally.note(now, inquiry.peer),
            ..refused
        })
    }

    fn authority(
        &mut self,
        source: &impl RuleSource,
        now: Timestamp,
        prefix: &str,
        inquiry: &Inquiry,
    ) -> Result<Authority, TokenRefused> {
        let host = inquiry.host.as_deref();
        let actor = |name| Actor {
            name,
            peer: inquiry.peer.to_string(),
        };
        if !self.verifies() {
            let grant = Grant {
                scope: prefix.to_owned(),
                ..Grant::all()
            };
            return Ok(Authority {
                is_operator: false,
                owner: grant.scope.clone(),
                target_grants: vec![grant.clone()],
                grant,
                actor: actor("anyone".to_owned()),
            });
        }
        let Some(token) = &inquiry.token else {
            return Err(TokenRefused::new(
                Fault::Missing,
                "The request has no authorization header.".to_owned(),
            ));
        };
        let resource = format!("{prefix}{}", sas::path_key(&inquiry.path));
        let token = without_scheme(token.expose());
        let request = TokenRequest {
            peer: inquiry.peer,
            prefix,
            host,
            token,
            resource: &resource,
        };
        let verified = self.verify(source, now, &request)?;
        let mut target_grants = vec![verified.grant.clone()];
        for token in &inquiry.supplementary {
            // A token that does not hold gives no grant.
            let token = without_scheme(token.expose());
            let verified =
                self.verify_supplementary(source, now, prefix, host, token, inquiry.peer);
            target_grants.extend(verified.map(|verified| verified.grant));
        }
        Ok(Authority {
            is_operator: false,
            grant: verified.grant,
            owner: verified.owner,
            target_grants,
            actor: actor(verified.name),
        })
    }

    /// Verifies a token for whatever it is for.
    fn verify_supplementary(
        &self,
        source: &impl RuleSource,
        now: Timestamp,
        prefix: &str,
        host: Option<&str>,
        token: &str,
        peer: PeerAddress,
    ) -> Option<Verified> {
        let (name, verified) = if sas::is_sas(token) {
            let mut token = SasToken::parse(token).ok()?;
            // JavaScript signs the name of the host here, whatever it is called
            // (`administration.md#headers`).
            resolve_host(source, prefix, host, &mut token);
            let name = token.counted_name().to_owned();
            (name, self.verify_sas(source, now, prefix, token, None))
        } else {
            (String::new(), self.verify_jwt(now, prefix, token))
        };
        if verified.as_ref().is_err_and(TokenRefused::is_guess)
            && self.failed_attempts.wait(now, peer, &name).is_none()
        {
            self.failed_attempts.failed(now, peer, &name);
        }
        verified.ok()
    }

    /// Verifies a token for a resource, and counts it if it is bad.
    fn verify(
        &mut self,
        source: &impl RuleSource,
        now: Timestamp,
        request: &TokenRequest<'_>,
    ) -> Result<Verified, TokenRefused> {
        let &TokenRequest {
            peer,
            prefix,
            host,
            token,
            resource,
        } = request;
        let (name, verified) = if sas::is_sas(token) {
            match SasToken::parse(token) {
                Ok(mut token) => {
                    // Clients in Rust sign the host's name without a scheme, and a container's has no dot.
                    resolve_host(source, prefix, host, &mut token);
                    let name = token.counted_name().to_owned();
                    (
                        name,
                        self.verify_sas(source, now, prefix, token, Some(resource)),
                    )
                }
                // One without a name counts for the address alone.
                Err(refused) => (String::new(), Err(refused)),
            }
        } else {
            (String::new(), self.verify_jwt(now, prefix, token))
        };
        if verified.as_ref().is_err_and(TokenRefused::is_guess) {
            // Who has the key is served meanwhile; who guesses is not told that the guess was wrong.
            if let Some(wait) = self.failed_attempts.wait(now, peer, &name) {
                return Err(TokenRefused::throttled(wait).of_rule(&name));
            }
            self.failed_attempts.failed(now, peer, &name);
        }
        verified.map_err(|refused| refused.of_rule(&name))
    }

    /// The algorithm of `cbs.md#shared-access-signatures`.
    fn verify_sas(
        &self,
        source: &impl RuleSource,
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
        let mut proved: Option<(&str, &AuthorizationRule)> = None;
        for (owner, rule) in self.rules_for(source, prefix, &scope) {
            if !token.names(&rule.name) {
                continue;
            }
            for key in rule.keys() {
                if token.is_signed_with(key) {
                    proved = proved.or(Some((owner, rule)));
                }
            }
        }
        let Some((owner, rule)) = proved else {
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
                    token.expires_at.to_service_text()
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
        let (rights, name) = (rule.rights, format!("key {}", rule.name));
        let grant = Grant {
            scope,
            rights,
            expires_at: token.expires_at,
            is_of_token: true,
            whose: String::new(),
        };
        Ok(Verified { grant, owner, name })
    }

    /// An identity token holds for a whole namespace.
    fn verify_jwt(
        &self,
        now: Timestamp,
        prefix: &str,
        token: &str,
    ) -> Result<Verified, TokenRefused> {
        let Some(issuer) = &self.issuer else {
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
            whose: String::new(),
        };
        let owner = prefix.to_owned();
        let name = format!("identity {}", claims.subject);
        Ok(Verified { grant, owner, name })
    }

    /// Returns the rules whose keys may sign for a resource, and what each is for: those of the
    /// namespace, of the entities above, and of its entity.
    fn rules_for<'a>(
        &'a self,
        source: &'a impl RuleSource,
        prefix: &'a str,
        resource: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a AuthorizationRule)> {
        let own = self.rules.get(prefix).into_iter().flatten();
        let ends = resource.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain([resource.len()]);
        let of_entities = ends.filter_map(|end| {
            let path = resource.get(..end)?;
            Some(source.rules_at(path).iter().map(move |rule| (path, rule)))
        });
        own.map(move |rule| (prefix, rule))
            .chain(of_entities.flatten())
    }

    /// Returns the rules of the namespaces, and what each is for.
    fn namespace_rules(&self) -> impl Iterator<Item = (String, &AuthorizationRule)> {
        let namespaces = self.rules.iter();
        namespaces.flat_map(|(prefix, rules)| rules.iter().map(|rule| (prefix.clone(), rule)))
    }

    /// Takes the next sum of refusals that were not logged by themselves: the peer and their number.
    pub fn next_refusals(&mut self, now: Timestamp) -> Option<(PeerAddress, u64)> {
        self.tally.end(now)
    }

    /// Returns when [`Access::next_refusals`] has something.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.tally.next_end()
    }
}

/// Takes a token for the bare name of the host that its client calls as one for the namespace,
/// unless an entity has that name.
fn resolve_host(
    source: &impl RuleSource,
    prefix: &str,
    host: Option<&str>,
    token: &mut SasToken<'_>,
) {
    let host = host.and_then(|host| host.split(':').next());
    if let Resource::Unclear(name) = &token.resource
        && host.is_some_and(|host| host.eq_ignore_ascii_case(name))
        && !source.is_entity(&format!("{prefix}{name}"))
    {
        token.resource = Resource::Path(String::new());
    }
}

/// The grant of a valid token, and the scope of its key.
struct Verified {
    grant: Grant,
    owner: String,
    /// Whose it is, for the audit log.
    name: String,
}

/// Takes `Bearer` from an authorization.
fn without_scheme(token: &str) -> &str {
    let parts = token.split_once(' ');
    let bearer = parts.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer"));
    bearer.map_or(token, |(_, token)| token.trim())
}

/// Returns bits from which their origin cannot be found.
#[must_use]
pub fn one_way(bytes: &[u8]) -> u64 {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    let first = digest.as_ref().first_chunk().copied().unwrap_or_default();
    u64::from_le_bytes(first)
}

/// Compares in a time that depends on lengths only.
fn equal(one: &str, other: &str) -> bool {
    aws_lc_rs::constant_time::verify_slices_are_equal(one.as_bytes(), other.as_bytes()).is_ok()
}

/// Returns whether text claims to be a shared access signature.
#[must_use]
pub fn is_sas(token: &str) -> bool {
    sas::is_sas(token)
}

/// Checks the shape and the size of an authorization that claims to be a shared access signature, without looking anything up.
///
/// # Errors
///
/// The token's problem.
pub fn check_sas(authorization: &str) -> Result<(), TokenRefused> {
    let token = without_scheme(authorization);
    if is_sas(token) {
        return check_sas_shape(token);
    }
    Ok(())
}

/// Checks the shape of a shared access signature where none is verified.
///
/// # Errors
///
/// The token's problem.
pub fn check_sas_shape(token: &str) -> Result<(), TokenRefused> {
    SasToken::parse(token).map(drop)
}

/// Checks the shape of a JSON Web Token where none is verified.
///
/// # Errors
///
/// The token's problem.
pub fn check_jwt_shape(token: &str) -> Result<(), TokenRefused> {
    let parts: Vec<&str> = token.split('.').collect();
    if parts.len() == 3 && parts.iter().take(2).all(|part| !part.is_empty()) {
        return Ok(());
    }
    Err(TokenRefused::new(
        Fault::Malformed,
        "The JWT is malformed: it does not have three parts.".to_owned(),
    ))
}
