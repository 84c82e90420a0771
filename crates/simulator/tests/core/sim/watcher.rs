//! A shard's observer: what it does, in its order, as its clients will read it.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use jitney_base::ids::BodyRef;
use jitney_base::ids::ConnectionId;
use jitney_broker::namespace::{Room, WantedBody};
use jitney_gateway::{QueuedReply, Reply, StepReply};
use jitney_journal::{LogReader, Writer};
use jitney_shard::{Cause, DamageUser, Observation, Observer};

use super::audit::{ClientObservation, DamagedDelivery, DamagedReceive, Told, User};
use super::disk::FaultyDisk;
use super::sights::{answered, handed_to, look, told};
use super::wire::sent_id;

/// What a shard's observer has seen, in its order.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Vec<Happened>>>);

pub(super) enum Happened {
    Step(Step),
    /// A read has found damaged bytes. The step that contains the damage comes next, then the report for the log.
    Damaged(Box<Met>),
    Contained(Told),
    Sealed(u64),
    Room(Room),
}

/// Somebody who needs bytes that are damaged.
pub(super) struct Met {
    pub(super) user: Result<User, String>,
    /// What a reply would have told.
    pub(super) sight: Option<ClientObservation>,
    /// Where the bytes are.
    pub(super) bodies: Vec<BodyRef>,
}

pub(super) struct Step {
    pub(super) cause: Why,
    pub(super) group: u64,
    pub(super) sights: Result<Vec<ClientObservation>, String>,
    /// Bytes of answers, which clients read at once.
    pub(super) answered: Vec<(ConnectionId, u64)>,
}

pub(super) enum Why {
    Reports,
    Timeout,
    Configuration,
    Damage,
    /// With the ids of the messages whose bytes were not damaged before.
    Forward(Vec<(WantedBody, Option<u64>)>),
    Compaction(Vec<WantedBody>),
    Request,
    Job,
}

impl Seen {
    pub(super) fn take(&self) -> Vec<Happened> {
        std::mem::take(&mut *self.0.lock().expect("one thread uses it"))
    }
}

/// Takes note of what a shard does.
pub(super) struct Watcher {
    pub(super) seen: Seen,
    pub(super) log: Arc<dyn LogReader>,
    /// The same, if its bytes can be damaged.
    pub(super) damaged: Option<Arc<FaultyDisk>>,
}

impl Observer for Watcher {
    fn observe(&mut self, event: Observation<'_>) {
        let happened = match event {
            Observation::Sealed(group) => Happened::Sealed(group),
            Observation::Room(room) => Happened::Room(room),
            Observation::Contained(contained) => {
                let number = contained.number.0.cast_signed();
                Happened::Contained((contained.entity.clone(), number))
            }
            Observation::Damaged {
                user,
                bodies,
                journal,
            } => Happened::Damaged(Box::new(self.met(user, bodies, journal))),
            Observation::Step {
                cause,
                group,
                replies,
                journal,
            } => {
                let body = |body| self.body(journal, body);
                // Whoever is let in hears nothing of it.
                let is_silent = |reply: &&StepReply| {
                    matches!(
                        reply,
                        StepReply::Connection(QueuedReply {
                            reply: Reply::Admitted,
                            ..
                        })
                    )
                };
                let replies_told = replies.iter().filter(|reply| !is_silent(reply));
                let sights = replies_told.map(|reply| told(reply, &body));
                let of_connections = replies.iter().filter_map(|reply| match reply {
                    StepReply::Connection(routed) => answered(routed),
                    StepReply::Receive(_) => None,
                });
                Happened::Step(Step {
                    cause: why(cause),
                    group,
                    sights: sights.collect(),
                    answered: of_connections.collect(),
                })
            }
        };
        self.seen
            .0
            .lock()
            .expect("one thread uses it")
            .push(happened);
    }
}

impl Watcher {
    fn met(&self, user: DamageUser<'_>, bodies: &[BodyRef], journal: &Writer) -> Met {
        let (user, sight) = match user {
            DamageUser::Message(entity, number) => {
                let queue = usize::try_from(entity.0).expect("few");
                let number = number.0.cast_signed();
                (Ok(User::Broker { queue, number }), None)
            }
            DamageUser::Receive(request, handed_out) => {
                let sight = handed_to(request, handed_out, &|body| self.body(journal, body));
                (sight.clone().and_then(receive_of), sight.ok())
            }
            DamageUser::Reply { routed, .. } => {
                let sight = look(routed, &|body| self.body(journal, body));
                let found = sight.clone();
                let found = found.and_then(|sight| user_of(sight, &user, bodies));
                (found, sight.ok())
            }
        };
        Met {
            user,
            sight,
            bodies: bodies.to_vec(),
        }
    }

    fn body(&self, journal: &Writer, body: BodyRef) -> Result<Bytes, String> {
        if let Some(bytes) = journal.cached(body) {
            return Ok(bytes);
        }
        // The undamaged bytes are wanted here: the shard has not reported this damage yet.
        let until = journal.readable_until();
        let read = || jitney_journal::read_ahead(&*self.log, body, 4096, until);
        let read = match &self.damaged {
            Some(damaged) => damaged.undamaged(read),
            None => read(),
        };
        let read = read.map_err(|error| format!("{body:?}: {error}"))?;
        Ok(read.body(body).expect("it was read for that"))
    }
}

/// Returns the receive that is to have this message.
fn receive_of(sight: ClientObservation) -> Result<User, String> {
    match sight {
        ClientObservation::Delivered {
            at,
            token,
            delete,
            seen,
        } => Ok(User::Receive(DamagedReceive {
            at,
            token,
            delete,
            seen,
        })),
        other => Err(format!("{other:?} is no message")),
    }
}

/// Returns whose reply is to carry which of these bytes.
fn user_of(
    sight: ClientObservation,
    user: &DamageUser<'_>,
    bodies: &[BodyRef],
) -> Result<User, String> {
    let &DamageUser::Reply { routed, is_drained } = user else {
        return Err(format!("{sight:?} is no reply"));
    };
    match (sight, &routed.reply) {
        (
            ClientObservation::Delivered {
                at,
                token,
                delete,
                seen,
            },
            Reply::Deliver(_, handover),
        ) => Ok(User::Delivery(DamagedDelivery {
            at,
            token,
            delete,
            seen,
            bytes: u64::from(handover.body.length),
            is_drained,
        })),
        (ClientObservation::Answered(at, answer), Reply::Respond(_, response)) => {
            let carried = response.bodies().enumerate();
            let damaged = carried.filter(|(_, body)| bodies.contains(body));
            Ok(User::Response {
                at,
                answer,
                damaged: damaged.map(|(at, _)| at).collect(),
            })
        }
        (sight, _) => Err(format!("{sight:?} carries no bytes")),
    }
}

fn why(cause: Cause<'_>) -> Why {
    match cause {
        Cause::Reports => Why::Reports,
        Cause::Timeout => Why::Timeout,
        Cause::Configuration => Why::Configuration,
        Cause::Forward(found) => {
            let found = found.iter();
            let found = found.map(|(wanted, body)| (*wanted, sent_id(body).expect("a message")));
            Why::Forward(found.collect())
        }
        Cause::Compaction(found) => {
            let found = found.iter().map(|found| WantedBody {
                entity: found.entity,
                number: found.number,
                body: found.body,
            });
            Why::Compaction(found.collect())
        }
        Cause::Damage => Why::Damage,
        Cause::Request => Why::Request,
        Cause::Job => Why::Job,
    }
}
