//! Rules of subscriptions.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use utoipa::IntoParams;

use super::call::{Answer, Call, with_version};
use super::page::Page;
use super::problem::Problem;
use super::version::Version;
use jitney_api::rules::{Correlation, Rule, RuleFilter, RuleRequest, Rules};
use jitney_base::time::Timestamp;
use jitney_broker::access::Authority;
use jitney_broker::namespace::administration::{
    CreateRule, DeleteRule, ListRules, More, ReadRule, RuleView, UpdateRule,
};
use jitney_gateway::admin::time;
use jitney_gateway::rest::{property_of_json, property_to_json};
use jitney_message::Scalar;
use jitney_rules::{
    Action, CorrelationFields, CorrelationFilter, Filter, Rule as KeptRule, SqlFilter,
    Value as KeptValue,
};

/// Which rules a list has.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RulesQuery {
    /// So many are left out at the beginning.
    #[serde(default)]
    skip: usize,
    /// The namespace, instead of that of the host.
    #[serde(rename = "namespace")]
    _namespace: Option<String>,
}

/// Lists the rules of a subscription.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/rules", operation_id = "list_rules", tag = "rules",
    params(("entity" = String, Path, description = "The subscription's path, with slashes percent-encoded"), RulesQuery),
    responses((status = 200, body = Rules), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>, entity: &str) -> Answer {
    let query: RulesQuery = call.query()?;
    let authority = call.authorize(entity).await?;
    let mut found = SubscriptionRules::begin(call, &authority, entity, query.skip).await?;
    let mut page = Page::begin(call, "rules").await?;
    while !page.is_full()
        && let Some(rule) = found.next().await?
    {
        page.push(&rule_of(&rule))?;
    }
    let skip = query.skip + page.items();
    let next_skip = found.next().await?.map(|_| skip);
    let rules = Vec::new();
    page.respond(&Rules { rules, next_skip })
}

/// The rules of a subscription, read some at a time.
pub(super) struct SubscriptionRules<'a> {
    call: &'a Call<'a>,
    authority: &'a Authority,
    subscription: &'a str,
    /// Those that were read, the first last.
    read: Vec<KeptRule>,
    /// How many were read or left out.
    skip: usize,
    more: More,
}

impl<'a> SubscriptionRules<'a> {
    /// Rules that are read at a time: so many of the largest are less than a page.
    const READ: usize =
        jitney_gateway::limits::ANSWER_PAGE_BYTES / jitney_rules::limits::RULE_BYTES_MAX;

    /// Begins behind so many rules; waits until there is room for those that are read at a time.
    pub(super) async fn begin(
        call: &'a Call<'a>,
        authority: &'a Authority,
        subscription: &'a str,
        skip: usize,
    ) -> Result<Self, Problem> {
        call.reserve_sources(jitney_gateway::limits::ANSWER_PAGE_BYTES)
            .await?;
        Ok(Self {
            call,
            authority,
            subscription,
            read: Vec::new(),
            skip,
            more: More::Yes,
        })
    }

    /// Returns the next rule.
    pub(super) async fn next(&mut self) -> Result<Option<KeptRule>, Problem> {
        if self.read.is_empty() && self.more == More::Yes {
            let list = ListRules {
                subscription: self.subscription.to_owned(),
                skip: self.skip,
                top: Self::READ.min(jitney_broker::limits::LISTED_MAX),
            };
            let page = self.call.request(self.authority.clone(), list).await?;
            let found = page.entries;
            self.more = if found.is_empty() {
                More::No
            } else {
                page.more
            };
            self.skip += found.len();
            self.read
                .extend(found.into_iter().rev().map(|view| view.rule));
        }
        Ok(self.read.pop())
    }
}

/// Returns a rule.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/rules/{rule}", operation_id = "get_rule", tag = "rules",
    params(("entity" = String, Path, description = "The subscription's path"), ("rule" = String, Path, description = "Its name")),
    responses((status = 200, body = Rule, headers(("ETag", description = "Its version"))), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn get(call: &Call<'_>, entity: &str, rule: &str) -> Answer {
    let (subscription, name) = (entity.to_owned(), rule.to_owned());
    let read = ReadRule { subscription, name };
    let view = call.fetch(entity, read).await?;
    shown(call, StatusCode::OK, &view).await
}

/// Makes a rule, or with `If-Match` replaces one.
#[utoipa::path(put, path = "/api/v1/entities/{entity}/rules/{rule}", operation_id = "put_rule", tag = "rules", request_body = RuleRequest,
    params(("entity" = String, Path, description = "The subscription's path"), ("rule" = String, Path, description = "Its name"),
        ("If-Match" = Option<String>, Header, description = "The version that is replaced, or * for any; without it, the rule is made")),
    responses((status = 200, body = Rule), (status = 201, body = Rule),
        (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn put(call: &Call<'_>, entity: &str, rule: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let version = Version::read(call)?;
    let request: RuleRequest = call.json(body).await?;
    let rule = Box::new(read_rule(request, rule, "")?);
    let subscription = entity.to_owned();
    let (view, status) = match version {
        Version::Any | Version::Is(_) => {
            let version = version.required();
            let update = UpdateRule {
                subscription,
                rule,
                version,
            };
            (call.request(authority, update).await?, StatusCode::OK)
        }
        Version::Unsaid => {
            let create = CreateRule { subscription, rule };
            (call.request(authority, create).await?, StatusCode::CREATED)
        }
    };
    shown(call, status, &view).await
}

/// Deletes a rule.
#[utoipa::path(delete, path = "/api/v1/entities/{entity}/rules/{rule}", operation_id = "delete_rule", tag = "rules",
    params(("entity" = String, Path, description = "The subscription's path"), ("rule" = String, Path, description = "Its name"),
        ("If-Match" = Option<String>, Header, description = "The version that is deleted; without it, any")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn delete(call: &Call<'_>, entity: &str, rule: &str) -> Answer {
    let authority = call.authorize(entity).await?;
    let (subscription, name) = (entity.to_owned(), rule.to_owned());
    let version = Version::read(call)?.required();
    let delete = DeleteRule {
        subscription,
        name,
        version,
    };
    call.request(authority, delete).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn shown(call: &Call<'_>, status: StatusCode, view: &RuleView) -> Answer {
    let response = call.answer(status, &rule_of(&view.rule)).await?;
    Ok(with_version(response, view.rule.version()))
}

fn rule_of(rule: &KeptRule) -> Rule {
    Rule {
        name: rule.name.clone(),
        filter: match &rule.filter {
            Filter::True => RuleFilter::True,
            Filter::False => RuleFilter::False,
            Filter::Sql(filter) => RuleFilter::Sql {
                expression: filter.text().to_owned(),
            },
            Filter::Correlation(filter) => RuleFilter::Correlation(correlation_of(filter.fields())),
        },
        action: rule.action.as_ref().map(|action| action.text().to_owned()),
        created_at: time(rule.created_at),
    }
}

fn correlation_of(fields: &CorrelationFields) -> Correlation {
    let properties = fields.properties.iter();
    let properties =
        properties.map(|(name, value)| (name.clone(), property_to_json(value.scalar())));
    Correlation {
        correlation_id: fields.correlation_id.clone(),
        message_id: fields.message_id.clone(),
        to: fields.to.clone(),
        reply_to: fields.reply_to.clone(),
        subject: fields.label.clone(),
        session_id: fields.session_id.clone(),
        reply_to_session_id: fields.reply_to_session_id.clone(),
        content_type: fields.content_type.clone(),
        properties: properties.collect(),
    }
}

fn read_correlation(correlation: Correlation, prefix: &str) -> Result<CorrelationFields, Problem> {
    let properties = correlation.properties.into_iter().map(|(name, value)| {
        let read = property_of_json(&value).map(|scalar: Scalar<'static>| KeptValue::from(scalar));
        let read = read.ok_or_else(|| {
            let field = format!("{prefix}filter.properties.{name}");
            let text = format!("{field} is {value}; a text, a number or a boolean is allowed.");
            Problem::wrong(field, text)
        });
        Ok((name, read?))
    });
    Ok(CorrelationFields {
        correlation_id: correlation.correlation_id,
        message_id: correlation.message_id,
        to: correlation.to,
        reply_to: correlation.reply_to,
        label: correlation.subject,
        session_id: correlation.session_id,
        reply_to_session_id: correlation.reply_to_session_id,
        content_type: correlation.content_type,
        properties: properties.collect::<Result<Vec<_>, Problem>>()?,
    })
}

/// Returns the rule; `prefix` is in front of the names of its fields.
pub(super) fn read_rule(
    request: RuleRequest,
    name: &str,
    prefix: &str,
) -> Result<KeptRule, Problem> {
    let wrong = |field: &str, why: String| {
        Problem::wrong(
            format!("{prefix}{field}"),
            format!("{prefix}{field}: {why}."),
        )
    };
    let filter = match request.filter {
        RuleFilter::True => Filter::True,
        RuleFilter::False => Filter::False,
        RuleFilter::Sql { expression } => {
            let filter = SqlFilter::parse(&expression);
            Filter::Sql(filter.map_err(|error| wrong("filter.expression", error.to_string()))?)
        }
        RuleFilter::Correlation(fields) => {
            let filter = CorrelationFilter::new(read_correlation(fields, prefix)?);
            Filter::Correlation(filter.map_err(|error| wrong("filter", error.to_string()))?)
        }
    };
    let action = request.action.as_deref().map(Action::parse).transpose();
    Ok(KeptRule {
        name: name.to_owned(),
        filter,
        action: action.map_err(|error| wrong("action", error.to_string()))?,
        created_at: Timestamp::EPOCH,
    })
}
