//! Changes that a shard is to make after the configuration was read again, and what a configuration names no longer.

use super::mailbox::Mailbox;
use super::owner_message::{OwnerMessage, Reload, Reloaded};
use jitney_base::address;
use jitney_base::rights::Right;
use jitney_broker::access::{Actor, Authority};
use jitney_config::Configuration;
use jitney_gateway::operations::ReadNames;
use jitney_gateway::request::Requester;

/// Has a shard make changes, and waits until they are durable; returns what it has done. `None` if it ends before, or the shard is
/// another server's now: some of it may be done.
pub(crate) async fn apply(owner: &Mailbox, reload: Reload) -> Option<Reloaded> {
    let some = reload.namespaces.first()?.name.clone();
    let reload = Box::new(reload);
    let done = owner
        .ask(|answer| OwnerMessage::Reload(reload, answer))
        .await?;
    is_durable(owner, some).await.then_some(done)
}

/// Waits until all that a shard with this namespace has done is durable; returns whether it is.
pub(crate) async fn is_durable(owner: &Mailbox, namespace: String) -> bool {
    // The answer rests on everything that was done before.
    let requester = Requester {
        host: Some(namespace),
        authority: Authority::everything(),
    };
    let names = ReadNames {
        path: None,
        right: Right::Listen,
    };
    owner.request(requester, names).await.is_some()
}

/// Returns the one that changes entities, for the audit log.
pub(crate) fn actor() -> Actor {
    Actor {
        name: "the configuration file".to_owned(),
        peer: String::new(),
    }
}

/// Returns whether a configuration names a namespace.
pub(crate) fn has(config: &Configuration, name: &str) -> bool {
    let mut all = config.namespaces.iter();
    all.any(|it| it.name.eq_ignore_ascii_case(name))
}

/// Returns the namespaces and the paths of entities that the second configuration does not have, of the namespaces that it has.
pub(crate) fn gone(before: &Configuration, after: &Configuration) -> Vec<(String, String)> {
    let still: Vec<(String, String)> = named(after).collect();
    let key = |(namespace, path): &(String, String)| (namespace.to_lowercase(), address::key(path));
    let still: std::collections::BTreeSet<_> = still.iter().map(key).collect();
    named(before)
        .filter(|entity| has(after, &entity.0) && !still.contains(&key(entity)))
        .collect()
}

/// Returns the namespaces and the paths of all entities; subscriptions before their topics.
fn named(config: &Configuration) -> impl Iterator<Item = (String, String)> {
    config.namespaces.iter().flat_map(|namespace| {
        let queues = namespace.queues.iter().map(|queue| queue.name.clone());
        let topics = namespace.topics.iter().flat_map(|topic| {
            let subscriptions = topic.subscriptions.iter();
            let paths = subscriptions.map(|it| address::subscription(&topic.name, &it.name));
            paths.chain([topic.name.clone()])
        });
        let paths = queues.chain(topics);
        paths.map(|path| (namespace.name.clone(), path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_that_a_file_names_no_longer_are_found() {
        let parse = |queues: &str, topics: &str| {
            let text = format!(
                r#"{{"UserConfig": {{"Namespaces": [{{"Name": "ns", "Queues": [{queues}], "Topics": [{topics}]}}]}}}}"#
            );
            jitney_config::parse(&text).unwrap()
        };
        let before = parse(
            r#"{"Name": "a"}, {"Name": "b"}"#,
            r#"{"Name": "t", "Subscriptions": [{"Name": "x"}, {"Name": "y"}]}"#,
        );
        let after = parse(
            r#"{"Name": "A"}"#,
            r#"{"Name": "t", "Subscriptions": [{"Name": "x"}]}"#,
        );
        let wanted = [("ns", "b"), ("ns", "t/Subscriptions/y")];
        let wanted = wanted.map(|(name, path)| (name.to_owned(), path.to_owned()));
        assert_eq!(gone(&before, &after), wanted);
        assert_eq!(gone(&after, &before), []);
        let without =
            jitney_config::parse(r#"{"UserConfig": {"Namespaces": [{"Name": "other"}]}}"#);
        assert_eq!(
            gone(&before, &without.unwrap()),
            [],
            "a file deletes no namespace"
        );
    }
}
