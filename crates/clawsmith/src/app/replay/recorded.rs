//! A call as the ledger has it, and the tools that it could be of.

use std::collections::HashMap;
use std::sync::Arc;

use claw_core::port::{ProgramHost as _, Registered};
use claw_core::store::{Entry, EntryEvent};
use claw_core::tool::{AnyTool, Caller, Effects, Meta};
use claw_core::{AgentId, TenantId, UserId};
use claw_mcp::Hub;
use claw_policy::pipeline::ToolSet;
use claw_registry::CallerTools;
use claw_sandbox::shell::CredentialedPrograms;
use serde_json::Value;

use crate::app::{App, Error, custom};

/// A call as the ledger has it.
pub(super) struct Recorded<'a> {
    pub(super) caller: Caller,
    pub(super) tool: &'a str,
    /// The arguments; `None` if the ledger does not have all of them.
    pub(super) args: Option<&'a Value>,
    /// The effects that the call was recorded with; `None` for a refused call.
    pub(super) effects: Option<Effects>,
}

impl<'a> Recorded<'a> {
    /// `None` for an entry that is no decision of the policy on a call.
    pub(super) fn of(entry: &'a Entry) -> Option<Self> {
        let record = &entry.record;
        // An operation of a person has none: no policy decided on it.
        let context = record.context.as_ref()?;
        let (args, effects) = match &record.event {
            EntryEvent::Intent { args, effects, .. } => (Some(args), Some(*effects)),
            EntryEvent::Refused { step, args, .. } if step == "authorise" || step == "judge" => {
                (args.as_ref(), None)
            }
            EntryEvent::Refused { .. } | EntryEvent::Outcome { .. } => return None,
        };
        let mut caller = Caller::new(record.agent.clone(), record.session.clone(), super::judge::WORKSPACE);
        caller.tenant = record.tenant.clone();
        caller.user = record.user.clone();
        caller.channel = context.channel.clone();
        caller.chat_id = context.chat.clone();
        caller.peer_kind = context.peer;
        caller.provider = context.provider.clone();
        caller.subagent = context.subagent;
        caller.request_allow = context.request_allow.clone().map(Into::into);
        Some(Self { caller, tool: &record.tool, args: args.filter(|args| is_whole(args)), effects })
    }

    /// The command or the arguments, scrubbed as the ledger has them.
    pub(super) fn example(&self) -> String {
        let command = || self.args.filter(|_| self.tool == "exec")?.get("command")?.as_str();
        let text = match (command(), self.args) {
            (Some(command), _) => command.to_owned(),
            (None, Some(args)) => args.to_string(),
            (None, None) => String::new(),
        };
        text.chars().take(120).collect()
    }
}

/// Returns whether the ledger has all of these arguments: of large ones it has a digest and the head.
fn is_whole(args: &Value) -> bool {
    !["left_out", "bytes", "digest", "head"].iter().all(|key| args.get(key).is_some())
}

/// The tools of one caller as they are now, and the programs that run with credentials.
pub(super) struct CallerToolbox {
    pub(super) set: ToolSet,
    tools: HashMap<String, Arc<dyn AnyTool>>,
    pub(super) programs: Registered,
}

impl CallerToolbox {
    /// Returns a tool of this build by its name.
    pub(super) fn tool(&self, name: &str) -> Option<&Arc<dyn AnyTool>> {
        self.tools.get(name)
    }
}

/// The most callers whose tools are kept.
const MOST_CALLERS: usize = 256;

/// The tools of the callers, kept for the calls that follow.
pub(super) struct KnownTools {
    common: Vec<Arc<dyn AnyTool>>,
    /// The tools of this build: the list of them says that they are built in, the tools themselves do not.
    builtin: Vec<Arc<Meta>>,
    /// The known tools that this build lacks.
    absent: Vec<Arc<Meta>>,
    /// Custom tools and the tools of MCP servers.
    layers: [Arc<dyn CallerTools>; 2],
    // Its tools hold it weakly.
    _hub: Hub,
    programs: CredentialedPrograms,
    callers: HashMap<(TenantId, AgentId, Option<UserId>), CallerToolbox>,
}

impl KnownTools {
    pub(super) fn new(app: &App) -> Result<Self, Error> {
        let made = claw_tools::builtin().map(|tool| (tool.make)());
        let hub = app.mcp_hub()?;
        Ok(Self {
            common: made.chain(app.own_tools.iter().cloned()).collect(),
            builtin: claw_tools::builtin().map(|tool| Arc::new(tool.meta.clone())).collect(),
            absent: claw_tools::absent().iter().cloned().map(Arc::new).collect(),
            layers: [custom::source(app)?, Arc::new(hub.tools())],
            _hub: hub,
            programs: app.programs()?,
            callers: HashMap::new(),
        })
    }

    /// The tools of a caller.
    pub(super) async fn of(&mut self, caller: &Caller) -> Result<&CallerToolbox, Error> {
        let key = (caller.tenant.clone(), caller.agent.clone(), caller.user.clone());
        if !self.callers.contains_key(&key) {
            let read = self.read(caller).await?;
            if self.callers.len() >= MOST_CALLERS {
                self.callers.clear();
            }
            self.callers.insert(key.clone(), read);
        }
        self.callers.get(&key).ok_or_else(|| Error::failed("the tools of a caller are lost"))
    }

    async fn read(&self, caller: &Caller) -> Result<CallerToolbox, Error> {
        let mut tools: HashMap<String, Arc<dyn AnyTool>> = HashMap::new();
        let mut add = |list: &[Arc<dyn AnyTool>]| {
            for tool in list {
                tools.entry(tool.meta().name.to_string()).or_insert_with(|| Arc::clone(tool));
            }
        };
        add(&self.common);
        for layer in &self.layers {
            add(layer.layer(caller).await.map_err(|why| Error::failed(why.0))?.tools());
        }
        let is_builtin = |meta: &Meta| self.builtin.iter().any(|known| known.name == meta.name);
        let others = tools.values().map(|tool| tool.meta()).filter(|meta| !is_builtin(meta));
        let present = self.builtin.iter().cloned().chain(others.cloned().map(Arc::new));
        let set = ToolSet::new(present, self.absent.iter().cloned());
        let programs = self.programs.programs(&caller.tenant, &caller.agent).await?;
        Ok(CallerToolbox { set, tools, programs })
    }
}
