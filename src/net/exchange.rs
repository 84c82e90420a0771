//! One request over a connection that is not used again: what the server and its commands ask others.

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes of a page of the broker's that are read.
const PAGE_BYTES_MAX: usize = 64 * 1024;

/// Asks for a page of a broker's, and returns its status and its text.
///
/// # Errors
///
/// If the peer does not speak HTTP, closes the connection before it answers, or sends more than 64 KiB.
pub(crate) async fn page(
    stream: TcpStream,
    request: Request<Empty<Bytes>>,
) -> Result<(StatusCode, String), Box<dyn std::error::Error + Send + Sync>> {
    exchange(stream, request, async |response| {
        let status = response.status();
        let body = Limited::new(response.into_body(), PAGE_BYTES_MAX);
        let bytes = body.collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    })
    .await?
}

/// Sends a request, and returns what `read` makes of the answer.
///
/// # Errors
///
/// If the peer does not speak HTTP, or closes the connection before it answers.
pub(crate) async fn exchange<S, B, T>(
    stream: S,
    request: Request<B>,
    read: impl AsyncFnOnce(Response<Incoming>) -> T,
) -> Result<T, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: Body + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let answer = async { Ok(read(sender.send_request(request).await?).await) };
    tokio::pin!(answer);
    // The answer makes progress only while the connection is polled. An error of the connection is
    // an error of the answer.
    tokio::select! {
        biased;
        answer = &mut answer => answer,
        _ = connection => answer.await,
    }
}
