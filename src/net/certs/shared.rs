//! The authority of the certificates that servers show to clients, where servers share it: a client that trusts it trusts every
//! server behind one address.
//!
//! The stores keep it, with its key (`store::authority`). Each server writes it where a server alone keeps its own, and
//! issues its certificate with it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use arc_swap::ArcSwap;
use rcgen::KeyPair;

use super::{
    AuthorityFiles, CertificateAuthority, CertsError, DAY, files, is_ours, is_usable, leaf,
    make_private, put_server, read,
};
use crate::limits;
use crate::system::files::Readers;

/// The certificate and the key of the authority, as PEM, as this server has seen them last.
pub(crate) type LatestAuthority = Arc<ArcSwap<String>>;

/// How the key of an authority begins.
const KEY: &str = "-----BEGIN PRIVATE KEY";

/// Returns an authority for stores that have none yet: the one that a server has made in its directory and that its clients trust
/// already, or a new one.
pub(crate) fn offered(directory: &Path, now: SystemTime) -> Result<String, CertsError> {
    let files = AuthorityFiles::new(directory);
    match CertificateAuthority::open(&files, now) {
        Ok(authority) if authority.is_ours() => Ok(authority.text()),
        Ok(_) | Err(_) => Ok(CertificateAuthority::make(now)?.text()),
    }
}

/// Returns the authority with a new certificate if the present one ends before a certificate that it issues now. It keeps its key
/// and its name: a client that trusts the former certificate verifies the servers until that one ends.
pub(crate) fn renewed(text: &str, now: SystemTime) -> Result<Option<String>, CertsError> {
    let authority = parse(text)?;
    let wanted = DAY * limits::CERTIFICATE_DAYS_MAX;
    if authority.certificate.is_good_for(now, wanted) {
        return Ok(None);
    }
    let key = KeyPair::from_pem(&authority.issuer.key().serialize_pem())?;
    Ok(Some(CertificateAuthority::of_key(key, now)?.text()))
}

/// Makes sure that a directory has the authority, and a certificate for the broker by it that is valid for a while longer. An
/// authority that the operator has put there stays, and signs instead.
pub(crate) fn keep(directory: &Path, text: &str, now: SystemTime) -> Result<(), CertsError> {
    let authority = parse(text)?;
    let here = AuthorityFiles::new(directory);
    let found = leaf(&here.certificate);
    if found.is_some_and(|found| !is_ours(&found.subject)) {
        return super::keep(directory, now);
    }
    let key = authority.issuer.key().serialize_pem();
    let has = |file: &Path, text: &str| read(file).is_ok_and(|found| found == text);
    if !has(&here.certificate, &authority.pem) || !has(&here.key, &key) {
        make_private(directory)?;
        files::replace(&[
            (here.key.clone(), key.as_bytes(), Readers::Owner),
            (
                here.certificate.clone(),
                authority.pem.as_bytes(),
                Readers::OfDirectory,
            ),
        ])?;
    }
    let file = directory.join("server.pem");
    let old = leaf(&file);
    let chain = fs::read_to_string(&file).unwrap_or_default();
    // A chain with the former certificate of the authority ends with that.
    let is_of_it = chain.ends_with(&authority.pem);
    if is_of_it
        && old
            .as_ref()
            .is_some_and(|old| is_usable(directory, old, now))
    {
        return Ok(());
    }
    put_server(directory, &authority, old.as_ref(), now)
}

/// Reads what a store has.
fn parse(text: &str) -> Result<CertificateAuthority, CertsError> {
    let name = "the authority of the stores";
    let names = AuthorityFiles {
        certificate: name.into(),
        key: name.into(),
    };
    let (pem, key) = text.split_at(text.find(KEY).unwrap_or(text.len()));
    CertificateAuthority::parse(&names, pem.to_owned(), key)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn folder() -> TempDir {
        tempfile::tempdir().unwrap()
    }

    fn content(folder: &TempDir, name: &str) -> String {
        fs::read_to_string(folder.path().join(name)).unwrap()
    }

    #[test]
    fn servers_that_share_an_authority_have_it_in_their_directories_and_certificates_of_their_own()
    {
        let now = SystemTime::now();
        let (one, two) = (folder(), folder());
        let text = offered(one.path(), now).unwrap();
        for folder in [&one, &two] {
            keep(folder.path(), &text, now).unwrap();
            let both = [content(folder, "ca.pem"), content(folder, "ca.key")];
            assert_eq!(both.concat(), text);
            let before = content(folder, "server.pem");
            assert!(before.ends_with(&both[0]));
            keep(folder.path(), &text, now).unwrap();
            assert_eq!(content(folder, "server.pem"), before, "it is made once");
        }
        assert_ne!(content(&one, "server.pem"), content(&two, "server.pem"));
        assert_ne!(content(&one, "server.key"), content(&two, "server.key"));
    }

    #[test]
    fn a_server_offers_the_authority_that_its_clients_trust_and_takes_that_of_the_stores() {
        let now = SystemTime::now();
        let (one, two) = (folder(), folder());
        for folder in [&one, &two] {
            super::super::keep(folder.path(), now).unwrap();
        }
        let text = offered(one.path(), now).unwrap();
        assert_eq!(
            text,
            [content(&one, "ca.pem"), content(&one, "ca.key")].concat()
        );
        let before = content(&one, "server.pem");
        for folder in [&one, &two] {
            keep(folder.path(), &text, now).unwrap();
            assert_eq!(content(folder, "ca.pem"), content(&one, "ca.pem"));
            let issuer = leaf(&folder.path().join("server.pem")).unwrap().issuer;
            assert_eq!(issuer, parse(&text).unwrap().certificate.subject);
        }
        assert_eq!(content(&one, "server.pem"), before);
    }

    #[test]
    fn an_authority_of_the_operator_is_neither_offered_nor_replaced() {
        let now = SystemTime::now();
        let folder = folder();
        let key = KeyPair::generate().unwrap();
        let mut params = super::super::valid(now, 1_000);
        let names = &mut params.distinguished_name;
        names.push(rcgen::DnType::CommonName, "the company's");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let made = params.self_signed(&key).unwrap().pem();
        fs::write(folder.path().join("ca.pem"), &made).unwrap();
        fs::write(folder.path().join("ca.key"), key.serialize_pem()).unwrap();
        let text = offered(folder.path(), now).unwrap();
        assert!(parse(&text).unwrap().is_ours());
        keep(folder.path(), &text, now).unwrap();
        assert_eq!(content(&folder, "ca.pem"), made);
        let issuer = leaf(&folder.path().join("server.pem")).unwrap().issuer;
        assert_eq!(issuer, "CN=the company's");
    }

    #[test]
    fn an_authority_is_renewed_before_a_certificate_would_end_early_and_keeps_its_key_and_name() {
        let now = SystemTime::now();
        let folder = folder();
        let text = CertificateAuthority::make(now).unwrap().text();
        let lasts = DAY * (limits::AUTHORITY_DAYS - limits::CERTIFICATE_DAYS_MAX - 1);
        assert_eq!(renewed(&text, now + lasts).unwrap(), None);
        // Also one that has ended.
        for late in [lasts + 2 * DAY, DAY * 5_000] {
            let late = now + late;
            let other = renewed(&text, late).unwrap().unwrap();
            assert_eq!(renewed(&other, late).unwrap(), None);
            let (before, after) = (parse(&text).unwrap(), parse(&other).unwrap());
            assert_eq!(before.certificate.subject, after.certificate.subject);
            assert_eq!(before.certificate.public_key, after.certificate.public_key);
            assert_ne!(
                before.der, after.der,
                "another serial number and another end"
            );
            keep(folder.path(), &text, now).unwrap();
            keep(folder.path(), &other, late).unwrap();
            assert_eq!(content(&folder, "ca.pem"), after.pem);
            assert!(content(&folder, "server.pem").ends_with(&after.pem));
            let server = leaf(&folder.path().join("server.pem")).unwrap();
            assert!(server.is_good_for(late, DAY * (limits::CERTIFICATE_DAYS_MAX - 1)));
        }
    }

    #[test]
    fn a_damaged_authority_of_the_stores_is_told() {
        let now = SystemTime::now();
        let folder = folder();
        super::super::keep(folder.path(), now).unwrap();
        let before = content(&folder, "ca.pem");
        for text in ["", "nothing", &before] {
            let error = keep(folder.path(), text, now).unwrap_err().to_string();
            assert!(
                error.starts_with("the authority of the stores: "),
                "{error}"
            );
        }
        assert_eq!(content(&folder, "ca.pem"), before);
    }
}
