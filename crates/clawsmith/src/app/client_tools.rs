//! Messages of clients that have tools of their own: the model calls them, the client makes them and sends the results.
//!
//! Nothing of such a call is executed here. It stays open when its run ends; the next message of the session brings its
//! result, or it is settled as one that nobody made.

use std::collections::HashSet;

use claw_agent::{ClientTools, History, client_result};
use claw_core::message::{Part, Wanted};
use claw_core::store::{Job, JobFilter};
use claw_core::tool::Caller;
use claw_core::{CallId, JobId};
use claw_registry::Asking;

use super::sessions::check_allowed_tools;
use super::{Error, Sessions};

/// The most tools of one client.
const MOST_TOOLS: usize = 128;
/// The most bytes of all their definitions.
const MOST_DEFINED: usize = 256 * 1024;
/// The most bytes of a result that the model reads; the rest is cut off.
const MOST_RESULT: usize = 64 * 1024;

/// A message of a client.
#[derive(Debug, Clone, Default)]
pub struct ClientMessage {
    /// Text and images; may be empty if there are results.
    pub parts: Vec<Part>,
    /// The tools that the client makes itself.
    pub tools: ClientTools,
    /// Results of calls that an earlier run handed to the client: that run, each call and the client's text.
    pub results: Option<(JobId, Vec<(CallId, String)>)>,
}

/// The part of a client in the run that answers its message.
#[derive(Debug, Default)]
pub(super) struct ClientTurn {
    /// The tools that the client makes itself.
    pub(super) tools: ClientTools,
    /// The run whose calls the message has the results of; the message is refused if another came first.
    pub(super) after: Option<JobId>,
}

/// Returns whether a tool of this name was the client's in this run.
pub fn is_client_tool(run: &Job, name: &str) -> bool {
    let tools = run.new.payload.pointer("/client/tools").and_then(|tools| tools.as_array());
    tools.is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
}

impl Sessions {
    /// Stores a client's message, and the run that will answer it; returns the run. Refused if the client's tools have names
    /// of ours, or if a result is of no call that waits for one.
    pub async fn send_from_client(&self, caller: &Caller, message: ClientMessage) -> Result<JobId, Error> {
        // Before the list is used: the offer compares it with every tool.
        check_allowed_tools(caller)?;
        let ClientMessage { parts, tools, results } = message;
        self.check_tools(caller, &tools).await?;
        let (mut all, after) = match results {
            Some((run, results)) => (self.results(caller, run, &results).await?, Some(run)),
            None => (Vec::new(), None),
        };
        all.extend(parts);
        // Whether the calls still wait is decided again as the message is stored: two clients may send results at once.
        self.send_with(caller, all, Asking::Unwatched, ClientTurn { tools, after }).await
    }

    async fn check_tools(&self, caller: &Caller, client: &ClientTools) -> Result<(), Error> {
        if client.is_empty() {
            return Ok(());
        }
        let count = client.tools.len();
        if count > MOST_TOOLS {
            return Err(Error::invalid(format!(
                "{count} tools are too many; a client may declare {MOST_TOOLS}"
            )));
        }
        let bytes: usize = client
            .tools
            .iter()
            .map(|tool| tool.name.as_str().len() + tool.description.len() + tool.parameters.to_string().len())
            .sum();
        if bytes > MOST_DEFINED {
            return Err(Error::invalid(format!(
                "the definitions of the tools have {bytes} bytes; at most {MOST_DEFINED} are allowed"
            )));
        }
        let executor = self.deployment().executor;
        let offer = executor.offer(caller.clone()).await;
        let mut names = HashSet::new();
        for tool in &client.tools {
            let name = &tool.name;
            if !names.insert(name) {
                return Err(Error::invalid(format!("two tools have the name `{name}`")));
            }
            if executor.registry().has(name.as_str()) || offer.meta(name.as_str()).is_some() {
                let what = format!("`{name}` is already the name of one of the agent's tools");
                return Err(Error::invalid(what).hint("rename the client's tool"));
            }
            if tool.parameters.get("type").is_none_or(|kind| kind != "object") {
                let what = format!("the parameters of `{name}` must be a JSON Schema of the type `object`");
                return Err(Error::invalid(what));
            }
        }
        Ok(())
    }

    /// Makes the results of calls that a run handed to the client.
    async fn results(
        &self,
        caller: &Caller,
        run: JobId,
        given: &[(CallId, String)],
    ) -> Result<Vec<Part>, Error> {
        let deployment = self.deployment();
        let latest = JobFilter { session: Some(caller.session.clone()), limit: 1, ..JobFilter::default() };
        let latest = deployment.store.jobs(&caller.tenant, &latest).await?;
        let is_latest = |job: &Job| job.new.id == run && job.state.is_over();
        if !latest.first().is_some_and(is_latest) {
            return Err(went_on(run));
        }
        let (tenant, session) = (&caller.tenant, &caller.session);
        let open = History::read(&*deployment.store, tenant, session, run).await?.open_calls();
        let scrubber = deployment.executor.scrubbers().for_tenant(&caller.tenant);
        let mut results = Vec::with_capacity(given.len());
        let mut told = HashSet::new();
        for (call, text) in given {
            let Some(wanted) = open.iter().find(|wanted: &&Wanted| wanted.call == *call) else {
                return Err(Error::invalid(format!("call `{call}` does not wait for a result")));
            };
            if !told.insert(*call) {
                return Err(Error::invalid(format!("call `{call}` has two results")));
            }
            results.push(client_result(wanted, &cut(scrubber.said(text))));
        }
        Ok(results)
    }
}

/// The error for results of a run that is not the last of its session any more.
pub(super) fn went_on(run: JobId) -> Error {
    let what = format!("the calls of run `{run}` no longer wait for results: the session has continued");
    Error::conflict(what).hint("read the session, and send a new message instead")
}

/// Cuts a long text and says so.
fn cut(text: String) -> String {
    if text.len() <= MOST_RESULT {
        return text;
    }
    let (bytes, end) = (text.len(), text.floor_char_boundary(MOST_RESULT));
    format!("{}\n[cut here: {end} of {bytes} bytes]", &text[..end])
}
