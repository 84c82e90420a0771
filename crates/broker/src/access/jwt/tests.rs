//! Tokens, good ones and each kind of broken one, made with keys of these tests.

use std::sync::LazyLock;

use crate::limits;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256,
    RSA_PSS_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair, RsaPublicKeyComponents,
};
use aws_lc_rs::{digest, hmac};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use super::*;

const ISSUER: &str = "https://login.example/tenant/v2.0";
const AUDIENCE: &str = "https://servicebus.azure.net";
/// Seconds since 1970.
const NOW: i64 = 1_795_238_774;
const SKEW: i64 = 300;

const SEND_AND_LISTEN: Rights = Rights {
    manage: false,
    ..Rights::ALL
};
const SEND: Rights = Rights {
    listen: false,
    ..SEND_AND_LISTEN
};
const LISTEN: Rights = Rights {
    send: false,
    ..SEND_AND_LISTEN
};

static RSA: LazyLock<RsaKeyPair> =
    LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
static OTHER_RSA: LazyLock<RsaKeyPair> =
    LazyLock::new(|| RsaKeyPair::generate(KeySize::Rsa2048).unwrap());
static P256: LazyLock<EcdsaKeyPair> =
    LazyLock::new(|| EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap());
static P384: LazyLock<EcdsaKeyPair> =
    LazyLock::new(|| EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap());
static ED25519: LazyLock<Ed25519KeyPair> = LazyLock::new(|| Ed25519KeyPair::generate().unwrap());

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn sign_rsa(key: &RsaKeyPair, encoding: &'static dyn RsaEncoding, message: &[u8]) -> Vec<u8> {
    let mut signature = vec![0; key.public_modulus_len()];
    key.sign(encoding, &SystemRandom::new(), message, &mut signature)
        .unwrap();
    signature
}

fn sign(algorithm: &str, message: &[u8]) -> Vec<u8> {
    let random = SystemRandom::new();
    let ecdsa = |key: &EcdsaKeyPair| key.sign(&random, message).unwrap().as_ref().to_vec();
    match algorithm {
        "RS256" => sign_rsa(&RSA, &RSA_PKCS1_SHA256, message),
        "RS384" => sign_rsa(&RSA, &RSA_PKCS1_SHA384, message),
        "RS512" => sign_rsa(&RSA, &RSA_PKCS1_SHA512, message),
        "PS256" => sign_rsa(&RSA, &RSA_PSS_SHA256, message),
        "PS384" => sign_rsa(&RSA, &RSA_PSS_SHA384, message),
        "PS512" => sign_rsa(&RSA, &RSA_PSS_SHA512, message),
        "ES256" => ecdsa(&P256),
        "ES384" => ecdsa(&P384),
        "EdDSA" => ED25519.sign(message).as_ref().to_vec(),
        "HS256" => {
            // The attack: the published key as the secret.
            let secret = hmac::Key::new(hmac::HMAC_SHA256, jwks().as_bytes());
            hmac::sign(&secret, message).as_ref().to_vec()
        }
        "none" => Vec::new(),
        other => panic!("{other}"),
    }
}

fn token(header: &Value, claims: &Value) -> String {
    let message = format!(
        "{}.{}",
        encode(header.to_string()),
        encode(claims.to_string())
    );
    let signature = sign(header["alg"].as_str().unwrap(), message.as_bytes());
    format!("{message}.{}", encode(signature))
}

fn rsa_jwk(key: &RsaKeyPair, id: &str) -> Value {
    let parts = RsaPublicKeyComponents::<Vec<u8>>::from(key.public_key());
    json!({"kty": "RSA", "use": "sig", "kid": id, "n": encode(parts.n), "e": encode(parts.e)})
}

fn ec_jwk(key: &EcdsaKeyPair, curve: &str, id: &str) -> Value {
    let (x, y) = key.public_key().as_ref()[1..].split_at(if curve == "P-256" { 32 } else { 48 });
    json!({"kty": "EC", "crv": curve, "kid": id, "x": encode(x), "y": encode(y)})
}

fn ed_jwk(id: &str) -> Value {
    let key = ED25519.public_key();
    json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(key)})
}

fn jwks() -> String {
    let keys = [
        rsa_jwk(&RSA, "rsa"),
        ec_jwk(&P256, "P-256", "p256"),
        ec_jwk(&P384, "P-384", "p384"),
        ed_jwk("ed"),
    ];
    json!({ "keys": keys }).to_string()
}

fn issuer() -> TokenIssuer {
    let audiences = vec![AUDIENCE.to_owned(), format!("{AUDIENCE}/")];
    let mut issuer = TokenIssuer::new(ISSUER.to_owned(), audiences);
    assert_eq!(issuer.set_keys(&jwks()).unwrap(), 4);
    issuer
}

fn header() -> Value {
    json!({"alg": "RS256", "typ": "JWT", "kid": "rsa"})
}

fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": NOW + 3600,
        "nbf": NOW,
        "iat": NOW,
        "sub": "a client",
        "roles": ["Azure Service Bus Data Owner"],
    })
}

/// Some JSON with some members put in the place of others; null takes one away.
fn with(mut base: Value, changes: Value) -> Value {
    let members = base.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    base
}

fn verify(token: &str) -> Result<JwtClaims, String> {
    verify_with(&issuer(), token)
}

fn verify_with(issuer: &TokenIssuer, token: &str) -> Result<JwtClaims, String> {
    let verified = issuer.verify(Timestamp::from_millis(NOW * 1000), token);
    verified.map_err(|refused| refused.to_string())
}

#[track_caller]
fn refused(token: &str, expected: &str) {
    let text = verify(token).unwrap_err();
    assert!(text.starts_with(expected), "{text}");
    assert!(text.ends_with('.'), "{text} is no sentence");
    for part in token.split('.').filter(|part| !part.is_empty()) {
        assert!(!text.contains(part), "{text} shows the token");
    }
}

#[track_caller]
fn refused_claims(changes: Value, expected: &str) {
    refused(&token(&header(), &with(claims(), changes)), expected);
}

#[track_caller]
fn gives(changes: Value, expected: Rights) {
    let claims = with(claims(), changes);
    let found = verify(&token(&header(), &claims)).unwrap().rights;
    assert_eq!(found, expected, "{claims}");
}

#[test]
fn a_good_token_is_good_with_each_algorithm_of_its_key() {
    let algorithms = [
        ("RS256", "rsa"),
        ("RS384", "rsa"),
        ("RS512", "rsa"),
        ("PS256", "rsa"),
        ("PS384", "rsa"),
        ("PS512", "rsa"),
        ("ES256", "p256"),
        ("ES384", "p384"),
        ("EdDSA", "ed"),
    ];
    let expected = JwtClaims {
        rights: Rights::ALL,
        expires_at: Timestamp::from_millis((NOW + 3600 + SKEW) * 1000),
        subject: "a client".to_owned(),
    };
    for (algorithm, key) in algorithms {
        let header = json!({"alg": algorithm, "kid": key});
        assert_eq!(
            verify(&token(&header, &claims())),
            Ok(expected.clone()),
            "{algorithm}"
        );
        // Without a name, all keys that fit are tried.
        let header = json!({"alg": algorithm});
        assert_eq!(
            verify(&token(&header, &claims())),
            Ok(expected.clone()),
            "{algorithm}"
        );
    }
}

#[test]
fn roles_and_scopes_give_rights() {
    gives(
        json!({"roles": ["Azure Service Bus Data Owner"]}),
        Rights::ALL,
    );
    gives(json!({"roles": ["Data Owner"]}), Rights::ALL);
    gives(json!({"roles": ["Azure Service Bus Data Sender"]}), SEND);
    gives(json!({"roles": ["Data Sender", "unknown"]}), SEND);
    gives(
        json!({"roles": ["Azure Service Bus Data Receiver"]}),
        LISTEN,
    );
    gives(json!({"roles": "Data Receiver"}), LISTEN);
    gives(
        json!({"roles": ["Data Sender", "Data Receiver"]}),
        SEND_AND_LISTEN,
    );
    gives(json!({"roles": null, "scp": "openid Send"}), SEND);
    gives(
        json!({"roles": null, "scp": ["Listen", "Send"]}),
        SEND_AND_LISTEN,
    );
    gives(json!({"roles": null, "scope": "Listen profile"}), LISTEN);
    gives(json!({"roles": null, "scope": "Manage"}), Rights::ALL);
    gives(
        json!({"roles": ["Data Sender"], "scp": "Listen"}),
        SEND_AND_LISTEN,
    );
}

#[test]
fn a_token_without_a_known_role_is_told_which_would_be_right() {
    for changes in [
        json!({"roles": null}),
        json!({"roles": []}),
        json!({"roles": ["data owner", "Data Owner of something", "Sender"]}),
        json!({"roles": null, "scp": "send user_impersonation"}),
    ] {
        refused_claims(changes, "The token gives no right here.");
    }
    let text = verify(&token(&header(), &with(claims(), json!({"roles": null})))).unwrap_err();
    for role in [
        "Data Owner",
        "Data Sender",
        "Data Receiver",
        "Manage",
        "Send",
        "Listen",
    ] {
        assert!(text.contains(role), "{text}");
    }
}

#[test]
fn an_audience_is_one_of_those_that_are_asked_for() {
    for audience in [
        json!(AUDIENCE),
        json!(format!("{AUDIENCE}/")),
        json!(["another", AUDIENCE]),
    ] {
        gives(json!({ "aud": audience }), Rights::ALL);
    }
    for audience in [
        json!("https://vault.azure.net"),
        json!(["another"]),
        json!([]),
        json!("https://servicebus.azure.net/other"),
    ] {
        let expected = "InvalidAudience: The token is for another audience.";
        refused_claims(json!({ "aud": audience }), expected);
    }
    refused_claims(json!({"aud": null}), "InvalidAudience: ");
}

#[test]
fn the_issuer_is_compared_exactly() {
    for issuer in [
        "https://login.example/other/v2.0",
        "",
        "https://login.example/tenant/v2.0/",
    ] {
        let expected = "IssuerNotFound: The token's claim 'iss' must be";
        refused_claims(json!({ "iss": issuer }), expected);
    }
    refused_claims(json!({"iss": null}), "IssuerNotFound: ");
}

#[test]
fn a_token_has_a_time() {
    let within = |exp: i64, nbf: i64, iat: i64| {
        let changes = json!({"exp": exp, "nbf": nbf, "iat": iat});
        verify(&token(&header(), &with(claims(), changes)))
    };
    // The last moment, and the first.
    assert!(within(NOW - SKEW + 1, NOW, NOW).is_ok());
    let text = within(NOW - SKEW, NOW, NOW).unwrap_err();
    assert_eq!(
        text,
        "ExpiredToken: The token is expired. Expiration time: '11/21/2026 5:21:14 AM'."
    );
    assert!(within(NOW + 3600, NOW + SKEW, NOW + SKEW).is_ok());
    for (nbf, iat) in [(NOW + SKEW + 1, NOW), (NOW, NOW + SKEW + 1)] {
        let text = within(NOW + 3600, nbf, iat).unwrap_err();
        assert_eq!(
            text,
            "The token is not valid before '11/21/2026 5:31:15 AM'."
        );
    }
    refused_claims(
        json!({"exp": null}),
        "MalformedToken: The token has no claim 'exp'.",
    );
    refused_claims(json!({"exp": -1}), "ExpiredToken: ");
    // Only the end must be there.
    gives(json!({"nbf": null, "iat": null}), Rights::ALL);
}

#[test]
fn times_may_have_fractions_and_be_far_away() {
    let end_of = |exp: Value| {
        let claims = with(claims(), json!({ "exp": exp }));
        verify(&token(&header(), &claims)).unwrap().expires_at
    };
    let skewed = |millis| Timestamp::from_millis(millis).after(limits::TOKEN_CLOCK_SKEW);
    assert_eq!(end_of(json!(1_795_238_774.5)), skewed(1_795_238_774_500));
    assert_eq!(end_of(json!(i64::MAX)), Timestamp::MAX);
    assert_eq!(end_of(json!(u64::MAX)), Timestamp::MAX);
    for exp in [json!("2026-11-21"), json!(-0.5), json!(1e300), json!([NOW])] {
        refused_claims(json!({ "exp": exp }), "MalformedToken: ");
    }
}

#[test]
fn the_key_and_not_the_token_chooses_the_algorithm() {
    let named =
        |algorithm: &str, key: &str| token(&json!({"alg": algorithm, "kid": key}), &claims());
    let invalid = "InvalidSignature: The token has an invalid signature.";
    // The secret of the first is public.
    refused(&named("HS256", "rsa"), invalid);
    refused(&token(&json!({"alg": "HS256"}), &claims()), invalid);
    refused(&named("ES256", "rsa"), invalid);
    refused(&named("ES384", "p256"), invalid);
    refused(&named("RS256", "ed"), invalid);
    // "none" is no algorithm, and a signature must be there in any case.
    refused(
        &named("none", "rsa"),
        "InvalidSignature: The token's header must name one of",
    );
    let unsigned = token(&header(), &claims());
    let unsigned = unsigned.rsplit_once('.').unwrap().0;
    refused(
        &format!("{unsigned}."),
        "InvalidSignature: The token has no signature.",
    );
    refused(unsigned, "MalformedToken: ");
    // A key that is for one algorithm is for no other.
    let mut issuer = issuer();
    let jwk = with(rsa_jwk(&RSA, "rsa"), json!({"alg": "RS256"}));
    issuer
        .set_keys(&json!({"keys": [jwk]}).to_string())
        .unwrap();
    assert!(verify_with(&issuer, &named("RS256", "rsa")).is_ok());
    assert_eq!(
        verify_with(&issuer, &named("PS256", "rsa")),
        Err(invalid.to_owned())
    );
    assert_eq!(
        verify_with(&issuer, &named("RS512", "rsa")),
        Err(invalid.to_owned())
    );
}

#[test]
fn a_changed_token_is_not_good() {
    let good = token(&header(), &claims());
    let parts: Vec<&str> = good.split('.').collect();
    let invalid = "InvalidSignature: The token has an invalid signature.";
    let owner = encode(with(claims(), json!({"sub": "else"})).to_string());
    refused(&format!("{}.{owner}.{}", parts[0], parts[2]), invalid);
    // The signature is over the header too.
    let changed = encode(with(header(), json!({"typ": "at+jwt"})).to_string());
    refused(&format!("{changed}.{}.{}", parts[1], parts[2]), invalid);
    let other = encode(digest::digest(&digest::SHA256, b"nothing"));
    refused(&format!("{}.{}.{other}", parts[0], parts[1]), invalid);
    // Another's signature over the same.
    let message = format!("{}.{}", parts[0], parts[1]);
    let forged = encode(sign_rsa(&OTHER_RSA, &RSA_PKCS1_SHA256, message.as_bytes()));
    refused(&format!("{message}.{forged}"), invalid);
}

#[test]
fn no_token_that_is_cut_off_anywhere_is_good() {
    let good = token(&header(), &claims());
    assert!(verify(&good).is_ok());
    let issuer = issuer();
    for length in 0..good.len() {
        let text = verify_with(&issuer, &good[..length]).unwrap_err();
        let known = [
            "MalformedToken: ",
            "InvalidSignature: ",
            "InvalidSignature: The token has no signature.",
        ];
        assert!(known.iter().any(|word| text.starts_with(word)), "{text}");
    }
}

#[test]
fn what_is_no_token_is_malformed() {
    let signature = encode(sign("RS256", b""));
    let claims = encode(claims().to_string());
    let header = encode(header().to_string());
    for text in [
        String::new(),
        ".".to_owned(),
        "..x".to_owned(),
        "SharedAccessSignature sr=a&sig=b&se=1&skn=k".to_owned(),
        format!("{claims}.{signature}"),
        format!("{header}.{claims}.{signature}.{signature}"),
        format!("{header}.{claims}.{signature}=="),
        format!("{}.{claims}.{signature}", encode("{")),
        format!("{}.{claims}.{signature}", encode([0xff, 0xfe])),
        format!("\u{fc}.{claims}.{signature}"),
    ] {
        let found = verify(&text).unwrap_err();
        assert!(found.starts_with("MalformedToken: "), "{text}: {found}");
    }
}

#[test]
fn signed_nonsense_is_malformed_too() {
    for changes in [
        json!({"iss": 7}),
        json!({"aud": {"name": AUDIENCE}}),
        json!({"roles": {"Data Owner": true}}),
        json!({"sub": ["a client"]}),
    ] {
        refused_claims(changes, "MalformedToken: ");
    }
    refused(&token(&header(), &json!("text")), "MalformedToken: ");
    // Which of the two would count?
    let header_part = encode(header().to_string());
    let twice = encode(r#"{"iss":"a","iss":"b"}"#);
    let message = format!("{header_part}.{twice}");
    let signature = encode(sign("RS256", message.as_bytes()));
    refused(&format!("{message}.{signature}"), "MalformedToken: ");
    let critical = with(header(), json!({"crit": ["b64"], "b64": false}));
    refused(
        &token(&critical, &claims()),
        "MalformedToken: The token's header has critical",
    );
}

#[test]
fn a_huge_token_is_not_looked_at() {
    let padded = |length: usize| {
        let claims = with(claims(), json!({"padding": "x".repeat(length)}));
        token(&header(), &claims)
    };
    // Three bytes are four characters.
    let fits = padded(limits::TOKEN_BYTES_MAX * 3 / 4 - 700);
    assert!(
        fits.len() <= limits::TOKEN_BYTES_MAX && limits::TOKEN_BYTES_MAX - fits.len() < 400,
        "{}",
        fits.len()
    );
    assert!(verify(&fits).is_ok());
    let text = verify(&padded(limits::TOKEN_BYTES_MAX * 3 / 4)).unwrap_err();
    assert_eq!(
        text,
        "MalformedToken: The token is longer than 16384 bytes."
    );
}

#[test]
fn only_a_token_of_ours_with_an_unknown_key_makes_keys_wanted() {
    let issuer = issuer();
    let shown = |header: Value, claims: Value| {
        let text = verify_with(&issuer, &token(&header, &claims)).unwrap_err();
        (text, issuer.wants_keys())
    };
    let unknown = with(header(), json!({"kid": "new"}));
    let (text, wanted) = shown(unknown.clone(), claims());
    assert!(
        text.starts_with("InvalidSignature: The token's signing key is none"),
        "{text}"
    );
    assert!(wanted);
    assert!(!issuer.wants_keys(), "it is told once");
    // Another issuer's keys are not fetched, nor are any for a token that is just wrong.
    let (_, wanted) = shown(unknown, with(claims(), json!({"iss": "https://else"})));
    assert!(!wanted);
    let (_, wanted) = shown(header(), with(claims(), json!({"exp": 1})));
    assert!(!wanted);
    let (_, wanted) = shown(with(header(), json!({"alg": "ES256"})), claims());
    assert!(!wanted);
    let (_, wanted) = shown(json!({"alg": "none", "kid": "new"}), claims());
    assert!(!wanted);
}

#[test]
fn without_keys_nothing_is_good() {
    let mut issuer = TokenIssuer::new(ISSUER.to_owned(), vec![AUDIENCE.to_owned()]);
    let token = token(&header(), &claims());
    let text = verify_with(&issuer, &token).unwrap_err();
    assert!(
        text.starts_with("InvalidSignature: The keys of the issuer"),
        "{text}"
    );
    issuer.set_keys(&jwks()).unwrap();
    assert!(!issuer.wants_keys(), "what was wanted has come");
    assert!(verify_with(&issuer, &token).is_ok());
}

#[test]
fn keys_that_cannot_be_used_are_passed_over() {
    let usable = |keys: Value| {
        let mut issuer = TokenIssuer::new(ISSUER.to_owned(), Vec::new());
        issuer.set_keys(&json!({ "keys": keys }).to_string())
    };
    let rsa = || rsa_jwk(&RSA, "rsa");
    assert_eq!(usable(json!([rsa()])).unwrap(), 1);
    assert_eq!(
        usable(json!([with(rsa(), json!({"use": null}))])).unwrap(),
        1
    );
    assert_eq!(
        usable(json!([with(rsa(), json!({"key_ops": ["verify"]}))])).unwrap(),
        1
    );
    let short = encode([0xff; 255]);
    let padded = encode([[0; 128], [0xff; 128]].concat());
    let p256 = || ec_jwk(&P256, "P-256", "p256");
    let useless = json!([
        with(rsa(), json!({"use": "enc"})),
        with(rsa(), json!({"use": "else"})),
        with(rsa(), json!({"key_ops": ["encrypt"]})),
        with(rsa(), json!({"alg": "RSA-OAEP"})),
        with(rsa(), json!({"alg": "HS256"})),
        with(rsa(), json!({"alg": "ES256"})),
        with(rsa(), json!({"n": short})),
        with(rsa(), json!({"n": padded})),
        with(rsa(), json!({"n": "not base64!"})),
        with(rsa(), json!({"n": encode([0xff; 1025])})),
        with(rsa(), json!({"e": encode([1])})),
        with(rsa(), json!({"e": encode([0, 1])})),
        with(rsa(), json!({"e": encode([1, 0])})),
        with(rsa(), json!({"e": ""})),
        with(rsa(), json!({"e": null})),
        with(rsa(), json!({"kid": 7})),
        with(p256(), json!({"crv": "secp256k1"})),
        with(p256(), json!({"crv": "P-384"})),
        with(p256(), json!({"crv": "P-521"})),
        with(p256(), json!({"x": encode([1; 31])})),
        with(ed_jwk("ed"), json!({"crv": "Ed448"})),
        with(ed_jwk("ed"), json!({"x": encode([1; 57])})),
        {"kty": "oct", "kid": "secret", "k": encode([1; 32])},
        {"kty": "oct", "kid": "secret", "k": encode([1; 32]), "alg": "HS256", "use": "sig"},
        {"kty": "AKP", "kid": "future", "pub": "x"},
        "text",
        null,
    ]);
    for key in useless.as_array().unwrap() {
        let found = usable(json!([key]));
        assert!(
            matches!(found, Err(JwksError::NoUsableKey(1))),
            "{key}: {found:?}"
        );
        assert_eq!(usable(json!([key, p256()])).unwrap(), 1, "{key}");
    }
}

#[test]
fn a_bad_key_set_leaves_the_keys_from_before() {
    let mut issuer = issuer();
    let many: Vec<Value> = (0..33).map(|at| ed_jwk(&at.to_string())).collect();
    let many = json!({ "keys": many }).to_string();
    for bad in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"keys":7}"#,
        r#"{"keys":[]}"#,
        &many,
    ] {
        assert!(issuer.set_keys(bad).is_err(), "{bad}");
    }
    assert!(verify_with(&issuer, &token(&header(), &claims())).is_ok());
    // A good one takes their place.
    let jwks = json!({"keys": [rsa_jwk(&OTHER_RSA, "rsa")]}).to_string();
    assert_eq!(issuer.set_keys(&jwks).unwrap(), 1);
    assert!(verify_with(&issuer, &token(&header(), &claims())).is_err());
}

#[test]
fn keys_of_one_name_are_all_tried() {
    let mut issuer = issuer();
    let keys = [rsa_jwk(&OTHER_RSA, "rsa"), rsa_jwk(&RSA, "rsa")];
    issuer
        .set_keys(&json!({ "keys": keys }).to_string())
        .unwrap();
    assert!(verify_with(&issuer, &token(&header(), &claims())).is_ok());
}

#[test]
fn a_subject_is_short_and_of_one_line() {
    let subject_of = |changes| {
        let claims = with(claims(), changes);
        verify(&token(&header(), &claims)).unwrap().subject
    };
    assert_eq!(subject_of(json!({"sub": "a\nb\u{7}c"})), "abc");
    assert_eq!(
        subject_of(json!({"sub": "x".repeat(1000)})).len(),
        limits::TOKEN_SUBJECT_LENGTH_MAX
    );
    assert_eq!(
        subject_of(json!({"sub": null, "oid": "o", "azp": "a"})),
        "o"
    );
    assert_eq!(subject_of(json!({"sub": null, "azp": "a"})), "a");
    assert_eq!(subject_of(json!({"sub": null})), "");
}

#[test]
fn keys_are_not_shown() {
    let shown = format!("{:?}", issuer());
    assert!(
        shown.contains("keys: 4") && shown.contains(ISSUER),
        "{shown}"
    );
    let keys: Value = serde_json::from_str(&jwks()).unwrap();
    assert!(!shown.contains(keys["keys"][0]["n"].as_str().unwrap()));
}
