//! Reading XML: a document as a tree of the elements in known namespaces.
//!
//! Names are resolved by their namespaces, whatever their prefixes; elements of other namespaces
//! are left out. Document types are refused, and so there are no entities but XML's own five: a
//! document never expands. Each bound is in `limits`.

use quick_xml::NsReader;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::name::{Namespace, NamespaceResolver, ResolveResult};

use super::refusal::AdminError;
use super::write::is_character;
use crate::limits;

/// The namespace of entries and feeds.
pub(super) const ATOM: &str = "http://www.w3.org/2005/Atom";
/// The namespace of descriptions.
pub(super) const SERVICE_BUS: &str =
    "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
/// The namespace of the attributes `type` and `nil`.
pub(super) const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// An element.
#[derive(Debug)]
pub(super) struct Element {
    /// Its name without a prefix.
    pub(super) name: String,
    /// Its `xsi:type` without a prefix.
    pub(super) class: Option<String>,
    /// It has `nil="true"`.
    is_nil: bool,
    is_foreign: bool,
    text: String,
    children: Vec<Self>,
}

/// Reads a document.
pub(super) fn read(body: &[u8]) -> Result<Element, AdminError> {
    if limits::ADMIN_BODY_BYTES_MAX < body.len() {
        return Err(AdminError::TooLong);
    }
    let text = std::str::from_utf8(body)
        .map_err(|error| malformed(error.valid_up_to(), "it is not UTF-8"))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if let Some((at, _)) = text.char_indices().find(|(_, c)| !is_character(*c)) {
        return Err(malformed(at, "there is a character that XML does not have"));
    }
    let mut reader = NsReader::from_str(text);
    reader.config_mut().expand_empty_elements = true;
    let mut tree = Tree::default();
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let event = reader.read_event();
        let event = event.map_err(|error| malformed(at, &error.to_string()))?;
        if event == Event::Eof {
            break;
        }
        tree.take(&event, reader.resolver())
            .map_err(|problem| malformed(at, &problem))?;
    }
    match (tree.root, tree.open.last()) {
        (Some(root), None) => Ok(root),
        (None, None) => Err(malformed(text.len(), "there is no element")),
        (_, Some(open)) => {
            let problem = format!("it ends inside <{}>", excerpt(&open.name));
            Err(malformed(text.len(), &problem))
        }
    }
}

fn malformed(at: usize, problem: &str) -> AdminError {
    let quoted: String = problem
        .chars()
        .take(limits::XML_PROBLEM_QUOTED_MAX)
        .collect();
    AdminError::Malformed(format!("the body is no XML at byte {at}: {quoted}"))
}

/// Returns the beginning of a text, for an error.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(limits::XML_QUOTED_MAX).collect()
}

/// The state of reading a document.
#[derive(Default)]
struct Tree {
    root: Option<Element>,
    /// The elements that are not closed yet, the outermost first.
    open: Vec<Element>,
    elements: usize,
}

impl Tree {
    fn take(&mut self, event: &Event<'_>, names: &NamespaceResolver) -> Result<(), String> {
        match event {
            Event::Start(start) | Event::Empty(start) => self.open(start, names),
            Event::End(_) => {
                self.close();
                Ok(())
            }
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) => self.text(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let code = reference.resolve_char_ref();
                let code = code.map_err(|error| error.to_string())?;
                let name = reference.xml10_content();
                match code {
                    Some(c) if is_character(c) => self.text(c.encode_utf8(&mut [0; 4])),
                    Some(_) => Err("there is a character that XML does not have".to_owned()),
                    None => {
                        let text = resolve_xml_entity(&name);
                        self.text(text.ok_or_else(|| {
                            format!("the entity '{}' is not known", excerpt(&name))
                        })?)
                    }
                }
            }
            Event::DocType(_) => Err("document types are not allowed".to_owned()),
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::Eof => Ok(()),
        }
    }

    fn open(&mut self, start: &BytesStart<'_>, names: &NamespaceResolver) -> Result<(), String> {
        if self.root.is_some() {
            return Err("there is a second element".to_owned());
        }
        if limits::XML_DEPTH_MAX <= self.open.len() {
            return Err(format!(
                "elements are nested more than {} deep",
                limits::XML_DEPTH_MAX
            ));
        }
        self.elements += 1;
        if limits::XML_ELEMENTS_MAX < self.elements {
            return Err(format!(
                "there are more than {} elements",
                limits::XML_ELEMENTS_MAX
            ));
        }
        let (space, name) = names.resolve_element(start.name());
        let is_foreign = match space {
            ResolveResult::Bound(Namespace(space)) => space != ATOM && space != SERVICE_BUS,
            ResolveResult::Unbound => false,
            ResolveResult::Unknown(prefix) => {
                return Err(format!("the prefix '{}' is not bound", excerpt(&prefix)));
            }
        };
        let mut element = Element {
            name: name.into_inner().to_owned(),
            class: None,
            is_nil: false,
            is_foreign,
            text: String::new(),
            children: Vec::new(),
        };
        for (count, attribute) in start.attributes().enumerate() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            if limits::XML_ATTRIBUTES_MAX <= count
                || limits::XML_ATTRIBUTE_BYTES_MAX < attribute.value.len()
            {
                return Err("there are too many attributes, or they are too long".to_owned());
            }
            let (space, name) = names.resolve_attribute(attribute.key);
            let is_ours = match space {
                ResolveResult::Bound(Namespace(space)) => space == INSTANCE,
                ResolveResult::Unbound => true,
                ResolveResult::Unknown(_) => false,
            };
            let value = attribute
                .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                .map_err(|error| error.to_string())?;
            match name.into_inner() {
                "type" if is_ours => {
                    let class = value.rsplit(':').next().unwrap_or_default();
                    element.class = Some(class.trim().to_owned());
                }
                "nil" if is_ours => element.is_nil = matches!(value.trim(), "true" | "1"),
                _ => {}
            }
        }
        self.open.push(element);
        Ok(())
    }

    fn close(&mut self) {
        // The reader has checked that the names of both tags are the same.
        if let Some(element) = self.open.pop() {
            match self.open.last_mut() {
                None => self.root = Some(element),
                Some(_) if element.is_foreign => {}
                Some(parent) => parent.children.push(element),
            }
        }
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        match self.open.last_mut() {
            Some(element) => {
                element.text.push_str(text);
                if limits::XML_TEXT_BYTES_MAX < element.text.len() {
                    return Err(format!(
                        "a text is longer than {} bytes",
                        limits::XML_TEXT_BYTES_MAX
                    ));
                }
            }
            None if text.trim().is_empty() => {}
            None => return Err("there is text outside of the element".to_owned()),
        }
        Ok(())
    }
}

impl Element {
    /// Returns the one child of a name, if there is any; a `nil` child counts as none.
    pub(super) fn child(&self, name: &str) -> Result<Option<&Self>, AdminError> {
        let mut found = self.children(name);
        let child = found.next();
        if found.next().is_some() {
            let problem = format!(
                "{name}: found twice; allowed: once in {}",
                excerpt(&self.name)
            );
            return Err(AdminError::Malformed(problem));
        }
        Ok(child.filter(|child| !child.is_nil))
    }

    /// Returns all children of a name.
    pub(super) fn children(&self, name: &str) -> impl Iterator<Item = &Self> {
        self.children.iter().filter(move |child| child.name == name)
    }

    /// Returns the first child.
    pub(super) fn first(&self) -> Option<&Self> {
        self.children.first()
    }

    /// Returns whether it is `nil`.
    pub(super) const fn is_nil(&self) -> bool {
        self.is_nil
    }

    /// Returns its text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of a child, if it is there.
    pub(super) fn text_of(&self, name: &str) -> Result<Option<String>, AdminError> {
        let child = self.child(name)?;
        Ok(child.map(|child| child.text.clone()))
    }

    /// Returns the value of a child, if it is there.
    pub(super) fn value_of<T>(
        &self,
        name: &str,
        allowed: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, AdminError> {
        let child = self.child(name)?;
        let value = child
            .map(|child| parse(child.text.trim()).ok_or_else(|| child.wrong(&child.text, allowed)));
        value.transpose()
    }

    /// Makes the error of a faulty element.
    pub(super) fn wrong(&self, found: &str, allowed: &str) -> AdminError {
        wrong(&self.name, found, allowed)
    }

    /// Makes the error of a missing child.
    pub(super) fn missing(&self, name: &str) -> AdminError {
        let problem = format!(
            "{name}: found nothing; allowed: one in {}",
            excerpt(&self.name)
        );
        AdminError::Malformed(problem)
    }
}

/// Makes the error of a value that is not allowed.
pub(super) fn wrong(name: &str, found: &str, allowed: &str) -> AdminError {
    let (name, found) = (excerpt(name), excerpt(found));
    AdminError::Malformed(format!("{name}: found '{found}'; allowed: {allowed}"))
}
