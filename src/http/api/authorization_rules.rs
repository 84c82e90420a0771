//! Authorization rules of queues and topics: shared access keys, and their rotation. Those of a whole namespace are in
//! the configuration file.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;

use super::call::{Answer, Call};
use super::problem::Problem;
use crate::host::root_key::random_key;
use jitney_api::authorization_rules::{
    AuthorizationRuleRequest, AuthorizationRuleShown, AuthorizationRules, RightName, RotateRequest,
    Which,
};
use jitney_base::rights::{AuthorizationRule, Key, Rights};
use jitney_broker::access::Authority;
use jitney_broker::namespace::administration::{
    AuthorizationChange, ChangeAuthorization, ReadEntity,
};
use jitney_gateway::admin::time;
use jitney_gateway::operations::Note;

/// Lists the authorization rules of a queue or a topic, with their keys.
#[utoipa::path(get, path = "/api/v1/entities/{entity}/authorization-rules", operation_id = "list_authorization_rules", tag = "keys",
    params(("entity" = String, Path, description = "The path of a queue or a topic")),
    responses((status = 200, body = AuthorizationRules), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn list(call: &Call<'_>, entity: &str) -> Answer {
    let authority = call.authorize(entity).await?;
    let path = entity.to_owned();
    let answer = call.request(authority.clone(), ReadEntity { path }).await?;
    let rules = answer.description.authorization;
    let note = Note::KeysRead(Some(entity.to_owned()));
    call.request(authority, note).await?;
    let authorization_rules = rules.iter().map(rule_of).collect();
    call.answer(
        StatusCode::OK,
        &AuthorizationRules {
            authorization_rules,
        },
    )
    .await
}

/// Makes an authorization rule, or changes its rights and keys.
#[utoipa::path(put, path = "/api/v1/entities/{entity}/authorization-rules/{name}", operation_id = "put_authorization_rule", tag = "keys",
    request_body = AuthorizationRuleRequest,
    params(("entity" = String, Path, description = "The path of a queue or a topic"), ("name" = String, Path, description = "The name of the rule")),
    responses((status = 200, body = AuthorizationRuleShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn put(call: &Call<'_>, entity: &str, name: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let request: AuthorizationRuleRequest = call.json(body).await?;
    let has = |right| request.rights.contains(&right);
    let change = AuthorizationChange::Put {
        rights: Rights {
            send: has(RightName::Send),
            listen: has(RightName::Listen),
            manage: has(RightName::Manage),
        },
        primary_key: request.primary_key.map(Key::new),
        secondary_key: request.secondary_key.map(Key::new),
        new_keys: [new_key()?, new_key()?],
    };
    changed(call, authority, entity, name, change).await
}

/// Deletes an authorization rule. What its keys have granted ends when the tokens that were made with them do.
#[utoipa::path(delete, path = "/api/v1/entities/{entity}/authorization-rules/{name}", operation_id = "delete_authorization_rule", tag = "keys",
    params(("entity" = String, Path, description = "The path of a queue or a topic"), ("name" = String, Path, description = "The name of the rule")),
    responses((status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn delete(call: &Call<'_>, entity: &str, name: &str) -> Answer {
    let authority = call.authorize(entity).await?;
    change(call, authority, entity, name, AuthorizationChange::Delete).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Replaces a key of an authorization rule by a random one, and returns the rule. To change the key of clients that run,
/// rotate the secondary key, give it to them, and then rotate the primary one.
#[utoipa::path(post, path = "/api/v1/entities/{entity}/authorization-rules/{name}/rotate", operation_id = "rotate_key", tag = "keys",
    request_body = RotateRequest,
    params(("entity" = String, Path, description = "The path of a queue or a topic"), ("name" = String, Path, description = "The name of the rule")),
    responses((status = 200, body = AuthorizationRuleShown), (status = "4XX", body = Problem, content_type = "application/problem+json")))]
pub(super) async fn rotate(call: &Call<'_>, entity: &str, name: &str, body: Body) -> Answer {
    let authority = call.authorize(entity).await?;
    let request: RotateRequest = call.json(body).await?;
    let change = AuthorizationChange::Rotate {
        is_secondary: request.key == Which::Secondary,
        new_key: new_key()?,
    };
    changed(call, authority, entity, name, change).await
}

async fn change(
    call: &Call<'_>,
    authority: Authority,
    entity: &str,
    name: &str,
    change: AuthorizationChange,
) -> Result<Vec<AuthorizationRule>, Problem> {
    let change = ChangeAuthorization {
        path: entity.to_owned(),
        name: name.to_owned(),
        change: Box::new(change),
    };
    let view = call.request(authority, change).await?;
    Ok(view.description.authorization)
}

/// Carries a change out, and answers with the rule.
async fn changed(
    call: &Call<'_>,
    authority: Authority,
    entity: &str,
    name: &str,
    wanted: AuthorizationChange,
) -> Answer {
    let rules = change(call, authority, entity, name, wanted).await?;
    let rule = rules.iter().find(|rule| rule.name == name);
    let rule = rule.ok_or_else(Problem::stopping)?;
    call.answer(StatusCode::OK, &rule_of(rule)).await
}

fn new_key() -> Result<Key, Problem> {
    let made = random_key();
    made.map(Key::new).map_err(|error| {
        let text = format!("There can be no new key: {error}.");
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "internal", text)
    })
}

fn rule_of(rule: &AuthorizationRule) -> AuthorizationRuleShown {
    let rights = [
        (rule.rights.send, RightName::Send),
        (rule.rights.listen, RightName::Listen),
        (rule.rights.manage, RightName::Manage),
    ];
    let rights = rights.into_iter().filter(|(has, _)| *has);
    AuthorizationRuleShown {
        name: rule.name.clone(),
        rights: rights.map(|(_, right)| right).collect(),
        primary_key: rule.primary_key.expose().to_owned(),
        secondary_key: rule
            .secondary_key
            .as_ref()
            .map(|key| key.expose().to_owned()),
        created_at: rule.created_at.map(time),
        modified_at: rule.modified_at.map(time),
    }
}
