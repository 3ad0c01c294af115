//! Judging a recorded call by two sets of rules, with the function that judges real calls.
//!
//! Some facts that a verdict can depend on are not in the ledger. A call is judged under each assumption about them: it
//! counts where all agree, and is skipped otherwise.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use claw_core::port::{Access, Registered, Root, Scope};
use claw_core::redact::PLACEHOLDER;
use claw_core::tool::{Ask, Caller, Effect, Meta, Need, Plan, Sight, Target};
use claw_policy::approval::{self, Analysis, Circumstances, Judgement};
use claw_policy::config::TenantTools;
use claw_policy::lint;
use claw_policy::pipeline::{Policy, Subject, Verdict};
use claw_policy::shell::{self, Rules, ShellConfig};
use claw_registry::CommandRules;
use serde_json::Value;

use super::recorded::{CallerToolbox, Recorded};
use super::{Proposal, ReplayVerdict};
use crate::app::rule_check::check_tenant_rules;
use crate::app::{App, Error, Setup, catalogue};
use crate::config::{AgentConfig, Config};

/// The workspace of recorded calls: the ledger does not have theirs.
pub(super) const WORKSPACE: &str = "/workspace";
/// The files of a call: everything, and the workspace apart from it.
static SCOPE: LazyLock<Scope> =
    LazyLock::new(|| Scope { roots: vec![root("/"), root(WORKSPACE)], ..Scope::default() });
/// The directory that a person grants if a path is outside the workspace.
static OUTSIDE: LazyLock<[Root; 1]> = LazyLock::new(|| [root("/")]);
/// A word that looks like a secret in an address.
const TELLING: &str = "?aGVsbG8gd29ybGQgdGhpcyBpcyBh4fK9";

const NO_TOOL: &str = "the tool no longer exists";
const NO_ARGUMENTS: &str =
    "the ledger does not hold all arguments of the call, or the tool no longer accepts them";
const NO_WORKSPACE: &str = "the rules for files differ, and the ledger does not say which workspace it was";

fn root(path: &str) -> Root {
    Root { path: path.into(), access: Access::Write }
}

/// The comparison of the two verdicts on a call.
pub(super) enum Decided {
    /// They are equal.
    Same,
    /// The call was not judged, for this reason.
    Skipped(&'static str),
    /// They differ, because of this rule.
    Otherwise { before: ReplayVerdict, after: ReplayVerdict, reason: String },
}

/// A fact that the ledger does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fact {
    /// The session had fetched from the host before.
    KnownHost,
    /// The address had a secret.
    SecretInAddress,
    /// A path is outside the workspace, in a directory that nobody has granted.
    Outside,
    /// The other session works in another workspace.
    OtherWorkspace,
    /// No mounts held the command.
    NoMounts,
    /// The text that was typed into a running command is harmless.
    HarmlessInput,
}

impl Fact {
    /// The reason to skip a call whose verdict depends on the fact.
    const fn reason(self) -> &'static str {
        match self {
            Self::KnownHost => "the ledger does not say whether the session had fetched from the host before",
            Self::SecretInAddress => "the ledger does not have the secret in the address",
            Self::Outside => "the ledger does not say whether a path was outside the workspace",
            Self::OtherWorkspace => "the ledger does not say where the other session worked",
            Self::NoMounts => "the ledger does not say whether the sandbox had mounts",
            Self::HarmlessInput => "the ledger does not say which command the text was typed into",
        }
    }
}

/// The rules in force and the others.
pub(super) struct Judges {
    before: Judge,
    after: Judge,
}

/// One set of rules.
struct Judge {
    policy: Policy,
    commands: CommandRules,
    setup: Arc<Setup>,
    settings: Arc<Value>,
}

impl Judges {
    pub(super) async fn new(app: &App, proposal: Proposal) -> Result<Self, Error> {
        let before = Judge::new(app.policy().await?, &app.setup)?;
        let after = match proposal {
            Proposal::Deployment(setup) => {
                must_be_usable(&setup)?;
                let other = App { setup: Arc::new(*setup), ..app.clone() };
                Judge::new(other.policy().await?, &other.setup)?
            }
            Proposal::Tenant(rules) => Judge::new(with_tenant_rules(app, rules).await?, &app.setup)?,
        };
        Ok(Self { before, after })
    }

    /// Compares the verdicts on a call.
    pub(super) fn decide(&self, tools: &CallerToolbox, call: &Recorded<'_>) -> Decided {
        let Some(meta) = tools.set.find(call.tool) else { return Decided::Skipped(NO_TOOL) };
        let before = JudgedCall::new(&self.before, tools, meta, call);
        let after = JudgedCall::new(&self.after, tools, meta, call);
        let sides = [&before, &after];
        if sides.iter().all(|side| !side.verdict.allowed) || self.are_alike(&before, &after) {
            return Decided::Same;
        }
        if sides.iter().any(|side| side.verdict.allowed && side.plan.is_none()) {
            return decide_by_effects(&before, &after, call);
        }
        // With other settings, the same call may plan something else.
        let asks: Vec<&Ask> =
            sides.iter().filter_map(|side| side.plan.as_ref()).flat_map(|plan| &plan.asks).collect();
        let agent = call.caller.agent.as_str();
        let (now, then) = (self.before.config(), self.after.config());
        let has_outside = asks.iter().any(|ask| is_maybe_outside(ask));
        if reach(now, agent) != reach(then, agent) && asks.iter().any(|ask| path(ask).is_some())
            || now.approvals.outside != then.approvals.outside && has_outside
        {
            return Decided::Skipped(NO_WORKSPACE);
        }
        let mut facts = Vec::new();
        let mut depends_on = |fact: Fact, is_needed: bool| facts.extend(is_needed.then_some(fact));
        let has = |of: fn(&Ask) -> bool| asks.iter().any(|ask| of(ask));
        depends_on(Fact::KnownHost, has(|ask| matches!(ask, Ask::Fetch { .. })));
        depends_on(
            Fact::SecretInAddress,
            has(|ask| matches!(ask, Ask::Fetch { url, .. } if is_scrubbed(url))),
        );
        depends_on(Fact::Outside, has_outside);
        depends_on(Fact::OtherWorkspace, has(|ask| matches!(ask, Ask::Session { .. })));
        let gives_up = [now, then].iter().any(|config| !config.sandbox.allow_missing.is_empty());
        depends_on(Fact::NoMounts, gives_up && has(is_command));
        let has_input = has(|ask| matches!(ask, Ask::Input(_)));
        if has_input && shell_of(now, agent) != shell_of(then, agent) {
            return Decided::Skipped(Fact::HarmlessInput.reason());
        }
        depends_on(Fact::HarmlessInput, has_input);
        decide_under_all(&before, &after, &facts)
    }

    /// Returns whether both allow the tool and nothing else that a verdict depends on differs.
    fn are_alike(&self, before: &JudgedCall<'_>, after: &JudgedCall<'_>) -> bool {
        let (now, then) = (self.before.config(), self.after.config());
        let agent = before.caller.agent.as_str();
        before.verdict.allowed
            && after.verdict.allowed
            && before.verdict.effects == after.verdict.effects
            && before.programs.len() == after.programs.len()
            && before.judge.settings == after.judge.settings
            && now.approvals == then.approvals
            && now.sandbox == then.sandbox
            && shell_of(now, agent) == shell_of(then, agent)
            && reach(now, agent) == reach(then, agent)
    }
}

/// Refuses rules that no command would run under.
fn must_be_usable(setup: &Setup) -> Result<(), Error> {
    match lint::errors(&setup.config().policy(), &catalogue()).first() {
        Some(error) => Err(Error::invalid(error.without_severity().to_string())
            .hint("correct it; `clawsmith tools list --all` lists the tools")),
        None => Ok(()),
    }
}

/// The policy with other rules of the app's tenant.
async fn with_tenant_rules(app: &App, rules: TenantTools) -> Result<Policy, Error> {
    check_tenant_rules(&rules)?;
    let mut config = app.policy_config().await?;
    let own = config.tenants.entry(app.tenant().clone()).or_default();
    (own.allow, own.deny) = (rules.allow, rules.deny);
    let mut own = config.clone();
    own.tenants.retain(|tenant, _| tenant == app.tenant());
    if let Some(error) = lint::errors(&own, &catalogue()).first() {
        return Err(Error::invalid(error.without_severity().to_string())
            .hint("correct it; `GET /v1/tools` lists your tools"));
    }
    Policy::compile(&config).map_err(|error| Error::invalid(error.to_string()))
}

impl Judge {
    fn new(policy: Policy, setup: &Arc<Setup>) -> Result<Self, Error> {
        let settings = Arc::new(setup.config().tool_settings());
        Ok(Self { policy, commands: setup.command_rules()?, setup: Arc::clone(setup), settings })
    }

    fn config(&self) -> &Config {
        self.setup.config()
    }
}

/// A call as one set of rules sees it.
struct JudgedCall<'a> {
    judge: &'a Judge,
    caller: Caller,
    meta: &'a Meta,
    /// The verdict of the tool rules.
    verdict: Verdict,
    /// The programs that its commands may run with credentials.
    programs: Registered,
    /// The plan of an allowed call; `None` if it cannot be made from what the ledger has.
    plan: Option<Plan>,
}

impl<'a> JudgedCall<'a> {
    fn new(judge: &'a Judge, tools: &CallerToolbox, meta: &'a Meta, call: &Recorded<'_>) -> Self {
        let mut caller = call.caller.clone();
        caller.config = Arc::clone(&judge.settings);
        judge.config().sandbox.sandboxing().apply(&mut caller);
        let subject = Subject::from(&caller);
        let verdict = judge.policy.judge(&tools.set, &subject, meta);
        let runs_programs = |meta: &Meta| {
            let verdict = judge.policy.judge(&tools.set, &subject, meta);
            verdict.allowed && meta.effects.within(verdict.effects)
        };
        let mut program_tools = tools.set.iter().filter(|meta| meta.needs.contains(&Need::Programs));
        let programs = match !tools.programs.is_empty() && program_tools.any(|meta| runs_programs(meta)) {
            true => Arc::clone(&tools.programs),
            false => Registered::default(),
        };
        let plan = || {
            let (tool, args) = (tools.tool(meta.name.as_str())?, call.args?);
            // A tool of a program that embeds the application may panic.
            let facts = caller.facts(meta.name.as_str());
            let plan = catch_unwind(AssertUnwindSafe(|| tool.plan(&facts, args))).ok()?.ok()?;
            // Without its secret, an address may be none.
            let lacks_address = plan.asks.is_empty() && meta.effects.has(Effect::Network);
            Some(plan).filter(|_| !lacks_address || !is_scrubbed(&args.to_string()))
        };
        let plan = if verdict.allowed { plan() } else { None };
        Self { judge, caller, meta, verdict, programs, plan }
    }

    /// The verdict under these assumptions, and the rule behind it.
    fn under(&self, assumed: &[Fact]) -> (ReplayVerdict, String) {
        match &self.plan {
            Some(plan) => self.of_plan(plan, assumed),
            None => (ReplayVerdict::Deny, self.verdict.trace.to_string()),
        }
    }

    fn of_plan(&self, plan: &Plan, assumed: &[Fact]) -> (ReplayVerdict, String) {
        if !self.verdict.allowed {
            return (ReplayVerdict::Deny, self.verdict.trace.to_string());
        }
        let is = |fact: Fact| assumed.contains(&fact);
        let rules = self.judge.commands.of(&self.caller);
        let typed =
            |_: &_, _: &Rules| is(Fact::HarmlessInput).then(|| shell::analyse("true", &Rules::default()));
        let mut analysis = Analysis::of(plan, &rules.rules, rules.network, &self.programs, typed);
        let mut sights = Vec::new();
        for analysed in &mut analysis.asks {
            match &mut analysed.ask {
                Ask::Fetch { origin, url } => {
                    url.push_str(if is(Fact::SecretInAddress) { TELLING } else { "" });
                    let host = Target::Host { host: origin.host.to_string() };
                    sights.extend(is(Fact::KnownHost).then(|| seen(host)));
                }
                Ask::Session { session, .. } => {
                    let session = Target::Session { session: session.clone() };
                    sights.extend(is(Fact::OtherWorkspace).then(|| seen(session)));
                }
                _ => {}
            }
        }
        sights.extend(is(Fact::NoMounts).then(|| Sight { writable: true, ..seen(Target::Sandbox) }));
        let judgement = approval::judge(
            &self.judge.config().approvals,
            &Circumstances {
                ceiling: self.meta.effects,
                left: self.verdict.effects,
                directory: Path::new(WORKSPACE),
                scope: &SCOPE,
                asked: if is(Fact::Outside) { &*OUTSIDE } else { &[] },
                sandboxed: self.caller.sandboxed,
                analysis: &analysis,
                sights: &sights,
            },
        );
        match judgement {
            Judgement::Allow => (ReplayVerdict::Allow, String::new()),
            Judgement::Ask { reason } => (ReplayVerdict::Ask, reason),
            Judgement::Deny { reason, .. } => (ReplayVerdict::Deny, reason),
        }
    }
}

/// A target that was seen, somewhere else than the caller.
fn seen(target: Target) -> Sight {
    let known = Some("known".to_owned());
    Sight { target, path: known.clone(), identity: known, credential: None, writable: false }
}

/// Compares the verdicts under every combination of assumptions.
fn decide_under_all(before: &JudgedCall<'_>, after: &JudgedCall<'_>, facts: &[Fact]) -> Decided {
    let judged = |assumed: &[Fact]| (before.under(assumed), after.under(assumed));
    let (first, then) = judged(&[]);
    let mut is_same = first.0 == then.0;
    let mut unsure = None;
    for mask in 1..(1_usize << facts.len()) {
        let assumed: Vec<Fact> =
            facts.iter().enumerate().filter(|(at, _)| (mask >> at) & 1 == 1).map(|(_, fact)| *fact).collect();
        let (now, other) = judged(&assumed);
        is_same &= now.0 == other.0;
        if (now.0, other.0) != (first.0, then.0) {
            unsure = unsure.or(assumed.first().copied());
        }
    }
    match unsure {
        _ if is_same => Decided::Same,
        Some(fact) => Decided::Skipped(fact.reason()),
        None => otherwise(first, then),
    }
}

/// Compares the verdicts on a call whose plan is unknown, by its recorded effects. Equal ones prove nothing: the plan could
/// have been judged differently.
fn decide_by_effects(before: &JudgedCall<'_>, after: &JudgedCall<'_>, call: &Recorded<'_>) -> Decided {
    let Some(effects) = call.effects else { return Decided::Skipped(NO_ARGUMENTS) };
    let plan = Plan { effects, asks: Vec::new(), given: None };
    let (first, then) = (before.of_plan(&plan, &[]), after.of_plan(&plan, &[]));
    if first.0 == then.0 { Decided::Skipped(NO_ARGUMENTS) } else { otherwise(first, then) }
}

fn otherwise(before: (ReplayVerdict, String), after: (ReplayVerdict, String)) -> Decided {
    // The stricter rule is the one that was added or removed.
    let reason = if after.0 > before.0 { after.1 } else { before.1 };
    Decided::Otherwise { before: before.0, after: after.0, reason }
}

fn is_scrubbed(text: &str) -> bool {
    text.contains(PLACEHOLDER.trim_matches(['[', ']']))
}

fn is_command(ask: &Ask) -> bool {
    approval::command(ask).is_some() || matches!(ask, Ask::Input(_))
}

/// The path of a file that an ask names.
fn path(ask: &Ask) -> Option<&str> {
    match ask {
        Ask::Write { path } | Ask::Reach { path, .. } | Ask::Publish { path } => Some(path),
        _ => None,
    }
}

fn is_maybe_outside(ask: &Ask) -> bool {
    path(ask).is_some_and(|path| path.starts_with(['/', '~']) || path.split('/').any(|part| part == ".."))
}

/// The rules of an agent's commands: those of all agents and its own.
fn shell_of<'a>(config: &'a Config, agent: &str) -> (&'a ShellConfig, Option<&'a ShellConfig>) {
    let own = config.agents.get(agent).map(|agent| &agent.shell);
    (&config.shell, own.filter(|own| **own != ShellConfig::default()))
}

/// The paths that an agent may reach or not: those of all agents and its own.
fn reach<'a>(config: &'a Config, agent: &str) -> [&'a [PathBuf]; 6] {
    let files = &config.files;
    let own = config.agents.get(agent);
    let of_agent = |list: fn(&AgentConfig) -> &[PathBuf]| own.map(list).unwrap_or_default();
    [
        &files.deny,
        &files.read,
        &files.write,
        of_agent(|own| &own.deny_paths),
        of_agent(|own| &own.read_paths),
        of_agent(|own| &own.write_paths),
    ]
}
