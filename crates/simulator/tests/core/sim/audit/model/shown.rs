//! What somebody who looks at a message must see.

use super::*;
use crate::sim::wire::{IdFrom, made_up_id, read_body};

impl Shown {
    pub(in crate::sim) fn check(&self, seen: &Seen) -> Result<(), String> {
        let is_made_up = self.draft.id_from != IdFrom::Sender;
        let own = self.draft.message_id().filter(|_| !is_made_up);
        if is_made_up && made_up_id(&seen.message_id).is_none() {
            let id = &seen.message_id;
            return Err(format!("the message-id {id} was not made up: {seen:?}"));
        }
        let mut expected = Seen {
            id: self.draft.id,
            message_id: own.unwrap_or_else(|| seen.message_id.clone()),
            padding: 0,
            tail: String::new(),
            number: self.number,
            enqueued_number: self.enqueued_number,
            enqueued_at: self.enqueued_at,
            locked_until: self.locked_until,
            lock_token: seen.lock_token,
            delivery_count: self.delivery_count,
            state: self.state,
            time_to_live: None,
            expires_at: None,
            due: self.draft.due,
            session: self.draft.session.map(session_name),
            source: self.source.clone(),
            properties: self.properties.clone(),
        };
        if self.draft.bare {
            expected.id = 0;
        } else {
            let (_, padding, tail) = read_body(&self.draft.body())?;
            (expected.padding, expected.tail) = (padding, tail);
        }
        for (name, text) in &mut expected.properties {
            if let Some(found) = seen.properties.get(name).filter(|_| text == ANY) {
                text.clone_from(found);
            }
        }
        match self.time_to_live {
            Some(NEVER) => {}
            Some(millis) => {
                expected.time_to_live = Some(u32::try_from(millis).unwrap_or(u32::MAX));
                expected.expires_at = Some(self.enqueued_at.saturating_add(millis));
            }
            None => {
                expected.time_to_live = seen.time_to_live;
                expected.expires_at = seen.expires_at;
            }
        }
        let has_lock = self.locked_until.is_some() && !self.is_peeked;
        if has_lock != seen.lock_token.is_some() {
            return Err(format!(
                "a lock token without a lock, or none with one: {seen:?}"
            ));
        }
        if expected == *seen {
            Ok(())
        } else {
            Err(format!("expected {expected:?}\n       found {seen:?}"))
        }
    }
}

impl Message {
    pub(in crate::sim::audit) fn modify(
        &mut self,
        properties: &BTreeMap<String, String>,
        group: u64,
    ) {
        for (name, value) in properties {
            self.amend(name, value);
            self.changed = group;
        }
    }

    /// Gives it a property that its sender did not.
    pub(in crate::sim::audit) fn amend(&mut self, name: &str, text: &str) {
        for properties in [&mut self.properties, &mut self.amended] {
            properties.insert(name.to_owned(), text.to_owned());
        }
    }
}

impl Queue {
    /// Returns where a look from a number on begins.
    pub(in crate::sim::audit) fn begin_at(&self, from: u64) -> u64 {
        let mut all = self.messages.keys().copied();
        let shown = |ordinal| u64::try_from(number(ordinal)).expect("it is positive");
        all.find(|&ordinal| from <= shown(ordinal))
            .unwrap_or(u64::MAX)
    }
}
