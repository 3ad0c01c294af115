//! Credentialed programs: registered, accepted, tested and removed. Values of their variables go in and never come out.

use std::collections::BTreeMap;
use std::path::Path as FilePath;

use claw_core::ProgramName;
use clawsmith::app::access::CallerWish;
use clawsmith::app::credentials::{NewProgram, ProgramRow, TestedProgram, usable};
use clawsmith::store::{ProgramCard, ProgramPlace};
use clawsmith::{AgentId, UnixMillis};
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::api::{Body, Json, NoContent, Path, Query, Visit};
use crate::error::ApiError;
use crate::listing::ListQuery;
use crate::settings::AgentQuery;

/// Credentialed programs, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProgramList {
    programs: Vec<ProgramView>,
    /// The `cursor` of the next page; `null` on the last.
    next: Option<String>,
}

/// A credentialed program, with the names of its variables.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgramView {
    name: ProgramName,
    /// The agent that it is for; `null` for all.
    agent_id: Option<AgentId>,
    /// The file that is run.
    binary: String,
    /// Names of its variables. Their values are never shown.
    variables: Vec<String>,
    /// Calls whose arguments match one of these patterns are refused.
    deny_args: Vec<String>,
    /// Arguments that begin with one of these are refused.
    deny_verbose: Vec<String>,
    /// Programs that it may run besides itself.
    helpers: Vec<String>,
    timeout_seconds: u32,
    /// Advice for agents that use it.
    tips: String,
    /// False refuses every call.
    enabled: bool,
    /// Time of the last change.
    at: UnixMillis,
}

/// A program to register, or to put in the place of the one of this name.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ProgramWish {
    /// The file, by its absolute path; by default the program of this name in the gateway's `PATH`.
    binary: Option<String>,
    /// Its variables with their values, which are sealed and never shown.
    #[schemars(with = "BTreeMap<String, String>")]
    variables: BTreeMap<String, SecretString>,
    /// Patterns of forbidden arguments.
    #[serde(default)]
    deny_args: Vec<String>,
    /// Beginnings of arguments that would make it tell its credentials.
    #[serde(default)]
    deny_verbose: Vec<String>,
    /// Programs that it may run besides itself.
    #[serde(default)]
    helpers: Vec<String>,
    /// Time limit of one call.
    timeout_seconds: Option<u32>,
    /// Advice for agents that use it.
    #[serde(default)]
    tips: String,
    /// False refuses every call; by default true.
    enabled: Option<bool>,
    /// Leaves out the rules that are known for a program of this name.
    #[serde(default)]
    bare: bool,
}

/// A program that was registered.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProgramAdded {
    program: ProgramView,
    /// Values that are too short to be recognised in its output.
    warnings: Vec<String>,
}

/// A test of a program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProgramTest {
    /// The arguments to check.
    #[serde(default)]
    arguments: Vec<String>,
    /// Runs the program with them; by default it is only checked.
    #[serde(default)]
    run: bool,
}

/// The result of a test.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProgramTested {
    program: ProgramView,
    /// The reason why the arguments are refused; `null` if they are allowed.
    refused: Option<String>,
    /// How the program ended; `null` if it was not run.
    ran: Option<ProgramRan>,
}

/// The end of a program that was run.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProgramRan {
    /// The exit code; `null` if a signal ended it.
    exit: Option<i32>,
    /// The signal that ended it; `null` if it exited.
    signal: Option<i32>,
    /// Its output, scrubbed.
    output: String,
}

fn shown(card: ProgramCard) -> ProgramView {
    let settings = card.settings;
    ProgramView {
        name: card.place.name,
        agent_id: card.place.agent,
        binary: settings.binary,
        variables: card.variables,
        deny_args: settings.deny_args,
        deny_verbose: settings.deny_verbose,
        helpers: settings.helpers,
        timeout_seconds: settings.timeout_secs,
        tips: settings.tips,
        enabled: settings.enabled,
        at: card.at,
    }
}

fn place(visit: &Visit, of: AgentQuery, name: ProgramName) -> ProgramPlace {
    ProgramPlace { tenant: visit.visitor().tenant.clone(), agent: of.agent_id, name }
}

pub(crate) async fn list(
    visit: Visit,
    Query(wanted): Query<ListQuery>,
) -> Result<Json<ProgramList>, ApiError> {
    // The same name may be there for several agents.
    let key = |card: &ProgramCard| {
        let agent = card.place.agent.as_ref().map(ToString::to_string).unwrap_or_default();
        format!("{} {agent}", card.place.name)
    };
    let (programs, next) = wanted.page(visit.app().program_cards().await?, key, key);
    Ok(Json(ProgramList { programs: programs.into_iter().map(shown).collect(), next }))
}

pub(crate) async fn get(
    visit: Visit,
    Path(name): Path<ProgramName>,
    Query(of): Query<AgentQuery>,
) -> Result<Json<ProgramView>, ApiError> {
    Ok(Json(shown(visit.app().program_card(&place(&visit, of, name)).await?)))
}

pub(crate) async fn put(
    visit: Visit,
    Path(name): Path<ProgramName>,
    Query(of): Query<AgentQuery>,
    Body(wish): Body<ProgramWish>,
) -> Result<Json<ProgramAdded>, ApiError> {
    let app = visit.app();
    app.may_define_programs(visit.visitor())?;
    if let Some(binary) = wish.binary.as_deref().map(FilePath::new) {
        if !binary.is_absolute() {
            return Err(ApiError::invalid("`binary` is not an absolute path; write one, or leave it out"));
        }
        usable(binary).map_err(|error| ApiError::invalid(error.message()))?;
    }
    let place = place(&visit, of, name);
    let row = ProgramRow {
        binary_name: place.name.to_string(),
        binary_path: wish.binary,
        encrypted_env: wish.variables,
        deny_args: wish.deny_args,
        deny_verbose: wish.deny_verbose,
        helpers: wish.helpers,
        timeout_seconds: wish.timeout_seconds,
        tips: wish.tips,
        agent_id: place.agent.as_ref().map(ToString::to_string),
        enabled: wish.enabled.unwrap_or(true),
    };
    let mut program = NewProgram { place: place.clone(), ..app.setup().new_program(row, wish.bare)? };
    let warnings = program.warnings();
    let workspaces = app.setup().workspaces()?;
    app.add_programs(std::slice::from_mut(&mut program), Some(&workspaces)).await?;
    Ok(Json(ProgramAdded { program: shown(app.program_card(&place).await?), warnings }))
}

pub(crate) async fn accept(
    visit: Visit,
    Path(name): Path<ProgramName>,
    Query(of): Query<AgentQuery>,
) -> Result<Json<ProgramView>, ApiError> {
    let (app, place) = (visit.app(), place(&visit, of, name));
    app.may_define_programs(visit.visitor())?;
    app.accept_program(&place).await?;
    Ok(Json(shown(app.program_card(&place).await?)))
}

pub(crate) async fn test(
    visit: Visit,
    Path(name): Path<ProgramName>,
    Query(of): Query<AgentQuery>,
    Body(asked): Body<ProgramTest>,
) -> Result<Json<ProgramTested>, ApiError> {
    let app = visit.app();
    app.may_define_programs(visit.visitor())?;
    let agent = of.agent_id.as_ref().map(ToString::to_string);
    let wish = CallerWish { agent: agent.as_deref(), session: None };
    // It runs where the agent's tools would work for this user.
    let workspace = visit.gateway.app().caller_of(visit.visitor(), &wish).await?.workspace;
    let place = place(&visit, of, name);
    let tested = app.test_program_in(&place, &asked.arguments, asked.run, &workspace).await?;
    let TestedProgram { card, refused, ran } = tested;
    let scrubber = visit.sessions().deployment().executor.scrubbers().for_tenant(&visit.visitor().tenant);
    let ran =
        ran.map(|ran| ProgramRan { exit: ran.exit, signal: ran.signal, output: scrubber.said(&ran.output) });
    let program = shown((*card).clone());
    Ok(Json(ProgramTested { program, refused: refused.map(|why| scrubber.said(&why)), ran }))
}

pub(crate) async fn remove(
    visit: Visit,
    Path(name): Path<ProgramName>,
    Query(of): Query<AgentQuery>,
) -> Result<NoContent, ApiError> {
    visit.app().remove_program(&place(&visit, of, name)).await?;
    Ok(NoContent)
}
