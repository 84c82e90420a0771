use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::limits;
use tempfile::TempDir;

use super::*;

fn args(folder: &Path, names: &[&str], clients: &[&str]) -> CertsArgs {
    CertsArgs {
        directory: folder.to_owned(),
        names: names.iter().map(|name| name.parse().unwrap()).collect(),
        clients: clients.iter().map(|name| name.parse().unwrap()).collect(),
        bundle: None,
        days: limits::CERTIFICATE_DAYS_MAX,
    }
}

#[test]
fn a_bundle_has_the_authority_and_the_others_once() {
    let (folder, other) = (folder(), folder());
    make(&args(other.path(), &[], &[]), now()).unwrap();
    let with = |bundle: &Path| CertsArgs {
        bundle: Some(bundle.to_owned()),
        ..args(folder.path(), &[], &[])
    };
    let others = other.path().join("ca.pem");
    let told = make(&with(&others), now()).unwrap();
    assert!(told.contains("REQUESTS_CA_BUNDLE="), "{told}");
    let bundle = folder.path().join("bundle.pem");
    for _ in 0..2 {
        let found = fs::read_to_string(&bundle).unwrap();
        assert_eq!(found.matches("BEGIN CERTIFICATE").count(), 2);
        for authority in [&others, &folder.path().join("ca.pem")] {
            assert!(found.contains(&fs::read_to_string(authority).unwrap()));
        }
        make(&with(&bundle), now()).unwrap();
    }
    fs::write(&others, "nothing").unwrap();
    let error = make(&with(&others), now()).unwrap_err();
    assert!(error.to_string().contains("no certificates"), "{error}");
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn now() -> SystemTime {
    SystemTime::now()
}

fn files(folder: &Path) -> Vec<(String, u32)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut all: Vec<_> = entries
        .map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    all.sort();
    all
}

#[test]
fn keys_are_for_their_owner_and_the_rest_for_all() {
    let folder = folder();
    // A file left by a crash, readable by all, must not receive a key.
    fs::write(folder.path().join("server.key.new"), "left").unwrap();
    let told = make(&args(folder.path(), &[], &["device-7"]), now()).unwrap();
    let expected = [
        ("ca.key", 0o600),
        ("ca.p12", 0o644),
        ("ca.pem", 0o644),
        ("device-7.key", 0o600),
        ("device-7.p12", 0o600),
        ("device-7.pem", 0o644),
        ("server.key", 0o600),
        ("server.p12", 0o600),
        ("server.pem", 0o644),
    ];
    let expected = expected.map(|(name, mode)| (name.to_owned(), mode));
    assert_eq!(files(folder.path()), expected);
    for (name, _) in expected {
        let (stem, _) = name.split_once('.').unwrap();
        assert!(told.contains(stem), "{told}");
    }
    for sdk in ["broker", "Python", "Node", "Go", "Java", ".NET"] {
        let begin = format!("  {sdk} ");
        assert!(told.lines().any(|line| line.starts_with(&begin)), "{told}");
    }
}

#[test]
fn an_authority_is_made_once() {
    let folder = folder();
    let path = |name| folder.path().join(name);
    let all =
        || ["ca.pem", "ca.key", "server.pem", "server.key"].map(|name| read(&path(name)).unwrap());
    let told = make(&args(folder.path(), &["one.test", "192.0.2.1"], &[]), now()).unwrap();
    assert!(told.contains("(new)"), "{told}");
    let first = all();
    let told = make(&args(folder.path(), &[], &[]), now()).unwrap();
    assert!(told.contains("(kept)"), "{told}");
    let second = all();
    assert_eq!(first[..2], second[..2]);
    assert_ne!(first[2], second[2]);
    assert_ne!(first[3], second[3]);
    // Without host names, the existing ones are kept.
    let server = leaf(&path("server.pem")).unwrap();
    assert_eq!(server.hosts(), ["one.test", "192.0.2.1"]);
    assert_eq!(server.common_name.as_deref(), Some("one.test"));
}

#[test]
fn a_certificate_is_good_for_at_most_825_days_and_not_longer_than_its_authority() {
    let folder = folder();
    let end = |name: &str| leaf(&folder.path().join(name)).unwrap();
    make(&args(folder.path(), &[], &[]), now()).unwrap();
    let server = end("server.pem");
    let days = |seconds: i64| seconds / (24 * 60 * 60);
    assert_eq!(days(server.not_after - server.not_before + 1), 825);
    let few = CertsArgs {
        days: 7,
        ..args(folder.path(), &[], &[])
    };
    make(&few, now()).unwrap();
    let server = end("server.pem");
    assert_eq!(days(server.not_after - server.not_before + 1), 7);
    let late = now() + DAY * 3600;
    make(&args(folder.path(), &[], &[]), late).unwrap();
    assert_eq!(end("server.pem").not_after, end("ca.pem").not_after);
    let error = make(&args(folder.path(), &[], &[]), late + DAY * 60).unwrap_err();
    assert!(
        error.to_string().contains("ca.pem: the authority ended on"),
        "{error}"
    );
}

#[test]
fn what_is_not_ours_is_not_overwritten() {
    type Change = fn(&Path, &Path);
    let cases: [(Change, &str); 6] = [
        (
            |here, _| fs::remove_file(here.join("ca.key")).unwrap(),
            "ca.pem is there and",
        ),
        (
            |here, _| fs::remove_file(here.join("ca.pem")).unwrap(),
            "ca.key is there and",
        ),
        (
            |here, other| {
                fs::copy(other.join("ca.key"), here.join("ca.key")).unwrap();
            },
            "ca.key: not the key of",
        ),
        (
            |here, _| {
                fs::copy(here.join("server.pem"), here.join("ca.pem")).unwrap();
                fs::copy(here.join("server.key"), here.join("ca.key")).unwrap();
            },
            "ca.pem: not the certificate of an authority",
        ),
        (
            |here, _| fs::write(here.join("ca.pem"), "nothing").unwrap(),
            "ca.pem: no certificate in PEM",
        ),
        (
            |here, _| {
                let foreign = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
                fs::write(here.join("server.pem"), foreign.cert.pem()).unwrap();
            },
            "server.pem was signed by 'CN=rcgen self signed cert' and not by",
        ),
    ];
    let other = folder();
    make(&args(other.path(), &[], &[]), now()).unwrap();
    for (change, expected) in cases {
        let here = folder();
        make(&args(here.path(), &[], &[]), now()).unwrap();
        change(here.path(), other.path());
        let content = |(name, _): &(String, u32)| fs::read(here.path().join(name)).unwrap();
        let before: Vec<_> = files(here.path()).iter().map(content).collect();
        let error = make(&args(here.path(), &[], &[]), now())
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
        let after: Vec<_> = files(here.path()).iter().map(content).collect();
        assert_eq!(before, after);
    }
}

#[test]
fn files_that_go_together_are_replaced_together_or_not_at_all() {
    let folder = folder();
    make(&args(folder.path(), &[], &[]), now()).unwrap();
    let content = |name| fs::read(folder.path().join(name)).unwrap();
    let all = || ["server.key", "server.pem", "server.p12"].map(content);
    let before = all();
    // The last of the three cannot be written.
    let blocked = folder.path().join("server.p12.new");
    fs::create_dir(&blocked).unwrap();
    let error = make(&args(folder.path(), &[], &[]), now()).unwrap_err();
    assert!(
        error.to_string().contains("server.p12 cannot be written"),
        "{error}"
    );
    assert_eq!(all(), before);
    fs::remove_dir(&blocked).unwrap();
    make(&args(folder.path(), &[], &[]), now()).unwrap();
    assert_ne!(all(), before);
}

#[test]
fn certificates_of_an_authority_of_ours_that_is_gone_are_made_again() {
    let folder = folder();
    make(&args(folder.path(), &["one.test"], &[]), now()).unwrap();
    fs::remove_file(folder.path().join("ca.pem")).unwrap();
    fs::remove_file(folder.path().join("ca.key")).unwrap();
    make(&args(folder.path(), &[], &[]), now()).unwrap();
    let server = leaf(&folder.path().join("server.pem")).unwrap();
    let authority = leaf(&folder.path().join("ca.pem")).unwrap();
    assert_eq!(server.issuer, authority.subject);
    assert_eq!(server.hosts(), ["one.test"]);
}

#[test]
fn an_authority_of_others_may_sign() {
    let folder = folder();
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let mut params = valid(now(), 10);
    params
        .distinguished_name
        .push(DnType::CommonName, "the company's");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let made = params.self_signed(&key).unwrap();
    fs::write(folder.path().join("ca.pem"), made.pem()).unwrap();
    fs::write(folder.path().join("ca.key"), key.serialize_pem()).unwrap();
    make(&args(folder.path(), &[], &[]), now()).unwrap();
    let server = leaf(&folder.path().join("server.pem")).unwrap();
    assert_eq!(server.issuer, "CN=the company's");
}

#[test]
fn names_are_hosts_and_addresses() {
    for good in [
        "localhost",
        "a.b-c.test",
        "*.b.test",
        "::1",
        "10.0.0.1",
        "a_b",
        "UPPER",
    ] {
        let name: SubjectName = good.parse().unwrap();
        assert_eq!(name.to_string(), good.to_ascii_lowercase());
    }
    let long = "a".repeat(64);
    for bad in [
        "",
        "a b",
        "https://a",
        "a:5671",
        "a.",
        ".a",
        "*",
        "a.*.b",
        "*.",
        "ä.test",
        &long,
    ] {
        assert!(bad.parse::<SubjectName>().is_err(), "{bad}");
    }
    for good in ["device-7", "Ärger", "a.b@c.d", "one two"] {
        assert_eq!(good.parse(), Ok(ClientName(good.to_owned())));
    }
    let long = "a".repeat(65);
    for bad in [
        "", "ca", "Server", "../up", "a/b", ".hidden", " a", "a\n", &long,
    ] {
        assert!(bad.parse::<ClientName>().is_err(), "{bad}");
    }
}

#[test]
fn names_that_are_too_long_for_a_common_name_are_for_hosts_all_the_same() {
    let folder = folder();
    let name = format!("{}.test", "a".repeat(63));
    make(&args(folder.path(), &[&name], &[]), now()).unwrap();
    let server = leaf(&folder.path().join("server.pem")).unwrap();
    assert_eq!(server.common_name, None);
    assert_eq!(server.hosts(), [name]);
}

/// The output of another program about a file; none where it is not installed.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    Some(said)
}

#[test]
fn others_read_what_is_made_here() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    make(&args(folder.path(), &[], &["device-7"]), now()).unwrap();
    let ca = path("ca.pem");
    for (purpose, name) in [("sslserver", "server.pem"), ("sslclient", "device-7.pem")] {
        let check = [
            "verify",
            "-x509_strict",
            "-purpose",
            purpose,
            "-CAfile",
            &ca,
        ];
        let file = path(name);
        if let Some(said) = said("openssl", &[&check[..], &[&file]].concat()) {
            assert!(said.contains("OK"), "{said}");
        }
    }
    let kinds = [
        ("server", "PrivateKeyEntry"),
        ("device-7", "PrivateKeyEntry"),
        ("ca", "trustedCertEntry"),
    ];
    for (name, kind) in kinds {
        let store = path(&format!("{name}.p12"));
        let password = format!("pass:{}", pkcs12::PASSWORD);
        let read = ["pkcs12", "-nodes", "-passin", &password, "-in", &store];
        if let Some(said) = said("openssl", &read) {
            let own = leaf(&folder.path().join(format!("{name}.pem"))).unwrap();
            let subject = own.subject.replace('=', " = ");
            assert!(said.contains(&format!("subject={subject}")), "{said}");
            assert_eq!(said.contains("PRIVATE KEY"), kind == "PrivateKeyEntry");
        }
        let list = ["-list", "-storepass", pkcs12::PASSWORD, "-keystore", &store];
        if let Some(said) = said("keytool", &list) {
            assert!(said.contains(kind), "{said}");
        }
    }
}

#[test]
fn a_bundle_has_the_authority_once() {
    let once = bundle("ours\n", "others\n");
    assert_eq!(once, "ours\nothers\n");
    assert_eq!(bundle("ours\n", &once), once);
    assert_eq!(bundle("ours\n", ""), "ours\n");
}
