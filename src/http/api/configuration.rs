//! A namespace as the emulator's `Config.json`, and such a file applied to a namespace.

use axum::body::Body;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json as object};
use utoipa::{IntoParams, ToSchema};

use super::call::{Answer, Call};
use super::page::Text;
use super::problem::Problem;
use super::rules::SubscriptionRules;
use crate::host::owner_message::{OwnerMessage, Reload, Reloaded};
use crate::limits;
use jitney_api::configuration::Applied;
use jitney_base::address;
use jitney_base::rights::{AuthorizationRule, Right};
use jitney_base::time::Millis;
use jitney_broker::access::Authority;
use jitney_broker::namespace::Tier;
use jitney_broker::namespace::administration::{
    EntityView, ListEntities, Listed, More, ReadEntity, ReadNamespace,
};
use jitney_config::{Configuration, Defaults, Mistake, Namespace, constant_to_json};
use jitney_gateway::admin::{duration, status};
use jitney_gateway::operations::{Note, ReadNames};
use jitney_queue::{Description, Status};
use jitney_rules::{CorrelationFields, Filter, Rule};

/// What a configuration has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ConfigurationQuery {
    /// With the authorization rules of queues and topics, and so with their keys.
    #[serde(default)]
    keys: bool,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// A `Config.json` of the emulator.
#[derive(ToSchema)]
#[schema(value_type = Object)]
#[expect(dead_code, reason = "it describes what is written piece by piece")]
pub(super) struct ConfigJson(Value);

/// Returns the entities of the namespace as a `Config.json` of the emulator, which a broker can be started with.
#[utoipa::path(get, path = "/api/v1/configuration", operation_id = "get_configuration", tag = "configuration", params(ConfigurationQuery),
    responses((status = 200, body = ConfigJson), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>) -> Answer {
    let query: ConfigurationQuery = call.query()?;
    let authority = call.authorize("").await?;
    let name = namespace_name(call, &authority).await?;
    if query.keys {
        let note = Note::KeysRead(None);
        call.request(authority.clone(), note).await?;
    }
    let mut export = Export {
        call,
        authority,
        keys: query.keys,
        unsaid: Vec::new(),
    };
    let view = call
        .request(export.authority.clone(), ReadNamespace)
        .await?;
    let sku = match view.tier {
        Tier::Standard => "Standard",
        Tier::Premium => "Premium",
    };
    // What is read at a time: entities, or rules.
    call.reserve_sources(jitney_gateway::limits::ANSWER_PAGE_BYTES)
        .await?;
    let mut text = Text::begin(call, limits::ANSWER_STEP_BYTES).await?;
    text.push(r#"{"UserConfig":{"Logging":{"Type":"Console"},"Namespaces":["#)?;
    text.open_object(&object!({"Name": name, "Sku": sku}))?;
    text.push(r#","Queues":["#)?;
    export.queues(&mut text).await?;
    text.push(r#"],"Topics":["#)?;
    export.topics(&mut text).await?;
    text.push("]}]}}")?;
    if !export.unsaid.is_empty() {
        let told = export.unsaid.join("\n");
        let told = format!("Config.json cannot express all of the namespace.\n{told}");
        return Err(Problem::new(StatusCode::CONFLICT, "not_allowed", told));
    }
    Ok(text.respond(StatusCode::OK))
}

/// Which namespace of a file is meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PutQuery {
    /// Its name in the file; without it, the one with the name of this namespace is meant, or the only one if it has no name.
    from: Option<String>,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Makes and changes the entities that a `Config.json` of the emulator names. Other entities stay as they are, and so do the
/// keys of the namespace. If the file has several namespaces, it is the one with the name of this namespace that counts.
#[utoipa::path(put, path = "/api/v1/configuration", operation_id = "put_configuration", tag = "configuration", request_body = ConfigJson, params(PutQuery),
    responses((status = 200, body = Applied), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn put(call: &Call<'_>, body: Body) -> Answer {
    let query: PutQuery = call.query()?;
    let authority = call.authorize("").await?;
    let name = namespace_name(call, &authority).await?;
    let bytes = call.bytes(body).await?;
    let (config, warnings) = parsed(&bytes)?;
    let reload = Box::new(Reload {
        namespaces: vec![chosen(config, &name, query.from.as_deref())?],
        new: Vec::new(),
        deleted: Vec::new(),
        keys: None,
        actor: authority.actor().clone(),
    });
    let owner = call.server.shards.owner_of(&call.host);
    let owner = owner.ok_or_else(Problem::stopping)?;
    let done = owner
        .ask(|answer| OwnerMessage::Reload(reload, answer))
        .await;
    let Reloaded {
        made,
        changed,
        refused,
        ..
    } = done.ok_or_else(Problem::stopping)?;
    call.answer(
        StatusCode::OK,
        &Applied {
            made,
            changed,
            refused,
            warnings,
        },
    )
    .await
}

/// Returns the configuration in the body of a request, and a line for each name in it that has no effect.
pub(super) fn parsed(body: &[u8]) -> Result<(Configuration, Vec<String>), Problem> {
    let text = str::from_utf8(body);
    let text = text.map_err(|_| Problem::bad_request("The body is not UTF-8."))?;
    let checked = jitney_config::check(text, Defaults::Emulator);
    let line = |mistake: &Mistake| {
        let (line, column) = (mistake.line, mistake.column);
        format!("{line}:{column}: {mistake}")
    };
    let config = checked.config.map_err(|mistakes| {
        let lines = mistakes.iter().map(line);
        Problem::bad_request(lines.collect::<Vec<_>>().join("\n"))
    })?;
    let warnings = checked.warnings.iter().map(line).collect();
    Ok((config, warnings))
}

/// Returns the namespace of a configuration that is meant for the one with this name: the one that is named `from`, if that is
/// given.
pub(super) fn chosen(
    config: Configuration,
    name: &str,
    from: Option<&str>,
) -> Result<Namespace, Problem> {
    let wanted = from.unwrap_or(name);
    let names = config.namespaces.iter().map(|it| format!("'{}'", it.name));
    let names: Vec<String> = names.collect();
    let is_only = names.len() == 1 && from.is_none();
    let mut all = config.namespaces.into_iter();
    let found = all.find(|namespace| {
        let is_unnamed = is_only && namespace.name.is_empty();
        is_unnamed || namespace.name.eq_ignore_ascii_case(wanted)
    });
    let found = found.ok_or_else(|| {
        let names = names.join(", ");
        let text = format!(
            "UserConfig.Namespaces: none of them has the name '{wanted}'; there is {names}. Ask with from=NAME to make the \
             entities of one of these in '{name}'."
        );
        Problem::wrong("from", text)
    })?;
    Ok(Namespace {
        name: name.to_owned(),
        ..found
    })
}

/// Returns the name of the namespace, for a client that may manage all of it.
async fn namespace_name(call: &Call<'_>, authority: &Authority) -> Result<String, Problem> {
    let names = ReadNames {
        path: None,
        right: Right::Manage,
    };
    let names = call.request(authority.clone(), names).await?;
    Ok(names.namespace)
}

/// The entities of a namespace, read page by page.
struct Export<'a> {
    call: &'a Call<'a>,
    authority: Authority,
    keys: bool,
    /// What the file cannot say: the first sentences of it.
    unsaid: Vec<String>,
}

impl Export<'_> {
    /// Returns some entities, and whether there are more.
    async fn entities(
        &self,
        what: &Listed,
        skip: usize,
    ) -> Result<(Vec<EntityView>, More), Problem> {
        let list = ListEntities {
            what: what.clone(),
            skip,
            top: jitney_broker::limits::LISTED_MAX,
        };
        let page = self.call.request(self.authority.clone(), list).await?;
        Ok((page.entries, page.more))
    }

    /// Notes what the file cannot say.
    fn note(&mut self, unsaid: String) {
        if self.unsaid.len() < jitney_gateway::limits::INSPECTED_MAX {
            self.unsaid.push(unsaid);
        }
    }

    /// Notes that an entity has a name which one of the file cannot have.
    fn note_name(&mut self, path: &str) {
        self.note(format!(
            "'{path}' has a name that an entity of a file cannot have."
        ));
    }

    /// Notes what of a queue or a topic the file cannot say.
    async fn check(&mut self, view: &EntityView) -> Result<(), Problem> {
        if !address::is_entity_name(&view.path) {
            self.note_name(&view.path);
        }
        self.check_forwards(view).await
    }

    /// Notes forwards to nothing.
    async fn check_forwards(&mut self, view: &EntityView) -> Result<(), Problem> {
        let path = &view.path;
        let description = &view.description;
        let forwards = [
            &description.forward_to,
            &description.forward_dead_letters_to,
        ];
        for target in forwards.into_iter().flatten() {
            let read = ReadEntity {
                path: target.clone(),
            };
            let answer = self.call.request(self.authority.clone(), read);
            match answer.await {
                Ok(_) => {}
                Err(problem) if problem.is_not_found() => self.note(format!(
                    "'{path}' forwards to '{target}', which does not exist: a broker would not start with it."
                )),
                Err(problem) => return Err(problem),
            }
        }
        Ok(())
    }

    async fn queues(&mut self, text: &mut Text) -> Result<(), Problem> {
        let (mut count, mut more) = (0, More::Yes);
        while more == More::Yes {
            let (found, further) = self.entities(&Listed::Queues(String::new()), count).await?;
            for view in &found {
                self.check(view).await?;
                let mut properties = common(&view.description);
                properties.extend(of_receivers(&view.description));
                text.separate(count)?;
                text.write_value(&self.entity(view, properties))?;
                count += 1;
            }
            more = further;
        }
        Ok(())
    }

    async fn topics(&mut self, text: &mut Text) -> Result<(), Problem> {
        let (mut count, mut more) = (0, More::Yes);
        while more == More::Yes {
            let (found, further) = self.entities(&Listed::Topics(String::new()), count).await?;
            for view in found {
                self.check(&view).await?;
                text.separate(count)?;
                text.open_object(&self.entity(&view, common(&view.description)))?;
                text.push(r#","Subscriptions":["#)?;
                self.subscriptions(text, view.path).await?;
                text.push("]}")?;
                count += 1;
            }
            more = further;
        }
        Ok(())
    }

    async fn subscriptions(&mut self, text: &mut Text, topic: String) -> Result<(), Problem> {
        let what = Listed::Subscriptions(topic);
        let (mut count, mut more) = (0, More::Yes);
        while more == More::Yes {
            let (found, further) = self.entities(&what, count).await?;
            for view in &found {
                text.separate(count)?;
                self.subscription(text, view).await?;
                count += 1;
            }
            more = further;
        }
        Ok(())
    }

    fn entity(&self, view: &EntityView, properties: Map<String, Value>) -> Value {
        let mut entity = object!({"Name": view.path, "Properties": properties});
        let rules = &view.description.authorization;
        if let Some(fields) = entity
            .as_object_mut()
            .filter(|_| self.keys && !rules.is_empty())
        {
            let rules: Vec<Value> = rules.iter().map(authorization_rule).collect();
            fields.insert("AuthorizationRules".to_owned(), rules.into());
        }
        entity
    }

    async fn subscription(&mut self, text: &mut Text, view: &EntityView) -> Result<(), Problem> {
        let name = address::split_subscription(&view.path).map_or("", |(_, name)| name);
        if !address::is_part_name(name) {
            self.note_name(&view.path);
        }
        self.check_forwards(view).await?;
        let mut properties = common(&view.description);
        for of_topic in [
            "MaxSizeInMegabytes",
            "MaxMessageSizeInKilobytes",
            "EnablePartitioning",
            "RequiresDuplicateDetection",
            "DuplicateDetectionHistoryTimeWindow",
        ] {
            properties.remove(of_topic);
        }
        properties.extend(of_receivers(&view.description));
        let on_filter_error = view.description.dead_letter_on_filter_error;
        properties.insert(
            "EnableDeadLetteringOnFilterEvaluationExceptions".to_owned(),
            on_filter_error.into(),
        );
        text.open_object(&object!({"Name": name, "Properties": properties}))?;
        text.push(r#","Rules":["#)?;
        self.rules(text, &view.path).await?;
        text.push("]}")
    }

    /// Adds the rules of a subscription. Without any, a subscription of the file takes every message.
    async fn rules(&mut self, text: &mut Text, path: &str) -> Result<(), Problem> {
        let (call, authority) = (self.call, self.authority.clone());
        let mut rules = SubscriptionRules::begin(call, &authority, path, 0).await?;
        let Some(first) = rules.next().await? else {
            let filter = object!({"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=0"}});
            return text.write_value(&object!({"Name": "None", "Properties": filter}));
        };
        let mut next = rules.next().await?;
        let is_default =
            first.name == "$Default" && first.filter == Filter::True && first.action.is_none();
        if is_default && next.is_none() {
            return Ok(());
        }
        self.rule(text, path, &first)?;
        while let Some(rule) = next {
            text.push(",")?;
            self.rule(text, path, &rule)?;
            next = rules.next().await?;
        }
        Ok(())
    }

    /// Adds a rule, or notes what of it the file cannot say.
    fn rule(&mut self, text: &mut Text, path: &str, rule: &Rule) -> Result<(), Problem> {
        match exported_rule(rule) {
            Ok(rule) => text.write_value(&rule),
            Err(why) => {
                self.note(format!("The rule '{}' of '{path}' {why}.", rule.name));
                Ok(())
            }
        }
    }
}

/// Returns a rule, or says what of it the file cannot say.
fn exported_rule(rule: &Rule) -> Result<Value, String> {
    const PARAMETERS: &str = "has parameters: replace the rule by one with literals";
    if !address::is_part_name(&rule.name) {
        let text = "has a name that a rule cannot get any more: make it again with letters, digits and any of . - _";
        return Err(text.to_owned());
    }
    let sql = |text: &str| object!({"FilterType": "Sql", "SqlFilter": {"SqlExpression": text}});
    let mut properties = match &rule.filter {
        Filter::True => sql("1=1"),
        Filter::False => sql("1=0"),
        Filter::Sql(filter) if filter.parameters().is_empty() => sql(filter.text()),
        Filter::Sql(_) => return Err(PARAMETERS.to_owned()),
        Filter::Correlation(filter) => object!({
            "FilterType": "Correlation",
            "CorrelationFilter": correlation(filter.fields())?,
        }),
    };
    if let (Some(action), Some(fields)) = (&rule.action, properties.as_object_mut()) {
        if !action.parameters().is_empty() {
            return Err(PARAMETERS.to_owned());
        }
        let action = object!({"SqlExpression": action.text()});
        fields.insert("Action".to_owned(), action);
    }
    Ok(object!({"Name": rule.name, "Properties": properties}))
}

fn correlation(fields: &CorrelationFields) -> Result<Value, String> {
    let texts = [
        ("ContentType", &fields.content_type),
        ("CorrelationId", &fields.correlation_id),
        ("Label", &fields.label),
        ("MessageId", &fields.message_id),
        ("ReplyTo", &fields.reply_to),
        ("ReplyToSessionId", &fields.reply_to_session_id),
        ("SessionId", &fields.session_id),
        ("To", &fields.to),
    ];
    let texts = texts.into_iter();
    let texts = texts.filter_map(|(name, text)| Some((name.to_owned(), text.clone()?.into())));
    let mut filter: Map<String, Value> = texts.collect();
    if !fields.properties.is_empty() {
        let mut properties = Map::new();
        for (name, value) in &fields.properties {
            let written = constant_to_json(value.scalar()).ok_or_else(|| {
                format!(
                    "compares '{name}' with a value that equals nothing: leave it out of the filter"
                )
            })?;
            properties.insert(name.clone(), written);
        }
        filter.insert("Properties".to_owned(), properties.into());
    }
    Ok(filter.into())
}

/// Returns the properties that every kind of entity has.
fn common(description: &Description) -> Map<String, Value> {
    let times = if description.partitioned {
        jitney_broker::limits::PARTITIONED_SIZES
    } else {
        1
    };
    let megabytes = description.max_bytes / (1024 * 1024) / times;
    let mut properties = Map::new();
    let mut set = |name: &str, value: Value| properties.insert(name.to_owned(), value);
    let live = description.default_time_to_live;
    set("DefaultMessageTimeToLive", duration(live).into());
    set("MaxSizeInMegabytes", megabytes.into());
    if description.max_message_bytes != jitney_message::limits::MESSAGE_SIZE_DEFAULT {
        let kilobytes = description.max_message_bytes / 1024;
        set("MaxMessageSizeInKilobytes", kilobytes.into());
    }
    if description.status != Status::Active {
        set("Status", status(description.status).into());
    }
    let detects = description.detects_duplicates;
    set("RequiresDuplicateDetection", detects.into());
    let window = duration(description.duplicate_window);
    set("DuplicateDetectionHistoryTimeWindow", window.into());
    if description.partitioned {
        set("EnablePartitioning", true.into());
    }
    if description.auto_delete_on_idle != Millis::MAX {
        let idle = duration(description.auto_delete_on_idle);
        set("AutoDeleteOnIdle", idle.into());
    }
    properties
}

/// Returns the properties of entities that messages are received from.
fn of_receivers(description: &Description) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut set = |name: &str, value: Value| properties.insert(name.to_owned(), value);
    set("LockDuration", duration(description.lock_duration).into());
    set("MaxDeliveryCount", description.max_delivery_count.into());
    let on_expiration = description.dead_letter_on_expiration;
    set("DeadLetteringOnMessageExpiration", on_expiration.into());
    set("RequiresSession", description.requires_session.into());
    let forwards = [
        ("ForwardTo", &description.forward_to),
        (
            "ForwardDeadLetteredMessagesTo",
            &description.forward_dead_letters_to,
        ),
    ];
    for (name, to) in forwards {
        if let Some(to) = to {
            set(name, to.clone().into());
        }
    }
    properties
}

fn authorization_rule(rule: &AuthorizationRule) -> Value {
    let rights = [
        (rule.rights.send, "Send"),
        (rule.rights.listen, "Listen"),
        (rule.rights.manage, "Manage"),
    ];
    let rights = rights.into_iter().filter(|(has, _)| *has);
    let rights: Vec<&str> = rights.map(|(_, name)| name).collect();
    let mut shown = object!({
        "Name": rule.name,
        "Rights": rights,
        "PrimaryKey": rule.primary_key.expose(),
    });
    if let (Some(fields), Some(key)) = (shown.as_object_mut(), &rule.secondary_key) {
        fields.insert("SecondaryKey".to_owned(), key.expose().into());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_for_another_namespace_is_taken_only_if_that_is_named() {
        let config = |names: &[&str]| {
            let namespaces = names.iter().map(|name| object!({"Name": name}));
            let namespaces: Vec<Value> = namespaces.collect();
            let file = object!({"UserConfig": {"Namespaces": namespaces}});
            jitney_config::parse(&file.to_string()).unwrap()
        };
        let names = |names: &[&str], from| chosen(config(names), "shop", from).map(|it| it.name);
        for (file, from) in [
            (&["shop"][..], None),
            (&["SHOP", "other"], None),
            (&["other"], Some("other")),
            (&["one", "two"], Some("two")),
        ] {
            assert_eq!(names(file, from).ok(), Some("shop".to_owned()), "{file:?}");
        }
        for (file, from) in [
            (&["other"][..], None),
            (&["one", "two"], None),
            (&["shop"], Some("other")),
        ] {
            assert!(names(file, from).is_err(), "{file:?}");
        }
    }
}
