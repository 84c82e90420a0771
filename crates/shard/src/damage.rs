//! Messages whose bytes in the log are not what was written: the broker contains each, and logs its
//! entity, number and place.

use tracing::error;

use super::reads::for_each_body;
use super::{Cause, DamageUser, Observation, Shard};
use jitney_amqp::LinkId;
use jitney_base::ids::ConnectionId;
use jitney_base::ids::{BodyRef, EntityId, SequenceNumber};
use jitney_base::time::Timestamp;
use jitney_broker::namespace::{Contained, Damage};
use jitney_gateway::amqp::DeliveryCredit;
use jitney_gateway::{QueuedReply, Reply};

/// A reply that cannot leave as it is, for bytes of it are damaged.
pub(super) struct Hit {
    routed: Box<QueuedReply>,
    /// The end of a drain is reported after it, and has used up its link's credit.
    is_drained: bool,
}

impl Shard {
    /// Returns what a reply is a hit of, if some of its bytes are damaged; `behind` are the replies of
    /// its connection that come next.
    pub(super) fn hit<'r>(
        &self,
        routed: Box<QueuedReply>,
        damages: &[Damage],
        behind: impl Iterator<Item = &'r QueuedReply>,
    ) -> Result<Hit, Box<QueuedReply>> {
        let mut is_hit = false;
        for_each_body(&routed.reply, |body| {
            is_hit |= damages.iter().any(|damage| damage.body == body);
        });
        if !is_hit {
            return Err(routed);
        }
        let is_drained = if let Reply::Deliver(link, _) = &routed.reply {
            self.is_drained(routed.connection, *link, behind)
        } else {
            false
        };
        Ok(Hit { routed, is_drained })
    }

    /// Contains the damages that a reply met, and releases what is left of it.
    pub(super) fn contain(&mut self, now: Timestamp, hit: Hit, damages: &[Damage]) {
        let Hit { routed, is_drained } = hit;
        let user = DamageUser::Reply {
            routed: &routed,
            is_drained,
        };
        self.observe_damage(user, damages);
        let QueuedReply {
            connection,
            durable_after,
            reply,
        } = *routed;
        match reply {
            Reply::Deliver(link, handover) => {
                let damage = damages.iter().find(|damage| damage.body == handover.body);
                let Some(damage) = damage else { return };
                let credit = if is_drained {
                    DeliveryCredit::Drained
                } else {
                    DeliveryCredit::Left
                };
                let contained = self.step(now, Cause::Damage, |gateway, cx| {
                    gateway.delivery_damaged(cx, connection, link, &handover, damage, credit)
                });
                self.report_damage(contained);
            }
            Reply::Respond(link, mut response) => {
                let contained = self.step(now, Cause::Damage, |gateway, cx| {
                    gateway.response_damaged(cx, connection, link, &mut response, damages)
                });
                self.report_damage(contained);
                self.release(QueuedReply {
                    connection,
                    durable_after,
                    reply: Reply::Respond(link, response),
                });
            }
            Reply::AcceptLink(..)
            | Reply::RefuseLink(..)
            | Reply::Drained(..)
            | Reply::SettleIncoming { .. }
            | Reply::ReturnCredit(_)
            | Reply::SettleOutgoing(..)
            | Reply::Detach(..)
            | Reply::Close(_)
            | Reply::Authenticated(_)
            | Reply::Admitted => debug_assert!(false, "only these have bytes"),
        }
    }

    /// Contains the damage of a message that the broker itself needed the bytes of.
    pub(super) fn contain_in(
        &mut self,
        now: Timestamp,
        queue: EntityId,
        number: SequenceNumber,
        damage: &Damage,
    ) {
        let user = DamageUser::Message(queue, number);
        self.observe_damage(user, std::slice::from_ref(damage));
        let contained = self.step(now, Cause::Damage, |gateway, cx| {
            gateway.body_damaged(cx, queue, number, damage)
        });
        self.report_damage(contained);
    }

    fn is_drained<'r>(
        &self,
        connection: ConnectionId,
        link: LinkId,
        mut behind: impl Iterator<Item = &'r QueuedReply>,
    ) -> bool {
        let drains = |routed: &QueuedReply| {
            let of_link = matches!(routed.reply, Reply::Drained(drained, _) if drained == link);
            of_link && routed.connection == connection
        };
        behind.any(drains) || self.durability.replies().any(drains)
    }

    pub(super) fn observe_damage(&mut self, user: DamageUser<'_>, damages: &[Damage]) {
        if let Some(observer) = &mut self.observer {
            let bodies: Vec<BodyRef> = damages.iter().map(|damage| damage.body).collect();
            observer.observe(Observation::Damaged {
                user,
                bodies: &bodies,
                journal: &self.journal,
            });
        }
    }

    pub(super) fn report_damage(&mut self, contained: impl IntoIterator<Item = Contained>) {
        for contained in contained {
            self.damaged += 1;
            if let Some(observer) = &mut self.observer {
                observer.observe(Observation::Contained(&contained));
            }
            let Contained {
                entity,
                number,
                place,
            } = contained;
            error!(
                %entity,
                number = number.0,
                %place,
                damaged = self.damaged,
                "the bytes of a message are not what was written: it is in the dead-letter queue \
                 without them; look at the disk"
            );
        }
    }
}
