//! The properties of an entity, as an administrator gives them.

use std::fmt::Display;

use crate::limits;
use crate::namespace::denied::field_of;
use crate::namespace::{Denied, DeniedKind, Tier, WrongField};
use jitney_base::rights::{AuthorizationRule, Rights};
use jitney_base::time::Millis;
use jitney_queue::{Description, EntityKind, Status};

/// Properties of a queue, a topic or a subscription; `None` is what was not given. Those that an
/// entity of its kind does not have are passed over.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// `LockDuration`
    pub lock_duration: Option<Millis>,
    /// `MaxSizeInMegabytes`
    pub max_size_megabytes: Option<u64>,
    /// `RequiresDuplicateDetection`
    pub requires_duplicate_detection: Option<bool>,
    /// `RequiresSession`
    pub requires_session: Option<bool>,
    /// `DefaultMessageTimeToLive`; [`Millis::MAX`] for the service's largest.
    pub default_time_to_live: Option<Millis>,
    /// `DeadLetteringOnMessageExpiration`
    pub dead_letter_on_expiration: Option<bool>,
    /// `DeadLetteringOnFilterEvaluationExceptions`
    pub dead_letter_on_filter_error: Option<bool>,
    /// `DuplicateDetectionHistoryTimeWindow`
    pub duplicate_window: Option<Millis>,
    /// `MaxDeliveryCount`
    pub max_delivery_count: Option<u32>,
    /// `EnableBatchedOperations`
    pub batched_operations: Option<bool>,
    /// `AuthorizationRules`
    pub authorization: Option<Vec<AuthorizationRule>>,
    /// `Status`
    pub status: Option<Status>,
    /// `ForwardTo`, as it was written: a path or a URL; empty for none.
    pub forward_to: Option<String>,
    /// `ForwardDeadLetteredMessagesTo`, likewise.
    pub forward_dead_letters_to: Option<String>,
    /// `UserMetadata`
    pub user_metadata: Option<String>,
    /// `SupportOrdering`
    pub supports_ordering: Option<bool>,
    /// `AutoDeleteOnIdle`; [`Millis::MAX`] for never.
    pub auto_delete_on_idle: Option<Millis>,
    /// `EnablePartitioning`
    pub partitioned: Option<bool>,
    /// `EnableExpress`
    pub express: Option<bool>,
    /// `MaxMessageSizeInKilobytes`
    pub max_message_kilobytes: Option<u64>,
}

/// The problem of a property: its element, what was found, and what is allowed.
pub struct Wrong {
    text: String,
    field: Option<WrongField>,
}

impl Wrong {
    fn new(element: &str, found: impl Display, allowed: &str) -> Self {
        let name = field_of(element);
        Self {
            text: format!("{element}: found '{found}'; allowed: {allowed}."),
            field: name.map(|name| WrongField {
                name: name.into(),
                allowed: Some(allowed.to_owned()),
            }),
        }
    }
}

impl From<Wrong> for Denied {
    fn from(wrong: Wrong) -> Self {
        Self {
            field: wrong.field.map(Box::new),
            ..Self::new(DeniedKind::InvalidField, wrong.text, "")
        }
    }
}

impl Properties {
    /// Returns the description that these properties make of an entity: of a new one of this kind,
    /// or of one that is there. What is not given gets its default; what cannot be changed, and
    /// authorization rules, stay as they are.
    ///
    /// Where it forwards to is left as it was written.
    ///
    /// # Errors
    ///
    /// The problem.
    pub fn describe(
        &self,
        kind: EntityKind,
        existing: Option<&Description>,
        tier: Tier,
    ) -> Result<Description, Wrong> {
        let default = Description {
            kind,
            max_message_bytes: tier.message_size_default(),
            ..Description::default()
        };
        let before = existing.unwrap_or(&default);
        self.described(before, &default, tier)
    }

    fn described(
        &self,
        before: &Description,
        default: &Description,
        tier: Tier,
    ) -> Result<Description, Wrong> {
        self.check()?;
        let way = |to: &Option<String>| to.clone().filter(|to| !to.is_empty());
        let mut description = Description {
            kind: default.kind,
            lock_duration: self.lock_duration.unwrap_or(default.lock_duration),
            default_time_to_live: self.default_time_to_live.unwrap_or(Millis::MAX),
            max_delivery_count: self
                .max_delivery_count
                .unwrap_or(default.max_delivery_count),
            dead_letter_on_expiration: self.dead_letter_on_expiration.unwrap_or(false),
            dead_letter_on_filter_error: self.dead_letter_on_filter_error.unwrap_or(true),
            status: self.status.unwrap_or(Status::Active),
            requires_session: self.requires_session.unwrap_or(before.requires_session),
            detects_duplicates: self
                .requires_duplicate_detection
                .unwrap_or(before.detects_duplicates),
            duplicate_window: self.duplicate_window.unwrap_or(default.duplicate_window),
            partitioned: self.partitioned.unwrap_or(before.partitioned),
            forward_to: way(&self.forward_to),
            forward_to_address: None,
            forward_dead_letters_to: way(&self.forward_dead_letters_to),
            forward_dead_letters_to_address: None,
            auto_delete_on_idle: self.auto_delete_on_idle.unwrap_or(Millis::MAX),
            temporary: before.temporary,
            user_metadata: self.user_metadata.clone().filter(|text| !text.is_empty()),
            batched_operations: self.batched_operations.unwrap_or(true),
            supports_ordering: self.supports_ordering.unwrap_or(true),
            express: self.express.unwrap_or(false),
            authorization: self.authorization(before)?,
            max_bytes: self.max_bytes(before, default, tier)?,
            max_message_bytes: self.max_message_bytes(default, tier)?,
            history: before.history,
        };
        match default.kind {
            EntityKind::Queue => {}
            EntityKind::Topic => {
                description.requires_session = false;
                description.forward_to = None;
                description.forward_dead_letters_to = None;
            }
            EntityKind::Subscription => {
                // A subscription's messages count to its topic, whose sizes apply.
                description.max_bytes = u64::MAX;
                description.max_message_bytes = jitney_base::limits::MESSAGE_SIZE_MAX;
                description.detects_duplicates = false;
                description.partitioned = before.partitioned;
                // Its topic's hold for it.
                description.authorization = Vec::new();
            }
        }
        if description.express && description.detects_duplicates {
            let text = "Both DelayedPersistence property and RequiresDuplicateDetection property cannot be \
                 enabled together.";
            return Err(Wrong {
                text: text.to_owned(),
                field: Some(WrongField {
                    name: "express".into(),
                    allowed: None,
                }),
            });
        }
        Ok(description)
    }

    /// Checks what is given by itself.
    fn check(&self) -> Result<(), Wrong> {
        let durations = [
            (
                "LockDuration",
                self.lock_duration,
                jitney_base::limits::LOCK_DURATION_MIN..=jitney_base::limits::LOCK_DURATION_MAX,
                "PT1S to PT5M",
            ),
            (
                "DefaultMessageTimeToLive",
                self.default_time_to_live,
                jitney_base::limits::TIME_TO_LIVE_MIN..=Millis::MAX,
                "PT1S or more",
            ),
            (
                "DuplicateDetectionHistoryTimeWindow",
                self.duplicate_window,
                limits::DUPLICATE_WINDOW_MIN..=jitney_base::limits::DUPLICATE_WINDOW_MAX,
                "PT20S to P7D",
            ),
            (
                "AutoDeleteOnIdle",
                self.auto_delete_on_idle,
                jitney_base::limits::IDLE_DELETION_MIN..=Millis::MAX,
                "PT5M or more",
            ),
        ];
        for (element, value, allowed, words) in durations {
            if let Some(value) = value.filter(|value| !allowed.contains(value)) {
                let found = value.to_iso_text();
                return Err(Wrong::new(element, found, words));
            }
        }
        if self.max_delivery_count == Some(0) {
            return Err(Wrong::new("MaxDeliveryCount", 0, "1 or more"));
        }
        let length = self.user_metadata.as_deref().unwrap_or_default();
        let length = length.chars().count();
        if limits::USER_METADATA_MAX < length {
            let max = limits::USER_METADATA_MAX;
            let found = format!("{length} characters");
            let allowed = format!("{max} characters or less");
            return Err(Wrong::new("UserMetadata", found, &allowed));
        }
        Ok(())
    }

    /// Returns the size of the entity: that of each of its partitions, as the size is asked for, and
    /// told, as in the service, for all of them together.
    fn max_bytes(
        &self,
        before: &Description,
        default: &Description,
        tier: Tier,
    ) -> Result<u64, Wrong> {
        const MEGABYTE: u64 = 1024 * 1024;
        let asked = match self.max_size_megabytes {
            // Clients send it back as they read it, and may read 0 from others.
            None | Some(0) => Some(default.max_bytes),
            Some(size) => size.checked_mul(MEGABYTE),
        };
        // What an update sends back as it was read, which for a file may be any size.
        if asked == Some(before.max_bytes) {
            return Ok(before.max_bytes);
        }
        if let Some(size) = self.max_size_megabytes.filter(|&size| size != 0) {
            let sizes = limits::ENTITY_SIZES_MEGABYTES;
            let (usual, premium) = sizes.split_at(limits::ENTITY_SIZES_STANDARD);
            let allowed = match tier {
                Tier::Standard => usual,
                Tier::Premium => &sizes[..],
            };
            if !allowed.contains(&size) {
                let list = |sizes: &[u64]| {
                    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
                    sizes.join(", ")
                };
                let words = format!("{}; in Premium also {}", list(usual), list(premium));
                return Err(Wrong::new("MaxSizeInMegabytes", size, &words));
            }
        }
        let is_partitioned = self.partitioned.unwrap_or(before.partitioned);
        let times = if is_partitioned {
            limits::PARTITIONED_SIZES
        } else {
            1
        };
        asked
            .and_then(|asked| asked.checked_mul(times))
            .ok_or_else(|| {
                let size = self.max_size_megabytes.unwrap_or_default();
                Wrong::new("MaxSizeInMegabytes", size, "a size that is possible")
            })
    }

    fn max_message_bytes(&self, default: &Description, tier: Tier) -> Result<u64, Wrong> {
        let max = tier.message_size_max() / 1024;
        match self.max_message_kilobytes {
            None | Some(0) => Ok(default.max_message_bytes),
            Some(size) if size <= max => Ok(size * 1024),
            Some(size) => Err(Wrong::new(
                "MaxMessageSizeInKilobytes",
                size,
                &format!("1 to {max}, as the namespace is {tier}"),
            )),
        }
    }

    fn authorization(&self, before: &Description) -> Result<Vec<AuthorizationRule>, Wrong> {
        let Some(wanted) = &self.authorization else {
            return Ok(before.authorization.clone());
        };
        Self::check_authorization(wanted)?;
        Ok(wanted.clone())
    }

    /// Checks the authorization rules of an entity.
    pub(super) fn check_authorization(wanted: &[AuthorizationRule]) -> Result<(), Wrong> {
        let max = jitney_base::limits::AUTHORIZATION_RULES_MAX;
        if max < wanted.len() {
            let found = format!("{} rules", wanted.len());
            let allowed = format!("{max} rules or less");
            return Err(Wrong::new("AuthorizationRules", found, &allowed));
        }
        for (at, rule) in wanted.iter().enumerate() {
            let fits = |text: &str| {
                let length = text.chars().count();
                (1..=jitney_base::limits::AUTHORIZATION_TEXT_MAX).contains(&length)
            };
            let before = wanted.iter().take(at);
            if !fits(&rule.name) || before.clone().any(|other| other.name == rule.name) {
                return Err(Wrong::new(
                    "KeyName",
                    &rule.name,
                    "1 to 256 characters that no other rule of the entity has for its name",
                ));
            }
            if !rule.keys().all(|key| fits(key.expose())) {
                // A key is a secret.
                return Err(Wrong::new("PrimaryKey", "..", "1 to 256 characters"));
            }
            if rule.rights == Rights::default() {
                return Err(Wrong::new("Rights", "none", "Send, Listen and Manage"));
            }
        }
        Ok(())
    }
}
