//! The case of header names.
//!
//! HTTP's names have no case, and its library writes them in lower case. Names of a message's
//! properties have one, and clients of AMQP look for them as they were sent. So the bytes of a head
//! are kept until its request is handled, and names are looked up in them. The names in the head of
//! an answer get the case of the message's while it is written. If that fails, only the case is
//! lost.
//!
//! While unauthenticated connections hold much memory together, a long head of one is answered with 431 before the rest of it is read.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits;
use crate::net::unauthenticated::Meter;

/// A stream whose heads are recorded on input and rewritten on output.
pub(super) struct RecordedStream<S> {
    stream: S,
    head: Head,
    /// The rest of a rewritten head, which is written before anything else.
    spelled: Bytes,
    /// A head is refused: nothing more is read.
    is_refused: bool,
}

/// The recorded input since the last request, and the pending output.
#[derive(Debug, Clone, Default)]
pub(super) struct Head(Arc<Mutex<HeadState>>);

#[derive(Debug, Default)]
struct HeadState {
    bytes: Vec<u8>,
    /// The input is not a head.
    is_off: bool,
    /// The names of the next answer, by their lower-case form.
    names: Option<BTreeMap<String, String>>,
    /// Some output was not written yet.
    is_writing: bool,
    /// The task that waits until all output is written.
    waker: Option<Waker>,
    /// Counts the connection's bytes while the peer is unauthenticated.
    meter: Option<Meter>,
}

/// The answer to a head that is too long for a peer without a right.
static TOO_LONG: LazyLock<Bytes> = LazyLock::new(|| {
    let text = format!(
        "The head of the request has more than {} bytes, and many clients that have proved no right are connected: such a client may send \
         a longer one later, or on a connection on which a request was authorized.\n",
        limits::HTTP_HEAD_CROWDED_BYTES_MAX
    );
    let length = text.len();
    let answer = format!(
        "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    );
    Bytes::from(answer)
});

/// The names in a head, as they were written.
#[derive(Debug, Clone, Default)]
pub(super) struct Spelling(Arc<[u8]>);

impl Head {
    /// Begins to record. The meter counts the connection's bytes, until its peer is authorized.
    pub(crate) fn new(meter: Option<Meter>) -> Self {
        let state = HeadState {
            meter,
            ..HeadState::default()
        };
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn watch<S>(&self, stream: S) -> RecordedStream<S> {
        RecordedStream {
            stream,
            head: self.clone(),
            spelled: Bytes::new(),
            is_refused: false,
        }
    }

    /// Takes the head of the current request; recording stops until it is answered.
    pub(crate) fn take(&self) -> Spelling {
        let mut kept = self.kept();
        kept.is_off = true;
        Spelling(std::mem::take(&mut kept.bytes).into())
    }

    /// The request is answered: the next input is another head.
    pub(super) fn resume(&self) {
        self.kept().is_off = false;
    }

    /// Sets the case of the names in the next head that is written. Returns when all output before
    /// it has been written, so that the library's next output begins with that head.
    pub(super) async fn spell(&self, names: Vec<String>) {
        poll_fn(|cx| {
            let mut kept = self.kept();
            if kept.is_writing {
                kept.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        let names = names.into_iter();
        let names = names.map(|name| (name.to_ascii_lowercase(), name));
        self.kept().names = Some(names.collect());
    }

    /// Returns the rewritten head at the beginning of some output; `None` if it must stay.
    fn spelled(&self, bytes: &[u8]) -> Option<Bytes> {
        let mut kept = self.kept();
        kept.is_writing = true;
        let names = kept.names.take()?;
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let mut head = bytes.get(..end + 4)?.to_vec();
        for line in head.split_mut(|byte| *byte == b'\n') {
            let length = line.iter().position(|byte| *byte == b':').unwrap_or(0);
            let name = line.get_mut(..length).unwrap_or_default();
            let known = std::str::from_utf8(name).ok();
            // Both have the same length: they differ in case.
            if let Some(spelled) = known.and_then(|name| names.get(&name.to_ascii_lowercase())) {
                name.copy_from_slice(spelled.as_bytes());
            }
        }
        Some(head.into())
    }

    fn has_names(&self) -> bool {
        self.kept().names.is_some()
    }

    fn written(&self) {
        let mut kept = self.kept();
        kept.is_writing = false;
        if let Some(waker) = kept.waker.take() {
            waker.wake();
        }
    }

    fn kept(&self) -> MutexGuard<'_, HeadState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records input. Returns whether a head is refused, because it is long and there is little room for those of the unauthenticated.
    fn keep(&self, bytes: &[u8]) -> bool {
        let mut kept = self.kept();
        if kept.is_off {
            return false;
        }
        let room = limits::HTTP_HEAD_BYTES_MAX.saturating_sub(kept.bytes.len());
        let bytes = bytes.get(..room).unwrap_or(bytes);
        kept.bytes.extend_from_slice(bytes);
        let is_long = limits::HTTP_HEAD_CROWDED_BYTES_MAX < kept.bytes.len();
        is_long && kept.meter.as_ref().is_some_and(Meter::is_crowded)
    }
}

impl Spelling {
    /// Returns a name as the client wrote it.
    pub(crate) fn of<'a>(&'a self, name: &'a str) -> &'a str {
        let lines = self.0.split(|byte| *byte == b'\n');
        let mut names = lines.filter_map(|line| {
            let (found, rest) = line.split_at_checked(name.len())?;
            let is_it = rest.first() == Some(&b':') && found.eq_ignore_ascii_case(name.as_bytes());
            std::str::from_utf8(found).ok().filter(|_| is_it)
        });
        names.next().unwrap_or(name)
    }
}

impl<S: AsyncWrite + Unpin> RecordedStream<S> {
    /// Writes the rest of a rewritten head.
    fn poll_spelled(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        while self.spelled.has_remaining() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.spelled))?;
            if written == 0 {
                return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into()));
            }
            self.spelled.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for RecordedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        if !self.is_refused {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
            let read = buffer.filled().get(before..).unwrap_or_default();
            if !self.head.keep(read) {
                return Poll::Ready(Ok(()));
            }
            self.is_refused = true;
            self.spelled = TOO_LONG.clone();
        }
        // The library sees the end of the input when the refusal is written.
        buffer.set_filled(before);
        ready!(self.poll_spelled(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RecordedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        ready!(self.poll_spelled(cx))?;
        if let Some(head) = self.head.spelled(bytes) {
            let length = head.len();
            self.spelled = head;
            return Poll::Ready(Ok(length));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(self.poll_spelled(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        // The library flushes when it has written everything.
        self.head.written();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        ready!(self.poll_spelled(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        if self.spelled.has_remaining() || self.head.has_names() {
            let first = pieces.iter().find(|piece| !piece.is_empty());
            return self.poll_write(cx, first.map_or(&[][..], |piece| &piece[..]));
        }
        self.head.kept().is_writing = true;
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

    #[tokio::test]
    async fn the_head_of_an_answer_is_spelled_and_nothing_else() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let head = Head::default();
        // A buffer so small that a head is written in pieces.
        let (stream, mut peer) = tokio::io::duplex(7);
        let mut stream = head.watch(stream);
        let reader = tokio::spawn(async move {
            let mut read = Vec::new();
            peer.read_to_end(&mut read).await.unwrap();
            String::from_utf8(read).unwrap()
        });
        stream.write_all(b"before\r\n\r\n").await.unwrap();
        let flushed = async { stream.flush().await.unwrap() };
        let names = vec!["OrderId".to_owned(), "eTag-X".to_owned()];
        tokio::join!(head.spell(names), flushed);
        let answer =
            b"HTTP/1.1 200 OK\r\norderid: orderid: 1\r\netag-x:2\r\nother: 3\r\n\r\norderid: 4\r\n";
        stream.write_all(answer).await.unwrap();
        stream.write_all(b"etag-x: 5\r\n\r\n").await.unwrap();
        stream.shutdown().await.unwrap();
        drop(stream);
        assert_eq!(
            reader.await.unwrap(),
            "before\r\n\r\nHTTP/1.1 200 OK\r\nOrderId: orderid: 1\r\neTag-X:2\r\nother: 3\r\n\r\n\
             orderid: 4\r\netag-x: 5\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn a_long_head_is_refused_while_many_are_unauthenticated() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        use tokio::time::Instant;

        use crate::net::unauthenticated::{FirstByte, UnauthenticatedBytes};
        use jitney_broker::access::PeerAddress;

        // With one connection more than half of this is held.
        for (room, is_refused) in [(100 * 1024, true), (1024 * 1024, false)] {
            let bytes = UnauthenticatedBytes::new(room);
            let (one, other) = (bytes.share(PeerAddress(1)), bytes.share(PeerAddress(2)));
            assert!(one.reserve(FirstByte::Tls, Instant::now()).await);
            assert!(other.reserve(FirstByte::Http, Instant::now()).await);
            let head = Head::new(Some(other.meter().clone()));
            let (stream, mut peer) = tokio::io::duplex(2 * limits::HTTP_HEAD_BYTES_MAX);
            let mut stream = head.watch(stream);
            let long = limits::HTTP_HEAD_CROWDED_BYTES_MAX + 1;
            peer.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            peer.write_all(&vec![b'a'; long]).await.unwrap();
            peer.shutdown().await.unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).await.unwrap();
            assert_eq!(long < read.len(), !is_refused);
            drop(stream);
            let mut answer = String::new();
            peer.read_to_string(&mut answer).await.unwrap();
            assert_eq!(answer.starts_with("HTTP/1.1 431 "), is_refused, "{answer}");
        }
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
