//! What one transaction may span: one entity, one partition; and the links that send by way of another.

use super::*;

impl Model {
    /// Returns whether a receiver there would not fit to the links that came after a coordinator.
    pub(super) fn is_elsewhere(&self, at: LinkKey, place: Place) -> bool {
        let via = self.groups.get(&at.connection);
        via.is_some_and(|&via| via != self.whole(place.queue))
    }

    /// Notes the first link after a coordinator; returns by way of which entity a sender sends.
    pub(super) fn join_group(
        &mut self,
        at: LinkKey,
        place: Place,
        kind: LinkKind,
    ) -> Option<usize> {
        let moves = matches!(kind, LinkKind::Sender | LinkKind::Receiver { .. });
        if !moves || !self.has_coordinator(at.connection) {
            return None;
        }
        let own = self.whole(place.queue);
        let via = *self.groups.entry(at.connection).or_insert(own);
        (kind == LinkKind::Sender).then_some(via)
    }

    /// Forgets the links after a coordinator, if the last one has gone.
    pub(super) fn leave_group(&mut self, at: LinkKey) {
        if !self.has_coordinator(at.connection) {
            self.groups.remove(&at.connection);
        }
    }

    fn has_coordinator(&self, connection: u32) -> bool {
        let mut links = self.links.iter();
        links.any(|(at, link)| at.connection == connection && link.kind == LinkKind::Coordinator)
    }

    /// Returns the topic of a subscription, and any other entity as it is.
    fn whole(&self, queue: usize) -> usize {
        self.entities[queue].topic.unwrap_or(queue)
    }

    /// Returns where something takes place; `None` if that is more than one place.
    pub(super) fn scope_of(&self, part: &Operation, group: Option<usize>) -> Option<Scope> {
        let queue = match part {
            Operation::Send(queue, _) => *queue,
            Operation::Cancel(place, _) | Operation::Settle(place, ..) => place.queue,
        };
        let entity = group.unwrap_or_else(|| self.whole(queue));
        let is_partitioned = |entity: usize| self.entities[entity].description.partitioned;
        let is_sent_on = matches!(part, Operation::Send(..)) && queue != entity;
        if !is_partitioned(entity) || !is_partitioned(queue) || is_sent_on {
            return Some((entity, None));
        }
        let partitions: Option<BTreeSet<u64>> = match part {
            Operation::Send(queue, drafts) => {
                let decided = |draft| self.decided_partition(Place::main(*queue), draft);
                drafts.iter().map(decided).collect()
            }
            Operation::Cancel(_, numbers) => {
                let partition = |number: &i64| u64::try_from(number >> 48).ok();
                numbers.iter().map(partition).collect()
            }
            Operation::Settle(place, token, ..) => {
                let ordinal = self.queue(*place).locked_by(*token);
                ordinal.map(partition_of).map(|one| BTreeSet::from([one]))
            }
        };
        let partitions = partitions?;
        (partitions.len() < 2).then_some((entity, partitions.first().copied()))
    }
}

/// Returns where a transaction takes place with something more; `None` if that is elsewhere.
pub(super) fn joined(before: Option<Scope>, more: Scope) -> Option<Scope> {
    let Some((entity, partition)) = before else {
        return Some(more);
    };
    let agree = partition.is_none() || more.1.is_none() || partition == more.1;
    (entity == more.0 && agree).then_some((entity, partition.or(more.1)))
}
