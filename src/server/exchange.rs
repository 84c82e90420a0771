//! One request over a connection that is not used again: what the server and its commands ask others.

use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// Sends a request, and returns what `read` makes of the answer.
///
/// # Errors
///
/// If the peer does not speak HTTP, or closes the connection before it answers.
pub(super) async fn exchange<S, T>(
    stream: S,
    request: Request<Empty<Bytes>>,
    read: impl AsyncFnOnce(Response<Incoming>) -> T,
) -> Result<T, hyper::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
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
