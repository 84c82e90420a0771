//! Values in frames: filters, delivery states, and what a link is let in with.

use super::*;

/// Makes a value of filters and properties ours.
pub(super) fn plain(value: &AmqpValue) -> Value {
    match value {
        AmqpValue::Null => Value::Null,
        AmqpValue::String(text) => string(text),
        AmqpValue::Uint(number) => Value::Uint(*number),
        other => unreachable!("no client says {other:?}"),
    }
}

/// Makes a delivery state of an outcome that a receiver decides on.
pub(super) fn end(outcome: &Outcome) -> Value {
    let raw = |bytes: &[u8]| Value::Encoded(bytes.to_vec());
    match outcome {
        Outcome::Accepted => described(0x24, Vec::new()),
        Outcome::Released => described(0x26, Vec::new()),
        Outcome::Modified {
            delivery_failed,
            undeliverable_here,
            annotations,
        } => {
            let mut fields = vec![
                Value::Bool(*delivery_failed),
                Value::Bool(*undeliverable_here),
            ];
            fields.extend(annotations.iter().map(|fields| raw(fields.bytes())));
            described(0x27, fields)
        }
        Outcome::Rejected(None) => described(0x25, Vec::new()),
        Outcome::Rejected(Some(rejection)) => {
            let refusal = &rejection.refusal;
            let mut error = vec![
                symbol(refusal.condition.as_str()),
                string(&refusal.description),
            ];
            error.extend(rejection.info.iter().map(|fields| raw(fields.bytes())));
            described(0x25, vec![described(0x1d, error)])
        }
        Outcome::Declared(_) | Outcome::InTransaction(..) => {
            unreachable!("no receiver decides {outcome:?}")
        }
    }
}

/// Reads what the server says of a delivery.
pub(super) fn read_end(state: &Value) -> Result<End, String> {
    let Value::Described(code, fields) = state else {
        return Err(format!("the state is {state:?}"));
    };
    let (Value::Ulong(code), Value::List(fields)) = (&**code, &**fields) else {
        return Err(format!("the state is {state:?}"));
    };
    let named = |name: &str| Ok(End::Named(name.to_owned()));
    match (code, fields.as_slice()) {
        (0x24, _) => named("accepted"),
        (0x25, [] | [Value::Null]) => named("rejected"),
        (0x25, [Value::Described(_, error), ..]) => match &**error {
            Value::List(error) => match error.first() {
                Some(Value::Symbol(condition)) => Ok(End::Refused(condition.clone())),
                other => Err(format!("the condition is {other:?}")),
            },
            other => Err(format!("the error is {other:?}")),
        },
        (0x26, _) => named("released"),
        (0x27, [_, Value::Bool(true), ..]) => named("modified, undeliverable here"),
        (0x27, _) => named("modified"),
        (0x33, [Value::Binary(id)]) => Ok(End::Declared(id.clone())),
        (0x34, [Value::Binary(id), inner]) => match read_end(inner)? {
            End::Named(name) => Ok(End::Within(id.clone(), name)),
            other => Err(format!("{other:?} in a transaction")),
        },
        _ => Err(format!("the state is {state:?}")),
    }
}

/// The year 1970 in ticks of 100 nanoseconds since the year 1 (`receiving.md#session-filter`).
const EPOCH: i64 = 621_355_968_000_000_000;

/// Reads which message session a link is let in to, and until when.
pub(super) fn grant(source: &Value, properties: &Value) -> Result<Option<(String, i64)>, String> {
    let find = |map: &Value, wanted: &str| {
        let Value::Map(entries) = map else {
            return None;
        };
        let mut entries = entries.iter();
        let found = entries.find(|(name, _)| *name == symbol(wanted));
        found.map(|(_, value)| value.clone())
    };
    let Value::Described(_, fields) = source else {
        return Ok(None);
    };
    let Value::List(fields) = &**fields else {
        return Err(format!("the source is {source:?}"));
    };
    let filter = fields.get(7).unwrap_or(&Value::Null);
    let name = match find(filter, "com.microsoft:session-filter") {
        None => return Ok(None),
        Some(Value::String(name)) => name,
        Some(Value::Described(_, name)) => match *name {
            Value::String(name) => name,
            other => return Err(format!("the session is {other:?}")),
        },
        Some(other) => return Err(format!("the session is {other:?}")),
    };
    match find(properties, "com.microsoft:locked-until-utc") {
        Some(Value::Long(ticks)) => Ok(Some((name, (ticks - EPOCH) / 10_000))),
        other => Err(format!("the session {name} is locked until {other:?}")),
    }
}
