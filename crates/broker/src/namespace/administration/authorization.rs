//! Authorization rules of queues and topics, and the rotation of their keys.

use super::operate::Administration;
use super::{AuthorizationChange, EntityView, Properties};
use crate::namespace::{Denied, DeniedKind};
use jitney_base::rights::AuthorizationRule;
use jitney_queue::EntityKind;

impl Administration<'_, '_> {
    /// Changes an authorization rule. A grant by a key that is no longer there ends with its token.
    pub(super) fn change_authorization(
        &mut self,
        path: &str,
        name: &str,
        change: AuthorizationChange,
    ) -> Result<EntityView, Denied> {
        let base = self.find(path)?;
        self.check_room_for_change()?;
        let (before, full) = self.described(base)?;
        if before.kind == EntityKind::Subscription {
            let text =
                "A subscription has no authorization rules; those of its topic are for it, too.";
            return Err(Denied::new(DeniedKind::NotAllowed, text, path));
        }
        let mut rules = before.authorization.clone();
        let at = rules.iter().position(|rule| rule.name == name);
        let now = self.now();
        match (change, at.and_then(|at| rules.get_mut(at))) {
            (
                AuthorizationChange::Put {
                    rights,
                    primary_key,
                    secondary_key,
                    new_keys: [new_primary, new_secondary],
                },
                rule,
            ) => match rule {
                Some(rule) => {
                    rule.rights = rights;
                    rule.primary_key = primary_key.unwrap_or_else(|| rule.primary_key.clone());
                    rule.secondary_key = secondary_key.or_else(|| rule.secondary_key.take());
                    rule.modified_at = Some(now);
                }
                None => rules.push(AuthorizationRule {
                    name: name.to_owned(),
                    rights,
                    primary_key: primary_key.unwrap_or(new_primary),
                    secondary_key: Some(secondary_key.unwrap_or(new_secondary)),
                    created_at: Some(now),
                    modified_at: Some(now),
                }),
            },
            (
                AuthorizationChange::Rotate {
                    is_secondary,
                    new_key,
                },
                Some(rule),
            ) => {
                if is_secondary {
                    rule.secondary_key = Some(new_key);
                } else {
                    rule.primary_key = new_key;
                }
                rule.modified_at = Some(now);
            }
            (AuthorizationChange::Delete, Some(_)) => rules.retain(|rule| rule.name != name),
            (AuthorizationChange::Rotate { .. } | AuthorizationChange::Delete, None) => {
                let text = format!("'{path}' has no authorization rule '{name}'.");
                return Err(Denied::new(DeniedKind::NotFound, text, path));
            }
        }
        let checked = Properties::check_authorization(&rules);
        checked.map_err(Denied::from)?;
        let mut description = before.clone();
        description.authorization = rules;
        self.replace(base, &full, &before, description)?;
        self.view(base)
    }
}
