//! Listening sockets. A connection takes a slot before it is accepted ([`super::admission`]), and is served by a task
//! of its own, so that a slow one delays no other.

use std::net::SocketAddr;
use std::pin::pin;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tracing::{error, warn};

use super::admission::{ConnectionSlot, ConnectionSlots, ListenerKind};
use super::warning::Warning;
use crate::limits;

/// A listening socket, and the slots of the connections that it accepts.
pub(crate) struct Acceptor {
    listener: TcpListener,
    kind: ListenerKind,
    slots: ConnectionSlots,
    /// About a failed `accept`.
    warning: Warning,
}

/// A connection that has a slot.
pub(crate) struct AcceptedSocket {
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
    pub(crate) slot: ConnectionSlot,
}

impl Acceptor {
    pub(crate) fn new(listener: TcpListener, kind: ListenerKind, slots: ConnectionSlots) -> Self {
        Self {
            listener,
            kind,
            slots,
            warning: Warning::default(),
        }
    }

    /// Serves connections, each in a task of its own, until `stopped`, and then waits for all of them
    /// to end. `admit` returns the future that serves a connection, or `None` to close it.
    pub(crate) async fn serve<F>(
        self,
        admit: impl Fn(AcceptedSocket) -> Option<F>,
        mut stopped: watch::Receiver<bool>,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        {
            // One future from the wait for a slot to the next connection: if it were made anew
            // whenever a connection ends, its wait for a slot would begin at the end of the queue.
            let mut next = pin!(self.next());
            loop {
                tokio::select! {
                    (acceptor, accepted) = &mut next => {
                        if let Some(served) = admit(accepted) {
                            connections.spawn(served);
                        }
                        next.set(acceptor.next());
                    }
                    Some(ended) = connections.join_next() => log_panic(ended),
                    _ = stopped.changed() => break,
                }
            }
        }
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    }

    /// Accepts the next connection when there is a slot for it; until then it waits in the listen
    /// backlog.
    async fn next(mut self) -> (Self, AcceptedSocket) {
        let slot = self.slots.take(self.kind).await;
        loop {
            match self.listener.accept().await {
                Ok((stream, peer)) => {
                    let accepted = AcceptedSocket { stream, peer, slot };
                    return (self, accepted);
                }
                Err(error) => {
                    // The system lacks a resource.
                    if self.warning.is_due() {
                        warn!(%error, "cannot accept a connection");
                    }
                    tokio::time::sleep(limits::ACCEPT_RETRY.as_duration()).await;
                }
            }
        }
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        error!("the task of a connection panicked, which is a bug: the connection was closed");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{Notify, mpsc};

    use super::*;

    /// Polls a future that is not ready.
    async fn poll_pending(future: impl Future) {
        tokio::select! {
            biased;
            _ = future => panic!("it must wait"),
            () = std::future::ready(()) => {}
        }
    }

    #[tokio::test]
    async fn a_listener_that_waits_for_a_slot_keeps_its_place_in_the_queue_when_a_connection_ends()
    {
        let slots = ConnectionSlots::new(limits::DESCRIPTORS_MIN);
        let mut free: Vec<ConnectionSlot> = std::iter::from_fn(|| slots.try_take()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        // The slot of each connection is sent here, and its task ends when `end` is notified.
        let (to_test, mut accepted) = mpsc::unbounded_channel();
        let (ended, mut ends) = mpsc::unbounded_channel();
        let end = Arc::new(Notify::new());
        let may_end = Arc::clone(&end);
        let admit = move |AcceptedSocket { slot, .. }| {
            to_test.send(slot).unwrap();
            let (may_end, ended) = (Arc::clone(&may_end), ended.clone());
            Some(async move {
                may_end.notified().await;
                ended.send(()).unwrap();
            })
        };
        let (_stop, stopped) = watch::channel(false);
        let acceptor = Acceptor::new(listener, ListenerKind::General, slots.clone());
        let mut serving = pin!(acceptor.serve(admit, stopped));

        let _first = TcpStream::connect(address).await.unwrap();
        free.pop();
        let slot = tokio::select! {
            () = &mut serving => panic!("nothing has stopped it"),
            slot = accepted.recv() => slot.unwrap(),
        };
        // From now on the listener waits for a slot for the next connection; so does another one.
        let _second = TcpStream::connect(address).await.unwrap();
        let mut other = pin!(slots.take(ListenerKind::General));
        poll_pending(&mut other).await;
        end.notify_one();
        ends.recv().await.unwrap();
        poll_pending(&mut serving).await;
        drop(slot);
        tokio::select! {
            () = &mut serving => panic!("nothing has stopped it"),
            slot = accepted.recv() => assert!(slot.is_some()),
            _ = &mut other => panic!("it came later"),
        }
    }
}
