//! Values in rules: for comparison, and as they were given.

use serde::{Deserialize, Serialize};

use crate::limits;
use jitney_message::Scalar;

/// A value of a parameter, or of a property that a correlation filter asks for.
///
/// A rule compares by value. A listing of the rule returns the value as it was given: a `long` is
/// no `int`, and a time has the zone that it was written with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Value {
    scalar: Scalar<'static>,
    given: Option<Given>,
}

/// How a value was given, where its scalar does not say it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Given {
    /// Encoded in AMQP.
    Amqp(Vec<u8>),
    /// As a text of a type of XML Schema.
    Xml {
        /// The local name of the type.
        class: String,
        /// The text.
        text: String,
    },
}

/// The form in which the log has a value; a scalar by itself is the form of older logs.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    Given {
        value: Scalar<'static>,
        given: Given,
    },
    Scalar(Scalar<'static>),
}

/// Constructors of AMQP's numbers and the types of XML Schema that they are; the first one of a type
/// is the one that values of this type are written with.
const NUMBERS: [(u8, &str); 18] = [
    (0x50, "unsignedByte"),
    (0x51, "byte"),
    (0x60, "unsignedShort"),
    (0x61, "short"),
    (0x70, "unsignedInt"),
    (0x52, "unsignedInt"),
    (0x43, "unsignedInt"),
    (0x71, "int"),
    (0x54, "int"),
    (0x80, "unsignedLong"),
    (0x53, "unsignedLong"),
    (0x44, "unsignedLong"),
    (0x81, "long"),
    (0x55, "long"),
    (0x72, "float"),
    (0x74, "decimal"),
    (0x84, "decimal"),
    (0x94, "decimal"),
];

impl Value {
    /// Takes a value that was given in one of several ways.
    #[must_use]
    pub const fn given(scalar: Scalar<'static>, given: Given) -> Self {
        let given = Some(given);
        Self { scalar, given }
    }

    /// Takes a value that was given in AMQP.
    #[must_use]
    pub fn from_encoded(bytes: Vec<u8>) -> Self {
        let scalar = Scalar::decode(&bytes).into_owned();
        let mut plain = Vec::new();
        scalar.encode(&mut plain);
        let is_kept = plain != bytes && bytes.len() <= limits::GIVEN_BYTES_MAX;
        let given = is_kept.then_some(Given::Amqp(bytes));
        Self { scalar, given }
    }

    /// Returns the value to compare.
    #[must_use]
    pub const fn scalar(&self) -> &Scalar<'static> {
        &self.scalar
    }

    /// Appends it in AMQP, in the type in which it was given.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.given {
            None => self.scalar.encode(out),
            Some(Given::Amqp(bytes)) => out.extend_from_slice(bytes),
            Some(Given::Xml { class, .. }) => {
                let code = NUMBERS.iter().find(|(_, known)| known == class);
                let code = code.map_or(0, |(code, _)| *code);
                self.scalar.encode_like(&[code], out);
            }
        }
    }

    /// Returns the type of XML Schema and the text that it was given as; `None` where its scalar
    /// says as much, or it was given as something else.
    #[must_use]
    pub fn xml(&self) -> Option<(&str, &str)> {
        match &self.given {
            Some(Given::Xml { class, text }) => Some((class, text)),
            Some(Given::Amqp(_)) | None => None,
        }
    }

    /// Returns the type of XML Schema of a number that was given in AMQP, where its scalar does not
    /// say it.
    #[must_use]
    pub fn number_class(&self) -> Option<&'static str> {
        let Some(Given::Amqp(bytes)) = &self.given else {
            return None;
        };
        let mut numbers = NUMBERS.iter();
        let found = numbers.find(|(code, _)| bytes.first() == Some(code));
        found.map(|(_, class)| *class)
    }
}

impl From<Scalar<'static>> for Value {
    fn from(scalar: Scalar<'static>) -> Self {
        let given = None;
        Self { scalar, given }
    }
}

impl From<Stored> for Value {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Given { value, given } => Self::given(value, given),
            Stored::Scalar(scalar) => scalar.into(),
        }
    }
}

impl From<Value> for Stored {
    fn from(value: Value) -> Self {
        let Value { scalar, given } = value;
        match given {
            Some(given) => Self::Given {
                value: scalar,
                given,
            },
            None => Self::Scalar(scalar),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xml(scalar: Scalar<'static>, class: &str, text: &str) -> Value {
        let (class, text) = (class.to_owned(), text.to_owned());
        Value::given(scalar, Given::Xml { class, text })
    }

    fn encoded(value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        value.encode(&mut out);
        out
    }

    #[test]
    fn what_came_in_amqp_goes_out_as_it_came() {
        for bytes in [
            vec![0x54, 7],
            vec![0x55, 7],
            vec![0x43],
            vec![0x51, 0xff],
            vec![0x81, 0, 0, 0, 0, 0, 0, 0, 7],
            // 1.25 as .NET's transport writes it.
            vec![
                0x94, 0x0c, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x7d,
            ],
            vec![0xa3, 1, b's'],
            vec![0x40],
        ] {
            assert_eq!(encoded(&Value::from_encoded(bytes.clone())), bytes);
        }
        // A long symbol is a string: the log would have it twice.
        let long = [&[0xa3, 200][..], &[b's'; 200]].concat();
        assert_eq!(encoded(&Value::from_encoded(long))[..2], [0xa1, 200]);
        let class = |bytes: &[u8]| Value::from_encoded(bytes.to_vec()).number_class();
        assert_eq!(class(&[0x54, 7]), Some("int"));
        assert_eq!(class(&[0x55, 7]), Some("long"));
        assert_eq!(class(&[0x43]), Some("unsignedInt"));
        assert_eq!(class(&[0xa1, 1, b's']), None);
    }

    #[test]
    fn what_came_as_a_type_of_xml_goes_out_in_that_of_amqp() {
        let seven = || Scalar::Long(7);
        assert_eq!(encoded(&xml(seven(), "int", "7")), [0x71, 0, 0, 0, 7]);
        assert_eq!(encoded(&xml(seven(), "short", "7")), [0x61, 0, 7]);
        assert_eq!(encoded(&xml(seven(), "long", "7"))[..1], [0x81]);
        let half = xml(Scalar::Double(0.5), "float", "5e-1");
        assert_eq!(encoded(&half), [0x72, 0x3f, 0, 0, 0]);
        assert_eq!(
            encoded(&xml(Scalar::Timestamp(0), "dateTime", "x"))[..1],
            [0x83]
        );
    }

    #[test]
    fn the_log_has_scalars_as_it_always_had() {
        let json = |value: &Value| serde_json::to_string(value).unwrap();
        let plain = Value::from(Scalar::Long(7));
        assert_eq!(json(&plain), r#"{"long":7}"#);
        let long = xml(Scalar::Long(7), "long", "7");
        let int = Value::from_encoded(vec![0x54, 7]);
        let null = Value::from(Scalar::Null);
        for value in [plain, long, int, null] {
            let again: Value = serde_json::from_str(&json(&value)).unwrap();
            assert_eq!(again, value);
        }
    }
}
