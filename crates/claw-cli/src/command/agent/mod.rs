//! `clawsmith agent`: the agents in the store, beside those of the configuration file.

mod files;

use clap::{Args, Subcommand};
use claw_core::AgentId;
use claw_core::port::AgentSource;
use claw_core::store::AgentKind;
use claw_policy::config::AgentTools;
use claw_terminal::{Cell, tell};
use clawsmith::app::context::ContextOwner;
use clawsmith::app::{self, AgentCard, AgentChange};
use serde_json::json;

use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::with_existing_app;

/// The operations on agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List the agents, including those of the configuration file.
    List,
    /// Show one agent: its model, its tools, its context files.
    Show(Which),
    /// Set an agent up.
    Add(Changed),
    /// Change an agent: options that are not given stay as they are.
    Edit(Changed),
    /// Remove an agent. Its sessions and documents are kept.
    Remove(Which),
    /// List, print, write and remove an agent's context files.
    #[command(subcommand)]
    Files(files::Files),
}

/// An agent.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The agent's id.
    id: AgentId,
}

/// An agent and its properties.
#[derive(Debug, Args)]
pub(crate) struct Changed {
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
    #[arg(long, value_parser = one_of(KINDS))]
    kind: Option<AgentKind>,
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
const KINDS: Choices<AgentKind> = &[
    ("open", "Each user has their own", AgentKind::Open),
    ("predefined", "The agent's creator; a user has `USER.md`", AgentKind::Predefined),
];

impl AgentCommand {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List => list(session),
            Self::Show(which) => which.show(session),
            Self::Add(Changed { which, parts }) => {
                let agent = parts.change(AgentTools::default()).of_new(&which.id)?;
                let doubts = session.app(async |app| app.add_agent(&which.id, agent).await)?;
                doubts.iter().for_each(tell);
                done(session, &which.id, "added")
            }
            Self::Edit(Changed { which, parts }) => {
                let change = |agent| parts.change(app::tools_of(&agent)?).over(agent);
                let doubts = session.app(async |app| app.edit_agent(&which.id, None, change).await)?;
                doubts.iter().for_each(tell);
                done(session, &which.id, "changed")
            }
            Self::Remove(which) => {
                session.app(async |app| app.remove_agent(&which.id, None).await)?;
                done(session, &which.id, "removed")
            }
            Self::Files(files) => files.run(session),
        }
    }
}

impl Which {
    fn show(self, session: &mut Session) -> Outcome {
        let (setup, id) = (session.load()?, self.id);
        let kept = with_existing_app(&setup, async |app| {
            let views = app.agents(app.tenant()).await?;
            let owner = ContextOwner { agent: id.clone(), user: None };
            let files = match views.iter().any(|view| view.agent.id == id) {
                true => app.context_files(&owner).await?,
                false => Vec::new(),
            };
            Ok((views, files))
        })?;
        let (views, files) = kept.unwrap_or_else(|| (setup.agents(), Vec::new()));
        let Some(view) = views.iter().find(|view| view.agent.id == id) else {
            return Err(app::no_agent(&id, views.iter().map(|view| view.agent.id.as_str())).into());
        };
        let (agent, rules, narrowing) = (&view.agent, view.rules(), view.narrowing());
        let value = json!({
            "id": id,
            "from": agent.from,
            "agent": view.json(),
            "version": view.version,
            "files": files,
        });
        let all = |list: &[String]| Some(list.join(", ")).filter(|list| !list.is_empty());
        let from = match agent.from {
            AgentSource::Store => "the store",
            AgentSource::Configuration => "the configuration file",
            AgentSource::Both => "the store and the configuration file; the store takes precedence",
        };
        session.shown(&value, |out| {
            Ok(out.fields([
                ("id", Some(id.to_string())),
                ("name", Some(agent.name.clone())),
                ("about", Some(agent.about.clone()).filter(|about| !about.is_empty())),
                ("from", Some(from.to_owned())),
                ("kind", Some(app::agent_kind_name(agent.kind).to_owned())),
                ("provider", agent.provider.as_ref().map(ToString::to_string)),
                ("model", agent.model.as_ref().map(ToString::to_string)),
                ("allow", rules.allow.as_deref().map(|list| list.join(", "))),
                ("deny", all(&rules.deny)),
                ("also allow", all(&rules.also_allow)),
                ("only", narrowing.and_then(|rules| rules.allow.as_deref()).map(|list| list.join(", "))),
                ("not", narrowing.and_then(|rules| all(&rules.deny))),
                ("files", all(&files.iter().map(|card| card.key.path.clone()).collect::<Vec<_>>())),
            ])?)
        })
    }
}

impl Parts {
    /// These parts as a change of an agent with such tool rules.
    fn change(self, mut tools: AgentTools) -> AgentChange {
        let entries =
            |list: Vec<String>| list.into_iter().filter(|entry| !entry.is_empty()).collect::<Vec<_>>();
        if let Some(allow) = self.allow {
            tools.allow = Some(entries(allow)).filter(|allow| !allow.is_empty());
        }
        tools.deny = self.deny.map_or(tools.deny, entries);
        tools.also_allow = self.also_allow.map_or(tools.also_allow, entries);
        let Self { name, about, kind, provider, model, .. } = self;
        AgentChange { name, about, kind, provider, model, tools: Some(tools) }
    }
}

fn list(session: &mut Session) -> Outcome {
    let views = session.existing_app(async |app| app.agents(app.tenant()).await)?;
    let views = match views {
        Some(views) => views,
        None => session.load()?.agents(),
    };
    let cards: Vec<AgentCard> = views.iter().map(AgentCard::from).collect();
    session.list(
        &cards,
        "no agent is set up; the agent `default` stands for every agent",
        &[
            ("id", &|agent| Cell::strong(&agent.id)),
            ("name", &|agent| Cell::new(&agent.name)),
            ("kind", &|agent| Cell::new(app::agent_kind_name(agent.kind))),
            ("model", &|agent| match (agent.provider.as_deref(), agent.model.as_deref()) {
                (None, None) => Cell::quiet("default"),
                (provider, model) => {
                    Cell::new(format!("{}/{}", provider.unwrap_or("default"), model.unwrap_or("default")))
                }
            }),
            ("from", &|agent| {
                Cell::quiet(match agent.from {
                    AgentSource::Configuration => "file",
                    AgentSource::Store => "store",
                    AgentSource::Both => "store, file",
                })
            }),
            ("about", &|agent| Cell::new(&agent.about)),
        ],
    )
}

fn done(session: &mut Session, id: &AgentId, what: &str) -> Outcome {
    session.told(&json!({ what: id }), format_args!("agent `{id}` is {what}"))
}
