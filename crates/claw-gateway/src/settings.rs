//! Settings of built-in tools, secrets and providers. Values of secrets go in and never come out.

use claw_core::SecretName;
use clawsmith::store::{SecretCard, Settings, StoredSettings};
use clawsmith::{AgentId, ToolName, UnixMillis};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::api::{Body, Json, NoContent, Path, Query, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;

/// Settings of built-in tools, by tool.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolSettingsList {
    settings: Vec<ToolSettingsView>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// The settings of one built-in tool, which override those of the deployment.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ToolSettingsView {
    tool: ToolName,
    settings: Settings,
    updated: UnixMillis,
}

/// Secrets, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SecretList {
    secrets: Vec<SecretView>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A secret's name, and when it was written.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretView {
    name: SecretName,
    /// The agent that it is for; `null` for all.
    agent_id: Option<AgentId>,
    made: UnixMillis,
    at: UnixMillis,
}

/// The agent that something is for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AgentQuery {
    /// The agent; left out for all agents.
    pub(crate) agent_id: Option<AgentId>,
}

/// A secret's value.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretWrite {
    /// The value, which is stored encrypted and never shown.
    #[schemars(with = "String")]
    value: SecretString,
}

/// Providers of models, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProviderList {
    /// The provider of agents that name none.
    default: Option<String>,
    providers: Vec<ProviderView>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A provider of the configuration file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProviderView {
    name: String,
    /// The default model of the provider, for agents that name none.
    model: Option<String>,
    /// The models that are described.
    models: Vec<String>,
}

impl From<StoredSettings> for ToolSettingsView {
    fn from(StoredSettings { tool, settings, updated }: StoredSettings) -> Self {
        Self { tool, settings, updated }
    }
}

pub(crate) async fn tool_settings(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<ToolSettingsList>, ApiError> {
    let tool = |stored: &StoredSettings| stored.tool.to_string();
    let (stored, next) = wanted.page(visit.app().stored_settings().await?, tool, tool);
    Ok(Json(ToolSettingsList { settings: stored.into_iter().map(ToolSettingsView::from).collect(), next }))
}

pub(crate) async fn settings_of_tool(
    visit: Visit,
    Path(tool): Path<ToolName>,
) -> Result<Json<ToolSettingsView>, ApiError> {
    let found = visit.app().stored_settings().await?.into_iter().find(|stored| stored.tool == tool);
    let none = || ApiError::not_found(format!("your tenant has no settings of the tool `{tool}`"));
    Ok(Json(found.ok_or_else(none)?.into()))
}

pub(crate) async fn put_tool_settings(
    visit: Visit,
    Path(tool): Path<ToolName>,
    Body(settings): Body<Settings>,
) -> Result<NoContent, ApiError> {
    visit.app().put_tool_settings(&tool, settings).await?;
    Ok(NoContent)
}

pub(crate) async fn remove_tool_settings(
    visit: Visit,
    Path(tool): Path<ToolName>,
) -> Result<NoContent, ApiError> {
    visit.app().remove_tool_settings(&tool).await?;
    Ok(NoContent)
}

pub(crate) async fn secrets(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<SecretList>, ApiError> {
    let shown = |card: SecretCard| SecretView {
        name: card.place.name,
        agent_id: card.place.agent,
        made: card.made,
        at: card.at,
    };
    // The same name may be there for several agents.
    let key = |card: &SecretCard| {
        let agent = card.place.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} {agent}", card.place.name)
    };
    let (secrets, next) = wanted.page(visit.app().secret_cards().await?, key, key);
    Ok(Json(SecretList { secrets: secrets.into_iter().map(shown).collect(), next }))
}

pub(crate) async fn put_secret(
    visit: Visit,
    Path(name): Path<SecretName>,
    Query(of): Query<AgentQuery>,
    Body(write): Body<SecretWrite>,
) -> Result<NoContent, ApiError> {
    visit.app().put_secret(name, of.agent_id, &write.value).await?;
    Ok(NoContent)
}

pub(crate) async fn remove_secret(
    visit: Visit,
    Path(name): Path<SecretName>,
    Query(of): Query<AgentQuery>,
) -> Result<NoContent, ApiError> {
    visit.app().remove_secret(name, of.agent_id).await?;
    Ok(NoContent)
}

/// The providers of the configuration file, which are those of every tenant.
fn configured(visit: &Visit) -> (Option<String>, Vec<ProviderView>) {
    let app = visit.gateway.app();
    let models = &app.setup().config().models;
    let providers = models.providers.iter().map(|(name, provider)| ProviderView {
        name: name.clone(),
        model: provider.model.clone(),
        models: provider.models.keys().cloned().collect(),
    });
    (models.provider.clone(), providers.collect())
}

pub(crate) async fn providers(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<ProviderList>, ApiError> {
    let (default, providers) = configured(&visit);
    let texts = |one: &ProviderView| format!("{} {}", one.name, one.models.join(" "));
    let (providers, next) = wanted.page(providers, |one| one.name.clone(), texts);
    Ok(Json(ProviderList { default, providers, next }))
}

pub(crate) async fn provider(visit: Visit, Path(name): Path<String>) -> Result<Json<ProviderView>, ApiError> {
    let found = configured(&visit).1.into_iter().find(|one| one.name == name);
    let shown: String = name.chars().take(100).collect();
    found.map(Json).ok_or_else(|| ApiError::not_found(format!("there is no provider `{shown}`")))
}
