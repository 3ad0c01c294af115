//! The files that a caller may reach with a tool: its directories, without denied paths.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use claw_core::port::{Access, Quota, Root, Scope};
use claw_core::tool::{Caller, Facts};
use claw_core::{AgentId, TenantId, ToolName};
use claw_policy::approval::Grantable;
use serde_json::Value;

/// Rules for the files that agents may reach beyond their workspaces, and those they may not. Can be replaced
/// while calls run.
///
/// A relative denied path is denied in every root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileRules {
    /// Further directories that everyone may reach. Files in them whose names mark them as secret are hidden.
    pub roots: Vec<Root>,
    /// Paths that are hidden from everyone.
    pub denied: Vec<PathBuf>,
    /// Files that configure the permissions of agents. They are denied too, with an error that says why.
    pub configuration: Vec<PathBuf>,
    /// The data directory, as an absolute path. It is hidden from everyone except for the workspaces in it:
    /// an agent that works in one of them reaches that one.
    pub data_dir: Option<PathBuf>,
    /// Directories outside the workspace that a person who answers can grant; `None` where nobody is asked about them.
    /// Set it where the person who answers owns this machine.
    pub grantable: Option<Grantable>,
    /// The quota of a workspace.
    pub quota: Option<Quota>,
    /// Rules of single agents.
    pub agents: HashMap<(TenantId, AgentId), AgentFiles>,
    /// Paths that are hidden from one tool.
    pub tools: HashMap<ToolName, Vec<PathBuf>>,
}

/// The files that one agent may reach.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentFiles {
    /// Further directories.
    pub roots: Vec<Root>,
    /// Paths that are hidden from it, besides those hidden from everyone.
    pub denied: Vec<PathBuf>,
    /// The quota of its workspace; `None` uses the common one.
    pub quota: Option<Quota>,
}

impl FileRules {
    /// The directory that Clawsmith keeps in a workspace, out of reach of agents.
    pub const OWN: &'static str = ".clawsmith";
    /// The directory in the data directory that holds workspaces.
    pub const WORKSPACES: &'static str = "workspaces";
    /// The directory in the data directory that holds the files of skills in use, each in a directory of its own.
    pub const SKILLS: &'static str = "skills";
    /// The other known parts of the data directory.
    pub const DATA_PARTS: &'static [&'static str] = &[
        "clawsmith.db",
        "clawsmith.db-wal",
        "clawsmith.db-shm",
        "clawsmith.db-journal",
        "clawsmith.db-mark",
        "keys",
        "artifacts",
        "undo",
        "homes",
        "sandbox",
        "installation",
    ];

    /// The files that a caller may reach with a tool.
    pub fn scope(&self, caller: &Caller, tool: &ToolName) -> Scope {
        scope(self, caller, tool, &caller.facts(tool.as_str()), Beside::default())
    }

    /// The parts of the data directory that are hidden from a scope with these roots: all of it, unless a
    /// root is a workspace or a skill in it, from which no other part can be reached.
    fn denied_data(&self, roots: &[Root]) -> Vec<PathBuf> {
        let Some(data) = &self.data_dir else { return Vec::new() };
        let shown = [data.join(Self::WORKSPACES), data.join(Self::SKILLS)];
        let is_shown =
            |root: &Root| shown.iter().any(|above| root.path.starts_with(above) && root.path != *above);
        match roots.iter().any(is_shown) {
            false => vec![data.clone()],
            true => Self::DATA_PARTS.iter().map(|part| data.join(part)).collect(),
        }
    }
}

impl Default for FileRules {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            denied: vec![PathBuf::from(Self::OWN)],
            configuration: Vec::new(),
            data_dir: None,
            grantable: None,
            quota: None,
            agents: HashMap::new(),
            tools: HashMap::new(),
        }
    }
}

/// Directories that one call reaches beside those of the rules.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Beside<'a> {
    /// Those of the skills in use, to be read.
    pub(crate) skills: &'a [PathBuf],
    /// Those outside the workspace that a person granted, or is asked about.
    pub(crate) directories: &'a [Root],
}

/// The scope of a caller's calls of one tool: its workspace, its team's and the further roots.
///
/// The directories of skills in use can be read. If the data directory lies in a root, all of it is denied,
/// and they are out of reach.
pub(crate) fn scope(
    rules: &FileRules,
    caller: &Caller,
    tool: &ToolName,
    facts: &Facts,
    beside: Beside<'_>,
) -> Scope {
    let mut scope = Scope::workspace(&caller.workspace);
    if let Some(team) = &caller.team_workspace {
        scope.roots.extend(Scope::workspace(team).roots);
    }
    scope.roots.extend(rules.roots.iter().cloned());
    scope.quota = rules.quota;
    let agent = match rules.agents.is_empty() {
        true => None,
        false => rules.agents.get(&(caller.tenant.clone(), caller.agent.clone())),
    };
    if let Some(agent) = agent {
        scope.roots.extend(agent.roots.iter().cloned());
        scope.quota = agent.quota.or(scope.quota);
    }
    scope.roots.extend(beside.directories.iter().cloned());
    let granted = rules.roots.iter().chain(agent.into_iter().flat_map(|agent| &agent.roots));
    let granted = granted.chain(beside.directories);
    scope.covered = granted.map(|root| root.path.clone()).collect();
    let holds = |root: &Root| rules.data_dir.as_ref().is_some_and(|data| data.starts_with(&root.path));
    if !scope.roots.iter().any(holds) {
        let read = |path: &PathBuf| Root { path: path.clone(), access: Access::Read };
        scope.roots.extend(beside.skills.iter().map(read));
    }
    let Some(of_settings) = deny_paths(&facts.settings) else {
        tracing::error!(%tool, "the tool's setting `deny_paths` is not a list of paths; no file can be reached");
        return Scope::default();
    };
    let of_agent = agent.map(|agent| agent.denied.as_slice()).unwrap_or_default();
    let of_tool = rules.tools.get(tool).map(Vec::as_slice).unwrap_or_default();
    let denied = [rules.denied.as_slice(), of_agent, of_tool].into_iter().flatten().map(PathBuf::as_path);
    scope.denied = rules.denied_data(&scope.roots);
    for path in denied.chain(of_settings) {
        scope.denied.extend(in_every(&scope.roots, path));
    }
    for path in &rules.configuration {
        scope.configuration.extend(in_every(&scope.roots, path));
    }
    scope.denied.extend(scope.configuration.iter().cloned());
    scope
}

/// A path in each of the roots; an absolute path stays as it is.
fn in_every(roots: &[Root], path: &Path) -> Vec<PathBuf> {
    // Joining an absolute path gives that path.
    let mut full: Vec<PathBuf> = roots.iter().map(|root| root.path.join(path)).collect();
    full.dedup();
    full
}

/// The paths that a tool's settings deny; `None` if they are invalid.
fn deny_paths(settings: &Value) -> Option<Vec<&Path>> {
    match settings.get("deny_paths") {
        None => Some(Vec::new()),
        Some(Value::Array(paths)) => paths.iter().map(|path| path.as_str().map(Path::new)).collect(),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests;
