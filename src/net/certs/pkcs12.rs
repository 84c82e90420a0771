//! PKCS#12 [RFC 7292]: the key stores and trust stores that Java and .NET read.
//!
//! Written, never read. Encryption is PBES2 with AES-256 [RFC 8018] and integrity HMAC with
//! SHA-256: the strongest that OpenSSL 3, Java 8u301 and .NET on every current system read.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{AES_256, PaddedBlockEncryptingKey, UnboundCipherKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{digest, hmac, pbkdf2, rand};
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, Tag};

/// The password of every store: what keytool's users expect. It protects from nothing; the mode of
/// the file does.
pub(super) const PASSWORD: &str = "changeit";

/// How often a password is hashed, as keytool does.
const ROUNDS: NonZeroU32 = NonZeroU32::new(10_000).expect("it is not zero");

const DATA: &[u64] = &[1, 2, 840, 113_549, 1, 7, 1];
const ENCRYPTED_DATA: &[u64] = &[1, 2, 840, 113_549, 1, 7, 6];
const KEY_BAG: &[u64] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 2];
const CERTIFICATE_BAG: &[u64] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 3];
const X509_CERTIFICATE: &[u64] = &[1, 2, 840, 113_549, 1, 9, 22, 1];
const FRIENDLY_NAME: &[u64] = &[1, 2, 840, 113_549, 1, 9, 20];
const LOCAL_KEY_ID: &[u64] = &[1, 2, 840, 113_549, 1, 9, 21];
/// Java's: without it, a certificate in a store is not one to trust.
const TRUSTED_KEY_USAGE: &[u64] = &[2, 16, 840, 1, 113_894, 746_875, 1, 1];
const ANY_USAGE: &[u64] = &[2, 5, 29, 37, 0];
const PBES2: &[u64] = &[1, 2, 840, 113_549, 1, 5, 13];
const PBKDF2: &[u64] = &[1, 2, 840, 113_549, 1, 5, 12];
const HMAC_SHA256: &[u64] = &[1, 2, 840, 113_549, 2, 9];
const AES_256_CBC: &[u64] = &[2, 16, 840, 1, 101, 3, 4, 1, 42];
const SHA256: &[u64] = &[2, 16, 840, 1, 101, 3, 4, 2, 1];

/// Returns a store with a key (PKCS#8) and its certificates, the key's own first.
///
/// # Errors
///
/// The system has no randomness to give.
pub(super) fn key_store(alias: &str, key: &[u8], chain: &[&[u8]]) -> Result<Vec<u8>, Unspecified> {
    let own = chain.first().copied().unwrap_or_default();
    let id = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, own);
    let key = Encrypted::new(key)?;
    let keys = yasna::construct_der(|writer| {
        writer.write_sequence_of(|bags| {
            bags.next().write_sequence(|bag| {
                write_oid(bag.next(), KEY_BAG);
                bag.next().write_tagged(Tag::context(0), |value| {
                    value.write_sequence(|encrypted| {
                        key.write_algorithm(encrypted.next());
                        encrypted.next().write_bytes(&key.bytes);
                    });
                });
                bag.next().write_set_of(|attributes| {
                    write_friendly_name(attributes.next(), alias);
                    write_key_id(attributes.next(), id.as_ref());
                });
            });
        });
    });
    let certificates = yasna::construct_der(|writer| {
        writer.write_sequence_of(|bags| {
            for (at, certificate) in chain.iter().enumerate() {
                write_certificate(bags.next(), certificate, |attributes| {
                    // A certificate with the key's id is the key's own; others complete the chain.
                    if at == 0 {
                        attributes.write_set_of(|attributes| {
                            write_friendly_name(attributes.next(), alias);
                            write_key_id(attributes.next(), id.as_ref());
                        });
                    }
                });
            }
        });
    });
    store(&[
        BagContents::Plain(keys),
        BagContents::Encrypted(Encrypted::new(&certificates)?),
    ])
}

/// Returns a store with a certificate to trust.
///
/// # Errors
///
/// The system has no randomness to give.
pub(super) fn trust_store(alias: &str, certificate: &[u8]) -> Result<Vec<u8>, Unspecified> {
    let bags = yasna::construct_der(|writer| {
        writer.write_sequence_of(|bags| {
            write_certificate(bags.next(), certificate, |attributes| {
                attributes.write_set_of(|attributes| {
                    write_friendly_name(attributes.next(), alias);
                    write_attribute(attributes.next(), TRUSTED_KEY_USAGE, |value| {
                        write_oid(value, ANY_USAGE);
                    });
                });
            });
        });
    });
    store(&[BagContents::Encrypted(Encrypted::new(&bags)?)])
}

/// A part of a store.
enum BagContents {
    Plain(Vec<u8>),
    Encrypted(Encrypted),
}

fn store(parts: &[BagContents]) -> Result<Vec<u8>, Unspecified> {
    let parts = yasna::construct_der(|writer| {
        writer.write_sequence_of(|all| {
            for part in parts {
                match part {
                    BagContents::Plain(bytes) => write_data(all.next(), bytes),
                    BagContents::Encrypted(sealed) => sealed.write_contents(all.next()),
                }
            }
        });
    });
    let mut salt = [0; 16];
    rand::fill(&mut salt)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &integrity_key(PASSWORD, &salt));
    let code = hmac::sign(&key, &parts);
    Ok(yasna::construct_der(|writer| {
        writer.write_sequence(|store| {
            store.next().write_u8(3);
            write_data(store.next(), &parts);
            store.next().write_sequence(|integrity| {
                integrity.next().write_sequence(|digest| {
                    write_algorithm(digest.next(), SHA256);
                    digest.next().write_bytes(code.as_ref());
                });
                integrity.next().write_bytes(&salt);
                integrity.next().write_u32(ROUNDS.get());
            });
        });
    }))
}

/// The key of the integrity code [RFC 7292 B.2]. It is one block of SHA-256, so the part of the
/// algorithm that chains blocks is omitted.
fn integrity_key(password: &str, salt: &[u8]) -> Vec<u8> {
    /// Bytes that SHA-256 takes in at once.
    const BLOCK: usize = 64;
    /// That the key is for integrity.
    const PURPOSE: u8 = 3;
    let password: Vec<u8> = password
        .encode_utf16()
        .chain([0])
        .flat_map(u16::to_be_bytes)
        .collect();
    let mut input = vec![PURPOSE; BLOCK];
    for part in [salt, &password] {
        let length = part.len().next_multiple_of(BLOCK);
        input.extend(part.iter().cycle().take(length));
    }
    let mut hash = digest::digest(&digest::SHA256, &input);
    for _ in 1..ROUNDS.get() {
        hash = digest::digest(&digest::SHA256, hash.as_ref());
    }
    hash.as_ref().to_vec()
}

/// Something encrypted with the password.
struct Encrypted {
    salt: [u8; 16],
    start: Vec<u8>,
    bytes: Vec<u8>,
}

impl Encrypted {
    fn new(plain: &[u8]) -> Result<Self, Unspecified> {
        let mut salt = [0; 16];
        rand::fill(&mut salt)?;
        let mut key = [0; 32];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, ROUNDS, &salt, PASSWORD.as_bytes(), &mut key);
        let key = PaddedBlockEncryptingKey::cbc_pkcs7(UnboundCipherKey::new(&AES_256, &key)?)?;
        let mut bytes = plain.to_vec();
        let context = key.encrypt(&mut bytes)?;
        let start: &[u8] = (&context).try_into()?;
        Ok(Self {
            salt,
            start: start.to_vec(),
            bytes,
        })
    }

    fn write_algorithm(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|algorithm| {
            write_oid(algorithm.next(), PBES2);
            algorithm.next().write_sequence(|parameters| {
                parameters.next().write_sequence(|derivation| {
                    write_oid(derivation.next(), PBKDF2);
                    derivation.next().write_sequence(|parameters| {
                        parameters.next().write_bytes(&self.salt);
                        parameters.next().write_u32(ROUNDS.get());
                        write_algorithm(parameters.next(), HMAC_SHA256);
                    });
                });
                parameters.next().write_sequence(|encryption| {
                    write_oid(encryption.next(), AES_256_CBC);
                    encryption.next().write_bytes(&self.start);
                });
            });
        });
    }

    fn write_contents(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|contents| {
            write_oid(contents.next(), ENCRYPTED_DATA);
            contents.next().write_tagged(Tag::context(0), |value| {
                value.write_sequence(|data| {
                    data.next().write_u8(0);
                    data.next().write_sequence(|encrypted| {
                        write_oid(encrypted.next(), DATA);
                        self.write_algorithm(encrypted.next());
                        let tag = Tag::context(0);
                        let bytes = encrypted.next();
                        bytes.write_tagged_implicit(tag, |bytes| bytes.write_bytes(&self.bytes));
                    });
                });
            });
        });
    }
}

fn write_data(writer: DERWriter<'_>, bytes: &[u8]) {
    writer.write_sequence(|contents| {
        write_oid(contents.next(), DATA);
        let value = contents.next();
        value.write_tagged(Tag::context(0), |value| value.write_bytes(bytes));
    });
}

fn write_certificate(
    writer: DERWriter<'_>,
    certificate: &[u8],
    attributes: impl FnOnce(DERWriter<'_>),
) {
    writer.write_sequence(|bag| {
        write_oid(bag.next(), CERTIFICATE_BAG);
        bag.next().write_tagged(Tag::context(0), |value| {
            value.write_sequence(|value| {
                write_oid(value.next(), X509_CERTIFICATE);
                let bytes = value.next();
                bytes.write_tagged(Tag::context(0), |bytes| bytes.write_bytes(certificate));
            });
        });
        attributes(bag.next());
    });
}

fn write_friendly_name(writer: DERWriter<'_>, name: &str) {
    write_attribute(writer, FRIENDLY_NAME, |value| value.write_bmp_string(name));
}

fn write_key_id(writer: DERWriter<'_>, id: &[u8]) {
    write_attribute(writer, LOCAL_KEY_ID, |value| value.write_bytes(id));
}

fn write_attribute(writer: DERWriter<'_>, kind: &[u64], value: impl FnOnce(DERWriter<'_>)) {
    writer.write_sequence(|attribute| {
        write_oid(attribute.next(), kind);
        attribute.next().write_set_of(|values| value(values.next()));
    });
}

fn write_algorithm(writer: DERWriter<'_>, algorithm: &[u64]) {
    writer.write_sequence(|parts| {
        write_oid(parts.next(), algorithm);
        parts.next().write_null();
    });
}

fn write_oid(writer: DERWriter<'_>, oid: &[u64]) {
    writer.write_oid(&ObjectIdentifier::from_slice(oid));
}
