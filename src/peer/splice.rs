//! AMQP connections that are passed on to the server that has their namespace.
//!
//! A client names its namespace in `open`. By then this server has exchanged the protocol headers and SASL with it. Its bytes were
//! kept; they are sent again to the other server, whose answers up to its protocol header were given already and are left out. From
//! there on bytes are copied. What the client said of itself in SASL is judged by the other server.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::{debug, info};

use super::copy::{CopyWaits, copy};
use super::reach::{NotPassed, PeerConnection, Peers};
use crate::limits;
use crate::net::admission::Permit;
use crate::net::socket::Stream;

impl Peers {
    /// Passes a connection on until one side ends it, or another server takes the namespace. `received` is everything that the client
    /// has sent. Its `permit` is kept until the other server has begun to serve it, and counts it by a permit of its own.
    ///
    /// # Errors
    ///
    /// The client has got nothing yet; why it is to be closed.
    pub(crate) async fn pass(
        &self,
        stream: &mut impl Stream,
        received: &[u8],
        permit: Option<Permit>,
        connection: PeerConnection,
        mut stopped: watch::Receiver<bool>,
    ) -> Result<(), NotPassed> {
        let PeerConnection {
            stream: mut other,
            namespace,
            owner,
            slot: _slot,
        } = connection;
        // The other server may queue it, and hold it until its store is there.
        let wait = limits::ADMISSION_DEADLINE.as_duration() + limits::OWNER_WAIT.as_duration();
        tokio::select! {
            begun = begin(&mut other, received, wait) => begun?,
            () = self.until_moved(&namespace, &owner) => return Err(NotPassed::Moved),
            _ = stopped.wait_for(|stopped| *stopped) => return Err(NotPassed::Stopping),
        }
        drop(permit);
        tokio::select! {
            copied = copy(stream, &mut other, CopyWaits::new()) => {
                if let Err(error) = copied {
                    debug!(%error, "a connection that was passed on has ended");
                }
                return Ok(());
            }
            () = self.until_moved(&namespace, &owner) => {
                info!(namespace, server = owner.server, "a connection is closed: the server that it was passed on to no longer has the namespace");
            }
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
        let wait = limits::LAST_WRITE_WAIT.as_duration();
        let _ = timeout(wait, stream.shutdown()).await;
        Ok(())
    }
}

/// Sends another server what the client has sent, and waits for its AMQP header.
async fn begin(
    other: &mut (impl AsyncRead + AsyncWrite + Unpin),
    received: &[u8],
    wait: Duration,
) -> Result<(), NotPassed> {
    let begun = timeout(wait, async {
        other.write_all(received).await?;
        other.flush().await?;
        skip_prelude(other).await
    });
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    begun.await.map_err(late)?
}

/// Reads what the other server answers up to its AMQP header, which the client has got from this server.
async fn skip_prelude(other: &mut (impl AsyncRead + Unpin)) -> Result<(), NotPassed> {
    /// Bytes of a protocol header, and of a frame's head [2.2, 2.3].
    const HEAD: usize = 8;
    /// The kind of a SASL frame [5.3.1].
    const SASL: u8 = 1;
    /// The descriptor of the outcome [5.3.3.6], and its code 0.
    const OUTCOME: u8 = 0x44;
    let mut left = jitney_shard::limits::UNROUTED_BYTES_MAX;
    loop {
        let mut head = [0; HEAD];
        other.read_exact(&mut head).await?;
        if head.starts_with(b"AMQP") {
            let [_, _, _, _, protocol, ..] = head;
            if protocol == 0 {
                return Ok(());
            }
            continue;
        }
        let [a, b, c, d, _, kind, ..] = head;
        let size = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        let rest = size
            .checked_sub(HEAD)
            .filter(|rest| kind == SASL && *rest <= left);
        let rest = rest.ok_or(NotPassed::Refused)?;
        left -= rest;
        let mut body = vec![0; rest];
        other.read_exact(&mut body).await?;
        // A described list, of one-byte or four-byte sizes, whose first field is the code.
        let (list8, list32) = (0xc0, 0xd0);
        let code = match body.get(2..4) {
            Some([OUTCOME, list]) if *list == list8 => body.get(7),
            Some([OUTCOME, list]) if *list == list32 => body.get(13),
            _ => None,
        };
        if code.is_some_and(|code| *code != 0) {
            return Err(NotPassed::Refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &[u8] = b"AMQP\0\x01\0\0";

    #[tokio::test]
    async fn a_server_that_does_not_answer_is_not_said_to_be_missing() {
        let (mut other, _silent) = tokio::io::duplex(64);
        let begun = begin(&mut other, HEADER, Duration::from_millis(50)).await;
        let is_late = |error: &io::Error| error.kind() == io::ErrorKind::TimedOut;
        assert!(
            matches!(&begun, Err(NotPassed::Unreachable(error)) if is_late(error)),
            "{begun:?}"
        );
    }
}
