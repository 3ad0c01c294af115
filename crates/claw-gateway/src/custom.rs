//! Custom tools: list, read, define, change and remove them.

use clawsmith::app::App;
use clawsmith::app::custom::{CustomToolDocument, CustomToolView};
use clawsmith::store::CustomToolCard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::api::{Body, Created, IfMatch, Json, NoContent, Path, Query, Versioned, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;

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
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// The application of the visitor's tenant, if the visitor may define tools.
fn app(visit: &Visit) -> Result<App, ApiError> {
    visit.gateway.app().may_define_tools(visit.visitor())?;
    Ok(visit.app())
}

/// A custom tool with its version.
fn shown(card: &CustomToolCard) -> Versioned<CustomToolView> {
    Versioned(Some(card.version), CustomToolView::from(card))
}

pub(crate) async fn list(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<CustomTools>, ApiError> {
    // The same name may be there for several agents.
    let key = |card: &CustomToolCard| {
        let agent = card.place.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} {agent}", card.place.name)
    };
    let texts = |card: &CustomToolCard| format!("{} {}", card.place.name, card.definition.description);
    let (tools, next) = wanted.page(app(&visit)?.custom_tools().await?, key, texts);
    Ok(Json(CustomTools { tools: tools.iter().map(CustomToolView::from).collect(), next }))
}

pub(crate) async fn get(
    visit: Visit,
    Path(name): Path<String>,
    Query(place): Query<CustomToolPlace>,
) -> Result<Versioned<CustomToolView>, ApiError> {
    Ok(shown(&app(&visit)?.custom_tool(&name, place.agent_id.as_deref()).await?))
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
    given: IfMatch,
    Body(mut change): Body<Map<String, Value>>,
) -> Result<Versioned<CustomToolView>, ApiError> {
    let app = app(&visit)?;
    let in_body = change.remove("version").as_ref().and_then(Value::as_u64);
    let Some(seen) = given.0.or(in_body).or(place.version) else {
        return Err(ApiError::invalid(
            "`version` is missing; send the version that you read, in `If-Match`, in the body or as a query \
             parameter",
        ));
    };
    let (agent, change) = (place.agent_id.as_deref(), Value::Object(change));
    let edited = app.edit_custom_tool(&name, agent, change, Some(seen)).await;
    Ok(shown(&edited.map_err(|error| given.failed(error))?))
}

pub(crate) async fn remove(
    visit: Visit,
    Path(name): Path<String>,
    Query(place): Query<CustomToolPlace>,
    given: IfMatch,
) -> Result<NoContent, ApiError> {
    let seen = given.0.or(place.version);
    let removed = app(&visit)?.remove_custom_tool(&name, place.agent_id.as_deref(), seen).await;
    removed.map_err(|error| given.failed(error))?;
    Ok(NoContent)
}
