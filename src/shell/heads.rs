//! How the names of a request's headers are spelled.
//!
//! HTTP's names have no case, and its engine writes them small. Names of a message's properties have
//! one, and clients of AMQP look for them as they were sent. So the bytes of a head are kept until
//! its request is there: names are found in them again. Where they are not, nothing is lost but case.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits;

/// A stream whose heads are kept.
pub(super) struct Watched<S> {
    stream: S,
    head: Head,
}

/// What was read of a stream since the last request.
#[derive(Debug, Clone, Default)]
pub(super) struct Head(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// What comes now is no head.
    is_off: bool,
}

/// The names in a head, as they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Spelling(Arc<[u8]>);

impl Head {
    pub(super) fn watch<S>(&self, stream: S) -> Watched<S> {
        let head = self.clone();
        Watched { stream, head }
    }

    /// Takes the head of the request that has just come; no more is kept until it is answered.
    pub(super) fn take(&self) -> Spelling {
        let mut kept = self.kept();
        kept.is_off = true;
        Spelling(std::mem::take(&mut kept.bytes).into())
    }

    /// The request is answered: what comes next is another.
    pub(super) fn resume(&self) {
        self.kept().is_off = false;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.kept();
        let room = limits::HTTP_HEAD_BYTES_MAX.saturating_sub(kept.bytes.len());
        if !kept.is_off {
            let bytes = bytes.get(..room).unwrap_or(bytes);
            kept.bytes.extend_from_slice(bytes);
        }
    }
}

impl Spelling {
    /// Returns a name as the client wrote it.
    pub(super) fn of<'a>(&'a self, name: &'a str) -> &'a str {
        let lines = self.0.split(|byte| *byte == b'\n');
        let mut names = lines.filter_map(|line| {
            let (found, rest) = line.split_at_checked(name.len())?;
            let is_it = rest.first() == Some(&b':') && found.eq_ignore_ascii_case(name.as_bytes());
            std::str::from_utf8(found).ok().filter(|_| is_it)
        });
        names.next().unwrap_or(name)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        self.head
            .keep(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_as_it_was_written() {
        let head = Head::default();
        head.keep(b"POST /q/messages HTTP/1.1\r\nHost: h\r\nPriority: 1\r\nmy");
        head.keep(b"Prop:2\r\nMyProperty: 3\r\n\r\n");
        let spelling = head.take();
        assert_eq!(spelling.of("priority"), "Priority");
        assert_eq!(spelling.of("myprop"), "myProp");
        assert_eq!(spelling.of("myproperty"), "MyProperty");
        assert_eq!(spelling.of("other"), "other");
    }

    #[test]
    fn a_body_is_not_kept() {
        let head = Head::default();
        head.keep(b"A: 1\r\n");
        assert_eq!(head.take().of("a"), "A");
        head.keep(b"B: 1\r\n");
        head.resume();
        head.keep(b"C: 1\r\n");
        let spelling = head.take();
        assert_eq!(spelling.of("b"), "b");
        assert_eq!(spelling.of("c"), "C");
    }
}
