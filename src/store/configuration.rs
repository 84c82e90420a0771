//! The configuration that servers share: a text of Config.json, and what it says.

use aws_lc_rs::digest::{SHA256, digest};
use tracing::error;

use crate::host::configuration::ConfigurationReading;
use crate::host::owner_message::Reloaded;
use jitney_config::{Configuration, Namespace};

/// The store's configuration, as this server has read it last.
#[derive(Debug, Clone)]
pub(crate) struct StoreConfiguration {
    /// It grows with each that is written; 0 where none was, and the emulator's default entities count.
    pub(crate) number: i64,
    /// Of the text.
    pub(crate) hash: String,
    pub(crate) config: Configuration,
}

/// What became of a text that was to be the store's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Published {
    /// It counts now.
    Written(i64),
    /// Another server was faster: the store has had it since then.
    Known(i64),
}

impl Published {
    /// Returns the text's number.
    pub(crate) const fn number(self) -> i64 {
        let (Self::Written(number) | Self::Known(number)) = self;
        number
    }
}

impl StoreConfiguration {
    /// Returns what is configured of a namespace.
    pub(super) fn namespace(&self, name: &str) -> Namespace {
        let mut all = self.config.namespaces.iter();
        let found = all.find(|it| it.name.eq_ignore_ascii_case(name));
        found.cloned().unwrap_or_else(|| Namespace::empty(name))
    }

    /// Returns what is configured of a namespace that a configuration was applied to. Entities that a configuration names are made
    /// once: those that were deleted since stay so.
    pub(super) fn namespace_without_entities(&self, name: &str) -> Namespace {
        let mut found = self.namespace(name);
        found.queues.clear();
        found.topics.clear();
        found
    }
}

/// The name of the configuration in messages about its mistakes.
const PLACE: &str = "the store's configuration";

/// Reads the text of the store's configuration.
///
/// # Errors
///
/// All mistakes in it.
pub(crate) fn parse(text: &str) -> Result<Configuration, String> {
    ConfigurationReading::SHARED.parse(PLACE, text)
}

/// Says what of a configuration could not be applied to a namespace.
pub(super) fn report_refused(namespace: &str, done: &Reloaded) {
    for refused in &done.refused {
        error!(
            namespace,
            "the configuration cannot be applied in this part: {refused}"
        );
    }
}

/// Returns the hash by which a text is known.
pub(crate) fn hash_of(text: &str) -> String {
    let sum = digest(&SHA256, text.as_bytes());
    let bytes = sum.as_ref().iter();
    bytes.fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
