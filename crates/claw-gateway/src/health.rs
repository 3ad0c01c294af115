//! Liveness and readiness of the gateway. Both answer without a key and say nothing else.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Gateway;
use crate::api::{Json, Output, Replied};
use crate::openapi::{Operation, Schemas};
use crate::reload;

/// State of the gateway.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Health {
    /// `ok`, `ready` or `not ready`.
    status: &'static str,
    /// `current`, or `outdated` if the configuration file is invalid and an earlier version of it is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'static str>,
}

pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "ok", configuration: None })
}

/// The answers of `/ready`.
pub(crate) struct Readiness;

impl Output for Readiness {
    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        operation.reply(StatusCode::OK, "The gateway is ready.", Some(schemas.shown::<Health>()));
        operation.reply(
            StatusCode::SERVICE_UNAVAILABLE,
            "The gateway is not ready.",
            Some(schemas.shown::<Health>()),
        );
    }
}

/// Reports ready while the store answers and a worker takes runs.
pub(crate) async fn ready(State(gateway): State<Gateway>) -> Replied<Readiness> {
    let store = {
        let app = gateway.app();
        app.store().tenant(app.tenant()).await
    };
    let is_ready = store.is_ok() && !gateway.sessions().deserted().is_cancelled();
    let is_outdated = reload::status(&gateway).failure.is_some();
    let configuration = Some(if is_outdated { "outdated" } else { "current" });
    let (code, status) = match is_ready {
        true => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready"),
    };
    let response: Response = (code, Json(Health { status, configuration })).into_response();
    response.into()
}
