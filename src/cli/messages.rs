//! Commands that look at messages over the JSON API.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::arguments::{
    AuditArgs, ConditionArgs, EntityQueue, HistoryArgs, ListArgs, MessageCommand, ScheduledArgs,
    SearchArgs, SelectionArgs, StateArg,
};
use super::error::CommandError;
use super::path::encoded;
use super::shell::{Output, Shell};
use super::{jobs, table, words};
use crate::system::print;
use jitney_api::audit::{AuditLog, Entry};
use jitney_api::entities::Entity;
use jitney_api::history::HistoryShown;
use jitney_api::messages::{DeadLetterGroups, MessageShown, Messages};
use jitney_api::schedule::{ScheduledCounts, ScheduledSpan};
use jitney_api::search::Found;
use jitney_gateway::limits::INSPECTED_MAX;

/// Returns how many messages are asked for when so many are wanted: a whole page where some of them may not be chosen.
fn page_of(wanted: usize, conditions: &ConditionArgs) -> usize {
    if conditions.are_chosen_here() {
        INSPECTED_MAX
    } else {
        wanted.min(INSPECTED_MAX)
    }
}

/// Says how many of how many messages were shown, and how to see the others.
fn rest(shown: usize, total: Option<u64>, next: u64) -> String {
    let shown = words::number(words::whole(shown));
    match total {
        Some(total) => format!(
            "{shown} of {}; --limit N shows more, --from {next} the next ones.",
            words::count(total, "message")
        ),
        None => format!(
            "{shown} shown; there may be more: --limit N shows more, --from {next} the next ones."
        ),
    }
}

/// Returns the spans that have messages; those of one millisecond are one.
fn with_messages(spans: Vec<ScheduledSpan>) -> Vec<ScheduledSpan> {
    let mut all: Vec<ScheduledSpan> = Vec::new();
    for span in spans {
        match all.last_mut().filter(|last| last.from == span.from) {
            Some(last) => last.messages += span.messages,
            None => all.push(span),
        }
    }
    all.retain(|span| span.messages != 0);
    all
}

/// Gives an entry of the audit log words for people instead of what the broker writes for programs.
fn in_words(entry: &mut Entry) {
    let text = entry.detail.as_str();
    let job = text.split_once(": ").and_then(|(job, rest)| {
        let described: Value = serde_json::from_str(rest).ok()?;
        Some(format!("{job}: {}", jobs::intention(&described)))
    });
    let text = job.unwrap_or_else(|| {
        let parts = text.split(' ').map(|part| {
            let bare = part.trim_end_matches([',', ';']);
            let end = part.get(bare.len()..).unwrap_or_default();
            let word = match bare {
                "18446744073709551615" | "9223372036854775807" => Some("no limit".to_owned()),
                _ => words::shown_duration(bare),
            };
            word.map_or_else(|| part.to_owned(), |word| word + end)
        });
        parts.collect::<Vec<_>>().join(" ")
    });
    entry.detail = text;
}

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
                dead_letters,
            } => {
                let place = EntityQueue {
                    entity,
                    dead_letters: *dead_letters,
                };
                let path = format!("entities/{}/messages/{number}", encoded(&place.path()));
                self.show_one(&self.get::<MessageShown>(&path).await?);
                Ok(ExitCode::SUCCESS)
            }
        }
    }

    /// Looks at messages, page by page: a search may have to look at many to find one.
    async fn list(&self, args: &ListArgs) -> Result<ExitCode, CommandError> {
        let conditions = &args.selection.conditions;
        let query = conditions.to_query();
        let place = encoded(&args.selection.place());
        let (mut all, mut from) = (Vec::new(), Some(args.from));
        while let Some(start) = from.filter(|_| all.len() < args.limit) {
            let left = args.limit - all.len();
            let limit = page_of(left, conditions);
            let path = format!("entities/{place}/messages?from={start}&limit={limit}{query}");
            let page: Messages = self.get(&path).await?;
            let found = page.messages.into_iter();
            let mut chosen = found.filter(|message| conditions.choose(message));
            all.extend(chosen.by_ref().take(left));
            // The page has more than was left: the next one begins with the first of these.
            from = chosen.next().map(|one| one.sequence_number).or(page.next);
        }
        let mut answer = json!({"messages": all});
        if let (Some(next), Some(fields)) = (from, answer.as_object_mut()) {
            fields.insert("next".to_owned(), next.into());
        }
        self.show(&answer, "messages", &table::MESSAGES);
        if let Some(next) = from.filter(|_| self.output == Output::Table) {
            let total = self.total(&args.selection).await;
            print::line(rest(all.len(), total, next));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns how many messages there are, if they are not selected by more than their states.
    async fn total(&self, selection: &SelectionArgs) -> Option<u64> {
        let states = selection.conditions.only_states()?;
        let path = format!("entities/{}", encoded(&selection.entity));
        let counts = self.get::<Entity>(&path).await.ok()?.counts;
        if selection.dead_letters {
            return Some(words::whole(counts.dead_letters)).filter(|_| states.is_empty());
        }
        let of_states = [
            (StateArg::Active, counts.active),
            (StateArg::Deferred, counts.deferred),
            (StateArg::Scheduled, counts.scheduled),
        ];
        let meant = of_states
            .into_iter()
            .filter(|(state, _)| states.is_empty() || states.contains(state));
        Some(meant.map(|(_, count)| words::whole(count)).sum())
    }

    /// Searches all queues of the namespace.
    pub(super) async fn search(&self, args: &SearchArgs) -> Result<ExitCode, CommandError> {
        let mut query = args.conditions.to_query();
        if let Some(number) = args.number {
            query.extend(["&sequence_number=", &number.to_string()]);
        }
        let (mut all, mut place) = (Vec::new(), Some(String::new()));
        while all.len() < args.limit
            && let Some(from) = place.take()
        {
            let limit = page_of(args.limit - all.len(), &args.conditions);
            let path = format!("messages?limit={limit}{query}{from}");
            let page: Found = self.get(&path).await?;
            let found = page.messages.into_iter();
            all.extend(found.filter(|found| args.conditions.choose(&found.message)));
            let number = page.next_number.unwrap_or_default();
            place = page
                .next_queue
                .map(|queue| format!("&from_queue={}&from_number={number}", encoded(&queue)));
        }
        let is_cut = place.is_some() || args.limit < all.len();
        all.truncate(args.limit);
        let found = all.len();
        self.show_list(&all, "messages", &table::FOUND);
        if is_cut && self.output == Output::Table {
            print::line(format_args!(
                "The first {} that were found; there may be more: --limit N shows more.",
                words::count(words::whole(found), "message")
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Counts scheduled messages in equal spans of time.
    pub(super) async fn scheduled(&self, args: &ScheduledArgs) -> Result<ExitCode, CommandError> {
        let (place, spans) = (encoded(&args.entity), args.spans);
        let path = format!("entities/{place}/schedule?spans={spans}");
        let answer: ScheduledCounts = self.get(&path).await?;
        if self.output == Output::Json {
            self.show_one(&answer);
            return Ok(ExitCode::SUCCESS);
        }
        let total = words::count(words::whole(answer.total), "scheduled message");
        let spans: Vec<Value> = with_messages(answer.spans)
            .iter()
            .map(table::to_json)
            .collect();
        if !spans.is_empty() {
            print::line(table::SCHEDULED.render(&spans));
        }
        print::line(format_args!("{} has {total}.", args.entity));
        Ok(ExitCode::SUCCESS)
    }

    /// Shows the history of an entity or of the namespace.
    pub(super) async fn history(&self, args: &HistoryArgs) -> Result<ExitCode, CommandError> {
        let path = match &args.entity {
            Some(entity) => format!("entities/{}/history", encoded(entity)),
            None => "history".to_owned(),
        };
        let path = format!("{path}{}", args.range.query());
        let history: HistoryShown = self.get(&path).await?;
        self.show(&history, "points", &table::HISTORY);
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
        while all.len() < args.limit
            && let Some(end) = before.take()
        {
            let limit = (args.limit - all.len()).min(INSPECTED_MAX);
            let path = format!("audit?limit={limit}{query}{end}");
            let mut page: AuditLog = self.get(&path).await?;
            all.append(&mut page.entries);
            before = page.next_before.map(|next| format!("&before={next}"));
        }
        let is_cut = before.is_some();
        if self.output == Output::Table {
            all.iter_mut().for_each(in_words);
        }
        let shown = all.len();
        self.show_list(&all, "entries", &table::AUDIT);
        if is_cut && self.output == Output::Table {
            print::line(format_args!("The newest {shown}; --limit N shows more."));
        }
        Ok(ExitCode::SUCCESS)
    }

    pub(super) async fn dead_letters(&self, entity: &str) -> Result<ExitCode, CommandError> {
        let path = format!("entities/{}/dead-letters", encoded(entity));
        let answer: DeadLetterGroups = self.get(&path).await?;
        self.show(&answer, "groups", &table::DEAD_LETTERS);
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_how_many_of_how_many_it_shows() {
        assert_eq!(
            rest(20, Some(50_000), 21),
            "20 of 50,000 messages; --limit N shows more, --from 21 the next ones."
        );
        assert!(rest(20, None, 21).starts_with("20 shown; there may be more"));
    }

    #[test]
    fn spans_without_messages_are_left_out() {
        let spans = |all: &[(&str, usize)]| {
            let all = all.iter().map(|&(from, messages)| ScheduledSpan {
                from: from.to_owned(),
                messages,
            });
            all.collect::<Vec<_>>()
        };
        let given = spans(&[("a", 0), ("a", 2), ("a", 0), ("b", 0), ("c", 1)]);
        assert_eq!(with_messages(given), spans(&[("a", 2), ("c", 1)]));
        assert!(with_messages(Vec::new()).is_empty());
    }

    #[test]
    fn the_audit_log_is_in_words() {
        for (detail, shown) in [
            ("max_delivery_count: 3 → 7", "max_delivery_count: 3 → 7"),
            (
                "auto_delete_on_idle: P10675199DT2H48M5.4775807S → PT1H, size: 18446744073709551615",
                "auto_delete_on_idle: never → 1h, size: no limit",
            ),
            (
                r#"job 1: {"selection":{"filter":"a = 1"},"action":{"kind":"move","to":"grouped"}}"#,
                "job 1: move to grouped, with filter a = 1",
            ),
            (
                r#"job 0: {"selection":{},"action":{"kind":"delete"}}"#,
                "job 0: delete",
            ),
        ] {
            let mut entry = Entry {
                number: 1,
                at: String::new(),
                count: None,
                last_at: None,
                actor: "operator".to_owned(),
                peer: String::new(),
                operation: "update".to_owned(),
                entity: String::new(),
                detail: detail.to_owned(),
            };
            in_words(&mut entry);
            assert_eq!(entry.detail, shown);
        }
    }
}
