//! Inspecting the policy: why a caller has a tool, doubtful rules, the effect of another configuration, and
//! assertions about verdicts.
//!
//! An assertion is judged by the executor itself: every step up to the verdict of a real call is done, and
//! the call is not made. The store is an empty one in memory, so that a file of assertions means the same on
//! every machine.

use std::path::{Path, PathBuf};

use claw_core::tool::{Caller, SubagentDepth};
use claw_core::{AgentId, BootId, SessionKey, UserId};
use claw_policy::diff;
pub use claw_policy::diff::Diff as PolicyDiff;
use claw_policy::explain::{Explanation, explain};
pub use claw_policy::lint::Finding as PolicyFinding;
use claw_policy::pipeline::Subject;
use claw_registry::{RehearsedVerdict, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::access::{Permission, Visitor};
use super::caller::CallerRequest;
use super::replay::ReplayVerdict;
use super::{App, Error, Hooks, Setup, catalogue};
use crate::config::{Loaded, StoreUrl, Surroundings};

/// A file of assertions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyTests {
    /// The assertions, in their order.
    #[serde(rename = "test", default)]
    pub tests: Vec<PolicyTest>,
}

/// An assertion: the verdict on one call.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyTest {
    /// A name for people; the tool and the agent where left out.
    pub name: Option<String>,
    /// The agent that calls; `default` where left out.
    pub agent: Option<AgentId>,
    /// The user that it acts for.
    pub user: Option<UserId>,
    /// The channel of the message; `cli` where left out.
    pub channel: Option<String>,
    /// The group chat of the message.
    pub chat: Option<String>,
    /// The provider of the agent's model.
    pub provider: Option<String>,
    /// The agent's place among subagents; none where left out.
    pub subagent: Option<SubagentPlace>,
    /// The tools that the message itself allows.
    pub request_allow: Option<Vec<String>>,
    /// The tool.
    pub tool: String,
    /// The arguments; none where left out.
    #[serde(default)]
    pub args: Value,
    /// The verdict that the call must have.
    pub expect: ReplayVerdict,
    /// Words that the reason must have.
    pub because: Option<String>,
}

/// A place in a tree of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubagentPlace {
    /// An agent that another one started and that may start others.
    Inner,
    /// An agent that may start no others.
    Leaf,
}

/// The outcome of an assertion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyTestOutcome {
    /// The test's name.
    pub name: String,
    /// The verdict is the expected one, and its reason has the expected words.
    pub passed: bool,
    /// The expected verdict.
    pub expected: ReplayVerdict,
    /// The verdict that the call has.
    pub found: ReplayVerdict,
    /// The rule that asks or denies, in words; empty where the call may run.
    pub reason: String,
}

impl PolicyTests {
    /// Reads a file of assertions.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let tests: Self = toml::from_str(text).map_err(|error| {
            Error::invalid(format!("the policy tests are invalid: {error}"))
                .hint("see docs/policy.md for the fields")
        })?;
        match tests.tests.is_empty() {
            true => Err(Error::invalid("there is no `[[test]]` in the file, so nothing would be tested")),
            false => Ok(tests),
        }
    }
}

impl PolicyTest {
    fn name(&self) -> String {
        let agent = self.agent.as_ref().map_or("default", AgentId::as_str);
        self.name.clone().unwrap_or_else(|| format!("{} of {agent}", self.tool))
    }

    /// Returns the caller of the assertion. Each has a session of its own: rate limits are not tested.
    fn caller(&self, setup: &Setup, number: usize, workspace: &Path) -> Result<Caller, Error> {
        let invalid = |error: claw_core::InvalidId| Error::invalid(error.to_string());
        let agent = match &self.agent {
            Some(agent) => agent.clone(),
            None => AgentId::new("default").map_err(invalid)?,
        };
        let request = CallerRequest {
            agent,
            user: self.user.clone(),
            session: SessionKey::new(format!("policy-test:{number}")).map_err(invalid)?,
            channel: Some(self.channel.clone().unwrap_or_else(|| "cli".to_owned())),
            chat: self.chat.clone(),
            provider: self.provider.clone(),
            subagent: match self.subagent {
                None => SubagentDepth::default(),
                Some(place) => SubagentDepth { depth: 1, leaf: place == SubagentPlace::Leaf },
            },
            request_allow: self.request_allow.clone(),
        };
        Ok(setup.caller(request, workspace))
    }

    fn outcome(&self, found: ReplayVerdict, reason: String) -> PolicyTestOutcome {
        let is_because = self.because.as_deref().is_none_or(|words| reason.contains(words));
        let passed = found == self.expect && is_because;
        PolicyTestOutcome { name: self.name(), passed, expected: self.expect, found, reason }
    }
}

impl From<RehearsedVerdict> for ReplayVerdict {
    fn from(verdict: RehearsedVerdict) -> Self {
        match verdict {
            RehearsedVerdict::Allow => Self::Allow,
            RehearsedVerdict::Ask => Self::Ask,
            RehearsedVerdict::Deny => Self::Deny,
        }
    }
}

/// A directory that is removed with its contents.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("clawsmith-policy-{}", BootId::new()));
        let made = std::fs::create_dir(&path);
        made.map_err(|error| {
            Error::failed(format!("the directory `{}` cannot be made", path.display())).because(error)
        })?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Setup {
    /// Judges the call of each assertion under this configuration, in this workspace. Nothing is run.
    pub async fn test_policy(
        &self,
        tests: &PolicyTests,
        workspace: &Path,
    ) -> Result<Vec<PolicyTestOutcome>, Error> {
        let scratch = Scratch::new()?;
        let mut setup = self.clone();
        setup.loaded.config.data_dir = Some(scratch.0.clone());
        setup.loaded.config.store.url = Some(StoreUrl::memory());
        let app = setup.open().await?;
        let tested = app.test_policy(tests, workspace).await;
        app.close().await;
        tested
    }
}

impl App {
    async fn test_policy(
        &self,
        tests: &PolicyTests,
        workspace: &Path,
    ) -> Result<Vec<PolicyTestOutcome>, Error> {
        let toolbox = self.toolbox(Hooks::default()).await?;
        let mut outcomes = Vec::with_capacity(tests.tests.len());
        for (number, test) in tests.tests.iter().enumerate() {
            if let Some(agent) = &test.agent {
                self.must_have_agent(agent.as_str()).await.map_err(|error| {
                    error.hint(format!(
                        "add `[agents.{agent}]` to the configuration: a test of it knows no other agents"
                    ))
                })?;
            }
            let caller = test.caller(self.setup(), number + 1, workspace)?;
            // A tool that is not offered has a rule to blame, which the road does not tell the model.
            let explained = self.explain_tool(&caller, &test.tool).await?;
            if !explained.verdict.allowed {
                outcomes.push(test.outcome(ReplayVerdict::Deny, explained.verdict.trace.to_string()));
                continue;
            }
            let offer = toolbox.offer(caller).await;
            let args = if test.args.is_null() { json!({}) } else { test.args.clone() };
            let rehearsal = toolbox.executor().rehearse(&offer, Request::new(test.tool.clone(), args)).await;
            outcomes.push(match rehearsal {
                Ok(rehearsal) => test.outcome(rehearsal.verdict.into(), rehearsal.reason.unwrap_or_default()),
                Err(refusal) => test.outcome(ReplayVerdict::Deny, refusal.reason),
            });
        }
        Ok(outcomes)
    }

    /// Checks that a visitor may see the rules of the deployment: an administrator of the deployment's own tenant.
    pub fn may_read_policy(&self, visitor: &Visitor) -> Result<(), Error> {
        visitor.may(Permission::ReadPolicy)?;
        if visitor.tenant == *self.setup().tenant() {
            return Ok(());
        }
        Err(Error::invalid("the rules of the deployment are only for administrators of its own tenant")
            .refusing())
    }

    /// Explains why a caller has a tool or not.
    pub async fn explain_tool(&self, caller: &Caller, tool: &str) -> Result<Explanation, Error> {
        let tools = self.registry_of(caller).await?.tool_set();
        Ok(explain(&self.policy().await?, &tools, &Subject::from(caller), tool))
    }

    /// Returns the lint findings about a configuration; by default about the current one.
    pub fn lint_policy(&self, other: Option<&Setup>) -> Vec<PolicyFinding> {
        other.unwrap_or_else(|| self.setup()).policy_findings()
    }

    /// Returns the tools that each agent gains and loses under another configuration.
    pub fn diff_policy(&self, other: &Setup) -> Result<PolicyDiff, Error> {
        let (before, after) = (self.setup().config().policy(), other.config().policy());
        diff::diff(&before, &after, &catalogue()).map_err(|error| Error::invalid(error.to_string()))
    }

    /// Reads a proposed configuration. It is not applied, and the environment does not override it.
    pub fn proposed(&self, text: String) -> Result<Setup, Error> {
        let directory = self.setup().around.directory.clone();
        let around = Surroundings { directory, variables: Vec::new() };
        let loaded = Loaded::proposed(Path::new("proposed.toml"), text, &around)?;
        Ok(Setup { loaded, around, local_user: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_tests_nothing_is_refused() {
        let fault = |text: &str| PolicyTests::parse(text).unwrap_err().to_string();
        assert!(fault("").contains("nothing would be tested"));
        assert!(fault("[[test]]\ntool = \"exec\"").contains("missing field `expect`"));
        assert!(fault("[[test]]\ntool = \"exec\"\nexpect = \"maybe\"").contains("unknown variant `maybe`"));
        assert!(fault("[[test]]\ntool = \"exec\"\nexpect = \"deny\"\nagnet = \"a\"").contains("agnet"));
    }
}
