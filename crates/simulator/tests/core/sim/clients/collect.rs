//! The end of a run: somebody looks at everything, and takes everything out.

use super::*;

impl Clients {
    /// Somebody comes who looks at everything, and says so to everyone's broker.
    pub(in crate::sim) fn inspect(&mut self) -> Vec<ClientAction> {
        let id = self.open();
        for queue in 0..self.plan.entities.len() {
            for place in Place::all(queue) {
                self.manage(id, place);
                let ask = Ask::Peek {
                    from: 0,
                    count: 250,
                    session: None,
                };
                self.ask_on(id, place, None, ask);
            }
            let place = Place::main(queue);
            if self.has_sessions(place) {
                let ask = Ask::ListSessions {
                    skip: 0,
                    top: 100,
                    since: None,
                };
                self.ask_on(id, place, None, ask);
                for session in 0..SESSIONS {
                    let wish = Some(Wish::Named(session));
                    let kind = LinkKind::Receiver {
                        delete: false,
                        wish,
                    };
                    let at = self.attach_to(id, place, kind);
                    self.ask_on(id, place, Some(at), Ask::GetState { session });
                    self.drop_link(at);
                }
            }
        }
        self.take_inbox(id)
    }

    /// Everybody has read what was sent.
    pub(in crate::sim) fn read_all(&mut self) -> Vec<ClientAction> {
        let mut acts = Vec::new();
        for (&connection, of) in &mut self.connections {
            acts.extend(of.inbox.drain(..));
            for (&link, state) in &mut of.links {
                let at = LinkKey { connection, link };
                let bytes = std::mem::take(&mut state.unwritten);
                if bytes > 0 {
                    acts.push(ClientAction::Written { at, bytes });
                }
            }
        }
        acts
    }

    /// Everything that can be received is, and deferred messages that were seen.
    pub(in crate::sim) fn collect(&mut self) -> Vec<ClientAction> {
        let id = self.open();
        for queue in 0..self.plan.entities.len() {
            for place in Place::all(queue) {
                let wishes: Vec<Option<Wish>> = if self.has_sessions(place) {
                    let all = 0..SESSIONS;
                    all.map(|session| Some(Wish::Named(session))).collect()
                } else {
                    vec![None]
                };
                for wish in wishes.iter().copied() {
                    let kind = LinkKind::Receiver { delete: true, wish };
                    let at = self.attach_to(id, place, kind);
                    self.set_credit(at, 5_000);
                }
                let mut numbers = self.deferred.clone();
                numbers.sort_unstable();
                numbers.dedup();
                self.manage(id, place);
                for (of, number) in numbers {
                    for wish in wishes.iter().filter(|_| of == place) {
                        let ask = Ask::Deferred {
                            numbers: vec![number],
                            delete: true,
                            session: match wish {
                                Some(Wish::Named(session)) => Some(*session),
                                _ => None,
                            },
                        };
                        self.ask_on(id, place, None, ask);
                    }
                }
            }
        }
        self.take_inbox(id)
    }
}
