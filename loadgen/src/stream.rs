//! The byte stream to the broker: TCP, or TLS on it. Reads and writes never wait.

use std::io::{self, BufRead as _, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What a client needs for TLS: the certificates that it trusts.
pub(crate) type Trust = Arc<ClientConfig>;

/// A stream to the broker.
#[derive(Debug)]
pub(crate) struct Stream {
    tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

/// The socket as TLS uses it: a call that would block is an error of that kind.
struct Socket<'a>(&'a TcpStream);

/// Bytes of a record's plain text at most [RFC 8446, 5.1]; no record is read without room for it.
const RECORD_BYTES: usize = 16 * 1024;

/// Reads the certificates that a client trusts from a PEM file.
pub(crate) fn trust(file: &Path) -> Result<Trust, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))? {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"the file has no certificate"));
    }
    let config = ClientConfig::builder().with_root_certificates(roots);
    Ok(Arc::new(config.with_no_client_auth()))
}

impl Stream {
    /// Makes a stream of a connected socket. With TLS, `host` is the name that the broker's
    /// certificate must have. The handshake is made by the first reads and writes.
    pub(crate) fn new(tcp: TcpStream, trust: Option<&Trust>, host: &str) -> Result<Self, String> {
        tcp.set_nodelay(true).map_err(|error| error.to_string())?;
        let tls = match trust {
            None => None,
            Some(config) => {
                let name = ServerName::try_from(host.to_owned());
                let name = name.map_err(|error| format!("{host}: {error}"))?;
                let tls = ClientConnection::new(Arc::clone(config), name);
                Some(Box::new(tls.map_err(|error| error.to_string())?))
            }
        };
        Ok(Self { tcp, tls })
    }

    /// Waits until the socket is ready for what is wanted; where TLS has something to write, until
    /// writing is possible, too. Returns whether there is something to read.
    pub(crate) async fn ready(&self, mut interest: Interest) -> io::Result<bool> {
        if self.tls.as_ref().is_some_and(|tls| tls.wants_write()) {
            interest |= Interest::WRITABLE;
        }
        Ok(self.tcp.ready(interest).await?.is_readable())
    }

    /// Reads what has come, up to the room of `input`. Returns 0 at the end of the stream.
    pub(crate) fn try_read(&mut self, input: &mut BytesMut) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.tcp.try_read_buf(input);
        };
        let mut count = 0;
        loop {
            let Some(taken) = take_decrypted(tls, input)? else {
                return Ok(count);
            };
            count += taken;
            if input.capacity() - input.len() < RECORD_BYTES {
                return Ok(count);
            }
            match tls.read_tls(&mut Socket(&self.tcp)) {
                Ok(0) => return Ok(count),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock && 0 < count => {
                    return Ok(count);
                }
                Err(error) => return Err(error),
            }
            if let Err(error) = tls.process_new_packets() {
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Writes a part of the bytes; with TLS, the rest of it may still have to be flushed.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.tcp.try_write(bytes);
        };
        let count = tls.writer().write(bytes)?;
        self.flush()?;
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(count)
    }

    /// Writes what TLS holds, until the socket would block.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        while tls.wants_write() {
            match tls.write_tls(&mut Socket(&self.tcp)) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Moves decrypted bytes to `input`. Returns their number, or `None` at the end of the stream.
fn take_decrypted(tls: &mut ClientConnection, input: &mut BytesMut) -> io::Result<Option<usize>> {
    let mut count = 0;
    loop {
        let mut reader = tls.reader();
        let taken = match reader.fill_buf() {
            Ok([]) => return Ok((0 < count).then_some(count)),
            Ok(bytes) => {
                input.extend_from_slice(bytes);
                bytes.len()
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Some(count)),
            Err(error) => return Err(error),
        };
        reader.consume(taken);
        count += taken;
    }
}

impl Read for Socket<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(bytes)
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
