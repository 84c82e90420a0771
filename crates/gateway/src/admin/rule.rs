//! Rules: filters, actions and the values in them, read and written
//! (`administration.md#ruledescription`).

use std::borrow::Cow;

use super::refusal::AdminError;
use super::text;
use super::write::Writer;
use super::xml::{Element, wrong};
use jitney_base::time::{Timestamp, ticks_as_duration};
use jitney_broker::namespace::administration::RuleView;
use jitney_message::Scalar;
use jitney_rules::{
    Action, CorrelationFields, CorrelationFilter, Filter, Given, Parameters, Rule, SqlError,
    SqlFilter, Value,
};

/// The rule that a subscription has if it is made without one.
const DEFAULT: &str = "$Default";
/// The version of the language, as the service reports it.
const COMPATIBILITY_LEVEL: u32 = 20;

/// Reads the rule that a subscription is made with.
pub(super) fn read_default(element: &Element) -> Result<Rule, AdminError> {
    let name = element.text_of("Name")?.filter(|name| !name.is_empty());
    read(element, name.unwrap_or_else(|| DEFAULT.to_owned()))
}

/// Reads a rule, whose name is in the address. Without a filter it takes all messages.
pub(super) fn read(element: &Element, name: String) -> Result<Rule, AdminError> {
    let (filter, action) = (element.child("Filter")?, element.child("Action")?);
    Ok(Rule {
        name,
        filter: filter.map_or(Ok(Filter::True), read_filter)?,
        action: action.map_or(Ok(None), read_action)?,
        created_at: Timestamp::EPOCH,
    })
}

fn read_filter(element: &Element) -> Result<Filter, AdminError> {
    match element.class.as_deref() {
        Some("SqlFilter") => {
            let text = element.text_of("SqlExpression")?;
            let text = text.ok_or_else(|| element.missing("SqlExpression"))?;
            let filter = SqlFilter::parse_with(&text, read_parameters(element)?);
            filter
                .map(Filter::Sql)
                .map_err(|error| refused(element, &error))
        }
        Some("TrueFilter") => Ok(Filter::True),
        Some("FalseFilter") => Ok(Filter::False),
        Some("CorrelationFilter") => read_correlation(element).map(Filter::Correlation),
        class => Err(element.wrong(
            class.unwrap_or_default(),
            "the type SqlFilter, CorrelationFilter, TrueFilter or FalseFilter",
        )),
    }
}

fn read_correlation(element: &Element) -> Result<CorrelationFilter, AdminError> {
    let field = |name| {
        let text = element.text_of(name)?;
        Ok::<_, AdminError>(text.filter(|text| !text.is_empty()))
    };
    let properties = element.child("Properties")?;
    let fields = CorrelationFields {
        correlation_id: field("CorrelationId")?,
        message_id: field("MessageId")?,
        to: field("To")?,
        reply_to: field("ReplyTo")?,
        label: field("Label")?,
        session_id: field("SessionId")?,
        reply_to_session_id: field("ReplyToSessionId")?,
        content_type: field("ContentType")?,
        properties: properties.map_or_else(|| Ok(Vec::new()), read_values)?,
    };
    CorrelationFilter::new(fields)
        .map_err(|error| AdminError::Malformed(format!("{}: {error}", element.name)))
}

fn read_action(element: &Element) -> Result<Option<Action>, AdminError> {
    match element.class.as_deref() {
        Some("EmptyRuleAction") => Ok(None),
        Some("SqlRuleAction") => {
            let text = element.text_of("SqlExpression")?;
            let text = text.ok_or_else(|| element.missing("SqlExpression"))?;
            let action = Action::parse_with(&text, read_parameters(element)?);
            action.map(Some).map_err(|error| refused(element, &error))
        }
        class => {
            let found = class.unwrap_or_default();
            Err(element.wrong(found, "the type SqlRuleAction or EmptyRuleAction"))
        }
    }
}

fn refused(element: &Element, error: &SqlError) -> AdminError {
    AdminError::Malformed(format!("SqlExpression of {}: {error}", element.name))
}

fn read_parameters(element: &Element) -> Result<Parameters, AdminError> {
    let parameters = element.child("Parameters")?;
    let values = parameters.map_or_else(|| Ok(Vec::new()), read_values)?;
    Ok(values.into_iter().collect())
}

/// Reads names with their values; no name may be repeated.
fn read_values(element: &Element) -> Result<Vec<(String, Value)>, AdminError> {
    let mut values = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for pair in element.children("KeyValueOfstringanyType") {
        let name = pair.text_of("Key")?.filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| pair.missing("Key"))?;
        let value = pair.children("Value").next();
        let value = read_value(value.ok_or_else(|| pair.missing("Value"))?)?;
        if !names.insert(name.clone()) {
            return Err(wrong("Key", &name, "each name once"));
        }
        values.push((name, value));
    }
    Ok(values)
}

/// Reads a value of a type of XML Schema, or of one of .NET's own.
fn read_value(element: &Element) -> Result<Value, AdminError> {
    if element.is_nil() {
        return Ok(Scalar::Null.into());
    }
    let class = element.class.as_deref().unwrap_or_default();
    let text = match class {
        "string" | "anyURI" => element.text(),
        _ => element.text().trim(),
    };
    let scalar = read_scalar(element, class, text)?;
    if plain_form(&scalar).is_some_and(|(plain, said)| (plain, &said[..]) == (class, text)) {
        return Ok(scalar.into());
    }
    let (class, text) = (class.to_owned(), text.to_owned());
    Ok(Value::given(scalar, Given::Xml { class, text }))
}

/// Reads the value itself.
fn read_scalar(element: &Element, class: &str, text: &str) -> Result<Scalar<'static>, AdminError> {
    let ticks = || i64::try_from(text::parse_ticks(text)?).ok();
    let (value, allowed) = match class {
        "string" | "anyURI" => (Some(Scalar::Text(Cow::Owned(text.to_owned()))), "a text"),
        "byte" => (integer(text, i8::MIN, i8::MAX), "-128 to 127"),
        "unsignedByte" => (integer(text, u8::MIN, u8::MAX), "0 to 255"),
        "short" => (integer(text, i16::MIN, i16::MAX), "an integer of 16 bits"),
        "unsignedShort" => (integer(text, u16::MIN, u16::MAX), "an integer of 16 bits"),
        "int" => (integer(text, i32::MIN, i32::MAX), "an integer of 32 bits"),
        "unsignedInt" => (integer(text, u32::MIN, u32::MAX), "an integer of 32 bits"),
        "long" => (integer(text, i64::MIN, i64::MAX), "an integer of 64 bits"),
        "unsignedLong" => (integer(text, u64::MIN, u64::MAX), "an integer of 64 bits"),
        "double" | "float" | "decimal" => {
            (text::parse_double(text).map(Scalar::Double), "a number")
        }
        "boolean" => (
            text::parse_boolean(text).map(Scalar::Boolean),
            "true or false",
        ),
        "dateTime" => (
            text::parse_time(text).map(Scalar::Timestamp),
            "a time, such as 2026-01-31T12:00:00Z",
        ),
        "duration" => (
            ticks().map(Scalar::Duration),
            "an ISO 8601 duration, such as PT1M",
        ),
        "guid" => (text::parse_uuid(text).map(Scalar::Uuid), "a UUID"),
        // .NET writes a character as its number.
        "char" => {
            let code = text.parse().ok().and_then(char::from_u32);
            let text = code.map(|code| Scalar::Text(Cow::Owned(code.to_string())));
            (text, "the number of a character")
        }
        _ => {
            return Err(element.wrong(
                class,
                "the type string, int, long, double, boolean, dateTime, duration or guid",
            ));
        }
    };
    value.ok_or_else(|| element.wrong(text, allowed))
}

/// Reads an integer of a type.
fn integer<T: Into<i128>>(word: &str, min: T, max: T) -> Option<Scalar<'static>> {
    let number = word.parse().ok();
    let number = number.filter(|number| (min.into()..=max.into()).contains(number));
    number.and_then(Scalar::from_integer)
}

/// Writes a rule. JavaScript knows filters by their children, so that the true and the false one
/// have an expression, and types by the sixth character on: prefixes are the service's.
pub(super) fn write(out: &mut Writer, view: &RuleView) {
    let rule = &view.rule;
    match &rule.filter {
        Filter::True => sql(out, "Filter", "TrueFilter", "1=1", &Parameters::new()),
        Filter::False => sql(out, "Filter", "FalseFilter", "1=0", &Parameters::new()),
        Filter::Sql(filter) => {
            sql(
                out,
                "Filter",
                "SqlFilter",
                filter.text(),
                filter.parameters(),
            );
        }
        Filter::Correlation(filter) => {
            out.within("Filter", " i:type=\"CorrelationFilter\"", |out| {
                correlation(out, filter.fields());
            });
        }
    }
    match &rule.action {
        None => out.empty("Action", " i:type=\"EmptyRuleAction\""),
        Some(action) => {
            sql(
                out,
                "Action",
                "SqlRuleAction",
                action.text(),
                action.parameters(),
            );
        }
    }
    out.leaf("CreatedAt", text::time(rule.created_at));
    out.leaf("Name", &rule.name);
}

fn sql(out: &mut Writer, name: &str, class: &str, text: &str, parameters: &Parameters) {
    out.within(name, &format!(" i:type=\"{class}\""), |out| {
        out.leaf("SqlExpression", text);
        out.leaf("CompatibilityLevel", COMPATIBILITY_LEVEL);
        values(out, "Parameters", parameters.iter());
    });
}

fn correlation(out: &mut Writer, fields: &CorrelationFields) {
    out.optional("CorrelationId", fields.correlation_id.as_ref());
    out.optional("MessageId", fields.message_id.as_ref());
    out.optional("To", fields.to.as_ref());
    out.optional("ReplyTo", fields.reply_to.as_ref());
    out.optional("Label", fields.label.as_ref());
    out.optional("SessionId", fields.session_id.as_ref());
    out.optional("ReplyToSessionId", fields.reply_to_session_id.as_ref());
    out.optional("ContentType", fields.content_type.as_ref());
    let properties = fields.properties.iter();
    values(
        out,
        "Properties",
        properties.map(|(name, value)| (name, value)),
    );
}

fn values<'a>(
    out: &mut Writer,
    name: &str,
    values: impl ExactSizeIterator<Item = (&'a String, &'a Value)>,
) {
    if values.len() == 0 {
        return;
    }
    out.within(name, "", |out| {
        for (name, value) in values {
            out.within("KeyValueOfstringanyType", "", |out| {
                out.leaf("Key", name);
                write_value(out, value);
            });
        }
    });
}

/// Writes a value as it was given.
fn write_value(out: &mut Writer, value: &Value) {
    const SCHEMA: &str = "http://www.w3.org/2001/XMLSchema";
    const NET: &str = "http://schemas.microsoft.com/2003/10/Serialization/";
    let plain = plain_form(value.scalar());
    let plain = plain.as_ref().map(|(class, text)| (*class, &text[..]));
    let of_number = |(class, text)| (value.number_class().unwrap_or(class), text);
    // A rule cannot be made with a value that has no simple type.
    let Some((class, text)) = value.xml().or_else(|| plain.map(of_number)) else {
        return out.empty("Value", " i:nil=\"true\"");
    };
    let space = match class {
        "char" | "duration" | "guid" => NET,
        _ => SCHEMA,
    };
    let attributes = format!(" i:type=\"d6p1:{class}\" xmlns:d6p1=\"{space}\"");
    out.leaf_with("Value", &attributes, text);
}

/// Returns the type and the text of a value; `None` if it has no simple type.
fn plain_form(scalar: &Scalar<'_>) -> Option<(&'static str, String)> {
    Some(match scalar {
        Scalar::Boolean(value) => ("boolean", value.to_string()),
        Scalar::Double(value) => ("double", text::double(*value)),
        Scalar::Duration(ticks) => ("duration", ticks_as_duration(i128::from(*ticks))),
        // JavaScript knows no `long`.
        Scalar::Long(value) if i32::try_from(*value).is_ok() => ("int", value.to_string()),
        Scalar::Long(value) => ("long", value.to_string()),
        Scalar::Ulong(value) => ("unsignedLong", value.to_string()),
        Scalar::Text(value) => ("string", value.to_string()),
        Scalar::Timestamp(ticks) => ("dateTime", text::ticks_as_time(*ticks)),
        Scalar::Uuid(bytes) => ("guid", jitney_rules::hyphenated(*bytes)),
        Scalar::Null | Scalar::Opaque(_) => return None,
    })
}
