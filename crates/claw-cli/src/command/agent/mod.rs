//! `clawsmith agent`: the agents that were set up, beside those of the configuration file.

mod files;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use claw_core::AgentId;
use claw_core::port::Clock as _;
use claw_core::store::{Agent, AgentKind, AgentSetup, StoreError};
use claw_host::SystemClock;
use claw_policy::config::AgentTools;
use claw_policy::lint::{Severity, lint};
use claw_policy::nearest::nearest;
use claw_store::Backend;
use serde_json::{Map, Value, json};

use crate::cli::Session;
use crate::compose;
use crate::config::{Loaded, unknown_provider};
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Table, tell};

/// What to do with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents, those of the configuration file too.
    #[command(after_help = "Examples:
  clawsmith agent list
  clawsmith agent list --json")]
    List,
    /// Show one agent: its model, its tools, its context files.
    #[command(after_help = "Examples:
  clawsmith agent show researcher")]
    Show(Which),
    /// Set an agent up.
    #[command(
        after_help = "An `open` agent is shaped by each of its users; of a `predefined` one they can change \
`USER.md` alone.

Examples:
  clawsmith agent add researcher --about 'Finds things out' --deny group:runtime
  clawsmith agent add support --kind predefined --provider anthropic --model claude-sonnet"
    )]
    Add(Add),
    /// Change an agent: what is not named stays as it is.
    #[command(after_help = "Examples:
  clawsmith agent edit researcher --model gpt-5 --provider openai
  clawsmith agent edit researcher --allow read_file,search,glob
  clawsmith agent edit researcher --allow ''")]
    Edit(Edit),
    /// Remove an agent. Its conversations and documents are kept.
    #[command(after_help = "Examples:
  clawsmith agent remove researcher")]
    Remove(Which),
    /// List, print, write and remove an agent's context files.
    #[command(subcommand)]
    Files(files::Files),
}

/// Which agent.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Its id.
    id: String,
}

/// A new agent.
#[derive(Debug, Args)]
pub(crate) struct Add {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    parts: Parts,
}

/// A changed agent.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    parts: Parts,
}

/// What an agent is.
#[derive(Debug, Args)]
pub(crate) struct Parts {
    /// What people call it [default: its id].
    #[arg(long)]
    name: Option<String>,
    /// What it is for, in a sentence.
    #[arg(long)]
    about: Option<String>,
    /// Whose its context files are [default: open].
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Who runs its model; empty for the deployment's.
    #[arg(long)]
    provider: Option<String>,
    /// Its model; empty for the deployment's.
    #[arg(long)]
    model: Option<String>,
    /// Only these tools are kept, of those that all agents have; empty for all of them.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    allow: Option<Vec<String>>,
    /// These tools are removed.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    deny: Option<Vec<String>>,
    /// These tools are added.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    also_allow: Option<Vec<String>>,
}

/// Whose an agent's context files are.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Each user shapes their own.
    Open,
    /// Whoever set it up; a user has `USER.md`.
    Predefined,
}

impl AgentCommand {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List => list(session),
            Self::Show(which) => which.show(session),
            Self::Add(add) => add.run(session),
            Self::Edit(edit) => edit.run(session),
            Self::Remove(which) => which.remove(session),
            Self::Files(files) => files.run(session),
        }
    }
}

impl Which {
    fn id(&self) -> Result<AgentId, Failure> {
        AgentId::new(&self.id).map_err(|error| Failure::usage(error.to_string()))
    }

    /// The id of an agent that the store may keep.
    fn storable(&self, loaded: &Loaded) -> Result<AgentId, Failure> {
        let id = self.id()?;
        if loaded.config.agents.contains_key(id.as_str()) {
            let failure = Failure::usage(format!("agent `{id}` is set up in the configuration file"));
            return Err(failure.hint("change it there; `clawsmith config show` says which file that is"));
        }
        if id.as_str() == claw_policy::config::ANY_AGENT {
            let failure = Failure::usage(format!("`{id}` stands for all agents that are not set up"));
            return Err(failure.hint("choose another id"));
        }
        Ok(id)
    }

    fn show(&self, session: &mut Session) -> Outcome {
        let mut loaded = session.load()?;
        let id = self.id()?;
        let configured = loaded.config.agents.contains_key(id.as_str());
        let (tenant, around) = (loaded.config.tenant.clone(), &session.around);
        let kept = compose::with_existing_store(&loaded.clone(), around, async |store| {
            let stored = store.agent(&tenant, &id).await.map_err(failed)?;
            let files = files::cards(store, &tenant, &id, None).await?;
            compose::add_stored_agents(&mut loaded, store).await?;
            Ok((stored, files))
        })?;
        let (stored, files) = kept.unwrap_or_default();
        // What the file says of an agent holds, and what the store says of it does not.
        let hidden = stored.is_some() && configured;
        let stored = stored.filter(|_| !configured);
        let Some(agent) = loaded.config.agents.get(id.as_str()) else { return Err(unknown(&id, &loaded)) };
        if session.out.json {
            let from = if stored.is_some() { "store" } else { "configuration" };
            session
                .out
                .json(&json!({ "id": id, "from": from, "agent": agent, "stored": stored, "files": files }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let all = |list: &[String]| Some(list.join(", ")).filter(|list| !list.is_empty());
        let from = match (&stored, hidden) {
            (Some(_), _) => "the store",
            (None, true) => "the configuration file; what the store has under this id is not used",
            (None, false) => "the configuration file",
        };
        let lines = [
            ("id", Some(id.to_string())),
            ("name", agent.name.clone()),
            ("about", Some(agent.about.clone()).filter(|about| !about.is_empty())),
            ("from", Some(from.to_owned())),
            ("kind", stored.as_ref().map(|agent| kind_name(agent.setup.kind).to_owned())),
            (
                "provider",
                stored.as_ref().and_then(|agent| agent.setup.provider.as_ref()).map(ToString::to_string),
            ),
            ("model", stored.as_ref().and_then(|agent| agent.setup.model.as_ref()).map(ToString::to_string)),
            ("allow", agent.allow.as_deref().map(|list| list.join(", "))),
            ("deny", all(&agent.deny)),
            ("also allow", all(&agent.also_allow)),
            ("files", all(&files.iter().map(|card| card.key.path.clone()).collect::<Vec<_>>())),
        ];
        for (name, value) in lines {
            if let Some(value) = value {
                session.out.field(name, &value)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn remove(&self, session: &mut Session) -> Outcome {
        let loaded = session.load()?;
        let id = self.storable(&loaded)?;
        let tenant = &loaded.config.tenant;
        compose::with_store(&loaded, &session.around, async |store| {
            let agent = found(store, &loaded, &id).await?;
            store.remove_agent(tenant, &id, agent.version, SystemClock.now()).await.map_err(failed)
        })?;
        done(session, &id, "removed")
    }
}

impl Add {
    fn run(&self, session: &mut Session) -> Outcome {
        let loaded = session.load()?;
        let id = self.which.storable(&loaded)?;
        let setup = self.parts.over(AgentSetup {
            name: id.to_string(),
            kind: AgentKind::Open,
            provider: None,
            model: None,
            policy: Value::Null,
            other_config: Map::new(),
        })?;
        self.parts.check_provider(&loaded)?;
        check(&loaded, &id, &setup)?;
        compose::with_store(&loaded, &session.around, async |store| {
            let put = store.put_agent((&loaded.config.tenant, &id), setup, None, SystemClock.now()).await;
            put.map_err(|error| match error {
                StoreError::Stale { .. } => Failure::failed(format!("there is an agent `{id}` already"))
                    .hint(format!("clawsmith agent edit {id}")),
                error => failed(error),
            })
        })?;
        done(session, &id, "added")
    }
}

impl Edit {
    fn run(&self, session: &mut Session) -> Outcome {
        let loaded = session.load()?;
        let id = self.which.storable(&loaded)?;
        self.parts.check_provider(&loaded)?;
        compose::with_store(&loaded, &session.around, async |store| {
            let agent = found(store, &loaded, &id).await?;
            let setup = self.parts.over(agent.setup)?;
            check(&loaded, &id, &setup)?;
            let seen = Some(agent.version);
            store
                .put_agent((&loaded.config.tenant, &id), setup, seen, SystemClock.now())
                .await
                .map_err(failed)
        })?;
        done(session, &id, "changed")
    }
}

impl Parts {
    /// Refuses a provider that nobody has written down.
    fn check_provider(&self, loaded: &Loaded) -> Result<(), Failure> {
        let named = self.provider.as_deref().map(str::trim).unwrap_or_default();
        match unknown_provider(&loaded.config.models, named) {
            Some(why) => Err(Failure::usage(format!("`--provider`: {why}"))),
            None => Ok(()),
        }
    }

    /// What an agent is with these parts put in place of its own.
    fn over(&self, mut setup: AgentSetup) -> Result<AgentSetup, Failure> {
        let given = |text: &String| Some(text.trim()).filter(|text| !text.is_empty()).map(Into::into);
        if let Some(name) = &self.name {
            setup.name.clone_from(name);
        }
        if let Some(about) = &self.about {
            setup.other_config.insert("about".to_owned(), json!(about));
        }
        match self.kind {
            Some(Kind::Open) => setup.kind = AgentKind::Open,
            Some(Kind::Predefined) => setup.kind = AgentKind::Predefined,
            None => {}
        }
        if let Some(provider) = &self.provider {
            setup.provider = given(provider);
        }
        if let Some(model) = &self.model {
            setup.model = given(model);
        }
        let mut tools = compose::tools_of(&setup)?;
        let entries =
            |list: &[String]| list.iter().filter(|entry| !entry.is_empty()).cloned().collect::<Vec<_>>();
        if let Some(allow) = &self.allow {
            tools.allow = Some(entries(allow)).filter(|allow| !allow.is_empty());
        }
        if let Some(deny) = &self.deny {
            tools.deny = entries(deny);
        }
        if let Some(also) = &self.also_allow {
            tools.also_allow = entries(also);
        }
        setup.policy = match tools == AgentTools::default() {
            true => Value::Null,
            false => serde_json::to_value(tools)?,
        };
        Ok(setup)
    }
}

/// Refuses rules that would not do what they say, and tells of those that may not.
fn check(loaded: &Loaded, id: &AgentId, setup: &AgentSetup) -> Result<(), Failure> {
    let mut config = loaded.config.clone();
    let before = lint(&config.policy(), &compose::catalogue());
    config.agents.insert(id.to_string(), compose::as_configured(setup)?);
    for finding in lint(&config.policy(), &compose::catalogue()) {
        match finding.severity {
            _ if before.contains(&finding) => {}
            Severity::Error => {
                return Err(Failure::usage(finding.to_string().trim_start_matches("error: "))
                    .hint("clawsmith tools list --all"));
            }
            Severity::Warning | Severity::Note => tell(finding),
        }
    }
    Ok(())
}

fn list(session: &mut Session) -> Outcome {
    let loaded = session.load()?;
    let stored = compose::with_existing_store(&loaded, &session.around, async |store| {
        store.agents(&loaded.config.tenant).await.map_err(failed)
    })?;
    let stored = stored.unwrap_or_default();
    let shadowed = |agent: &Agent| loaded.config.agents.contains_key(agent.id.as_str());
    if session.out.json {
        let configured = loaded.config.agents.iter().map(|(id, agent)| {
            json!({ "id": id, "name": agent.name.as_ref().unwrap_or(id), "about": agent.about,
                    "from": "configuration" })
        });
        let stored = stored.iter().filter(|agent| !shadowed(agent)).map(|agent| {
            json!({ "id": agent.id, "name": agent.setup.name, "about": agent.setup.about(), "from": "store",
                    "kind": agent.setup.kind, "provider": agent.setup.provider, "model": agent.setup.model,
                    "version": agent.version })
        });
        session.out.json(&configured.chain(stored).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if loaded.config.agents.is_empty() && stored.is_empty() {
        session.out.line("no agent is set up; `default` stands for all of them")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["id", "name", "kind", "model", "from", "about"]);
    for (id, agent) in &loaded.config.agents {
        let name = agent.name.as_ref().unwrap_or(id);
        let (kind, model) = (Cell::quiet("open"), Cell::quiet("default"));
        table.row([
            Cell::strong(id),
            Cell::new(name),
            kind,
            model,
            Cell::quiet("file"),
            Cell::new(&agent.about),
        ]);
    }
    for agent in stored.iter().filter(|agent| !shadowed(agent)) {
        let setup = &agent.setup;
        let model = match (&setup.provider, &setup.model) {
            (None, None) => Cell::quiet("default"),
            (provider, model) => Cell::new(format!(
                "{}/{}",
                provider.as_deref().unwrap_or("default"),
                model.as_deref().unwrap_or("default")
            )),
        };
        table.row([
            Cell::strong(&agent.id),
            Cell::new(&setup.name),
            Cell::new(kind_name(setup.kind)),
            model,
            Cell::quiet("store"),
            Cell::new(setup.about()),
        ]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}

const fn kind_name(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::Open => "open",
        AgentKind::Predefined => "predefined",
    }
}

fn done(session: &mut Session, id: &AgentId, what: &str) -> Outcome {
    if session.out.json {
        session.out.json(&json!({ what: id }))?;
    } else {
        session.out.line(format_args!("agent `{id}` is {what}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The stored agent of this id.
async fn found(store: &Arc<dyn Backend>, loaded: &Loaded, id: &AgentId) -> Result<Agent, Failure> {
    let tenant = &loaded.config.tenant;
    if let Some(agent) = store.agent(tenant, id).await.map_err(failed)? {
        return Ok(agent);
    }
    let mut loaded = loaded.clone();
    compose::add_stored_agents(&mut loaded, store).await?;
    Err(unknown(id, &loaded))
}

fn unknown(id: &AgentId, loaded: &Loaded) -> Failure {
    let failure = Failure::failed(format!("there is no agent `{id}`"));
    match nearest(id.as_str(), loaded.config.agents.keys()) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("clawsmith agent list"),
    }
}

/// The store says itself what happened and what to try.
fn failed(error: StoreError) -> Failure {
    Failure::failed(error.to_string())
}
