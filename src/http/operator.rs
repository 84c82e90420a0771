//! The operator's key: the credential for what concerns the server and not one namespace, such as metrics.
//!
//! A request carries it as `Authorization: Bearer KEY`. It is given by the operator, or made on the first start where keys
//! are verified. In the development profile peers on this machine need none. Wrong keys are counted as those of namespaces are: the
//! answers to them are held back after too many, and the right key is taken meanwhile.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::{HeaderMap, header};
use clap::Args;
use tokio::net::TcpStream;
use tracing::info;

use super::refusals::Refusals;
use crate::host::root_key::{self, KeysError};
use crate::net::admission::peer_of;
use jitney_base::rights::Key;
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::access::Profile;
use jitney_broker::limits;

/// Where the operator's key is from.
#[derive(Debug, Clone, Args)]
pub(crate) struct OperatorArgs {
    /// A file with the operator's key: any text of 16 to 256 visible characters. The default is a key that is made on the
    /// first start and kept in operator.key in the data directory.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) operator_key_file: Option<PathBuf>,
    /// The operator's key itself.
    #[arg(
        long,
        value_name = "KEY",
        env = "JITNEY_OPERATOR_KEY",
        hide = true,
        hide_env_values = true,
        global = true,
        value_parser = given,
        conflicts_with = "operator_key_file"
    )]
    pub(crate) operator_key: Option<Key>,
}

/// Who may do what only the operator may.
#[derive(Debug)]
pub(crate) struct Operator {
    key: Option<Key>,
    /// Peers on this machine need no key.
    is_open_here: bool,
    /// The requests that showed a wrong key.
    refusals: Refusals,
}

/// Why a request is not the operator's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotOperator {
    /// It shows no key or a wrong one: the text says what it must have.
    Unauthorized(String),
    /// Its address has shown too many wrong keys, and is told of no further one for this long.
    Throttled(Millis),
}

/// Characters of a key.
const KEY_LENGTH: std::ops::RangeInclusive<usize> = 16..=256;
/// The name of the file in the data directory.
const FILE_NAME: &str = "operator.key";

impl Operator {
    /// Finds or makes the key.
    ///
    /// # Errors
    ///
    /// If it cannot be read or stored, or is none.
    pub(crate) fn new(
        args: &OperatorArgs,
        profile: Profile,
        directory: Option<&Path>,
    ) -> Result<Self, KeysError> {
        let given = match (&args.operator_key, &args.operator_key_file) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(path)) => Some(read(path)?),
            (None, None) => None,
        };
        let key = match (given, profile) {
            (Some(key), _) => Some(key),
            (None, Profile::Development) => None,
            (None, Profile::Verified) => Some(kept(directory)?),
        };
        Ok(Self {
            key,
            is_open_here: profile == Profile::Development,
            refusals: Refusals::default(),
        })
    }

    /// Returns whether a request is the operator's. What else it may be is not counted as a wrong key.
    pub(super) fn is_operators(&self, peer: IpAddr, headers: &HeaderMap) -> bool {
        self.verify(peer, headers).is_ok()
    }

    /// Checks that a request for a path, which only the operator may make, is the operator's. `now` is elapsed time.
    ///
    /// # Errors
    ///
    /// Says what the request must have. A wrong key is counted, and logged.
    pub(super) fn check(
        &self,
        now: Timestamp,
        peer: IpAddr,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<(), NotOperator> {
        let Err(text) = self.verify(peer, headers) else {
            return Ok(());
        };
        let peer = peer_of(peer);
        if shown(headers).is_some() {
            if self.refusals.is_logged(now, peer) {
                let path: String = path.chars().take(limits::LOGGED_MAX).collect();
                info!(%peer, path, "HTTP request refused: it shows a key that is not the operator's");
            }
            if let Some(wait) = self.refusals.failed(now, peer, NAME) {
                return Err(NotOperator::Throttled(wait));
            }
        }
        Err(NotOperator::Unauthorized(text))
    }

    fn verify(&self, peer: IpAddr, headers: &HeaderMap) -> Result<(), String> {
        if self.is_open_here && peer.to_canonical().is_loopback() {
            return Ok(());
        }
        let Some(key) = &self.key else {
            return Err("This is for the operator, from this machine, or with the operator's key: the broker has none. \
                 Give it one with --operator-key-file.\n"
                .to_owned());
        };
        let is_good = shown(headers).is_some_and(|shown| {
            verify_slices_are_equal(shown.as_bytes(), key.expose().as_bytes()).is_ok()
        });
        if is_good {
            return Ok(());
        }
        Err(format!(
            "This is for the operator: send \"Authorization: Bearer KEY\" with the operator's key, which is in {FILE_NAME} in \
             the data directory, in the file of --operator-key-file, or in operator_key of the table jitney.store of a store.\n"
        ))
    }
}

/// The name by which wrong keys of the operator are counted.
const NAME: &str = "operator";

/// Returns the key that a request shows, if it shows one.
fn shown(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, shown) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| shown.trim())
}

/// A key that a command knows.
#[derive(Debug, Clone)]
pub(crate) enum KnownKey {
    /// The one that is given: it is sent to any broker.
    Given(Key),
    /// The one in this file of a data directory. It is not named for a certain broker, and so is sent to brokers of this machine only.
    OfDirectory(Key, PathBuf),
}

impl KnownKey {
    /// Returns the key, if it may be sent to a peer.
    pub(crate) fn for_peer(&self, peer: Peer) -> Option<&Key> {
        match (self, peer) {
            (Self::Given(key), Peer::Here | Peer::Elsewhere)
            | (Self::OfDirectory(key, _), Peer::Here) => Some(key),
            (Self::OfDirectory(..), Peer::Elsewhere) => None,
        }
    }
}

/// Where the peer of a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// At loopback, or at another address of this machine.
    Here,
    Elsewhere,
}

impl Peer {
    /// Returns where the peer of a connection is. A connection from a machine to itself has one address at both ends.
    pub(crate) fn of(stream: &TcpStream) -> Self {
        let (Ok(peer), Ok(own)) = (stream.peer_addr(), stream.local_addr()) else {
            return Self::Elsewhere;
        };
        Self::between(own.ip(), peer.ip())
    }

    fn between(own: IpAddr, peer: IpAddr) -> Self {
        let peer = peer.to_canonical();
        if peer.is_loopback() || peer == own.to_canonical() {
            Self::Here
        } else {
            Self::Elsewhere
        }
    }
}

/// Returns the key that a command may use: the one that is given, or the one in a broker's data directory if that can be read.
///
/// # Errors
///
/// If there is a key that cannot be read, or is none.
pub(crate) fn known(args: &OperatorArgs, directory: &Path) -> Result<Option<KnownKey>, KeysError> {
    match (&args.operator_key, &args.operator_key_file) {
        (Some(key), _) => Ok(Some(KnownKey::Given(key.clone()))),
        (None, Some(path)) => read(path).map(KnownKey::Given).map(Some),
        (None, None) => {
            let path = directory.join(FILE_NAME);
            if !path.exists() {
                return Ok(None);
            }
            let key = read(&path)?;
            Ok(Some(KnownKey::OfDirectory(key, path)))
        }
    }
}

fn checked(text: &str, place: &Path) -> Result<Key, KeysError> {
    let text = text.trim();
    if KEY_LENGTH.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Key::new(text.to_owned()));
    }
    Err(KeysError::Operator(place.to_owned()))
}

/// Takes a key from the environment.
fn given(text: &str) -> Result<Key, KeysError> {
    checked(text, Path::new("JITNEY_OPERATOR_KEY"))
}

fn read(path: &Path) -> Result<Key, KeysError> {
    let text = fs::read(path).map_err(|source| KeysError::File {
        path: path.to_owned(),
        source,
    })?;
    checked(str::from_utf8(&text).unwrap_or_default(), path)
}

/// Returns the key in the data directory; makes it if there is none.
fn kept(directory: Option<&Path>) -> Result<Key, KeysError> {
    let path = directory.map(|directory| directory.join(FILE_NAME));
    if let Some(path) = path.as_deref().filter(|path| path.exists()) {
        return read(path);
    }
    let text = root_key::random_key()?;
    match &path {
        Some(path) => {
            root_key::store(path, &text)?;
            info!(file = %path.display(), "made the operator's key");
        }
        None => info!("made an operator's key, which is logged only once: {text}"),
    }
    Ok(Key::new(text))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const ELSEWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn operator(
        args: OperatorArgs,
        profile: Profile,
        directory: Option<&Path>,
    ) -> Result<Operator, KeysError> {
        Operator::new(&args, profile, directory)
    }

    fn none() -> OperatorArgs {
        OperatorArgs {
            operator_key_file: None,
            operator_key: None,
        }
    }

    /// Returns what a request is told that is not the operator's.
    fn refusal(operator: &Operator, peer: IpAddr, headers: &HeaderMap) -> String {
        match operator.check(Timestamp::EPOCH, peer, "/metrics", headers) {
            Err(NotOperator::Unauthorized(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    fn bearer(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, text.parse().unwrap());
        headers
    }

    #[test]
    fn the_key_is_made_once_and_is_needed_from_everywhere() {
        let directory = tempfile::tempdir().unwrap();
        let path = Some(directory.path());
        let first = operator(none(), Profile::Verified, path).unwrap();
        let key = fs::read_to_string(directory.path().join(FILE_NAME)).unwrap();
        let second = operator(none(), Profile::Verified, path).unwrap();
        for operator in [first, second] {
            for peer in [HERE, ELSEWHERE] {
                let good = bearer(&format!("Bearer {key}"));
                assert!(operator.is_operators(peer, &good));
                for wrong in ["", "Bearer", "Bearer x", &format!("Basic {key}"), &key] {
                    let text = refusal(&operator, peer, &bearer(wrong));
                    assert!(text.contains("operator.key"), "{text}");
                }
                assert!(!operator.is_operators(peer, &HeaderMap::new()));
            }
        }
    }

    #[test]
    fn in_development_peers_on_this_machine_need_none() {
        let operator = operator(none(), Profile::Development, None).unwrap();
        assert!(operator.is_operators(HERE, &HeaderMap::new()));
        let text = refusal(&operator, ELSEWHERE, &bearer("Bearer "));
        assert!(text.contains("--operator-key-file"), "{text}");
    }

    #[test]
    fn the_key_of_a_directory_is_for_this_machine_only() {
        let (one, other) = (Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2));
        let mapped = IpAddr::V6(other.to_ipv6_mapped());
        for (own, peer, wanted) in [
            (HERE, HERE, Peer::Here),
            (HERE, IpAddr::V4(Ipv4Addr::new(127, 0, 0, 9)), Peer::Here),
            (one.into(), one.into(), Peer::Here),
            (other.into(), mapped, Peer::Here),
            (one.into(), other.into(), Peer::Elsewhere),
            (HERE, one.into(), Peer::Elsewhere),
            (one.into(), mapped, Peer::Elsewhere),
        ] {
            assert_eq!(Peer::between(own, peer), wanted, "{own} {peer}");
        }
        let key = Key::new("sixteen-letters-!".to_owned());
        let of_directory = KnownKey::OfDirectory(key.clone(), PathBuf::from(FILE_NAME));
        assert!(of_directory.for_peer(Peer::Here).is_some());
        assert!(of_directory.for_peer(Peer::Elsewhere).is_none());
        assert!(KnownKey::Given(key).for_peer(Peer::Elsewhere).is_some());
    }

    #[test]
    fn after_many_wrong_keys_of_an_address_no_further_one_is_answered_and_the_right_one_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let operator = operator(none(), Profile::Verified, Some(directory.path())).unwrap();
        let key = fs::read_to_string(directory.path().join(FILE_NAME)).unwrap();
        let (right, wrong) = (bearer(&format!("Bearer {key}")), bearer("Bearer guess"));
        let check = |peer, headers| operator.check(Timestamp::EPOCH, peer, "/metrics", headers);
        // A request without a key is no guess.
        for _ in 0..=limits::AUTHENTICATION_FAILURES_MAX {
            refusal(&operator, ELSEWHERE, &HeaderMap::new());
        }
        for _ in 0..limits::AUTHENTICATION_FAILURES_MAX {
            let refused = check(ELSEWHERE, &wrong).unwrap_err();
            assert!(matches!(refused, NotOperator::Unauthorized(_)));
        }
        let leak = limits::AUTHENTICATION_FAILURE_LEAK;
        let throttled = Err(NotOperator::Throttled(leak));
        assert_eq!(check(ELSEWHERE, &wrong), throttled);
        assert_eq!(check(ELSEWHERE, &right), Ok(()));
        assert_eq!(check(ELSEWHERE, &wrong), throttled);
        refusal(&operator, HERE, &wrong);
        let later = Timestamp::EPOCH.after(leak);
        let refused = operator.check(later, ELSEWHERE, "/metrics", &wrong);
        assert!(matches!(refused, Err(NotOperator::Unauthorized(_))));
    }

    #[test]
    fn a_key_that_is_none_is_refused_with_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        for wrong in [
            "",
            "short",
            "sixteen letters and a space",
            "ä".repeat(20).as_str(),
        ] {
            fs::write(&path, wrong).unwrap();
            let args = OperatorArgs {
                operator_key_file: Some(path.clone()),
                operator_key: None,
            };
            let text = operator(args, Profile::Development, None).unwrap_err();
            assert!(text.to_string().contains("16 to 256"), "{text}");
        }
    }
}
