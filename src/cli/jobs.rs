//! Commands that change many messages: jobs, and the wait for their end.

use std::fmt::Write as _;
use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::arguments::{
    ActivateArgs, ConsentArgs, DeadLetterArgs, JobArgs, MoveArgs, PurgeArgs, RedriveArgs,
    RescheduleArgs, SelectionArgs, dead,
};
use super::error::CommandError;
use super::shell::Shell;
use super::table::to_json;
use super::words;
use crate::system::print;
use jitney_api::jobs::{Action, Job, JobRequest, RunState};
use jitney_api::selection::{CountRequest, MessageSelection, SelectionCount};

impl ConsentArgs {
    /// Asks before something that cannot be undone, unless `--yes` answers.
    pub(super) fn confirm(&self, question: &str) -> Result<(), CommandError> {
        if self.yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() {
            let text = format!("{question} Nothing was done: confirm it with --yes.");
            return Err(CommandError::Usage(text));
        }
        print::complain(format_args!("{question} [y/N]"));
        let mut answer = String::new();
        // An end of the input is no yes.
        let _ = std::io::stdin().lock().read_line(&mut answer);
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(CommandError::Usage("Nothing was done.".to_owned())),
        }
    }
}

impl JobArgs {
    /// Asks before messages are changed.
    fn confirm(&self, question: &str) -> Result<(), CommandError> {
        if self.dry_run {
            return Ok(());
        }
        self.consent.confirm(question)
    }
}

/// The progress of a job: in place on a terminal, else a line a second.
struct Progress {
    bar: Option<ProgressBar>,
    /// Why the job does nothing, as it was shown last.
    waits: Option<String>,
}

impl Progress {
    fn new() -> Self {
        Self {
            bar: std::io::stderr().is_terminal().then(ProgressBar::no_length),
            waits: None,
        }
    }

    /// Shows what a job has done; `limit` is where it ends at the latest.
    fn show(&mut self, job: &Job, limit: Option<u64>) {
        let text = format!(
            "{} changed, {} skipped",
            words::number(job.changed),
            words::number(job.skipped)
        );
        if self.waits != job.waits {
            self.waits.clone_from(&job.waits);
            if let Some(waits) = &job.waits {
                match &self.bar {
                    Some(bar) => bar.suspend(|| print::complain(format_args!("{waits}"))),
                    None => print::complain(format_args!("{waits}")),
                }
            }
        }
        let Some(bar) = &self.bar else {
            print::complain(format_args!("{text} ..."));
            return;
        };
        let template = match limit {
            Some(limit) => {
                bar.set_length(limit);
                "{spinner} [{bar:30}] {percent}% {msg}, {per_sec}, {elapsed}"
            }
            None => "{spinner} {msg}, {per_sec}, {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar.set_message(text);
        bar.set_position(job.changed);
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Shell {
    pub(super) async fn purge(&self, args: &PurgeArgs) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        args.job.confirm(&format!("Delete messages of {place}?"))?;
        let action = Action::Delete {};
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn move_messages(&self, args: &MoveArgs) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        let question = format!("Move messages of {place} to {}?", args.to);
        args.job.confirm(&question)?;
        let action = Action::Move {
            to: Some(args.to.clone()),
            action: args.action.clone(),
            body: args.body.clone(),
        };
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn redrive(&self, args: &RedriveArgs) -> Result<ExitCode, CommandError> {
        let entity = &args.selection.entity;
        args.job
            .confirm(&format!("Send dead letters of {entity} again?"))?;
        let action = Action::Move {
            to: args.to.clone(),
            action: args.action.clone(),
            body: args.body.clone(),
        };
        self.job(&dead(entity), &args.selection, action, &args.job)
            .await
    }

    pub(super) async fn dead_letter(
        &self,
        args: &DeadLetterArgs,
    ) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        args.job.confirm(&format!(
            "Send messages of {place} to the dead-letter queue?"
        ))?;
        let action = Action::DeadLetter {
            reason: args.dead_letter_reason.clone(),
            description: args.dead_letter_description.clone(),
        };
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn activate(&self, args: &ActivateArgs) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        args.job
            .confirm(&format!("Make messages of {place} active?"))?;
        let action = Action::Activate {};
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn reschedule(&self, args: &RescheduleArgs) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        let question = format!("Reschedule messages of {place} to {}?", args.at);
        args.job.confirm(&question)?;
        let action = Action::Reschedule {
            scheduled_for: args.at.clone(),
        };
        self.job(&place, &args.selection, action, &args.job).await
    }

    /// Begins a job, waits for its end, and shows its progress.
    async fn job(
        &self,
        place: &str,
        selection: &SelectionArgs,
        action: Action,
        args: &JobArgs,
    ) -> Result<ExitCode, CommandError> {
        let mut selection = selection.conditions.to_selection()?;
        selection.numbers.clone_from(&args.numbers);
        let entity = place.to_owned();
        if args.dry_run {
            return self.count_selected(entity, selection).await;
        }
        let body = to_json(&JobRequest {
            entity,
            selection,
            action,
            limit: args.limit,
        });
        let wait = u64::from(!args.detach);
        let path = format!("jobs?wait={wait}");
        let begun = self.client.ask(Method::POST, &path, Some(&body), &[]);
        let mut job: Job = begun.await?;
        let mut progress = Progress::new();
        while !args.detach && job.state == RunState::Running {
            progress.show(&job, args.limit);
            job = self.get(&format!("jobs/{}?wait=1", job.id)).await?;
        }
        progress.clear();
        self.done(&job, &sentence(&job));
        let is_done = job.state == RunState::Completed;
        let is_whole = args.detach || is_done && job.skipped == 0;
        Ok(if is_whole {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    /// Counts the messages that a job would change.
    async fn count_selected(
        &self,
        entity: String,
        selection: MessageSelection,
    ) -> Result<ExitCode, CommandError> {
        let (mut messages, mut locked, mut size, mut undecided) = (0, 0, 0, 0);
        let mut request = CountRequest {
            entity,
            selection,
            from: 0,
        };
        loop {
            let body = to_json(&request);
            let page = self
                .client
                .ask(Method::POST, "jobs/count", Some(&body), &[]);
            let page: SelectionCount = page.await?;
            messages += page.messages;
            locked += page.locked;
            size += page.size_bytes;
            undecided += page.undecided;
            let Some(next) = page.next else { break };
            request.from = next;
        }
        let mut counted = json!({"messages": messages, "locked": locked, "size_bytes": size});
        let mut text = format!(
            "{} ({}) would be changed, and nothing was",
            messages_of(messages, &request.entity),
            words::size(size)
        );
        // Writing to a string does not fail.
        if locked != 0 {
            let locked = words::number(locked);
            let _ = write!(
                text,
                "; {locked} of them are locked by receivers, and would be skipped"
            );
        }
        if let (1.., Some(fields)) = (undecided, counted.as_object_mut()) {
            fields.insert("undecided".to_owned(), undecided.into());
            let undecided = words::count(undecided, "message");
            let _ = write!(text, "; for {undecided} --json-path takes too many steps");
        }
        self.done(&counted, &format!("{text}."));
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns a number of messages with the entity that has them.
fn messages_of(count: u64, place: &str) -> String {
    let (entity, thing) = split(place);
    format!("{} of {entity}", words::count(count, thing))
}

/// Returns the entity of a queue's path, and what its messages are called.
fn split(place: &str) -> (&str, &'static str) {
    match place.split_once("/$") {
        Some((entity, _)) => (entity, "dead letter"),
        None => (place, "message"),
    }
}

/// Says what a job of the audit log was to do: its action and its selection.
pub(super) fn intention(job: &Value) -> String {
    let text = |pointer: &str| job.pointer(pointer).and_then(Value::as_str);
    let mut said = match text("/action/kind").unwrap_or_default() {
        "move" => match text("/action/to") {
            Some(to) => format!("move to {to}"),
            None => "send again".to_owned(),
        },
        "dead_letter" => "dead-letter".to_owned(),
        "reschedule" => {
            let at = text("/action/scheduled_for").unwrap_or_default();
            format!("reschedule to {at}")
        }
        other => other.to_owned(),
    };
    let selection = job.get("selection").and_then(Value::as_object);
    for (name, value) in selection.into_iter().flatten() {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Array(all) => {
                let all = all.iter().map(|one| {
                    one.as_str()
                        .map_or_else(|| one.to_string(), ToOwned::to_owned)
                });
                all.collect::<Vec<_>>().join(", ")
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
                other.to_string()
            }
        };
        let with = if said.contains(", with ") {
            "and"
        } else {
            "with"
        };
        let _ = write!(said, ", {with} {} {value}", name.replace('_', " "));
    }
    said
}

/// Says in one sentence what a job has done, of how many messages of which entity, in which time.
pub(super) fn sentence(job: &Job) -> String {
    let changed = job.changed;
    let (entity, thing) = split(&job.entity);
    let has_selection = job.selection != MessageSelection::default();
    let of = if has_selection {
        Some(job.matched)
    } else {
        job.total
    };
    let what = match of.filter(|of| changed <= *of) {
        Some(of) if has_selection => format!(
            "{} of {}",
            words::number(changed),
            words::count(of, &format!("selected {thing}"))
        ),
        Some(of) => format!("{} of {}", words::number(changed), words::count(of, thing)),
        None => words::count(changed, thing),
    };
    let what = format!("{what} of {entity}");
    let did = match &job.action {
        Action::Delete {} => format!("Deleted {what}"),
        Action::Move { to: Some(to), .. } => format!("Moved {what} to {to}"),
        Action::Move { to: None, .. } => format!("Sent {what} again"),
        Action::DeadLetter { .. } => format!("Dead-lettered {what}"),
        Action::Activate {} => format!("Made {what} active"),
        Action::Reschedule { scheduled_for } => format!("Rescheduled {what} to {scheduled_for}"),
    };
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let ended = job.ended_at.as_deref().and_then(time);
    let taken = time(&job.created_at)
        .zip(ended)
        .and_then(|(began, ended)| Duration::try_from(ended.duration_since(began)).ok());
    let id = job.id;
    let mut said = match job.state {
        RunState::Running => format!("Job {id} runs: {}", lower(&did)),
        RunState::Cancelled => format!("Job {id} was cancelled: {}", lower(&did)),
        RunState::Failed => {
            let why = job.error.as_deref().unwrap_or("no reason is known");
            format!("Job {id} has failed, because of: {why}. {did}")
        }
        RunState::Completed => did,
    };
    if let Some(taken) = taken {
        let _ = write!(said, " in {}", words::taken(taken));
    }
    if job.skipped != 0 {
        let _ = write!(said, "; {} skipped", words::number(job.skipped));
        if let Some(why) = &job.last_skipped {
            let _ = write!(said, ", the last because of: {why}");
        }
    }
    said.push('.');
    if job.state == RunState::Running {
        let _ = write!(said, " `jitney jobs show {id}` follows it.");
        if let Some(waits) = &job.waits {
            let _ = write!(said, " It waits: {waits}");
        }
    }
    said
}

/// Returns a sentence as it is behind a colon.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(action: Value, more: &Value) -> Job {
        let mut job = json!({"id": 3, "entity": "orders", "selection": {}, "action": action, "state": "completed",
            "created_at": "2026-11-27T11:00:00.000Z", "ended_at": "2026-11-27T11:00:00.13Z",
            "total": 200_001, "matched": 200_001, "changed": 200_000, "skipped": 0});
        let (fields, more) = (job.as_object_mut().unwrap(), more.as_object().unwrap());
        fields.extend(more.clone());
        serde_json::from_value(job).unwrap()
    }

    #[test]
    fn the_result_of_a_job_is_a_sentence() {
        for (action, more, said) in [
            (
                json!({"kind": "delete"}),
                json!({}),
                "Deleted 200,000 of 200,001 messages of orders in 0.1 s.",
            ),
            (
                json!({"kind": "move", "to": "archive"}),
                json!({"skipped": 1, "last_skipped": "it is locked"}),
                "Moved 200,000 of 200,001 messages of orders to archive in 0.1 s; 1 skipped, the last because of: it is locked.",
            ),
            (
                json!({"kind": "move"}),
                json!({"entity": "orders/$DeadLetterQueue", "changed": 1, "total": 1}),
                "Sent 1 of 1 dead letter of orders again in 0.1 s.",
            ),
            (
                json!({"kind": "activate"}),
                json!({"selection": {"states": ["deferred"]}, "changed": 2, "matched": 3}),
                "Made 2 of 3 selected messages of orders active in 0.1 s.",
            ),
            (
                json!({"kind": "delete"}),
                json!({"state": "running", "ended_at": null, "changed": 7}),
                "Job 3 runs: deleted 7 of 200,001 messages of orders. `jitney jobs show 3` follows it.",
            ),
            (
                json!({"kind": "delete"}),
                json!({"state": "failed", "error": "the selection costs too much", "changed": 0, "total": null}),
                "Job 3 has failed, because of: the selection costs too much. Deleted 0 messages of orders in 0.1 s.",
            ),
        ] {
            assert_eq!(sentence(&job(action, &more)), said);
        }
    }
}
