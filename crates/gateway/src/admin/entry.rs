//! Entries and feeds: the descriptions of entities, rules and the namespace in answers
//! (`administration.md#entries-and-feeds`).
//!
//! Every element is always present, in the service's order, because clients fail without; only
//! texts that are not set are left out.

use super::target::encode;
use super::text;
use super::write::Writer;
use super::xml::{ATOM, INSTANCE, SERVICE_BUS};
use super::{BaseUrl, MESSAGE_SIZE_SINCE, rule};
use jitney_base::address::split_subscription;
use jitney_base::rights::{AuthorizationRule, Key, Right};
use jitney_base::time::{Millis, Timestamp};
use jitney_broker::namespace::Tier;
use jitney_broker::namespace::administration::{Counts, EntityView, NamespaceView, RuleView};
use jitney_queue::{Description, EntityKind};

const KIBI: u64 = 1024;

/// A resource that an entry describes.
pub(super) trait Resource {
    /// Returns its path.
    fn path(&self) -> String;
    /// Returns its name.
    fn title(&self, place: &BaseUrl) -> String;
    /// Returns when it was made, and when it was last changed.
    fn times(&self) -> (Timestamp, Timestamp);
    /// Returns the name of its description.
    fn description(&self) -> &'static str;
    /// Writes the elements of its description.
    fn write(&self, place: &BaseUrl, out: &mut Writer);
}

/// Writes the entry of a resource at a URL, as a document or a part of a feed.
fn write(out: &mut Writer, place: &BaseUrl, resource: &impl Resource, url: &str, attributes: &str) {
    out.within("entry", attributes, |out| {
        let (published, updated) = resource.times();
        out.leaf("id", url);
        out.leaf_with("title", " type=\"text\"", resource.title(place));
        out.leaf("published", text::time(published));
        out.leaf("updated", text::time(updated));
        out.within("author", "", |out| out.leaf("name", place.namespace()));
        out.link("self", url);
        out.within("content", " type=\"application/xml\"", |out| {
            let spaces = format!(" xmlns=\"{SERVICE_BUS}\" xmlns:i=\"{INSTANCE}\"");
            out.within(resource.description(), &spaces, |out| {
                resource.write(place, out);
            });
        });
    });
}

/// Returns the document that has one entry.
pub(super) fn entry(place: &BaseUrl, resource: &impl Resource) -> String {
    let mut out = Writer::document();
    let attributes = format!(" xmlns=\"{ATOM}\"");
    write(&mut out, place, resource, &place.spelled_url(), &attributes);
    out.finish()
}

/// Returns the document that has entries. Python takes the second link for the next page, whatever
/// its relation, so there is one only if there is a page.
pub(super) fn feed<T: Resource>(
    place: &BaseUrl,
    title: &str,
    resources: &[T],
    next: Option<&str>,
) -> String {
    let updated = resources.iter().map(|resource| resource.times().1).max();
    let mut out = Writer::document();
    out.within("feed", &format!(" xmlns=\"{ATOM}\""), |out| {
        out.leaf_with("title", " type=\"text\"", title);
        out.leaf("id", place.own_url());
        out.leaf("updated", text::time_or_never(updated));
        out.link("self", &place.own_url());
        if let Some(next) = next {
            out.link("next", next);
        }
        for resource in resources {
            let url = place.url_in_list(&resource.path(), &resource.title(place));
            write(out, place, resource, &url, "");
        }
    });
    out.finish()
}

impl Resource for EntityView {
    fn path(&self) -> String {
        self.path.clone()
    }

    fn title(&self, _: &BaseUrl) -> String {
        let name = match self.description.kind {
            EntityKind::Subscription => split_subscription(&self.path).map(|(_, name)| name),
            EntityKind::Queue | EntityKind::Topic => None,
        };
        name.unwrap_or(&self.path).to_owned()
    }

    fn times(&self) -> (Timestamp, Timestamp) {
        let history = self.description.history;
        (history.created_at, history.updated_at)
    }

    fn description(&self) -> &'static str {
        match self.description.kind {
            EntityKind::Queue => "QueueDescription",
            EntityKind::Topic => "TopicDescription",
            EntityKind::Subscription => "SubscriptionDescription",
        }
    }

    fn write(&self, place: &BaseUrl, out: &mut Writer) {
        match self.description.kind {
            EntityKind::Queue => queue(self, place, out),
            EntityKind::Topic => topic(self, place, out),
            EntityKind::Subscription => subscription(self, place, out),
        }
    }
}

fn queue(view: &EntityView, place: &BaseUrl, out: &mut Writer) {
    let is = &view.description;
    duration(out, "LockDuration", is.lock_duration);
    out.leaf("MaxSizeInMegabytes", megabytes(is));
    out.leaf("RequiresDuplicateDetection", is.detects_duplicates);
    out.leaf("RequiresSession", is.requires_session);
    duration(out, "DefaultMessageTimeToLive", is.default_time_to_live);
    out.leaf(
        "DeadLetteringOnMessageExpiration",
        is.dead_letter_on_expiration,
    );
    duration(
        out,
        "DuplicateDetectionHistoryTimeWindow",
        is.duplicate_window,
    );
    out.leaf("MaxDeliveryCount", is.max_delivery_count);
    out.leaf("EnableBatchedOperations", is.batched_operations);
    out.leaf("SizeInBytes", view.bytes);
    out.leaf("MessageCount", total(&view.counts));
    out.leaf("IsAnonymousAccessible", false);
    authorization(out, &is.authorization);
    out.leaf("Status", text::status(is.status));
    forward_to(out, is, place);
    out.optional("UserMetadata", is.user_metadata.as_ref());
    times(out, view);
    out.leaf("SupportOrdering", is.supports_ordering);
    counts(out, &view.counts);
    duration(out, "AutoDeleteOnIdle", is.auto_delete_on_idle);
    out.leaf("EnablePartitioning", is.partitioned);
    out.leaf("EntityAvailabilityStatus", "Available");
    forward_dead_letters_to(out, is, place);
    out.leaf("EnableExpress", is.express);
    max_message_size(is, place, out);
}

fn topic(view: &EntityView, place: &BaseUrl, out: &mut Writer) {
    let is = &view.description;
    duration(out, "DefaultMessageTimeToLive", is.default_time_to_live);
    out.leaf("MaxSizeInMegabytes", megabytes(is));
    out.leaf("RequiresDuplicateDetection", is.detects_duplicates);
    duration(
        out,
        "DuplicateDetectionHistoryTimeWindow",
        is.duplicate_window,
    );
    out.leaf("EnableBatchedOperations", is.batched_operations);
    out.leaf("SizeInBytes", view.bytes);
    out.leaf("FilteringMessagesBeforePublishing", false);
    out.leaf("IsAnonymousAccessible", false);
    authorization(out, &is.authorization);
    out.leaf("Status", text::status(is.status));
    out.optional("UserMetadata", is.user_metadata.as_ref());
    times(out, view);
    out.leaf("SupportOrdering", is.supports_ordering);
    counts(out, &view.counts);
    out.leaf("SubscriptionCount", view.subscriptions);
    out.leaf("SqlFilterCount", view.sql_filters);
    out.leaf("CorrelationFilterCount", view.correlation_filters);
    duration(out, "AutoDeleteOnIdle", is.auto_delete_on_idle);
    out.leaf("EnablePartitioning", is.partitioned);
    out.leaf("EntityAvailabilityStatus", "Available");
    out.leaf("EnableSubscriptionPartitioning", false);
    out.leaf("EnableExpress", is.express);
    max_message_size(is, place, out);
}

/// Clients of an older version send back the elements they got, and this one would be refused.
fn max_message_size(is: &Description, place: &BaseUrl, out: &mut Writer) {
    if !place.is_before(MESSAGE_SIZE_SINCE) {
        out.leaf("MaxMessageSizeInKilobytes", is.max_message_bytes / KIBI);
    }
}

fn subscription(view: &EntityView, place: &BaseUrl, out: &mut Writer) {
    let is = &view.description;
    duration(out, "LockDuration", is.lock_duration);
    out.leaf("RequiresSession", is.requires_session);
    duration(out, "DefaultMessageTimeToLive", is.default_time_to_live);
    out.leaf(
        "DeadLetteringOnMessageExpiration",
        is.dead_letter_on_expiration,
    );
    let on_error = is.dead_letter_on_filter_error;
    out.leaf("DeadLetteringOnFilterEvaluationExceptions", on_error);
    out.leaf("MessageCount", total(&view.counts));
    out.leaf("MaxDeliveryCount", is.max_delivery_count);
    out.leaf("EnableBatchedOperations", is.batched_operations);
    out.leaf("Status", text::status(is.status));
    forward_to(out, is, place);
    times(out, view);
    counts(out, &view.counts);
    out.optional("UserMetadata", is.user_metadata.as_ref());
    forward_dead_letters_to(out, is, place);
    duration(out, "AutoDeleteOnIdle", is.auto_delete_on_idle);
    out.leaf("EntityAvailabilityStatus", "Available");
}

fn duration(out: &mut Writer, name: &str, length: Millis) {
    out.leaf(name, text::duration(length));
}

const fn megabytes(description: &Description) -> u64 {
    description.max_bytes / (KIBI * KIBI)
}

fn times(out: &mut Writer, view: &EntityView) {
    let history = view.description.history;
    out.leaf("CreatedAt", text::time(history.created_at));
    out.leaf("UpdatedAt", text::time(history.updated_at));
    // A subscription counts as used when it is made, as Go's own tests show.
    let made = (view.description.kind == EntityKind::Subscription).then_some(history.created_at);
    let accessed_at = view.accessed_at.or(made);
    out.leaf("AccessedAt", text::time_or_never(accessed_at));
}

fn forward_to(out: &mut Writer, is: &Description, place: &BaseUrl) {
    let (path, given) = (&is.forward_to, &is.forward_to_address);
    out.optional(
        "ForwardTo",
        forward(place, path.as_deref(), given.as_deref()),
    );
}

fn forward_dead_letters_to(out: &mut Writer, is: &Description, place: &BaseUrl) {
    let (path, given) = (
        &is.forward_dead_letters_to,
        &is.forward_dead_letters_to_address,
    );
    let target = forward(place, path.as_deref(), given.as_deref());
    out.optional("ForwardDeadLetteredMessagesTo", target);
}

/// Returns the forwarding target: the URL that was given, or the one that clients make of a path
/// before they send it back.
fn forward(place: &BaseUrl, path: Option<&str>, given: Option<&str>) -> Option<String> {
    let path = path?;
    let made = || format!("sb://{}/{}", place.host(), encode(path));
    Some(given.map_or_else(made, str::to_owned))
}

const fn total(counts: &Counts) -> usize {
    counts.active
        + counts.dead_letters
        + counts.scheduled
        + counts.transfer
        + counts.transfer_dead_letters
}

/// Writes the numbers of messages. JavaScript wants the one declaration, and its prefix.
fn counts(out: &mut Writer, counts: &Counts) {
    const SPACE: &str =
        " xmlns:d2p1=\"http://schemas.microsoft.com/netservices/2011/06/servicebus\"";
    out.within("CountDetails", SPACE, |out| {
        out.leaf("d2p1:ActiveMessageCount", counts.active);
        out.leaf("d2p1:DeadLetterMessageCount", counts.dead_letters);
        out.leaf("d2p1:ScheduledMessageCount", counts.scheduled);
        out.leaf("d2p1:TransferMessageCount", counts.transfer);
        out.leaf(
            "d2p1:TransferDeadLetterMessageCount",
            counts.transfer_dead_letters,
        );
    });
}

fn authorization(out: &mut Writer, rules: &[AuthorizationRule]) {
    if rules.is_empty() {
        return out.empty("AuthorizationRules", "");
    }
    out.within("AuthorizationRules", "", |out| {
        for rule in rules {
            let class = " i:type=\"SharedAccessAuthorizationRule\"";
            out.within("AuthorizationRule", class, |out| {
                out.leaf("ClaimType", "SharedAccessKey");
                out.leaf("ClaimValue", "None");
                out.within("Rights", "", |out| {
                    for right in [Right::Manage, Right::Send, Right::Listen] {
                        if rule.rights.allow(right) {
                            out.leaf("AccessRights", right);
                        }
                    }
                });
                out.optional("CreatedTime", rule.created_at.map(text::time));
                out.optional("ModifiedTime", rule.modified_at.map(text::time));
                out.leaf("KeyName", &rule.name);
                out.leaf("PrimaryKey", rule.primary_key.expose());
                let secondary = rule.secondary_key.as_ref();
                out.optional("SecondaryKey", secondary.map(Key::expose));
            });
        }
    });
}

impl Resource for RuleView {
    fn path(&self) -> String {
        format!("{}/Rules/{}", self.subscription, self.rule.name)
    }

    fn title(&self, _: &BaseUrl) -> String {
        self.rule.name.clone()
    }

    fn times(&self) -> (Timestamp, Timestamp) {
        (self.rule.created_at, self.rule.created_at)
    }

    fn description(&self) -> &'static str {
        "RuleDescription"
    }

    fn write(&self, _: &BaseUrl, out: &mut Writer) {
        rule::write(out, self);
    }
}

impl Resource for NamespaceView {
    fn path(&self) -> String {
        "$namespaceinfo".to_owned()
    }

    fn title(&self, place: &BaseUrl) -> String {
        if self.name.is_empty() {
            place.namespace().to_owned()
        } else {
            self.name.clone()
        }
    }

    fn times(&self) -> (Timestamp, Timestamp) {
        (self.created_at, self.created_at)
    }

    fn description(&self) -> &'static str {
        "NamespaceInfo"
    }

    fn write(&self, place: &BaseUrl, out: &mut Writer) {
        let created = text::time(self.created_at);
        out.leaf("CreatedTime", &created);
        match self.tier {
            Tier::Standard => out.leaf("MessagingSKU", "Standard"),
            Tier::Premium => {
                out.leaf("MessagingSKU", "Premium");
                out.leaf("MessagingUnits", 1);
            }
        }
        out.leaf("ModifiedTime", &created);
        out.leaf("Name", self.title(place));
        out.leaf("NamespaceType", "Messaging");
    }
}
