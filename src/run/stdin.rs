//! The end of standard input, which asks the broker to stop if `--stop-on-stdin-close` says so.
//!
//! A program that starts the broker has the other end of its input. The system closes that when the program ends, however it
//! ends: no broker is left behind.

use std::io;

use tokio::sync::oneshot;

use crate::system::supervisor;

/// Told of the end of standard input.
pub(super) type Closed = oneshot::Receiver<()>;

/// Reads standard input to its end, on a thread of its own: nothing else could wait for it and still end with the process.
///
/// # Errors
///
/// If the system has no thread for it.
pub(super) fn watch() -> io::Result<Closed> {
    let (sender, closed) = oneshot::channel();
    // An input that cannot be read has ended.
    let read = || drop(io::copy(&mut io::stdin().lock(), &mut io::sink()));
    let ended = |_| drop(sender);
    supervisor::spawn_watched("standard input", read, ended)?;
    Ok(closed)
}

/// Waits for the end of standard input; for ever if it is not watched.
pub(super) async fn closed(input: Option<Closed>) {
    match input {
        // The sender is dropped at the end.
        Some(closed) => drop(closed.await),
        None => std::future::pending().await,
    }
}
