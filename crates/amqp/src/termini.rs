//! Sources and targets: reading those of a peer's attach, writing those of the answer.

use bytes::Bytes;
use fe2o3_amqp_types::messaging::{
    DistributionMode, FilterSet, Source, Target, TerminusDurability, TerminusExpiryPolicy,
};
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{Array, Symbol};

use super::api::{SESSION_FILTER, SelectorFilter, SessionFilter};
use super::{Accept, Attach, Capability, DynamicNode, LinkRole, LinkTarget, Value};
use crate::codec::{ListWriter, Undecodable, descriptor};

/// The outcomes that a receiver can settle with, by their symbols.
const OUTCOMES: [&str; 4] = [
    "amqp:accepted:list",
    "amqp:modified:list",
    "amqp:rejected:list",
    "amqp:released:list",
];

/// A type of filters, by the two descriptors that it may have.
#[derive(Clone, Copy)]
struct FilterType {
    code: u64,
    name: &'static str,
}

/// Apache's filter of JMS selectors.
const SELECTOR: FilterType = FilterType {
    code: 0x0000_468c_0000_0004,
    name: "apache.org:selector-filter:string",
};
/// .NET's filter of message sessions that others may have too.
const SHARED_SESSION: FilterType = FilterType {
    code: 0x13_7000_000E,
    name: "com.microsoft:non-exclusive-session-filter:list",
};
/// Apache's filter of messages that come from the same connection.
const NO_LOCAL: FilterType = FilterType {
    code: 0x0000_468c_0000_0003,
    name: "apache.org:no-local-filter:list",
};

impl Attach {
    /// Returns whether the peer wants to look at messages and not to take them [3.5.8].
    #[must_use]
    pub fn browses(&self) -> bool {
        let mode = self
            .source
            .as_ref()
            .and_then(|source| source.distribution_mode.as_ref());
        matches!(mode, Some(DistributionMode::Copy))
    }

    /// Returns the node that the peer asks for, if it asks for one to be made [3.5.9].
    #[must_use]
    pub fn dynamic(&self) -> Option<DynamicNode> {
        let is_dynamic = match (self.role, &self.target, &self.source) {
            (LinkRole::Incoming, LinkTarget::Node(Some(target)), _) => target.dynamic,
            (LinkRole::Outgoing, _, Some(source)) => source.dynamic,
            (LinkRole::Incoming | LinkRole::Outgoing, ..) => false,
        };
        // No other peer could receive from a receiver's own topic.
        let is_topic = self.role == LinkRole::Incoming
            && (self.has_capability(Capability::TemporaryTopic)
                || self.has_capability(Capability::Topic));
        is_dynamic.then_some(if is_topic {
            DynamicNode::Topic
        } else {
            DynamicNode::Queue
        })
    }

    /// Returns whether the peer wants a capability of the node that it names.
    #[must_use]
    pub fn has_capability(&self, wanted: Capability) -> bool {
        let capabilities = match (self.role, &self.target, &self.source) {
            (LinkRole::Incoming, LinkTarget::Node(Some(target)), _) => target.capabilities.as_ref(),
            (LinkRole::Outgoing, _, Some(source)) => source.capabilities.as_ref(),
            (LinkRole::Incoming | LinkRole::Outgoing, ..) => None,
        };
        capabilities.is_some_and(|all| all.iter().any(|it| it.as_str() == wanted.as_str()))
    }

    /// Returns whether the state of the source outlives the peer's link.
    #[must_use]
    pub fn has_durable_source(&self) -> bool {
        let source = self.source.as_ref();
        source.is_some_and(|source| source.durable != TerminusDurability::None)
    }

    /// Returns the message session that the source's filter asks for
    /// (`receiving.md#session-filter`).
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a filter of any other type is malformed"
    )]
    pub fn session_filter(&self) -> Option<SessionFilter> {
        let filter = self.source.as_ref()?.filter.as_ref()?;
        let (_, value) = filter
            .iter()
            .find(|(name, _)| name.as_str() == SESSION_FILTER)?;
        let value = match value {
            Value::Described(described) => &described.value,
            plain => plain,
        };
        Some(match value {
            Value::String(id) => SessionFilter::Named(id.clone()),
            Value::Symbol(id) => SessionFilter::Named(id.as_str().to_owned()),
            Value::Null => SessionFilter::Next,
            _ => SessionFilter::Malformed,
        })
    }

    /// Returns whether the source's filter asks for a message session that others may have too, as
    /// .NET 7.21 does.
    #[must_use]
    pub fn asks_for_shared_session(&self) -> bool {
        self.filter_described(SHARED_SESSION).is_some()
    }

    /// Returns the selector that the source's filter has: a condition in the words of JMS.
    #[must_use]
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a filter of any other type is malformed"
    )]
    pub fn selector(&self) -> Option<SelectorFilter> {
        Some(match self.filter_described(SELECTOR)? {
            Value::String(text) => SelectorFilter::Text(text.clone()),
            Value::Null => return None,
            _ => SelectorFilter::Malformed,
        })
    }

    /// Returns whether the source's filter excludes messages of the same connection (no-local).
    #[must_use]
    pub fn is_no_local(&self) -> bool {
        self.filter_described(NO_LOCAL).is_some()
    }

    /// Finds a filter by its descriptor, whatever its key in the map.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "a filter may lack its descriptor"
    )]
    fn filter_described(&self, filter_type: FilterType) -> Option<&Value> {
        let filter = self.source.as_ref()?.filter.as_ref()?;
        let mut found = filter
            .iter()
            .filter(|(key, value)| is_described(key.as_str(), value, filter_type));
        found.next().map(|(_, value)| match value {
            Value::Described(described) => &described.value,
            plain => plain,
        })
    }
}

/// Returns whether a filter is of this type, whatever the peer calls it.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a filter may lack its descriptor"
)]
fn is_described(key: &str, value: &Value, filter_type: FilterType) -> bool {
    match value {
        Value::Described(described) => match &described.descriptor {
            Descriptor::Code(found) => *found == filter_type.code,
            Descriptor::Name(found) => found.as_str() == filter_type.name,
        },
        _ => key == filter_type.name,
    }
}

/// Decodes a terminus; the bytes were checked for their shape.
pub(super) fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Undecodable> {
    serde_amqp::from_slice(bytes).map_err(|_| Undecodable::WrongType("a source or target"))
}

/// Keeps the parts of a source that are in place [3.5.3]. It is echoed as it was encoded if nothing
/// differs.
pub(super) fn held_source(asked: &Bytes, accept: &Accept) -> Bytes {
    let Ok(mut source) = decode::<Source>(asked) else {
        return asked.clone();
    };
    let lasting = hold_lasting(
        &mut source.durable,
        &mut source.expiry_policy,
        &mut source.timeout,
        accept,
    );
    let filters = hold_filters(&mut source.filter, accept);
    // There is no default outcome: a delivery that is settled without an outcome is released, and one
    // that is not settled counts as failed when its lock ends.
    let default_outcome = source.default_outcome.take().is_some();
    let outcomes = hold_symbols(&mut source.outcomes, |outcome| OUTCOMES.contains(&outcome));
    let capabilities = hold_capabilities(&mut source.capabilities, accept);
    if lasting || filters || default_outcome || outcomes || capabilities {
        encode(&source)
    } else {
        asked.clone()
    }
}

/// Keeps the parts of a target that are in place [3.5.4].
pub(super) fn held_target(asked: &Bytes, accept: &Accept) -> Bytes {
    // A coordinator is another kind of target.
    let is_node = descriptor::read(asked).is_ok_and(|(code, _)| code == descriptor::TARGET);
    let Some(mut target) = is_node.then(|| decode::<Target>(asked).ok()).flatten() else {
        return asked.clone();
    };
    let lasting = hold_lasting(
        &mut target.durable,
        &mut target.expiry_policy,
        &mut target.timeout,
        accept,
    );
    let capabilities = hold_capabilities(&mut target.capabilities, accept);
    if lasting || capabilities {
        encode(&target)
    } else {
        asked.clone()
    }
}

/// Says how long a terminus is kept: no longer than its link is attached, unless it is durable. Returns
/// whether something else was asked for.
fn hold_lasting(
    durable: &mut TerminusDurability,
    expiry_policy: &mut TerminusExpiryPolicy,
    timeout: &mut u32,
    accept: &Accept,
) -> bool {
    let (held, policy) = match (accept.is_durable, &expiry_policy) {
        (true, _) => (durable.clone(), TerminusExpiryPolicy::Never),
        // The default is the session's end, and most peers send the default.
        (false, TerminusExpiryPolicy::SessionEnd) => {
            (TerminusDurability::None, TerminusExpiryPolicy::SessionEnd)
        }
        (false, _) => (TerminusDurability::None, TerminusExpiryPolicy::LinkDetach),
    };
    let differs = *durable != held || *expiry_policy != policy || *timeout != 0;
    (*durable, *expiry_policy, *timeout) = (held, policy, 0);
    differs
}

/// Leaves the capabilities that the node has; returns whether others were asked for.
fn hold_capabilities(asked: &mut Option<Array<Symbol>>, accept: &Accept) -> bool {
    let held = |name: &str| accept.capabilities.iter().any(|it| it.as_str() == name);
    hold_symbols(asked, held)
}

/// Leaves the symbols that hold; returns whether there were others.
fn hold_symbols(asked: &mut Option<Array<Symbol>>, holds: impl Fn(&str) -> bool) -> bool {
    let Some(symbols) = asked else {
        return false;
    };
    let count = symbols.len();
    symbols.retain(|symbol| holds(symbol.as_str()));
    let differs = symbols.len() < count;
    if symbols.is_empty() {
        *asked = None;
    }
    differs
}

/// Leaves the filters that are in place, with the message session that is granted in the form in which
/// it was asked for: described for Go, plain for the others (`receiving.md#session-filter`).
/// Returns whether something is different.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a filter may lack its descriptor"
)]
fn hold_filters(asked: &mut Option<FilterSet>, accept: &Accept) -> bool {
    let Some(filters) = asked.take() else {
        return false;
    };
    let count = filters.len();
    let mut held = FilterSet::new();
    for (name, mut value) in filters {
        if name.as_str() == SESSION_FILTER {
            let Some(granted) = &accept.message_session else {
                continue;
            };
            let granted = Value::String(granted.clone());
            match &mut value {
                Value::Described(described) => described.value = granted,
                plain => *plain = granted,
            }
        } else if !(accept.selects && is_described(name.as_str(), &value, SELECTOR)) {
            continue;
        }
        held.insert(name, value);
    }
    let differs = held.len() < count || accept.message_session.is_some();
    *asked = (!held.is_empty()).then_some(held);
    differs
}

/// Puts the name of a node into the source that asked for it, or makes a source of it.
pub(super) fn name_source(source: Option<&Bytes>, address: &str) -> Bytes {
    let Some(source) = source else {
        return terminus(descriptor::SOURCE, address);
    };
    let Ok(mut named) = decode::<Source>(source) else {
        return source.clone();
    };
    named.address = Some(address.into());
    encode(&named)
}

/// Puts the name of a node into the target that asked for it.
pub(super) fn name_target(target: &Bytes, address: &str) -> Bytes {
    let Ok(mut named) = decode::<Target>(target) else {
        return target.clone();
    };
    named.address = Some(address.into());
    encode(&named)
}

/// Encodes a source or target that has only an address.
pub(super) fn terminus(code: u64, address: &str) -> Bytes {
    let mut out = bytes::BytesMut::new();
    let mut list = ListWriter::begin(&mut out, code);
    list.string(address);
    list.end();
    out.freeze()
}

/// Encodes a source whose filter asks for a message session (`receiving.md#session-filter`).
pub(super) fn session_source(address: &str, message_session: &str) -> Bytes {
    let mut source = Source::builder().address(address).build();
    let filter = [(
        SESSION_FILTER.into(),
        Value::String(message_session.to_owned()),
    )];
    source.filter = Some(filter.into_iter().collect());
    encode(&source)
}

fn encode<T: serde::Serialize>(terminus: &T) -> Bytes {
    serde_amqp::to_vec(terminus).map_or_else(|_| Bytes::new(), Bytes::from)
}
