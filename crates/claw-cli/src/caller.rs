//! The simulated caller: whose tools are shown, explained or called.

use std::path::Path;

use clap::Args;
use claw_core::tool::{Caller, Profile, SubagentDepth};
use claw_core::{AgentId, SessionKey, UserId};
use clawsmith::app::Setup;
use clawsmith::app::caller::CallerRequest;

use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::Failure;
use crate::opened::runtime;

/// The agent that stands for all agents a policy does not name.
pub(crate) const DEFAULT_AGENT: &str = claw_policy::config::ANY_AGENT;

const PROFILES: Choices<Profile> = &[
    ("full", "", Profile::Full),
    ("coding", "", Profile::Coding),
    ("messaging", "", Profile::Messaging),
    ("minimal", "", Profile::Minimal),
];

const INNER: SubagentDepth = SubagentDepth { depth: 1, leaf: false };
const LEAF: SubagentDepth = SubagentDepth { depth: 1, leaf: true };
const PLACES: Choices<SubagentDepth> =
    &[("inner", "A subagent that may start others", INNER), ("leaf", "A subagent that may not", LEAF)];

/// The caller of a tool.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Caller")]
pub(crate) struct CallerArgs {
    /// The agent that acts.
    #[arg(long, value_name = "ID", default_value = DEFAULT_AGENT)]
    pub(crate) agent: AgentId,
    /// The user it acts for [default: `$USER`].
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
    /// The session [default: `cli:USER`].
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<SessionKey>,
    /// The channel of the message [default: the part before the session's colon].
    #[arg(long, value_name = "NAME")]
    channel: Option<String>,
    /// The group chat of the message.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    chat: Option<String>,
    /// The tool profile to start from, instead of the configured one.
    #[arg(long, value_name = "NAME", value_parser = one_of(PROFILES))]
    profile: Option<Profile>,
    /// The provider of the agent's model.
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The agent's place in a tree of subagents.
    #[arg(long, value_name = "PLACE", value_parser = one_of(PLACES))]
    subagent: Option<SubagentDepth>,
    /// The tools that the message itself allows.
    #[arg(long, value_name = "ENTRY", value_delimiter = ',')]
    request_allow: Option<Vec<String>>,
}

impl CallerArgs {
    /// The configuration as this caller meets it: `--profile` replaces every configured profile.
    pub(crate) fn load(&self, session: &Session) -> Result<Setup, Failure> {
        let mut setup = session.load()?;
        runtime()?.block_on(setup.must_have_agent(self.agent.as_str()))?;
        if let Some(profile) = self.profile {
            let tools = &mut setup.loaded.config.tools;
            tools.profile = profile;
            tools.by_provider.values_mut().for_each(|provider| provider.profile = None);
        }
        Ok(setup)
    }

    /// Returns the given flags by which a policy can distinguish callers.
    pub(crate) fn flags(&self) -> String {
        let agent = Some(self.agent.to_string()).filter(|agent| agent != DEFAULT_AGENT);
        let flags = [
            ("agent", agent),
            ("profile", self.profile.map(|profile| profile.name().to_owned())),
            ("provider", self.provider.clone()),
            ("chat", self.chat.clone()),
            ("subagent", self.subagent.map(|at| if at.leaf { "leaf" } else { "inner" }.to_owned())),
            ("request-allow", self.request_allow.as_ref().map(|allow| allow.join(","))),
        ];
        let given = flags.into_iter().filter_map(|(flag, value)| Some(format!(" --{flag} {}", value?)));
        given.collect()
    }

    /// The caller, in this workspace.
    pub(crate) fn caller(&self, setup: &Setup, workspace: &Path) -> Result<Caller, Failure> {
        let user = match &self.user {
            Some(user) => user.clone(),
            None => clawsmith::app::caller::local_user(&setup.around)?,
        };
        let session = match &self.session {
            Some(session) => session.clone(),
            None => SessionKey::new(format!("cli:{user}"))?,
        };
        let request = CallerRequest {
            agent: self.agent.clone(),
            user: Some(user),
            session,
            channel: self.channel.clone(),
            chat: self.chat.clone(),
            provider: self.provider.clone(),
            subagent: self.subagent.unwrap_or_default(),
            request_allow: self.request_allow.clone(),
        };
        Ok(setup.caller(request, workspace))
    }

    /// The caller in the current directory.
    pub(crate) fn caller_here(&self, setup: &Setup) -> Result<Caller, Failure> {
        self.caller(setup, &setup.around.directory)
    }
}
