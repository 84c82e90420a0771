//! Which server has which namespace.

use tokio::sync::watch;

use crate::store::{Fleet, ServerRow};

/// Another server, which has a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwningServer {
    pub(super) server: String,
    /// Another one after each of its starts.
    pub(super) incarnation: String,
    /// Where other servers reach it.
    pub(super) address: String,
}

/// Whether a server still has a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holding {
    Holds,
    /// No server has it.
    Unowned,
    /// Another server has it, or the same one after another start.
    Moved,
}

/// What knows the owners of namespaces, whose names are in lower case.
pub(crate) trait Owners: Send + Sync {
    /// Returns the other server that has a namespace; none while this server has it, or none has.
    fn other_owner_of(&self, namespace: &str) -> Option<OwningServer>;

    /// Returns whether a server still has a namespace. This is asked for each connection that is passed on, at each change.
    fn holding(&self, namespace: &str, owner: &OwningServer) -> Holding;

    /// Returns a receiver that is notified when a namespace may have another server, or none.
    fn changes(&self) -> watch::Receiver<()>;
}

impl Owners for Fleet {
    fn other_owner_of(&self, namespace: &str) -> Option<OwningServer> {
        let other = |server: &ServerRow| {
            (server.name != self.server()).then(|| OwningServer {
                server: server.name.clone(),
                incarnation: server.incarnation.clone(),
                address: server.address.clone(),
            })
        };
        self.look_at_owner(namespace, other)?
    }

    fn holding(&self, namespace: &str, owner: &OwningServer) -> Holding {
        let is_same = |server: &ServerRow| {
            server.name == owner.server
                && server.incarnation == owner.incarnation
                && server.address == owner.address
        };
        Holding::of(self.look_at_owner(namespace, is_same))
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.owner_changes()
    }
}

impl Holding {
    /// Takes whether the server that has a namespace is the one before; none if no server has it.
    const fn of(is_same: Option<bool>) -> Self {
        match is_same {
            Some(true) => Self::Holds,
            Some(false) => Self::Moved,
            None => Self::Unowned,
        }
    }
}

/// Owners that a test decides.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct FakeOwners {
    owners: std::sync::Mutex<std::collections::BTreeMap<String, OwningServer>>,
    /// How many owners were copied.
    copied: std::sync::atomic::AtomicUsize,
    changes: watch::Sender<()>,
}

#[cfg(test)]
impl FakeOwners {
    /// The name of this server.
    pub(super) const THIS: &str = "one";

    /// Says that a server has a namespace from now on.
    pub(crate) fn set(&self, namespace: &str, owner: OwningServer) {
        let mut owners = self.owners.lock().unwrap();
        owners.insert(namespace.to_owned(), owner);
        self.changes.send_replace(());
    }

    /// Says that no server has a namespace from now on.
    pub(crate) fn remove(&self, namespace: &str) {
        self.owners.lock().unwrap().remove(namespace);
        self.changes.send_replace(());
    }

    /// Returns how many owners were copied.
    pub(crate) fn copied(&self) -> usize {
        self.copied.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[cfg(test)]
impl Owners for FakeOwners {
    fn other_owner_of(&self, namespace: &str) -> Option<OwningServer> {
        let owners = self.owners.lock().unwrap();
        let other = owners.get(namespace).filter(|it| it.server != Self::THIS)?;
        self.copied
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(other.clone())
    }

    fn holding(&self, namespace: &str, owner: &OwningServer) -> Holding {
        let owners = self.owners.lock().unwrap();
        Holding::of(owners.get(namespace).map(|it| it == owner))
    }

    fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
impl OwningServer {
    /// Makes another server that is reached at an address.
    pub(crate) fn other(server: &str, address: impl ToString) -> Self {
        Self {
            server: server.to_owned(),
            incarnation: "1".to_owned(),
            address: address.to_string(),
        }
    }
}
