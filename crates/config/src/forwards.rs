//! Where entities of the file forward to: the target must be a queue, a topic or a subscription of the same namespace.
//!
//! The file need not have it: a broker may, if a client has made it. So that is found out where the entities are made.

use super::reader::{At, ConfigReader};
use jitney_base::address;
use jitney_base::limits;

/// A target that was read.
#[derive(Debug)]
pub(super) struct Forward {
    offset: usize,
    place: String,
    target: String,
}

impl ConfigReader<'_> {
    /// Reads a forwarding target; an empty one is none.
    pub(super) fn forward(&mut self, at: &At<'_>) -> Option<String> {
        const ALLOWED: &str = "the name of a queue or a topic, TOPIC/Subscriptions/NAME, or \"\"";
        if at.is_absent() {
            return None;
        }
        let target = self.string(at, ALLOWED)?;
        if target.is_empty() {
            return None;
        }
        let is_subscription = address::split_subscription(target).is_some_and(|(topic, name)| {
            address::is_entity_name(topic) && address::is_part_name(name)
        });
        if !is_subscription && !address::is_entity_name(target) {
            self.mistake(at, ALLOWED);
            return None;
        }
        self.forwards.push(Forward {
            offset: at.offset(),
            place: at.path().to_owned(),
            target: target.to_owned(),
        });
        Some(target.to_owned())
    }

    /// Warns of an entity's targets, which were read from that one on, by which its messages come to it again: as in the service that is
    /// allowed.
    pub(super) fn warn_of_circles(&mut self, from: usize, own: &[&str]) {
        let own: Vec<String> = own.iter().map(|path| address::key(path)).collect();
        let targets = self.forwards.get(from..).unwrap_or_default().iter();
        let back = targets.filter(|forward| own.contains(&address::key(&forward.target)));
        let told = back.map(|forward| {
            let found = format!(
                "\"{}\", by which messages come back here: each is forwarded {} times and then dead-lettered",
                forward.target,
                limits::FORWARD_HOPS_MAX
            );
            (forward.offset, forward.place.clone(), found)
        });
        for (offset, place, found) in told.collect::<Vec<_>>() {
            self.warn_of_target(offset, place, found, "another queue, topic or subscription");
        }
    }

    /// Looks for the targets of a namespace, all of whose names were read.
    pub(super) fn check_forwards(&mut self) {
        for forward in std::mem::take(&mut self.forwards) {
            if !self.names.contains(&address::key(&forward.target)) {
                let found = format!("\"{}\", which the file does not have", forward.target);
                let allowed = "the name of a queue, a topic or a subscription of the namespace";
                self.absent_target(forward.offset, forward.place, found, allowed);
            }
        }
    }
}
