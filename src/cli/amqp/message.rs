//! Messages that are sent.

use std::collections::BTreeMap;

use fe2o3_amqp::types::messaging::annotations::OwnedKey;
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Body, Data, Header, Message, MessageAnnotations, MessageId, Properties,
};
use fe2o3_amqp::types::primitives::{Binary, OrderedMap, SimpleValue, Symbol, Value};

use super::arguments::MessageArgs;
use crate::cli::error::CommandError;

/// A message with any body.
pub(super) type AnyMessage = Message<Body<Value>>;

/// Makes a message of the arguments.
pub(super) fn message(args: &MessageArgs, body: Vec<u8>) -> Result<AnyMessage, CommandError> {
    let mut built: AnyMessage = Message::builder()
        .body(Body::Data(vec![Data(Binary::from(body))].into()))
        .build();
    let id = |given: &Option<String>| given.clone().map(MessageId::String);
    let has_ttl = args.ttl.map(|ttl| u32::try_from(ttl.as_millis()));
    let ttl = has_ttl.transpose().map_err(|_| {
        CommandError::Usage("--ttl is too long; 49 days are the most in a message".to_owned())
    })?;
    built.header = Some(Header {
        durable: true,
        ttl,
        ..Header::default()
    });
    built.properties = Some(Properties {
        message_id: id(&args.message_id),
        correlation_id: id(&args.correlation_id),
        to: args.to.clone(),
        subject: args.subject.clone(),
        reply_to: args.reply_to.clone(),
        content_type: args.content_type.clone().map(Symbol::new),
        group_id: args.session.clone(),
        ..Properties::default()
    });
    if let Some(key) = &args.partition_key {
        annotate(
            &mut built,
            "x-opt-partition-key",
            Value::String(key.clone()),
        );
    }
    let properties = properties_of(&args.properties)?;
    if !properties.is_empty() {
        let mut all = OrderedMap::new();
        for (name, value) in properties {
            all.insert(name, value);
        }
        built.application_properties = Some(ApplicationProperties(all));
    }
    Ok(built)
}

/// Adds an annotation.
pub(super) fn annotate(message: &mut AnyMessage, name: &str, value: Value) {
    let annotations = message
        .message_annotations
        .get_or_insert_with(|| MessageAnnotations(OrderedMap::new()));
    annotations
        .0
        .insert(OwnedKey::from(Symbol::new(name)), value);
}

fn properties_of(given: &[String]) -> Result<BTreeMap<String, SimpleValue>, CommandError> {
    let pairs = given.iter().map(|pair| match pair.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), typed(value))),
        Some(_) | None => Err(CommandError::Usage(format!(
            "--property is '{pair}'; NAME=VALUE is allowed, such as color=red"
        ))),
    });
    pairs.collect()
}

/// Returns the value of a property with the type that its text looks like.
fn typed(text: &str) -> SimpleValue {
    if let Some(quoted) = text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        return SimpleValue::String(quoted.to_owned());
    }
    if let "true" | "false" = text {
        return SimpleValue::Bool(text == "true");
    }
    if let Ok(whole) = text.parse() {
        return SimpleValue::Long(whole);
    }
    // Rust also reads "inf" and "nan".
    match text.parse::<f64>() {
        Ok(double) if double.is_finite() => SimpleValue::Double(double.into()),
        Ok(_) | Err(_) => SimpleValue::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_has_the_type_that_it_looks_like() {
        assert_eq!(typed("true"), SimpleValue::Bool(true));
        assert_eq!(typed("-7"), SimpleValue::Long(-7));
        assert_eq!(typed("7.5"), SimpleValue::Double(7.5.into()));
        assert_eq!(typed("1e3"), SimpleValue::Double(1000.0.into()));
        for text in ["red", "nan", "inf", "7 of 9", ""] {
            assert_eq!(typed(text), SimpleValue::String(text.to_owned()));
        }
        assert_eq!(typed("\"7\""), SimpleValue::String("7".to_owned()));
        let error = properties_of(&["color".to_owned()]).err().unwrap();
        assert_eq!(
            error.to_string(),
            "--property is 'color'; NAME=VALUE is allowed, such as color=red"
        );
    }
}
