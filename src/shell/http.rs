//! The HTTP endpoint: health, as the emulator answers it (`emulator.md` A.3).

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::serve::Health;

const HEALTHY: &str = r#"{"status":"healthy","message":"Service is healthy."}"#;
const UNHEALTHY: &str =
    r#"{"status":"unhealthy","message":"Service not available. Please try after some time."}"#;

/// Answers requests until it is told to stop.
pub(super) async fn serve(
    listener: TcpListener,
    health: Health,
    mut stopped: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/health", get(answer))
        .fallback(unknown)
        .with_state(health);
    axum::serve(listener, router)
        .with_graceful_shutdown(async move {
            // An error means that the other end is gone, which is a stop too.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
        .await
}

async fn answer(State(health): State<Health>) -> Response {
    let (status, body) = if health.check().await {
        (StatusCode::OK, HEALTHY)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, UNHEALTHY)
    };
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn unknown(uri: Uri) -> (StatusCode, String) {
    let text = format!(
        "There is nothing at {}. This endpoint answers GET /health.\n",
        uri.path()
    );
    (StatusCode::NOT_FOUND, text)
}
