//! The authentication profile: whether keys and tokens are verified.

use clap::{Args, ValueEnum};
use tracing::warn;

use crate::host::oidc::OidcArgs;
use crate::host::root_key::KeysError;
use crate::net::listen::{Listener, METRICS};
use jitney_broker::access::Profile;
use jitney_config::Configuration;

/// Authentication.
#[derive(Debug, Clone, Args)]
pub(super) struct AuthArgs {
    /// Authentication.
    #[arg(long, value_enum, default_value_t = AuthArg::Auto)]
    pub(super) auth: AuthArg,
    /// Accept any key also on listeners beyond loopback: for containers and closed networks.
    #[arg(long)]
    pub(super) allow_any_key_beyond_loopback: bool,
}

/// `--auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AuthArg {
    /// As sas if the configuration has authorization rules, or if there is a listener beyond
    /// loopback; else as development.
    Auto,
    /// Any key is accepted for everything, as in the emulator.
    Development,
    /// Keys and tokens are verified. Without authorization rules in the configuration a key is made
    /// on the first start, and logged once.
    Sas,
}

/// Decides the authentication profile, and warns if any key is accepted from other machines.
///
/// # Errors
///
/// If any key would be accepted beyond loopback without the operator's consent.
pub(super) fn profile(
    args: &AuthArgs,
    oidc: &OidcArgs,
    config: &Configuration,
    listeners: &[Listener],
) -> Result<Profile, KeysError> {
    // The addresses of metrics accept no keys, and answer no request for messages or entities.
    let outside = listeners
        .iter()
        .filter(|listener| listener.flag != METRICS && !listener.address.ip().is_loopback());
    let outside: Vec<String> = outside
        .map(|listener| listener.address.to_string())
        .collect();
    let may_be_open = outside.is_empty() || args.allow_any_key_beyond_loopback;
    let is_verified = config.has_authorization() || oidc.oidc_issuer.is_some();
    let profile = match args.auth {
        AuthArg::Development if !may_be_open => {
            return Err(KeysError::Open(outside.join(", ")));
        }
        AuthArg::Development => Profile::Development,
        AuthArg::Auto if may_be_open && !is_verified => Profile::Development,
        AuthArg::Auto | AuthArg::Sas => Profile::Verified,
    };
    if profile == Profile::Development && !outside.is_empty() {
        warn!("any key is accepted for everything, also from other machines (--auth development)");
    }
    Ok(profile)
}
