//! Who may do what. The seam for real verification: everything that asks about rights asks here.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "tokens are verified when profiles come")
)]
mod jwt;

use crate::amqp::Identity;

pub use jwt::{JWT_BYTES_MAX, JwksError, TokenIssuer};

/// How tokens and rights are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// For a laptop and CI: any well-formed token is good, and a peer without one may use links
    /// too, as with the emulator's well-known key.
    #[default]
    Development,
}

/// Something that a right is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Right {
    Listen,
    Send,
}

impl Profile {
    /// Returns whether a peer may use an entity.
    pub(super) fn allows(self, _identity: &Identity, _entity: &str, right: Right) -> bool {
        match (self, right) {
            (Self::Development, Right::Listen | Right::Send) => true,
        }
    }

    /// Checks a token that a peer puts.
    ///
    /// # Errors
    ///
    /// What is wrong with it, as a sentence for the client.
    pub(super) fn check_token(self, kind: &str, token: &str) -> Result<(), String> {
        match self {
            // Python names a SAS token "jwt": what it is, it says itself.
            Self::Development => match kind {
                "servicebus.windows.net:sastoken" => check_sas_shape(token),
                "jwt" if is_sas(token) => check_sas_shape(token),
                "jwt" => check_jwt_shape(token),
                other => Err(format!(
                    "InvalidTokenType: the token type '{other}' is not known; \
                     'servicebus.windows.net:sastoken' and 'jwt' are."
                )),
            },
        }
    }
}

const SAS_SCHEME: &str = "SharedAccessSignature ";

fn is_sas(token: &str) -> bool {
    let scheme = token.get(..SAS_SCHEME.len());
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(SAS_SCHEME))
}

/// `SharedAccessSignature sr=..&sig=..&se=..&skn=..`, in any order (`protocol.md` §2.5).
fn check_sas_shape(token: &str) -> Result<(), String> {
    let malformed = |what: &str| {
        Err(format!(
            "MalformedToken: The SAS token is malformed: {what}."
        ))
    };
    let Some(fields) = token.get(SAS_SCHEME.len()..).filter(|_| is_sas(token)) else {
        return malformed("it does not begin with 'SharedAccessSignature '");
    };
    for name in ["sr", "sig", "se", "skn"] {
        let mut values = fields.split('&').filter_map(|field| {
            field
                .split_once('=')
                .filter(|(key, _)| *key == name)
                .map(|(_, value)| value)
        });
        let Some(value) = values.next().filter(|value| !value.is_empty()) else {
            return malformed(&format!("the field '{name}' is missing"));
        };
        if values.next().is_some() {
            return malformed(&format!("the field '{name}' stands twice"));
        }
        if name == "se" && value.parse::<i64>().is_err() {
            return malformed("the field 'se' is not a number of seconds");
        }
    }
    Ok(())
}

fn check_jwt_shape(token: &str) -> Result<(), String> {
    let parts: Vec<&str> = token.split('.').collect();
    if parts.len() == 3 && parts.iter().take(2).all(|part| !part.is_empty()) {
        Ok(())
    } else {
        Err("MalformedToken: The JWT is malformed: it does not have three parts.".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(token: &str, expected: Result<(), &str>) {
        let found = Profile::Development.check_token("servicebus.windows.net:sastoken", token);
        match (found, expected) {
            (Ok(()), Ok(())) => {}
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{found}"),
            (found, expected) => panic!("{token}: {found:?}, and {expected:?} was expected"),
        }
    }

    #[test]
    fn a_token_has_four_fields_in_any_order() {
        check("SharedAccessSignature sr=a&sig=b&se=1&skn=k", Ok(()));
        check("sharedaccesssignature skn=k&se=1&sig=b%3D&sr=a", Ok(()));
        check(
            "SharedAccessSignature sr=a&sig=b&se=1",
            Err("'skn' is missing"),
        );
        check(
            "SharedAccessSignature sr=a&sr=a&sig=b&se=1&skn=k",
            Err("'sr' stands twice"),
        );
        check(
            "SharedAccessSignature sr=a&sig=b&se=x&skn=k",
            Err("'se' is not a number"),
        );
        check("Bearer x", Err("does not begin"));
    }
}
