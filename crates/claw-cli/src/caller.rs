//! The simulated caller: whose tools are shown, explained or called.

use std::path::Path;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use claw_core::tool::{Caller, PeerKind, Profile, SubagentDepth};
use claw_core::{AgentId, SessionKey, UserId};
use claw_policy::pipeline::Policy;
use clawsmith::app::{self, Setup};
use clawsmith::config::{Config, Surroundings};

use crate::cli::Session;
use crate::failure::Failure;
use crate::opened::with_existing_app;

/// The agent that stands for all agents a policy does not name.
pub(crate) const DEFAULT_AGENT: &str = claw_policy::config::ANY_AGENT;

/// The caller of a tool.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Caller")]
pub(crate) struct CallerArgs {
    /// The agent that acts.
    #[arg(long, value_name = "ID", default_value = DEFAULT_AGENT)]
    agent: String,
    /// The user it acts for [default: `$USER`].
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The session [default: `cli:USER`].
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// The channel of the message [default: the part before the session's colon].
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// The group chat of the message.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    chat: Option<String>,
    /// The tool profile to start from, instead of the configured one.
    #[arg(long, value_name = "NAME", value_enum)]
    profile: Option<ProfileName>,
    /// The provider of the agent's model.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The agent's place in a tree of subagents.
    #[arg(long, value_name = "PLACE", value_enum)]
    subagent: Option<Place>,
    /// The tools that the message itself allows.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    request_allow: Option<Vec<String>>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ProfileName {
    Full,
    Coding,
    Messaging,
    Minimal,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Place {
    /// A subagent that may start others.
    Inner,
    /// A subagent that may not.
    Leaf,
}

impl CallerArgs {
    /// The caller of an agent, with every default.
    pub(crate) fn of_agent(agent: String) -> Self {
        Self { agent, ..Self::default() }
    }

    /// The configuration as this caller meets it, with `--profile`.
    pub(crate) fn load(&self, session: &Session) -> Result<Setup, Failure> {
        let mut setup = session.load()?;
        AgentId::new(&self.agent).map_err(|error| Failure::usage(format!("`--agent`: {error}")))?;
        must_be_set_up(&self.agent, &setup)?;
        self.apply(&mut setup.loaded.config);
        Ok(setup)
    }

    /// Replaces every configured profile by `--profile`.
    fn apply(&self, config: &mut Config) {
        let Some(profile) = self.profile else { return };
        config.tools.profile = match profile {
            ProfileName::Full => Profile::Full,
            ProfileName::Coding => Profile::Coding,
            ProfileName::Messaging => Profile::Messaging,
            ProfileName::Minimal => Profile::Minimal,
        };
        config.tools.by_provider.values_mut().for_each(|provider| provider.profile = None);
    }

    /// The name of the agent.
    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// The session that was named.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Returns whether the session was named.
    pub(crate) fn names_session(&self) -> bool {
        self.session.is_some()
    }

    /// Returns the given flags by which a policy can distinguish callers.
    pub(crate) fn flags(&self) -> String {
        let agent = Some(self.agent.clone()).filter(|agent| agent != DEFAULT_AGENT);
        fn name(value: &impl ValueEnum) -> Option<String> {
            Some(value.to_possible_value()?.get_name().to_owned())
        }
        let flags = [
            ("agent", agent),
            ("profile", self.profile.as_ref().and_then(name)),
            ("provider", self.provider.clone()),
            ("chat", self.chat.clone()),
            ("subagent", self.subagent.as_ref().and_then(name)),
            ("request-allow", self.request_allow.as_ref().map(|allow| allow.join(","))),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some(format!(" --{flag} {}", value?)));
        given.collect()
    }

    /// The caller, in this workspace.
    pub(crate) fn caller(
        &self,
        config: &Config,
        around: &Surroundings,
        workspace: &Path,
    ) -> Result<Caller, Failure> {
        let wrong = |flag: &str, error: claw_core::InvalidId| Failure::usage(format!("`{flag}`: {error}"));
        let agent = AgentId::new(&self.agent).map_err(|error| wrong("--agent", error))?;
        let user = match &self.user {
            Some(user) => UserId::new(user).map_err(|error| wrong("--user", error))?,
            None => user_of(around).map_err(|error| wrong("--user", error))?,
        };
        let session = match &self.session {
            Some(session) => SessionKey::new(session),
            None => SessionKey::new(format!("cli:{user}")),
        };
        let session = session.map_err(|error| wrong("--session", error))?;
        let mut caller = Caller::new(agent, session, workspace);
        caller.tenant = config.tenant.clone();
        caller.user = Some(user);
        if let Some(channel) = &self.channel {
            caller.channel = channel.into();
        }
        if let Some(chat) = &self.chat {
            caller.chat_id = Some(chat.into());
            caller.peer_kind = PeerKind::Group;
        }
        caller.provider = self.provider.as_deref().map(Into::into);
        caller.config = Arc::new(config.tool_settings());
        caller.subagent = match self.subagent {
            None => SubagentDepth::default(),
            Some(place) => SubagentDepth { depth: 1, leaf: matches!(place, Place::Leaf) },
        };
        caller.request_allow = self.request_allow.clone().map(Into::into);
        config.sandbox.sandboxing().apply(&mut caller);
        Ok(caller)
    }
}

/// Returns the enforced policy: with the rules of the store, if there is one.
pub(crate) fn policy(setup: &Setup) -> Result<Policy, Failure> {
    match with_existing_app(setup, async |app| Ok(app.policy().await?))? {
        Some(policy) => Ok(policy),
        None => Ok(setup.policy()?),
    }
}

/// Refuses an agent that neither the configuration nor the store has.
pub(crate) fn must_be_set_up(agent: &str, setup: &Setup) -> Result<(), Failure> {
    if agent == DEFAULT_AGENT || setup.config().agents.contains_key(agent) {
        return Ok(());
    }
    let found = with_existing_app(setup, async |app| Ok(app.must_have_agent(agent).await?))?;
    found.ok_or_else(|| app::not_set_up(agent, setup.config().agents.keys().map(String::as_str)).into())
}

/// Returns the user of this machine, or `me` if that is unknown.
pub(crate) fn user_of(around: &Surroundings) -> Result<UserId, claw_core::InvalidId> {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| around.variable(name)?.to_str());
    name.and_then(|name| UserId::new(name).ok()).map_or_else(|| UserId::new("me"), Ok)
}
