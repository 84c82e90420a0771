//! Commands that look at messages over the JSON API.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::arguments::{
    AuditArgs, HistoryArgs, ListArgs, MessageCommand, ScheduledArgs, SearchArgs, dead,
};
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
        let query = args.selection.conditions.to_query();
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

    /// Searches all queues of the namespace.
    pub(super) async fn search(&self, args: &SearchArgs) -> Result<ExitCode, CommandError> {
        let mut query = args.conditions.to_query();
        if let Some(number) = args.number {
            query.extend(["&sequence_number=", &number.to_string()]);
        }
        let (mut all, mut place) = (Vec::new(), Some(String::new()));
        while let Some(from) = place.filter(|_| all.len() < args.limit) {
            let limit = (args.limit - all.len()).min(crate::limits::INSPECTED_MAX);
            let mut page = self
                .get(&format!("messages?limit={limit}{query}{from}"))
                .await?;
            let found = page.get_mut("messages").and_then(Value::as_array_mut);
            all.append(found.unwrap_or(&mut Vec::new()));
            let queue = page.get("next_queue").and_then(Value::as_str);
            let number = page.get("next_number").and_then(Value::as_u64);
            place = queue.map(|queue| {
                let number = number.unwrap_or_default();
                format!("&from_queue={}&from_number={number}", encoded(queue))
            });
        }
        self.show(&json!({"messages": all}), "messages", &table::FOUND);
        Ok(ExitCode::SUCCESS)
    }

    /// Counts scheduled messages in equal spans of time.
    pub(super) async fn scheduled(&self, args: &ScheduledArgs) -> Result<ExitCode, CommandError> {
        let (place, spans) = (encoded(&args.entity), args.spans);
        let answer = self
            .get(&format!("entities/{place}/schedule?spans={spans}"))
            .await?;
        self.show(&answer, "spans", &table::SCHEDULED);
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the last hour of an entity or of the namespace.
    pub(super) async fn history(&self, args: &HistoryArgs) -> Result<ExitCode, CommandError> {
        let path = match &args.entity {
            Some(entity) => format!("entities/{}/history", encoded(entity)),
            None => "history".to_owned(),
        };
        self.show(&self.get(&path).await?, "points", &table::HISTORY);
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the last administrative operations.
    pub(super) async fn audit(&self, args: &AuditArgs) -> Result<ExitCode, CommandError> {
        let conditions = [
            ("actor", &args.actor),
            ("operation", &args.operation),
            ("entity", &args.entity),
            ("since", &args.since),
        ];
        let mut query = String::new();
        for (name, value) in conditions {
            if let Some(value) = value {
                query.extend(["&", name, "=", &encoded(value)]);
            }
        }
        let (mut all, mut before) = (Vec::new(), Some(String::new()));
        while let Some(end) = before.filter(|_| all.len() < args.limit) {
            let limit = (args.limit - all.len()).min(crate::limits::INSPECTED_MAX);
            let mut page = self
                .get(&format!("audit?limit={limit}{query}{end}"))
                .await?;
            let found = page.get_mut("entries").and_then(Value::as_array_mut);
            all.append(found.unwrap_or(&mut Vec::new()));
            let next = page.get("next_before").and_then(Value::as_u64);
            before = next.map(|next| format!("&before={next}"));
        }
        self.show(&json!({"entries": all}), "entries", &table::AUDIT);
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
