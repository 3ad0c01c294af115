//! The custom tools of each caller, as the store and the deployment's files have them now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use claw_core::store::{CustomToolPlace, StoreError, StoredCustomTool, Topic};
use claw_core::tool::{AnyTool, Caller, SecretVariables, Unavailable};
use claw_core::{AgentId, TenantId, ToolName};
use claw_registry::{CallerTools, ToolLayer};
use claw_store::vault::CustomToolValues;
use claw_store::{Backend, Vault};
use claw_tools::custom::{CustomTool, CustomToolSecrets};
use secrecy::ExposeSecret as _;
use tokio::sync::{OnceCell, watch};

use super::files;
use crate::app::{App, Error};

type Tool = Arc<dyn AnyTool>;

/// Pause between two looks at the files of the deployment.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause before files are tried again that cannot be used for a reason outside of them: a failure of the store, or a name
/// that begins like the tools of an MCP server.
const AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Gives each caller the enabled tools of its tenant and of its agent. An agent's tool shadows its tenant's
/// of the same name.
pub(crate) struct CustomToolSource {
    app: App,
    store: Arc<dyn Backend>,
    changes: watch::Receiver<u64>,
    vault: OnceCell<Vault>,
    /// Tools that files of the deployment define, for its own tenant.
    files: tokio::sync::Mutex<ReadFiles>,
    known: Mutex<HashMap<TenantId, Arc<Known>>>,
}

/// The tools of files, as they were last read.
struct ReadFiles {
    tools: Arc<Vec<files::FileTool>>,
    /// The files as they were when the tools were read.
    seen: files::Seen,
    /// Newer files that are to be tried again, and when.
    again: Option<(files::Seen, Instant)>,
    /// The time of the last look.
    looked: Instant,
    /// Rises with each reading.
    readings: u64,
}

/// The tools of one tenant.
struct Known {
    /// The number of changes in the store, and of readings of files, before they were read.
    changes: (u64, u64),
    rows: Vec<StoredCustomTool>,
    tools: HashMap<CustomToolPlace, Tool>,
    /// The layer for agents without tools of their own.
    common: Arc<ToolLayer>,
    agents: HashMap<AgentId, Arc<ToolLayer>>,
}

/// The definitions of a tenant's tools: the stored ones and those of files.
struct Definitions<'a> {
    rows: Vec<StoredCustomTool>,
    files: &'a [files::FileTool],
}

impl CustomToolSource {
    pub(super) fn new(app: &App) -> Result<Self, Error> {
        let store = Arc::clone(app.store());
        let changes = store.changes(Topic::Tools);
        let (seen, looked) = (files::seen(app), Instant::now());
        let tools = Arc::new(files::load(app)?);
        let files = tokio::sync::Mutex::new(ReadFiles { tools, seen, again: None, looked, readings: 0 });
        let (vault, known) = (OnceCell::new(), Mutex::default());
        Ok(Self { app: app.clone(), store, changes, vault, files, known })
    }

    /// Returns the tenant's current tools: the cached value if nothing changed.
    async fn of(&self, tenant: &TenantId) -> Result<Arc<Known>, StoreError> {
        // Looked at before the rows are read: a change in between makes them old, and they are read again.
        let (files, readings) = self.files().await;
        let changes = (*self.changes.borrow(), readings);
        let known = self.lock().get(tenant).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.changes == changes) {
            return Ok(Arc::clone(known));
        }
        let rows = self.store.custom_tools(tenant).await?;
        let now = match known {
            Some(known) if known.rows == rows && known.changes.1 == readings => {
                let Known { tools, common, agents, .. } = &*known;
                let (tools, common, agents) = (tools.clone(), Arc::clone(common), agents.clone());
                Known { changes, rows, tools, common, agents }
            }
            known => self.read(tenant, Definitions { rows, files: &files }, known.as_deref(), changes).await,
        };
        let now = Arc::new(now);
        self.lock().insert(tenant.clone(), Arc::clone(&now));
        Ok(now)
    }

    async fn read(
        &self,
        tenant: &TenantId,
        Definitions { rows, files }: Definitions<'_>,
        before: Option<&Known>,
        changes: (u64, u64),
    ) -> Known {
        let mut tools = HashMap::new();
        for row in rows.iter().filter(|row| row.card.definition.enabled) {
            let place = &row.card.place;
            // A tool that did not change is the same one as before: sessions that use it do not notice.
            let same = before.filter(|before| before.rows.contains(row));
            let tool = match same.and_then(|before| before.tools.get(place)) {
                Some(tool) => Some(Arc::clone(tool)),
                None => self.make(row).await,
            };
            tools.extend(tool.map(|tool| (place.clone(), tool)));
        }
        let own = |agent: Option<&AgentId>| -> HashMap<ToolName, Tool> {
            let stored = tools.iter().filter(|(place, _)| place.agent.as_ref() == agent);
            let stored = stored.map(|(place, tool)| (place.name.clone(), Arc::clone(tool)));
            let ours = files.iter().filter(|_| tenant == self.app.setup().tenant());
            let ours = ours.filter(|(of, _)| of.as_ref() == agent);
            // Tools of the deployment's files shadow the others.
            stored.chain(ours.map(|(_, tool)| (tool.meta().name.clone(), Arc::clone(tool)))).collect()
        };
        let common = own(None);
        let stored = tools.keys().filter_map(|place| place.agent.clone());
        let named = stored.chain(files.iter().filter_map(|(agent, _)| agent.clone()));
        let agents = named.map(|agent| {
            let mut all = common.clone();
            all.extend(own(Some(&agent)));
            (agent, layer(all))
        });
        let agents = agents.collect();
        Known { changes, rows, agents, common: layer(common), tools }
    }

    /// Creates the tool of a row; if that fails, it is left out and logged.
    async fn make(&self, row: &StoredCustomTool) -> Option<Tool> {
        let place = &row.card.place;
        let vault = self.vault.get_or_try_init(|| self.app.vault()).await;
        let values = match vault {
            Ok(vault) => vault.custom_tool_values(row).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let made = values.and_then(|values| {
            CustomTool::new(place, row.card.definition.clone(), secrets(&values))
                .map_err(|error| error.to_string())
        });
        match made {
            Ok(tool) => Some(Arc::new(tool)),
            Err(error) => {
                tracing::error!(tenant = %place.tenant, tool = %place.name, error, "a custom tool is left out");
                None
            }
        }
    }

    /// The tools of files, read again where a file changed. Files that cannot be read leave the tools as they were, and the
    /// log says why.
    async fn files(&self) -> (Arc<Vec<files::FileTool>>, u64) {
        let mut read = self.files.lock().await;
        if read.looked.elapsed() >= LOOK_EVERY {
            read.looked = Instant::now();
            let seen = files::seen(&self.app);
            let is_tried = |(tried, at): &(files::Seen, Instant)| *tried == seen && *at > Instant::now();
            if seen != read.seen && !read.again.as_ref().is_some_and(is_tried) {
                self.read_files(&mut read, seen).await;
            }
        }
        (Arc::clone(&read.tools), read.readings)
    }

    /// Reads files that changed. Those that are wrong themselves are read again when they change.
    async fn read_files(&self, read: &mut ReadFiles, seen: files::Seen) {
        let why = match (files::load(&self.app), files::check_names(&self.app).await) {
            (Err(error), _) => {
                (read.seen, read.again) = (seen, None);
                error
            }
            (Ok(_), Err(error)) => {
                read.again = Some((seen, Instant::now() + AGAIN_AFTER));
                error
            }
            (Ok(tools), Ok(())) => {
                (read.tools, read.seen, read.again) = (Arc::new(tools), seen, None);
                read.readings += 1;
                return;
            }
        };
        tracing::error!(error = %why, "the custom tools stay as they were");
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<TenantId, Arc<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Values in plain, for the tool that uses them.
pub(super) fn secrets(values: &CustomToolValues) -> CustomToolSecrets {
    let plain =
        |(name, value): (&str, &secrecy::SecretString)| (name.to_owned(), value.expose_secret().to_owned());
    CustomToolSecrets {
        variables: SecretVariables::new(values.env().map(plain).collect()),
        headers: SecretVariables::new(values.headers().map(plain).collect()),
    }
}

fn layer(tools: HashMap<ToolName, Tool>) -> Arc<ToolLayer> {
    let mut tools: Vec<_> = tools.into_iter().collect();
    tools.sort_by(|(a, _), (b, _)| a.cmp(b));
    ToolLayer::new(tools.into_iter().map(|(_, tool)| tool).collect())
}

#[async_trait]
impl CallerTools for CustomToolSource {
    fn name(&self) -> &str {
        "custom tools"
    }

    async fn layer(&self, caller: &Caller) -> Result<Arc<ToolLayer>, Unavailable> {
        let known = self.of(&caller.tenant).await.map_err(|error| {
            tracing::error!(%error, "the custom tools could not be read");
            Unavailable::because("the custom tools cannot be read right now; try again later")
        })?;
        Ok(Arc::clone(known.agents.get(&caller.agent).unwrap_or(&known.common)))
    }
}

#[cfg(test)]
mod tests;
