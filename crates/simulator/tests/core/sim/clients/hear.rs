//! What clients make of what they are told.

use super::*;

/// A message that somebody gets on a link.
enum Received {
    /// For good.
    Deleted(Copy),
    /// Under a lock.
    Locked(Held),
}

impl Clients {
    /// Takes what the broker has told somebody, as its so-manieth thing.
    pub(in crate::sim) fn hear(
        &mut self,
        told: u64,
        sight: ClientObservation,
    ) -> Result<(), String> {
        self.ledger.hears(told);
        match sight {
            ClientObservation::Accepted(at, granted) => {
                if let Some(link) = self.link(at) {
                    link.let_in = true;
                    let name = granted.map(|(name, _)| name);
                    let mut all = 0..SESSIONS;
                    link.session = all.find(|&id| Some(session_name(id)) == name);
                }
            }
            ClientObservation::Refused(at, _) | ClientObservation::Detached(at, _) => {
                self.forget_link(at);
            }
            ClientObservation::Drained(at, limit) => {
                if let Some(link) = self.link(at) {
                    let unused = limit.wrapping_sub(link.received);
                    if unused < 1 << 31 {
                        link.received = limit;
                    }
                }
            }
            ClientObservation::SettledIncoming(at, delivery, result) => {
                let connection = self.connections.get_mut(&at.connection);
                let ended = connection.and_then(|of| of.discharging.remove(&(at, delivery)));
                if let Some((id, fail)) = ended {
                    if result.is_ok() && !fail {
                        self.ledger.committed(&id);
                    } else {
                        self.ledger.rolled_back(&id);
                    }
                }
                if result.is_ok() {
                    self.ledger.accepted(at, delivery);
                } else {
                    self.ledger.refused(at, delivery);
                }
            }
            ClientObservation::SettledOutgoing(at, delivery, result) => {
                if result == Ok("accepted") {
                    self.ledger.completed(at, delivery);
                } else {
                    self.ledger.not_completed(at, delivery);
                }
            }
            ClientObservation::Declared(at, _, id) => {
                if let Some(connection) = self.connections.get_mut(&at.connection) {
                    connection.open.push(id);
                }
            }
            ClientObservation::SettledWithin(at, delivery, id, "accepted") => {
                self.ledger.settled_within(at, delivery, id);
            }
            ClientObservation::SettledWithin(..) | ClientObservation::CreditReturned(_) => {}
            ClientObservation::TakenWithin(at, delivery, id) => {
                self.ledger.sent_within(at, delivery, id);
            }
            ClientObservation::Delivered {
                at,
                token,
                delete,
                seen,
            } => {
                let bytes = 64 + u64::try_from(seen.padding).expect("fits");
                let Some(place) = self.link(at).map(|link| link.place) else {
                    self.tell_written(at, bytes);
                    return Ok(());
                };
                let id = self.see(place, &seen)?;
                self.ledger.sees(id)?;
                let received = if delete {
                    Received::Deleted(id)
                } else {
                    Received::Locked(Held {
                        place,
                        token,
                        id,
                        number: seen.number,
                        on: None,
                        settled: false,
                    })
                };
                let by_bytes = self.plan.bytes;
                let Some(link) = self.link(at) else {
                    return Ok(());
                };
                if by_bytes {
                    // Its server's end has counted credit and bytes.
                    link.received = link.received.wrapping_add(1);
                    return self.receive(at, received);
                }
                link.unwritten += bytes;
                let credit = link.limit.wrapping_sub(link.received);
                self.write_in_time(at.connection);
                let Some(link) = self.link(at) else {
                    return Ok(());
                };
                if credit == 0 || credit >= 1 << 31 {
                    if delete {
                        link.stalled.push_back((id, told));
                    } else {
                        self.push(at.connection, ClientAction::Returned { at, token });
                    }
                    return Ok(());
                }
                link.received = link.received.wrapping_add(1);
                return self.receive(at, received);
            }
            ClientObservation::Answered(at, answer) => {
                if let Some(link) = self.link(at) {
                    link.received = link.received.wrapping_add(1);
                }
                self.hear_answer(&answer)?;
            }
        }
        Ok(())
    }

    /// Takes what a receive without a link was answered.
    pub(in crate::sim) fn receive_unlinked(
        &mut self,
        told: u64,
        place: Place,
        sight: ClientObservation,
    ) -> Result<(), String> {
        self.ledger.hears(told);
        let ClientObservation::Delivered {
            token,
            delete,
            seen,
            ..
        } = sight
        else {
            return Ok(());
        };
        let id = self.see(place, &seen)?;
        if delete {
            return self.ledger.got(id);
        }
        self.ledger.sees(id)?;
        self.hold(Held {
            place,
            token,
            id,
            number: seen.number,
            on: None,
            settled: false,
        });
        Ok(())
    }

    /// Somebody gets a message.
    fn receive(&mut self, at: LinkKey, received: Received) -> Result<(), String> {
        let held = match received {
            Received::Deleted(id) => return self.ledger.got(id),
            Received::Locked(held) => held,
        };
        let connection = self
            .connections
            .get_mut(&at.connection)
            .expect("it has one");
        let delivery = connection.next_delivery;
        connection.next_delivery += 1;
        self.hold(Held {
            on: Some((at, delivery)),
            ..held
        });
        Ok(())
    }

    /// Names a copy of a message: where there is only one of each, it has one name all its life.
    fn see(&mut self, place: Place, seen: &Seen) -> Result<Copy, String> {
        self.ledger.made_up.sees(place, seen)?;
        let mut kinds = self.plan.entities.iter().map(|it| it.description.kind);
        let is_several = seen.id == 0 || kinds.any(|kind| kind == EntityKind::Topic);
        Ok(if is_several {
            (0, place.queue, seen.number)
        } else {
            (seen.id, 0, 0)
        })
    }

    pub(super) fn hold(&mut self, held: Held) {
        if self.held.len() == HELD {
            self.held.remove(0);
        }
        self.held.push(held);
    }

    pub(super) fn hear_answer(&mut self, answer: &Answer) -> Result<(), String> {
        let id = &answer.correlation_id;
        if answer.code == 200 {
            self.ledger.done(id);
        } else {
            self.ledger.not_done(id);
        }
        let Some((place, ask)) = self.asked.remove(id) else {
            return Ok(());
        };
        if let (Ask::Schedule { .. }, Some(Value::Array(numbers))) =
            (&ask, answer.body.get("sequence-numbers"))
        {
            for number in numbers {
                if let Value::Long(number) = number {
                    self.scheduled.push((place, *number));
                }
            }
        }
        let Some(Value::List(items)) = answer.body.get("messages") else {
            return Ok(());
        };
        for item in items {
            let Value::Map(entries) = item else { continue };
            let mut seen = None;
            let mut token = None;
            for (_, value) in entries {
                match value {
                    Value::Binary(bytes) => seen = Some(read_message(bytes)?),
                    Value::Uuid(uuid) => token = Some(LockToken::from_uuid(*uuid)),
                    _ => {}
                }
            }
            let Some(seen) = seen else { continue };
            let id = self.see(place, &seen)?;
            match (&ask, token) {
                (Ask::Deferred { delete: true, .. }, _) => self.ledger.got(id)?,
                (_, Some(token)) => self.hold(Held {
                    place,
                    token,
                    id,
                    number: seen.number,
                    on: None,
                    settled: false,
                }),
                // What a peek shows may be long ago: its response waits for credit.
                (_, None) => {
                    if seen.state == 1 {
                        self.deferred.push((place, seen.number));
                    }
                    if seen.state == 2 {
                        self.scheduled.push((place, seen.number));
                    }
                }
            }
        }
        Ok(())
    }
}
