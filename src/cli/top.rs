//! `jitney top`: entities, their messages and their rates, live in the terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::error::CommandError;
use super::screen::{Action, Screen, ScreenSize};
use super::shell::{Output, Shell};
use super::{table, words};
use crate::system::print;
use jitney_api::changes::{EntityDeleted, EntityNow, Gone};
use jitney_api::connections::Connection;

/// Show entities and their rates, the busiest first: in a terminal until q, where j, k and the arrow keys scroll.
#[derive(Debug, Args)]
pub(super) struct TopArgs {
    /// The time between two pictures, 1s to 1m.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = interval)]
    interval: Duration,
    /// End after this number of pictures.
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let read = words::wait(text)?;
    if (1..=60).contains(&read.as_secs()) && read.subsec_nanos() == 0 {
        return Ok(read);
    }
    Err("whole seconds from 1s to 1m are allowed".to_owned())
}

/// Lines of a picture that are no entities.
const LINES_AROUND: usize = 3;

/// The entities of a namespace, as the last events have them.
#[derive(Debug, Default)]
struct SeenEntities {
    /// The id of the last event.
    last: String,
    entities: BTreeMap<String, EntityNow>,
    /// The ids of the connections.
    connections: BTreeSet<u64>,
}

impl Shell {
    pub(super) async fn top(&self, args: &TopArgs) -> Result<ExitCode, CommandError> {
        let screen = match self.output {
            Output::Json => Ok(None),
            Output::Table => Screen::open(),
        };
        let failed = |error| CommandError::Usage(format!("the terminal: {error}"));
        let mut screen = screen.map_err(failed)?;
        let mut seen = SeenEntities::default();
        let (mut shown, mut first) = (0, 0_usize);
        let mut rows = Vec::new();
        let mut began = Instant::now();
        while args.count.is_none_or(|count| shown < count) {
            let before = seen.entities.clone();
            let path = format!("changes?seconds={}", args.interval.as_secs());
            let last = seen.last.clone();
            let resumed = [("last-event-id", last.as_str())];
            let headers = if last.is_empty() {
                &[][..]
            } else {
                &resumed[..]
            };
            let mut next = pin!(self.client.text(&path, headers));
            let text = loop {
                tokio::select! {
                    text = &mut next => break text?,
                    action = happened(screen.as_mut()) => {
                        first = match action {
                            Action::Quit => return Ok(ExitCode::SUCCESS),
                            Action::First => 0,
                            Action::Scroll(lines) => first.saturating_add_signed(lines),
                            Action::Draw => first,
                        };
                        first = draw_at(first, &seen, &rows);
                    }
                }
            };
            seen.take(&text);
            let elapsed = began.elapsed().as_secs_f64();
            began = Instant::now();
            rows = seen.rows(&before, elapsed);
            if screen.is_some() {
                first = draw_at(first, &seen, &rows);
            } else {
                self.print(&seen, &rows);
            }
            shown += 1;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Prints what is seen where there is no terminal.
    fn print(&self, seen: &SeenEntities, rows: &[Value]) {
        if self.output == Output::Json {
            print::json_line(&json!({"entities": rows, "connections": seen.connections.len()}));
            return;
        }
        print::line(seen.summary());
        print::line(table::TOP.render(rows));
    }
}

/// Waits for what happens at the terminal, if there is one.
async fn happened(screen: Option<&mut Screen>) -> Action {
    match screen {
        Some(screen) => screen.next().await,
        None => std::future::pending().await,
    }
}

/// Draws the rows from the first on; returns which is the first then, as the last line is never empty while others are above.
fn draw_at(first: usize, seen: &SeenEntities, rows: &[Value]) -> usize {
    let size = Screen::size();
    let room = size.lines.saturating_sub(LINES_AROUND);
    let first = first.min(rows.len().saturating_sub(room));
    Screen::draw(&picture(&seen.summary(), rows, size, first));
    first
}

/// The columns beside the path: name, field, and how soon it gives way where the terminal is narrow.
const COLUMNS: [(&str, &str, u8); 9] = [
    ("ACTIVE", "active", 0),
    ("LOCKED", "locked", 3),
    ("DEFERRED", "deferred", 6),
    ("SCHEDULED", "scheduled", 5),
    ("DEAD", "dead_letters", 0),
    ("RECEIVERS", "receivers", 4),
    ("IN/S", "incoming_rate", 1),
    ("DONE/S", "completed_rate", 2),
    ("DEAD/S", "dead_lettered_rate", 7),
];
/// Characters of a path that are always shown.
const PATH_MIN: usize = 24;

/// Returns a picture of so many columns and lines.
fn picture(summary: &str, rows: &[Value], size: ScreenSize, first: usize) -> String {
    let room = size.lines.saturating_sub(LINES_AROUND);
    let visible = rows.iter().skip(first).take(room);
    let visible: Vec<&Value> = visible.collect();
    let path_of = |row: &Value| table::shown(row.get("path"));
    let longest = rows.iter().map(|row| path_of(row).chars().count());
    let longest = longest.max().unwrap_or_default().max("PATH".len());
    let mut columns: Vec<(&str, &str, u8, usize)> = Vec::new();
    for (name, field, rank) in COLUMNS {
        let widths = rows.iter().map(|row| value_of(row, field).len());
        let width = widths.max().unwrap_or_default().max(name.len());
        columns.push((name, field, rank, width));
    }
    let taken = |columns: &[(&str, &str, u8, usize)]| -> usize {
        columns.iter().map(|(.., width)| width + 2).sum()
    };
    while size.columns < longest.min(PATH_MIN) + taken(&columns) {
        let last = columns.iter().map(|(_, _, rank, _)| *rank).max();
        if last.is_none_or(|rank| rank == 0) {
            break;
        }
        columns.retain(|(_, _, rank, _)| Some(*rank) != last);
    }
    let path_width = longest.min(size.columns.saturating_sub(taken(&columns)));
    let line = |path: &str, cell: &dyn Fn(&str, &str) -> String| {
        let mut line = format!("{:path_width$}", shortened(path, path_width));
        for (name, field, _, width) in &columns {
            let _ = write!(line, "  {:>width$}", cell(name, field));
        }
        line.chars().take(size.columns).collect::<String>()
    };
    let last = first + visible.len();
    let shown = format!("{summary}; {} to {last} of {}", first + 1, rows.len());
    let summary = if rows.len() <= room { summary } else { &shown };
    let title = format!("{summary}; q quits, j and k scroll");
    let mut lines = vec![
        title.chars().take(size.columns).collect(),
        String::new(),
        line("PATH", &|name, _| name.to_owned()),
    ];
    lines.extend(
        visible
            .iter()
            .map(|row| line(&path_of(row), &|_, field| value_of(row, field))),
    );
    lines.truncate(size.lines);
    lines.join("\n")
}

fn value_of(row: &Value, field: &str) -> String {
    row.get(field)
        .map_or_else(|| "0".to_owned(), Value::to_string)
}

/// Returns a text without its middle, if it is too long.
fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let begin = text.chars().take(head);
    let end = text.chars().skip(count - tail);
    begin
        .chain(['…'].into_iter().take(most))
        .chain(end)
        .collect()
}

impl SeenEntities {
    fn summary(&self) -> String {
        let (entities, connections) = (self.entities.len(), self.connections.len());
        format!("{entities} entities, {connections} connections")
    }

    /// Takes server-sent events.
    fn take(&mut self, text: &str) {
        for event in text.split("\n\n") {
            let field = |name: &str| {
                let mut lines = event.lines().filter_map(|line| line.split_once(": "));
                lines.find(|(key, _)| *key == name).map(|(_, value)| value)
            };
            if let Some(id) = field("id") {
                id.clone_into(&mut self.last);
            }
            let (event, data) = (field("event"), field("data"));
            let _ = self.take_one(event.unwrap_or_default(), data.unwrap_or_default());
        }
    }

    /// Takes the data of an event; what is of a broker that knows more is passed over.
    fn take_one(&mut self, event: &str, data: &str) -> serde_json::Result<()> {
        match event {
            "reset" => {
                self.entities.clear();
                self.connections.clear();
            }
            "entity" => {
                let entity: EntityNow = serde_json::from_str(data)?;
                self.entities.insert(entity.path.clone(), entity);
            }
            "entity_deleted" => {
                let deleted: EntityDeleted = serde_json::from_str(data)?;
                self.entities.remove(&deleted.path);
            }
            "connection" => {
                let connection: Connection = serde_json::from_str(data)?;
                self.connections.insert(connection.id.into());
            }
            "connection_closed" => {
                let closed: Gone = serde_json::from_str(data)?;
                self.connections.remove(&closed.id);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the entities with their rates since an earlier picture, the busiest first.
    fn rows(&self, before: &BTreeMap<String, EntityNow>, seconds: f64) -> Vec<Value> {
        let mut rows = Vec::new();
        for (path, entity) in &self.entities {
            let mut row = table::to_json(entity);
            let mut happened = 0;
            // What was not there has done nothing since.
            let then = before.get(path).unwrap_or(entity);
            for (name, now, then) in [
                ("incoming_rate", entity.incoming, then.incoming),
                ("completed_rate", entity.completed, then.completed),
                (
                    "dead_lettered_rate",
                    entity.dead_lettered,
                    then.dead_lettered,
                ),
            ] {
                let more = now.saturating_sub(then);
                happened += more;
                let rate = f64::from(u32::try_from(more).unwrap_or(u32::MAX)) / seconds;
                if let Some(fields) = row.as_object_mut() {
                    let rate = (rate * 10.0).round() / 10.0;
                    fields.insert(name.to_owned(), rate.into());
                }
            }
            rows.push(((happened, entity.active), row));
        }
        rows.sort_by_key(|(busy, _)| std::cmp::Reverse(*busy));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(path: &str, active: u64) -> Value {
        json!({"path": path, "active": active, "incoming_rate": 12.5})
    }

    #[test]
    fn a_picture_fits_the_terminal() {
        let rows: Vec<Value> = (0..40_u64)
            .map(|at| {
                row(
                    &format!("queue-{at:02}-with-a-name-that-is-rather-long"),
                    at,
                )
            })
            .collect();
        for (columns, lines) in [(80, 24), (200, 50), (30, 5), (1, 1), (10, 2)] {
            let size = ScreenSize { columns, lines };
            let drawn = picture("40 entities", &rows, size, 7);
            assert!(drawn.lines().count() <= lines, "{drawn}");
            let widest = drawn.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap_or_default() <= columns, "{drawn}");
        }
        let wide = ScreenSize {
            columns: 200,
            lines: 50,
        };
        let drawn = picture("40 entities", &rows, wide, 0);
        assert!(drawn.contains("queue-39-with-a-name-that-is-rather-long"));
        assert!(drawn.contains("DEFERRED") && !drawn.contains(" of 40"));
        let narrow = ScreenSize {
            columns: 80,
            lines: 24,
        };
        let drawn = picture("40 entities", &rows, narrow, 7);
        assert!(drawn.starts_with("40 entities; 8 to 28 of 40"), "{drawn}");
        assert!(!drawn.contains("DEFERRED") && drawn.contains("ACTIVE") && drawn.contains("DEAD"));
        assert!(drawn.contains("queue-07-"), "{drawn}");
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        assert_eq!(shortened("abcdefgh", 8), "abcdefgh");
        assert_eq!(shortened("abcdefgh", 5), "ab…gh");
        assert_eq!(shortened("abcdefgh", 1), "…");
        assert_eq!(shortened("abcdefgh", 0), "");
    }

    #[test]
    fn events_become_rows_with_rates() {
        let mut seen = SeenEntities::default();
        let event = |path: &str, active: u64, incoming: u64| {
            let data = json!({"path": path, "kind": "queue", "active": active, "deferred": 0, "scheduled": 0, "locked": 0,
                "dead_letters": 0, "size_bytes": 0, "receivers": 0, "status": "active", "requires_session": false,
                "transfer_dead_letters": 0, "sessions": 0, "sessions_held": 0, "incoming": incoming, "completed": 0,
                "abandoned": 0, "expired": 0, "locks_expired": 0, "dead_lettered": 0, "forwarded": 0, "unmatched": 0});
            format!("event: entity\ndata: {data}\n\n")
        };
        seen.take(&format!(
            "{}{}id: 1-2\nevent: current\ndata: {{}}\n\n",
            event("a", 5, 7),
            event("b", 0, 0)
        ));
        assert_eq!(seen.last, "1-2");
        let before = seen.entities.clone();
        seen.take(&event("b", 3, 30));
        let rows = seen.rows(&before, 2.0);
        let rate = |row: &Value| row.get("incoming_rate").and_then(Value::as_f64);
        let [first, second] = rows.as_slice() else {
            panic!("{rows:?}")
        };
        assert_eq!((rate(first), rate(second)), (Some(15.0), Some(0.0)));
        seen.take("event: entity_deleted\ndata: {\"path\": \"b\"}\n\n");
        assert_eq!(seen.rows(&before, 2.0).len(), 1);
        seen.take("event: reset\ndata: {}\n\n");
        assert!(seen.entities.is_empty());
    }
}
