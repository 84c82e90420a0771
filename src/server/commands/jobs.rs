//! Commands that change many messages: jobs, and the wait for their end.

use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;
use std::time::Duration;

use hyper::Method;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use super::Shell;
use super::arguments::{
    ActivateArgs, DeadLetterArgs, JobArgs, MoveArgs, PurgeArgs, RedriveArgs, RescheduleArgs,
    SelectionArgs, dead,
};
use super::client::CommandError;
use crate::server::print;

fn moving(to: Option<&str>, action: Option<&str>, body: Option<&str>) -> Value {
    let mut moving = json!({"kind": "move"});
    for (name, value) in [("to", to), ("action", action), ("body", body)] {
        if let (Some(value), Some(fields)) = (value, moving.as_object_mut()) {
            fields.insert(name.to_owned(), value.into());
        }
    }
    moving
}

/// Asks before something that cannot be undone, unless `--yes` answers.
pub(super) fn confirm(yes: bool, question: &str) -> Result<(), CommandError> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let text = format!("{question} Say so with --yes.");
        return Err(CommandError::Usage(text));
    }
    print::complain(format_args!("{question} [y/N]"));
    let mut answer = String::new();
    // An end of the input is no yes.
    let _ = std::io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(CommandError::Usage("nothing was done".to_owned())),
    }
}

impl JobArgs {
    /// Asks before messages are changed.
    fn confirm(&self, question: &str) -> Result<(), CommandError> {
        confirm(self.yes || self.dry_run, question)
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

    /// Shows what a job has done; `most` is where it ends at the latest.
    fn show(&mut self, (changed, skipped): (u64, u64), most: Option<u64>, waits: Option<&str>) {
        let text = format!("{changed} changed, {skipped} skipped");
        if self.waits.as_deref() != waits {
            self.waits = waits.map(ToOwned::to_owned);
            if let Some(waits) = waits {
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
        let template = match most {
            Some(most) => {
                bar.set_length(most);
                "{spinner} [{bar:30}] {percent}% {msg}, {per_sec}, {elapsed}"
            }
            None => "{spinner} {msg}, {per_sec}, {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar.set_message(text);
        bar.set_position(changed);
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
        let action = json!({"kind": "delete"});
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn move_messages(&self, args: &MoveArgs) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        let question = format!("Move messages of {place} to {}?", args.to);
        args.job.confirm(&question)?;
        let action = moving(Some(&args.to), args.action.as_deref(), args.body.as_deref());
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn redrive(&self, args: &RedriveArgs) -> Result<ExitCode, CommandError> {
        let entity = &args.selection.entity;
        args.job
            .confirm(&format!("Send dead letters of {entity} again?"))?;
        let action = moving(
            args.to.as_deref(),
            args.action.as_deref(),
            args.body.as_deref(),
        );
        self.job(&dead(entity), &args.selection, action, &args.job)
            .await
    }

    pub(super) async fn dead_letter(
        &self,
        args: &DeadLetterArgs,
    ) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        args.job
            .confirm(&format!("Dead-letter messages of {place}?"))?;
        let mut action = json!({"kind": "dead_letter"});
        let texts = [
            ("reason", &args.dead_letter_reason),
            ("description", &args.dead_letter_description),
        ];
        for (name, text) in texts {
            if let (Some(text), Some(fields)) = (text, action.as_object_mut()) {
                fields.insert(name.to_owned(), text.as_str().into());
            }
        }
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn activate(&self, args: &ActivateArgs) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        args.job
            .confirm(&format!("Activate messages of {place}?"))?;
        let action = json!({"kind": "activate"});
        self.job(&place, &args.selection, action, &args.job).await
    }

    pub(super) async fn reschedule(&self, args: &RescheduleArgs) -> Result<ExitCode, CommandError> {
        let place = args.selection.place();
        let question = format!("Reschedule messages of {place} to {}?", args.at);
        args.job.confirm(&question)?;
        let action = json!({"kind": "reschedule", "scheduled_for": args.at});
        self.job(&place, &args.selection, action, &args.job).await
    }

    /// Begins a job, waits for its end, and shows its progress.
    async fn job(
        &self,
        place: &str,
        selection: &SelectionArgs,
        action: Value,
        args: &JobArgs,
    ) -> Result<ExitCode, CommandError> {
        let mut body =
            json!({"entity": place, "selection": selection.conditions.to_json(), "action": action});
        if let (Some(most), Some(fields)) = (args.most, body.as_object_mut()) {
            fields.insert("limit".to_owned(), most.into());
        }
        if !args.numbers.is_empty()
            && let Some(selection) = body.get_mut("selection").and_then(Value::as_object_mut)
        {
            selection.insert("numbers".to_owned(), json!(args.numbers));
        }
        if args.dry_run {
            return self.count_selected(body).await;
        }
        let wait = u64::from(!args.detach);
        let mut job = self
            .client
            .ask(Method::POST, &format!("jobs?wait={wait}"), Some(&body), &[])
            .await?;
        let count =
            |job: &Value, name: &str| job.get(name).and_then(Value::as_u64).unwrap_or_default();
        let mut progress = Progress::new();
        while !args.detach && job.get("state").and_then(Value::as_str) == Some("running") {
            let counts = (count(&job, "changed"), count(&job, "skipped"));
            let waits = job.get("waits").and_then(Value::as_str);
            progress.show(counts, args.most, waits);
            job = self
                .get(&format!("jobs/{}?wait=1", count(&job, "id")))
                .await?;
        }
        progress.clear();
        self.show_one(&job);
        let is_done = job.get("state").and_then(Value::as_str) == Some("completed");
        let is_whole = args.detach || is_done && count(&job, "skipped") == 0;
        Ok(if is_whole {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }

    /// Counts the messages that a job would change.
    async fn count_selected(&self, mut body: Value) -> Result<ExitCode, CommandError> {
        let (mut messages, mut locked, mut size, mut undecided) = (0, 0, 0, 0);
        if let Some(fields) = body.as_object_mut() {
            fields.retain(|name, _| name == "entity" || name == "selection");
        }
        loop {
            let page = self
                .client
                .ask(Method::POST, "jobs/count", Some(&body), &[])
                .await?;
            let count = |name: &str| page.get(name).and_then(Value::as_u64).unwrap_or_default();
            messages += count("messages");
            locked += count("locked");
            size += count("size_bytes");
            undecided += count("undecided");
            let (Some(next), Some(fields)) = (page.get("next"), body.as_object_mut()) else {
                break;
            };
            fields.insert("from".to_owned(), next.clone());
        }
        let mut counted = json!({"messages": messages, "locked": locked, "size_bytes": size});
        if let (1.., Some(fields)) = (undecided, counted.as_object_mut()) {
            fields.insert("undecided".to_owned(), undecided.into());
        }
        self.show_one(&counted);
        Ok(ExitCode::SUCCESS)
    }
}
