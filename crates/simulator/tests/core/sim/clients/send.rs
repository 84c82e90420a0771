//! What clients send.

use super::*;

/// Whether a message is one that becomes active later.
#[derive(Debug, Clone, Copy)]
enum Scheduled {
    Always,
    Seldom,
}

impl Clients {
    fn draft(&mut self, now: i64, scheduled: Scheduled) -> Draft {
        let random = &mut self.random;
        let horizon = self.plan.horizon;
        let lives = random.percent(40).then(|| random.within(0, horizon * 2));
        let is_scheduled = match scheduled {
            Scheduled::Always => true,
            Scheduled::Seldom => random.percent(10),
        };
        let due = is_scheduled.then(|| now + random.within(-horizon / 4, horizon));
        let mut properties = BTreeMap::new();
        if random.percent(30) {
            properties.insert("color".to_owned(), format!("c{}", random.below(4)));
        }
        let session = random
            .percent(85)
            .then(|| random.below(u64::from(SESSIONS)));
        let id = self.next_id;
        self.next_id += 1;
        let again = random.percent(15).then(|| 1 + random.below(8));
        Draft {
            id,
            same_as: again.map(|back| id.saturating_sub(back).max(1)),
            id_from: if self.ids.percent(self.plan.without_id) {
                IdFrom::Broker
            } else {
                IdFrom::Sender
            },
            time_to_live: lives.map(|millis| u32::try_from(millis).expect("it fits")),
            due,
            properties,
            session: session.map(|id| Session::try_from(id).expect("few")),
            padding: usize::try_from(random.below(self.plan.padding)).expect("it fits"),
            tail: String::new(),
            malformed: random.percent(1),
            bare: false,
        }
    }

    pub(super) fn send(&mut self, now: i64, count: usize) {
        let Some(at) = self.some_link(|link| link.kind == LinkKind::Sender) else {
            return self.attach();
        };
        let drafts: Vec<Draft> = (0..count)
            .map(|_| self.draft(now, Scheduled::Seldom))
            .collect();
        let connection = self
            .connections
            .get_mut(&at.connection)
            .expect("it has one");
        let delivery = connection.next_delivery;
        connection.next_delivery += 1;
        let ids = drafts.iter().map(|draft| draft.id).collect();
        self.ledger.sent(at, delivery, ids);
        let transaction = self.transaction(at.connection);
        let act = ClientAction::Send {
            at,
            delivery,
            transaction,
            batch: count != 1 || self.random.percent(10),
            drafts,
            settled: self.random.percent(10),
        };
        self.push(at.connection, act);
    }

    pub(super) fn schedule(&mut self, now: i64) {
        let Place { queue, .. } = self.place();
        let count = 1 + self.random.index(4);
        let drafts = (0..count).map(|_| {
            let draft = self.draft(now, Scheduled::Always);
            Draft {
                malformed: false,
                bare: false,
                ..draft
            }
        });
        let drafts = drafts.collect();
        let place = if self.random.percent(3) {
            Place::dead(queue)
        } else {
            Place::main(queue)
        };
        self.ask(place, Ask::Schedule { drafts });
    }
}
