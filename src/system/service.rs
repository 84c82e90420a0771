//! What a service manager is told: that the broker serves, and that it stops.
//!
//! systemd gives a service of `Type=notify` the name of a datagram socket in `NOTIFY_SOCKET` (`sd_notify(3)`): a path, or behind an
//! `@` a name that is in no directory. Without the variable
//! nothing is sent.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

use tracing::warn;

/// What the service manager is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServiceState {
    /// Clients are served: what waits for this service may start.
    Ready,
    /// The stop has begun.
    Stopping,
}

impl ServiceState {
    const fn message(self) -> &'static [u8] {
        match self {
            Self::Ready => b"READY=1",
            Self::Stopping => b"STOPPING=1",
        }
    }
}

/// Tells the service manager, if there is one, and warns if that fails: a manager that waits for the message will end the broker.
pub(crate) fn notify(state: ServiceState) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(name.as_bytes(), state.message()) {
        let name = name.display();
        warn!("the service manager at NOTIFY_SOCKET={name} could not be told: {error}");
    }
}

fn send(name: &[u8], message: &[u8]) -> io::Result<()> {
    let address = match name.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(Path::new(std::ffi::OsStr::from_bytes(name)))?,
    };
    let socket = UnixDatagram::unbound()?;
    // The manager may not read at once; the broker does not wait for it.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(message, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> Vec<u8> {
        let mut bytes = [0; 64];
        let length = socket.recv(&mut bytes).unwrap();
        bytes[..length].to_vec()
    }

    #[test]
    fn a_manager_is_told_at_a_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        let name = path.as_os_str().as_bytes();
        send(name, ServiceState::Ready.message()).unwrap();
        send(name, ServiceState::Stopping.message()).unwrap();
        assert_eq!(received(&manager), b"READY=1");
        assert_eq!(received(&manager), b"STOPPING=1");
    }

    #[test]
    fn a_manager_is_told_at_an_abstract_name() {
        let name = format!("jitney-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        send(format!("@{name}").as_bytes(), b"READY=1").unwrap();
        assert_eq!(received(&manager), b"READY=1");
    }

    #[test]
    fn a_manager_that_is_not_there_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        assert!(send(path.as_os_str().as_bytes(), b"READY=1").is_err());
    }
}
