//! Custom tools: list, read, define, change and remove them.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use clawsmith::app::App;
use clawsmith::app::custom::{CustomToolDocument, CustomToolView};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Gateway;
use crate::error::ApiError;
use crate::guard::Who;

/// The agent that has the tool, and the version that the client read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Which {
    agent_id: Option<String>,
    version: Option<u64>,
}

/// The application of the visitor's tenant, if the visitor may define tools.
fn app(gateway: &Gateway, who: &Who) -> Result<App, ApiError> {
    gateway.app().may_define_tools(&who.0)?;
    Ok(gateway.app().of_tenant(&who.0.tenant))
}

pub(crate) async fn list(State(gateway): State<Gateway>, who: Who) -> Result<Json<Value>, ApiError> {
    let tools = app(&gateway, &who)?.custom_tools().await?;
    let tools: Vec<CustomToolView> = tools.iter().map(CustomToolView::from).collect();
    Ok(Json(json!({ "tools": tools })))
}

pub(crate) async fn get(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<CustomToolView>, ApiError> {
    let (app, Query(which)) = (app(&gateway, &who)?, which?);
    Ok(Json(CustomToolView::from(&app.custom_tool(&name, which.agent_id.as_deref()).await?)))
}

pub(crate) async fn create(
    State(gateway): State<Gateway>,
    who: Who,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Response, ApiError> {
    let app = app(&gateway, &who)?;
    let document = CustomToolDocument::from_value(body?.0)?;
    let card = app.add_custom_tool(document).await?;
    Ok((StatusCode::CREATED, Json(CustomToolView::from(&card))).into_response())
}

pub(crate) async fn update(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
    body: Result<Json<Value>, JsonRejection>,
) -> Result<Json<CustomToolView>, ApiError> {
    let (app, Query(which)) = (app(&gateway, &who)?, which?);
    let Json(mut change) = body?;
    let of_body = change.as_object_mut().and_then(|change| change.remove("version"));
    let Some(seen) = of_body.as_ref().and_then(Value::as_u64).or(which.version) else {
        return Err(ApiError::invalid("a change names the `version` that it was made from"));
    };
    let place = (name.as_str(), which.agent_id.as_deref());
    Ok(Json(CustomToolView::from(&app.edit_custom_tool(place, change, Some(seen)).await?)))
}

pub(crate) async fn remove(
    State(gateway): State<Gateway>,
    who: Who,
    Path(name): Path<String>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<StatusCode, ApiError> {
    let (app, Query(which)) = (app(&gateway, &who)?, which?);
    app.remove_custom_tool(&name, which.agent_id.as_deref(), which.version).await?;
    Ok(StatusCode::NO_CONTENT)
}
