//! The callers that a person at a terminal acts as, or asks about.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::tool::{Caller, PeerKind, SubagentDepth};
use claw_core::{AgentId, InvalidId, SessionKey, UserId};
use claw_policy::config::ANY_AGENT;
use claw_policy::pipeline::Policy;

use super::agents::not_set_up;
use super::{Error, Setup};
use crate::config::Surroundings;

/// A caller that is described, rather than one that came in.
#[derive(Debug, Clone)]
pub struct CallerRequest {
    /// The agent that acts.
    pub agent: AgentId,
    /// The user it acts for.
    pub user: Option<UserId>,
    /// The session.
    pub session: SessionKey,
    /// The channel of the message; `None` for the part before the session's colon.
    pub channel: Option<String>,
    /// The group chat of the message.
    pub chat: Option<String>,
    /// The provider of the agent's model.
    pub provider: Option<String>,
    /// The agent's place in a tree of subagents.
    pub subagent: SubagentDepth,
    /// The tools that the message itself allows; `None` for all.
    pub request_allow: Option<Vec<String>>,
}

impl Setup {
    /// The caller that a request describes, in this workspace.
    pub fn caller(&self, request: CallerRequest, workspace: &Path) -> Caller {
        let config = self.config();
        let mut caller = Caller::new(request.agent, request.session, workspace);
        caller.tenant = config.tenant.clone();
        caller.user = request.user;
        if let Some(channel) = request.channel {
            caller.channel = channel.into();
        }
        if let Some(chat) = request.chat {
            caller.chat_id = Some(chat.into());
            caller.peer_kind = PeerKind::Group;
        }
        caller.provider = request.provider.map(Into::into);
        caller.subagent = request.subagent;
        caller.request_allow = request.request_allow.map(Into::into);
        caller.config = Arc::new(config.tool_settings());
        config.sandbox.sandboxing().apply(&mut caller);
        caller
    }

    /// Refuses an agent that neither the configuration nor the store has. Creates no store.
    pub async fn must_have_agent(&self, agent: &str) -> Result<(), Error> {
        let agents = &self.config().agents;
        if agent == ANY_AGENT || agents.contains_key(agent) {
            return Ok(());
        }
        let Some(app) = self.open_existing().await? else {
            return Err(not_set_up(agent, agents.keys().map(String::as_str)));
        };
        let found = app.must_have_agent(agent).await;
        app.close().await;
        found
    }

    /// The enforced policy: with the rules of the store, if there is one. Creates no store.
    pub async fn enforced_policy(&self) -> Result<Policy, Error> {
        let Some(app) = self.open_existing().await? else { return self.policy() };
        let policy = app.policy().await;
        app.close().await;
        policy
    }
}

/// Returns the user of this machine, or `me` if that is unknown.
pub fn local_user(around: &Surroundings) -> Result<UserId, InvalidId> {
    let name = ["USER", "LOGNAME"].iter().find_map(|name| around.variable(name)?.to_str());
    name.and_then(|name| UserId::new(name).ok()).map_or_else(|| UserId::new("me"), Ok)
}

/// Resolves a workspace; `None` is the current directory. A whole disk or a whole home is rejected.
pub fn local_workspace(named: Option<&Path>, around: &Surroundings) -> Result<PathBuf, Error> {
    let path = around.directory.join(named.unwrap_or(Path::new("")));
    let shown = path.display();
    let real = path
        .canonicalize()
        .map_err(|error| Error::invalid(format!("the workspace `{shown}` cannot be used")).because(error))?;
    if !real.is_dir() {
        return Err(Error::invalid(format!("the workspace `{shown}` is not a directory")));
    }
    let home = around.home().and_then(|home| home.canonicalize().ok());
    let what = match real.parent() {
        None => "the whole disk",
        Some(_) if home.as_ref() == Some(&real) => "the home directory itself",
        Some(_) if home.is_some_and(|home| home.starts_with(&real)) => "above the home directory",
        Some(_) => return Ok(real),
    };
    Err(Error::invalid(format!("`{}` is {what}, which is never a workspace", real.display()))
        .hint("change to a project's directory, or name one with `--workspace DIR`"))
}
