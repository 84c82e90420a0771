use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsConnector;

use super::certificate::Certificate;
use super::*;
use crate::net::certs::shared;

/// A folder, and an authority for the certificates in it.
struct Bench {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Bench {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "test authority");
        let key = KeyPair::generate().unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            authority: CertifiedIssuer::self_signed(params, key).unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Returns a certificate for some hosts and its key.
    fn sign(
        &self,
        hosts: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (String, KeyPair) {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.authority).unwrap();
        (made.pem(), key)
    }

    /// Writes a certificate for a host and its key, and returns their names.
    fn pair(&self, host: &str) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.sign(&[host], |_| {});
        let certificate = self.write(&format!("{host}.pem"), certificate);
        let key = self.write(&format!("{host}.key"), key.serialize_pem());
        (certificate, key)
    }

    fn args(&self, hosts: &[&str]) -> TlsArgs {
        let (tls_cert, tls_key) = hosts.iter().map(|host| self.pair(host)).unzip();
        TlsArgs {
            tls_cert,
            tls_key,
            ..TlsArgs::default()
        }
    }

    fn client(&self) -> ClientConfig {
        client(self.authority.pem().as_bytes(), rustls::ALL_VERSIONS)
    }
}

fn client(trusted: &[u8], versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    roots_of(trusted, versions).with_no_client_auth()
}

fn roots_of(
    trusted: &[u8],
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trusted) {
        roots.add(certificate.unwrap()).unwrap();
    }
    ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
}

/// The result of a handshake on both sides.
#[derive(Debug)]
struct Shaken {
    server: Certificate,
    version: ProtocolVersion,
    protocol: Option<Vec<u8>>,
    kind: HandshakeKind,
    client: Option<String>,
}

/// Connects over loopback, and says what came of it on each side.
async fn try_shake(
    tls: &Arc<Tls>,
    client: &Arc<ClientConfig>,
    host: &str,
) -> (io::Result<Shaken>, io::Result<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = Arc::clone(tls);
    let serving = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = tls.accept(stream, None).await?;
        stream.write_all(b"!").await?;
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        let peer = stream.get_ref().1.peer_certificates();
        let name = peer.and_then(|chain| common_name(&chain[0]));
        stream.shutdown().await?;
        Ok::<_, io::Error>(name)
    });
    let connect = async {
        let connector = TlsConnector::from(Arc::clone(client));
        let stream = TcpStream::connect(address).await?;
        let host = ServerName::try_from(host.to_owned()).unwrap();
        let mut stream = connector.connect(host, stream).await?;
        // With the first byte come the tickets of TLS 1.3, and the refusal of a certificate.
        let mut byte = [0];
        stream.read_exact(&mut byte).await?;
        stream.write_all(b"!").await?;
        let session = stream.get_ref().1;
        let shaken = Shaken {
            server: Certificate::read(&session.peer_certificates().unwrap()[0]).unwrap(),
            version: session.protocol_version().unwrap(),
            protocol: session.alpn_protocol().map(<[u8]>::to_vec),
            kind: session.handshake_kind().unwrap(),
            client: None,
        };
        let _ = stream.read(&mut byte).await;
        Ok(shaken)
    };
    let shaken = connect.await;
    match (shaken, serving.await.unwrap()) {
        (Ok(shaken), Ok(client)) => (Ok(Shaken { client, ..shaken }), Ok(())),
        (shaken, served) => (shaken, served.map(drop)),
    }
}

async fn shake(tls: &Arc<Tls>, client: ClientConfig, host: &str) -> Shaken {
    let (shaken, served) = try_shake(tls, &Arc::new(client), host).await;
    served.unwrap();
    shaken.unwrap()
}

#[tokio::test]
async fn a_client_gets_the_certificate_for_its_host_and_else_the_first() {
    let bench = Bench::new();
    let tls = Tls::load(&bench.args(&["127.0.0.1", "one.test", "*.wild.test"]), None).unwrap();
    let cases = [
        ("127.0.0.1", "127.0.0.1"),
        ("one.test", "one.test"),
        ("ONE.test", "one.test"),
        ("a.wild.test", "*.wild.test"),
    ];
    for (host, expected) in cases {
        let shaken = shake(&tls, bench.client(), host).await;
        assert_eq!(shaken.server.hosts(), [expected], "{host}");
        assert_eq!(shaken.version, ProtocolVersion::TLSv1_3);
        assert_eq!((shaken.client, shaken.protocol), (None, None));
    }
    // Other clients get the first one, and does not like it.
    let (shaken, served) = try_shake(&tls, &Arc::new(bench.client()), "other.test").await;
    assert!(
        shaken
            .unwrap_err()
            .to_string()
            .contains("not valid for name")
    );
    assert!(served.unwrap_err().to_string().contains("alert"));
}

#[tokio::test]
async fn of_two_certificates_for_a_host_a_client_gets_the_one_that_it_can_check() {
    let bench = Bench::new();
    let mut args = bench.args(&["both.test"]);
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let params = CertificateParams::new(["both.test".to_owned()]).unwrap();
    let made = params.signed_by(&key, &bench.authority).unwrap();
    args.tls_cert.insert(0, bench.write("ed.pem", made.pem()));
    args.tls_key
        .insert(0, bench.write("ed.key", key.serialize_pem()));
    let tls = Tls::load(&args, None).unwrap();
    let first = shake(&tls, bench.client(), "both.test").await;
    let mut provider = aws_lc_rs::default_provider();
    let ed25519 = rustls::SignatureScheme::ED25519;
    let mapping = provider.signature_verification_algorithms.mapping.iter();
    let known = mapping.filter(|(scheme, _)| *scheme != ed25519).copied();
    provider.signature_verification_algorithms.mapping = known.collect::<Vec<_>>().leak();
    let mut roots = RootCertStore::empty();
    roots.add(bench.authority.der().clone()).unwrap();
    let old = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let second = shake(&tls, old, "both.test").await;
    assert_ne!(first.server.public_key, second.server.public_key);
}

#[tokio::test]
async fn clients_of_tls_1_2_are_served() {
    let bench = Bench::new();
    let tls = Tls::load(&bench.args(&["localhost"]), None).unwrap();
    let old = client(bench.authority.pem().as_bytes(), &[&rustls::version::TLS12]);
    let shaken = shake(&tls, old, "localhost").await;
    assert_eq!(shaken.version, ProtocolVersion::TLSv1_2);
}

#[tokio::test]
async fn a_protocol_of_ours_is_agreed_upon_and_others_refuse_no_client() {
    let bench = Bench::new();
    let tls = Tls::load(&bench.args(&["localhost"]), None).unwrap();
    let cases: [(&[&str], Option<&str>); 5] = [
        (&[], None),
        (&["amqp"], Some("amqp")),
        (&["h2", "http/1.1"], Some("http/1.1")),
        (&["http/1.1", "amqp"], Some("amqp")),
        (&["h2", "mqtt"], None),
    ];
    for (asked, expected) in cases {
        let mut client = bench.client();
        client.alpn_protocols = asked.iter().map(|name| name.as_bytes().to_vec()).collect();
        let shaken = shake(&tls, client, "localhost").await;
        let expected = expected.map(|name| name.as_bytes().to_vec());
        assert_eq!(shaken.protocol, expected, "{asked:?}");
    }
}

#[tokio::test]
async fn a_client_that_comes_back_has_less_to_do_until_certificates_change() {
    let bench = Bench::new();
    for version in rustls::ALL_VERSIONS {
        let args = bench.args(&["localhost"]);
        let tls = Tls::load(&args, None).unwrap();
        let client = Arc::new(client(bench.authority.pem().as_bytes(), &[*version]));
        let mut kinds = Vec::new();
        for round in 0..3 {
            if round == 2 {
                bench.pair("localhost");
                assert!(tls.reload().unwrap());
            }
            let (shaken, served) = try_shake(&tls, &client, "localhost").await;
            served.unwrap();
            kinds.push(shaken.unwrap().kind);
        }
        let full = |kind: &HandshakeKind| *kind != HandshakeKind::Resumed;
        let full: Vec<bool> = kinds.iter().map(full).collect();
        assert_eq!(full, [true, false, true], "{version:?}: {kinds:?}");
    }
}

#[tokio::test]
async fn a_client_may_present_a_certificate_and_only_one_that_an_authority_signed() {
    let bench = Bench::new();
    let mut args = bench.args(&["localhost"]);
    args.tls_client_ca = Some(bench.write("clients.pem", bench.authority.pem()));
    let tls = Tls::load(&args, None).unwrap();
    let presenting = |signer: &Bench, purpose| {
        let (certificate, key) = signer.sign(&[], |params| {
            params.extended_key_usages = vec![purpose];
            params.distinguished_name = rcgen::DistinguishedName::new();
            params
                .distinguished_name
                .push(DnType::CommonName, "device-7");
        });
        let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        let roots = roots_of(bench.authority.pem().as_bytes(), rustls::ALL_VERSIONS);
        Arc::new(roots.with_client_auth_cert(chain, key).unwrap())
    };
    assert_eq!(shake(&tls, bench.client(), "localhost").await.client, None);
    let known = presenting(&bench, ExtendedKeyUsagePurpose::ClientAuth);
    for _ in ["the first time", "when it comes back"] {
        let (shaken, _) = try_shake(&tls, &known, "localhost").await;
        assert_eq!(shaken.unwrap().client.as_deref(), Some("device-7"));
    }
    let foreign = presenting(&Bench::new(), ExtendedKeyUsagePurpose::ClientAuth);
    let other_purpose = presenting(&bench, ExtendedKeyUsagePurpose::ServerAuth);
    for refused in [foreign, other_purpose] {
        let (shaken, served) = try_shake(&tls, &refused, "localhost").await;
        assert!(shaken.is_err());
        assert!(
            served
                .unwrap_err()
                .to_string()
                .contains("invalid peer certificate")
        );
    }
    // A ticket does not admit a client that is no longer trusted.
    bench.write("clients.pem", Bench::new().authority.pem());
    assert!(tls.reload().unwrap());
    let (shaken, served) = try_shake(&tls, &known, "localhost").await;
    assert!(shaken.is_err() && served.is_err());
}

#[tokio::test]
async fn new_files_are_taken_up_and_wrong_ones_change_nothing() {
    let bench = Bench::new();
    let args = bench.args(&["localhost"]);
    let tls = Tls::load(&args, None).unwrap();
    let before = shake(&tls, bench.client(), "localhost").await.server;
    assert!(!tls.reload().unwrap());
    let old_key = std::fs::read(&args.tls_key[0]).unwrap();
    bench.pair("localhost");
    let new_key = std::fs::read(&args.tls_key[0]).unwrap();
    bench.write("localhost.key", old_key);
    let error = tls.reload().unwrap_err().to_string();
    assert!(
        error.contains("localhost.key: its key is not the one of"),
        "{error}"
    );
    let still = shake(&tls, bench.client(), "localhost").await.server;
    assert_eq!(still.public_key, before.public_key);
    bench.write("localhost.key", new_key);
    assert!(tls.reload().unwrap());
    let after = shake(&tls, bench.client(), "localhost").await.server;
    assert_ne!(after.public_key, before.public_key);
    assert!(!tls.reload().unwrap());
}

#[tokio::test]
async fn files_are_watched_by_time_and_by_signal_until_the_end() {
    const LONG: Duration = Duration::from_hours(1);
    // While a handler of the signal exists, it does not end the process.
    let _handled = signal(SignalKind::hangup()).unwrap();
    for (every, signalled) in [(Duration::from_millis(5), false), (LONG, true)] {
        let bench = Bench::new();
        let tls = Tls::load(&bench.args(&["localhost"]), None).unwrap();
        let before = tls.current.load_full();
        let (stop, stopped) = watch::channel(false);
        let hangup = signal(SignalKind::hangup()).unwrap();
        let watching = tokio::spawn(watch_every(every, Arc::clone(&tls), hangup, stopped));
        bench.pair("localhost");
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while Arc::ptr_eq(&before, &tls.current.load_full()) {
            assert!(
                tokio::time::Instant::now() < deadline,
                "by signal: {signalled}"
            );
            if signalled {
                let pid = std::process::id().to_string();
                Command::new("kill").args(["-HUP", &pid]).status().unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.send(true).unwrap();
        watching.await.unwrap();
    }
}

#[test]
fn an_error_is_told_once_and_only_if_it_stays() {
    let mut trouble = Trouble::default();
    let steps = [
        (Why::Time, "a", false),
        (Why::Time, "a", true),
        (Why::Time, "a", false),
        (Why::Asked, "a", true),
        (Why::Time, "b", false),
        (Why::Time, "a", false),
        (Why::Time, "b", false),
        (Why::Time, "b", true),
        (Why::Asked, "c", true),
        (Why::Time, "c", false),
    ];
    for (at, (why, error, expected)) in steps.into_iter().enumerate() {
        assert_eq!(trouble.is_to_tell(why, error), expected, "step {at}");
    }
}

#[tokio::test]
async fn without_files_there_is_a_local_certificate_that_is_renewed_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("certs");
    let args = TlsArgs::default();
    let mut authorities = Vec::new();
    for place in [Some(own.as_path()), Some(own.as_path()), None] {
        let tls = Tls::load(&args, place).unwrap();
        let ca = tls.ca_pem().unwrap();
        let trusting = || client(ca.as_bytes(), rustls::ALL_VERSIONS);
        let before = shake(&tls, trusting(), "localhost").await.server;
        let same = shake(&tls, trusting(), "127.0.0.1").await.server;
        assert_eq!(before, same);
        let day = Duration::from_hours(24);
        let late = SystemTime::now() + day * 794;
        assert!(!tls.reload_at(late).unwrap());
        assert!(tls.reload_at(late + day * 2).unwrap());
        assert_eq!(tls.ca_pem().unwrap(), ca);
        authorities.push(ca);
    }
    assert_eq!(authorities[0], authorities[1]);
    assert_ne!(authorities[0], authorities[2]);
}

#[tokio::test]
async fn a_client_that_trusts_one_server_of_a_fleet_trusts_all_also_after_the_authority_is_renewed()
{
    let now = SystemTime::now();
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let text = shared::offered(folders[0].path(), now).unwrap();
    let latest: LatestAuthority = Arc::new(ArcSwap::from_pointee(text.clone()));
    let load = |folder: &TempDir| {
        Tls::load_shared(&TlsArgs::default(), folder.path(), Arc::clone(&latest)).unwrap()
    };
    let servers = folders.each_ref().map(load);
    let ca = servers[0].ca_pem().unwrap();
    let trusting = || client(ca.as_bytes(), rustls::ALL_VERSIONS);
    for server in &servers {
        assert_eq!(server.ca_pem().unwrap(), ca);
        shake(server, trusting(), "localhost").await;
        assert!(!server.reload().unwrap());
    }
    let late = now + Duration::from_hours(24 * 3_000);
    let renewed = shared::renewed(&text, late).unwrap().unwrap();
    latest.store(Arc::new(renewed));
    // Before the former certificate ends.
    for server in &servers {
        assert!(server.reload_at(now).unwrap());
        let new = server.ca_pem().unwrap();
        assert_ne!(new, ca);
        assert_eq!(new, servers[0].ca_pem().unwrap());
        shake(server, trusting(), "localhost").await;
    }
}

#[test]
fn a_damaged_file_of_the_broker_s_own_is_refused_with_what_to_do() {
    for text in ["-----BEGIN CERTIFICATE-----\n", ""] {
        let folder = tempfile::tempdir().unwrap();
        Tls::load(&TlsArgs::default(), Some(folder.path())).unwrap();
        std::fs::write(folder.path().join("ca.pem"), text).unwrap();
        let refused = Tls::load(&TlsArgs::default(), Some(folder.path()));
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("ca.pem: "), "{told}");
        assert!(told.contains("remove this directory"), "{told}");
    }
}

#[tokio::test]
async fn a_local_certificate_that_has_lost_its_key_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::load(&TlsArgs::default(), Some(folder.path())).unwrap();
    let ca = tls.ca_pem().unwrap();
    let other = KeyPair::generate().unwrap().serialize_pem();
    for damage in [Some(other), Some(String::new()), None] {
        let key = folder.path().join("server.key");
        match damage {
            Some(text) => std::fs::write(key, text).unwrap(),
            None => std::fs::remove_file(key).unwrap(),
        }
        assert!(tls.reload().unwrap());
        assert!(!tls.reload().unwrap());
        let trusting = client(ca.as_bytes(), rustls::ALL_VERSIONS);
        shake(&tls, trusting, "localhost").await;
    }
}

#[tokio::test]
async fn a_local_certificate_that_cannot_be_renewed_is_used_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let tls = Tls::load(&TlsArgs::default(), Some(folder.path())).unwrap();
    std::fs::remove_file(folder.path().join("ca.key")).unwrap();
    assert!(!tls.reload().unwrap());
    let late = SystemTime::now() + Duration::from_hours(800 * 24);
    assert!(!tls.reload_at(late).unwrap());
    let ca = tls.ca_pem().unwrap();
    shake(
        &tls,
        client(ca.as_bytes(), rustls::ALL_VERSIONS),
        "localhost",
    )
    .await;
    std::fs::remove_file(folder.path().join("server.key")).unwrap();
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.contains("ca.pem is there and"), "{error}");
}

#[test]
fn what_is_handed_out_is_public() {
    let bench = Bench::new();
    let mut args = bench.args(&["localhost"]);
    assert_eq!(Tls::load(&args, None).unwrap().ca_pem(), None);
    let ca = bench.authority.pem();
    let secret = bench.authority.key().serialize_pem();
    bench.write("ca.pem", format!("ours\n{secret}{ca}more\n{secret}"));
    let beside = Tls::load(&args, None).unwrap();
    assert_eq!(beside.ca_pem().as_deref(), Some(&ca[..]));
    args.tls_ca = Some(bench.write("named.pem", format!("{ca}{ca}")));
    let named = Tls::load(&args, None).unwrap();
    assert_eq!(named.ca_pem().as_deref(), Some(&format!("{ca}{ca}")[..]));
}

/// Checks what is told of a file with certificates and a file with a key.
fn check_told(bench: &Bench, certificates: &[u8], key: &[u8], expected: &str) {
    let args = TlsArgs {
        tls_cert: vec![bench.write("c.pem", certificates)],
        tls_key: vec![bench.write("k.pem", key)],
        ..TlsArgs::default()
    };
    let error = Tls::load(&args, None).unwrap_err().to_string();
    let place = format!("{}/", bench.folder.path().display());
    let told = error.strip_prefix(&place).unwrap_or(&error);
    assert!(told.starts_with(expected), "{told}\ninstead of {expected}");
}

#[test]
fn what_is_wrong_with_certificates_is_told_with_what_would_be_right() {
    let bench = Bench::new();
    let (certificate, key) = bench.sign(&["localhost"], |_| {});
    let key = key.serialize_pem();
    let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let broken = certificate.replace("-----END", "-----ENDE");
    let garbled = certificate.replace("MII", "AAA");
    let cases: [(&[u8], &str); 8] = [
        (
            b" \n",
            "it holds nothing and no certificate; a '-----BEGIN CERTIFICATE-----' is needed",
        ),
        (
            b"hello",
            "it holds something that is not PEM and no certificate",
        ),
        (key.as_bytes(), "it holds a private key and no certificate"),
        (
            &der,
            "it is a certificate in DER, and PEM is needed: openssl x509 -inform der",
        ),
        (
            &[0x30, 0],
            "it is a key store, perhaps, in DER, and PEM is needed: openssl pkcs12",
        ),
        (broken.as_bytes(), "its PEM is broken: "),
        (garbled.as_bytes(), "certificate 1 in it cannot be read: "),
        (b"-----BEGIN CERTIFICATE-----\n\xff", "its PEM is broken: "),
    ];
    for (certificates, expected) in cases {
        let expected = format!("c.pem: {expected}");
        check_told(&bench, certificates, key.as_bytes(), &expected);
    }
}

#[test]
fn what_is_wrong_with_a_key_is_told_with_what_would_be_right() {
    let bench = Bench::new();
    let (certificate, key) = bench.sign(&["localhost"], |_| {});
    let (other, other_key) = bench.sign(&["localhost"], |_| {});
    let (key, other_key) = (key.serialize_pem(), other_key.serialize_pem());
    let der = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let chain = format!("{certificate}{}", bench.authority.pem());
    let swapped = format!("{other}{certificate}");
    let encrypted = key.replace("PRIVATE", "ENCRYPTED PRIVATE");
    let section = |kind| format!("-----BEGIN {kind} KEY-----\nAAAA\n-----END {kind} KEY-----\n");
    let (garbled, public) = (section("PRIVATE"), section("PUBLIC"));
    let cases: [(&str, &[u8], &str); 8] = [
        (
            &chain,
            b"",
            "it holds nothing and no private key; a '-----BEGIN PRIVATE KEY-----' is",
        ),
        (
            &chain,
            chain.as_bytes(),
            "it holds certificates and no private key",
        ),
        (
            &chain,
            public.as_bytes(),
            "it holds other things and no private key",
        ),
        (
            &chain,
            der.secret_der(),
            "it is a private key in DER, and PEM is needed: openssl pkey",
        ),
        (
            &chain,
            encrypted.as_bytes(),
            "its key is encrypted, and the broker cannot ask",
        ),
        (&chain, garbled.as_bytes(), "its key cannot be used: "),
        (
            &chain,
            other_key.as_bytes(),
            "its key is not the one of the certificate in ",
        ),
        (
            &swapped,
            key.as_bytes(),
            "its key is the one of certificate 2 in ",
        ),
    ];
    for (certificates, key, expected) in cases {
        let expected = format!("k.pem: {expected}");
        check_told(&bench, certificates.as_bytes(), key, &expected);
    }
}

#[test]
fn what_is_not_there_is_told_too() {
    let bench = Bench::new();
    let mut args = bench.args(&["localhost", "one.test"]);
    args.tls_key.pop();
    let error = Tls::load(&args, None).unwrap_err().to_string();
    assert!(
        error.starts_with("--tls-cert is given 2 times and --tls-key 1 times"),
        "{error}"
    );
    for wrong in ["cert", "client-ca", "ca"] {
        let mut args = bench.args(&["localhost"]);
        let missing = bench.path(wrong);
        match wrong {
            "cert" => args.tls_cert = vec![missing],
            "ca" => args.tls_ca = Some(missing),
            _ => args.tls_client_ca = Some(missing),
        }
        let error = Tls::load(&args, None).unwrap_err().to_string();
        let expected = format!("{wrong}: it cannot be read: ");
        assert!(error.contains(&expected), "{error}");
    }
    let empty = TlsArgs {
        tls_client_ca: Some(bench.write("empty.pem", "")),
        ..bench.args(&["localhost"])
    };
    let error = Tls::load(&empty, None).unwrap_err().to_string();
    assert!(
        error.contains("empty.pem: it holds nothing and no certificate"),
        "{error}"
    );
}

#[test]
fn what_will_keep_clients_away_is_warned_of() {
    let bench = Bench::new();
    let warned = |hosts: &[&str], mode: u32, change: &dyn Fn(&mut CertificateParams)| {
        let (certificate, key) = bench.sign(hosts, change);
        let tls_cert = vec![bench.write("c.pem", certificate)];
        let key = bench.write("k.pem", key.serialize_pem());
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode)).unwrap();
        let args = TlsArgs {
            tls_cert,
            tls_key: vec![key],
            ..TlsArgs::default()
        };
        let tls = Tls::load(&args, None).unwrap();
        let warnings = tls.current.load().warnings.join("\n");
        let place = format!("{}/", bench.folder.path().display());
        warnings.replace(&place, "")
    };
    let good = &|_: &mut CertificateParams| {};
    assert_eq!(warned(&["localhost"], 0o600, good), "");
    assert_eq!(warned(&["localhost"], 0o640, good), "");
    let open = "k.pem: others can read this key: chmod o= k.pem";
    assert_eq!(warned(&["localhost"], 0o644, good), open);
    let nameless = warned(&[], 0o600, good);
    assert!(
        nameless.starts_with("c.pem: the certificate has no subjectAltName"),
        "{nameless}"
    );
    let ended = &|params: &mut CertificateParams| {
        params.not_after = rcgen::date_time_ymd(2001, 2, 3);
    };
    let ended = warned(&["localhost"], 0o600, ended);
    assert!(
        ended.starts_with("c.pem: the certificate ended on 2001-02-03"),
        "{ended}"
    );
    let early = &|params: &mut CertificateParams| {
        params.not_before = rcgen::date_time_ymd(4000, 2, 3);
    };
    let early = warned(&["localhost"], 0o600, early);
    assert!(
        early.starts_with("c.pem: the certificate begins on 4000-02-03"),
        "{early}"
    );
}

#[test]
fn an_authority_for_clients_that_is_none_is_warned_of() {
    let bench = Bench::new();
    let (certificate, _) = bench.sign(&["client"], |_| {});
    let args = TlsArgs {
        tls_client_ca: Some(bench.write("clients.pem", certificate)),
        ..bench.args(&["localhost"])
    };
    let tls = Tls::load(&args, None).unwrap();
    let warnings = tls.current.load().warnings.join("\n");
    assert!(
        warnings.contains("is not the certificate of an authority"),
        "{warnings}"
    );
}
