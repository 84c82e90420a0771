//! The web console: files for a browser, at `/` and below [`PREFIX`].
//!
//! They are the same for all clients and hold no secret. What they show comes from the JSON API, with the credentials of the
//! reader. Debug builds read them from the source tree at each request; release builds have them inside.
//!
//! The page names its files below a directory whose name is a digest of all of them, so that browsers keep them for good and
//! a reload asks for the page alone. Files import one another by relative paths, and so stay in that directory.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use aws_lc_rs::digest;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use rust_embed::RustEmbed;

use super::request::pairs;
use super::sign_in::ConsoleSignIn;

/// The beginning of the paths of the files. No entity has such a name: they do not begin with a dollar sign.
const PREFIX: &str = "/$console/";
/// The page.
const PAGE: &str = "index.html";

/// Nothing comes from elsewhere, nothing that is part of a page is run, and no other page shows it in a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The part of the policy that names what the page asks.
const ASKED: &str = "connect-src 'self'";
/// How a browser may sign in, below [`PREFIX`].
const SIGN_IN: &str = "sign-in.json";

/// What every answer says.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    // A browser asks whether it has the newest version, except of what is below the directory of a version.
    (header::CACHE_CONTROL, "no-cache"),
    (header::VARY, "accept-encoding"),
];

/// How long a browser keeps a file below the directory of a version: it never becomes another one.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Bytes of the digest in the name of the directory of a version.
const VERSION_BYTES: usize = 8;

#[derive(RustEmbed)]
#[folder = "src/console/"]
struct Files;

/// The name of the directory of this version. Debug builds have none, because their files change.
static VERSION: LazyLock<Option<String>> =
    LazyLock::new(|| (!cfg!(debug_assertions)).then(|| version_of(&mut served())));

/// A file as it is sent.
struct Asset {
    /// Of the file in the source tree.
    digest: [u8; 32],
    /// Names the contents.
    tag: String,
    kind: &'static str,
    plain: Bytes,
    gzip: Bytes,
}

/// Assets that were asked for, by their path.
static KEPT: Mutex<BTreeMap<String, Arc<Asset>>> = Mutex::new(BTreeMap::new());

/// Returns the file that a request is for. What names a version of the administration API is for an entity.
pub(crate) fn path_of<'a>(method: &Method, uri: &'a Uri) -> Option<&'a str> {
    let is_read = *method == Method::GET || *method == Method::HEAD;
    if !is_read || pairs(uri).any(|(name, _)| name == "api-version") {
        return None;
    }
    match uri.path() {
        "/" => Some(PAGE),
        path => path.strip_prefix(PREFIX),
    }
}

/// Answers with a file, or with how to sign in. The page may ask the issuer for tokens, if the console signs in there.
pub(crate) fn answer(sign_in: &ConsoleSignIn, path: &str, parts: &Parts) -> Response {
    if path == SIGN_IN {
        let kind = [(header::CONTENT_TYPE, "application/json")];
        let response = (kind, sign_in.document()).into_response();
        return with_headers(response, Some(HeaderValue::from_static(POLICY)));
    }
    let (version, path) = parted(path);
    let Some(asset) = asset(path) else {
        let text = format!("There is nothing at {PREFIX} with this name.\n");
        let response = (StatusCode::NOT_FOUND, text).into_response();
        return with_headers(response, Some(HeaderValue::from_static(POLICY)));
    };
    let issuer = sign_in.origin().filter(|_| path == PAGE);
    let tag = asset.tag(issuer.as_deref());
    let is_known = parts.headers.get(header::IF_NONE_MATCH);
    let is_known = is_known.and_then(|tags| tags.to_str().ok());
    let is_known = is_known.is_some_and(|tags| tags.split(',').any(|one| is_same(one, &tag)));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        asset.response(coding(&parts.headers))
    };
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    let mut response = with_headers(response, asset.policy(issuer.as_deref()));
    // Another server's version may be asked for while servers are upgraded: what this one sends for it is not kept. The
    // policy of the page may change.
    if path != PAGE && version.is_some() && version == VERSION.as_deref() {
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, IMMUTABLE);
    }
    response
}

/// Parts the directory of a version, of this server or of another, from the path in it.
fn parted(path: &str) -> (Option<&str>, &str) {
    let is_version = |name: &str| {
        name.len() == 2 * VERSION_BYTES && name.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    match path.split_once('/') {
        Some((version, rest)) if is_version(version) => (Some(version), rest),
        _ => (None, path),
    }
}

/// Returns the paths and digests of the files that browsers use.
fn served() -> impl Iterator<Item = (String, [u8; 32])> {
    let paths = Files::iter().filter(|path| kind_of(path).is_some());
    paths.filter_map(|path| {
        let file = Files::get(&path)?;
        Some((path.into_owned(), file.metadata.sha256_hash()))
    })
}

/// Returns the name of the directory of a version: it changes with each path and each byte.
fn version_of(files: &mut dyn Iterator<Item = (String, [u8; 32])>) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    for (path, digest) in files {
        // A path has no line feed, and a digest has a fixed length.
        context.update(path.as_bytes());
        context.update(b"\n");
        context.update(&digest);
    }
    hexadecimal(context.finish().as_ref(), VERSION_BYTES)
}

fn hexadecimal(bytes: &[u8], most: usize) -> String {
    bytes
        .iter()
        .take(most)
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Returns the page with its files below the directory of a version.
fn in_version(page: &[u8], version: &str) -> Bytes {
    let page = String::from_utf8_lossy(page);
    let below = format!("\"{PREFIX}{version}/");
    page.replace(&format!("\"{PREFIX}"), &below).into()
}

/// Adds the headers. A policy is that of a document; with each of many small files it would be half of what is sent.
fn with_headers(mut response: Response, policy: Option<HeaderValue>) -> Response {
    let fixed = HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value)));
    let policy = policy.map(|policy| (header::CONTENT_SECURITY_POLICY, policy));
    for (name, value) in fixed.into_iter().chain(policy) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// Returns the media type of a file that browsers use. The description of the sources is not one.
fn kind_of(path: &str) -> Option<&'static str> {
    let (_, extension) = path.rsplit_once('.')?;
    match extension {
        "css" => Some("text/css; charset=utf-8"),
        "html" => Some("text/html; charset=utf-8"),
        "js" => Some("text/javascript; charset=utf-8"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

/// Returns a file that browsers use.
fn asset(path: &str) -> Option<Arc<Asset>> {
    let kind = kind_of(path)?;
    let file = Files::get(path)?;
    let digest = file.metadata.sha256_hash();
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = kept.get(path).filter(|known| known.digest == digest);
    if let Some(known) = known {
        return Some(Arc::clone(known));
    }
    let plain = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        std::borrow::Cow::Owned(bytes) => Bytes::from(bytes),
    };
    let (plain, tag) = match VERSION.as_deref().filter(|_| path == PAGE) {
        Some(version) => (in_version(&plain, version), version.to_owned()),
        None => (plain, hexadecimal(&digest, 16)),
    };
    let asset = Arc::new(Asset {
        digest,
        tag,
        kind,
        gzip: compressed(&plain),
        plain,
    });
    kept.insert(path.to_owned(), Arc::clone(&asset));
    Some(asset)
}

/// A content coding [RFC 9110, 8.4.1].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
}

fn compressed(plain: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(plain).and_then(|()| encoder.finish());
    written.expect("a vector takes all bytes").into()
}

impl Asset {
    /// Returns the policy of what browsers show as a page.
    fn policy(&self, issuer: Option<&str>) -> Option<HeaderValue> {
        let is_part = ["text/css", "text/javascript"];
        if is_part.iter().any(|kind| self.kind.starts_with(kind)) {
            return None;
        }
        let allowing = issuer.map(|issuer| POLICY.replace(ASKED, &format!("{ASKED} {issuer}")));
        let allowing = allowing.and_then(|policy| HeaderValue::from_str(&policy).ok());
        Some(allowing.unwrap_or(HeaderValue::from_static(POLICY)))
    }

    /// Names the contents, and what the policy allows besides: a browser keeps the policy of a page that did not change.
    fn tag(&self, issuer: Option<&str>) -> String {
        let mut tag = format!("\"{}", self.tag);
        if let Some(issuer) = issuer {
            let _ = write!(tag, "-{issuer}");
        }
        tag.push('"');
        tag
    }

    fn response(&self, coding: Coding) -> Response {
        let bytes = match coding {
            Coding::Identity => &self.plain,
            Coding::Gzip => &self.gzip,
        };
        let kind = [(header::CONTENT_TYPE, self.kind)];
        let mut response = (kind, bytes.clone()).into_response();
        if coding == Coding::Gzip {
            let gzip = HeaderValue::from_static("gzip");
            response
                .headers_mut()
                .insert(header::CONTENT_ENCODING, gzip);
        }
        response
    }
}

/// Compares tags weakly [RFC 9110, 8.8.3.2].
fn is_same(given: &str, tag: &str) -> bool {
    let given = given.trim();
    given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag
}

/// Returns how what is sent is coded, by what the browser accepts.
fn coding(headers: &HeaderMap) -> Coding {
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.and_then(|value| value.to_str().ok());
    let takes_gzip = accepted.unwrap_or_default().split(',').any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().trim_start_matches("q=");
        name.trim().eq_ignore_ascii_case("gzip") && weight.parse() != Ok(0.0)
    });
    if takes_gzip {
        Coding::Gzip
    } else {
        Coding::Identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::oidc::{Endpoints, SignInEndpoints};
    use axum::http::Request;
    use jitney_broker::access::Profile;

    fn answered(path: &str, headers: &[(HeaderName, &str)]) -> Response {
        let mut request = Request::get("/");
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        answer(&ConsoleSignIn::none(Profile::Verified), path, &parts)
    }

    #[test]
    fn the_page_and_its_files_are_the_consoles_and_entities_are_not() {
        let path = |method: Method, uri: &str| {
            path_of(&method, &uri.parse().unwrap()).map(ToOwned::to_owned)
        };
        assert_eq!(path(Method::GET, "/").unwrap(), PAGE);
        assert_eq!(path(Method::HEAD, "/?x=1").unwrap(), PAGE);
        assert_eq!(path(Method::GET, "/$console/a/b.js").unwrap(), "a/b.js");
        for (method, uri) in [
            (Method::GET, "/?api-version=2021-05"),
            (Method::GET, "/orders"),
            (Method::GET, "/index.html"),
            (Method::GET, "/$consoles/app.js"),
            (Method::GET, "/$Resources/queues?api-version=2021-05"),
            (Method::GET, "/$console/app.js?api-version=2021-05"),
            (Method::PUT, "/"),
            (Method::DELETE, "/$console/app.js"),
        ] {
            assert_eq!(path(method, uri), None, "{uri}");
        }
    }

    #[test]
    fn every_document_forbids_code_from_elsewhere() {
        for path in [PAGE, "icon.svg", "nothing.js"] {
            let headers = answered(path, &[]).into_parts().0.headers;
            let policy = headers.get(header::CONTENT_SECURITY_POLICY).unwrap();
            let policy = policy.to_str().unwrap();
            assert!(policy.starts_with("default-src 'none';"), "{path}");
            assert!(!policy.contains("unsafe"), "{path}");
        }
        for path in [PAGE, "app.js", "styles/base.css", "nothing.js"] {
            let headers = answered(path, &[]).into_parts().0.headers;
            assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        }
    }

    #[test]
    fn the_page_alone_may_ask_the_issuer_and_its_tag_says_so() {
        let (sign_in, endpoints) = ConsoleSignIn::at("https://login.example");
        let asked = |path: &str| {
            let parts = Request::get("/").body(()).unwrap().into_parts().0;
            let headers = answer(&sign_in, path, &parts).into_parts().0.headers;
            let text = |name| headers.get(name).map(|it| it.to_str().unwrap().to_owned());
            let policy = text(header::CONTENT_SECURITY_POLICY).unwrap();
            let asked = policy.split("; ").find(|it| it.starts_with("connect-src"));
            (asked.unwrap().to_owned(), text(header::ETAG))
        };
        let (before, tag_before) = asked(PAGE);
        assert_eq!(before, ASKED);
        endpoints.send_replace(SignInEndpoints::Known(Endpoints {
            authorization: "https://login.example/a".to_owned(),
            token: "https://tokens.example/t".to_owned(),
            token_origin: "https://tokens.example".to_owned(),
        }));
        let (after, tag_after) = asked(PAGE);
        assert_eq!(after, "connect-src 'self' https://tokens.example");
        assert_ne!(tag_before, tag_after);
        for path in ["icon.svg", "nothing.js", SIGN_IN] {
            assert_eq!(asked(path).0, ASKED, "{path}");
        }
    }

    #[test]
    fn how_to_sign_in_is_told_without_credentials_and_not_kept() {
        let response = answered(SIGN_IN, &[(header::IF_NONE_MATCH, "*")]);
        assert_eq!(response.status(), StatusCode::OK);
        let headers = response.headers();
        assert_eq!(headers[header::CONTENT_TYPE], "application/json");
        assert_eq!(headers[header::CACHE_CONTROL], "no-cache");
        assert!(!headers.contains_key(header::ETAG));
    }

    #[test]
    fn the_page_has_no_code_or_style_within() {
        let page = asset(PAGE).unwrap();
        let text = String::from_utf8(page.plain.to_vec()).unwrap();
        assert_eq!(text.matches("<script").count(), 1);
        for inline in ["<style", " style=", " on", "javascript:"] {
            assert!(!text.contains(inline), "{inline}");
        }
    }

    #[test]
    fn a_file_is_compressed_for_whom_takes_it_and_sent_once() {
        let plain = answered("app.js", &[]);
        assert_eq!(plain.status(), StatusCode::OK);
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        let gzip = answered(
            "app.js",
            &[(header::ACCEPT_ENCODING, "br, gzip;q=0.5, deflate")],
        );
        assert_eq!(gzip.headers()[header::CONTENT_ENCODING], "gzip");
        let tag = gzip.headers()[header::ETAG].to_str().unwrap();
        for known in [tag, "*", &format!("\"other\", W/{tag}")] {
            let same = answered("app.js", &[(header::IF_NONE_MATCH, known)]);
            assert_eq!(same.status(), StatusCode::NOT_MODIFIED, "{known}");
        }
        let other = answered("app.js", &[(header::IF_NONE_MATCH, "\"other\"")]);
        assert_eq!(other.status(), StatusCode::OK);
        let refused = answered("app.js", &[(header::ACCEPT_ENCODING, "gzip;q=0")]);
        assert!(!refused.headers().contains_key(header::CONTENT_ENCODING));
    }

    #[test]
    fn the_page_names_its_files_in_the_directory_of_their_version() {
        let page = Files::get(PAGE).unwrap().data;
        let text = String::from_utf8(in_version(&page, "0123456789abcdef").to_vec()).unwrap();
        assert!(text.contains("src=\"/$console/0123456789abcdef/app.js\""));
        let all = text.matches(PREFIX).count();
        assert!(1 < all);
        assert_eq!(text.matches("/$console/0123456789abcdef/").count(), all);
    }

    #[test]
    fn a_version_changes_with_each_path_and_each_byte_of_its_files() {
        let version = |files: &[(&str, u8)]| {
            version_of(
                &mut files
                    .iter()
                    .map(|(path, byte)| ((*path).to_owned(), [*byte; 32])),
            )
        };
        let one = version(&[("a.js", 1), ("b.js", 2)]);
        assert_eq!(one, version(&[("a.js", 1), ("b.js", 2)]));
        assert_eq!(
            parted(&format!("{one}/lib/a.js")),
            (Some(one.as_str()), "lib/a.js")
        );
        for other in [
            version(&[("a.js", 1), ("b.js", 3)]),
            version(&[("a.js", 1), ("c.js", 2)]),
            version(&[("a.js", 1)]),
        ] {
            assert_ne!(one, other);
        }
        assert_eq!(served().filter(|(path, _)| path == "app.js").count(), 1);
        assert!(served().all(|(path, _)| asset(&path).is_some()));
    }

    #[test]
    fn browsers_keep_the_files_of_this_version_alone() {
        let kept = |path: &str| {
            let response = answered(path, &[]);
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            response.headers()[header::CACHE_CONTROL].clone()
        };
        let version = VERSION.as_deref().unwrap_or("0123456789abcdef");
        let immutable = match VERSION.as_deref() {
            Some(_) => IMMUTABLE,
            None => HeaderValue::from_static("no-cache"),
        };
        assert_eq!(kept(&format!("{version}/lib/html.js")), immutable);
        assert_eq!(kept(&format!("{version}/styles/base.css")), immutable);
        for path in [
            PAGE.to_owned(),
            format!("{version}/{PAGE}"),
            "app.js".to_owned(),
            "00000000000000ff/app.js".to_owned(),
        ] {
            assert_eq!(kept(&path), "no-cache", "{path}");
        }
        let deeper = format!("{version}/{version}/app.js");
        assert_eq!(answered(&deeper, &[]).status(), StatusCode::NOT_FOUND);
        assert_eq!(answered("00ff/app.js", &[]).status(), StatusCode::NOT_FOUND);
    }

    #[test]
    fn vendored_files_are_those_of_their_packages() {
        let list = Files::get("vendor/vendor.json").unwrap();
        let list: serde_json::Value = serde_json::from_slice(&list.data).unwrap();
        let list = list.as_array().unwrap();
        assert!(!list.is_empty());
        for vendored in list {
            let name = vendored["file"].as_str().unwrap();
            let file = Files::get(&format!("vendor/{name}")).unwrap();
            let digest = file.metadata.sha256_hash();
            let hex = digest
                .iter()
                .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
            assert_eq!(vendored["sha256"], hex, "{name}");
        }
        let listed = |name: &str| list.iter().any(|vendored| vendored["file"] == name);
        for path in Files::iter() {
            if let Some(name) = path.strip_prefix("vendor/")
                && asset(&path).is_some()
            {
                assert!(listed(name), "{name} is not listed");
            }
        }
    }

    #[test]
    fn sources_are_of_a_size_to_read() {
        for path in Files::iter().filter(|path| !path.starts_with("vendor/")) {
            let file = Files::get(&path).unwrap();
            let lines = file.data.split(|byte| *byte == b'\n').count();
            assert!(lines <= 400, "{path} has {lines} lines");
        }
    }

    #[test]
    fn only_files_for_browsers_are_sent() {
        for path in [
            "",
            "README.md",
            "vendor/vendor.json",
            "../console.rs",
            "../console.js",
            "/etc/passwd.js",
            "app.js/",
        ] {
            assert!(asset(path).is_none(), "{path}");
        }
    }
}
