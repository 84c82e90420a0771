//! One request over a connection that is not used again: what the server and its commands ask others.

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// Sends a request, and returns what `read` makes of the answer.
///
/// # Errors
///
/// If the peer does not speak HTTP, or closes the connection before it answers.
pub(super) async fn exchange<S, B, T>(
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
