//! Answers of the API as tables for people.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;

use comfy_table::{CellAlignment, Table as Drawn, presets};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::words;
use crate::system::print;
use jitney_api::connections::{Connection, Link};
use jitney_api::rule_tests::{SubscriptionTest, TestedCondition};
use jitney_api::rules::{Rule, RuleFilter};

/// A table: its columns, each with the JSON pointer of its values [RFC 6901].
#[derive(Debug)]
pub(super) struct Table {
    columns: &'static [(&'static str, &'static str)],
}

pub(super) const ENTITIES: Table = Table {
    columns: &[
        ("PATH", "/path"),
        ("STATUS", "/properties/status"),
        ("ACTIVE", "/counts/active"),
        ("LOCKED", "/counts/locked"),
        ("DEFERRED", "/counts/deferred"),
        ("SCHEDULED", "/counts/scheduled"),
        ("DEAD LETTERS", "/counts/dead_letters"),
        ("SIZE", "/size_bytes"),
    ],
};
const RULES: Table = Table {
    columns: &[
        ("NAME", "/name"),
        ("KIND", "/filter/kind"),
        ("FILTER", "/filter/expression"),
        ("ACTION", "/action"),
    ],
};
pub(super) const SESSIONS: Table = Table {
    columns: &[
        ("SESSION", "/id"),
        ("MESSAGES", "/messages"),
        ("STATE", "/state_bytes"),
        ("LOCKED UNTIL", "/lock/until"),
        ("HOLDER", "/lock/holder/container_id"),
    ],
};
pub(super) const RECEIVES: Table = Table {
    columns: &[
        ("ID", "/id"),
        ("ENTITY", "/entity"),
        ("MODE", "/mode"),
        ("CLIENT", "/client"),
        ("PEER", "/peer"),
        ("WAITS UNTIL", "/waits_until"),
    ],
};
pub(super) const JOBS: Table = Table {
    columns: &[
        ("ID", "/id"),
        ("ENTITY", "/entity"),
        ("ACTION", "/action/kind"),
        ("STATE", "/state"),
        ("CHANGED", "/changed"),
        ("SKIPPED", "/skipped"),
        ("BEGAN", "/created_at"),
    ],
};
pub(super) const MESSAGES: Table = Table {
    columns: &[
        ("NUMBER", "/sequence_number"),
        ("STATE", "/state"),
        ("ENQUEUED", "/enqueued_at"),
        ("DELIVERIES", "/delivery_count"),
        ("MESSAGE ID", "/message_id"),
        ("SESSION", "/session_id"),
        ("DUE", "/scheduled_for"),
        ("LOCKED UNTIL", "/lock/until"),
        ("HOLDER", "/lock/holder/container_id"),
        ("CONNECTION", "/lock/holder/connection"),
        ("REASON", "/dead_letter/reason"),
        ("BODY", "/body/text"),
    ],
};
/// Messages of many queues.
pub(super) const FOUND: Table = Table {
    columns: &[
        ("QUEUE", "/queue"),
        ("NUMBER", "/message/sequence_number"),
        ("STATE", "/message/state"),
        ("ENQUEUED", "/message/enqueued_at"),
        ("DELIVERIES", "/message/delivery_count"),
        ("MESSAGE ID", "/message/message_id"),
        ("SESSION", "/message/session_id"),
        ("DUE", "/message/scheduled_for"),
        ("LOCKED UNTIL", "/message/lock/until"),
        ("HOLDER", "/message/lock/holder/container_id"),
        ("REASON", "/message/dead_letter/reason"),
        ("BODY", "/message/body/text"),
    ],
};
pub(super) const SCHEDULED: Table = Table {
    columns: &[("FROM", "/from"), ("MESSAGES", "/messages")],
};
pub(super) const HISTORY: Table = Table {
    columns: &[
        ("UNTIL", "/at"),
        ("INCOMING", "/incoming"),
        ("COMPLETED", "/completed"),
        ("DEAD-LETTERED", "/dead_lettered"),
        ("ACTIVE", "/active"),
        ("DEFERRED", "/deferred"),
        ("SCHEDULED", "/scheduled"),
        ("DEAD LETTERS", "/dead_letters"),
    ],
};
pub(super) const NAMESPACES: Table = Table {
    columns: &[
        ("NAME", "/name"),
        ("SHARD", "/shard"),
        ("FIRST", "/first"),
        ("IN THE CONFIGURATION", "/configured"),
    ],
};
pub(super) const LOCKED: Table = Table {
    columns: &[
        ("NUMBER", "/sequence_number"),
        ("LOCK TOKEN", "/lock_token"),
        ("LOCKED UNTIL", "/lock/until"),
        ("MESSAGE ID", "/message_id"),
        ("REASON", "/dead_letter/reason"),
        ("BODY", "/body/text"),
    ],
};
pub(super) const SETTLED: Table = Table {
    columns: &[
        ("LOCK TOKEN", "/lock_token"),
        ("SETTLED", "/settled"),
        ("WHY NOT", "/detail"),
    ],
};
pub(super) const ATTENTION: Table = Table {
    columns: &[
        ("URGENCY", "/urgency"),
        ("KIND", "/kind"),
        ("ENTITY", "/entity"),
        ("CLIENT", "/client"),
        ("CONNECTION", "/connection"),
        ("LINK", "/link"),
        ("JOB", "/job"),
        ("COUNT", "/count"),
        ("SINCE", "/since"),
        ("WHAT", SENTENCE),
    ],
};
/// A sentence, which is whole on a terminal, too.
const SENTENCE: &str = "/sentence";
pub(super) const AUDIT: Table = Table {
    columns: &[
        ("AT", "/at"),
        ("ACTOR", "/actor"),
        ("PEER", "/peer"),
        ("OPERATION", "/operation"),
        ("ENTITY", "/entity"),
        ("DETAIL", "/detail"),
    ],
};
pub(super) const KEYS: Table = Table {
    columns: &[
        ("NAME", "/name"),
        ("RIGHTS", "/rights"),
        ("PRIMARY KEY", "/primary_key"),
        ("SECONDARY KEY", "/secondary_key"),
    ],
};
/// Rules that a message was tested against.
pub(super) const TESTS: Table = Table {
    columns: &[
        ("SUBSCRIPTION", "/subscription"),
        ("RULE", "/rule"),
        ("CONDITION", "/text"),
        ("RESULT", "/result"),
        ("VALUES", "/values"),
        ("ERROR", "/error"),
    ],
};
/// Messages that came over AMQP.
pub(super) const RECEIVED: Table = Table {
    columns: &[
        ("NUMBER", "/sequence_number"),
        ("STATE", "/state"),
        ("ENQUEUED", "/enqueued_at"),
        ("DELIVERIES", "/delivery_count"),
        ("MESSAGE ID", "/message_id"),
        ("SESSION", "/session_id"),
        ("SUBJECT", "/subject"),
        ("REASON", "/reason"),
        ("BODY", "/shown"),
    ],
};
pub(super) const STATS: Table = Table {
    columns: &[
        ("PATH", "/path"),
        ("KIND", "/kind"),
        ("ACTIVE", "/counts/active"),
        ("LOCKED", "/counts/locked"),
        ("DEFERRED", "/counts/deferred"),
        ("SCHEDULED", "/counts/scheduled"),
        ("DEAD LETTERS", "/counts/dead_letters"),
        ("TRANSFER", "/counts/transfer"),
        ("TRANSFER DEAD LETTERS", "/counts/transfer_dead_letters"),
        ("SIZE", "/size_bytes"),
    ],
};
pub(super) const TOP: Table = Table {
    columns: &[
        ("PATH", "/path"),
        ("ACTIVE", "/active"),
        ("LOCKED", "/locked"),
        ("DEFERRED", "/deferred"),
        ("SCHEDULED", "/scheduled"),
        ("DEAD LETTERS", "/dead_letters"),
        ("RECEIVERS", "/receivers"),
        ("IN/S", "/incoming_rate"),
        ("COMPLETED/S", "/completed_rate"),
        ("DEAD-LETTERED/S", "/dead_lettered_rate"),
    ],
};
pub(super) const DEAD_LETTERS: Table = Table {
    columns: &[
        ("MESSAGES", "/messages"),
        ("REASON", "/reason"),
        ("DESCRIPTION", "/description"),
        ("FIRST", "/first_number"),
        ("LAST", "/last_number"),
    ],
};
const LINKS: Table = Table {
    columns: &[
        ("CONNECTION", "/connection"),
        ("CLIENT", "/container_id"),
        ("PRODUCT", "/product"),
        ("IDENTITY", "/identity"),
        ("PEER", "/peer"),
        ("LINK", "/id"),
        ("ROLE", "/role"),
        ("ENTITY", "/entity"),
        ("STUCK", "/stuck"),
        ("CREDIT", "/credit"),
        ("LOCKED", "/locked"),
        ("LOCKED SINCE", "/oldest_lock_at"),
        ("WAITING", "/waiting"),
        ("IDLE SINCE", "/idle_since"),
        ("SESSION", "/session_id"),
        ("SELECTOR", "/selector"),
        ("DELIVERIES", "/deliveries"),
    ],
};

/// Characters of a value that are shown in a table on a terminal. What reads a pipe gets all of them.
const SHOWN_MAX: usize = 60;
/// Characters of a value that are shown on a terminal where it has a line of its own.
const OWN_LINE_MAX: usize = 2_000;

/// Where values are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// A column of a terminal.
    Column,
    /// A line of a terminal.
    Line,
    /// As much as there is.
    Whole,
}

impl Room {
    /// Returns the room in standard output: `terminal` if it is one.
    fn of_output(terminal: Self) -> Self {
        if std::io::stdout().is_terminal() {
            terminal
        } else {
            Self::Whole
        }
    }

    const fn characters(self) -> usize {
        match self {
            Self::Column => SHOWN_MAX,
            Self::Line => OWN_LINE_MAX,
            Self::Whole => usize::MAX,
        }
    }
}

impl Table {
    pub(super) const fn of(columns: &'static [(&'static str, &'static str)]) -> Self {
        Self { columns }
    }

    /// Draws rows; a column that has no value in any row is left out.
    pub(super) fn render(&self, rows: &[Value]) -> String {
        if rows.is_empty() {
            return "nothing".to_owned();
        }
        let room = Room::of_output(Room::Column);
        let has_values = |pointer: &str| {
            let mut values = rows.iter().filter_map(|row| row.pointer(pointer));
            values.any(|value| !value.is_null())
        };
        let columns = self
            .columns
            .iter()
            .filter(|(_, pointer)| has_values(pointer));
        let columns: Vec<_> = columns.collect();
        let mut drawn = Drawn::new();
        drawn.load_style(presets::NOTHING);
        drawn.set_header(columns.iter().map(|(name, _)| *name));
        for row in rows {
            drawn.add_row(columns.iter().map(|(_, pointer)| match *pointer {
                SENTENCE => of_field(pointer, row.pointer(pointer), Room::Whole),
                pointer => of_field(pointer, row.pointer(pointer), room),
            }));
        }
        for (at, (_, pointer)) in columns.iter().enumerate() {
            let is_number = rows
                .iter()
                .any(|row| row.pointer(pointer).is_some_and(Value::is_number));
            if let Some(column) = drawn.column_mut(at).filter(|_| is_number) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        trimmed(&drawn.to_string())
    }
}

/// Returns the product with its version, whose the credentials are, and the address with the port.
fn client_texts(connection: &Connection) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let product = format!("{} {}", connection.product, connection.version);
    let peer = match connection.port {
        // Of IPv6 the address is a network.
        Some(port) if connection.peer.contains(':') => format!("{} port {port}", connection.peer),
        Some(port) => format!("{}:{port}", connection.peer),
        None => connection.peer.clone(),
    };
    let texts = [
        ("product", product.trim().to_owned()),
        ("identity", connection.identities.join(", ")),
        ("peer", peer),
    ];
    texts.into_iter().filter(|(_, text)| !text.is_empty())
}

/// Draws connections with a row for each link.
pub(super) fn connections(connections: &[Connection]) -> String {
    let mut rows = Vec::new();
    for connection in connections {
        let mut links: Vec<Option<&Link>> = connection.links.iter().map(Some).collect();
        if links.is_empty() {
            links.push(None);
        }
        // The links by which every client proves its rights say the least.
        links.sort_by_key(|link| link.is_some_and(|link| link.entity == "$cbs"));
        for link in links {
            let mut row = link.map_or_else(|| json!({}), to_json);
            if let Some(fields) = row.as_object_mut() {
                fields.insert("connection".to_owned(), connection.id.into());
                let name = connection.container_id.as_str();
                fields.insert("container_id".to_owned(), name.into());
                let texts = client_texts(connection);
                fields.extend(texts.map(|(name, text)| (name.to_owned(), text.into())));
            }
            rows.push(row);
        }
    }
    LINKS.render(&rows)
}

/// Draws rules: a correlation filter as the values that it compares.
pub(super) fn rules(rules: &[Rule]) -> String {
    let rows = rules.iter().map(|rule| {
        let mut row = to_json(rule);
        let filter = row.get_mut("filter").and_then(Value::as_object_mut);
        if let (RuleFilter::Correlation(_), Some(filter)) = (&rule.filter, filter) {
            let text = compared(filter);
            if !text.is_empty() {
                filter.insert("expression".to_owned(), text.into());
            }
        }
        row
    });
    RULES.render(&rows.collect::<Vec<_>>())
}

/// Returns what a correlation filter compares, the system's properties first; nothing of another filter.
fn compared(filter: &Map<String, Value>) -> String {
    let quoted = |value: &Value| match value {
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    };
    let of_system = filter
        .iter()
        .filter(|(name, _)| !["kind", "properties"].contains(&name.as_str()))
        .map(|(name, value)| format!("{} = {}", name.replace('_', "-"), quoted(value)));
    let own = filter.get("properties").and_then(Value::as_object);
    let own = own.into_iter().flatten();
    let own = own.map(|(name, value)| format!("{name} = {}", quoted(value)));
    of_system.chain(own).collect::<Vec<_>>().join(", ")
}

/// Draws tests of rules: a line for each condition, and for its parts below it. The answers have each value once.
pub(super) fn rule_tests(tests: &[SubscriptionTest], values: &BTreeMap<String, Value>) -> String {
    fn add(
        rows: &mut Vec<Value>,
        mut row: Map<String, Value>,
        condition: &TestedCondition,
        depth: usize,
        values: &BTreeMap<String, Value>,
    ) {
        let text = format!("{}{}", "  ".repeat(depth), condition.text);
        row.insert("text".to_owned(), text.into());
        row.insert("result".to_owned(), to_json(&condition.result));
        if let Some(error) = &condition.error {
            row.insert("error".to_owned(), error.as_str().into());
        }
        let read = condition.properties.iter().map(|name| {
            let value = values.get(name).cloned();
            (name.clone(), value.unwrap_or_default())
        });
        let read: Map<String, Value> = read.collect();
        if !read.is_empty() {
            row.insert("values".to_owned(), read.into());
        }
        rows.push(row.into());
        for part in &condition.parts {
            add(rows, Map::new(), part, depth + 1, values);
        }
    }
    let mut rows = Vec::new();
    for subscription in tests {
        for rule in &subscription.rules {
            let names = [
                ("subscription".to_owned(), subscription.path.as_str().into()),
                ("rule".to_owned(), rule.name.as_str().into()),
            ];
            add(
                &mut rows,
                names.into_iter().collect(),
                &rule.condition,
                0,
                values,
            );
        }
    }
    TESTS.render(&rows)
}

/// Returns what the API has as JSON.
pub(super) fn to_json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("texts and numbers are JSON")
}

/// Draws one thing: a line for each of its fields, those of objects in it with a dot.
pub(super) fn fields(thing: &Value) -> String {
    let mut lines = Vec::new();
    // Those of a message are texts of others, whatever their names are.
    let texts = if thing.get("sequence_number").is_some() {
        "properties."
    } else {
        "."
    };
    add_fields(&mut lines, "", thing, texts, Room::of_output(Room::Line));
    let mut drawn = Drawn::new();
    drawn.load_style(presets::NOTHING);
    for (name, value) in lines {
        drawn.add_row([name, value]);
    }
    trimmed(&drawn.to_string())
}

/// Adds the lines of a value; those whose names begin with `texts` are shown as they are.
fn add_fields(
    lines: &mut Vec<(String, String)>,
    prefix: &str,
    value: &Value,
    texts: &str,
    room: Room,
) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if prefix.is_empty() { "" } else { "." };
                add_fields(lines, &format!("{prefix}{dot}{name}"), value, texts, room);
            }
        }
        Value::Array(all) if all.iter().any(Value::is_object) => {
            for (at, value) in all.iter().enumerate() {
                add_fields(lines, &format!("{prefix}[{at}]"), value, texts, room);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let name = if prefix.starts_with(texts) {
                ""
            } else {
                prefix
            };
            lines.push((one_line(prefix), of_field(name, Some(value), room)));
        }
    }
}

/// Returns the value of a field or a column in words for people: sizes with a unit, durations in short, and the largest values as
/// what they mean.
fn of_field(name: &str, value: Option<&Value>, room: Room) -> String {
    let last = name.rsplit(['/', '.']).next().unwrap_or_default();
    let is_duration = DURATIONS.contains(&last);
    match value {
        Some(Value::Number(number)) => {
            let Some(whole) = number.as_u64() else {
                return number.to_string();
            };
            if last.ends_with("_bytes") || last == "bytes" {
                words::size(whole)
            } else if NO_LIMIT.contains(&whole) && last.starts_with("max_") || whole == u64::MAX {
                "no limit".to_owned()
            } else {
                whole.to_string()
            }
        }
        Some(Value::String(text)) if is_duration => {
            words::shown_duration(text).unwrap_or_else(|| in_room(text, room))
        }
        Some(Value::Array(all)) if !name.is_empty() && all.iter().all(Value::is_string) => {
            let texts: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
            in_room(&texts.join(", "), room)
        }
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => in_room(text, room),
        Some(other @ (Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            in_room(&other.to_string(), room)
        }
    }
}

/// Properties that are durations.
pub(super) const DURATIONS: [&str; 4] = [
    "lock_duration",
    "default_time_to_live",
    "duplicate_detection_window",
    "auto_delete_on_idle",
];
/// Numbers by which clients say that there is no limit.
const NO_LIMIT: [u64; 4] = [0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX];

/// Returns the value of a property in words for people.
pub(super) fn property(name: &str, value: Option<&Value>) -> String {
    of_field(name, value, Room::Line)
}

/// Returns a value as one line of a column.
pub(super) fn shown(value: Option<&Value>) -> String {
    of_field("", value, Room::of_output(Room::Column))
}

/// Returns a text as one line, in which what would steer a terminal or is hidden is an escape.
fn in_room(text: &str, room: Room) -> String {
    let most = room.characters();
    // What lies behind is not shown, and escapes are longer.
    let text: String = text.chars().take(most.saturating_add(1)).collect();
    let mut line = one_line(&text);
    if let Some((end, _)) = line.char_indices().nth(most) {
        line.truncate(end);
        line.push_str("...");
    }
    line
}

fn one_line(text: &str) -> String {
    print::visible(&text.replace(['\n', '\t'], " ")).into_owned()
}

fn trimmed(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correlation_filter_is_shown_with_what_it_compares() {
        let drawn = |rows: Value| rules(&serde_json::from_value::<Vec<Rule>>(rows).unwrap());
        let text = drawn(json!([
            {"name": "all", "filter": {"kind": "true"}, "created_at": ""},
            {"name": "some", "filter": {"kind": "sql", "expression": "a = 1"}, "action": "SET b = 2", "created_at": ""},
            {"name": "those", "filter": {"kind": "correlation", "correlation_id": "x", "reply_to_session_id": "it's",
                "properties": {"color": "red", "size": 3}}, "created_at": ""},
        ]));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[1].contains("true") && !lines[1].contains('='),
            "{text}"
        );
        assert!(
            lines[2].contains(" a = 1 ") && lines[2].contains("SET b = 2"),
            "{text}"
        );
        let shown = "correlation-id = 'x', reply-to-session-id = 'it''s', color = 'red', size = 3";
        assert!(lines[3].ends_with(shown), "{text}");
        let text = drawn(json!([{"name": "r", "created_at": "", "filter":
            {"kind": "correlation", "correlation_id": "x", "properties": {"color": "red", "size": 3}}}]));
        let shown = "correlation-id = 'x', color = 'red', size = 3";
        assert!(text.ends_with(shown), "{text}");
    }

    #[test]
    fn columns_without_values_are_left_out_and_nothing_steers_the_terminal() {
        let rows =
            [json!({"sequence_number": 7, "state": "active", "body": {"text": "a\u{1b}[2J\nb"}})];
        let text = MESSAGES.render(&rows);
        assert!(
            text.contains("NUMBER") && !text.contains("SESSION"),
            "{text}"
        );
        assert!(
            text.contains("a\\x1b[2J b") && text.lines().count() == 2,
            "{text}"
        );
        let rows = [json!({"body": {"text": "a\u{202e}b\u{200b}\u{9b}c\u{ad}"}})];
        let text = MESSAGES.render(&rows);
        assert!(text.contains("a\\u{202e}b\\u{200b}\\x9bc\\xad"), "{text}");
        let thing = json!({"properties": {"a\nb\u{1b}]0;x\u{7}": "\r"}});
        let text = fields(&thing);
        assert!(
            text.contains("a b\\x1b]0;x\\x07") && text.ends_with("\\r"),
            "{text:?}"
        );
        assert_eq!(MESSAGES.render(&[]), "nothing");
    }

    #[test]
    fn what_reads_a_pipe_gets_whole_values_and_a_terminal_short_ones() {
        let text = "x".repeat(100);
        assert_eq!(in_room(&text, Room::Whole), text);
        assert_eq!(in_room(&text, Room::Line), text);
        assert_eq!(
            in_room(&text, Room::Column),
            format!("{}...", "x".repeat(60))
        );
    }

    #[test]
    fn values_are_in_words_for_people() {
        let entity = json!({"size_bytes": 2_048, "properties": {
            "lock_duration": "PT1M", "auto_delete_on_idle": words::NEVER, "max_delivery_count": 2_147_483_647,
            "status": "active"}, "rights": ["send", "listen"], "shards": [{"shard": 0}]});
        let text = fields(&entity);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        for wanted in [
            "size_bytes 2 KiB",
            "properties.lock_duration 1m",
            "properties.auto_delete_on_idle never",
            "properties.max_delivery_count no limit",
            "rights send, listen",
            "shards[0].shard 0",
        ] {
            assert!(lines.iter().any(|line| line == wanted), "{wanted}: {text}");
        }
        let row = json!({"sequence_number": 2_147_483_647, "body": {"text": "PT1M"}});
        let text = MESSAGES.render(&[row]);
        assert!(
            text.contains("2147483647") && text.contains("PT1M"),
            "{text}"
        );
    }

    #[test]
    fn links_of_authorization_are_behind_the_others() {
        let link = |id: u32, entity: &str| json!({"id": id, "role": "sender", "entity": entity});
        let links = [link(1, "$cbs"), link(2, "$cbs"), link(3, "orders")];
        let connection = json!({"id": 7, "container_id": "c", "host": "h", "peer": "p", "secure": false, "opened_at": "",
            "identities": [], "authorized": true, "links": links});
        let text = connections(&[serde_json::from_value(connection).unwrap()]);
        let ids: Vec<&str> = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().nth(3))
            .collect();
        assert_eq!(ids, ["3", "1", "2"], "{text}");
    }
}
