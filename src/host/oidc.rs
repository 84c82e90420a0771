//! The keys of the trusted OIDC issuer: fetched over HTTP(S), or read from a file, and refreshed.
//!
//! Promises: every published key set has usable keys; requests for keys cause at most one fetch a
//! minute; a failing source is retried for ever, and the published keys stay.
//!
//! Leaves to others: what a key set means and what a token allows, which
//! [`TokenIssuer`] knows.

mod endpoints;
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

#[cfg(test)]
pub(crate) use self::endpoints::Endpoints;
pub(crate) use self::endpoints::SignInEndpoints;
use crate::limits;
use crate::net::fetch::{FetchError, Fetcher, PlainHttp, Url};
use jitney_broker::access::{JwksError, TokenIssuer};

/// The trusted issuer, besides shared access signatures.
#[derive(Debug, Clone, Args)]
pub(crate) struct OidcArgs {
    /// The trusted issuer, exactly as its tokens have it in `iss`. The default is none.
    #[arg(long, value_name = "URL")]
    pub(crate) oidc_issuer: Option<String>,
    /// The URL or the file of the issuer's keys. The default is to read the URL from
    /// /.well-known/openid-configuration of the issuer.
    #[arg(long, value_name = "FILE|URL", requires = "oidc_issuer")]
    pub(super) oidc_jwks: Option<String>,
    /// The audience of valid tokens, in `aud`; may be given several times.
    #[arg(
        long,
        value_name = "AUD",
        requires = "oidc_issuer",
        default_values = ["https://servicebus.azure.net", "https://servicebus.azure.net/"]
    )]
    pub(super) oidc_audience: Vec<String>,
    /// A PEM file of authorities for the issuer's certificate, instead of the system's.
    #[arg(long, value_name = "FILE", requires = "oidc_issuer")]
    pub(super) oidc_ca: Option<PathBuf>,
}

impl OidcArgs {
    /// Returns the issuer, without keys yet, and the source of its keys; nothing if there is none.
    ///
    /// # Errors
    ///
    /// If a URL or the file of certificates cannot be used: a retry would not help.
    pub(crate) fn parse(&self) -> Result<Option<KeySource>, OidcError> {
        let Some(issuer) = &self.oidc_issuer else {
            return Ok(None);
        };
        let fetcher = Fetcher::new(self.oidc_ca.clone())?;
        let place = match &self.oidc_jwks {
            None => KeyLocation::Discovery(issuer.clone(), discovery_url(issuer)?),
            Some(text) if is_url(text) => {
                KeyLocation::Url(Url::parse(text, PlainHttp::ThisMachine)?)
            }
            Some(file) => KeyLocation::File(PathBuf::from(file)),
        };
        let source = KeySource {
            place,
            fetcher,
            endpoints: None,
        };
        Ok(Some(source))
    }

    /// Returns the issuer, without keys yet: each shard has its own.
    pub(crate) fn issuer(&self) -> Option<TokenIssuer> {
        let issuer = self.oidc_issuer.clone()?;
        Some(TokenIssuer::new(issuer, self.oidc_audience.clone()))
    }
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OidcError {
    #[error("--oidc-issuer {0} is no URL to ask for keys; --oidc-jwks can name a file or a URL")]
    IssuerIsNoUrl(String),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("cannot read {path}: {source}")]
    File {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{0} is longer than {max} bytes", max = limits::FETCHED_BYTES_MAX)]
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

/// Returns the cause of an error, which its own text leaves to its source.
fn cause(error: &JwksError) -> String {
    let cause = std::error::Error::source(error);
    cause.map_or_else(String::new, |cause| format!(" ({cause})"))
}

/// The source of keys.
#[derive(Debug)]
pub(crate) struct KeySource {
    place: KeyLocation,
    fetcher: Fetcher,
    /// Who follows the endpoints for browsers.
    endpoints: Option<watch::Sender<SignInEndpoints>>,
}

#[derive(Debug)]
enum KeyLocation {
    /// An issuer, and the URL of its configuration, which has the URL of its keys.
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
    /// Returns the issuer's endpoints for browsers, which are known as soon as its configuration was read.
    pub(crate) fn follow_endpoints(&mut self) -> watch::Receiver<SignInEndpoints> {
        let reason = format!("{} was not read yet", self.name());
        let (sender, receiver) = watch::channel(SignInEndpoints::Unknown(reason));
        self.endpoints = Some(sender);
        receiver
    }

    /// Returns the current keys.
    async fn keys(&self, within: Duration) -> Result<Keys, OidcError> {
        let read = async {
            match &self.place {
                KeyLocation::Discovery(issuer, url) => {
                    let keys = self.discover(issuer, url).await?;
                    Ok(self.fetcher.get(&keys).await?)
                }
                KeyLocation::Url(url) => Ok(self.fetcher.get(url).await?),
                KeyLocation::File(path) => read_file(path.clone()).await,
            }
        };
        let document = tokio::time::timeout(within, read).await;
        let document = document.map_err(|_| OidcError::TooSlow {
            place: self.name(),
            within,
        })??;
        // The same check as at their use, so that a malformed key set is retried soon.
        let mut scratch = TokenIssuer::new(String::new(), Vec::new());
        match scratch.set_keys(&document) {
            Ok(usable) => Ok(Keys { document, usable }),
            Err(source) => Err(OidcError::Keys {
                place: self.name(),
                source,
            }),
        }
    }

    /// Returns the URL of an issuer's keys, from its configuration.
    async fn discover(&self, issuer: &str, url: &Url) -> Result<Url, OidcError> {
        #[derive(Deserialize)]
        struct Configuration {
            issuer: String,
            jwks_uri: String,
            #[serde(flatten)]
            browser: endpoints::BrowserMembers,
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
        if let Some(followed) = &self.endpoints {
            endpoints::publish(followed, url, &found.browser);
        }
        Ok(url.lead_to(&found.jwks_uri)?)
    }

    fn name(&self) -> String {
        match &self.place {
            KeyLocation::Discovery(_, url) | KeyLocation::Url(url) => url.to_string(),
            KeyLocation::File(path) => path.display().to_string(),
        }
    }

    fn pace(&self) -> Pace {
        match &self.place {
            KeyLocation::Discovery(..) | KeyLocation::Url(_) => Pace::NET,
            KeyLocation::File(_) => Pace::FILE,
        }
    }
}

/// How often keys are fetched.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// After a success.
    refresh: Duration,
    /// On request, counted from the last fetch.
    wanted: Duration,
    /// After the first failure; each further one doubles it.
    retry_first: Duration,
    retry_max: Duration,
    /// The time-out of one fetch.
    within: Duration,
}

impl Pace {
    const NET: Self = Self {
        refresh: limits::ISSUER_REFRESH.as_duration(),
        wanted: limits::ISSUER_REQUEST_PAUSE.as_duration(),
        retry_first: limits::ISSUER_RETRY_FIRST.as_duration(),
        retry_max: limits::ISSUER_RETRY_MAX.as_duration(),
        within: limits::ISSUER_FETCH_WAIT.as_duration(),
    };
    /// Reading a file is cheap.
    const FILE: Self = Self {
        refresh: limits::ISSUER_FILE_REFRESH.as_duration(),
        wanted: limits::ISSUER_FILE_REQUEST_PAUSE.as_duration(),
        retry_max: limits::ISSUER_FILE_REFRESH.as_duration(),
        ..Self::NET
    };

    /// Returns the delay after a number of consecutive failures.
    fn retry(self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1));
        let wait = doubled.and_then(|times| self.retry_first.checked_mul(times));
        wait.map_or(self.retry_max, |wait| wait.min(self.retry_max))
    }
}

/// Publishes the keys of a source at first and on every change, until the stop. `wanted` makes the
/// next fetch sooner.
pub(crate) async fn keep_keys(
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
        last_warning: String::new(),
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
            // If the other branch wakes first, the keys are fetched all the same.
            () = asked => debug!(place = keeper.place, "a token names an unknown key: fetching the issuer's keys"),
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
    }
}

/// The state of the fetches so far.
struct Keeper {
    place: String,
    published: Option<String>,
    failures: u32,
    /// The last failure that was logged: repetitions are not logged.
    last_warning: String,
}

impl Keeper {
    fn found(&mut self, keys: Keys, publish: impl Fn(String)) {
        if self.published.as_ref() != Some(&keys.document) {
            info!(
                place = self.place,
                keys = keys.usable,
                "read the issuer's keys"
            );
            publish(keys.document.clone());
            self.published = Some(keys.document);
        } else if 0 < self.failures {
            info!(place = self.place, "the issuer's keys are available again");
        }
        self.failures = 0;
        self.last_warning.clear();
    }

    fn failed(&mut self, error: &OidcError) {
        let text = error.to_string();
        self.failures = self.failures.saturating_add(1);
        if self.last_warning == text {
            debug!("{text}");
            return;
        }
        match self.published {
            Some(_) => warn!("{text}; the last keys of the issuer stay in use"),
            None => warn!("{text}; tokens of the issuer are refused until its keys are available"),
        }
        self.last_warning = text;
    }
}

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

/// Returns the URL of an issuer's configuration (`OpenID` Connect Discovery 1.0, 4).
fn discovery_url(issuer: &str) -> Result<Url, OidcError> {
    if !is_url(issuer) || issuer.contains(['?', '#']) {
        return Err(OidcError::IssuerIsNoUrl(issuer.to_owned()));
    }
    let base = issuer.strip_suffix('/').unwrap_or(issuer);
    let url = format!("{base}/.well-known/openid-configuration");
    Ok(Url::parse(&url, PlainHttp::ThisMachine)?)
}

async fn read_file(path: PathBuf) -> Result<String, OidcError> {
    let read = tokio::task::spawn_blocking({
        let path = path.clone();
        move || read_bounded(&path)
    });
    let read = read.await.unwrap_or_else(|error| Err(error.into()));
    match read {
        Ok(text) if text.len() <= limits::FETCHED_BYTES_MAX => Ok(text),
        Ok(_) => Err(OidcError::FileTooLong(path)),
        Err(source) => Err(OidcError::File { path, source }),
    }
}

/// Reads a file, up to one byte beyond the bound.
fn read_bounded(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let bytes_max = u64::try_from(limits::FETCHED_BYTES_MAX).unwrap_or(u64::MAX);
    let file = std::fs::File::open(path)?;
    file.take(bytes_max.saturating_add(1))
        .read_to_string(&mut text)?;
    Ok(text)
}
