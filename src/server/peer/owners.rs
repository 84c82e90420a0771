//! Which server has which namespace.

use crate::server::store::Fleet;

/// The server that has a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct Owner {
    pub(super) server: String,
    /// Another one after each of its starts.
    pub(super) incarnation: String,
    /// Where other servers reach it.
    pub(super) address: String,
    pub(super) is_this_server: bool,
}

/// What knows the owners of namespaces.
pub(in crate::server) trait Owners: Send + Sync {
    /// Returns the server that has a namespace, whose name is in lower case; none while no server has it.
    fn owner_of(&self, namespace: &str) -> Option<Owner>;
}

impl Owners for Fleet {
    fn owner_of(&self, namespace: &str) -> Option<Owner> {
        let view = self.view();
        let (store, found) = view.find(namespace)?;
        let name = found.server.as_ref()?;
        let server = store.servers.iter().find(|it| it.name == *name)?;
        Some(Owner {
            server: server.name.clone(),
            incarnation: server.incarnation.clone(),
            address: server.address.clone(),
            is_this_server: server.name == self.server(),
        })
    }
}

/// Owners that a test decides.
#[cfg(test)]
#[derive(Default)]
pub(in crate::server) struct FakeOwners(
    std::sync::Mutex<std::collections::BTreeMap<String, Owner>>,
);

#[cfg(test)]
impl FakeOwners {
    /// Says that a server has a namespace from now on.
    pub(in crate::server) fn set(&self, namespace: &str, owner: Owner) {
        self.0.lock().unwrap().insert(namespace.to_owned(), owner);
    }

    /// Says that no server has a namespace from now on.
    pub(in crate::server) fn remove(&self, namespace: &str) {
        self.0.lock().unwrap().remove(namespace);
    }
}

#[cfg(test)]
impl Owners for FakeOwners {
    fn owner_of(&self, namespace: &str) -> Option<Owner> {
        self.0.lock().unwrap().get(namespace).cloned()
    }
}

#[cfg(test)]
impl Owner {
    /// Makes another server that is reached at an address.
    pub(in crate::server) fn other(server: &str, address: impl ToString) -> Self {
        Self {
            server: server.to_owned(),
            incarnation: "1".to_owned(),
            address: address.to_string(),
            is_this_server: false,
        }
    }
}
