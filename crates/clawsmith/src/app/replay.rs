//! Replaying a policy: which recorded calls another configuration would decide differently.
//!
//! Both configurations judge each recorded call by what the ledger has of it: agent, channel, provider, place
//! among subagents, tool, effects, and the command of a shell call. Answers to approvals, remembered rules and the
//! files of that time do not count.

use std::time::Duration;

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Entry, EntryEvent, EntryPage};
use claw_core::tool::{Caller, Effects};
use claw_host::SystemClock;
use claw_policy::approval::{ApprovalConfig, EffectRule};
use claw_policy::pipeline::{Policy, Subject, ToolSet};
use claw_policy::shell::{self, Decision};
use claw_registry::CommandRules;
use serde::{Deserialize, Serialize};

use super::{App, Error, Setup, catalogue};

/// The most entries of the ledger that are replayed.
const MOST_ENTRIES: usize = 200_000;
/// How many of them are read at a time.
const READ: usize = 1_000;

/// The verdict on a recorded call.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReplayVerdict {
    /// The call runs.
    Allow,
    /// A person is asked.
    Ask,
    /// The call is refused.
    Deny,
}

/// Recorded calls decided differently, in the same way and for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ReplayChange {
    /// The agent.
    pub agent: String,
    /// The tool.
    pub tool: String,
    /// The verdict of the current configuration.
    pub before: ReplayVerdict,
    /// The verdict of the other configuration.
    pub after: ReplayVerdict,
    /// The rule that decides otherwise.
    pub reason: String,
    /// The number of calls.
    pub calls: u64,
    /// The command or the arguments of one of them, scrubbed.
    pub example: String,
}

impl ReplayChange {
    /// Returns whether another call differs in the same way, for the same reason.
    fn is_like(&self, other: &Self) -> bool {
        let of = |change: &Self| (change.before, change.after);
        self.agent == other.agent
            && self.tool == other.tool
            && of(self) == of(other)
            && self.reason == other.reason
    }
}

/// Outcome of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Replay {
    /// The number of recorded calls judged.
    pub calls: u64,
    /// The number of calls with the same verdict.
    pub same: u64,
    /// The number of calls not judged: their tool is unknown, or the ledger does not say enough.
    pub skipped: u64,
    /// True if the ledger has more calls since that time: only its latest entries were read.
    pub truncated: bool,
    /// The others, the most frequent first.
    pub changes: Vec<ReplayChange>,
}

/// The rules of one configuration.
struct Judge {
    policy: Policy,
    commands: CommandRules,
    approvals: ApprovalConfig,
}

impl App {
    /// Judges the calls since a time by this configuration and by another, and returns the differences.
    pub async fn replay(&self, other: Setup, since: UnixMillis) -> Result<Replay, Error> {
        self.replay_latest(other, since, MOST_ENTRIES).await
    }

    /// The same for at most so many entries of the ledger, the latest.
    async fn replay_latest(&self, other: Setup, since: UnixMillis, most: usize) -> Result<Replay, Error> {
        let now = self.judge().await?;
        let other = Self { setup: std::sync::Arc::new(other), ..self.clone() };
        let then = other.judge().await?;
        let tools = catalogue();
        let mut replay = Replay { calls: 0, same: 0, skipped: 0, truncated: false, changes: Vec::new() };
        let mut changes: Vec<ReplayChange> = Vec::new();
        let (mut position, mut left) = (None, most);
        loop {
            if left == 0 {
                // One entry more tells whether there is any.
                let more = self.store.entries(self.tenant(), &EntryPage::all(position, 1)).await?;
                replay.truncated = more.iter().any(|(_, entry)| entry.record.at >= since);
                break;
            }
            let wanted = READ.min(left);
            let page = self.store.entries(self.tenant(), &EntryPage::all(position, wanted)).await?;
            left -= wanted;
            for (_, entry) in page.iter().filter(|(_, entry)| entry.record.at >= since) {
                let Some(call) = Recorded::of(entry) else { continue };
                replay.calls += 1;
                let (Some(before), Some(after)) = (now.verdict(&tools, &call), then.verdict(&tools, &call))
                else {
                    replay.skipped += 1;
                    continue;
                };
                if before.0 == after.0 {
                    replay.same += 1;
                    continue;
                }
                let reason = if after.0 > before.0 { after.1 } else { before.1 };
                let change = ReplayChange {
                    agent: call.caller.agent.to_string(),
                    tool: call.tool.to_owned(),
                    before: before.0,
                    after: after.0,
                    reason,
                    calls: 1,
                    example: call.example(),
                };
                match changes.iter_mut().find(|known| known.is_like(&change)) {
                    Some(known) => known.calls += 1,
                    None => changes.push(change),
                }
            }
            // Entries of several nodes are nearly in the order of their times: a whole page before the time ends it.
            let is_before = page.iter().all(|(_, entry)| entry.record.at < since);
            if page.len() < wanted || is_before {
                break;
            }
            position = page.last().map(|(at, _)| *at);
        }
        replay.changes = changes;
        replay.changes.sort_by_key(|change| std::cmp::Reverse(change.calls));
        Ok(replay)
    }

    async fn judge(&self) -> Result<Judge, Error> {
        let (commands, approvals) = (self.setup.command_rules()?, self.setup.config().approvals.clone());
        Ok(Judge { policy: self.policy().await?, commands, approvals })
    }
}

/// Reads how far back to look: days (`7d`) or hours (`12h`).
pub fn since(text: &str) -> Result<Duration, String> {
    let wrong = || "use days or hours, such as `7d` or `12h`".to_owned();
    let (number, seconds) = match (text.strip_suffix('d'), text.strip_suffix('h')) {
        (Some(days), _) => (days, 86_400),
        (None, Some(hours)) => (hours, 3_600),
        (None, None) => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

/// The time that is so long ago.
pub fn ago(duration: Duration) -> UnixMillis {
    let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    UnixMillis(SystemClock.now().0.saturating_sub(millis))
}

/// A call as the ledger has it.
struct Recorded<'a> {
    caller: Caller,
    tool: &'a str,
    args: Option<&'a serde_json::Value>,
    /// The effects by which it was judged.
    effects: Effects,
}

impl<'a> Recorded<'a> {
    /// `None` for an entry that is not the beginning of a call.
    fn of(entry: &'a Entry) -> Option<Self> {
        let record = &entry.record;
        let (args, effects) = match &record.event {
            EntryEvent::Intent { args, effects, .. } => (Some(args), *effects),
            EntryEvent::Refused { step, .. } if step == "authorise" => (None, Effects::NONE),
            EntryEvent::Refused { .. } | EntryEvent::Outcome { .. } => return None,
        };
        let mut caller = Caller::new(record.agent.clone(), record.session.clone(), "/");
        caller.tenant = record.tenant.clone();
        caller.user = record.user.clone();
        if let Some(context) = &record.context {
            caller.channel = context.channel.clone();
            caller.chat_id = context.chat.clone();
            caller.peer_kind = context.peer;
            caller.provider = context.provider.clone();
            caller.subagent = context.subagent;
            caller.request_allow = context.request_allow.clone().map(Into::into);
        }
        Some(Self { caller, tool: &record.tool, args, effects })
    }

    fn command(&self) -> Option<&str> {
        self.args.filter(|_| self.tool == "exec")?.get("command")?.as_str()
    }

    fn example(&self) -> String {
        let text = match (self.command(), self.args) {
            (Some(command), _) => command.to_owned(),
            (None, Some(args)) => args.to_string(),
            (None, None) => String::new(),
        };
        text.chars().take(120).collect()
    }
}

impl Judge {
    /// Returns the verdict on a call, and the rule that decides; `None` if the tool is unknown.
    fn verdict(&self, tools: &ToolSet, call: &Recorded<'_>) -> Option<(ReplayVerdict, String)> {
        let meta = tools.find(call.tool).or_else(|| tools.find_absent(call.tool))?;
        let verdict = self.policy.judge(tools, &Subject::from(&call.caller), meta);
        if !verdict.allowed {
            return Some((ReplayVerdict::Deny, verdict.trace.to_string()));
        }
        let by_effects = self.by_effects(call.effects);
        let Some(command) = call.command() else { return Some(by_effects) };
        let rules = self.commands.of(&call.caller);
        let analysed = shell::analyse(command, &rules.rules);
        let reason = analysed
            .findings
            .first()
            .map_or_else(String::new, |finding| format!("`{}`: {}", finding.rule, finding.reason));
        let verdict = match analysed.decision {
            Decision::Allow => ReplayVerdict::Allow,
            Decision::Ask => ReplayVerdict::Ask,
            Decision::Deny => ReplayVerdict::Deny,
        };
        Some(if by_effects.0 > verdict { by_effects } else { (verdict, reason) })
    }

    /// Returns the strictest rule of `approvals.effects`.
    fn by_effects(&self, effects: Effects) -> (ReplayVerdict, String) {
        let mut strictest = (ReplayVerdict::Allow, String::new());
        for (rule, by) in effects.iter().filter_map(|effect| self.approvals.of_effect(effect)) {
            let verdict = match rule {
                EffectRule::Allow => ReplayVerdict::Allow,
                EffectRule::Ask => ReplayVerdict::Ask,
                EffectRule::Deny => ReplayVerdict::Deny,
            };
            if verdict > strictest.0 {
                strictest = (verdict, by);
            }
        }
        strictest
    }
}

#[cfg(test)]
mod tests {
    use claw_core::{AgentId, SessionKey};
    use serde_json::json;

    use super::*;
    use crate::Request;
    use crate::app::Hooks;
    use crate::config::Surroundings;

    #[tokio::test]
    async fn a_replay_that_leaves_entries_out_says_so() {
        let home = tempfile::tempdir().unwrap();
        let around = Surroundings {
            directory: home.path().to_owned(),
            variables: vec![("HOME".into(), home.path().into())],
        };
        let setup = || Setup::load(None, &around).unwrap();
        let app = setup().open().await.unwrap();
        let toolbox = app.toolbox(Hooks::default()).await.unwrap();
        let session = SessionKey::new("cli:x").unwrap();
        let caller = Caller::new(AgentId::new("default").unwrap(), session, home.path());
        let offer = toolbox.offer(caller).await;
        for _ in 0..3 {
            let reply = toolbox.execute(&offer, Request::new("datetime", json!({}))).await;
            assert!(reply.outcome.is_ok(), "{}", reply.model_text());
        }
        // Each call has its intent and its outcome.
        let within = async |since, most| app.replay_latest(setup(), since, most).await.unwrap();
        let part = within(UnixMillis(0), 4).await;
        assert_eq!((part.calls, part.truncated), (2, true));
        let whole = within(UnixMillis(0), 6).await;
        assert_eq!((whole.calls, whole.truncated), (3, false));
        let nothing = within(UnixMillis(i64::MAX), 4).await;
        assert_eq!((nothing.calls, nothing.truncated), (0, false));
    }
}
