//! The root key, which is made where the operator has given none.

use std::fs;
use std::path::{Path, PathBuf};

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::system::files::{self, NotReplaced, Readers};
use jitney_base::rights::Key;
use jitney_config::Configuration;

/// The name of the root key, as in every namespace of the service.
pub(crate) const ROOT: &str = "RootManageSharedAccessKey";

/// What the emulator's documents have in the place of a key.
pub(crate) const ANY_KEY: &str = "SAS_KEY_VALUE";
/// The name of the file of the root key in the data directory.
pub(crate) const FILE_NAME: &str = "root.key";

/// Why the broker does not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error(
        "--auth development lets any key do everything, and there are listeners beyond loopback \
         ({0}): use --auth sas, or add --allow-any-key-beyond-loopback if no untrusted client can reach them"
    )]
    Open(String),
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Write(#[from] NotReplaced),
    #[error("{}: this is not the key that was written here: remove the file to have a new one made", .0.display())]
    Malformed(PathBuf),
    #[error("{}: this is no operator's key, which has 16 to 256 visible characters and no space: write one there; if it is operator.key in the data directory, remove the file to have a new one made", .0.display())]
    Operator(PathBuf),
    #[error("the system has no random bits")]
    Random,
}

/// The key of the namespaces that have no rules in the configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RootKey {
    pub(crate) key: Key,
    pub(crate) place: KeyPlace,
}

/// Where the root key is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// It was made at this start, and is in no file.
    New,
    /// It was made at this start, and is in this file now.
    NewFile(PathBuf),
    File(PathBuf),
    /// The servers of a store have it in common.
    Store,
}

/// Returns the key for the namespaces without rules in the configuration: made on the first start,
/// and stored beside the messages.
///
/// # Errors
///
/// If it cannot be read or stored.
pub(crate) fn root_key(
    config: &Configuration,
    directory: Option<&Path>,
) -> Result<Option<RootKey>, KeysError> {
    let mut namespaces = config.namespaces.iter();
    if namespaces.all(|namespace| !namespace.authorization.is_empty()) {
        return Ok(None);
    }
    let path = directory.map(|directory| directory.join(FILE_NAME));
    if let Some(directory) = directory
        && let Some(key) = stored(directory)?
    {
        let place = KeyPlace::File(directory.join(FILE_NAME));
        return Ok(Some(RootKey { key, place }));
    }
    let text = random_key()?;
    let place = match path {
        Some(path) => {
            store(&path, &text)?;
            KeyPlace::NewFile(path)
        }
        None => KeyPlace::New,
    };
    Ok(Some(RootKey {
        key: Key::new(text),
        place,
    }))
}

/// Returns the root key of a data directory, if it has one.
///
/// # Errors
///
/// If it cannot be read, or is no key.
pub(crate) fn stored(directory: &Path) -> Result<Option<Key>, KeysError> {
    let path = directory.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    let bytes = fs::read(&path).map_err(|source| KeysError::File {
        path: path.clone(),
        source,
    })?;
    // Text that is no UTF-8 is no key either.
    let text = str::from_utf8(&bytes).unwrap_or_default().trim();
    let decoded = STANDARD.decode(text);
    if decoded.is_ok_and(|key| key.len() == KEY_BYTES) {
        return Ok(Some(Key::new(text.to_owned())));
    }
    Err(KeysError::Malformed(path))
}

/// Returns a connection string for clients where any key is accepted: it serves messages and administration.
pub(crate) fn emulator_string(host: &str, port: u16) -> String {
    format!(
        "Endpoint=sb://{host}:{port};SharedAccessKeyName={ROOT};SharedAccessKey={ANY_KEY};UseDevelopmentEmulator=true;"
    )
}

/// Returns a connection string with a root key. Without a port, clients go to those of AMQP and of administration with TLS.
pub(crate) fn root_string(host: &str, port: Option<u16>, key: &str) -> String {
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("Endpoint=sb://{host}{port};SharedAccessKeyName={ROOT};SharedAccessKey={key}")
}

/// Makes a key.
pub(crate) fn random_key() -> Result<String, KeysError> {
    let mut bytes = [0; KEY_BYTES];
    rand::fill(&mut bytes).map_err(|_| KeysError::Random)?;
    Ok(STANDARD.encode(bytes))
}

/// Stores a key in a file that only the owner may read.
pub(crate) fn store(path: &Path, key: &str) -> Result<(), KeysError> {
    files::replace(&[(path.to_owned(), key.as_bytes(), Readers::Owner)])?;
    Ok(())
}

/// As long as the service's keys.
const KEY_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let config = Configuration::default();
        let key = |directory| root_key(&config, directory).unwrap().unwrap();
        let path = directory.path().join("root.key");
        let first = key(Some(directory.path()));
        assert_eq!(first.place, KeyPlace::NewFile(path.clone()));
        let again = key(Some(directory.path()));
        assert_eq!(again.key, first.key);
        assert_eq!(again.place, KeyPlace::File(path));
        let other = key(None);
        assert_ne!(other.key, first.key);
        assert_eq!(other.place, KeyPlace::New);
        fs::write(directory.path().join("root.key"), "short").unwrap();
        let error = root_key(&config, Some(directory.path())).unwrap_err();
        assert!(error.to_string().contains("root.key"), "{error}");
    }
}
