//! Authorization rules in the configuration: our extension of the emulator's file.
//!
//! ```json
//! "AuthorizationRules": [{"Name": "app", "Rights": ["Send"], "PrimaryKey": "..", "SecondaryKey": ".."}]
//! ```

use super::reader::{At, ConfigReader, Names};
use super::{ConfiguredAuthorizationRule, ConfiguredRight, Secret};
use jitney_base::limits;

/// Bytes below which a key is warned of: as many as the operator's key has at least. The service makes keys of 32 random bytes, in base64.
const KEY_BYTES_SAFE: usize = 16;

impl ConfigReader<'_> {
    /// Reads the rules of a namespace, a queue or a topic; `None` if the file has none.
    pub(super) fn authorization(
        &mut self,
        of: &At<'_>,
    ) -> Option<Vec<ConfiguredAuthorizationRule>> {
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

    fn authorization_rule(
        &mut self,
        at: &At<'_>,
        names: &mut Names,
    ) -> Option<ConfiguredAuthorizationRule> {
        const NAME: &str = "1 to 256 characters that no other rule here has for its name";
        let known = ["Name", "Rights", "PrimaryKey", "SecondaryKey"];
        self.object_of_only(at, &known)?;
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
        Some(ConfiguredAuthorizationRule {
            name: name?,
            rights,
            primary_key: primary_key?,
            secondary_key,
        })
    }

    fn rights(&mut self, at: &At<'_>) -> Vec<ConfiguredRight> {
        const ALLOWED: &str = "an array of \"Send\", \"Listen\" and \"Manage\", one at least";
        let mut rights = Vec::new();
        let items = self.items(at, ALLOWED);
        let is_empty = items.is_empty();
        for item in items {
            match self.string(&item, ALLOWED) {
                Some("Send") => rights.push(ConfiguredRight::Send),
                Some("Listen") => rights.push(ConfiguredRight::Listen),
                Some("Manage") => rights.push(ConfiguredRight::Manage),
                Some(_) => self.mistake(&item, ALLOWED),
                None => {}
            }
        }
        if is_empty {
            self.mistake(at, ALLOWED);
        }
        rights
    }

    /// Reads a key. A malformed one is not quoted in the error, and neither is a short one in the warning.
    fn secret(&mut self, at: &At<'_>) -> Option<Secret> {
        const ALLOWED: &str = "a key of 1 to 256 characters";
        let text = at.value.and_then(serde_json::Value::as_str);
        let fits =
            |text: &&str| (1..=limits::AUTHORIZATION_TEXT_MAX).contains(&text.chars().count());
        let Some(text) = text.filter(fits) else {
            self.mistake_unseen(at, ALLOWED);
            return None;
        };
        if text.len() < KEY_BYTES_SAFE {
            let found = format!("a key of length {}, which others can guess", text.len());
            let allowed = format!(
                "{KEY_BYTES_SAFE} random characters or more, such as `openssl rand -base64 32` writes"
            );
            self.warn(at, found, &allowed);
        }
        Some(Secret(text.to_owned()))
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

#[cfg(test)]
mod tests {
    use crate::{ConfiguredRight, Defaults, check, parse};

    fn file(rules: &str) -> String {
        format!(
            r#"{{"UserConfig":{{"Namespaces":[{{"Name":"n","Queues":[{{"Name":"q","AuthorizationRules":{rules}}}]}}]}}}}"#
        )
    }

    #[test]
    fn rules_are_read() {
        let text =
            r#"[{"Name":"a","Rights":["Send","Manage"],"PrimaryKey":"k","SecondaryKey":"l"}]"#;
        let config = parse(&file(text)).unwrap();
        assert!(config.has_authorization());
        let rules = config.namespaces[0].queues[0]
            .authorization
            .as_ref()
            .unwrap();
        assert_eq!(rules[0].name, "a");
        assert_eq!(
            rules[0].rights,
            [ConfiguredRight::Send, ConfiguredRight::Manage]
        );
        assert_eq!(rules[0].primary_key.0, "k");
        assert!(!parse(&file("[]")).unwrap().has_authorization());
    }

    #[test]
    fn a_key_that_others_can_guess_is_a_warning_that_does_not_show_it() {
        let text = r#"[{"Name":"a","Rights":["Send"],"PrimaryKey":"xyz","SecondaryKey":"fifteen-letters"},
                       {"Name":"b","Rights":["Send"],"PrimaryKey":"sixteen-letters!"}]"#;
        let checked = check(&file(text), Defaults::Emulator);
        let rules = checked.config.unwrap().namespaces[0].queues[0]
            .authorization
            .clone()
            .unwrap();
        assert_eq!(rules[0].primary_key.0, "xyz");
        let warnings: Vec<String> = checked.warnings.iter().map(ToString::to_string).collect();
        let place = "UserConfig.Namespaces[0].Queues[0].AuthorizationRules[0]";
        let [primary, secondary] = &warnings[..] else {
            panic!("{warnings:?}");
        };
        for (warning, key, length) in [(primary, "PrimaryKey", 3), (secondary, "SecondaryKey", 15)]
        {
            let begins = format!("{place}.{key}: found a key of length {length}, which others");
            assert!(warning.starts_with(&begins), "{warning}");
        }
        assert!(
            !warnings
                .iter()
                .any(|it| it.contains("xyz") || it.contains("fifteen"))
        );
        assert!(checked.warnings.iter().all(|it| 0 < it.column));
    }

    #[test]
    fn every_mistake_is_told_and_no_key_is_shown() {
        let key = "s".repeat(300);
        let text = format!(
            r#"[{{"Name":"","Rights":["Send"],"PrimaryKey":"k"}},
                {{"Name":"a","Rights":["send"],"PrimaryKey":"k"}},
                {{"Name":"b","Rights":[],"PrimaryKey":"k"}},
                {{"Name":"c","Rights":["Send"]}},
                {{"Name":"d","Rights":["Send"],"PrimaryKey":"{key}"}},
                {{"Name":"d","Rights":["Send"],"PrimaryKey":"k","SecondaryKey":7}}]"#
        );
        let mistakes = parse(&file(&text)).unwrap_err();
        let told: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let place = |index: usize, key: &str| {
            format!("UserConfig.Namespaces[0].Queues[0].AuthorizationRules[{index}].{key}: ")
        };
        for (index, key) in [
            (0, "Name"),
            (1, "Rights[0]"),
            (2, "Rights"),
            (3, "PrimaryKey"),
            (4, "PrimaryKey"),
            (5, "Name"),
            (5, "SecondaryKey"),
        ] {
            let place = place(index, key);
            assert!(
                told.iter().any(|it| it.starts_with(&place)),
                "{place}: {told:#?}"
            );
        }
        assert!(!told.iter().any(|text| text.contains(&key)), "{told:#?}");
        // A wrong right is one mistake.
        assert_eq!(told.iter().filter(|text| text.contains("[1]")).count(), 1);
    }
}
