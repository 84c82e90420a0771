//! Messages made with another codec than ours come out as they went in.

use std::sync::Arc;

use bytes::Bytes;
use fe2o3_amqp_types::messaging::annotations::OwnedKey;
use fe2o3_amqp_types::messaging::message::DecodeIntoMessage as _;
use fe2o3_amqp_types::messaging::{
    AmqpSequence, AmqpValue, Annotations, ApplicationProperties, Body, Data, DeliveryAnnotations,
    Footer, Header, Message as Decoded, MessageAnnotations, MessageId, Priority, Properties,
};
use fe2o3_amqp_types::primitives::{OrderedMap, SimpleValue, Symbol, Uuid};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample;
use proptest::sample::Index;
use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::read::SliceReader;
use serde_bytes::ByteBuf;

use super::*;
use jitney_amqp::codec::{Encoded, value};

const NAMES: [&str; 6] = [
    "x-opt-sequence-number",
    "x-opt-locked-until",
    "x-opt-partition-key",
    "x-opt-via-partition-key",
    "x-opt-lock-token",
    "mine",
];

/// One message, section by section, with the body in as many sections as it has.
#[derive(Debug, Clone)]
struct Sections {
    before: Vec<Vec<u8>>,
    body: Vec<Vec<u8>>,
    /// How the descriptors of the body are written.
    form: u8,
    /// The body's index among the sections.
    place: Index,
}

impl Sections {
    fn bytes(&self) -> Bytes {
        let mut all = self.before.clone();
        let place = self.place.index(all.len() + 1);
        let body = self.body.iter().map(|section| rephrase(section, self.form));
        all.insert(place, body.collect::<Vec<_>>().concat());
        all.concat().into()
    }

    fn decoded(bytes: &[u8]) -> Decoded<Body<Value>> {
        Body::<Value>::decode_message_from_reader(SliceReader::new(bytes)).unwrap()
    }
}

fn encode(value: &impl serde::Serialize) -> Vec<u8> {
    serde_amqp::to_vec(value).unwrap()
}

fn any_simple() -> impl Strategy<Value = SimpleValue> {
    prop_oneof![
        Just(SimpleValue::Null),
        any::<bool>().prop_map(SimpleValue::Bool),
        any::<u8>().prop_map(SimpleValue::Ubyte),
        any::<u32>().prop_map(SimpleValue::Uint),
        any::<i64>().prop_map(SimpleValue::Long),
        any::<i64>().prop_map(|millis| SimpleValue::Timestamp(millis.into())),
        any::<[u8; 16]>().prop_map(|bytes| SimpleValue::Uuid(Uuid::from(bytes))),
        ".{0,12}".prop_map(SimpleValue::String),
        "[a-z]{260}".prop_map(SimpleValue::String),
        "[a-z]{0,9}".prop_map(|text| SimpleValue::Symbol(Symbol::from(text))),
        vec(any::<u8>(), 0..20).prop_map(|bytes| SimpleValue::Binary(ByteBuf::from(bytes))),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = any_simple().prop_map(Value::from);
    leaf.prop_recursive(3, 12, 4, |inner| {
        let map = vec(("[a-z]{1,3}", inner.clone()), 0..4).prop_map(|entries| {
            let entries = entries.into_iter().map(|(k, v)| (Value::String(k), v));
            Value::Map(entries.collect::<OrderedMap<_, _>>())
        });
        let list = vec(inner.clone(), 0..4).prop_map(Value::List);
        let described = inner.prop_map(|value| {
            let descriptor = Descriptor::Name(Symbol::from("com.microsoft:timespan"));
            Value::Described(Box::new(Described { descriptor, value }))
        });
        prop_oneof![map, list, described]
    })
}

fn any_annotations() -> impl Strategy<Value = Annotations> {
    let name = prop_oneof![
        sample::select(&NAMES[..]).prop_map(ToOwned::to_owned),
        "[a-z]{1,5}"
    ];
    vec((name, any_value()), 0..5).prop_map(|entries| {
        let entries = entries.into_iter();
        entries
            .map(|(name, value)| (OwnedKey::Symbol(Symbol::from(name)), value))
            .collect()
    })
}

fn any_header() -> impl Strategy<Value = Header> {
    let fields = (
        any::<[bool; 2]>(),
        any::<u8>(),
        any::<Option<u32>>(),
        0..9_u32,
    );
    fields.prop_map(|(flags, priority, ttl, delivery_count)| Header {
        durable: flags[0],
        priority: Priority(priority),
        ttl,
        first_acquirer: flags[1],
        delivery_count,
    })
}

fn any_properties() -> impl Strategy<Value = Properties> {
    let id = prop_oneof![
        any::<u64>().prop_map(MessageId::Ulong),
        any::<[u8; 16]>().prop_map(|bytes| MessageId::Uuid(Uuid::from(bytes))),
        vec(any::<u8>(), 0..9).prop_map(|bytes| MessageId::Binary(ByteBuf::from(bytes))),
        ".{0,9}".prop_map(MessageId::String),
    ];
    let times = (any::<Option<i64>>(), any::<Option<i64>>());
    let texts = (option::of(".{0,9}"), option::of(".{0,9}"));
    (option::of(id), times, texts, any::<Option<u32>>()).prop_map(
        |(message_id, (expiry, creation), (subject, group_id), group_sequence)| Properties {
            message_id,
            subject,
            absolute_expiry_time: expiry.map(Into::into),
            creation_time: creation.map(Into::into),
            group_id,
            group_sequence,
            ..Properties::default()
        },
    )
}

fn any_application_properties() -> impl Strategy<Value = ApplicationProperties> {
    vec(("[a-e]{1,2}", any_simple()), 0..6)
        .prop_map(|entries| ApplicationProperties(entries.into_iter().collect()))
}

fn any_body() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let data = || vec(any::<u8>(), 0..300).prop_map(|bytes| encode(&Data(ByteBuf::from(bytes))));
    let sequence = vec(any_value(), 0..3).prop_map(|values| encode(&AmqpSequence(values)));
    prop_oneof![
        Just(Vec::new()),
        vec(data(), 1..4),
        vec(sequence, 1..4),
        any_value().prop_map(|value| vec![encode(&AmqpValue(value))]),
    ]
}

/// Writes a section's descriptor in another of its forms.
fn rephrase(section: &[u8], form: u8) -> Vec<u8> {
    let names = [
        "header:list",
        "delivery-annotations:map",
        "message-annotations:map",
        "properties:list",
        "application-properties:map",
        "data:binary",
        "amqp-sequence:list",
        "amqp-value:*",
        "footer:map",
    ];
    let (code, value) = (section[2], &section[3..]);
    let name = format!("amqp:{}", names[usize::from(code - 0x70)]);
    let head = match form {
        0 => vec![0x00, 0x53, code],
        1 => vec![0x00, 0x80, 0, 0, 0, 0, 0, 0, 0, code],
        _ => {
            let length = u8::try_from(name.len()).unwrap();
            [&[0x00, 0xa3, length], name.as_bytes()].concat()
        }
    };
    [&head, value].concat()
}

fn any_sections() -> impl Strategy<Value = Sections> {
    let optional = (
        option::of(any_header().prop_map(|header| encode(&header))),
        option::of(any_annotations().prop_map(|all| encode(&DeliveryAnnotations(all)))),
        option::of(any_annotations().prop_map(|all| encode(&MessageAnnotations(all)))),
        option::of(any_properties().prop_map(|all| encode(&all))),
        option::of(any_application_properties().prop_map(|all| encode(&all))),
        option::of(any_annotations().prop_map(|all| encode(&Footer(all)))),
    );
    let others = (optional, vec(0..3_u8, 6)).prop_map(|((a, b, c, d, e, f), forms)| {
        let present = [a, b, c, d, e, f].into_iter().flatten().zip(forms);
        present
            .map(|(section, form)| rephrase(&section, form))
            .collect::<Vec<_>>()
    });
    (others.prop_shuffle(), any_body(), 0..3_u8, any::<Index>()).prop_map(
        |(before, body, form, place)| Sections {
            before,
            body,
            form,
            place,
        },
    )
}

fn any_fields() -> impl Strategy<Value = Vec<(Field, Option<String>)>> {
    let text = option::of("[a-z]{0,9}");
    vec((sample::select(&Field::ALL[..]), text), 0..3)
}

/// Changes the properties as `fields` say.
fn change_fields(properties: &mut Properties, fields: Vec<(Field, Option<String>)>) {
    for (field, text) in fields {
        match field {
            Field::ContentType => properties.content_type = text.map(Symbol::from),
            Field::CorrelationId => properties.correlation_id = text.map(Into::into),
            Field::Label => properties.subject = text,
            Field::MessageId => properties.message_id = text.map(Into::into),
            Field::ReplyTo => properties.reply_to = text,
            Field::ReplyToSessionId => properties.reply_to_group_id = text,
            Field::SessionId => properties.group_id = text,
            Field::To => properties.to = text,
        }
    }
}

pub(super) fn any_amendments() -> impl Strategy<Value = Amendments> {
    let set = vec(("[a-e]{1,2}", any_simple().prop_map(Value::from)), 0..5);
    let removed = vec("[a-e]{1,2}", 0..3);
    let format = prop_oneof![Just(0), any::<u32>()];
    (set, removed, any_fields(), format).prop_map(|(set, removed, fields, format)| {
        let entries = set.into_iter();
        let set = entries.map(|(name, value)| (Symbol::from(name), value));
        let set: fe2o3_amqp_types::definitions::Fields = set.collect();
        let set = serde_amqp::to_vec(&set).unwrap();
        let mut amendments = Amendments::from_encoded(Encoded::new(&set));
        for name in removed {
            amendments.remove(&name);
        }
        for (field, text) in fields {
            amendments.set_field(field, text.as_deref());
        }
        if let Some(of_format) = Amendments::of_format(format) {
            amendments.merge(&of_format);
        }
        amendments
    })
}

prop_compose! {
    fn any_stamps()(
        numbers in any::<[i64; 2]>(),
        default_message_id in any::<[u8; 16]>(),
        times in (0..1_i64 << 45, option::of(0..1_i64 << 45)),
        (lock_token, delivered, acquired) in any::<(Option<[u8; 16]>, bool, bool)>(),
        delivery_count in any::<u32>(),
        state in 0..3_u8,
        time_to_live in option::of(0..1_i64 << 45),
        source in option::of(".{0,9}"),
        amendments in option::of(any_amendments()),
    ) -> Stamps {
        Stamps {
            keyed_by_id: false,
            partition_id: None,
            sequence_number: numbers[0],
            enqueued_sequence_number: numbers[1],
            enqueued_time: Timestamp::from_millis(times.0),
            locked_until: times.1.map(Timestamp::from_millis),
            default_message_id,
            lock_token,
            delivered,
            delivery_count,
            acquired,
            state: [MessageState::Active, MessageState::Deferred, MessageState::Scheduled][usize::from(state)],
            time_to_live: time_to_live.map_or(Millis::MAX, Millis::from_millis),
            dead_letter_source: source.map(Into::into),
            amendments: amendments.map(Arc::new),
        }
    }
}

fn found(message: &[u8]) -> parse::Sections {
    let length = |_, value: &[u8]| Ok(jitney_amqp::codec::value_length(value).unwrap());
    parse::Sections::find(message, length).unwrap()
}

/// Whether every section begins with `00 53 xx`.
fn descriptors_are_compact(mut message: &[u8]) -> bool {
    while let [0x00, 0x53, _, value @ ..] = message {
        message = &value[jitney_amqp::codec::value_length(value).unwrap()..];
    }
    message.is_empty()
}

fn rendered(message: &Bytes, stamps: &Stamps) -> Vec<u8> {
    let mut out = b"before".to_vec();
    render(&mut out, message, stamps);
    out.split_off(6)
}

/// The expected annotations: the sender's without the broker's names, and the stamps.
fn expected_annotations(own: Option<MessageAnnotations>, stamps: &Stamps) -> Annotations {
    let ours = |key: &OwnedKey| {
        let OwnedKey::Symbol(name) = key else {
            return false;
        };
        [
            "x-opt-sequence-number",
            "x-opt-enqueue-sequence-number",
            "x-opt-locked-until",
            "x-opt-lock-token",
            "x-opt-message-state",
        ]
        .contains(&name.as_str())
    };
    let own = own.into_iter().flat_map(|own| own.0);
    let mut all: Annotations = own.filter(|(key, _)| !ours(key)).collect();
    let mut stamp = |name: &str, value| {
        all.insert(OwnedKey::Symbol(Symbol::from(name)), value);
    };
    stamp("x-opt-sequence-number", Value::Long(stamps.sequence_number));
    if stamps.enqueued_sequence_number != 0 {
        let number = Value::Long(stamps.enqueued_sequence_number);
        stamp("x-opt-enqueue-sequence-number", number);
    }
    let time = |time: Timestamp| Value::Timestamp(time.as_millis().into());
    stamp("x-opt-enqueued-time", time(stamps.enqueued_time));
    match stamps.state {
        MessageState::Active => {}
        MessageState::Deferred => stamp("x-opt-message-state", Value::Int(1)),
        MessageState::Scheduled => stamp("x-opt-message-state", Value::Int(2)),
    }
    if let Some(until) = stamps.locked_until {
        stamp("x-opt-locked-until", time(until));
    }
    if let Some(source) = &stamps.dead_letter_source {
        stamp("x-opt-deadletter-source", Value::String(source.to_string()));
    }
    all
}

/// Maps whose entries are in another order are equal to a receiver.
fn sorted<K: Ord + Clone, V: Clone>(map: &OrderedMap<K, V>) -> std::collections::BTreeMap<K, V> {
    map.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
}

proptest! {
    #[test]
    fn everything_of_the_sender_is_delivered(
        sections in any_sections(),
        mut stamps in any_stamps(),
        fields in any_fields(),
    ) {
        let mut amendments = Amendments::default();
        for (field, text) in &fields {
            amendments.set_field(*field, text.as_deref());
        }
        stamps.amendments = Some(Arc::new(amendments));
        let bytes = sections.bytes();
        let sent = Sections::decoded(&bytes);
        let message = Message::parse(bytes.clone()).unwrap();
        prop_assert_eq!(message.bytes(), &bytes);
        let out = rendered(&bytes, &stamps);
        let got = Sections::decoded(&out);

        let (own, header) = (sent.header.unwrap_or_default(), got.header.unwrap());
        let ttl = (stamps.time_to_live != Millis::MAX)
            .then(|| u32::try_from(stamps.time_to_live.as_millis()).unwrap_or(u32::MAX));
        prop_assert_eq!((header.durable, header.priority, header.first_acquirer),
            (own.durable, own.priority, own.first_acquirer && !stamps.acquired && stamps.delivery_count == 0));
        prop_assert_eq!((header.ttl, header.delivery_count), (ttl, stamps.delivery_count));

        let mut annotations = sent.delivery_annotations;
        let name = OwnedKey::Symbol(Symbol::from("x-opt-lock-token"));
        if let Some(own) = &mut annotations {
            own.0.swap_remove(&name);
        }
        if stamps.delivered {
            annotations.get_or_insert_default();
        }
        if let Some(token) = stamps.lock_token {
            annotations.get_or_insert_default().0.insert(name, Value::Uuid(Uuid::from(token)));
        }
        prop_assert!(descriptors_are_compact(&out));
        let sorted_all = |all: Option<DeliveryAnnotations>| all.map(|all| sorted(&all.0));
        prop_assert_eq!(sorted_all(got.delivery_annotations), sorted_all(annotations));
        let place = found(&out).message_annotations.of(&out).unwrap();
        let got_annotations = got.message_annotations.unwrap().0;
        prop_assert_eq!(value::count(place), 2 * got_annotations.len());
        prop_assert_eq!(sorted(&got_annotations),
            sorted(&expected_annotations(sent.message_annotations, &stamps)));

        let mut properties = sent.properties;
        if stamps.time_to_live != Millis::MAX {
            let filled = properties.get_or_insert_default();
            let end = stamps.enqueued_time.after(stamps.time_to_live).as_millis();
            filled.absolute_expiry_time = Some(end.into());
            filled.creation_time = Some(stamps.enqueued_time.as_millis().into());
        }
        change_fields(properties.get_or_insert_default(), fields);
        let default_id = format!("{:032x}", u128::from_be_bytes(stamps.default_message_id));
        properties.get_or_insert_default().message_id.get_or_insert_with(|| default_id.into());
        prop_assert_eq!(got.properties, properties);
        prop_assert_eq!(got.application_properties, sent.application_properties);
        prop_assert_eq!(got.body, sent.body);
        prop_assert_eq!(got.footer, sent.footer);
        let body = sections.body.concat();
        prop_assert!(body.is_empty() || out.windows(body.len()).any(|window| window == body));
    }

    #[test]
    fn a_message_with_another_body_has_what_its_sender_gave_it(
        sections in any_sections(),
        mut stamps in any_stamps(),
        keyed_by_id in any::<bool>(),
    ) {
        stamps.amendments = None;
        stamps.keyed_by_id = keyed_by_id;
        let bytes = sections.bytes();
        let sent = Sections::decoded(&bytes);
        let mut out = Vec::new();
        render_with_body(&mut out, &bytes, &stamps, b"other");
        let got = Sections::decoded(&out);
        prop_assert_eq!(got.header, sent.header);
        let stamped = expected_annotations(sent.message_annotations.clone(), &stamps);
        let own = sent.message_annotations.unwrap_or_default().0;
        let kept: Annotations = own.into_iter().filter(|entry| stamped.get(&entry.0) == Some(&entry.1)).collect();
        let got_annotations = got.message_annotations.unwrap_or_default().0;
        prop_assert_eq!(sorted(&got_annotations), sorted(&kept));
        let mut properties = sent.properties;
        let default_id = format!("{:032x}", u128::from_be_bytes(stamps.default_message_id));
        properties.get_or_insert_default().message_id.get_or_insert_with(|| default_id.into());
        prop_assert_eq!(got.properties, properties);
        prop_assert_eq!(got.application_properties, sent.application_properties);
        let message = Message::parse(out.into()).unwrap();
        prop_assert_eq!(&message.plain_body()[..], b"other");
    }

    #[test]
    fn amendments_replace_what_they_name_and_leave_the_rest(
        own in vec(("[a-e]{1,2}", any_value()), 0..6),
        mut stamps in any_stamps(),
        amendments in any_amendments(),
    ) {
        let map = |entries: Vec<(String, Value)>| -> OrderedMap<Value, Value> {
            entries.into_iter().map(|(name, value)| (Value::String(name), value)).collect()
        };
        let own = map(own);
        let section = [&[0x00, 0x53, 0x74][..], &encode(&Value::Map(own.clone()))].concat();
        let mut expected = sorted(&own);
        expected.retain(|name, _| !matches!(name, Value::String(name) if amendments.contains(name)));
        for (name, value) in amendments.iter() {
            let value: Value = serde_amqp::from_slice(value).unwrap();
            expected.insert(Value::String(name.to_owned()), value);
        }
        stamps.amendments = Some(Arc::new(amendments));
        let out: Bytes = rendered(&section.into(), &stamps).into();
        let place = found(&out).application_properties.of(&out).unwrap();
        // The other codec would keep the last of two equal names, without an error.
        prop_assert_eq!(value::count(place), 2 * expected.len());
        let got: Value = serde_amqp::from_slice(place).unwrap();
        let Value::Map(got) = got else { panic!("{got:?}") };
        prop_assert_eq!(sorted(&got), expected);
    }

    #[test]
    fn bytes_that_are_damaged_are_refused_or_read_and_never_panic(
        sections in any_sections(),
        damage in vec((any::<Index>(), any::<u8>()), 0..4),
        end in any::<Index>(),
        stamps in any_stamps(),
    ) {
        let mut bytes = sections.bytes().to_vec();
        for (place, byte) in damage {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
        }
        for cut in [bytes.len(), end.index(bytes.len() + 1)] {
            let bytes = Bytes::copy_from_slice(&bytes[..cut]);
            let out = rendered(&bytes, &stamps);
            _ = split_batch(&bytes);
            _ = Amendments::decode(&bytes);
            let Ok(message) = Message::parse(bytes) else { continue };
            _ = (message.time_to_live(), message.scheduled_enqueue_time());
            _ = (message.message_id_length(), message.group_id().map(str::len), message.partition_key().map(str::len));
            prop_assert!(Message::parse(out.into()).is_ok(), "what we deliver is a message");
        }
    }

    #[test]
    fn a_batch_holds_its_messages(messages in vec(any_sections(), 1..4), envelope in any_sections()) {
        let messages: Vec<Bytes> = messages.iter().map(Sections::bytes).collect();
        let data = messages.iter().map(|message| encode(&Data(ByteBuf::from(message.to_vec()))));
        let batch = Sections { body: data.collect(), ..envelope };
        prop_assert_eq!(split_batch(&batch.bytes()), Ok(messages));
    }

    #[test]
    fn getters_read_what_the_sender_wrote(
        header in any_header(),
        properties in any_properties(),
        due in any::<i64>(),
        key in ".{0,200}",
    ) {
        let annotations: Annotations = [
            ("x-opt-partition-key", Value::String(key.clone())),
            ("x-opt-scheduled-enqueue-time", Value::Timestamp(due.into())),
        ].into_iter().map(|(name, value)| (OwnedKey::Symbol(Symbol::from(name)), value)).collect();
        let bytes = [encode(&properties), encode(&MessageAnnotations(annotations)), encode(&header)];
        let message = Message::parse(bytes.concat().into()).unwrap();
        let ttl = header.ttl.filter(|ttl| *ttl > 0).map(|ttl| Millis::from_millis(i64::from(ttl)));
        prop_assert_eq!(message.time_to_live(), ttl);
        prop_assert_eq!(message.scheduled_enqueue_time(), Some(Timestamp::from_millis(due)));
        prop_assert_eq!(message.partition_key(), Some(&key[..]));
        let id = match &properties.message_id {
            Some(MessageId::String(text)) => text.chars().count(),
            _ => 0,
        };
        prop_assert_eq!(message.message_id_length(), id);
        prop_assert_eq!(message.group_id(), properties.group_id.as_deref());
    }
}

#[test]
fn a_time_to_live_beyond_the_header_s_reach_is_in_the_properties() {
    let parsed = |ttl, times: (Option<i64>, Option<i64>)| {
        let header = Header {
            ttl: Some(ttl),
            ..Header::default()
        };
        let properties = Properties {
            creation_time: times.0.map(Into::into),
            absolute_expiry_time: times.1.map(Into::into),
            ..Properties::default()
        };
        let bytes = [encode(&header), encode(&properties)].concat();
        Message::parse(bytes.into()).unwrap().time_to_live()
    };
    let days = 100 * 86_400_000;
    let (told, most) = (
        Millis::from_millis(days),
        Millis::from_millis(u32::MAX.into()),
    );
    assert_eq!(parsed(u32::MAX, (Some(5), Some(5 + days))), Some(told));
    assert_eq!(parsed(u32::MAX, (None, Some(5))), Some(most));
    assert_eq!(parsed(u32::MAX, (Some(5), Some(4))), Some(most));
    assert_eq!(
        parsed(9, (Some(5), Some(5 + days))),
        Some(Millis::from_millis(9))
    );
}

#[test]
fn times_are_those_that_clients_can_represent() {
    let stamps = Stamps {
        keyed_by_id: false,
        partition_id: None,
        time_to_live: Millis::from_millis(i64::MAX - 1),
        ..stamps_of_partition()
    };
    let got = Sections::decoded(&rendered(&Bytes::new(), &stamps));
    let expiry = got.properties.unwrap().absolute_expiry_time;
    assert_eq!(expiry, Some(253_402_300_799_999_i64.into()));
}

/// Stamps of a queue in which the id decides the partition, where nothing else does.
fn stamps_of_partition() -> Stamps {
    Stamps {
        keyed_by_id: true,
        partition_id: Some(3),
        sequence_number: 1,
        enqueued_sequence_number: 1,
        default_message_id: [0; 16],
        enqueued_time: Timestamp::from_millis(1_800_000_000_000),
        locked_until: None,
        lock_token: None,
        delivered: false,
        delivery_count: 0,
        acquired: false,
        state: MessageState::Active,
        time_to_live: Millis::from_secs(60),
        dead_letter_source: None,
        amendments: None,
    }
}

#[test]
fn an_id_that_decides_the_partition_is_told_as_the_partition_key() {
    const NAME: &[u8] = b"x-opt-partition-key";
    let annotation = |value: &[u8]| {
        let size = u8::try_from(3 + NAME.len() + value.len()).unwrap();
        let head = [0x00, 0x53, 0x72, 0xc1, size, 2, 0xa3, 0x13];
        [&head, NAME, value].concat()
    };
    let id = [0x00, 0x53, 0x73, 0xc0, 4, 1, 0xa1, 1, b'i'].to_vec();
    let mut id_and_session = vec![0x00, 0x53, 0x73, 0xc0, 16, 11, 0xa1, 1, b'i'];
    id_and_session.extend_from_slice(&[0x40; 9]);
    id_and_session.extend_from_slice(&[0xa1, 1, b's']);
    let body = [0x00, 0x53, 0x75, 0xa0, 0];
    for (sections, key) in [
        (vec![id.clone()], Some("i")),
        // A key that is null is none, and is not there beside the broker's.
        (vec![annotation(&[0x40]), id.clone()], Some("i")),
        (vec![annotation(&[0xa1, 1, b'k']), id.clone()], Some("k")),
        (vec![id_and_session], None),
        (Vec::new(), None),
    ] {
        let message = Bytes::from([sections.concat(), body.to_vec()].concat());
        let told = rendered(&message, &stamps_of_partition());
        let annotations = Sections::decoded(&told).message_annotations.unwrap();
        let found = annotations
            .0
            .iter()
            .find_map(|(name, value)| match (name, value) {
                (OwnedKey::Symbol(name), Value::String(text)) if name.as_bytes() == NAME => {
                    Some(text.clone())
                }
                _ => None,
            });
        assert_eq!(found.as_deref(), key, "{message:?}");
        let count = told.windows(NAME.len()).filter(|part| *part == NAME);
        assert_eq!(count.count(), usize::from(key.is_some()), "{message:?}");
    }
}

fn refused(bytes: &[u8], why: &str) {
    let error = Message::parse(Bytes::copy_from_slice(bytes)).unwrap_err();
    assert!(error.0.contains(why), "{error}");
}

#[test]
fn sections_that_do_not_go_together_are_refused() {
    let (data, value) = ([0x00, 0x53, 0x75, 0xa0, 0], [0x00, 0x53, 0x77, 0x40]);
    let header = [0x00, 0x53, 0x70, 0x45];
    refused(&[header, header].concat(), "is repeated");
    refused(&[value, value].concat(), "do not go together");
    refused(&[&data[..], &value].concat(), "do not go together");
    refused(&[&data[..], &header, &data].concat(), "do not go together");
    refused(&[0x00, 0x53, 0x75, 0x40], "another type");
    refused(&[0x00, 0x53, 0x74, 0xc1, 2, 1, 0x40], "an odd number");
    refused(&[0x00, 0x53, 0x24, 0x45], "no section");
    refused(&[0x40], "descriptor");
    refused(
        &[0x00, 0x53, 0x77, 0xb0, 0xff, 0xff, 0xff, 0xff],
        "end within",
    );
}

#[test]
fn fields_that_would_break_a_receiver_are_refused() {
    let properties = |list: &[u8]| [&[0x00, 0x53, 0x73], list].concat();
    let header = |list: &[u8]| [&[0x00, 0x53, 0x70], list].concat();
    refused(&properties(&[0xc0, 2, 1, 0x41]), "the field 0");
    refused(
        &properties(&[0xc0, 5, 2, 0x40, 0xa1, 1, b'u']),
        "the field 1",
    );
    refused(
        &properties(&[0xc0, 7, 4, 0x40, 0x40, 0x40, 0xa1, 1, 0xff]),
        "the field 3",
    );
    refused(
        &properties(&[&[0xc0, 15, 14][..], &[0x40; 14]].concat()),
        "14 fields",
    );
    refused(&properties(&[0xc0, 3, 1, 0x40, 0x40]), "longer");
    refused(&properties(&[0xc0, 2, 2, 0x40]), "end within");
    refused(&properties(&[0xc0, 3, 1, 0xa1, 9]), "end within");
    refused(&header(&[0xc0, 2, 1, 0x43]), "the field 0");
    refused(
        &header(&[&[0xc0, 7, 6][..], &[0x40; 6]].concat()),
        "6 fields",
    );
    let symbol_for_string = properties(&[0xc0, 7, 4, 0x40, 0x40, 0x40, 0xa3, 1, b's']);
    assert!(Message::parse(symbol_for_string.into()).is_ok());
}

#[test]
fn application_properties_are_simple_values() {
    let with = |value: &[u8]| {
        let size = u8::try_from(value.len() + 4).unwrap();
        let head = [0x00, 0x53, 0x74, 0xc1, size, 2, 0xa1, 1, b'k'];
        Message::parse([&head[..], value].concat().into())
    };
    let timespan = b"\x00\xa3\x16com.microsoft:timespan\x55\x01";
    for simple in [&[0x40][..], &[0xa0, 1, 7], timespan] {
        assert!(with(simple).is_ok(), "{simple:02x?}");
    }
    for compound in [&[0x45][..], &[0xc1, 1, 0], &[0xe0, 2, 0, 0x50]] {
        let error = with(compound).unwrap_err();
        assert!(error.to_string().contains("simple value"), "{error}");
    }
}

#[test]
fn a_batch_without_messages_or_with_too_many_is_refused() {
    assert_eq!(split_batch(&Bytes::new()), Ok(Vec::new()));
    let data = [0x00, 0x53, 0x75, 0xa0, 0];
    let max = limits::BATCH_MESSAGES_MAX;
    assert_eq!(split_batch(&data.repeat(max).into()).unwrap().len(), max);
    let error = split_batch(&data.repeat(max + 1).into()).unwrap_err();
    assert!(error.to_string().contains(&max.to_string()), "{error}");
}

#[test]
fn a_batch_of_the_default_size_is_bounded_by_its_bytes_only() {
    let bytes = usize::try_from(limits::MESSAGE_SIZE_DEFAULT).unwrap();
    // One null for a body each.
    let data = [0x00, 0x53, 0x75, 0xa0, 4, 0x00, 0x53, 0x77, 0x40];
    let count = bytes / data.len();
    let batch = split_batch(&data.repeat(count).into()).unwrap();
    assert_eq!(batch.len(), count);
    assert!(
        batch
            .into_iter()
            .all(|message| Message::parse(message).is_ok())
    );
}
