//! Commands for operators, over the JSON API of a broker that runs.

pub(super) mod backup;
mod client;
pub(super) mod log;
mod table;

use std::io::{BufRead as _, IsTerminal as _};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use hyper::Method;
use serde_json::{Map, Value, json};

use super::print;
use client::{Client, CommandError, encoded};
use table::Table;

pub(super) use client::ClientArgs;

/// The form of a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Columns for people.
    #[default]
    Table,
    /// The answer of the API.
    Json,
}

/// What every command has.
#[derive(Debug, Clone, Args)]
pub(super) struct Common {
    /// The form of the output.
    #[arg(long, value_enum, default_value_t, global = true)]
    output: Output,
    /// Which broker, with which credential.
    #[command(flatten)]
    client: ClientArgs,
}

/// What can be done with the entities of one kind.
#[derive(Debug, Subcommand)]
pub(super) enum EntityCommand {
    /// List them; subscriptions of a topic.
    List {
        /// The topic of subscriptions.
        topic: Option<String>,
    },
    /// Show one.
    Show {
        /// Its path; of a subscription TOPIC/Subscriptions/NAME.
        path: String,
    },
    /// Make one.
    Create {
        /// Its path.
        path: String,
        /// A property, such as `lock_duration=PT30S`; it may be given several times.
        #[arg(long = "set", value_name = "NAME=VALUE")]
        properties: Vec<String>,
    },
    /// Replace the properties of one; those that are not given get their defaults.
    Update {
        /// Its path.
        path: String,
        /// A property, such as `lock_duration=PT30S`; it may be given several times.
        #[arg(long = "set", value_name = "NAME=VALUE")]
        properties: Vec<String>,
    },
    /// Delete one with all its messages.
    Delete {
        /// Its path.
        path: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// What can be done with rules.
#[derive(Debug, Subcommand)]
pub(super) enum RuleCommand {
    /// List the rules of a subscription.
    List {
        /// The subscription: TOPIC/Subscriptions/NAME.
        subscription: String,
    },
    /// Make a rule.
    Create {
        /// The subscription: TOPIC/Subscriptions/NAME.
        subscription: String,
        /// The rule's name.
        name: String,
        /// The SQL filter.
        #[arg(long, value_name = "EXPRESSION")]
        filter: String,
        /// The SQL action.
        #[arg(long, value_name = "STATEMENTS")]
        action: Option<String>,
    },
    /// Delete a rule.
    Delete {
        /// The subscription: TOPIC/Subscriptions/NAME.
        subscription: String,
        /// The rule's name.
        name: String,
    },
}

/// What can be done with connections.
#[derive(Debug, Subcommand)]
pub(super) enum ConnectionCommand {
    /// List them with their links.
    List,
    /// Close one; its client may connect again.
    Close {
        /// Its id.
        id: u32,
    },
}

/// What can be done with message sessions.
#[derive(Debug, Subcommand)]
pub(super) enum SessionCommand {
    /// List those that have messages or a state.
    List {
        /// The queue or the subscription.
        entity: String,
    },
    /// Show one with its state.
    Show {
        /// The queue or the subscription.
        entity: String,
        /// Its id.
        id: String,
    },
}

/// What can be done with jobs.
#[derive(Debug, Subcommand)]
pub(super) enum JobCommand {
    /// List them, the newest first.
    List,
    /// Show one.
    Show {
        /// Its id.
        id: u64,
    },
    /// Cancel one; what it has done stays.
    Cancel {
        /// Its id.
        id: u64,
    },
}

/// Which messages.
#[derive(Debug, Args)]
pub(super) struct SelectionArgs {
    /// The queue, the topic or the subscription.
    entity: String,
    /// Its dead letters, and not its messages.
    #[arg(long)]
    dead_letters: bool,
    /// Those in a state: active, deferred or scheduled; it may be given several times.
    #[arg(long = "state", value_name = "STATE")]
    states: Vec<String>,
    /// Those of a message session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// The one with an id.
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
    /// Those with a correlation id.
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,
    /// Those that were dead-lettered for a reason.
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// Those for which a SQL expression is true.
    #[arg(long, value_name = "EXPRESSION")]
    filter: Option<String>,
    /// Those whose body has a text.
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Those in whose body a `JSONPath` finds something.
    #[arg(long, value_name = "PATH")]
    json_path: Option<String>,
}

/// Look at messages.
#[derive(Debug, Args)]
pub(super) struct PeekArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// The first sequence number to look at.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from: u64,
    /// As many at most.
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

/// Delete messages.
#[derive(Debug, Args)]
pub(super) struct PurgeArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    job: JobArgs,
}

/// Bring messages to another entity.
#[derive(Debug, Args)]
pub(super) struct MoveArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// The queue, the topic or the subscription that gets them.
    #[arg(long, value_name = "ENTITY")]
    to: String,
    /// SQL statements that change their properties first: SET color = 'red'; REMOVE attempts.
    #[arg(long, value_name = "STATEMENTS")]
    action: Option<String>,
    #[command(flatten)]
    job: JobArgs,
}

/// Bring dead letters back.
#[derive(Debug, Args)]
pub(super) struct RedriveArgs {
    #[command(flatten)]
    selection: SelectionArgs,
    /// The entity that gets them. The default is the one that they were dead-lettered in; of a topic, the subscription.
    #[arg(long, value_name = "ENTITY")]
    to: Option<String>,
    /// SQL statements that change their properties first: SET color = 'red'; REMOVE attempts.
    #[arg(long, value_name = "STATEMENTS")]
    action: Option<String>,
    #[command(flatten)]
    job: JobArgs,
}

/// How a job is done.
#[derive(Debug, Args)]
pub(super) struct JobArgs {
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// End when so many were changed.
    #[arg(long = "most", value_name = "N")]
    most: Option<u64>,
    /// Begin the job, and do not wait for its end.
    #[arg(long)]
    detach: bool,
}

/// A command over the API.
#[derive(Debug)]
pub(super) enum ApiCommand<'a> {
    Queues(&'a EntityCommand),
    Topics(&'a EntityCommand),
    Subscriptions(&'a EntityCommand),
    Rules(&'a RuleCommand),
    Connections(&'a ConnectionCommand),
    Sessions(&'a SessionCommand),
    Jobs(&'a JobCommand),
    Peek(&'a PeekArgs),
    DeadLetters(&'a str),
    Purge(&'a PurgeArgs),
    Move(&'a MoveArgs),
    Redrive(&'a RedriveArgs),
    Backup(&'a backup::BackupArgs),
}

/// Carries a command out. The exit code is 0 if it is done, 1 if the broker refuses it or a job leaves messages, 2 if it was
/// called wrongly, 3 if the broker cannot be reached, and 4 if what it names is not there.
pub(super) fn run(common: &Common, command: &ApiCommand<'_>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(common, command)),
        Err(error) => Err(CommandError::Unreachable(error.to_string())),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            print::complain(format_args!("jitney: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}

async fn carry_out(common: &Common, command: &ApiCommand<'_>) -> Result<ExitCode, CommandError> {
    let shell = Shell {
        client: Client::new(&common.client)?,
        output: common.output,
    };
    match command {
        ApiCommand::Queues(command) => shell.entities("queue", command).await,
        ApiCommand::Topics(command) => shell.entities("topic", command).await,
        ApiCommand::Subscriptions(command) => shell.entities("subscription", command).await,
        ApiCommand::Rules(command) => shell.rules(command).await,
        ApiCommand::Connections(command) => shell.connections(command).await,
        ApiCommand::Sessions(command) => shell.sessions(command).await,
        ApiCommand::Jobs(command) => shell.jobs(command).await,
        ApiCommand::Peek(args) => shell.peek(args).await,
        ApiCommand::DeadLetters(entity) => shell.dead_letters(entity).await,
        ApiCommand::Purge(args) => {
            confirm(
                args.job.yes,
                &format!("Delete messages of {}?", args.selection.place()),
            )?;
            shell
                .job(&args.selection, json!({"kind": "delete"}), &args.job)
                .await
        }
        ApiCommand::Move(args) => {
            let question = format!(
                "Move messages of {} to {}?",
                args.selection.place(),
                args.to
            );
            confirm(args.job.yes, &question)?;
            let action = moving(Some(&args.to), args.action.as_deref());
            shell.job(&args.selection, action, &args.job).await
        }
        ApiCommand::Backup(args) => shell.back_up(args).await,
        ApiCommand::Redrive(args) => {
            let action = moving(args.to.as_deref(), args.action.as_deref());
            let selection = &args.selection;
            confirm(
                args.job.yes,
                &format!("Send dead letters of {} again?", selection.entity),
            )?;
            shell
                .job_at(&dead(&selection.entity), selection, action, &args.job)
                .await
        }
    }
}

fn moving(to: Option<&str>, action: Option<&str>) -> Value {
    let mut moving = json!({"kind": "move"});
    for (name, value) in [("to", to), ("action", action)] {
        if let (Some(value), Some(fields)) = (value, moving.as_object_mut()) {
            fields.insert(name.to_owned(), value.into());
        }
    }
    moving
}

fn dead(entity: &str) -> String {
    format!("{}/$DeadLetterQueue", entity.trim_end_matches('/'))
}

/// Asks before something that cannot be undone, unless `--yes` answers.
fn confirm(yes: bool, question: &str) -> Result<(), CommandError> {
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

impl SelectionArgs {
    fn place(&self) -> String {
        if self.dead_letters {
            dead(&self.entity)
        } else {
            self.entity.clone()
        }
    }

    /// Returns the conditions by their names in the API.
    fn conditions(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("session_id", &self.session),
            ("message_id", &self.message_id),
            ("correlation_id", &self.correlation_id),
            ("reason", &self.reason),
            ("filter", &self.filter),
            ("text", &self.text),
            ("json_path", &self.json_path),
        ];
        let all = all.into_iter();
        all.filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect()
    }

    fn to_json(&self) -> Value {
        let conditions = self.conditions().into_iter();
        let mut selection: Map<String, Value> = conditions
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        if !self.states.is_empty() {
            selection.insert("states".to_owned(), json!(self.states));
        }
        Value::Object(selection)
    }
}

/// A client, and the form of the output.
struct Shell {
    client: Client,
    output: Output,
}

impl Shell {
    async fn get(&self, path: &str) -> Result<Value, CommandError> {
        self.client.ask(Method::GET, path, None, &[]).await
    }

    /// Shows an answer: as it is, or the list in it as a table.
    fn show(&self, answer: &Value, list: &str, table: &Table) {
        match self.output {
            Output::Json => print::line(format_args!("{answer:#}")),
            Output::Table => {
                let rows = answer.get(list).and_then(Value::as_array);
                print::line(table.render(rows.map(Vec::as_slice).unwrap_or_default()));
            }
        }
    }

    /// Shows one thing, with a line for each of its fields.
    fn show_one(&self, answer: &Value) {
        match self.output {
            Output::Json => print::line(format_args!("{answer:#}")),
            Output::Table => print::line(table::fields(answer)),
        }
    }

    async fn entities(
        &self,
        kind: &str,
        command: &EntityCommand,
    ) -> Result<ExitCode, CommandError> {
        match command {
            EntityCommand::List { topic } => {
                let mut query = format!("entities?kind={kind}");
                match (kind, topic) {
                    ("subscription", Some(topic)) => {
                        query.push_str("&topic=");
                        query.push_str(&encoded(topic));
                    }
                    ("subscription", None) => {
                        return Err(CommandError::Usage(
                            "name the topic of the subscriptions".to_owned(),
                        ));
                    }
                    (_, Some(_)) => {
                        return Err(CommandError::Usage(
                            "only subscriptions have a topic".to_owned(),
                        ));
                    }
                    (_, None) => {}
                }
                let answer = self.all_pages(&query, "entities").await?;
                self.show(&answer, "entities", &table::ENTITIES);
            }
            EntityCommand::Show { path } => {
                self.show_one(&self.get(&format!("entities/{}", encoded(path))).await?);
            }
            EntityCommand::Create { path, properties } => {
                let body = json!({"kind": kind, "properties": properties_of(properties)?});
                let path = format!("entities/{}", encoded(path));
                let made = self
                    .client
                    .ask(Method::PUT, &path, Some(&body), &[])
                    .await?;
                self.show_one(&made);
            }
            EntityCommand::Update { path, properties } => {
                let body = json!({"kind": kind, "properties": properties_of(properties)?});
                let path = format!("entities/{}", encoded(path));
                let any = [("if-match", "*")];
                let changed = self
                    .client
                    .ask(Method::PUT, &path, Some(&body), &any)
                    .await?;
                self.show_one(&changed);
            }
            EntityCommand::Delete { path, yes } => {
                confirm(*yes, &format!("Delete {path} with all its messages?"))?;
                let path = format!("entities/{}", encoded(path));
                self.client.ask(Method::DELETE, &path, None, &[]).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns a list with the entries of all its pages.
    async fn all_pages(&self, query: &str, list: &str) -> Result<Value, CommandError> {
        let separator = if query.contains('?') { '&' } else { '?' };
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let mut page = self.get(&format!("{query}{next}")).await?;
            let found = page.get_mut(list).and_then(Value::as_array_mut);
            all.append(found.unwrap_or(&mut Vec::new()));
            let skip = page.get("next_skip").and_then(Value::as_u64);
            let after = page.get("next_after").and_then(Value::as_str);
            next = match (skip, after) {
                (Some(skip), _) => format!("{separator}skip={skip}"),
                (None, Some(after)) => format!("{separator}after={}", encoded(after)),
                (None, None) => return Ok(json!({ list: all })),
            };
        }
    }

    async fn rules(&self, command: &RuleCommand) -> Result<ExitCode, CommandError> {
        match command {
            RuleCommand::List { subscription } => {
                let answer = self
                    .get(&format!("entities/{}/rules", encoded(subscription)))
                    .await?;
                self.show(&answer, "rules", &table::RULES);
            }
            RuleCommand::Create {
                subscription,
                name,
                filter,
                action,
            } => {
                let mut body = json!({"filter": {"kind": "sql", "expression": filter}});
                if let (Some(action), Some(fields)) = (action, body.as_object_mut()) {
                    fields.insert("action".to_owned(), action.as_str().into());
                }
                let path = format!("entities/{}/rules/{}", encoded(subscription), encoded(name));
                self.show_one(
                    &self
                        .client
                        .ask(Method::PUT, &path, Some(&body), &[])
                        .await?,
                );
            }
            RuleCommand::Delete { subscription, name } => {
                let path = format!("entities/{}/rules/{}", encoded(subscription), encoded(name));
                self.client.ask(Method::DELETE, &path, None, &[]).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn connections(&self, command: &ConnectionCommand) -> Result<ExitCode, CommandError> {
        match command {
            ConnectionCommand::List => {
                let answer = self.get("connections").await?;
                if self.output == Output::Json {
                    self.show_one(&answer);
                } else {
                    print::line(table::connections(&answer));
                }
            }
            ConnectionCommand::Close { id } => {
                self.client
                    .ask(Method::DELETE, &format!("connections/{id}"), None, &[])
                    .await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn sessions(&self, command: &SessionCommand) -> Result<ExitCode, CommandError> {
        match command {
            SessionCommand::List { entity } => {
                let path = format!("entities/{}/sessions", encoded(entity));
                let answer = self.all_pages(&path, "sessions").await?;
                self.show(&answer, "sessions", &table::SESSIONS);
            }
            SessionCommand::Show { entity, id } => {
                let path = format!("entities/{}/sessions/{}", encoded(entity), encoded(id));
                self.show_one(&self.get(&path).await?);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn jobs(&self, command: &JobCommand) -> Result<ExitCode, CommandError> {
        match command {
            JobCommand::List => {
                let answer = self.get("jobs").await?;
                self.show(&answer, "jobs", &table::JOBS);
            }
            JobCommand::Show { id } => self.show_one(&self.get(&format!("jobs/{id}")).await?),
            JobCommand::Cancel { id } => {
                let path = format!("jobs/{id}");
                self.show_one(&self.client.ask(Method::DELETE, &path, None, &[]).await?);
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Looks at messages, page by page: a search may have to look at many to find one.
    async fn peek(&self, args: &PeekArgs) -> Result<ExitCode, CommandError> {
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

    async fn dead_letters(&self, entity: &str) -> Result<ExitCode, CommandError> {
        let answer = self
            .get(&format!("entities/{}/dead-letters", encoded(entity)))
            .await?;
        self.show(&answer, "groups", &table::DEAD_LETTERS);
        Ok(ExitCode::SUCCESS)
    }

    async fn job(
        &self,
        selection: &SelectionArgs,
        action: Value,
        args: &JobArgs,
    ) -> Result<ExitCode, CommandError> {
        self.job_at(&selection.place(), selection, action, args)
            .await
    }

    /// Begins a job and waits for its end, with a line of progress each second.
    async fn job_at(
        &self,
        place: &str,
        selection: &SelectionArgs,
        action: Value,
        args: &JobArgs,
    ) -> Result<ExitCode, CommandError> {
        let mut body = json!({"entity": place, "selection": selection.to_json(), "action": action});
        if let (Some(most), Some(fields)) = (args.most, body.as_object_mut()) {
            fields.insert("limit".to_owned(), most.into());
        }
        let wait = u64::from(!args.detach);
        let mut job = self
            .client
            .ask(Method::POST, &format!("jobs?wait={wait}"), Some(&body), &[])
            .await?;
        let count =
            |job: &Value, name: &str| job.get(name).and_then(Value::as_u64).unwrap_or_default();
        while !args.detach && job.get("state").and_then(Value::as_str) == Some("running") {
            let (changed, skipped) = (count(&job, "changed"), count(&job, "skipped"));
            print::complain(format_args!("{changed} changed, {skipped} skipped ..."));
            job = self
                .get(&format!("jobs/{}?wait=1", count(&job, "id")))
                .await?;
        }
        self.show_one(&job);
        let is_done = job.get("state").and_then(Value::as_str) == Some("completed");
        let is_whole = args.detach || is_done && count(&job, "skipped") == 0;
        Ok(if is_whole {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

/// Reads properties: numbers and booleans are no texts.
fn properties_of(given: &[String]) -> Result<Value, CommandError> {
    let mut properties = Map::new();
    for pair in given {
        let Some((name, value)) = pair.split_once('=') else {
            let text =
                format!("--set is '{pair}'; NAME=VALUE is allowed, such as lock_duration=PT30S");
            return Err(CommandError::Usage(text));
        };
        let read = match value {
            "true" | "false" => Value::Bool(value == "true"),
            _ => value
                .parse::<u64>()
                .map_or_else(|_| Value::from(value), Value::from),
        };
        properties.insert(name.to_owned(), read);
    }
    Ok(Value::Object(properties))
}
