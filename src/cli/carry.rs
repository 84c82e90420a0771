//! `jitney export` and `jitney import`: entities as a `Config.json`, messages as JSON lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Method;
use serde_json::error::Category;
use serde_json::{Value, json};

use super::arguments::{ExportCommand, ImportCommand, SelectionArgs};
use super::error::CommandError;
use super::path::encoded;
use super::shell::Shell;
use super::table::to_json;
use super::words;
use crate::limits;
use crate::system::print;
use jitney_api::configuration::Applied;
use jitney_api::messages::Messages;
use jitney_api::sending::Sent;

/// Messages and bytes of one request to send. The bytes are as many as the API takes, less the frame of a request.
const BATCH_MESSAGES: usize = 100;
const BATCH_BYTES: usize = limits::API_BODY_BYTES_MAX - 1_024;

impl Shell {
    pub(super) async fn export(&self, command: &ExportCommand) -> Result<ExitCode, CommandError> {
        match command {
            ExportCommand::Config { file, keys } => {
                let path = format!("configuration?keys={keys}");
                let config: Value = self.get(&path).await?;
                let mut out = output(file.as_deref())?;
                writeln!(out, "{}", print::pretty(&config)).map_err(|error| not_written(&error))?;
                out.flush().map_err(|error| not_written(&error))?;
            }
            ExportCommand::Messages { selection, file } => {
                let mut out = output(file.as_deref())?;
                let count = self.export_messages(selection, out.as_mut()).await?;
                let count = words::count(words::whole(count), "message");
                print::complain(format_args!("Exported {count} of {}.", selection.place()));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn export_messages(
        &self,
        selection: &SelectionArgs,
        out: &mut dyn Write,
    ) -> Result<usize, CommandError> {
        let (place, query) = (encoded(&selection.place()), selection.conditions.to_query());
        let (mut count, mut from) = (0, Some(0));
        while let Some(start) = from {
            let path =
                format!("entities/{place}/messages?body=none&encoded=true&from={start}{query}");
            let page: Messages = self.get(&path).await?;
            let found = page.messages.iter();
            for message in found.filter(|message| selection.conditions.choose(message)) {
                writeln!(out, "{}", print::compact(&to_json(message)))
                    .map_err(|error| not_written(&error))?;
                count += 1;
            }
            from = page.next;
        }
        out.flush().map_err(|error| not_written(&error))?;
        Ok(count)
    }

    pub(super) async fn import(&self, command: &ImportCommand) -> Result<ExitCode, CommandError> {
        match command {
            ImportCommand::Config { file } => {
                let applied = self.client.send(Method::PUT, "configuration", read(file)?);
                let applied: Applied = applied.await?;
                self.done(&applied, &said_of(&applied));
                Ok(if applied.refused.is_empty() {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                })
            }
            ImportCommand::Messages {
                entity,
                file,
                from_line,
            } => self.import_messages(entity, file, *from_line).await,
        }
    }

    /// Sends the messages of JSON lines, in batches. If one is refused, the error names the line to continue with.
    async fn import_messages(
        &self,
        entity: &str,
        file: &Path,
        from_line: usize,
    ) -> Result<ExitCode, CommandError> {
        let path = format!("entities/{}/send", encoded(entity));
        let began = Instant::now();
        let (mut sent, mut first) = (0, from_line);
        let (mut batch, mut bytes) = (Vec::new(), 0);
        let lines = input(file)?.lines().enumerate();
        let lines = lines.skip(from_line.saturating_sub(1));
        let mut lines = lines.map(|(at, line)| (at + 1, line)).peekable();
        while let Some((number, line)) = lines.next() {
            let line = line.map_err(|error| not_read(file, &error))?;
            let message = message_of(&line);
            let message = message.map_err(|why| stopped(number, first, &why))?;
            bytes += line.len();
            batch.extend(message);
            let is_full = lines.peek().is_none_or(|(_, next)| {
                let length = next.as_ref().map_or(0, String::len);
                BATCH_MESSAGES <= batch.len() || BATCH_BYTES < bytes + length
            });
            if is_full && !batch.is_empty() {
                let count = batch.len();
                let answered = self.send_batch(&path, std::mem::take(&mut batch), bytes);
                answered
                    .await
                    .map_err(|error| error.with(&format!("; continue with --from-line {first}")))?;
                sent += count;
                (bytes, first) = (0, number + 1);
            }
        }
        let taken = words::taken(began.elapsed());
        let sent = words::whole(sent);
        let said = format!(
            "Imported {} to {entity} in {taken}.",
            words::count(sent, "message")
        );
        self.done(&json!({"imported": sent, "entity": entity}), &said);
        Ok(ExitCode::SUCCESS)
    }

    /// Sends some messages, of so many bytes in the file.
    async fn send_batch(
        &self,
        path: &str,
        batch: Vec<Value>,
        bytes: usize,
    ) -> Result<Sent, CommandError> {
        if let Some(message) = large(&batch, bytes)? {
            return self.client.send_encoded(path, message).await;
        }
        let body = json!({"messages": batch});
        self.client.ask(Method::POST, path, Some(&body), &[]).await
    }
}

/// Returns the bytes of the only message of a batch, if it is too large for the form in which batches are sent.
fn large(batch: &[Value], bytes: usize) -> Result<Option<Vec<u8>>, CommandError> {
    let [message] = batch else {
        return Ok(None);
    };
    let encoded = message.get("encoded").and_then(Value::as_str);
    let decoded = encoded.filter(|_| BATCH_BYTES < bytes);
    let decoded = decoded.map(|text| STANDARD.decode(text)).transpose();
    decoded.map_err(|error| CommandError::Usage(format!("encoded: {error}")))
}

/// Returns the text of a file, or of standard input.
pub(super) fn read(file: &Path) -> Result<String, CommandError> {
    let mut text = String::new();
    let read = input(file)?.read_to_string(&mut text);
    read.map_err(|error| not_read(file, &error))?;
    Ok(text)
}

/// Reads the message of a line; `None` from an empty one.
fn message_of(line: &str) -> Result<Option<Value>, String> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let read: Value = serde_json::from_str(line).map_err(|error| match error.classify() {
        Category::Eof => "not valid JSON: it ends too early".to_owned(),
        Category::Syntax | Category::Io | Category::Data => {
            format!("not valid JSON, at column {}", error.column())
        }
    })?;
    if !read.is_object() {
        return Err("JSON, but no object such as {\"body\": \"hello\"}".to_owned());
    }
    if read.get("damaged").is_some() {
        return Err("the message was damaged, and has no bytes".to_owned());
    }
    Ok(Some(match read.get("encoded") {
        Some(encoded) => json!({"encoded": encoded}),
        None => read,
    }))
}

/// Says what an imported configuration has changed.
fn said_of(applied: &Applied) -> String {
    let mut said = format!(
        "Entities created: {}, updated: {}.",
        words::number(words::whole(applied.made)),
        words::number(words::whole(applied.changed))
    );
    for why in &applied.refused {
        said.push_str("\nRefused: ");
        said.push_str(why);
    }
    said
}

fn stopped(line: usize, first: usize, why: &str) -> CommandError {
    CommandError::Usage(format!(
        "Line {line}: {why}. The lines from {first} on were not sent: continue with --from-line {first}."
    ))
}

fn output(file: Option<&Path>) -> Result<Box<dyn Write>, CommandError> {
    let Some(file) = file else {
        return Ok(Box::new(std::io::stdout().lock()));
    };
    let made = File::create(file);
    let made = made.map_err(|error| CommandError::Usage(format!("{}: {error}", file.display())))?;
    Ok(Box::new(std::io::BufWriter::new(made)))
}

fn input(file: &Path) -> Result<Box<dyn BufRead>, CommandError> {
    if file == Path::new("-") {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let opened = File::open(file).map_err(|error| not_read(file, &error))?;
    Ok(Box::new(BufReader::new(opened)))
}

fn not_read(file: &Path, error: &std::io::Error) -> CommandError {
    CommandError::of_file(file, error)
}

fn not_written(error: &std::io::Error) -> CommandError {
    CommandError::Usage(format!("the output cannot be written: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_is_too_large_for_a_batch_is_sent_as_it_is() {
        let batch = [json!({"encoded": "AFN1"})];
        assert_eq!(large(&batch, BATCH_BYTES).unwrap(), None);
        let sent = large(&batch, BATCH_BYTES + 1).unwrap();
        assert_eq!(sent, Some(vec![0, 0x53, 0x75]));
        let new = [json!({"body": "x"})];
        assert_eq!(large(&new, BATCH_BYTES + 1).unwrap(), None);
        assert!(large(&[json!({"encoded": "!"})], BATCH_BYTES + 1).is_err());
    }

    #[test]
    fn a_line_is_an_exported_message_or_a_new_one() {
        let exported = r#"{"sequence_number": 7, "state": "deferred", "encoded": "AFN1"}"#;
        assert_eq!(message_of(exported), Ok(Some(json!({"encoded": "AFN1"}))));
        let new = json!({"body": "hello"});
        assert_eq!(message_of(&new.to_string()), Ok(Some(new)));
        assert_eq!(message_of("  "), Ok(None));
        for wrong in ["[]", "{", r#"{"damaged": true}"#] {
            assert!(message_of(wrong).is_err(), "{wrong}");
        }
    }
}
