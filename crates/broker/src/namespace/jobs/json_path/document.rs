//! JSON as a list of its values in the order of the text: what is in a value follows it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::Number;

/// The place of a value in its document.
pub(super) type At = u32;

/// A document.
#[derive(Debug, Default)]
pub(in crate::namespace::jobs) struct Document {
    nodes: Vec<Node>,
    /// The texts of all values and the names of all members, one after the other.
    texts: String,
}

/// A part of the texts.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: u32,
    length: u32,
}

#[derive(Debug)]
struct Node {
    value: Value,
    /// Its name in its object.
    name: Span,
    /// The place behind all that is in it.
    end: At,
    /// Elements or members.
    children: u32,
}

#[derive(Debug, Clone, Copy)]
enum Value {
    Null,
    Boolean(bool),
    Number(Number),
    Text(Span),
    Array,
    Object,
}

/// A value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen<'a> {
    Null,
    Boolean(bool),
    Number(Number),
    Text(&'a str),
    Array,
    Object,
}

impl Document {
    /// Reads JSON. Arrays and objects may be in one another 127 deep, as `serde_json` has it.
    ///
    /// # Errors
    ///
    /// It is no JSON, or too deep.
    pub(in crate::namespace::jobs) fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let mut document = Self::default();
        let mut reader = serde_json::Deserializer::from_slice(json);
        let name = Span::default();
        let document_of = Reading {
            document: &mut document,
            name,
        };
        document_of.deserialize(&mut reader)?;
        reader.end()?;
        Ok(document)
    }

    fn node(&self, at: At) -> &Node {
        static NOTHING: Node = Node {
            value: Value::Null,
            name: Span {
                start: 0,
                length: 0,
            },
            end: At::MAX,
            children: 0,
        };
        let node = usize::try_from(at).ok().and_then(|at| self.nodes.get(at));
        debug_assert!(node.is_some(), "there is no value at {at}");
        node.unwrap_or(&NOTHING)
    }

    fn text(&self, span: Span) -> &str {
        let start = usize::try_from(span.start).unwrap_or(usize::MAX);
        let length = usize::try_from(span.length).unwrap_or(usize::MAX);
        let text = self.texts.get(start..start.saturating_add(length));
        text.unwrap_or_default()
    }

    /// Returns a value.
    pub(super) fn see(&self, at: At) -> Seen<'_> {
        match self.node(at).value {
            Value::Null => Seen::Null,
            Value::Boolean(value) => Seen::Boolean(value),
            Value::Number(number) => Seen::Number(number),
            Value::Text(span) => Seen::Text(self.text(span)),
            Value::Array => Seen::Array,
            Value::Object => Seen::Object,
        }
    }

    /// Returns the name of a member in its object.
    pub(super) fn name(&self, at: At) -> &str {
        self.text(self.node(at).name)
    }

    /// Returns how many elements or members a value has.
    pub(super) fn count(&self, at: At) -> u32 {
        self.node(at).children
    }

    /// Returns the place behind a value and all that is in it.
    pub(super) fn end(&self, at: At) -> At {
        self.node(at).end
    }

    /// Returns the elements or members of a value, in their order.
    pub(super) fn children(&self, at: At) -> impl Iterator<Item = At> {
        let end = self.end(at);
        let first = Some(at + 1).filter(|&first| first < end);
        std::iter::successors(first, move |&child| {
            Some(self.end(child)).filter(|&next| next < end)
        })
    }

    /// Adds a value; what is in it comes next.
    fn push(&mut self, value: Value, name: Span) -> At {
        // A body has fewer bytes than a u32 counts.
        let at = At::try_from(self.nodes.len()).unwrap_or(At::MAX);
        self.nodes.push(Node {
            value,
            name,
            end: at.saturating_add(1),
            children: 0,
        });
        at
    }

    fn push_text(&mut self, text: &str) -> Span {
        let start = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.texts.push_str(text);
        Span { start, length }
    }

    /// All that is in a value has been added.
    fn close(&mut self, at: At, children: u32) {
        let end = At::try_from(self.nodes.len()).unwrap_or(At::MAX);
        let node = usize::try_from(at).ok();
        if let Some(node) = node.and_then(|at| self.nodes.get_mut(at)) {
            node.end = end;
            node.children = children;
        }
    }
}

/// A value that is being read, with its name.
struct Reading<'a> {
    document: &'a mut Document,
    name: Span,
}

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.document.push(Value::Null, self.name);
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.document.push(Value::Boolean(value), self.name);
        Ok(())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        let number = Number::Signed(value);
        self.document.push(Value::Number(number), self.name);
        Ok(())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        let number = Number::Unsigned(value);
        self.document.push(Value::Number(number), self.name);
        Ok(())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        let number = Number::Float(value);
        self.document.push(Value::Number(number), self.name);
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        let text = self.document.push_text(value);
        self.document.push(Value::Text(text), self.name);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Self { document, name } = self;
        let at = document.push(Value::Array, name);
        let mut children = 0;
        let name = Span::default();
        while elements
            .next_element_seed(Reading { document, name })?
            .is_some()
        {
            children += 1;
        }
        document.close(at, children);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Self { document, name } = self;
        let at = document.push(Value::Object, name);
        let mut children = 0;
        while let Some(name) = members.next_key_seed(ReadingName(document))? {
            members.next_value_seed(Reading { document, name })?;
            children += 1;
        }
        document.close(at, children);
        Ok(())
    }
}

/// The name of a member that is being read.
struct ReadingName<'a>(&'a mut Document);

impl<'de> DeserializeSeed<'de> for ReadingName<'_> {
    type Value = Span;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Span, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for ReadingName<'_> {
    type Value = Span;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Span, E> {
        Ok(self.0.push_text(name))
    }
}
