//! A reader that reports all mistakes of a file, and does not stop at the first.
//!
//! Promises: each mistake has its position as a path and as a line and column; a wrong value is
//! reported once, and its default is used.
//!
//! Leaves to others: what the values mean.

use std::collections::BTreeSet;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value};

use super::forwards::Forward;
use super::{
    Checked, Configuration, Defaults, Expiring, Mistake, Owner, PROPERTIES, Position, Sku,
};
use crate::limits;
use jitney_base::time::Millis;

/// A position in the file and the value there, if there is one.
#[derive(Debug, Clone)]
pub(super) struct At<'a> {
    path: String,
    pub(super) value: Option<&'a Value>,
    /// The syntax node with its position in the text.
    node: Option<&'a ast::Value<'a>>,
    /// The range of the value in the text, or of the object it is missing in.
    offset: usize,
    /// The range of its name.
    name_offset: usize,
}

/// Durations that a property may have.
#[derive(Debug)]
pub(super) struct Durations {
    pub(super) min: Millis,
    pub(super) max: Millis,
    /// The range as text for an error.
    pub(super) allowed: &'static str,
}

/// Names in use, case-folded.
pub(super) type Names = BTreeSet<String>;

/// Collects mistakes; a default replaces a wrong value.
#[derive(Debug)]
pub(super) struct ConfigReader<'t> {
    text: &'t str,
    /// With their positions in the text.
    mistakes: Vec<(usize, Mistake)>,
    warnings: Vec<(usize, Mistake)>,
    absent_targets: Vec<(usize, Mistake)>,
    /// Of the namespace that is being read.
    pub(super) names: Names,
    pub(super) forwards: Vec<Forward>,
    /// The tier of the namespace that is being read.
    pub(super) sku: Sku,
    pub(super) defaults: Defaults,
    pub(super) expiring: Expiring,
}

/// Names that an object may have beside those that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    /// Any: they have no effect, as in the emulator.
    Warned,
    /// None: without effect they would leave the broker open.
    Refused,
}

/// Names, and where they belong.
const HOMES: [(&[&str], &str); 7] = [
    (&["UserConfig"], "at the root of the file"),
    (
        &["Namespaces", "Logging", "Defaults"],
        "within \"UserConfig\"",
    ),
    (
        &["Queues", "Topics", "Sku"],
        "within an item of \"Namespaces\"",
    ),
    (&["Subscriptions"], "within an item of \"Topics\""),
    (&["Rules"], "within an item of \"Subscriptions\""),
    (
        &["FilterType", "SqlFilter", "CorrelationFilter", "Action"],
        "within \"Properties\" of a rule",
    ),
    (&PROPERTIES, "within \"Properties\""),
];

/// The name of what no entity may lose in silence.
const KEYS: &str = "AuthorizationRules";

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value, node: Option<&'a ast::Value<'a>>) -> Self {
        Self {
            path: String::new(),
            value: Some(value),
            node,
            offset: 0,
            name_offset: 0,
        }
    }

    pub(super) fn key(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        let map = self.value.and_then(Value::as_object);
        let object = self.node.and_then(ast::Value::as_object);
        // Of two equal names, the later one counts in the value, too.
        let property = object.and_then(|object| {
            let mut properties = object.properties.iter();
            properties.rfind(|property| property.name.as_str() == name)
        });
        let node = property.map(|property| &property.value);
        Self {
            path: format!("{}{dot}{name}", self.path),
            value: map.and_then(|map| map.get(name)),
            node,
            offset: node.map_or(self.offset, Ranged::start),
            name_offset: property.map_or(self.offset, Ranged::start),
        }
    }

    fn item(&self, index: usize, value: &'a Value) -> Self {
        let array = self.node.and_then(ast::Value::as_array);
        let node = array.and_then(|array| array.elements.get(index));
        Self {
            path: format!("{}[{index}]", self.path),
            value: Some(value),
            node,
            offset: node.map_or(self.offset, Ranged::start),
            name_offset: self.offset,
        }
    }

    /// Returns its path in the file.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// Returns where it begins in the text.
    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    /// Returns whether there is no value; null counts as none.
    pub(super) fn is_absent(&self) -> bool {
        self.value.is_none_or(Value::is_null)
    }
}

impl<'t> ConfigReader<'t> {
    pub(super) fn new(text: &'t str, defaults: Defaults) -> Self {
        Self {
            text,
            mistakes: Vec::new(),
            warnings: Vec::new(),
            absent_targets: Vec::new(),
            names: Names::default(),
            forwards: Vec::new(),
            sku: Sku::default(),
            defaults,
            expiring: Expiring::default(),
        }
    }

    /// Returns the items of an array; none where there is none.
    pub(super) fn items<'a>(&mut self, at: &At<'a>, allowed: &str) -> Vec<At<'a>> {
        let Some(items) = at.value.and_then(Value::as_array) else {
            if !at.is_absent() {
                self.mistake(at, allowed);
            }
            return Vec::new();
        };
        let items = items.iter().enumerate();
        items.map(|(index, value)| at.item(index, value)).collect()
    }

    /// Reads a duration within a range; an error gives the range in the same form.
    pub(super) fn duration(&mut self, at: &At<'_>, range: &Durations) -> Option<Millis> {
        if at.is_absent() {
            return None;
        }
        let allowed = format!("an ISO 8601 duration {}", range.allowed);
        let duration = duration(self.string(at, &allowed)?);
        let duration = duration.filter(|found| range.min <= *found && *found <= range.max);
        if duration.is_none() {
            self.mistake(at, &allowed);
        }
        duration
    }

    pub(super) fn number(&mut self, at: &At<'_>, min: u64, max: u64) -> Option<u64> {
        let value = at.value.filter(|value| !value.is_null())?;
        let number = value.as_u64().filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let allowed = format!("a whole number from {min} to {max}");
            let bare = |text: &str| {
                text.parse::<u64>()
                    .ok()
                    .filter(|it| (min..=max).contains(it))
            };
            let written = value.to_string();
            let meant = match (value.as_str(), written.strip_suffix(".0")) {
                (Some(text), _) => bare(text).map(|it| (it, "quotation marks")),
                (None, Some(whole)) => bare(whole).map(|it| (it, "a decimal point")),
                (None, None) => None,
            };
            match meant {
                Some((meant, what)) => {
                    self.mistake(at, &format!("{allowed}, such as {meant}, without {what}"));
                }
                None => self.mistake(at, &allowed),
            }
        }
        number
    }

    pub(super) fn boolean(&mut self, at: &At<'_>) -> bool {
        match at.value {
            None | Some(Value::Null) => false,
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) if ["true", "false"].contains(&text.as_str()) => {
                self.mistake(at, "true or false, without quotation marks");
                false
            }
            Some(_) => {
                self.mistake(at, "true or false");
                false
            }
        }
    }

    pub(super) fn string<'a>(&mut self, at: &At<'a>, allowed: &str) -> Option<&'a str> {
        let text = at.value.and_then(Value::as_str);
        if text.is_none() {
            self.mistake(at, allowed);
        }
        text
    }

    pub(super) fn object<'a>(&mut self, at: &At<'a>) -> Option<&'a Map<String, Value>> {
        let map = at.value.and_then(Value::as_object);
        if map.is_none() {
            self.mistake(at, "an object");
        }
        self.doubles(at);
        map
    }

    /// Returns an object after a check of its names. One that is not known has no effect, as in the emulator, and is a warning; one
    /// that begins with `$`, `_` or `/` is a comment, or meant for tools. Keys that would have no effect are a mistake.
    pub(super) fn object_of<'a>(
        &mut self,
        at: &At<'a>,
        known: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        self.object_with(at, known, Others::Warned)
    }

    /// Returns an object all of whose names must be known.
    pub(super) fn object_of_only<'a>(
        &mut self,
        at: &At<'a>,
        known: &[&str],
    ) -> Option<&'a Map<String, Value>> {
        self.object_with(at, known, Others::Refused)
    }

    fn object_with<'a>(
        &mut self,
        at: &At<'a>,
        known: &[&str],
        others: Others,
    ) -> Option<&'a Map<String, Value>> {
        let map = self.object(at)?;
        let is_remark = |name: &str| name.starts_with(['$', '_', '/']);
        for name in map.keys() {
            if known.contains(&name.as_str()) || is_remark(name) {
                continue;
            }
            let at = at.key(name);
            let offset = at.node.map_or(at.offset, |_| at.name_offset);
            if nearest(name, &[KEYS]).is_some() {
                let (found, allowed) = about_keys(known);
                self.push(offset, at.path, found, allowed);
                continue;
            }
            let (found, allowed) = about_name(name, known);
            match others {
                Others::Warned => {
                    let found = format!("{found}, and has no effect");
                    let warning = Mistake::of(at.path, found, &allowed);
                    self.warnings.push((offset, warning));
                }
                Others::Refused => self.push(offset, at.path, found.to_owned(), &allowed),
            }
        }
        Some(map)
    }

    /// Warns of properties that entities of another kind have.
    pub(super) fn warn_of_others(&mut self, at: &At<'_>, owner: Owner) {
        let map = at.value.and_then(Value::as_object);
        let names = map.into_iter().flat_map(Map::keys);
        let others = names.filter(|name| PROPERTIES.contains(&name.as_str()) && !owner.has(name));
        for name in others {
            let at = at.key(name);
            if at.is_absent() {
                continue;
            }
            let shown = owner.shown();
            let found = format!("a property that {shown} does not have, and that has no effect");
            let allowed = format!("the properties of {shown}");
            let warning = Mistake::of(at.path, found, &allowed);
            self.warnings.push((at.name_offset, warning));
        }
    }

    /// Warns of a value that is taken as another.
    pub(super) fn warn(&mut self, at: &At<'_>, found: String, allowed: &str) {
        let warning = Mistake::of(at.path.clone(), found, allowed);
        self.warnings.push((at.offset, warning));
    }

    /// Warns of a forwarding target.
    pub(super) fn warn_of_target(
        &mut self,
        offset: usize,
        place: String,
        found: String,
        allowed: &str,
    ) {
        let warning = Mistake::of(place, found, allowed);
        self.warnings.push((offset, warning));
    }

    /// Reports a forwarding target that the file does not have.
    pub(super) fn absent_target(
        &mut self,
        offset: usize,
        place: String,
        found: String,
        allowed: &str,
    ) {
        let absent = Mistake::of(place, found, allowed);
        self.absent_targets.push((offset, absent));
    }

    /// Reports a text that is refused where it is used, with the reason.
    pub(super) fn refused(&mut self, at: &At<'_>, why: &str, allowed: &str) {
        let found = format!("a text that cannot be used: {why}");
        self.push(at.offset, at.path.clone(), found, allowed);
    }

    /// Returns how many mistakes were found up to now.
    pub(super) fn mistake_count(&self) -> usize {
        self.mistakes.len()
    }

    /// Returns where a value is.
    pub(super) fn position(&self, at: &At<'_>) -> Position {
        position_of(self.text, at.offset)
    }

    pub(super) fn mistake(&mut self, at: &At<'_>, allowed: &str) {
        // Lists and objects would fill the screen, and the path identifies them.
        let found = match at.value {
            None => "nothing".to_owned(),
            Some(Value::Array(items)) => format!("an array of {}", items.len()),
            Some(Value::Object(_)) => "an object".to_owned(),
            Some(value) => value.to_string(),
        };
        self.push(at.offset, at.path.clone(), found, allowed);
    }

    /// Reports a name that is not known.
    pub(super) fn mistake_unseen(&mut self, at: &At<'_>, allowed: &str) {
        let found = if at.is_absent() {
            "nothing"
        } else {
            "something else"
        };
        self.push(at.offset, at.path.clone(), found.to_owned(), allowed);
    }

    /// Warns of names that an object has twice, of which the last one counts, as in the emulator.
    fn doubles(&mut self, at: &At<'_>) {
        let object = at.node.and_then(ast::Value::as_object);
        let mut names = BTreeSet::new();
        for property in object.into_iter().flat_map(|object| &object.properties) {
            let name = property.name.as_str();
            if !names.insert(name) {
                let found = format!("\"{name}\" once more, which is used");
                let warning = Mistake::of(at.key(name).path, found, "each name once");
                self.warnings.push((property.start(), warning));
            }
        }
    }

    fn push(&mut self, offset: usize, place: String, found: String, allowed: &str) {
        self.mistakes
            .push((offset, Mistake::of(place, found, allowed)));
    }

    /// Returns the configuration, unless there are mistakes.
    pub(super) fn finish(self, config: Configuration) -> Checked {
        let text = self.text;
        let ordered = |mut found: Vec<(usize, Mistake)>| -> Vec<Mistake> {
            found.sort_by_key(|(offset, _)| *offset);
            let found = found.into_iter();
            let found = found.map(|(offset, mistake)| {
                let Position { line, column } = position_of(text, offset);
                Mistake {
                    line,
                    column,
                    ..mistake
                }
            });
            found.collect()
        };
        let mistakes = ordered(self.mistakes);
        Checked {
            config: if mistakes.is_empty() {
                Ok(config)
            } else {
                Err(mistakes)
            },
            warnings: ordered(self.warnings),
            absent_targets: ordered(self.absent_targets),
            expiring: self.expiring,
        }
    }
}

impl Mistake {
    /// Makes one whose position is not known yet.
    fn of(place: String, found: String, allowed: &str) -> Self {
        Self {
            line: 0,
            column: 0,
            place,
            found,
            allowed: allowed.to_owned(),
        }
    }
}

/// Says what is wrong with a name that an object has beside those that are known, and what would be right.
fn about_name(name: &str, known: &[&str]) -> (&'static str, String) {
    if let Some(nearest) = nearest(name, known) {
        let allowed = format!("\"{nearest}\"; did you mean it?");
        return ("a name that is not known", allowed);
    }
    let home = HOMES.iter().find_map(|(names, place)| {
        let name = names.iter().find(|it| stem(it) == stem(name))?;
        Some(format!("\"{name}\" {place}"))
    });
    if let Some(home) = home {
        return ("a name that belongs elsewhere", home);
    }
    let allowed = match known {
        [only] => format!("the name {only}"),
        names => format!("the names {}", names.join(", ")),
    };
    ("a name that is not known", allowed)
}

/// Returns what a name has in common with those that people take for it: neither case nor a plural counts, nor a word such as `Config`
/// at the end.
fn stem(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let singular = lower.trim_end_matches('s');
    let mut endings = ["configuration", "config", "setting", "option"].iter();
    let bare = endings.find_map(|ending| singular.strip_suffix(ending));
    let bare = bare.filter(|bare| !bare.is_empty()).unwrap_or(singular);
    bare.trim_end_matches('s').to_owned()
}

/// Says what is wrong with a name that is, or resembles, that of authorization rules, and what would be right.
fn about_keys(known: &[&str]) -> (String, &'static str) {
    if known.contains(&KEYS) {
        let found = "a name that is not known: these keys would have no effect";
        return (found.to_owned(), "\"AuthorizationRules\"");
    }
    (
        "keys, which have no effect here".to_owned(),
        "\"AuthorizationRules\" beside \"Name\" of a namespace, a queue or a topic",
    )
}

fn position_of(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    Position {
        line: before.matches('\n').count() + 1,
        column: line.chars().count() + 1,
    }
}

/// Returns the known name that a misspelled one resembles, if they differ in few characters.
fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    // All known names are shorter.
    if limits::CONFIG_NAME_MAX < name.chars().count() {
        return None;
    }
    let distances = known.iter().map(|known| (distance(name, known), *known));
    let (distance, nearest) = distances.min()?;
    if distance <= 1 + nearest.len() / 4 {
        return Some(nearest);
    }
    known
        .iter()
        .copied()
        .find(|known| stem(known) == stem(name))
}

/// Returns how many characters must be changed, added or left out to make one name of another; case
/// does not count.
fn distance(a: &str, b: &str) -> usize {
    let folded = |text: &str| text.to_ascii_lowercase().chars().collect::<Vec<char>>();
    let (a, b) = (folded(a), folded(b));
    let mut before: Vec<usize> = (0..=b.len()).collect();
    for (row, from) in a.iter().enumerate() {
        let mut left = row + 1;
        let mut diagonal = row;
        for (to, above) in b.iter().zip(before.iter_mut().skip(1)) {
            let replaced = diagonal + usize::from(from != to);
            diagonal = *above;
            left = replaced.min(left + 1).min(diagonal + 1);
            *above = left;
        }
        if let Some(first) = before.first_mut() {
            *first = row + 1;
        }
    }
    before.last().copied().unwrap_or_default()
}

/// Reads an ISO 8601 duration, a year counted as 365 days and a month as 30, as .NET does it. What
/// is longer than jiff's longest, as Azure's `P10675199DT2H48M5.4775807S` is, is [`Millis::MAX`].
fn duration(text: &str) -> Option<Millis> {
    /// The days of jiff's longest span.
    const DAYS_MAX: u64 = 7_304_484;
    // jiff reads words too, "1 minute" for one.
    let digits = text.strip_prefix('P')?;
    if let Some((days, _)) = digits.split_once('D')
        && days.parse::<u64>().is_ok_and(|days| DAYS_MAX < days)
    {
        return Some(Millis::MAX);
    }
    let span: jiff::Span = text.parse().ok()?;
    if span.is_negative() {
        return None;
    }
    let days = i64::from(span.get_years()) * 365
        + i64::from(span.get_months()) * 30
        + i64::from(span.get_weeks()) * 7
        + i64::from(span.get_days());
    let hours = days * 24 + i64::from(span.get_hours());
    let seconds = hours * 3_600 + span.get_minutes() * 60 + span.get_seconds();
    let millis = Millis::from_millis(seconds * 1_000 + span.get_milliseconds());
    (millis != Millis::ZERO).then_some(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_as_far_apart_as_characters_must_be_changed() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("MaxDeliveryCont", "MaxDeliveryCount", 1),
            ("lockduration", "LockDuration", 0),
            ("kitten", "sitting", 3),
            ("ab", "ba", 2),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn durations_are_read_as_dotnet_reads_them() {
        let check = |text: &str, millis: Option<i64>| {
            assert_eq!(duration(text), millis.map(Millis::from_millis), "{text}");
        };
        check("PT0.5S", Some(500));
        check("P1DT1H1M1S", Some(90_061_000));
        check("P2Y", Some(730 * 86_400_000));
        check("P1M", Some(30 * 86_400_000));
        check("P10675199DT2H48M5.4775807S", Some(i64::MAX));
        check("P99999999D", Some(i64::MAX));
        for text in [
            "",
            "P",
            "PT",
            "PT0S",
            "-PT1M",
            "PT-1M",
            "1 minute",
            "00:01:00",
            "PT0.0000001S",
        ] {
            check(text, None);
        }
    }
}
