//! The application: everything that front ends share, and nothing of any one.
//!
//! ```text
//!  Setup: configuration and environment ──open──▶ App: store, agents, sessions, approvals, undo, secrets
//! ```
//!
//! [`Setup`] is a loaded configuration. [`App`] is the same with its store open. A front end (the command
//! line, a gateway, a program of yours) holds arguments, transport and rendering; it asks an [`App`] for the
//! rest. Nothing here prints, reads a terminal or speaks a protocol.

pub mod access;
mod agents;
mod approvals;
pub mod attached_files;
pub mod call;
pub mod caller;
pub mod chat;
mod client_tools;
mod compose;
mod config_report;
pub mod context;
pub mod credentials;
pub mod custom;
mod doctor;
mod error;
mod follow_changes;
mod follow_session;
mod granted_directories;
pub mod graph;
mod installation;
pub mod listen;
pub mod log;
pub mod mcp;
pub mod memory;
pub mod mode;
pub mod model_probe;
mod models;
pub mod onboard;
mod pdf_process;
pub mod policy;
pub mod question;
pub mod records;
pub mod reload;
pub mod replay;
mod requested_input;
mod rule_check;
mod running_programs;
mod runs;
pub mod sandbox;
mod secrets;
pub mod session_list;
mod session_lock;
mod sessions;
pub mod settings;
mod setup;
mod shell;
pub mod shown_call;
pub mod shown_session;
mod skills;
pub mod tool_list;
pub mod tool_view;
pub mod toolchains;
#[cfg(feature = "otel")]
mod traces;
#[cfg(not(feature = "otel"))]
#[path = "no_traces.rs"]
mod traces;
pub mod undo;
mod web;
mod without_store;
pub mod words;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use claw_core::TenantId;
use claw_core::port::Embedder;
use claw_core::store::{CallStore, StoreError};
use claw_core::tool::{AnyTool, Tool, erase};
use claw_host::transaction::Transactions;
use claw_mcp::WeakHub;
use claw_store::{Backend, Step, StoreLocation, StoreOptions};

pub use self::agents::{AgentCard, AgentChange, AgentView, agent_kind_name, no_agent, tools_of};
pub use self::approvals::{Answered, RuleFor, RulePreview, Verdict, WidthPreview};
pub use self::client_tools::{ClientMessage, is_client_tool};
pub use self::compose::Hooks;
pub use self::config_report::ConfigReport;
pub use self::doctor::{Finding, FindingState};
pub use self::error::{Error, Kind};
pub use self::follow_changes::Following;
pub use self::follow_session::{FeedFollower, Followed, Follower};
pub use self::models::{DeploymentKeys, key_in_environment};
pub use self::requested_input::InputValues;
pub use self::runs::{CancelledRuns, RunView};
pub use self::session_list::{ChosenSession, Said, SessionChoice, SessionView};
pub use self::sessions::{Sessions, SessionsOptions, private_lane, workspace_session};
pub use self::setup::{Setup, Tokens, catalogue, real, spec, tokens};
pub use self::skills::{SkillPublication, SkillView};
use self::traces::Collector;
pub use claw_agent::{ClientChoice, ClientTool, ClientTools, ModelChoice};

/// Becomes a child of this program if the process was started as one, and then does not return: the sandbox
/// helper, or the PDF reader. To be called first in `main`, before there is a second thread; without it no
/// command runs in the kernel sandbox, and no PDF is read.
pub fn enter_if_asked() {
    claw_web::pdf::enter_if_asked();
    claw_sandbox::enter_if_asked();
}

/// A deployment whose store is open. Cheap to clone; [`close`](Self::close) it once.
#[derive(Clone)]
pub struct App {
    setup: Arc<Setup>,
    store: Arc<dyn Backend>,
    /// Records calls and approvals instead of the store.
    calls: Option<Arc<dyn CallStore>>,
    /// The tools of the program that embeds the application.
    own_tools: Vec<Arc<dyn AnyTool>>,
    tenant: TenantId,
    /// The embedding model, once it was requested.
    embedder: Arc<OnceLock<Option<Arc<dyn Embedder>>>>,
    /// Sends spans, once a toolbox was built.
    collector: Arc<OnceLock<Option<Collector>>>,
    /// The connections to MCP servers of the toolboxes that were built.
    hubs: Arc<Mutex<Vec<WeakHub>>>,
}

impl Setup {
    /// Opens the store, creating it and migrating its schema if necessary.
    pub async fn open(&self) -> Result<App, Error> {
        let (data, place) = (self.data_dir()?, self.place()?);
        let options = self.store_options(&data)?;
        let store = claw_store::open(&place, self.config().node.clone(), &options)
            .await
            .map_err(|error| self.unopened(error))?;
        if options.installation.is_none() && place != StoreLocation::Memory {
            installation::join(&data, &place, store.installation())?;
        }
        recover_transactions(&data).await;
        Ok(App {
            setup: Arc::new(self.clone()),
            store,
            calls: None,
            own_tools: Vec::new(),
            tenant: self.tenant().clone(),
            embedder: Arc::default(),
            collector: Arc::default(),
            hubs: Arc::default(),
        })
    }

    /// Opens the store if there is one; otherwise returns `None` and creates nothing.
    pub async fn open_existing(&self) -> Result<Option<App>, Error> {
        // Without a data directory there is no store either, and that is worth an error.
        self.data_dir()?;
        match claw_store::exists(&self.place()?).await.map_err(|error| self.unopened(error))? {
            true => self.open().await.map(Some),
            false => Ok(None),
        }
    }

    /// Migrates the store's schema, creating the store if there is none; returns the applied migrations.
    pub async fn migrate(&self) -> Result<Vec<Step>, Error> {
        let place = self.place()?;
        if place == StoreLocation::Memory {
            return Err(Error::invalid("a store in memory has nothing to migrate")
                .hint("set `store.url` to `sqlite:PATH` or `postgres://user@host/name`"));
        }
        let options = self.store_options(&self.data_dir()?)?;
        let applied = claw_store::migrate(&place, &options).await.map_err(|error| self.unopened(error))?;
        // As a start would: the data directory learns whose it is.
        self.open().await?.close().await;
        Ok(applied)
    }

    /// The options of the store, for the installation that the data directory is part of.
    fn store_options(&self, data: &Path) -> Result<StoreOptions, Error> {
        Ok(StoreOptions { installation: installation::of(data)?, ..self.config().store.options() })
    }

    /// Explains why a store could not be opened, and what to do about it.
    pub fn unopened(&self, error: StoreError) -> Error {
        let (place, data) = match (self.place(), self.data_dir()) {
            (Ok(place), Ok(data)) => (place, data),
            (Err(error), _) | (_, Err(error)) => return error,
        };
        let hint = match &error {
            StoreError::OtherInstallation { .. } => format!(
                "set `store.url` (now {place}) or `data_dir` (now `{}`) so that they belong together; if \
                 that store is lost and you want to start over, remove `{}`",
                data.display(),
                installation::file(&data).display()
            ),
            _ => "check `store.url` and `data_dir` in `clawsmith config show`; the store must exist and be \
                  writable"
                .to_owned(),
        };
        Error::failed(format!("the store at {place} cannot be opened")).because(error).hint(hint)
    }
}

/// Finishes the changes of commands that a killed process was applying or taking back.
async fn recover_transactions(data: &Path) {
    let transactions = Transactions::new(&real(data));
    let recovered = tokio::task::spawn_blocking(move || transactions.recover()).await;
    match recovered.unwrap_or_else(|stopped| Err(std::io::Error::other(stopped))) {
        Ok(0) => {}
        Ok(count) => {
            tracing::info!(count, "finished the changes of commands that a killed process had begun");
        }
        Err(error) => {
            tracing::warn!(%error, "changes of commands that a killed process had begun stay unfinished");
        }
    }
}

impl App {
    /// The configuration and its environment.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Adds a tool of yours to the toolboxes that are built from now on: agents get it where the policy allows it, as they
    /// get built-in tools, and so do clients of a gateway.
    #[must_use]
    pub fn with_tool(self, tool: impl Tool) -> Self {
        self.with_any_tool(erase(tool))
    }

    /// The same for a tool whose schema is known only at run time.
    #[must_use]
    pub fn with_any_tool(mut self, tool: Arc<dyn AnyTool>) -> Self {
        self.own_tools.push(tool);
        self
    }

    /// Records calls and approvals of toolboxes that are built from now on in `calls` instead of the store, and stores no
    /// events of them: the ledger, approvals and events that the application shows stay empty.
    #[must_use]
    pub fn recording_calls_in(self, calls: Arc<dyn CallStore>) -> Self {
        Self { calls: Some(calls), ..self }
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn Backend> {
        &self.store
    }

    /// Returns the tenant of this application: the deployment's own, unless [`of_tenant`](Self::of_tenant)
    /// chose another.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Returns the same application for another tenant.
    #[must_use]
    pub fn of_tenant(&self, tenant: &TenantId) -> Self {
        Self { tenant: tenant.clone(), ..self.clone() }
    }

    /// Returns the sender of spans, which starts with the first use; `None` if no traces are wanted.
    fn collector(&self) -> Result<Option<Collector>, Error> {
        if let Some(collector) = self.collector.get() {
            return Ok(collector.clone());
        }
        let variable = |name: &str| {
            let value = self.setup.around.variable(name)?;
            value.clone().into_string().ok()
        };
        let collector = Collector::start(&self.setup.config().telemetry, variable)?;
        Ok(self.collector.get_or_init(|| collector).clone())
    }

    /// Closes the store. Spans that were not sent yet are sent first.
    pub async fn close(&self) {
        if let Some(Some(collector)) = self.collector.get() {
            collector.flush().await;
        }
        self.store.disconnect().await;
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("tenant", self.tenant()).finish_non_exhaustive()
    }
}
