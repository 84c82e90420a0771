//! Changes that the broker makes to a message: its application-properties, and what rules set of
//! its properties.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::{Field, Malformed};
use jitney_amqp::codec::value::{is_compound, long, text, timestamp};
use jitney_amqp::codec::write::{write_null, write_string, write_symbol};
use jitney_amqp::codec::{Encoded, value_length};
use jitney_base::time::{Millis, Timestamp};

/// Changes to a message's application-properties and to fields of its properties, and the message-format
/// that it came with, if that is not AMQP's own.
///
/// Kept in the log as, for each: the length of its name (u16, big-endian), its name in UTF-8, the
/// length of its value (u32, big-endian), its value. First the application-properties in the order
/// of their names, with encoded AMQP for a value, or nothing where the property is removed; then
/// the fields, by AMQP's names of them, with 0x01 before the encoded AMQP; then the settings, by their names, with
/// 0x03 before the encoded AMQP; then the message-format, without a name, as 0x02 and a u32, big-endian.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Amendments {
    /// Ordered by name, so that a peer's thousands of them cost no more than they weigh.
    /// `None` is removed.
    set: BTreeMap<String, Option<Bytes>>,
    fields: BTreeMap<Field, Bytes>,
    settings: BTreeMap<Setting, Bytes>,
    /// 0 is AMQP's own, and is not kept.
    format: u32,
}

/// Marks the value of a field in the log: no AMQP value begins with it.
const FIELD: u8 = 0x01;
/// Marks the value of a setting in the log.
const SETTING: u8 = 0x03;
/// Marks the message-format in the log.
const FORMAT: u8 = 0x02;
/// Bytes of the message-format in the log: the lengths of no name and of its value, and the value.
const FORMAT_SIZE: usize = 2 + 4 + 1 + 4;

/// What an action may change beside properties: annotations, and the time to live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// x-opt-partition-key.
    PartitionKey,
    /// x-opt-scheduled-enqueue-time: it holds where the message is forwarded to.
    ScheduledEnqueueTime,
    /// The time to live, milliseconds, as a `long`.
    TimeToLive,
    /// x-opt-via-partition-key.
    ViaPartitionKey,
}

impl Setting {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::PartitionKey,
        Self::ScheduledEnqueueTime,
        Self::TimeToLive,
        Self::ViaPartitionKey,
    ];

    /// Returns its name in the log: that of its annotation, if it is one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PartitionKey => "x-opt-partition-key",
            Self::ScheduledEnqueueTime => "x-opt-scheduled-enqueue-time",
            Self::TimeToLive => "ttl",
            Self::ViaPartitionKey => "x-opt-via-partition-key",
        }
    }

    /// Returns whether it is an annotation.
    #[must_use]
    pub const fn is_annotation(self) -> bool {
        match self {
            Self::PartitionKey | Self::ScheduledEnqueueTime | Self::ViaPartitionKey => true,
            Self::TimeToLive => false,
        }
    }
}

impl Amendments {
    /// Takes the properties to modify of an outcome or of a management request, an encoded map:
    /// symbols or strings name them (`receiving.md#outcomes`).
    #[must_use]
    pub fn from_encoded(map: Encoded<'_>) -> Self {
        let mut amendments = Self::default();
        for (name, value) in map.entries() {
            if let Some(name) = name.text() {
                amendments.set_encoded(name, value.to_vec());
            }
        }
        amendments
    }

    /// Sets a property to a string.
    pub fn set_string(&mut self, name: &str, value: &str) {
        let mut encoded = Vec::with_capacity(value.len() + 5);
        write_string(&mut encoded, value);
        self.set.insert(name.to_owned(), Some(encoded.into()));
    }

    /// Sets a property to an encoded value.
    pub fn set_encoded(&mut self, name: &str, value: Vec<u8>) {
        // A name that the log's form cannot hold is no property's.
        if u16::try_from(name.len()).is_ok() {
            self.set.insert(name.to_owned(), Some(value.into()));
        }
    }

    /// Removes a property, spelled so.
    pub fn remove(&mut self, name: &str) {
        if u16::try_from(name.len()).is_ok() {
            self.set.insert(name.to_owned(), None);
        }
    }

    /// Undoes the change of a property, spelled so.
    pub fn forget(&mut self, name: &str) {
        self.set.remove(name);
    }

    /// Sets a field of the properties; `None` removes it.
    pub fn set_field(&mut self, field: Field, text: Option<&str>) {
        let mut encoded = Vec::new();
        match text {
            None => write_null(&mut encoded),
            // The only one that is a symbol.
            Some(text) if field == Field::ContentType => write_symbol(&mut encoded, text),
            Some(text) => write_string(&mut encoded, text),
        }
        self.fields.insert(field, encoded.into());
    }

    /// Changes a setting to an encoded value; null removes it.
    pub fn set_setting(&mut self, setting: Setting, value: Vec<u8>) {
        self.settings.insert(setting, value.into());
    }

    /// Returns the encoded value of a setting, if that is changed.
    #[must_use]
    pub fn setting(&self, setting: Setting) -> Option<&[u8]> {
        self.settings.get(&setting).map(|value| &value[..])
    }

    /// Returns what annotations are changed to.
    pub(super) fn annotations(&self) -> impl Iterator<Item = (Setting, &[u8])> {
        let settings = self.settings.iter().filter(|(it, _)| it.is_annotation());
        settings.map(|(&setting, value)| (setting, &value[..]))
    }

    /// Returns the time to live, if that is changed; [`Millis::MAX`] where it is removed.
    #[must_use]
    pub fn time_to_live(&self) -> Option<Millis> {
        let value = self.setting(Setting::TimeToLive)?;
        Some(long(value).map_or(Millis::MAX, Millis::from_millis))
    }

    /// Returns when the message becomes active where it is forwarded to, if that is set.
    #[must_use]
    pub fn scheduled_enqueue_time(&self) -> Option<Timestamp> {
        let value = self.setting(Setting::ScheduledEnqueueTime)?;
        timestamp(value).map(Timestamp::from_millis)
    }

    /// Keeps a message-format; `None` for AMQP's own.
    #[must_use]
    pub fn of_format(format: u32) -> Option<Self> {
        (format != 0).then(|| Self {
            format,
            ..Self::default()
        })
    }

    /// Returns the message-format that the message came with.
    #[must_use]
    pub fn format(&self) -> u32 {
        self.format
    }

    /// Returns the message session that the message belongs to from now on, if that is set.
    #[must_use]
    pub fn group_id(&self) -> Option<&str> {
        self.field(Field::SessionId).and_then(text)
    }

    /// Returns the encoded value of a field, if that is changed.
    #[must_use]
    pub fn field(&self, field: Field) -> Option<&[u8]> {
        self.fields.get(&field).map(|value| &value[..])
    }

    /// Returns what a property is set to, if that is a string or a symbol.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<&str> {
        text(self.set.get(name)?.as_ref()?)
    }

    /// Takes a property out if it is a string or a symbol; null is as good as none, and goes too.
    pub fn take_string(&mut self, name: &str) -> Option<String> {
        let value = self.set.get(name)?.as_ref()?;
        let string = text(value).map(str::to_owned);
        if string.is_some() || value[..] == [0x40] {
            self.set.remove(name);
        }
        string
    }

    /// Adds later changes: where both name a property, the later one holds.
    pub fn merge(&mut self, later: &Self) {
        let set = later.set.iter();
        self.set
            .extend(set.map(|(name, value)| (name.clone(), value.clone())));
        let fields = later.fields.iter();
        self.fields
            .extend(fields.map(|(&field, value)| (field, value.clone())));
        let settings = later.settings.iter();
        self.settings
            .extend(settings.map(|(&setting, value)| (setting, value.clone())));
        if later.format != 0 {
            self.format = later.format;
        }
    }

    /// Returns the name of a property that is set to a list, a map or an array, if there is one:
    /// application-properties have simple values [AMQP 3.2.5].
    #[must_use]
    pub fn compound(&self) -> Option<&str> {
        let mut compound = self.iter().filter(|(_, value)| is_compound(value));
        compound.next().map(|(name, _)| name)
    }

    /// Returns whether nothing is changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let nothing = self.set.is_empty() && self.fields.is_empty() && self.settings.is_empty();
        nothing && self.format == 0
    }

    /// Returns how many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        let changed = self.set.len() + self.fields.len() + self.settings.len();
        changed + usize::from(self.format != 0)
    }

    /// Returns whether no application-property is changed.
    pub(super) fn leaves_properties(&self) -> bool {
        self.set.is_empty()
    }

    /// Returns whether a field is changed.
    pub(super) fn changes_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// Returns whether a property is set or removed.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.set.contains_key(name)
    }

    /// Returns the names and encoded values of what is set.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.set
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), &value.as_ref()?[..])))
    }

    /// Returns what the log keeps of properties: names, and values in the log's form.
    fn kept(&self) -> impl Iterator<Item = (&str, &[u8], &[u8])> {
        let set = self.set.iter();
        let set =
            set.map(|(name, value)| (name.as_str(), &[][..], value.as_deref().unwrap_or_default()));
        let fields = self.fields.iter();
        let fields = fields.map(|(field, value)| (field.name(), &[FIELD][..], &value[..]));
        let settings = self.settings.iter();
        let settings = settings.map(|(it, value)| (it.name(), &[SETTING][..], &value[..]));
        set.chain(fields).chain(settings)
    }

    /// Returns the form in which the log keeps them.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        let format = self.format.to_be_bytes();
        let format = (self.format != 0).then_some(("", &[FORMAT][..], &format[..]));
        for (name, mark, value) in self.kept().chain(format) {
            let length = mark.len() + value.len();
            out.extend_from_slice(&u16::try_from(name.len()).unwrap_or(u16::MAX).to_be_bytes());
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
            out.extend_from_slice(mark);
            out.extend_from_slice(value);
        }
        out.into()
    }

    /// Returns the bytes of [`Amendments::encode`]'s form.
    #[must_use]
    pub fn size(&self) -> usize {
        let kept = self.kept();
        let kept = kept.map(|(name, mark, value)| 6 + name.len() + mark.len() + value.len());
        kept.sum::<usize>() + if self.format == 0 { 0 } else { FORMAT_SIZE }
    }

    /// Returns what they weigh: their bytes, and what each costs beside them.
    #[must_use]
    pub fn weight(&self) -> usize {
        /// A node of a tree, and two allocations.
        const EACH: usize = 64;
        self.size() + EACH * self.len()
    }

    /// Reads the form in which the log keeps them.
    ///
    /// # Errors
    ///
    /// [`Malformed`] if [`Amendments::encode`] cannot have written it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let malformed = || Malformed("amendments that end too soon".to_owned());
        let mut found = Self::default();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (length, after) = rest.split_first_chunk::<2>().ok_or_else(malformed)?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (name, after) = after.split_at_checked(length).ok_or_else(malformed)?;
            let (length, after) = after.split_first_chunk::<4>().ok_or_else(malformed)?;
            let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| malformed())?;
            let (value, after) = after.split_at_checked(length).ok_or_else(malformed)?;
            let name = std::str::from_utf8(name).map_err(|error| Malformed(error.to_string()))?;
            found.add_kept(name, value)?;
            rest = after;
        }
        Ok(found)
    }

    /// Adds one change in the log's form.
    fn add_kept(&mut self, name: &str, value: &[u8]) -> Result<(), Malformed> {
        let check = |value: &[u8]| match value_length(value) {
            Ok(length) if length == value.len() => Ok(Bytes::copy_from_slice(value)),
            _ => Err(Malformed("an amendment that is no value".to_owned())),
        };
        match value {
            [] => {
                self.set.insert(name.to_owned(), None);
            }
            [FORMAT, format @ ..] => {
                let format = format.try_into().map(u32::from_be_bytes);
                self.format =
                    format.map_err(|_| Malformed("a format of too many bytes".to_owned()))?;
            }
            [FIELD, value @ ..] => {
                let field = Field::from_name(name);
                let field = field.ok_or_else(|| Malformed(format!("'{name}' is no field")))?;
                self.fields.insert(field, check(value)?);
            }
            [SETTING, value @ ..] => {
                let setting = Setting::ALL.into_iter().find(|it| it.name() == name);
                let setting =
                    setting.ok_or_else(|| Malformed(format!("'{name}' is no setting")))?;
                self.settings.insert(setting, check(value)?);
            }
            value => {
                self.set.insert(name.to_owned(), Some(check(value)?));
            }
        }
        Ok(())
    }
}
