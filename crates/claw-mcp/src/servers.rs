//! A tenant's servers as the store has them, and the tools that each caller gets of them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use claw_core::store::{McpGrant, McpServer, McpTool, McpToolState};
use claw_core::tool::{AnyTool, Caller, Digest, Unavailable};
use claw_core::{AgentId, ServerName, ToolName, UserId};
use claw_registry::{CallerTools, ToolLayer};

use crate::accepted_definition;
use crate::grants::{Access, access};
use crate::hub::{Hub, MOST_CALLERS, WeakHub};
use crate::resources_and_prompts::{OfferKind, OfferTool};
use crate::tool::BridgedTool;
use crate::tool_name::tool_name;

/// The store's rows of a tenant's servers.
pub(crate) struct Rows {
    pub(crate) servers: Vec<McpServer>,
    pub(crate) grants: Vec<McpGrant>,
    pub(crate) tools: Vec<McpTool>,
}

/// A snapshot of a tenant's servers.
pub(crate) struct Servers {
    /// The number of changes when they were read.
    pub(crate) at: u64,
    tools: Vec<Arc<BridgedTool>>,
    /// Tools for resources and prompts, each with the servers that offer such things.
    offers: Vec<Offered>,
    grants: HashMap<ServerName, Vec<McpGrant>>,
    /// A layer per set of tools, and the layers of callers.
    layers: Mutex<Layers>,
}

/// A tool for resources or prompts, and the servers that offer such things.
struct Offered {
    tool: Arc<OfferTool>,
    kind: OfferKind,
    servers: Vec<ServerName>,
}

#[derive(Default)]
struct Layers {
    by_caller: HashMap<(AgentId, Option<UserId>), Arc<ToolLayer>>,
    /// By the positions of the tools, those for resources and prompts after the others.
    by_tools: HashMap<Vec<usize>, Arc<ToolLayer>>,
}

impl Servers {
    /// Makes a snapshot of the rows. A tool that did not change since `before` stays the same one, and so does a layer
    /// whose tools did not change.
    pub(crate) fn read(hub: &WeakHub, at: u64, rows: Rows, before: Option<&Self>) -> Self {
        let mut grants: HashMap<ServerName, Vec<McpGrant>> = HashMap::new();
        for grant in rows.grants {
            grants.entry(grant.server.clone()).or_default().push(grant);
        }
        let enabled = rows.servers.into_iter().filter(|server| server.enabled);
        let enabled: HashMap<ServerName, Enabled> = enabled
            .map(|server| {
                let longest =
                    longest_call(&server, grants.get(&server.name).map(Vec::as_slice).unwrap_or_default());
                (server.name.clone(), Enabled { server: Arc::new(server), longest })
            })
            .collect();
        let tools = bridged(hub, &enabled, rows.tools, before);
        let offering = |kind: OfferKind| {
            let offers = |server: &&Arc<McpServer>| match kind {
                OfferKind::Resources => server.resources,
                OfferKind::Prompts => server.prompts,
            };
            let servers = enabled.values().map(|enabled| &enabled.server).filter(offers);
            let servers = servers.map(|server| server.name.clone()).collect();
            let known = before.and_then(|before| before.offers.iter().find(|offer| offer.kind == kind));
            let tool = known.map(|offer| Arc::clone(&offer.tool));
            let tool = tool.unwrap_or_else(|| Arc::new(OfferTool::new(hub.clone(), kind)));
            Offered { tool, kind, servers }
        };
        let offers = [OfferKind::Resources, OfferKind::Prompts].map(offering).into();
        let has_same_tools = |before: &&Self| {
            before.tools.len() == tools.len()
                && before.tools.iter().zip(&tools).all(|(before, now)| Arc::ptr_eq(before, now))
        };
        let by_tools = before.filter(has_same_tools).map(|before| before.layers().by_tools.clone());
        let layers = Layers { by_tools: by_tools.unwrap_or_default(), ..Layers::default() };
        Self { at, tools, offers, grants, layers: Mutex::new(layers) }
    }

    fn layer(&self, caller: &Caller) -> Arc<ToolLayer> {
        let key = (caller.agent.clone(), caller.user.clone());
        if let Some(known) = self.layers().by_caller.get(&key) {
            return Arc::clone(known);
        }
        let granted: HashMap<&ServerName, Access> = self
            .grants
            .iter()
            .filter_map(|(server, grants)| {
                Some((server, access(grants, &caller.agent, caller.user.as_ref()).ok()?))
            })
            .collect();
        let permitted = |(_, tool): &(usize, &Arc<BridgedTool>)| {
            granted.get(&tool.server.name).is_some_and(|access| access.permits(&tool.name))
        };
        let tools: Vec<_> = self.tools.iter().enumerate().filter(permitted).collect();
        let is_offered = |(_, offer): &(usize, &Offered)| {
            let permits = |name| granted.get(name).is_some_and(|access| access.permits(offer.kind.method()));
            offer.servers.iter().any(permits)
        };
        let offers: Vec<_> = self.offers.iter().enumerate().filter(is_offered).collect();
        let mut which: Vec<usize> = tools.iter().map(|(at, _)| *at).collect();
        which.extend(offers.iter().map(|(at, _)| self.tools.len() + at));
        let mut layers = self.layers();
        let make = || {
            let bridged = tools.iter().map(|(_, tool)| Arc::clone(tool) as Arc<dyn AnyTool>);
            let offers = offers.iter().map(|(_, offer)| Arc::clone(&offer.tool) as Arc<dyn AnyTool>);
            ToolLayer::new(bridged.chain(offers).collect())
        };
        let layer = Arc::clone(layers.by_tools.entry(which).or_insert_with(make));
        if layers.by_caller.len() >= MOST_CALLERS {
            layers.by_caller.clear();
        }
        layers.by_caller.insert(key, Arc::clone(&layer));
        layer
    }

    fn layers(&self) -> std::sync::MutexGuard<'_, Layers> {
        self.layers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server that may be called, with the longest time in seconds that any of its callers has for a call.
struct Enabled {
    server: Arc<McpServer>,
    longest: u32,
}

/// The longest timeout of one call, in seconds, of the server and of the agents that have their own.
fn longest_call(server: &McpServer, grants: &[McpGrant]) -> u32 {
    let own =
        grants.iter().filter(|grant| grant.enabled).filter_map(|grant| grant.config_overrides.timeout_secs);
    own.fold(server.timeout_secs, u32::max)
}

/// The accepted tools of the enabled servers. The first of two with the same name is kept.
fn bridged(
    hub: &WeakHub,
    enabled: &HashMap<ServerName, Enabled>,
    rows: Vec<McpTool>,
    before: Option<&Servers>,
) -> Vec<Arc<BridgedTool>> {
    let known = before.map(|before| before.tools.iter()).into_iter().flatten();
    let known: HashMap<(&ServerName, &str), &Arc<BridgedTool>> =
        known.map(|tool| ((&tool.server.name, tool.name.as_str()), tool)).collect();
    let (mut tools, mut names) = (Vec::with_capacity(rows.len()), HashSet::<ToolName>::new());
    for tool in rows.into_iter().filter(|tool| tool.state() == McpToolState::Accepted) {
        let Some(Enabled { server, longest }) = enabled.get(&tool.server) else { continue };
        let left_out = |why: &str| {
            tracing::warn!(server = %tool.server, tool = tool.name, "an MCP tool is left out: {why}");
        };
        let accepted = Digest::of(&tool.accepted);
        let limit = Some(accepted_definition::timeout_secs(*longest));
        let same = |known: &&&Arc<BridgedTool>| {
            known.accepted == accepted && *known.server == **server && known.meta.timeout_secs == limit
        };
        if let Some(same) = known.get(&(&tool.server, tool.name.as_str())).filter(same) {
            if names.insert(same.meta.name.clone()) {
                tools.push(Arc::clone(same));
            }
            continue;
        }
        match tool_name(server, &tool.name) {
            Ok(name) if !names.insert(name.clone()) => left_out("its name is taken"),
            Ok(_) => match accepted_definition::read(server, &tool, *longest) {
                Ok((meta, spec)) => {
                    let (hub, server, name) = (hub.clone(), Arc::clone(server), tool.name);
                    tools.push(Arc::new(BridgedTool { hub, server, name, accepted, meta, spec }));
                }
                Err(why) => left_out(&why),
            },
            Err(error) => left_out(&error.to_string()),
        }
    }
    tools
}

/// The tools of MCP servers: for each caller those that it was granted.
pub struct McpTools(pub(crate) Hub);

#[async_trait]
impl CallerTools for McpTools {
    fn name(&self) -> &str {
        "mcp"
    }

    async fn layer(&self, caller: &Caller) -> Result<Arc<ToolLayer>, Unavailable> {
        let servers = self.0.servers(&caller.tenant).await;
        let servers = servers.map_err(|error| Unavailable::because(error.to_string()))?;
        Ok(servers.layer(caller))
    }
}
