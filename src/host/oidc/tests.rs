//! Keys over loopback HTTP and HTTPS from a server of these tests, and from files.

use std::sync::Mutex;

use crate::limits;
use clap::Parser;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::*;

/// Nothing here takes as long, unless it hangs.
const PATIENCE: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_hours(1);

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    oidc: OidcArgs,
}

fn arguments(all: &[&str]) -> Result<OidcArgs, clap::Error> {
    let all = ["serve"].iter().chain(all);
    Cli::try_parse_from(all).map(|cli| cli.oidc)
}

fn source(all: &[&str]) -> Result<KeySource, OidcError> {
    let parsed = arguments(all).unwrap().parse();
    parsed.map(Option::unwrap)
}

/// A key set whose keys have a name.
fn jwks(name: &str) -> String {
    let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": name, "x": x}]}).to_string()
}

/// How the server answers a path.
type Answers = Box<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

struct Server {
    /// `http://127.0.0.1:port`
    base: String,
    seen: Arc<Mutex<Vec<(String, Instant)>>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(answers: impl FnOnce(&str) -> Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::start_on(listener, None, answers)
    }

    fn start_on(
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        answers: impl FnOnce(&str) -> Answers,
    ) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let base = format!("{scheme}://{}", listener.local_addr().unwrap());
        let answers = answers(&base);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn({
            let seen = Arc::clone(&seen);
            async move {
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    match &tls {
                        None => answer(stream, &answers, &seen).await,
                        // A client that does not trust us goes away.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer(stream, &answers, &seen).await;
                            }
                        }
                    }
                }
            }
        });
        Self { base, seen, task }
    }

    fn seen(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(path, _)| path.clone()).collect()
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

async fn answer<S>(mut stream: S, answers: &Answers, seen: &Mutex<Vec<(String, Instant)>>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => request.push(byte),
            Err(_) => return,
        }
    }
    let request = String::from_utf8(request).unwrap();
    let path = request.split(' ').nth(1).unwrap();
    assert!(request.starts_with("GET "), "{request}");
    assert!(request.to_lowercase().contains("\r\nhost: "), "{request}");
    seen.lock().unwrap().push((path.to_owned(), Instant::now()));
    // A client that has seen enough closes.
    let _ = stream.write_all(&answers(path)).await;
    let _ = stream.shutdown().await;
}

fn ok(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

fn to(place: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

fn not_found() -> Vec<u8> {
    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec()
}

/// An issuer below `/realms/here` that says of itself what these say.
fn issuer(base: &str, said: &str, jwks_uri: &str) -> Answers {
    let configuration = json!({
        "issuer": format!("{base}{said}"),
        "jwks_uri": jwks_uri,
        "token_endpoint": "/t",
    });
    Box::new(move |path| match path {
        "/realms/here/.well-known/openid-configuration" => ok(&configuration.to_string()),
        "/keys?all=1" => ok(&jwks("a")),
        _ => not_found(),
    })
}

async fn keys_of(source: &KeySource) -> Result<Keys, OidcError> {
    source.keys(PATIENCE).await
}

#[track_caller]
fn text_of(found: Result<Keys, OidcError>) -> String {
    found.unwrap_err().to_string()
}

#[test]
fn without_an_issuer_there_is_nothing_to_fetch() {
    let none = arguments(&[]).unwrap();
    assert!(none.parse().unwrap().is_none());
    for alone in ["--oidc-jwks", "--oidc-audience", "--oidc-ca"] {
        let text = arguments(&[alone, "x"]).unwrap_err().to_string();
        assert!(text.contains("--oidc-issuer"), "{text}");
    }
}

#[test]
fn tokens_are_for_the_service_unless_audiences_are_named() {
    let issuer = ["--oidc-issuer", "https://login.example"];
    let expected = [
        "https://servicebus.azure.net",
        "https://servicebus.azure.net/",
    ];
    assert_eq!(arguments(&issuer).unwrap().oidc_audience, expected);
    let named = [
        &issuer[..],
        &["--oidc-audience", "a", "--oidc-audience", "b"],
    ]
    .concat();
    assert_eq!(arguments(&named).unwrap().oidc_audience, ["a", "b"]);
    let shown = format!("{:?}", arguments(&named).unwrap().issuer().unwrap());
    assert!(
        shown.contains("https://login.example") && shown.contains(r#"["a", "b"]"#),
        "{shown}"
    );
}

#[test]
fn urls_are_https_or_of_this_machine() {
    let tried = |url: &str| source(&["--oidc-issuer", "me", "--oidc-jwks", url]);
    for good in [
        "https://login.example/keys?v=1",
        "HTTPS://login.example",
        "https://10.0.0.1:8443/keys",
        "http://127.0.0.1:8080/keys",
        "http://127.1.2.3/keys",
        "http://[::1]:8080/keys",
        "http://localhost:8080/keys",
    ] {
        assert!(
            matches!(tried(good).unwrap().place, KeyLocation::Url(_)),
            "{good}"
        );
    }
    for plain in [
        "http://login.example",
        "http://10.0.0.1/",
        "http://localhost.example/",
    ] {
        let text = tried(plain).unwrap_err().to_string();
        assert!(text.contains("must be https"), "{text}");
    }
    for bad in [
        "https://",
        "https://user:secret@login.example/",
        "http:///keys",
        "https://a b/",
    ] {
        let text = tried(bad).unwrap_err().to_string();
        assert!(text.contains("is not a URL"), "{bad}: {text}");
    }
    assert!(matches!(
        tried("keys.json").unwrap().place,
        KeyLocation::File(_)
    ));
    assert!(matches!(
        tried("ftp://keys").unwrap().place,
        KeyLocation::File(_)
    ));
}

#[test]
fn an_issuer_that_is_no_url_needs_its_keys_named() {
    for issuer in [
        "me",
        "https://login.example/?tenant=1",
        "https://login.example/#a",
    ] {
        let text = source(&["--oidc-issuer", issuer]).unwrap_err().to_string();
        assert!(text.contains("--oidc-jwks"), "{text}");
    }
    assert!(source(&["--oidc-issuer", "http://login.example"]).is_err());
    for issuer in ["https://login.example/t", "https://login.example/t/"] {
        let name = source(&["--oidc-issuer", issuer]).unwrap().name();
        assert_eq!(
            name,
            "https://login.example/t/.well-known/openid-configuration"
        );
    }
}

#[tokio::test]
async fn keys_are_where_the_issuer_says() {
    let server = Server::start(|base| issuer(base, "/realms/here", &format!("{base}/keys?all=1")));
    let server = server.await;
    let source = source(&["--oidc-issuer", &server.url("/realms/here")]).unwrap();
    let found = keys_of(&source).await.unwrap();
    let expected = Keys {
        document: jwks("a"),
        usable: 1,
    };
    assert_eq!(found, expected);
    let asked = [
        "/realms/here/.well-known/openid-configuration",
        "/keys?all=1",
    ];
    assert_eq!(server.seen(), asked);
}

#[tokio::test]
async fn endpoints_for_browsers_come_with_the_keys_and_keys_without_endpoints() {
    for (authorization, token) in [(json!("/a"), json!("/t")), (json!("/a"), json!(null))] {
        let token_is_there = token.is_string();
        let server = Server::start(|base| {
            let configuration = json!({
                "issuer": base, "jwks_uri": "/keys", "authorization_endpoint": authorization, "token_endpoint": token,
            });
            Box::new(move |path| match path {
                "/keys" => ok(&jwks("a")),
                _ => ok(&configuration.to_string()),
            })
        })
        .await;
        let mut source = source(&["--oidc-issuer", &server.base]).unwrap();
        let endpoints = source.follow_endpoints();
        assert!(matches!(&*endpoints.borrow(), SignInEndpoints::Unknown(_)));
        assert_eq!(keys_of(&source).await.unwrap().usable, 1);
        match &*endpoints.borrow() {
            SignInEndpoints::Known(found) => {
                assert!(token_is_there);
                assert_eq!(found.authorization, server.url("/a"));
                assert_eq!(found.token, server.url("/t"));
                assert_eq!(found.token_origin, server.base);
            }
            SignInEndpoints::Unknown(reason) => {
                assert!(
                    !token_is_there && reason.contains("no token_endpoint"),
                    "{reason}"
                );
            }
        }
    }
}

#[tokio::test]
async fn an_issuer_speaks_for_itself_only() {
    let other = Server::start(|base| issuer(base, "/realms/there", "/keys?all=1")).await;
    let source_of = |server: &Server| source(&["--oidc-issuer", &server.url("/realms/here")]);
    let text = text_of(keys_of(&source_of(&other).unwrap()).await);
    assert!(text.contains("of the issuer 'http://127.0.0.1:"), "{text}");
    let plain = Server::start(|base| issuer(base, "/realms/here", "http://login.example/k")).await;
    let text = text_of(keys_of(&source_of(&plain).unwrap()).await);
    assert!(text.contains("must be https"), "{text}");
    let switch = Server::start(|base| issuer(base, "/realms/here", "https://127.0.0.1:1/k")).await;
    let text = text_of(keys_of(&source_of(&switch).unwrap()).await);
    assert!(text.contains("which has another scheme"), "{text}");
    let none = Server::start(|_| Box::new(|_| ok("<html>"))).await;
    let text = text_of(keys_of(&source_of(&none).unwrap()).await);
    assert!(
        text.contains("is not the configuration of an issuer"),
        "{text}"
    );
}

#[tokio::test]
async fn redirects_are_followed_within_a_scheme() {
    let server = Server::start(|base| {
        let whole = format!("{base}/c");
        Box::new(move |path| match path {
            "/a" => to("/b"),
            "/b" => to(&whole),
            "/c" => ok(&jwks("a")),
            "/tls" => to("https://127.0.0.1:1/keys"),
            "/else" => to("http://login.example/keys"),
            "/file" => to("file:///etc/passwd"),
            "/beside" => to("//127.0.0.1:1/keys"),
            "/loop" => to("/loop"),
            "/nowhere" => b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
            _ => not_found(),
        })
    })
    .await;
    let get = async |path: &str| {
        let url = server.url(path);
        keys_of(&source(&["--oidc-issuer", "me", "--oidc-jwks", &url]).unwrap()).await
    };
    assert_eq!(get("/a").await.unwrap().document, jwks("a"));
    assert_eq!(server.seen(), ["/a", "/b", "/c"]);
    for (path, expected) in [
        ("/tls", "has another scheme"),
        ("/else", "must be https"),
        ("/file", "is not a URL"),
        ("/beside", "is not a URL"),
        ("/loop", "redirects too often"),
        ("/nowhere", "redirects without a usable Location"),
        ("/none", "answered 404"),
    ] {
        let text = text_of(get(path).await);
        assert!(text.contains(expected), "{path}: {text}");
    }
    let looped = server.seen().iter().filter(|path| *path == "/loop").count();
    assert_eq!(looped, 6);
}

#[tokio::test]
async fn an_answer_has_bounds() {
    let server = Server::start(|_| {
        Box::new(|path| match path {
            "/huge" => ok(&" ".repeat(limits::FETCHED_BYTES_MAX + 1)),
            "/full" => {
                let keys = jwks("a");
                ok(&(" ".repeat(limits::FETCHED_BYTES_MAX - keys.len()) + &keys))
            }
            "/short" => b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}".to_vec(),
            "/binary" => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe".to_vec(),
            "/html" => ok("<html>"),
            "/empty" => ok(r#"{"keys":[]}"#),
            "/amqp" => b"AMQP\x00\x01\x00\x00".to_vec(),
            _ => Vec::new(),
        })
    })
    .await;
    let get = async |path: &str| {
        let url = server.url(path);
        keys_of(&source(&["--oidc-issuer", "me", "--oidc-jwks", &url]).unwrap()).await
    };
    for (path, expected) in [
        ("/huge", "longer than 1048576 bytes"),
        ("/short", "or incomplete"),
        ("/binary", "not UTF-8"),
        (
            "/html",
            "not a JSON Web Key Set (expected value at line 1 column 1)",
        ),
        ("/empty", "none of the 0 keys"),
        ("/amqp", "does not speak HTTP"),
        ("/nothing", "does not speak HTTP"),
    ] {
        let text = text_of(get(path).await);
        assert!(text.contains(expected), "{path}: {text}");
    }
    assert_eq!(get("/full").await.unwrap().usable, 1);
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let source = source(&["--oidc-issuer", "me", "--oidc-jwks", &url]).unwrap();
    let text = text_of(source.keys(Duration::from_millis(50)).await);
    assert!(text.contains("did not answer within 50 ms"), "{text}");
    drop(listener);
    let text = text_of(keys_of(&source).await);
    assert!(text.contains("cannot connect to"), "{text}");
}

/// An authority in a file, and a server's certificate from it for some names.
fn certificates(folder: &Path, names: &[&str]) -> (String, TlsAcceptor) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let file = folder.join(format!("{}.pem", names.join("-")));
    std::fs::write(&file, authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let leaf = CertificateParams::new(names).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![leaf.der().clone()],
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
        .unwrap();
    (
        file.display().to_string(),
        TlsAcceptor::from(Arc::new(config)),
    )
}

#[tokio::test]
async fn https_is_believed_with_a_certificate_of_the_authority() {
    let folder = tempfile::tempdir().unwrap();
    let (right, acceptor) = certificates(folder.path(), &["127.0.0.1"]);
    let (wrong, _) = certificates(folder.path(), &["localhost"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = Server::start_on(listener, Some(acceptor), |base| {
        issuer(base, "/realms/here", "/keys?all=1")
    });
    let get = async |issuer: &str, ca: &[&str]| {
        let all = [&["--oidc-issuer", issuer], ca].concat();
        keys_of(&source(&all).unwrap()).await
    };
    let here = server.url("/realms/here");
    assert_eq!(
        get(&here, &["--oidc-ca", &right]).await.unwrap().document,
        jwks("a")
    );
    // Another authority's, and another name's.
    let text = text_of(get(&here, &["--oidc-ca", &wrong]).await);
    assert!(text.contains("invalid peer certificate"), "{text}");
    let named = format!("https://localhost:{port}/realms/here");
    let text = text_of(get(&named, &["--oidc-ca", &right]).await);
    assert!(text.contains("not valid for name"), "{text}");
    // The system's do not know it either, where it has any.
    let text = text_of(get(&here, &[]).await);
    let none = text.contains("has no certificates to trust");
    assert!(none || text.contains("invalid peer certificate"), "{text}");
    assert_eq!(server.seen().len(), 2, "nothing was asked without trust");
}

#[test]
fn a_file_without_certificates_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let tried = || {
        let file = file.display().to_string();
        source(&["--oidc-issuer", "https://login.example", "--oidc-ca", &file]).unwrap_err()
    };
    for text in [
        "",
        "text",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        std::fs::write(&file, text).unwrap();
        let error = tried().to_string();
        assert!(
            error.contains("holds no certificate that can be used"),
            "{error}"
        );
    }
    std::fs::remove_file(&file).unwrap();
    let error = tried().to_string();
    assert!(error.contains("No such file"), "{error}");
}

#[tokio::test]
async fn a_file_is_bounded_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let name = file.display().to_string();
    let source = source(&["--oidc-issuer", "me", "--oidc-jwks", &name]).unwrap();
    let text = text_of(keys_of(&source).await);
    assert!(
        text.starts_with(&format!("cannot read {name}: No such file")),
        "{text}"
    );
    std::fs::write(&file, " ".repeat(limits::FETCHED_BYTES_MAX + 1)).unwrap();
    let text = text_of(keys_of(&source).await);
    assert_eq!(text, format!("{name} is longer than 1048576 bytes"));
    std::fs::write(&file, jwks("a")).unwrap();
    assert_eq!(keys_of(&source).await.unwrap().document, jwks("a"));
}

#[test]
fn failures_are_tried_again_less_and_less_often() {
    let waits: Vec<u64> = (1..=11)
        .map(|failures| Pace::NET.retry(failures).as_secs())
        .collect();
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert_eq!(Pace::NET.retry(u32::MAX), Pace::NET.retry_max);
    assert_eq!(Pace::FILE.retry(100).as_secs(), 10);
    assert_eq!(Pace::FILE.refresh.as_secs(), 10);
    assert_eq!(Pace::NET.refresh.as_secs(), 3_600);
    assert_eq!(Pace::NET.wanted.as_secs(), 60);
}

/// A keeper that runs, and all that it has published.
struct HeadState {
    published: watch::Receiver<Vec<String>>,
    wanted: Arc<Notify>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl HeadState {
    fn start(pace: Pace, source: KeySource) -> Self {
        let (sender, published) = watch::channel(Vec::new());
        let (stop, stopped) = watch::channel(false);
        let wanted = Arc::new(Notify::new());
        let publish = move |text| {
            sender.send_modify(|all: &mut Vec<String>| all.push(text));
        };
        let task = tokio::spawn(keep_keys_at(
            pace,
            source,
            publish,
            Arc::clone(&wanted),
            stopped,
        ));
        Self {
            published,
            wanted,
            stop,
            task,
        }
    }

    async fn until_published(&mut self, text: &str) {
        let published = self
            .published
            .wait_for(|all| all.last().is_some_and(|found| found == text));
        tokio::time::timeout(PATIENCE, published)
            .await
            .unwrap()
            .unwrap();
    }

    async fn stop(self) {
        self.stop.send(true).unwrap();
        tokio::time::timeout(PATIENCE, self.task)
            .await
            .unwrap()
            .unwrap();
    }
}

/// A pace at which nothing happens twice by itself.
const ONCE: Pace = Pace {
    refresh: LONG,
    wanted: LONG,
    retry_first: LONG,
    retry_max: LONG,
    within: PATIENCE,
};

/// A server whose requests get one answer after the other, and then the last again.
async fn in_turn(answers: Vec<Vec<u8>>) -> Server {
    let next = Mutex::new(0);
    let answers: Answers = Box::new(move |_| {
        let mut next = next.lock().unwrap();
        let answer = answers.get(*next).or_else(|| answers.last()).unwrap();
        *next += 1;
        answer.clone()
    });
    Server::start(|_| answers).await
}

#[tokio::test]
async fn a_source_that_fails_is_asked_until_it_has_keys() {
    let answers = vec![not_found(), Vec::new(), ok("{"), ok(&jwks("a"))];
    let server = in_turn(answers).await;
    let pace = Pace {
        retry_first: Duration::from_millis(1),
        retry_max: Duration::from_millis(5),
        ..ONCE
    };
    let url = server.url("/keys");
    let source = source(&["--oidc-issuer", "me", "--oidc-jwks", &url]).unwrap();
    let mut kept = HeadState::start(pace, source);
    kept.until_published(&jwks("a")).await;
    kept.stop().await;
    assert_eq!(
        server.seen().len(),
        4,
        "found keys are not looked for again"
    );
}

#[tokio::test]
async fn new_keys_are_published_and_what_is_no_key_set_is_not() {
    let (a, b) = (jwks("a"), jwks("b"));
    let none = ok(r#"{"keys":[]}"#);
    let server = in_turn(vec![
        ok(&a),
        ok(&a),
        ok("<html>"),
        none,
        not_found(),
        ok(&a),
        ok(&b),
    ]);
    let server = server.await;
    let pace = Pace {
        refresh: Duration::from_millis(1),
        retry_first: Duration::from_millis(1),
        retry_max: Duration::from_millis(1),
        ..ONCE
    };
    let url = server.url("/keys");
    let source = source(&["--oidc-issuer", "me", "--oidc-jwks", &url]).unwrap();
    let mut kept = HeadState::start(pace, source);
    kept.until_published(&b).await;
    assert_eq!(*kept.published.borrow(), [a, b]);
    kept.stop().await;
}

#[tokio::test]
async fn wanted_keys_are_fetched_but_not_at_once_again() {
    let server = in_turn(["1", "2", "3"].map(|name| ok(&jwks(name))).into()).await;
    let pace = Pace {
        wanted: Duration::from_millis(200),
        ..ONCE
    };
    let url = server.url("/keys");
    let source = source(&["--oidc-issuer", "me", "--oidc-jwks", &url]).unwrap();
    let begun = Instant::now();
    let mut kept = HeadState::start(pace, source);
    kept.until_published(&jwks("1")).await;
    // However often they are asked for.
    for _ in 0..100 {
        kept.wanted.notify_one();
    }
    kept.until_published(&jwks("2")).await;
    let second = server.seen.lock().unwrap()[1].1;
    assert!(pace.wanted <= second - begun, "{:?}", second - begun);
    kept.wanted.notify_one();
    kept.until_published(&jwks("3")).await;
    kept.stop().await;
}

#[tokio::test]
async fn a_changed_file_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    // As in Kubernetes: the new one takes the place of the old one at once.
    let put = |text: &str| {
        let new = folder.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(&new, &file).unwrap();
    };
    put(&jwks("a"));
    let name = file.display().to_string();
    let source = source(&["--oidc-issuer", "me", "--oidc-jwks", &name]).unwrap();
    let pace = source.pace();
    assert_eq!(pace.refresh, Pace::FILE.refresh);
    let pace = Pace {
        refresh: Duration::from_millis(5),
        ..pace
    };
    let mut kept = HeadState::start(pace, source);
    kept.until_published(&jwks("a")).await;
    put(&jwks("b"));
    kept.until_published(&jwks("b")).await;
    kept.stop().await;
}

#[test]
fn what_stays_the_same_is_published_once() {
    let published = Mutex::new(Vec::new());
    let publish = |text: String| published.lock().unwrap().push(text);
    let mut keeper = Keeper {
        place: "here".to_owned(),
        published: None,
        failures: 0,
        last_warning: String::new(),
    };
    let keys = |name| Keys {
        document: jwks(name),
        usable: 1,
    };
    keeper.found(keys("a"), publish);
    keeper.found(keys("a"), publish);
    keeper.failed(&OidcError::IssuerIsNoUrl("me".to_owned()));
    keeper.failed(&OidcError::IssuerIsNoUrl("me".to_owned()));
    assert_eq!(keeper.failures, 2);
    keeper.found(keys("a"), publish);
    assert_eq!(keeper.failures, 0);
    keeper.found(keys("b"), publish);
    assert_eq!(*published.lock().unwrap(), [jwks("a"), jwks("b")]);
}

#[tokio::test]
async fn a_keeper_stops_while_it_asks() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let source = source(&["--oidc-issuer", "me", "--oidc-jwks", &url]).unwrap();
    let (stop, stopped) = watch::channel(false);
    let publish = |text| panic!("{text} comes from nowhere");
    let keeper = tokio::spawn(keep_keys(source, publish, Arc::new(Notify::new()), stopped));
    // It is connected, and gets no answer.
    let (_open, _) = listener.accept().await.unwrap();
    stop.send(true).unwrap();
    tokio::time::timeout(PATIENCE, keeper)
        .await
        .unwrap()
        .unwrap();
}
