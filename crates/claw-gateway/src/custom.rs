//! Custom tools: list, read, define, change and remove them.

use clawsmith::app::App;
use clawsmith::app::custom::{CustomToolDocument, CustomToolView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{Body, Created, IfMatch, Json, NoContent, Path, Query, Visit};
use crate::error::ApiError;

/// The agent that has the tool, and the version that the client read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CustomToolPlace {
    /// The agent that has the tool; left out for a tool of all agents.
    agent_id: Option<String>,
    /// The version that was read.
    version: Option<u64>,
}

/// Custom tools, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CustomTools {
    tools: Vec<CustomToolView>,
}

/// The application of the visitor's tenant, if the visitor may define tools.
fn app(visit: &Visit) -> Result<App, ApiError> {
    visit.gateway.app().may_define_tools(visit.visitor())?;
    Ok(visit.app())
}

pub(crate) async fn list(visit: Visit) -> Result<Json<CustomTools>, ApiError> {
    let tools = app(&visit)?.custom_tools().await?;
    Ok(Json(CustomTools { tools: tools.iter().map(CustomToolView::from).collect() }))
}

pub(crate) async fn get(
    visit: Visit,
    Path(name): Path<String>,
    Query(place): Query<CustomToolPlace>,
) -> Result<Json<CustomToolView>, ApiError> {
    let tool = app(&visit)?.custom_tool(&name, place.agent_id.as_deref()).await?;
    Ok(Json(CustomToolView::from(&tool)))
}

pub(crate) async fn create(
    visit: Visit,
    Body(document): Body<CustomToolDocument>,
) -> Result<Created<CustomToolView>, ApiError> {
    let card = app(&visit)?.add_custom_tool(document).await?;
    Ok(Created(CustomToolView::from(&card)))
}

/// Fields of a custom tool's document that change, and the `version` that was read.
pub(crate) async fn update(
    visit: Visit,
    Path(name): Path<String>,
    Query(place): Query<CustomToolPlace>,
    IfMatch(version): IfMatch,
    Body(mut change): Body<Map<String, Value>>,
) -> Result<Json<CustomToolView>, ApiError> {
    let app = app(&visit)?;
    let in_body = change.remove("version").as_ref().and_then(Value::as_u64);
    let Some(seen) = version.or(in_body).or(place.version) else {
        return Err(ApiError::invalid(
            "`version` is missing; send the version that you read, in `If-Match`, in the body or as a query \
             parameter",
        ));
    };
    let (agent, change) = (place.agent_id.as_deref(), Value::Object(change));
    Ok(Json(CustomToolView::from(&app.edit_custom_tool(&name, agent, change, Some(seen)).await?)))
}

pub(crate) async fn remove(
    visit: Visit,
    Path(name): Path<String>,
    Query(place): Query<CustomToolPlace>,
    IfMatch(version): IfMatch,
) -> Result<NoContent, ApiError> {
    let seen = version.or(place.version);
    app(&visit)?.remove_custom_tool(&name, place.agent_id.as_deref(), seen).await?;
    Ok(NoContent)
}
