//! The description of the API in `OpenAPI` 3.1, made from its types.

use std::sync::LazyLock;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use super::problem::Problem;
use super::{
    audit, authorization_rules, backups, changes, configuration, connections, entities, fleet,
    history, jobs, locks, messages, namespaces, receives, rule_tests, rules, schedule, search,
    selection, sending, server, sessions,
};
use crate::http::answers::shared_body;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Jitney",
        description = "Look at a namespace, change it, and repair what went wrong in it. A request carries the operator's key (`Authorization: Bearer KEY`) or a token of the namespace (`Authorization: SharedAccessSignature ...`); in the development profile one from this machine needs none. The namespace is that of the `Host`, or of the query `namespace`."
    ),
    paths(
        entities::list, entities::get, entities::put, entities::delete,
        authorization_rules::list, authorization_rules::put, authorization_rules::delete, authorization_rules::rotate,
        rules::list, rules::get, rules::put, rules::delete,
        messages::list, messages::get, sending::send, messages::dead_letters,
        locks::lock, locks::settle,
        search::search, schedule::count, rule_tests::test,
        sessions::list, sessions::get, sessions::put,
        history::of_entity, history::of_namespace, changes::events, audit::list,
        connections::list, connections::close, connections::close_link, receives::list, receives::end,
        jobs::list, jobs::start, selection::count, jobs::get, jobs::cancel,
        configuration::get, configuration::put,
        namespaces::access, namespaces::list, namespaces::make, namespaces::drop_one, server::get, backups::make,
        fleet::get, fleet::release,
    ),
    components(schemas(Problem, messages::BodyShown)),
    security(("operator" = []), ("token" = []))
)]
struct Api;

/// Answers with the description, which is in memory once for all who ask: no right is needed.
pub(super) fn answer() -> Response {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| {
        let text = serde_json::to_vec(&document());
        text.expect("texts and numbers are JSON").into()
    });
    let kind = HeaderValue::from_static("application/json");
    let body = shared_body(TEXT.clone());
    (StatusCode::OK, [(header::CONTENT_TYPE, kind)], body).into_response()
}

/// Returns the description.
pub(super) fn document() -> utoipa::openapi::OpenApi {
    let mut api = Api::openapi();
    let components = api.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("operator", bearer);
    let header = utoipa::openapi::security::ApiKeyValue::new("Authorization");
    let token = SecurityScheme::ApiKey(utoipa::openapi::security::ApiKey::Header(header));
    components.add_security_scheme("token", token);
    api
}
