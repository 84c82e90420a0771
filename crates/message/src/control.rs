//! Messages to a transaction coordinator [AMQP 4.5].

use bytes::Bytes;

use super::Malformed;
use super::parse::section;
use jitney_amqp::codec::value::{binary, elements};
use jitney_amqp::codec::{descriptor, value_length};

/// A request to a transaction coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// Begin a transaction.
    Declare,
    /// End one.
    Discharge {
        /// Its id.
        id: Bytes,
        /// Nothing of it is to happen.
        fail: bool,
    },
}

impl Control {
    /// Reads the body of a message: an amqp-value with a described list.
    pub fn parse(message: &Bytes) -> Result<Self, Malformed> {
        let malformed = |text: &str| Malformed(text.to_owned());
        let mut rest = &message[..];
        // Sections in front of the body say nothing that matters here.
        let value = loop {
            let (code, value) = section(rest)?;
            let length = value_length(value).map_err(|error| Malformed(error.to_string()))?;
            if code == descriptor::AMQP_VALUE {
                break value.get(..length).unwrap_or_default();
            }
            rest = value.get(length..).unwrap_or_default();
            if rest.is_empty() {
                return Err(malformed("it has no amqp-value"));
            }
        };
        let (code, list) = descriptor::read(value).map_err(|error| Malformed(error.to_string()))?;
        match code {
            descriptor::DECLARE => Ok(Self::Declare),
            descriptor::DISCHARGE => {
                let mut fields = elements(list);
                let id = fields.next().and_then(binary);
                let id = id.ok_or_else(|| malformed("the discharge has no txn-id"))?;
                let fail = fields.next().unwrap_or(&[0x42]);
                Ok(Self::Discharge {
                    id: Bytes::copy_from_slice(id),
                    fail: matches!(fail, [0x41] | [0x56, 1]),
                })
            }
            other => Err(Malformed(format!("the descriptor is {other:#x}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declare_and_a_discharge_are_read() {
        let parse = |bytes: &[u8]| Control::parse(&Bytes::copy_from_slice(bytes));
        let declare = [0x00, 0x53, 0x77, 0x00, 0x53, 0x31, 0x45];
        assert_eq!(parse(&declare), Ok(Control::Declare));
        let discharge = [
            0x00, 0x53, 0x77, 0x00, 0x53, 0x32, 0xc0, 5, 2, 0xa0, 1, 7, 0x41,
        ];
        let id = Bytes::from_static(&[7]);
        assert_eq!(parse(&discharge), Ok(Control::Discharge { id, fail: true }));
        assert!(parse(&[0x00, 0x53, 0x77, 0x40]).is_err());
        assert!(parse(&[]).is_err());
    }
}
