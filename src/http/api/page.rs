//! Answers as JSON, whose bytes are reserved while they are written.

use std::io::{self, Write as _};
use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use super::call::{Answer, Call};
use super::problem::Problem;
use crate::http::answers::Reservation;
use crate::limits;

/// The text of an answer.
#[derive(Debug)]
pub(super) struct Text {
    bytes: Vec<u8>,
    /// How many it may have; they are reserved.
    room: usize,
    reservation: Arc<Reservation>,
}

impl Text {
    /// Begins an answer for which so many bytes are reserved; waits for a while until there is room for them.
    pub(super) async fn begin(call: &Call<'_>, room: usize) -> Result<Self, Problem> {
        call.reserve(room).await?;
        Ok(Self {
            bytes: Vec::new(),
            room,
            reservation: Arc::clone(&call.reservation),
        })
    }

    /// Adds what is JSON already.
    pub(super) fn push(&mut self, json: &str) -> Result<(), Problem> {
        self.write_all(json.as_bytes()).map_err(|_| Problem::busy())
    }

    /// Adds a value as JSON: all of it, or nothing.
    pub(super) fn write_value(&mut self, value: &impl Serialize) -> Result<(), Problem> {
        let before = self.bytes.len();
        let written = serde_json::to_writer(&mut *self, value);
        if let Err(error) = &written {
            assert!(error.is_io(), "texts and numbers are JSON");
            self.bytes.truncate(before);
        }
        written.map_err(|_| Problem::busy())
    }

    /// Adds an object as JSON without its last brace, so that fields can follow. It has a field at least.
    pub(super) fn open_object(&mut self, value: &impl Serialize) -> Result<(), Problem> {
        self.write_value(value)?;
        let brace = self.bytes.pop();
        assert_eq!(brace, Some(b'}'), "it is an object");
        Ok(())
    }

    /// Adds what is between two items of a list, if there is an item already.
    pub(super) fn separate(&mut self, items: usize) -> Result<(), Problem> {
        if items == 0 { Ok(()) } else { self.push(",") }
    }

    /// Returns the bytes that it has.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Answers with it. What is reserved beyond it is given back.
    pub(super) fn respond(mut self, status: StatusCode) -> Response {
        self.bytes.shrink_to_fit();
        let kind = HeaderValue::from_static("application/json");
        let body = self.reservation.body(self.bytes);
        (status, [(header::CONTENT_TYPE, kind)], body).into_response()
    }
}

impl Call<'_> {
    /// Answers with a value as JSON.
    pub(super) async fn answer(&self, status: StatusCode, value: &impl Serialize) -> Answer {
        let mut text = Text::begin(self, limits::ANSWER_STEP_BYTES).await?;
        text.write_value(value)?;
        Ok(text.respond(status))
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let needed = self.bytes.len() + bytes.len();
        if self.room < needed {
            let step = limits::ANSWER_STEP_BYTES.max(self.room / 4);
            let more = step.max(needed - self.room);
            let grown = self.reservation.grow(more);
            grown.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
            self.room += more;
        }
        if self.bytes.capacity() < needed {
            // A doubled buffer would have more than is reserved.
            let step = limits::ANSWER_STEP_BYTES.max(self.bytes.len() / 4);
            let capacity = needed.max((self.bytes.len() + step).min(self.room));
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A list in an answer, whose items are written one by one: beside its text one of them is in memory.
#[derive(Debug)]
pub(super) struct Page {
    text: Text,
    items: usize,
}

impl Page {
    /// Begins an object whose first field is a list of this name.
    pub(super) async fn begin(call: &Call<'_>, field: &str) -> Result<Self, Problem> {
        let mut text = Text::begin(call, jitney_gateway::limits::ANSWER_PAGE_BYTES).await?;
        text.push(&format!("{{\"{field}\":["))?;
        Ok(Self { text, items: 0 })
    }

    /// Adds an item: all of it, or nothing.
    pub(super) fn push(&mut self, item: &impl Serialize) -> Result<(), Problem> {
        let before = self.text.len();
        self.text.separate(self.items)?;
        let written = self.text.write_value(item);
        if written.is_err() {
            self.text.bytes.truncate(before);
        }
        written?;
        self.items += 1;
        Ok(())
    }

    /// Gives it more of the room that its request has reserved.
    pub(super) const fn add_room(&mut self, bytes: usize) {
        self.text.room += bytes;
    }

    /// Returns how many items it has.
    pub(super) const fn items(&self) -> usize {
        self.items
    }

    /// Returns whether it has as many bytes as a page may have.
    pub(super) fn is_full(&self) -> bool {
        jitney_gateway::limits::ANSWER_PAGE_BYTES <= self.text.len()
    }

    /// Answers with it, and with the fields of an object behind the list.
    pub(super) fn respond(mut self, rest: &impl Serialize) -> Result<Response, Problem> {
        self.text.push("]")?;
        let begin = self.text.len();
        self.text.write_value(rest)?;
        // Of {"a":1} becomes ,"a":1} and of {} becomes }.
        match self.text.bytes.get_mut(begin..) {
            Some([_, b'}']) => drop(self.text.bytes.remove(begin)),
            Some([brace, ..]) => *brace = b',',
            Some([]) | None => unreachable!("it is an object"),
        }
        Ok(self.text.respond(StatusCode::OK))
    }
}
