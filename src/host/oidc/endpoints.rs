//! Where a browser signs in: the endpoints in the issuer's configuration that the console uses.
//!
//! The broker itself asks none of them. It tells the console their URLs, and the browser that the console may ask the
//! one for tokens.

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::net::fetch::{FetchError, Url};

/// The members of an issuer's configuration that matter to browsers. One that is wrong must not make the keys unusable, so they
/// are checked when they are needed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct BrowserMembers {
    #[serde(default)]
    authorization_endpoint: Value,
    #[serde(default)]
    token_endpoint: Value,
}

/// The endpoints of the authorization code flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoints {
    pub(crate) authorization: String,
    pub(crate) token: String,
    /// The origin of the token endpoint, in the form of a Content-Security-Policy.
    pub(crate) token_origin: String,
}

/// What is known of the endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInEndpoints {
    Known(Endpoints),
    /// Why there are none.
    Unknown(String),
}

#[derive(Debug, thiserror::Error)]
enum EndpointError {
    #[error("{url} has no {member}")]
    Missing { url: String, member: &'static str },
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(
        "a browser cannot be allowed to ask {0}: its host is not a name of letters, digits, hyphens and dots, or an IPv4 address"
    )]
    Host(String),
}

/// Publishes what a configuration says, and logs it when it is another than before.
pub(super) fn publish(to: &watch::Sender<SignInEndpoints>, from: &Url, members: &BrowserMembers) {
    let found = match members.endpoints(from) {
        Ok(endpoints) => SignInEndpoints::Known(endpoints),
        Err(error) => SignInEndpoints::Unknown(error.to_string()),
    };
    to.send_if_modified(|known| {
        if *known == found {
            return false;
        }
        match &found {
            SignInEndpoints::Known(it) => info!(
                authorization = it.authorization,
                token = it.token,
                "the console can sign in at the issuer"
            ),
            SignInEndpoints::Unknown(reason) => {
                warn!("{reason}; the console cannot sign in at the issuer");
            }
        }
        *known = found;
        true
    });
}

impl BrowserMembers {
    /// Returns the endpoints: https, or http on this machine, as the configuration.
    fn endpoints(&self, from: &Url) -> Result<Endpoints, EndpointError> {
        let url = |member: &'static str, value: &Value| {
            let text = value.as_str().ok_or_else(|| EndpointError::Missing {
                url: from.to_string(),
                member,
            })?;
            Ok::<_, EndpointError>(from.lead_to(text)?)
        };
        let authorization = url("authorization_endpoint", &self.authorization_endpoint)?;
        let token = url("token_endpoint", &self.token_endpoint)?;
        let token_origin = token.origin();
        Ok(Endpoints {
            authorization: authorization.to_string(),
            token_origin: token_origin.ok_or_else(|| EndpointError::Host(token.to_string()))?,
            token: token.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::net::fetch::PlainHttp;

    fn issuer_url(text: &str) -> Url {
        Url::parse(text, PlainHttp::ThisMachine).unwrap()
    }

    fn published(issuer: &str, configuration: Value) -> SignInEndpoints {
        let (sender, receiver) = watch::channel(SignInEndpoints::Unknown("not asked".to_owned()));
        let members = serde_json::from_value(configuration).unwrap();
        publish(&sender, &issuer_url(issuer), &members);
        receiver.borrow().clone()
    }

    #[test]
    fn endpoints_are_those_of_the_configuration() {
        let found = published(
            "https://login.example/.well-known/openid-configuration",
            json!({
                "authorization_endpoint": "https://login.example/authorize?tenant=1",
                "token_endpoint": "https://Tokens.Example:8443/token",
            }),
        );
        let expected = Endpoints {
            authorization: "https://login.example/authorize?tenant=1".to_owned(),
            token: "https://Tokens.Example:8443/token".to_owned(),
            token_origin: "https://tokens.example:8443".to_owned(),
        };
        assert_eq!(found, SignInEndpoints::Known(expected));
    }

    #[test]
    fn an_origin_is_one_source_of_a_policy_and_nothing_more() {
        for (token, origin) in [
            ("https://a.example", Some("https://a.example")),
            ("https://a.example:443/t", Some("https://a.example")),
            ("https://10.0.0.1:8443/t", Some("https://10.0.0.1:8443")),
            ("https://[2001:db8::1]/t", None),
            ("https://a;script-src/t", None),
            ("https://a,b/t", None),
            ("https://*/t", None),
            ("https://'unsafe-inline'/t", None),
        ] {
            let found = published(
                "https://login.example/c",
                json!({"authorization_endpoint": "/a", "token_endpoint": token}),
            );
            let found = match found {
                SignInEndpoints::Known(endpoints) => Some(endpoints.token_origin),
                SignInEndpoints::Unknown(reason) => {
                    assert!(reason.contains("cannot be allowed"), "{reason}");
                    None
                }
            };
            assert_eq!(found.as_deref(), origin, "{token}");
        }
    }

    #[test]
    fn endpoints_that_are_missing_or_unsafe_are_told() {
        for (authorization, token, expected) in [
            (json!(null), json!("/t"), "has no authorization_endpoint"),
            (json!("/a"), json!(7), "has no token_endpoint"),
            (
                json!("/a"),
                json!("http://login.example/t"),
                "must be https",
            ),
            (json!("javascript:alert(1)"), json!("/t"), "is not a URL"),
            (
                json!("/a"),
                json!("https://me@login.example/t"),
                "is not a URL",
            ),
        ] {
            let configuration =
                json!({"authorization_endpoint": authorization, "token_endpoint": token});
            match published("https://login.example/c", configuration) {
                SignInEndpoints::Unknown(reason) => assert!(reason.contains(expected), "{reason}"),
                SignInEndpoints::Known(it) => panic!("{it:?}"),
            }
        }
    }
}
