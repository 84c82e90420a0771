//! How the web console may sign in: the information that the server gives a browser before the browser has a credential.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde::Serialize;
use tokio::sync::watch;

use crate::host::oidc::{KeySource, OidcArgs, SignInEndpoints};
use jitney_broker::access::Profile;

/// The web console.
#[derive(Debug, Clone, Args)]
pub(crate) struct ConsoleArgs {
    /// The client ID of the web console at the issuer, as a public client: it signs in there, by authorization code with
    /// PKCE. The endpoints are those of the issuer's /.well-known/openid-configuration.
    #[arg(long, value_name = "ID", requires = "oidc_issuer", conflicts_with = "oidc_jwks",
        value_parser = NonEmptyStringValueParser::new())]
    pub(super) console_client_id: Option<String>,
    /// The scope that the web console asks the issuer for.
    #[arg(long, value_name = "SCOPE", requires = "console_client_id", default_value = "openid profile",
        value_parser = NonEmptyStringValueParser::new())]
    pub(super) console_scope: String,
}

/// How the console may sign in.
#[derive(Debug)]
pub(crate) struct ConsoleSignIn {
    /// No credential is needed.
    is_open: bool,
    client: Option<IssuerClient>,
}

/// The console as a client of the issuer.
#[derive(Debug)]
struct IssuerClient {
    issuer: String,
    id: String,
    scope: String,
    endpoints: watch::Receiver<SignInEndpoints>,
}

/// The information for the console; all of it is public.
#[derive(Debug, Serialize)]
struct SignInDocument<'a> {
    open: bool,
    oidc: Option<OidcDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct OidcDocument<'a> {
    issuer: &'a str,
    client_id: &'a str,
    scope: &'a str,
    authorization_endpoint: Option<&'a str>,
    token_endpoint: Option<&'a str>,
    /// Why there are no endpoints.
    unavailable: Option<&'a str>,
}

impl ConsoleSignIn {
    /// Asks the source of the issuer's keys for the endpoints too, if the console is a client of the issuer.
    pub(crate) fn new(
        args: &ConsoleArgs,
        oidc: &OidcArgs,
        profile: Profile,
        source: Option<&mut KeySource>,
    ) -> Self {
        let client = || {
            Some(IssuerClient {
                id: args.console_client_id.clone()?,
                issuer: oidc.oidc_issuer.clone()?,
                scope: args.console_scope.clone(),
                endpoints: source?.follow_endpoints(),
            })
        };
        Self {
            is_open: profile == Profile::Development,
            client: client(),
        }
    }

    /// Returns whether no credential is needed.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the information for the browser, in JSON.
    pub(crate) fn document(&self) -> String {
        let known = self.client.as_ref().map(|client| client.endpoints.borrow());
        let oidc = self.client.as_ref().zip(known.as_deref());
        let oidc = oidc.map(|(client, known)| {
            let (endpoints, unavailable) = match known {
                SignInEndpoints::Known(endpoints) => (Some(endpoints), None),
                SignInEndpoints::Unknown(reason) => (None, Some(reason.as_str())),
            };
            OidcDocument {
                issuer: &client.issuer,
                client_id: &client.id,
                scope: &client.scope,
                authorization_endpoint: endpoints.map(|it| it.authorization.as_str()),
                token_endpoint: endpoints.map(|it| it.token.as_str()),
                unavailable,
            }
        });
        let open = self.is_open;
        let document = serde_json::to_string(&SignInDocument { open, oidc });
        document.expect("texts and a truth value are JSON")
    }

    /// Returns the origin besides its own that the console asks.
    pub(crate) fn origin(&self) -> Option<String> {
        match &*self.client.as_ref()?.endpoints.borrow() {
            SignInEndpoints::Known(endpoints) => Some(endpoints.token_origin.clone()),
            SignInEndpoints::Unknown(_) => None,
        }
    }

    /// One without an issuer.
    #[cfg(test)]
    pub(crate) fn none(profile: Profile) -> Self {
        Self {
            is_open: profile == Profile::Development,
            client: None,
        }
    }

    /// One with an issuer, whose endpoints are told on the returned channel.
    #[cfg(test)]
    pub(crate) fn at(issuer: &str) -> (Self, watch::Sender<SignInEndpoints>) {
        let (sender, endpoints) = watch::channel(SignInEndpoints::Unknown("not asked".to_owned()));
        let client = Some(IssuerClient {
            issuer: issuer.to_owned(),
            id: "console".to_owned(),
            scope: "openid".to_owned(),
            endpoints,
        });
        let is_open = false;
        (Self { is_open, client }, sender)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;
    use crate::host::oidc::Endpoints;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        console: ConsoleArgs,
        #[command(flatten)]
        oidc: OidcArgs,
    }

    fn parsed(words: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["serve"].iter().chain(words))
    }

    fn sign_in(args: &Cli) -> ConsoleSignIn {
        let mut source = args.oidc.parse().unwrap();
        ConsoleSignIn::new(
            &args.console,
            &args.oidc,
            Profile::Verified,
            source.as_mut(),
        )
    }

    fn told(sign_in: &ConsoleSignIn) -> Value {
        serde_json::from_str(&sign_in.document()).unwrap()
    }

    #[test]
    fn a_client_needs_an_issuer_whose_configuration_is_read() {
        let text = parsed(&["--console-client-id", "c"])
            .unwrap_err()
            .to_string();
        assert!(text.contains("--oidc-issuer"), "{text}");
        let issuer = ["--oidc-issuer", "https://login.example"];
        let text = parsed(&[&issuer[..], &["--console-scope", "x"]].concat());
        let text = text.unwrap_err().to_string();
        assert!(text.contains("--console-client-id"), "{text}");
        let client = [&issuer[..], &["--console-client-id", "c"]].concat();
        let with_file = parsed(&[&client[..], &["--oidc-jwks", "keys.json"]].concat());
        let text = with_file.unwrap_err().to_string();
        assert!(text.contains("--oidc-jwks"), "{text}");
        let empty = [&issuer[..], &["--console-client-id", ""]].concat();
        assert!(parsed(&empty).is_err());

        let oidc = &told(&sign_in(&parsed(&client).unwrap()))["oidc"];
        assert_eq!(oidc["client_id"], "c");
        assert_eq!(oidc["scope"], "openid profile");
        let reason = oidc["unavailable"].as_str().unwrap();
        assert!(
            reason.contains("https://login.example/.well-known/"),
            "{reason}"
        );
        let without = sign_in(&parsed(&issuer).unwrap());
        assert_eq!(told(&without), json!({"open": false, "oidc": null}));
    }

    #[test]
    fn a_browser_is_told_how_to_sign_in() {
        let open = ConsoleSignIn::none(Profile::Development);
        assert_eq!(told(&open), json!({"open": true, "oidc": null}));
        assert_eq!(open.origin(), None);
        let (sign_in, endpoints) = ConsoleSignIn::at("https://login.example");
        let mut expected = json!({
            "issuer": "https://login.example", "client_id": "console", "scope": "openid",
            "authorization_endpoint": null, "token_endpoint": null, "unavailable": "not asked",
        });
        assert_eq!(told(&sign_in), json!({"open": false, "oidc": expected}));
        assert_eq!(sign_in.origin(), None);
        endpoints.send_replace(SignInEndpoints::Known(Endpoints {
            authorization: "https://login.example/a".to_owned(),
            token: "https://login.example/t".to_owned(),
            token_origin: "https://login.example".to_owned(),
        }));
        expected["authorization_endpoint"] = json!("https://login.example/a");
        expected["token_endpoint"] = json!("https://login.example/t");
        expected["unavailable"] = Value::Null;
        assert_eq!(told(&sign_in), json!({"open": false, "oidc": expected}));
        assert_eq!(sign_in.origin().unwrap(), "https://login.example");
    }
}
