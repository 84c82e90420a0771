//! Arguments of the commands over the JSON API.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::error::CommandError;
use super::path::encoded;
use super::words;
use jitney_api::messages::MessageShown;
use jitney_api::selection::{MessageSelection, State};

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
    /// Create one.
    Create {
        /// Its path; of a subscription TOPIC/Subscriptions/NAME.
        path: String,
        /// A property, such as `lock_duration=30s` or `requires_session=true`; it may be given several times. Durations are 30s,
        /// 10m, 1h, 14d or ISO 8601; never is the longest one.
        #[arg(long = "set", value_name = "NAME=VALUE")]
        properties: Vec<String>,
        #[command(flatten)]
        rule: FirstRuleArgs,
    },
    /// Update properties of one. Those that are not given stay as they are.
    Update {
        /// Its path; of a subscription TOPIC/Subscriptions/NAME.
        path: String,
        /// A property, such as `lock_duration=30s`; it may be given several times. `NAME=` sets its default.
        #[arg(long = "set", value_name = "NAME=VALUE")]
        properties: Vec<String>,
        /// Set all properties that are not given to their defaults.
        #[arg(long)]
        replace: bool,
    },
    /// Delete one with all its messages.
    Delete {
        /// Its path; of a subscription TOPIC/Subscriptions/NAME.
        path: String,
        #[command(flatten)]
        consent: ConsentArgs,
    },
}

/// The first rule of a subscription.
#[derive(Debug, Args)]
pub(super) struct FirstRuleArgs {
    /// The name of a subscription's first rule, instead of $Default, which takes all messages.
    #[arg(long, value_name = "NAME", requires = "filter")]
    pub(super) rule: Option<String>,
    /// The SQL filter of that rule.
    #[arg(long, value_name = "EXPRESSION", requires = "rule")]
    pub(super) filter: Option<String>,
    /// The SQL action of that rule.
    #[arg(long, value_name = "STATEMENTS", requires = "rule")]
    pub(super) action: Option<String>,
}

/// What can be done with rules.
#[derive(Debug, Subcommand)]
pub(super) enum RuleCommand {
    /// List the rules of a subscription.
    List {
        /// The subscription: TOPIC/Subscriptions/NAME.
        subscription: String,
    },
    /// Create a rule.
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
    /// Test which rules take a message, and why others do not. Nothing is sent.
    Test {
        /// The topic, or one subscription of it.
        entity: String,
        /// The message, in the form in which the API sends one: {"subject": "s", "properties": {"color": "red"}}.
        #[arg(long, value_name = "JSON", conflicts_with = "kept")]
        message: Option<String>,
        /// A message that is in a queue, instead: the queue's path, a colon, and the sequence number.
        #[arg(long, value_name = "ENTITY:NUMBER")]
        kept: Option<String>,
    },
}

/// What can be done with the authorization rules of queues and topics.
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// List authorization rules with their keys.
    List {
        /// The queue or the topic.
        entity: String,
    },
    /// Create an authorization rule with random keys, or update the rights of one.
    Create {
        /// The queue or the topic.
        entity: String,
        /// The rule's name.
        name: String,
        /// A right: send, listen or manage; it may be given several times.
        #[arg(long = "right", value_name = "RIGHT", required = true)]
        rights: Vec<String>,
    },
    /// Replace a key of an authorization rule by a random one.
    Rotate {
        /// The queue or the topic.
        entity: String,
        /// The rule's name.
        name: String,
        /// The key to be replaced: primary or secondary.
        #[arg(long, value_name = "KEY")]
        key: String,
        #[command(flatten)]
        consent: ConsentArgs,
    },
    /// Delete an authorization rule.
    Delete {
        /// The queue or the topic.
        entity: String,
        /// The rule's name.
        name: String,
        #[command(flatten)]
        consent: ConsentArgs,
    },
}

/// What can be exported.
#[derive(Debug, Subcommand)]
pub(super) enum ExportCommand {
    /// Write the entities of the namespace as a Config.json of the emulator.
    Config {
        /// The file. The default is standard output.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// With the authorization rules of queues and topics, and so with their keys.
        #[arg(long)]
        keys: bool,
    },
    /// Write messages as JSON lines, each with the message as AMQP encodes it. Nothing changes.
    Messages {
        #[command(flatten)]
        selection: Box<SelectionArgs>,
        /// The file. The default is standard output.
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// What can be imported.
#[derive(Debug, Subcommand)]
pub(super) enum ImportCommand {
    /// Create and update the entities that a Config.json names, while the broker runs. Others stay.
    Config {
        /// The file; - for standard input.
        file: PathBuf,
    },
    /// Send the messages of JSON lines. They are new messages: they get new numbers, and are active or scheduled.
    Messages {
        /// The queue or the topic.
        entity: String,
        /// The file; - for standard input. A line without `encoded` is a message in the form in which the API sends one.
        file: PathBuf,
        /// The first line to send, counted from 1.
        #[arg(long, value_name = "LINE", default_value_t = 1)]
        from_line: usize,
    },
}

/// Search messages in all queues of the namespace.
#[derive(Debug, Args)]
pub(super) struct SearchArgs {
    #[command(flatten)]
    pub(super) conditions: ConditionArgs,
    /// The one with a sequence number.
    #[arg(long, value_name = "NUMBER")]
    pub(super) number: Option<u64>,
    /// The limit of how many are shown.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) limit: usize,
}

/// Show the last hour, day or week.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// A queue, a topic or a subscription. The default is the whole namespace.
    pub(super) entity: Option<String>,
    /// How far back: in intervals of ten seconds, five minutes or half an hour.
    #[arg(long, value_name = "RANGE", default_value = "hour")]
    pub(super) range: RangeArg,
}

/// How far back a history goes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum RangeArg {
    Hour,
    Day,
    Week,
}

impl RangeArg {
    /// Returns the query that asks for it. The hour is the default, and brokers without other ranges refuse a range.
    pub(super) fn query(self) -> &'static str {
        match self {
            Self::Hour => "",
            Self::Day => "?range=day",
            Self::Week => "?range=week",
        }
    }
}

/// Show the last administrative operations.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// Those of someone: a part of the name.
    #[arg(long, value_name = "NAME")]
    pub(super) actor: Option<String>,
    /// Those of an operation, such as update.
    #[arg(long, value_name = "NAME")]
    pub(super) operation: Option<String>,
    /// Those about an entity.
    #[arg(long, value_name = "PATH")]
    pub(super) entity: Option<String>,
    /// Those at a time or later, such as 2026-11-23T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = words::checked_time)]
    pub(super) since: Option<String>,
    /// The limit of how many are shown.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) limit: usize,
}

/// Count scheduled messages.
#[derive(Debug, Args)]
pub(super) struct ScheduledArgs {
    /// The queue or the topic.
    pub(super) entity: String,
    /// Equal spans of time.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) spans: usize,
}

/// What can be done with connections.
#[derive(Debug, Subcommand)]
pub(super) enum ConnectionCommand {
    /// List them with their links.
    List,
    /// List the receives over HTTP that wait for a message.
    Receives,
    /// End a receive over HTTP that waits; its client may receive again.
    EndReceive {
        /// Its id.
        id: u64,
    },
    /// Close one, or detach one of its links; its client may connect or attach again.
    Close {
        /// Its id.
        id: u32,
        /// The id of the link.
        #[arg(long, value_name = "ID")]
        link: Option<u32>,
        /// Leave what its receivers have locked locked until the time of the locks is over; else it returns at once.
        #[arg(long)]
        keep_locks: bool,
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
    /// Set the state of one, or clear it.
    SetState {
        /// The queue or the subscription.
        entity: String,
        /// Its id.
        id: String,
        /// The state, as a text; without one, the state is cleared.
        state: Option<String>,
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
    pub(super) entity: String,
    /// Its dead letters, and not its messages.
    #[arg(long)]
    pub(super) dead_letters: bool,
    #[command(flatten)]
    pub(super) conditions: ConditionArgs,
}

/// Conditions that messages meet.
#[derive(Debug, Default, Args)]
pub(super) struct ConditionArgs {
    /// Those in a state; it may be given several times.
    #[arg(long = "state", value_name = "STATE", value_enum)]
    pub(super) states: Vec<StateArg>,
    /// Those of a message session.
    #[arg(long, value_name = "ID")]
    pub(super) session: Option<String>,
    /// The one with an id.
    #[arg(long, value_name = "ID")]
    pub(super) message_id: Option<String>,
    /// Those with a correlation id.
    #[arg(long, value_name = "ID")]
    pub(super) correlation_id: Option<String>,
    /// Those that were dead-lettered for a reason.
    #[arg(long, value_name = "REASON")]
    pub(super) reason: Option<String>,
    /// Dead letters without a reason.
    #[arg(long, conflicts_with = "reason")]
    pub(super) without_reason: bool,
    /// Those that were dead-lettered with an error description.
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// Dead letters without an error description.
    #[arg(long, conflicts_with = "description")]
    pub(super) without_description: bool,
    /// Scheduled ones that are due at a time or later, such as 2026-11-23T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = words::checked_time)]
    pub(super) due_from: Option<String>,
    /// Scheduled ones that are due before a time.
    #[arg(long, value_name = "TIME", value_parser = words::checked_time)]
    pub(super) due_before: Option<String>,
    /// Those for which a SQL expression is true.
    #[arg(long, value_name = "EXPRESSION")]
    pub(super) filter: Option<String>,
    /// Those whose body has a text.
    #[arg(long, value_name = "TEXT")]
    pub(super) text: Option<String>,
    /// Those in whose body a `JSONPath` finds something.
    #[arg(long, value_name = "PATH")]
    pub(super) json_path: Option<String>,
}

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StateArg {
    /// To be received, or locked by a receiver.
    Active,
    /// Locked by a receiver: `messages list` and `export messages` show who has it; jobs leave it as it is.
    Locked,
    /// Received by its number only.
    Deferred,
    /// It becomes active at its time.
    Scheduled,
}

/// Returns a state as queries have it.
const fn word(state: State) -> &'static str {
    match state {
        State::Active => "active",
        State::Deferred => "deferred",
        State::Scheduled => "scheduled",
    }
}

/// What can be seen of messages.
#[derive(Debug, Subcommand)]
pub(super) enum MessageCommand {
    /// List messages in whatever state; nothing changes.
    List(Box<ListArgs>),
    /// Show the state of one message, its properties and its body.
    Show {
        /// The queue or the subscription.
        entity: String,
        /// Its sequence number.
        number: u64,
        /// It is a dead letter.
        #[arg(long, alias = "dead-letter")]
        dead_letters: bool,
    },
}

/// List messages.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    /// The first sequence number to look at.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub(super) from: u64,
    /// The limit of how many are shown.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(super) limit: usize,
}

/// Delete messages.
#[derive(Debug, Args)]
pub(super) struct PurgeArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    #[command(flatten)]
    pub(super) job: JobArgs,
}

/// Move messages to another entity.
#[derive(Debug, Args)]
pub(super) struct MoveArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    /// The queue, the topic or the subscription that gets them.
    #[arg(long, value_name = "ENTITY")]
    pub(super) to: String,
    /// SQL statements that change their properties first: SET color = 'red'; REMOVE attempts.
    #[arg(long, value_name = "STATEMENTS")]
    pub(super) action: Option<String>,
    /// A template of their new body: `{{body}}` is the body, `{{body:/a/0}}` what a JSON pointer finds in it, as JSON, and
    /// `{{property:NAME}}` a property.
    #[arg(long, value_name = "TEMPLATE")]
    pub(super) body: Option<String>,
    #[command(flatten)]
    pub(super) job: JobArgs,
}

/// Send dead letters again.
#[derive(Debug, Args)]
pub(super) struct RedriveArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    /// The entity that gets them. The default is the one that they were dead-lettered in; of a topic, the subscription.
    #[arg(long, value_name = "ENTITY")]
    pub(super) to: Option<String>,
    /// SQL statements that change their properties first: SET color = 'red'; REMOVE attempts.
    #[arg(long, value_name = "STATEMENTS")]
    pub(super) action: Option<String>,
    /// A template of their new body: `{{body}}` is the body, `{{body:/a/0}}` what a JSON pointer finds in it, as JSON, and
    /// `{{property:NAME}}` a property.
    #[arg(long, value_name = "TEMPLATE")]
    pub(super) body: Option<String>,
    #[command(flatten)]
    pub(super) job: JobArgs,
}

/// Send messages to the dead-letter queue.
#[derive(Debug, Args)]
pub(super) struct DeadLetterArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    /// The reason that they get.
    #[arg(long, value_name = "TEXT")]
    pub(super) dead_letter_reason: Option<String>,
    /// More about that.
    #[arg(long, value_name = "TEXT")]
    pub(super) dead_letter_description: Option<String>,
    #[command(flatten)]
    pub(super) job: JobArgs,
}

/// Let deferred or scheduled messages be received.
#[derive(Debug, Args)]
pub(super) struct ActivateArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    #[command(flatten)]
    pub(super) job: JobArgs,
}

/// Change the time of scheduled messages.
#[derive(Debug, Args)]
pub(super) struct RescheduleArgs {
    #[command(flatten)]
    pub(super) selection: SelectionArgs,
    /// When they become active, such as 2026-11-23T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = words::checked_time)]
    pub(super) at: String,
    #[command(flatten)]
    pub(super) job: JobArgs,
}

/// How a job is done.
#[derive(Debug, Args)]
pub(super) struct JobArgs {
    /// Only the message with a sequence number; it may be given several times.
    #[arg(long = "number", value_name = "NUMBER")]
    pub(super) numbers: Vec<u64>,
    #[command(flatten)]
    pub(super) consent: ConsentArgs,
    /// The limit of how many messages are changed.
    #[arg(long, value_name = "N", alias = "most")]
    pub(super) limit: Option<u64>,
    /// Start the job, and do not wait for its end.
    #[arg(long)]
    pub(super) detach: bool,
    /// Count the messages that would be changed, and change none.
    #[arg(long)]
    pub(super) dry_run: bool,
}

/// Whether a command asks first.
#[derive(Debug, Args)]
pub(super) struct ConsentArgs {
    /// Do not ask.
    #[arg(long)]
    pub(super) yes: bool,
}

/// Returns the path of an entity's dead letters.
pub(super) fn dead(entity: &str) -> String {
    format!("{}/$DeadLetterQueue", entity.trim_end_matches('/'))
}

/// An entity, or its dead letters, as arguments name it.
pub(super) struct EntityQueue<'a> {
    pub(super) entity: &'a str,
    /// `--dead-letters` is given.
    pub(super) dead_letters: bool,
}

impl EntityQueue<'_> {
    pub(super) fn path(&self) -> String {
        if self.dead_letters {
            dead(self.entity)
        } else {
            self.entity.to_owned()
        }
    }
}

impl SelectionArgs {
    pub(super) fn place(&self) -> String {
        let place = EntityQueue {
            entity: &self.entity,
            dead_letters: self.dead_letters,
        };
        place.path()
    }
}

impl ConditionArgs {
    /// Returns the conditions by their names in the API.
    pub(super) fn conditions(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("session_id", &self.session),
            ("message_id", &self.message_id),
            ("correlation_id", &self.correlation_id),
            ("reason", &self.reason),
            ("description", &self.description),
            ("scheduled_from", &self.due_from),
            ("scheduled_before", &self.due_before),
            ("filter", &self.filter),
            ("text", &self.text),
            ("json_path", &self.json_path),
        ];
        let all = all.into_iter();
        all.filter_map(|(name, value)| Some((name, value.as_deref()?)))
            .collect()
    }

    /// Returns the states in which the broker is to look. It has no state for what is locked, which is active or deferred.
    fn states(&self) -> Vec<State> {
        let asks = |state: &State| {
            self.states.iter().any(|asked| match asked {
                StateArg::Active => *state == State::Active,
                StateArg::Locked => matches!(state, State::Active | State::Deferred),
                StateArg::Deferred => *state == State::Deferred,
                StateArg::Scheduled => *state == State::Scheduled,
            })
        };
        let all = [State::Active, State::Deferred, State::Scheduled];
        all.into_iter().filter(asks).collect()
    }

    /// Returns whether messages are selected by what the broker does not select by.
    pub(super) fn are_chosen_here(&self) -> bool {
        self.states.contains(&StateArg::Locked)
    }

    /// Returns whether a message that the broker has selected is in one of the states.
    pub(super) fn choose(&self, message: &MessageShown) -> bool {
        self.states.is_empty()
            || self.states.iter().any(|wanted| match wanted {
                StateArg::Locked => message.lock.is_some(),
                StateArg::Active => message.state == State::Active,
                StateArg::Deferred => message.state == State::Deferred,
                StateArg::Scheduled => message.state == State::Scheduled,
            })
    }

    /// Returns the states, if nothing but states is selected by, and these are counted.
    pub(super) fn only_states(&self) -> Option<&[StateArg]> {
        let has_others =
            !self.conditions().is_empty() || self.without_reason || self.without_description;
        (!has_others && !self.are_chosen_here()).then_some(&self.states)
    }

    /// Returns the conditions as further parameters of a query.
    pub(super) fn to_query(&self) -> String {
        let mut query = String::new();
        for state in self.states() {
            query.extend(["&state=", word(state)]);
        }
        for (name, value) in self.conditions() {
            query.extend(["&", name, "=", &encoded(value)]);
        }
        if self.without_reason {
            query.push_str("&without_reason=true");
        }
        if self.without_description {
            query.push_str("&without_description=true");
        }
        query
    }

    /// Returns the conditions of a job.
    pub(super) fn to_selection(&self) -> Result<MessageSelection, CommandError> {
        if self.are_chosen_here() {
            let text = "--state locked selects what a receiver has, and a job leaves that as it is. `jitney connections close` gives \
                        locked messages back";
            return Err(CommandError::Usage(text.to_owned()));
        }
        Ok(MessageSelection {
            states: self.states(),
            session_id: self.session.clone(),
            scheduled_from: self.due_from.clone(),
            scheduled_before: self.due_before.clone(),
            message_id: self.message_id.clone(),
            correlation_id: self.correlation_id.clone(),
            reason: self.reason.clone(),
            without_reason: self.without_reason,
            description: self.description.clone(),
            without_description: self.without_description,
            filter: self.filter.clone(),
            text: self.text.clone(),
            json_path: self.json_path.clone(),
            ..MessageSelection::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_locked_is_active_or_deferred_for_the_broker() {
        let of = |states: &[StateArg]| ConditionArgs {
            states: states.to_vec(),
            ..ConditionArgs::default()
        };
        let locked = of(&[StateArg::Locked, StateArg::Scheduled]);
        assert_eq!(
            locked.to_query(),
            "&state=active&state=deferred&state=scheduled"
        );
        let message = |state: &str, lock: Value| {
            let message = json!({"sequence_number": 1, "state": state, "lock": lock, "enqueued_at": "", "delivery_count": 0,
                "size_bytes": 0});
            serde_json::from_value::<MessageShown>(message).unwrap()
        };
        assert!(locked.choose(&message("active", json!({"until": "2030"}))));
        assert!(locked.choose(&message("scheduled", Value::Null)));
        assert!(!locked.choose(&message("active", Value::Null)));
        assert!(locked.to_selection().is_err());
        let active = of(&[StateArg::Active]);
        let selection = MessageSelection {
            states: vec![State::Active],
            ..MessageSelection::default()
        };
        assert_eq!(active.to_selection().ok(), Some(selection));
        assert!(of(&[]).choose(&message("deferred", Value::Null)));
    }
}
