//! Examines the default model, the model of each agent, endpoints, and the programs with credentials.

use std::sync::Arc;

use claw_core::TenantId;
use claw_core::port::{AgentDirectory as _, Model, Models as _, ResolvedAgent};
use claw_core::store::ProgramCard;
use claw_llm::{EnvKeys, KNOWN_PROVIDERS, Keys, Providers};
use claw_sandbox::shell::digest_program;

use super::{Finding, State};
use crate::app::credentials::usable;
use crate::app::model_probe::ask as probe_model;
use crate::app::{App, Error, Setup};
use crate::config::{FoundBy, Origin};

/// Examines models, agents and credentials. Models are asked only with `probe`.
pub(super) async fn examine(setup: &Setup, app: Option<&App>, probe: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let known = match known_agents(setup, app).await {
        Ok(known) => known,
        Err(error) => {
            findings.push(Finding::bad("agents", error.to_string(), "clawsmith agent list"));
            Vec::new()
        }
    };
    let keys: Arc<dyn Keys> = match app.map(|app| app.keys(None)) {
        Some(Ok(keys)) => keys,
        Some(Err(error)) => {
            findings.push(Finding::bad("models", error.to_string(), "set `CLAWSMITH_DATA_DIR`"));
            return findings;
        }
        None => Arc::new(EnvKeys),
    };
    match setup.endpoints(Arc::clone(&keys)) {
        Ok(_) => findings.extend(keyless(setup)),
        Err(error) => findings.push(Finding::bad("endpoints", error.to_string(), "see docs/models.md")),
    }
    if let Err(error) = setup.web(Arc::clone(&keys)) {
        findings.push(Finding::bad("web", error.to_string(), "see docs/web.md"));
    }
    match setup.models(keys, None) {
        Ok(providers) => {
            findings.extend(usual(&providers, setup, probe).await);
            findings.extend(agents(&providers, setup.tenant(), &known, probe).await);
        }
        Err(error) => findings.push(Finding::bad("models", error.to_string(), "clawsmith config show")),
    }
    if let Some(app) = app {
        findings.extend(credentials(app).await);
    }
    findings
}

/// Returns what gives the default model an answer here. Where a setting names the provider, another provider's key has no
/// effect; where a file, variable or project goes before the user's file, `onboard` alone has none.
fn set_up(setup: &Setup) -> String {
    let found = setup.loaded.found.as_ref();
    let onboard = match found.filter(|found| matches!(found.by, FoundBy::Flag | FoundBy::Variable)) {
        Some(found) => format!("clawsmith onboard --file {}", found.path.display()),
        None => "clawsmith onboard".to_owned(),
    };
    let models = &setup.config().models;
    let Some(provider) = &models.provider else {
        return format!("{onboard}, or set a provider's key, for instance `ANTHROPIC_API_KEY`");
    };
    let known = KNOWN_PROVIDERS.iter().find(|known| known.name == provider);
    let written = models.providers.get(provider).and_then(|written| written.key_env.first().cloned());
    let variable = written.or_else(|| Some((*known?.key_env.first()?).to_owned()));
    let first = match variable {
        Some(variable) => format!("set `{variable}`"),
        None => format!("check that the server of `{provider}` is running"),
    };
    let settings = setup.loaded.settings().unwrap_or_default();
    let origin = settings.into_iter().find(|setting| setting.key == "models.provider").map(|set| set.origin);
    match (origin, found) {
        (Some(Origin::Env { variable, .. }), _) => format!("{first}, or change `${variable}`"),
        (Some(Origin::File { line }), Some(found)) if found.by == FoundBy::Project => {
            format!("{first}, or change `models.provider` in `{}`, line {line}", found.path.display())
        }
        _ => format!("{first}, or choose another provider: {onboard}"),
    }
}

/// Lists endpoints, and those whose key is expected in variables that are not set.
fn keyless(setup: &Setup) -> Vec<Finding> {
    const TOPIC: &str = "endpoints";
    let endpoints = &setup.config().endpoints;
    let missing = endpoints.iter().filter(|(_, endpoint)| {
        let set = |name: &String| setup.around.variable(name).is_some();
        endpoint.key_secret.is_empty() && !endpoint.key_env.is_empty() && !endpoint.key_env.iter().any(set)
    });
    let told = missing.map(|(name, endpoint)| {
        let what = format!("`{name}` has no key: `{}` is not set", endpoint.key_env.join("`, `"));
        Finding::worth(TOPIC, what, "set the variable, or store the key with `clawsmith secrets set`")
    });
    let mut findings: Vec<Finding> = told.collect();
    if findings.is_empty() && !endpoints.is_empty() {
        findings.push(Finding::good(TOPIC, format!("set up: {}", endpoints.len())));
    }
    findings
}

/// Checks the default model, and finds configured models that cannot be used.
async fn usual(providers: &Providers, setup: &Setup, probe: bool) -> Vec<Finding> {
    const TOPIC: &str = "models";
    let tenant = &setup.config().tenant;
    let mut findings = Vec::new();
    findings.push(match providers.model(tenant, None, None).await {
        Ok(model) if model.card().demo && model.card().provider == "demo" => {
            Finding::worth(TOPIC, "none is set up: a demo plays a script instead", set_up(setup))
        }
        Ok(model) => match asked(&model, probe).await {
            Ok(how) => Finding::good(TOPIC, format!("`{}` answers if no model is named{how}", name(&model))),
            Err(error) => Finding::bad(TOPIC, error, set_up(setup)),
        },
        Err(error) => Finding::bad(TOPIC, error.to_string(), set_up(setup)),
    });
    for card in providers.list(tenant).await {
        let is_written = setup.config().models.providers.contains_key(card.name.as_str());
        if is_written && !card.is_ready() {
            let why = card.keys.map_or_else(|error| error, |_| "no key is set".to_owned());
            let fix = format!(
                "set the variable that `models.providers.{}.key_env` names, or store the key with `clawsmith secrets set`",
                card.name
            );
            findings.push(Finding::worth(
                TOPIC,
                format!("provider `{}` cannot be used: {why}", card.name),
                fix,
            ));
        }
    }
    for name in &setup.config().models.fallback {
        if let Some((provider, model)) = name.split_once('/')
            && let Err(error) = providers.model(tenant, Some(provider), Some(model)).await
        {
            let fix = "set its key, or remove it from `models.fallback`";
            findings.push(Finding::worth(TOPIC, format!("fallback `{name}` cannot be used: {error}"), fix));
        }
    }
    findings
}

/// The agents of the deployment's tenant.
async fn known_agents(setup: &Setup, app: Option<&App>) -> Result<Vec<ResolvedAgent>, Error> {
    match app {
        Some(app) => Ok(app.agents(app.tenant()).await?.into_iter().map(|view| view.agent).collect()),
        None => setup
            .agent_resolver()
            .list(setup.tenant())
            .await
            .map_err(|error| Error::failed("the agents cannot be read").because(error)),
    }
}

/// Checks that each agent has a usable model.
async fn agents(
    providers: &Providers,
    tenant: &TenantId,
    known: &[ResolvedAgent],
    probe: bool,
) -> Vec<Finding> {
    const TOPIC: &str = "agents";
    let mut findings = Vec::new();
    for ResolvedAgent { id, provider, model, .. } in known {
        let named = (provider.as_deref(), model.as_deref());
        let why = match providers.model(tenant, named.0, named.1).await {
            // The usual model was asked already.
            Ok(model) => asked(&model, probe && named != (None, None)).await.err(),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            let fix = format!(
                "clawsmith agent edit {id} --model PROVIDER/MODEL, or `agents.{id}` in the configuration"
            );
            findings.push(Finding::bad(TOPIC, format!("agent `{id}` has no model: {why}"), fix));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good(
            TOPIC,
            match known.len() {
                0 => "only the default agent".to_owned(),
                count => format!("{count}, each with a model"),
            },
        ));
    }
    findings
}

/// Returns whether a program's file is unchanged since it was added.
fn is_as_added(card: &ProgramCard) -> bool {
    let now = digest_program(std::path::Path::new(&card.settings.binary)).ok();
    now.is_some() && card.settings.digest == now
}

/// Checks that the programs with credentials exist and can be run.
async fn credentials(app: &App) -> Vec<Finding> {
    const TOPIC: &str = "credentials";
    let programs = match app.store().programs(app.tenant()).await {
        Ok(programs) => programs,
        Err(error) => return vec![Finding::bad(TOPIC, error.to_string(), "clawsmith db status")],
    };
    let mut findings = Vec::new();
    for card in &programs {
        let name = &card.place.name;
        if !card.settings.enabled {
            let what = format!("`{name}` is disabled");
            findings.push(Finding::worth(TOPIC, what, format!("clawsmith credentials add {name}")));
        } else if let Err(failure) = usable(std::path::Path::new(&card.settings.binary)) {
            let fix = format!("install it, or run `clawsmith credentials add {name} --binary PATH`");
            findings.push(Finding::bad(TOPIC, format!("`{name}`: {failure}"), fix));
        } else if !is_as_added(card) {
            let what = format!("the file of `{name}` has changed since it was added, so it does not run");
            findings.push(Finding::bad(TOPIC, what, format!("clawsmith credentials accept {name}")));
        }
    }
    if !findings.iter().any(|finding| finding.state == State::Bad) && !programs.is_empty() {
        findings.push(Finding::good(TOPIC, format!("{}, with their programs installed", programs.len())));
    }
    findings
}

/// Asks a model for one word, if `probe`.
async fn asked(model: &Arc<dyn Model>, probe: bool) -> Result<&'static str, String> {
    if !probe {
        return Ok("");
    }
    match probe_model(&**model).await {
        Ok(_) => Ok(" (tested just now)"),
        Err(error) => Err(error.to_string()),
    }
}

fn name(model: &Arc<dyn Model>) -> String {
    format!("{}/{}", model.card().provider, model.card().model)
}
