//! Delivery states and errors, as they are encoded.

use std::sync::Arc;

use bytes::Bytes;
use serde_amqp::Value;
use serde_amqp::primitives::OrderedMap;

use super::{Condition, EncodedFields, Fields, Outcome, Refusal, Rejection};
use crate::codec::{List, ListWriter, Undecodable, descriptor};

/// The state of a delivery in a disposition or a transfer.
#[derive(Debug, Default)]
pub(super) struct DeliveryState {
    /// None for a state that is not an outcome: received.
    pub(super) outcome: Option<Outcome>,
    pub(super) transaction: Option<Bytes>,
}

impl DeliveryState {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Undecodable> {
        let (code, mut fields) = List::described(bytes)?;
        let outcome = match code {
            descriptor::ACCEPTED => Some(Outcome::Accepted),
            descriptor::REJECTED => Some(Outcome::Rejected(rejection(&mut fields)?)),
            descriptor::RELEASED => Some(Outcome::Released),
            descriptor::MODIFIED => Some(Outcome::Modified {
                delivery_failed: fields.boolean()?.unwrap_or_default(),
                undeliverable_here: fields.boolean()?.unwrap_or_default(),
                annotations: encoded_fields(fields.raw()?)?,
            }),
            descriptor::TRANSACTIONAL_STATE => {
                let transaction = fields.binary()?.ok_or(Undecodable::Missing("txn-id"))?;
                let transaction = Some(Bytes::copy_from_slice(transaction));
                let outcome = match fields.raw()? {
                    Some(inner) => Self::decode_outcome(inner)?,
                    None => None,
                };
                return Ok(Self {
                    outcome,
                    transaction,
                });
            }
            _ => None,
        };
        Ok(Self {
            outcome,
            transaction: None,
        })
    }

    /// Decodes the outcome within a transactional state, which holds no other such state.
    fn decode_outcome(bytes: &[u8]) -> Result<Option<Outcome>, Undecodable> {
        match descriptor::read(bytes)?.0 {
            descriptor::TRANSACTIONAL_STATE => Err(Undecodable::WrongType("an outcome")),
            _ => Ok(Self::decode(bytes)?.outcome),
        }
    }
}

fn rejection(fields: &mut List<'_>) -> Result<Option<Arc<Rejection>>, Undecodable> {
    let Some(error) = fields.raw()? else {
        return Ok(None);
    };
    let (refusal, info) = error_fields(error)?;
    Ok(Some(Arc::new(Rejection { refusal, info })))
}

/// Decodes an error; a peer that leaves fields out is understood.
pub(super) fn error(bytes: &[u8]) -> Result<Refusal, Undecodable> {
    Ok(error_fields(bytes)?.0)
}

fn error_fields(bytes: &[u8]) -> Result<(Refusal, Option<EncodedFields>), Undecodable> {
    let (_, mut fields) = List::described(bytes)?;
    let condition = Condition::from(fields.symbol()?.unwrap_or_default());
    let description = fields.string()?.unwrap_or_default().to_owned();
    Ok((
        Refusal {
            condition,
            description,
        },
        encoded_fields(fields.raw()?)?,
    ))
}

/// Takes a map as it is encoded; the fields of a list have been checked for their shape.
fn encoded_fields(bytes: Option<&[u8]>) -> Result<Option<EncodedFields>, Undecodable> {
    match bytes {
        None => Ok(None),
        Some(map @ [0xc1 | 0xd1, ..]) => Ok(Some(EncodedFields::new(Bytes::copy_from_slice(map)))),
        Some(_) => Err(Undecodable::WrongType("a map")),
    }
}

/// Decodes a map with symbolic keys; string keys are taken for symbols, null values are kept.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a key of another type is ignored"
)]
pub(super) fn field_map(bytes: Option<&[u8]>) -> Result<Option<Box<Fields>>, Undecodable> {
    let Some(bytes) = bytes else { return Ok(None) };
    let value: Value =
        serde_amqp::from_slice(bytes).map_err(|_| Undecodable::WrongType("a map"))?;
    let Value::Map(map) = value else {
        return Err(Undecodable::WrongType("a map"));
    };
    let entries = map.into_iter().filter_map(|(key, value)| match key {
        Value::Symbol(name) => Some((name, value)),
        Value::String(name) => Some((name.into(), value)),
        _ => None,
    });
    Ok(Some(Box::new(entries.collect::<OrderedMap<_, _>>())))
}

/// The outcome accepted, encoded.
pub(super) const ACCEPTED: [u8; 4] = [0x00, 0x53, 0x24, 0x45];

/// Writes an outcome as a field, in the live service's shapes (`receiving.md#settlement`).
pub(super) fn write_outcome(list: &mut ListWriter<'_>, outcome: &Outcome) {
    match outcome {
        Outcome::Accepted => list.raw(&ACCEPTED),
        Outcome::Released => list.raw(&[0x00, 0x53, 0x26, 0x45]),
        Outcome::Modified {
            delivery_failed,
            undeliverable_here,
            annotations,
        } => {
            list.list(descriptor::MODIFIED, |modified| {
                if *delivery_failed {
                    modified.boolean(true);
                } else {
                    modified.null();
                }
                modified.boolean(*undeliverable_here);
                modified.raw_or_null(annotations.as_ref().map(EncodedFields::bytes));
            });
        }
        Outcome::Rejected(None) => list.raw(&[0x00, 0x53, 0x25, 0xc0, 0x02, 0x01, 0x40]),
        Outcome::Rejected(Some(rejection)) => list.list(descriptor::REJECTED, |rejected| {
            write_error(rejected, &rejection.refusal, rejection.info.as_ref());
        }),
        Outcome::Declared(id) => list.list(descriptor::DECLARED, |declared| declared.binary(id)),
        Outcome::InTransaction(id, outcome) => {
            list.list(descriptor::TRANSACTIONAL_STATE, |state| {
                state.binary(id);
                write_outcome(state, outcome);
            });
        }
    }
}

/// Writes an error with all three fields: Python indexes them.
pub(super) fn write_error(
    list: &mut ListWriter<'_>,
    refusal: &Refusal,
    info: Option<&EncodedFields>,
) {
    list.list(descriptor::ERROR, |error| {
        error.symbol(refusal.condition.as_str());
        error.string(&refusal.description);
        error.raw_or_null(info.map(EncodedFields::bytes));
    });
}

pub(super) fn encode_map(map: Option<&Fields>) -> Option<Vec<u8>> {
    map.map(|map| serde_amqp::to_vec(map).expect("a map of values can be written"))
}
