//! Whether the gateway lives, and whether it can work. Both answer without a key and say nothing else.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::Gateway;

pub(crate) async fn alive() -> Response {
    Json(json!({ "status": "ok" })).into_response()
}

/// Ready while the store answers and a worker takes runs.
pub(crate) async fn ready(State(gateway): State<Gateway>) -> Response {
    let store = gateway.app().store().tenant(gateway.app().tenant()).await;
    let is_ready = store.is_ok() && !gateway.sessions().deserted().is_cancelled();
    match is_ready {
        true => Json(json!({ "status": "ready" })).into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "not ready" }))).into_response(),
    }
}
