//! Tokens of one OIDC issuer: what Entra ID credentials put on `$cbs` as type `jwt`, and send to
//! the administration API as `Authorization: Bearer` (`cbs.md#identity-tokens`).
//!
//! A [`TokenIssuer`] holds the issuer's public keys and says what a token allows.
//!
//! Promises: nothing of a token is believed before its signature is found good, with an algorithm
//! that the key, and not the token, decides; no answer repeats anything of a token; without keys
//! no token is good.
//!
//! Leaves to others: where keys come from and when they are fetched again, for which
//! [`TokenIssuer::wants_keys`] is a hint; what is done with rights.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse,
};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Header, Validation, dangerous};
use serde::Deserialize;
use serde_json::{Number, Value};

use super::{Fault, TokenRefused};
use crate::limits;
use jitney_base::rights::Rights;
use jitney_base::time::Timestamp;

/// An issuer of tokens, with the public keys that it signs with.
pub struct TokenIssuer {
    issuer: String,
    audiences: Vec<String>,
    keys: Vec<Key>,
    /// A token was shown that a key is missing for. Shared access, for a check changes nothing
    /// that a later check depends on.
    wants_keys: AtomicBool,
}

/// Why a key set is not taken.
#[derive(Debug, thiserror::Error)]
pub enum JwksError {
    /// It is something else.
    #[error("this is not a JSON Web Key Set")]
    Malformed(#[source] serde_json::Error),
    /// It holds nothing that a token could be checked with.
    #[error(
        "none of the {0} keys in the set can be used; RSA keys of 2048 to 8192 bits, EC keys on \
         P-256 or P-384 and Ed25519 keys can, if they are for signatures"
    )]
    NoUsableKey(usize),
    /// There are more than we want to try.
    #[error("the set holds {0} keys that can be used, which is more than 32")]
    TooMany(usize),
}

/// The claims of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JwtClaims {
    /// Its rights, on all entities; at least one.
    pub(super) rights: Rights,
    /// From when on it is not taken any more: its end, and the skew of clocks.
    pub(super) expires_at: Timestamp,
    /// Its subject, for logs.
    pub(super) subject: String,
}

impl TokenIssuer {
    /// Trusts an issuer, whose tokens name it exactly so and are for one of some audiences. No
    /// token is good until there are keys.
    #[must_use]
    pub fn new(issuer: String, audiences: Vec<String>) -> Self {
        Self {
            issuer,
            audiences,
            keys: Vec::new(),
            wants_keys: AtomicBool::new(false),
        }
    }

    /// Takes the issuer's keys from a JSON Web Key Set, in the place of those before. Returns how
    /// many can be used; others, as those for encryption, are passed over.
    ///
    /// # Errors
    ///
    /// If the document is something else, or has no usable key or too many. The keys from before
    /// stay then.
    pub fn set_keys(&mut self, jwks: &str) -> Result<usize, JwksError> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set = serde_json::from_str(jwks).map_err(JwksError::Malformed)?;
        let count = set.keys.len();
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::read).collect();
        match keys.len() {
            0 => Err(JwksError::NoUsableKey(count)),
            usable if limits::ISSUER_KEYS_MAX < usable => Err(JwksError::TooMany(usable)),
            usable => {
                self.keys = keys;
                self.wants_keys.store(false, Ordering::Relaxed);
                Ok(usable)
            }
        }
    }

    /// Returns whether a token was shown, since the last call, that says to be of this issuer and
    /// signed with a key that is not known: the issuer may have new keys. Anybody can write such a
    /// token, so the caller that fetches keys must bound how often.
    pub fn wants_keys(&self) -> bool {
        self.wants_keys.swap(false, Ordering::Relaxed)
    }

    /// Checks a token, and says what it allows.
    ///
    /// # Errors
    ///
    /// The token's problem. The text quotes nothing of the token.
    pub(super) fn verify(&self, now: Timestamp, token: &str) -> Result<JwtClaims, TokenRefused> {
        if limits::TOKEN_BYTES_MAX < token.len() {
            let text = format!(
                "The token is longer than {} bytes.",
                limits::TOKEN_BYTES_MAX
            );
            return Err(TokenRefused::new(Fault::Malformed, text));
        }
        let header = jsonwebtoken::decode_header(token).map_err(|error| of_header(error.kind()))?;
        if header.crit.is_some() {
            return Err(refused(
                Fault::Malformed,
                "The token's header has critical extensions, and none is known.",
            ));
        }
        if token.ends_with('.') {
            return Err(refused(Fault::Signature, "The token has no signature."));
        }
        let claims = self.signed_claims(&header, token)?;
        self.check_names(&claims)?;
        let expires_at = check_times(now, &claims)?;
        Ok(JwtClaims {
            rights: claims.rights().ok_or_else(no_role)?,
            expires_at,
            subject: claims.subject(),
        })
    }

    /// Returns the claims of a token that is signed with one of the keys.
    fn signed_claims(&self, header: &Header, token: &str) -> Result<Claims, TokenRefused> {
        let mut known = false;
        for key in self.keys.iter().filter(|key| key.is_named_by(header)) {
            known = true;
            if !key.algorithms.contains(&header.alg) {
                continue;
            }
            let mut validation = Validation::new(header.alg);
            // Names and times are checked by us, for we are told the time.
            validation.required_spec_claims.clear();
            validation.validate_exp = false;
            validation.validate_aud = false;
            match jsonwebtoken::decode(token, &key.key, &validation) {
                Ok(decoded) => return Ok(decoded.claims),
                // The next key may be the one.
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {}
                Err(error) if matches!(error.kind(), ErrorKind::Base64(_)) => {
                    return Err(not_base64());
                }
                Err(_) => return Err(of_claims()),
            }
        }
        if known {
            return Err(refused(
                Fault::Signature,
                "The token has an invalid signature.",
            ));
        }
        if self.is_of_us(token) {
            self.wants_keys.store(true, Ordering::Relaxed);
        }
        let text = if self.keys.is_empty() {
            "The keys of the issuer of tokens are not known yet."
        } else {
            "The token's signing key is none that the issuer has published."
        };
        Err(refused(Fault::Signature, text))
    }

    /// Returns whether a token says to be of this issuer. That is not proved: nothing but a hint
    /// may rest on it.
    fn is_of_us(&self, token: &str) -> bool {
        #[derive(Deserialize)]
        struct UnverifiedClaims {
            iss: String,
        }
        let claims = dangerous::insecure_decode_claims::<UnverifiedClaims>(token);
        claims.is_ok_and(|claims| claims.iss == self.issuer)
    }

    fn check_names(&self, claims: &Claims) -> Result<(), TokenRefused> {
        let issuer = claims.issuer.as_deref();
        if issuer != Some(&self.issuer) {
            let text = format!("The token's claim 'iss' must be '{}'.", self.issuer);
            return Err(TokenRefused::new(Fault::Issuer, text));
        }
        let known = |name: &String| self.audiences.contains(name);
        let audiences = claims.audience.as_ref().map(Texts::items);
        if !audiences.is_some_and(|names| names.iter().any(known)) {
            let text = format!(
                "The token is for another audience. Its claim 'aud' must have one of: {}.",
                quoted(&self.audiences)
            );
            return Err(TokenRefused::new(Fault::Audience, text));
        }
        Ok(())
    }
}

/// Returns when a token ends, if it is in force.
fn check_times(now: Timestamp, claims: &Claims) -> Result<Timestamp, TokenRefused> {
    let Some(end) = &claims.expires else {
        return Err(refused(Fault::Malformed, "The token has no claim 'exp'."));
    };
    let end = time(end).ok_or_else(of_claims)?;
    let expires_at = end.after(limits::TOKEN_CLOCK_SKEW);
    if expires_at <= now {
        let text = format!(
            "The token is expired. Expiration time: '{}'.",
            end.to_service_text()
        );
        return Err(TokenRefused::new(Fault::Expired, text));
    }
    let latest = now.after(limits::TOKEN_CLOCK_SKEW);
    for begin in [&claims.not_before, &claims.issued].into_iter().flatten() {
        let begin = time(begin).ok_or_else(of_claims)?;
        if latest < begin {
            let text = format!(
                "The token is not valid before '{}'.",
                begin.to_service_text()
            );
            return Err(TokenRefused::new(Fault::Rights, text));
        }
    }
    Ok(expires_at)
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenIssuer")
            .field("issuer", &self.issuer)
            .field("audiences", &self.audiences)
            .field("keys", &self.keys.len())
            .finish_non_exhaustive()
    }
}

/// A public key, and what it may be used with.
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl Key {
    /// Takes a key of a set, if it can be used.
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let common = &jwk.common;
        let for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let operations = common.key_operations.as_ref();
        let verifies = operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
        if !for_signatures || !verifies {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let mut algorithms = possible_algorithms(&jwk, &key);
        if let Some(only) = common.key_algorithm {
            algorithms.retain(|algorithm| KeyAlgorithm::from(*algorithm) == only);
        }
        if algorithms.is_empty() {
            return None;
        }
        let id = jwk.common.key_id;
        Some(Self {
            id,
            algorithms,
            key,
        })
    }

    /// Returns whether a token is to be tried with this key: the one it names, or any.
    fn is_named_by(&self, header: &Header) -> bool {
        match &header.kid {
            Some(name) => self.id.as_ref() == Some(name),
            None => true,
        }
    }
}

/// Returns what a key can be used with by its kind and size. Never anything with a shared secret:
/// a public key is no secret.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a key of any other kind, which the crate may learn, verifies nothing"
)]
fn possible_algorithms(jwk: &Jwk, key: &DecodingKey) -> Vec<Algorithm> {
    /// An uncompressed point of so many bytes for each coordinate.
    fn is_point(key: &DecodingKey, coordinate: usize) -> bool {
        key.try_get_as_bytes()
            .is_ok_and(|bytes| bytes.len() == 1 + 2 * coordinate)
    }
    match &jwk.algorithm {
        AlgorithmParameters::RSA(_) if is_rsa_of_size(key) => vec![
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(parameters) => match parameters.curve {
            EllipticCurve::P256 if is_point(key, 32) => vec![Algorithm::ES256],
            EllipticCurve::P384 if is_point(key, 48) => vec![Algorithm::ES384],
            _ => Vec::new(),
        },
        AlgorithmParameters::OctetKeyPair(parameters)
            if parameters.curve == EllipticCurve::Ed25519
                && key.try_get_as_bytes().is_ok_and(|bytes| bytes.len() == 32) =>
        {
            vec![Algorithm::EdDSA]
        }
        _ => Vec::new(),
    }
}

fn is_rsa_of_size(key: &DecodingKey) -> bool {
    let DecodingKeyKind::RsaModulusExponent { n, e } = key.kind() else {
        return false;
    };
    let mut bytes = n.iter().skip_while(|byte| **byte == 0);
    let bits = bytes.next().map_or(0, |first| {
        let zeros = usize::try_from(first.leading_zeros()).unwrap_or(8);
        8 * (1 + bytes.count()) - zeros
    });
    // An exponent of one would make every text its own signature.
    let odd = e.last().is_some_and(|last| last % 2 == 1);
    let above_one = e.iter().rev().skip(1).any(|byte| *byte != 0) || e.last() != Some(&1);
    (limits::RSA_BITS_MIN..=limits::RSA_BITS_MAX).contains(&bits) && odd && above_one
}

/// The claims that matter. Others may be there.
#[derive(Deserialize)]
struct Claims {
    #[serde(rename = "iss")]
    issuer: Option<String>,
    #[serde(rename = "aud")]
    audience: Option<Texts>,
    #[serde(rename = "exp")]
    expires: Option<Number>,
    #[serde(rename = "nbf")]
    not_before: Option<Number>,
    #[serde(rename = "iat")]
    issued: Option<Number>,
    roles: Option<Texts>,
    /// Entra ID's name for the scope.
    scp: Option<Texts>,
    /// RFC 8693's.
    scope: Option<Texts>,
    sub: Option<String>,
    /// Entra ID's number of a user or an application.
    oid: Option<String>,
    /// The client, where a token is for no user.
    azp: Option<String>,
}

/// One text or several: issuers write both.
#[derive(Deserialize)]
#[serde(untagged)]
enum Texts {
    One(String),
    Several(Vec<String>),
}

impl Texts {
    fn items(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Several(texts) => texts,
        }
    }
}

impl Claims {
    /// Returns what the roles and scopes give together, if that is anything.
    fn rights(&self) -> Option<Rights> {
        let roles = self.roles.iter().flat_map(Texts::items).map(String::as_str);
        let scopes = [&self.scp, &self.scope].into_iter().flatten();
        let scopes = scopes
            .flat_map(Texts::items)
            .flat_map(|text| text.split_ascii_whitespace());
        let mut rights = Rights::default();
        for word in roles.chain(scopes) {
            match word.strip_prefix(ROLE_PREFIX).unwrap_or(word) {
                "Data Owner" | "Manage" => rights = Rights::ALL,
                "Data Sender" | "Send" => rights.send = true,
                "Data Receiver" | "Listen" => rights.listen = true,
                _ => {}
            }
        }
        (rights != Rights::default()).then_some(rights)
    }

    fn subject(&self) -> String {
        let claims = [&self.sub, &self.oid, &self.azp].into_iter().flatten();
        let subject = claims.into_iter().next().map_or("", String::as_str);
        let plain = subject.chars().filter(|character| !character.is_control());
        plain.take(limits::TOKEN_SUBJECT_LENGTH_MAX).collect()
    }
}

/// The beginning of the names of the service's roles.
const ROLE_PREFIX: &str = "Azure Service Bus ";

fn no_role() -> TokenRefused {
    refused(
        Fault::Rights,
        "The token gives no right here. Its claim 'roles' must have one of 'Azure Service Bus Data \
         Owner', 'Azure Service Bus Data Sender' and 'Azure Service Bus Data Receiver', or its \
         claim 'scp' or 'scope' one of 'Manage', 'Send' and 'Listen'.",
    )
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the crate's errors may get more kinds; all others are of a header that is not JSON"
)]
fn of_header(error: &ErrorKind) -> TokenRefused {
    match error {
        // It is JSON, but no header that we know: `none`, or an algorithm of the future.
        ErrorKind::Json(error) if error.is_data() => refused(
            Fault::Signature,
            "The token's header must name one of the algorithms RS256, RS384, RS512, PS256, PS384, \
             PS512, ES256, ES384 and EdDSA.",
        ),
        ErrorKind::InvalidToken => {
            refused(Fault::Malformed, "The token does not have three parts.")
        }
        ErrorKind::Base64(_) => not_base64(),
        _ => refused(Fault::Malformed, "The token's header is not JSON."),
    }
}

fn of_claims() -> TokenRefused {
    refused(
        Fault::Malformed,
        "The token's claims are not JSON, or one of 'iss', 'aud', 'exp', 'nbf', 'iat', 'roles', \
         'scp', 'scope' and 'sub' is not of its type.",
    )
}

fn not_base64() -> TokenRefused {
    refused(Fault::Malformed, "The token's parts are not in base64url.")
}

fn refused(fault: Fault, text: &str) -> TokenRefused {
    TokenRefused::new(fault, text.to_owned())
}

fn quoted(names: &[String]) -> String {
    let quoted = names.iter().map(|name| format!("'{name}'"));
    quoted.collect::<Vec<_>>().join(", ")
}

/// Takes seconds since 1970, which may have a fraction.
fn time(seconds: &Number) -> Option<Timestamp> {
    if let Some(seconds) = seconds.as_i64() {
        return Some(Timestamp::from_millis(seconds.saturating_mul(1000)));
    }
    if seconds.is_u64() {
        return Some(Timestamp::MAX);
    }
    let span = std::time::Duration::try_from_secs_f64(seconds.as_f64()?).ok()?;
    let millis = i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
    Some(Timestamp::from_millis(millis))
}

#[cfg(test)]
mod tests;
