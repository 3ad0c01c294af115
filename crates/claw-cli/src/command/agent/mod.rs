//! `clawsmith agent`: the agents in the store, beside those of the configuration file.

mod files;

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use claw_core::AgentId;
use claw_core::port::{AgentSource, ResolvedAgent};
use claw_core::store::{AgentKind, AgentSetup, StoreError};
use claw_policy::config::AgentTools;
use clawsmith::app::{self, AgentView};
use serde_json::{Map, Value, json};

use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::{with_app, with_existing_app};
use crate::output::{Cell, Table, tell};

/// The operations on agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents, including those of the configuration file.
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
    /// Change an agent: options that are not given stay as they are.
    #[command(after_help = "Examples:
  clawsmith agent edit researcher --model gpt-5 --provider openai
  clawsmith agent edit researcher --allow read_file,search,glob
  clawsmith agent edit researcher --allow ''")]
    Edit(Edit),
    /// Remove an agent. Its sessions and documents are kept.
    #[command(after_help = "Examples:
  clawsmith agent remove researcher")]
    Remove(Which),
    /// List, print, write and remove an agent's context files.
    #[command(subcommand)]
    Files(files::Files),
}

/// An agent.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The agent's id.
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

/// The properties of an agent.
#[derive(Debug, Args)]
pub(crate) struct Parts {
    /// The display name [default: its id].
    #[arg(long)]
    name: Option<String>,
    /// The agent's purpose, in a sentence.
    #[arg(long)]
    about: Option<String>,
    /// The owner of its context files [default: open].
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// The provider of its model; empty for the deployment's.
    #[arg(long)]
    provider: Option<String>,
    /// The agent's model; empty for the deployment's.
    #[arg(long)]
    model: Option<String>,
    /// Keep only these of the tools that all agents have; empty for all of them.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    allow: Option<Vec<String>>,
    /// Remove these tools.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    deny: Option<Vec<String>>,
    /// Add these tools.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    also_allow: Option<Vec<String>>,
}

/// The owner of an agent's context files.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
    /// Each user has their own.
    Open,
    /// The agent's creator; a user has `USER.md`.
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

    fn show(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let id = self.id()?;
        let kept = with_existing_app(&setup, async |app| {
            let files = files::cards(app.store(), app.tenant(), &id, None).await?;
            Ok((app.agents(app.tenant()).await?, files))
        })?;
        let (views, files) = match kept {
            Some(kept) => kept,
            None => (setup.agents(), Vec::new()),
        };
        let Some(view) = views.iter().find(|view| view.agent.id == id) else {
            return Err(app::no_agent(&id, views.iter().map(|view| view.agent.id.as_str())).into());
        };
        let (agent, rules, narrowing) = (&view.agent, view.rules(), view.narrowing());
        if session.out.json {
            let mut shown = json!(agent);
            if let (Value::Object(shown), Value::Object(rules)) = (&mut shown, json!(rules)) {
                shown.extend(rules);
            }
            shown["narrowed_by"] = json!(narrowing);
            let from = agent.from;
            session.out.json(
                &json!({ "id": id, "from": from, "agent": shown, "version": view.version, "files": files }),
            )?;
            return Ok(ExitCode::SUCCESS);
        }
        let all = |list: &[String]| Some(list.join(", ")).filter(|list| !list.is_empty());
        let from = match agent.from {
            AgentSource::Store => "the store",
            AgentSource::Configuration => "the configuration file",
            AgentSource::Both => "the store, over the configuration file",
        };
        let lines = [
            ("id", Some(id.to_string())),
            ("name", Some(agent.name.clone())),
            ("about", Some(agent.about.clone()).filter(|about| !about.is_empty())),
            ("from", Some(from.to_owned())),
            ("kind", Some(kind_name(agent.kind).to_owned())),
            ("provider", agent.provider.as_ref().map(ToString::to_string)),
            ("model", agent.model.as_ref().map(ToString::to_string)),
            ("allow", rules.allow.as_deref().map(|list| list.join(", "))),
            ("deny", all(&rules.deny)),
            ("also allow", all(&rules.also_allow)),
            ("only", narrowing.and_then(|rules| rules.allow.as_deref()).map(|list| list.join(", "))),
            ("not", narrowing.and_then(|rules| all(&rules.deny))),
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
        let (setup, id) = (session.load()?, self.id()?);
        with_app(&setup, async |app| Ok(app.remove_agent(&id, None).await?))?;
        done(session, &id, "removed")
    }
}

impl Add {
    fn run(&self, session: &mut Session) -> Outcome {
        let (setup, id) = (session.load()?, self.which.id()?);
        let agent = self.parts.over(AgentSetup {
            name: id.to_string(),
            kind: AgentKind::Open,
            provider: None,
            model: None,
            policy: Value::Null,
            other_config: Map::new(),
        })?;
        let doubts = with_app(&setup, async |app| Ok(app.add_agent(&id, agent).await?))?;
        doubts.iter().for_each(tell);
        done(session, &id, "added")
    }
}

impl Edit {
    fn run(&self, session: &mut Session) -> Outcome {
        let (setup, id) = (session.load()?, self.which.id()?);
        let change = |agent| self.parts.over(agent);
        let doubts = with_app(&setup, async |app| Ok(app.edit_agent(&id, None, change).await?))?;
        doubts.iter().for_each(tell);
        done(session, &id, "changed")
    }
}

impl Parts {
    /// The agent with these parts in place of its own.
    fn over(&self, mut agent_setup: AgentSetup) -> Result<AgentSetup, app::Error> {
        let given = |text: &String| Some(text.trim()).filter(|text| !text.is_empty()).map(Into::into);
        if let Some(name) = &self.name {
            agent_setup.name.clone_from(name);
        }
        if let Some(about) = &self.about {
            agent_setup.other_config.insert("about".to_owned(), json!(about));
        }
        match self.kind {
            Some(Kind::Open) => agent_setup.kind = AgentKind::Open,
            Some(Kind::Predefined) => agent_setup.kind = AgentKind::Predefined,
            None => {}
        }
        if let Some(provider) = &self.provider {
            agent_setup.provider = given(provider);
        }
        if let Some(model) = &self.model {
            agent_setup.model = given(model);
        }
        let mut tools = app::tools_of(&agent_setup)?;
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
        agent_setup.policy = match tools == AgentTools::default() {
            true => Value::Null,
            false => json!(tools),
        };
        Ok(agent_setup)
    }
}

fn list(session: &mut Session) -> Outcome {
    let setup = session.load()?;
    let views = with_existing_app(&setup, async |app| Ok(app.agents(app.tenant()).await?))?;
    let views = views.unwrap_or_else(|| setup.agents());
    if session.out.json {
        let row = |AgentView { agent, version, .. }: &AgentView| {
            let ResolvedAgent { id, name, about, kind, provider, model, from, .. } = agent;
            json!({ "id": id, "name": name, "about": about, "from": from, "kind": kind, "provider": provider,
                    "model": model, "version": version })
        };
        session.out.json(&views.iter().map(row).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    if views.is_empty() {
        session.out.line("no agent is set up; `default` stands for all of them")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["id", "name", "kind", "model", "from", "about"]);
    for AgentView { agent, .. } in &views {
        let model = match (&agent.provider, &agent.model) {
            (None, None) => Cell::quiet("default"),
            (provider, model) => Cell::new(format!(
                "{}/{}",
                provider.as_deref().unwrap_or("default"),
                model.as_deref().unwrap_or("default")
            )),
        };
        let from = match agent.from {
            AgentSource::Configuration => "file",
            AgentSource::Store => "store",
            AgentSource::Both => "store, file",
        };
        table.row([
            Cell::strong(&agent.id),
            Cell::new(&agent.name),
            Cell::new(kind_name(agent.kind)),
            model,
            Cell::quiet(from),
            Cell::new(&agent.about),
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

/// Converts a store's error, which says itself what happened and what to try.
fn failed(error: StoreError) -> Failure {
    Failure::failed(error.to_string())
}
