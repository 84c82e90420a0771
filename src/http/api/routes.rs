//! The one table of the API's routes. The dispatch, the methods in `Allow` and the description in `OpenAPI` 3.1 are made of it.

use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};

use super::call::{Answer, Call, PREFIX};
use super::problem::Problem;
use super::{
    attention, audit, authorization_rules, backups, changes, configuration, connections, entities,
    fleet, history, jobs, locks, messages, namespaces, receives, rule_tests, rules, schedule,
    search, selection, sending, server, sessions,
};
use crate::http::answers::shared_body;
use jitney_api::changes::AttentionNow;
use jitney_api::messages::BodyShown;

/// A method and the segments of a path: a literal is in quotes, and a name is any segment.
struct Route {
    method: &'static str,
    segments: &'static [&'static str],
}

impl Route {
    /// Returns whether its path is this one.
    fn is_at(&self, path: &[&str]) -> bool {
        let is = |(own, given): (&&str, &&str)| match own.strip_prefix('"') {
            Some(literal) => literal.strip_suffix('"') == Some(given),
            None => true,
        };
        self.segments.len() == path.len() && self.segments.iter().zip(path).all(is)
    }
}

/// Takes the names of the call and of the body, and then the routes: the method, the segments of the path, and the function
/// that answers, with its arguments behind the call.
macro_rules! routes {
    (
        ($call:ident, $body:ident)
        $($method:literal [$($segment:tt),*] => $module:ident::$function:ident($($argument:ident),*);)*
    ) => {
        const ROUTES: &[Route] = &[
            $(Route { method: $method, segments: &[$(stringify!($segment)),*] },)*
            Route { method: "GET", segments: &["\"openapi.json\""] },
        ];

        /// The description, without what is common to all operations.
        #[derive(OpenApi)]
        #[openapi(paths($($module::$function),*))]
        struct Operations;

        /// Answers a request.
        pub(super) async fn dispatch($call: &Call<'_>, $body: Body) -> Answer {
            let path: Vec<&str> = $call.segments.iter().map(String::as_str).collect();
            match ($call.parts.method.as_str(), path.as_slice()) {
                $(($method, [$($segment),*]) => $module::$function($call, $($argument),*).await,)*
                ("GET", ["openapi.json"]) => Ok(description()),
                (method, path) => Err(unknown($call, method, path)),
            }
        }
    };
}

routes! {
    (call, body)
    "GET" ["entities"] => entities::list();
    "GET" ["entities", entity] => entities::get(entity);
    "PUT" ["entities", entity] => entities::put(entity, body);
    "DELETE" ["entities", entity] => entities::delete(entity);
    "GET" ["entities", entity, "authorization-rules"] => authorization_rules::list(entity);
    "PUT" ["entities", entity, "authorization-rules", name] => authorization_rules::put(entity, name, body);
    "DELETE" ["entities", entity, "authorization-rules", name] => authorization_rules::delete(entity, name);
    "POST" ["entities", entity, "authorization-rules", name, "rotate"] => authorization_rules::rotate(entity, name, body);
    "GET" ["entities", entity, "dead-letters"] => messages::dead_letters(entity);
    "GET" ["entities", entity, "history"] => history::of_entity(entity);
    "POST" ["entities", entity, "lock"] => locks::lock(entity, body);
    "GET" ["entities", entity, "messages"] => messages::list(entity);
    "GET" ["entities", entity, "messages", number] => messages::get(entity, number);
    "POST" ["entities", entity, "rule-tests"] => rule_tests::test(entity, body);
    "GET" ["entities", entity, "rules"] => rules::list(entity);
    "GET" ["entities", entity, "rules", rule] => rules::get(entity, rule);
    "PUT" ["entities", entity, "rules", rule] => rules::put(entity, rule, body);
    "DELETE" ["entities", entity, "rules", rule] => rules::delete(entity, rule);
    "GET" ["entities", entity, "schedule"] => schedule::count(entity);
    "POST" ["entities", entity, "send"] => sending::send(entity, body);
    "GET" ["entities", entity, "sessions"] => sessions::list(entity);
    "GET" ["entities", entity, "sessions", id] => sessions::get(entity, id);
    "PUT" ["entities", entity, "sessions", id] => sessions::put(entity, id, body);
    "POST" ["entities", entity, "settle"] => locks::settle(entity, body);
    "GET" ["access"] => namespaces::access();
    "GET" ["attention"] => attention::get();
    "GET" ["audit"] => audit::list();
    "GET" ["changes"] => changes::events();
    "GET" ["configuration"] => configuration::get();
    "PUT" ["configuration"] => configuration::put(body);
    "GET" ["connections"] => connections::list();
    "DELETE" ["connections", id] => connections::close(id);
    "DELETE" ["connections", id, "links", link] => connections::close_link(id, link);
    "GET" ["fleet"] => fleet::get();
    "POST" ["fleet", "namespaces", name, "release"] => fleet::release(name);
    "GET" ["history"] => history::of_namespace();
    "GET" ["trends"] => history::trends();
    "GET" ["jobs"] => jobs::list();
    "POST" ["jobs"] => jobs::start(body);
    "POST" ["jobs", "count"] => selection::count(body);
    "GET" ["jobs", id] => jobs::get(id);
    "DELETE" ["jobs", id] => jobs::cancel(id);
    "GET" ["messages"] => search::search();
    "GET" ["namespaces"] => namespaces::list();
    "PUT" ["namespaces", name] => namespaces::make(name, body);
    "DELETE" ["namespaces", name] => namespaces::delete_one(name);
    "GET" ["receives"] => receives::list();
    "DELETE" ["receives", id] => receives::end(id);
    "GET" ["server"] => server::get();
    "POST" ["server", "backups"] => backups::make(body);
}

/// Returns what is wrong with a request that has no route.
fn unknown(call: &Call<'_>, method: &str, path: &[&str]) -> Problem {
    let routes = ROUTES.iter().filter(|route| route.is_at(path));
    let allowed: Vec<&str> = routes.map(|route| route.method).collect();
    if !allowed.is_empty() {
        return Problem::method(method, &allowed.join(", "));
    }
    let path = call.parts.uri.path();
    Problem::not_found(format!(
        "There is nothing at {path}; {PREFIX}openapi.json says what there is."
    ))
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Jitney",
        description = "Look at a namespace, change it, and repair what went wrong in it. A request carries the operator's key (`Authorization: Bearer KEY`) or a token of the namespace (`Authorization: SharedAccessSignature ...`); in the development profile one from this machine needs none. The namespace is that of the `Host`, or of the query `namespace`."
    ),
    components(schemas(Problem, BodyShown, AttentionNow)),
    security(("operator" = []), ("token" = []))
)]
struct Api;

/// Answers with the description, which is in memory once for all who ask: no right is needed.
fn description() -> Response {
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
    let mut api = Api::openapi().merge_from(Operations::openapi());
    let components = api.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("operator", bearer);
    let header = utoipa::openapi::security::ApiKeyValue::new("Authorization");
    let token = SecurityScheme::ApiKey(utoipa::openapi::security::ApiKey::Header(header));
    components.add_security_scheme("token", token);
    api
}
