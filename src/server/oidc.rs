//! The keys of the OIDC issuer whose tokens are good: fetched over HTTP(S), or read from a file,
//! and kept fresh.
//!
//! Promises: what is published is a key set with usable keys; who asks for keys does not make
//! more than one fetch a minute; a source that fails is tried again for ever, and the keys that
//! were published stay.
//!
//! Leaves to others: what a key set means and what a token allows, which
//! [`TokenIssuer`] knows.

mod fetch;
#[cfg(test)]
mod tests;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Deserialize;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tracing::{debug, info, warn};

use self::fetch::{FetchError, Fetcher, Url};
use crate::access::{JwksError, TokenIssuer};

/// Whose tokens are good, beside shared access signatures.
#[derive(Debug, Clone, Args)]
pub struct OidcArgs {
    /// The issuer of tokens that are good, exactly as they name it in `iss`. None by default.
    #[arg(long, value_name = "URL")]
    pub oidc_issuer: Option<String>,
    /// The issuer's keys, where its /.well-known/openid-configuration is not to be asked.
    #[arg(long, value_name = "FILE|URL", requires = "oidc_issuer")]
    pub oidc_jwks: Option<String>,
    /// Whom a token is for, in `aud`; may stand several times.
    #[arg(
        long,
        value_name = "AUD",
        requires = "oidc_issuer",
        default_values = ["https://servicebus.azure.net", "https://servicebus.azure.net/"]
    )]
    pub oidc_audience: Vec<String>,
    /// Certificates (PEM) that the issuer's is to be signed with, in the place of the system's.
    #[arg(long, value_name = "FILE", requires = "oidc_issuer")]
    pub oidc_ca: Option<PathBuf>,
}

impl OidcArgs {
    /// Returns the issuer, without keys yet, and where its keys are; nothing if there is none.
    ///
    /// # Errors
    ///
    /// If an URL or the file of certificates cannot be used: waiting would not make it better.
    pub(super) fn parse(&self) -> Result<Option<(TokenIssuer, KeySource)>, OidcError> {
        let Some(issuer) = &self.oidc_issuer else {
            return Ok(None);
        };
        let fetcher = Fetcher::new(self.oidc_ca.clone())?;
        let place = match &self.oidc_jwks {
            None => Place::Discovery(issuer.clone(), discovery_url(issuer)?),
            Some(text) if is_url(text) => Place::Url(Url::parse(text)?),
            Some(file) => Place::File(PathBuf::from(file)),
        };
        let source = KeySource { place, fetcher };
        let issuer = TokenIssuer::new(issuer.clone(), self.oidc_audience.clone());
        Ok(Some((issuer, source)))
    }
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum OidcError {
    #[error("--oidc-issuer {0} is no URL to ask for keys; --oidc-jwks can name a file or a URL")]
    IssuerIsNoUrl(String),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("cannot read {path}: {source}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{0} is longer than {max} bytes", max = fetch::BODY_BYTES_MAX)]
    FileTooLong(PathBuf),
    #[error("{url} is not the configuration of an issuer: {source}")]
    Discovery {
        url: String,
        source: serde_json::Error,
    },
    #[error("{url} is the configuration of the issuer '{found}', and not of --oidc-issuer")]
    OtherIssuer { url: String, found: String },
    #[error("the keys of {place} cannot be used: {source}{}", cause(source))]
    Keys { place: String, source: JwksError },
    #[error("{place} did not answer within {} ms", within.as_millis())]
    TooSlow { place: String, within: Duration },
}

/// Says what an error is about, which its own text leaves to its source.
fn cause(error: &JwksError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(String::new, |cause| format!(" ({cause})"))
}

/// Where keys come from.
#[derive(Debug)]
pub(super) struct KeySource {
    place: Place,
    fetcher: Fetcher,
}

#[derive(Debug)]
enum Place {
    /// An issuer, and the URL of its configuration, which names that of its keys.
    Discovery(String, Url),
    Url(Url),
    File(PathBuf),
}

/// A key set that can be used.
#[derive(Debug, PartialEq, Eq)]
struct Keys {
    document: String,
    usable: usize,
}

impl KeySource {
    /// Returns the keys as they are now.
    async fn keys(&self, within: Duration) -> Result<Keys, OidcError> {
        let read = async {
            match &self.place {
                Place::Discovery(issuer, url) => {
                    let keys = self.discover(issuer, url).await?;
                    Ok(self.fetcher.get(&keys).await?)
                }
                Place::Url(url) => Ok(self.fetcher.get(url).await?),
                Place::File(path) => read_file(path.clone()).await,
            }
        };
        let document = tokio::time::timeout(within, read).await;
        let document = document.map_err(|_| OidcError::TooSlow {
            place: self.name(),
            within,
        })??;
        // The same check as where they are used, so that what is no key set is tried again soon.
        let mut scratch = TokenIssuer::new(String::new(), Vec::new());
        match scratch.set_keys(&document) {
            Ok(usable) => Ok(Keys { document, usable }),
            Err(source) => Err(OidcError::Keys {
                place: self.name(),
                source,
            }),
        }
    }

    /// Returns where an issuer says that its keys are.
    async fn discover(&self, issuer: &str, url: &Url) -> Result<Url, OidcError> {
        #[derive(Deserialize)]
        struct Configuration {
            issuer: String,
            jwks_uri: String,
        }
        let text = self.fetcher.get(url).await?;
        let found: Configuration =
            serde_json::from_str(&text).map_err(|source| OidcError::Discovery {
                url: url.to_string(),
                source,
            })?;
        if found.issuer != issuer {
            return Err(OidcError::OtherIssuer {
                url: url.to_string(),
                found: found.issuer,
            });
        }
        Ok(url.lead_to(&found.jwks_uri)?)
    }

    fn name(&self) -> String {
        match &self.place {
            Place::Discovery(_, url) | Place::Url(url) => url.to_string(),
            Place::File(path) => path.display().to_string(),
        }
    }

    fn pace(&self) -> Pace {
        match &self.place {
            Place::Discovery(..) | Place::Url(_) => Pace::NET,
            Place::File(_) => Pace::FILE,
        }
    }
}

/// How often keys are looked for.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// After they were found.
    refresh: Duration,
    /// When they are asked for, counted from when they were last looked for.
    wanted: Duration,
    /// After the first failure; each further one doubles it.
    retry_first: Duration,
    retry_max: Duration,
    /// How long one look may take.
    within: Duration,
}

impl Pace {
    const NET: Self = Self {
        refresh: Duration::from_hours(1),
        wanted: Duration::from_mins(1),
        retry_first: Duration::from_secs(1),
        retry_max: Duration::from_mins(5),
        within: Duration::from_secs(10),
    };
    /// A look at a file costs next to nothing.
    const FILE: Self = Self {
        refresh: Duration::from_secs(10),
        wanted: Duration::from_secs(1),
        retry_max: Duration::from_secs(10),
        ..Self::NET
    };

    /// Returns how long to wait after so many failures in a row.
    fn retry(self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
        let wait = doubled.and_then(|times| self.retry_first.checked_mul(times));
        wait.map_or(self.retry_max, |wait| wait.min(self.retry_max))
    }
}

/// Publishes the keys of a source when they are there and whenever they change, until it is
/// stopped. They are looked for again sooner when they are `wanted`.
pub(super) async fn keep_keys(
    source: KeySource,
    publish: impl Fn(String),
    wanted: Arc<Notify>,
    stopped: watch::Receiver<bool>,
) {
    let pace = source.pace();
    keep_keys_at(pace, source, publish, wanted, stopped).await;
}

async fn keep_keys_at(
    pace: Pace,
    source: KeySource,
    publish: impl Fn(String),
    wanted: Arc<Notify>,
    mut stopped: watch::Receiver<bool>,
) {
    let mut keeper = Keeper {
        place: source.name(),
        published: None,
        failures: 0,
        told: String::new(),
    };
    loop {
        let begun = Instant::now();
        let found = tokio::select! {
            found = source.keys(pace.within) => found,
            // An error means that the other end is gone, which is a stop too.
            _ = stopped.wait_for(|stopped| *stopped) => return,
        };
        let wait = match found {
            Ok(keys) => {
                keeper.found(keys, &publish);
                pace.refresh
            }
            Err(error) => {
                keeper.failed(&error);
                pace.retry(keeper.failures)
            }
        };
        let asked = async {
            wanted.notified().await;
            tokio::time::sleep_until(begun + pace.wanted).await;
        };
        tokio::select! {
            () = tokio::time::sleep_until(Instant::now() + wait) => {}
            // If the other wakes first, the keys are looked for all the same.
            () = asked => debug!(place = keeper.place, "a token names a key that is not known"),
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}

/// What became of the looks so far.
struct Keeper {
    place: String,
    published: Option<String>,
    failures: u32,
    /// The failure that was told last: the same again is not worth a line.
    told: String,
}

impl Keeper {
    fn found(&mut self, keys: Keys, publish: impl Fn(String)) {
        if self.published.as_ref() != Some(&keys.document) {
            info!(place = self.place, keys = keys.usable, "keys for tokens");
            publish(keys.document.clone());
            self.published = Some(keys.document);
        } else if 0 < self.failures {
            info!(place = self.place, "keys for tokens can be had again");
        }
        self.failures = 0;
        self.told.clear();
    }

    fn failed(&mut self, error: &OidcError) {
        let text = error.to_string();
        self.failures = self.failures.saturating_add(1);
        if self.told == text {
            debug!("{text}");
            return;
        }
        match self.published {
            Some(_) => warn!("{text}; the keys for tokens stay as they are"),
            None => warn!("{text}; no token of the issuer is good until it has keys"),
        }
        self.told = text;
    }
}

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

/// Returns where an issuer tells of itself (`OpenID` Connect Discovery 1.0, 4).
fn discovery_url(issuer: &str) -> Result<Url, OidcError> {
    if !is_url(issuer) || issuer.contains(['?', '#']) {
        return Err(OidcError::IssuerIsNoUrl(issuer.to_owned()));
    }
    let base = issuer.strip_suffix('/').unwrap_or(issuer);
    let url = format!("{base}/.well-known/openid-configuration");
    Ok(Url::parse(&url)?)
}

async fn read_file(path: PathBuf) -> Result<String, OidcError> {
    let read = tokio::task::spawn_blocking({
        let path = path.clone();
        move || read_bounded(&path)
    });
    let read = read.await.unwrap_or_else(|error| Err(error.into()));
    match read {
        Ok(text) if text.len() <= fetch::BODY_BYTES_MAX => Ok(text),
        Ok(_) => Err(OidcError::FileTooLong(path)),
        Err(source) => Err(OidcError::File { path, source }),
    }
}

/// Reads a file, or one byte more of it than is allowed.
fn read_bounded(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let bytes_max = u64::try_from(fetch::BODY_BYTES_MAX).unwrap_or(u64::MAX);
    let file = std::fs::File::open(path)?;
    file.take(bytes_max.saturating_add(1))
        .read_to_string(&mut text)?;
    Ok(text)
}
