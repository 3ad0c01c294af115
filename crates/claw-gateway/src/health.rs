//! Liveness and readiness of the gateway. Both answer without a key and say nothing else.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Gateway;
use crate::api::{Json, Output, Replied};
use crate::openapi::{Operation, Schemas};

/// State of the gateway.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// `ok`, `ready` or `not ready`.
    status: &'static str,
}

pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// The answers of `/ready`.
pub(crate) struct Readiness;

impl Output for Readiness {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reply(StatusCode::OK, "It can work.", Some(schemas.shown::<Health>()));
        operation.reply(StatusCode::SERVICE_UNAVAILABLE, "It cannot work.", Some(schemas.shown::<Health>()));
    }
}

/// Reports ready while the store answers and a worker takes runs.
pub(crate) async fn ready(State(gateway): State<Gateway>) -> Replied<Readiness> {
    let store = gateway.app().store().tenant(gateway.app().tenant()).await;
    let is_ready = store.is_ok() && !gateway.sessions().deserted().is_cancelled();
    let response: Response = match is_ready {
        true => Json(Health { status: "ready" }).into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, Json(Health { status: "not ready" })).into_response(),
    };
    response.into()
}
