//! `jitney top`: entities, their messages and their rates, live in the terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use serde_json::{Value, json};

use super::client::CommandError;
use super::{Output, Shell, table};
use crate::server::print;

/// Show entities and their rates until an interrupt.
#[derive(Debug, Args)]
pub(in crate::server) struct TopArgs {
    /// Seconds between two pictures.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    interval: u64,
    /// End after so many pictures.
    #[arg(long, value_name = "N")]
    count: Option<usize>,
}

/// Lines of a terminal whose height is not known, and lines that are no entities.
const LINES: usize = 24;
const LINES_AROUND: usize = 4;

/// The entities of a namespace, as the last events have them.
#[derive(Debug, Default)]
struct Seen {
    /// The id of the last event.
    last: String,
    entities: BTreeMap<String, Value>,
    connections: BTreeMap<u64, Value>,
}

impl Shell {
    pub(super) async fn top(&self, args: &TopArgs) -> Result<ExitCode, CommandError> {
        let mut seen = Seen::default();
        let mut shown = 0;
        let mut began = Instant::now();
        while args.count.is_none_or(|count| shown < count) {
            let before = seen.entities.clone();
            let path = format!("changes?seconds={}", args.interval);
            let resumed = [("last-event-id", seen.last.as_str())];
            let headers = if seen.last.is_empty() {
                &[][..]
            } else {
                &resumed[..]
            };
            let text = self.client.text(&path, headers).await?;
            seen.take(&text);
            let elapsed = began.elapsed().as_secs_f64();
            began = Instant::now();
            let rows = seen.rows(&before, elapsed);
            self.draw(&seen, &rows);
            shown += 1;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn draw(&self, seen: &Seen, rows: &[Value]) {
        if self.output == Output::Json {
            print::line(json!({"entities": rows, "connections": seen.connections.len()}));
            return;
        }
        let is_terminal = std::io::stdout().is_terminal();
        if is_terminal {
            // The cursor goes to the corner, and what is below it is cleared.
            print::line("\u{1b}[H\u{1b}[J");
        }
        let most = if is_terminal {
            height().saturating_sub(LINES_AROUND)
        } else {
            rows.len()
        };
        let first = rows.get(..most).unwrap_or(rows);
        let (entities, connections) = (rows.len(), seen.connections.len());
        print::line(format_args!(
            "{entities} entities, {connections} connections"
        ));
        print::line(table::TOP.render(first));
    }
}

/// Returns the lines of the terminal.
fn height() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let rows = size.map_or(0, |size| usize::from(size.ws_row));
    if rows == 0 { LINES } else { rows }
}

impl Seen {
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
            let data = field("data").and_then(|data| serde_json::from_str(data).ok());
            let data: Value = data.unwrap_or_default();
            let path = data.get("path").and_then(Value::as_str).unwrap_or_default();
            let id = data.get("id").and_then(Value::as_u64).unwrap_or_default();
            match field("event") {
                Some("reset") => {
                    self.entities.clear();
                    self.connections.clear();
                }
                Some("entity") => drop(self.entities.insert(path.to_owned(), data)),
                Some("entity_deleted") => drop(self.entities.remove(path)),
                Some("connection") => drop(self.connections.insert(id, data)),
                Some("connection_closed") => drop(self.connections.remove(&id)),
                _ => {}
            }
        }
    }

    /// Returns the entities with their rates since an earlier picture, the busiest first.
    fn rows(&self, before: &BTreeMap<String, Value>, seconds: f64) -> Vec<Value> {
        let count = |entity: &Value, name: &str| entity.get(name).and_then(Value::as_u64);
        let mut rows = Vec::new();
        for (path, entity) in &self.entities {
            let mut row = entity.clone();
            let mut happened = 0;
            for name in ["incoming", "completed", "dead_lettered"] {
                let now = count(entity, name).unwrap_or_default();
                let then = before.get(path).and_then(|entity| count(entity, name));
                let more = now.saturating_sub(then.unwrap_or(now));
                happened += more;
                let rate = f64::from(u32::try_from(more).unwrap_or(u32::MAX)) / seconds;
                if let Some(fields) = row.as_object_mut() {
                    let rate = (rate * 10.0).round() / 10.0;
                    fields.insert(format!("{name}_rate"), rate.into());
                }
            }
            let waiting = count(entity, "active").unwrap_or_default();
            rows.push(((happened, waiting), row));
        }
        rows.sort_by_key(|(busy, _)| std::cmp::Reverse(*busy));
        rows.into_iter().map(|(_, row)| row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_become_rows_with_rates() {
        let mut seen = Seen::default();
        let event = |path: &str, active: u64, incoming: u64| {
            let data = json!({"path": path, "active": active, "incoming": incoming});
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
