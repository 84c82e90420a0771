//! Authorization rules, as the file tells of them: our extension of the emulator's.
//!
//! ```json
//! "AuthorizationRules": [{"Name": "app", "Rights": ["Send"], "PrimaryKey": "..", "SecondaryKey": ".."}]
//! ```

use super::reader::{At, Names, Reader};
use super::{AuthorizationRule, Right, Secret};
use crate::limits;

impl Reader {
    /// Reads the rules of a namespace, a queue or a topic; `None` if the file does not speak of any.
    pub(super) fn authorization(&mut self, of: &At<'_>) -> Option<Vec<AuthorizationRule>> {
        let at = of.key("AuthorizationRules");
        if at.is_absent() {
            return None;
        }
        let mut names = Names::default();
        let mut rules = Vec::new();
        for rule in self.items(&at, "an array of authorization rules") {
            rules.extend(self.authorization_rule(&rule, &mut names));
        }
        let max = limits::AUTHORIZATION_RULES_MAX;
        if max < rules.len() {
            self.mistake(&at, &format!("{max} rules or less"));
        }
        Some(rules)
    }

    fn authorization_rule(&mut self, at: &At<'_>, names: &mut Names) -> Option<AuthorizationRule> {
        const NAME: &str = "1 to 256 characters that no other rule here has for its name";
        self.object(at)?;
        let name_at = at.key("Name");
        let name = self.text(&name_at, NAME).filter(|name| {
            let is_new = names.insert(name.clone());
            if !is_new {
                self.mistake(&name_at, NAME);
            }
            is_new
        });
        let rights = self.rights(&at.key("Rights"));
        let primary_key = self.secret(&at.key("PrimaryKey"));
        let secondary = at.key("SecondaryKey");
        let secondary_key = if secondary.is_absent() {
            None
        } else {
            self.secret(&secondary)
        };
        Some(AuthorizationRule {
            name: name?,
            rights,
            primary_key: primary_key?,
            secondary_key,
        })
    }

    fn rights(&mut self, at: &At<'_>) -> Vec<Right> {
        const ALLOWED: &str = "an array of \"Send\", \"Listen\" and \"Manage\", one at least";
        let mut rights = Vec::new();
        for item in self.items(at, ALLOWED) {
            match self.string(&item, ALLOWED) {
                Some("Send") => rights.push(Right::Send),
                Some("Listen") => rights.push(Right::Listen),
                Some("Manage") => rights.push(Right::Manage),
                Some(_) => self.mistake(&item, ALLOWED),
                None => {}
            }
        }
        if rights.is_empty() {
            self.mistake(at, ALLOWED);
        }
        rights
    }

    fn secret(&mut self, at: &At<'_>) -> Option<Secret> {
        self.text(at, "a key of 1 to 256 characters").map(Secret)
    }

    fn text(&mut self, at: &At<'_>, allowed: &str) -> Option<String> {
        let text = self.string(at, allowed)?;
        if !(1..=limits::AUTHORIZATION_TEXT_MAX).contains(&text.chars().count()) {
            self.mistake(at, allowed);
            return None;
        }
        Some(text.to_owned())
    }
}
