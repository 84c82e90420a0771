//! Commands that look at messages over the JSON API.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::arguments::{ListArgs, MessageCommand, dead};
use super::client::{CommandError, encoded};
use super::{Shell, table};

impl Shell {
    pub(super) async fn messages(
        &self,
        command: &MessageCommand,
    ) -> Result<ExitCode, CommandError> {
        match command {
            MessageCommand::List(args) => self.list(args).await,
            MessageCommand::Show {
                entity,
                number,
                dead_letter,
            } => {
                let place = if *dead_letter {
                    dead(entity)
                } else {
                    entity.clone()
                };
                let path = format!("entities/{}/messages/{number}", encoded(&place));
                self.show_one(&self.get(&path).await?);
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    /// Looks at messages, page by page: a search may have to look at many to find one.
    async fn list(&self, args: &ListArgs) -> Result<ExitCode, CommandError> {
        let mut query = String::new();
        for state in &args.selection.states {
            query.push_str("&state=");
            query.push_str(&encoded(state));
        }
        for (name, value) in args.selection.conditions() {
            query.extend(["&", name, "=", &encoded(value)]);
        }
        let place = encoded(&args.selection.place());
        let (mut all, mut from) = (Vec::new(), Some(args.from));
        while let Some(start) = from.filter(|_| all.len() < args.limit) {
            let limit = (args.limit - all.len()).min(crate::limits::INSPECTED_MAX);
            let path = format!("entities/{place}/messages?from={start}&limit={limit}{query}");
            let mut page = self.get(&path).await?;
            let found = page.get_mut("messages").and_then(Value::as_array_mut);
            all.append(found.unwrap_or(&mut Vec::new()));
            from = page.get("next").and_then(Value::as_u64);
        }
        let mut answer = json!({"messages": all});
        if let (Some(next), Some(fields)) = (from, answer.as_object_mut()) {
            fields.insert("next".to_owned(), next.into());
        }
        self.show(&answer, "messages", &table::MESSAGES);
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn dead_letters(&self, entity: &str) -> Result<ExitCode, CommandError> {
        let answer = self
            .get(&format!("entities/{}/dead-letters", encoded(entity)))
            .await?;
        self.show(&answer, "groups", &table::DEAD_LETTERS);
        Ok(ExitCode::SUCCESS)
    }
}
