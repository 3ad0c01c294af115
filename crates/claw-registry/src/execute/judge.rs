//! Step 5: plans a call and decides whether it may run, asking a person if necessary.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use claw_core::ApprovalId;
use claw_core::port::{ApplyMode, Registered, Root, Scope, WorkspaceAccess};
use claw_core::store::{NewApproval, Suggestions};
use claw_core::tool::{Digest, Effect, Effects, Identity, Input, Plan, Sight, Target, ToolError};
use claw_policy::approval::{
    self as policy, AnalysedAsk, Analysis, ApprovalConfig, Circumstances, EffectRule, Judgement,
};
use claw_policy::shell::Rules;
use serde_json::Value;

use super::timeout::panicked;
use super::{Asking, Authorised, Trip, summary};
use crate::guard::FileRules;
use crate::offer::CallPlace;
use crate::registry::Built;
use crate::reply::{Refusal, Step};
use crate::scrub::CallScrubber;
use crate::{approval, guard};

/// Time limit for the ports to look at the targets of a plan. It is longer than any wait of their own (a container that does
/// not answer: 15 s, and 15 s to remove it), so that their reason is told.
const LOOKING: Duration = Duration::from_secs(40);

/// The findings of step 5.
pub(super) struct Judged {
    /// The tool to run: the one that is registered when step 5 ends.
    pub(super) built: Arc<Built>,
    pub(super) plan: Plan,
    pub(super) analysis: Analysis,
    pub(super) effects: Effects,
    pub(super) left: Effects,
    pub(super) sights: Vec<Sight>,
    pub(super) digest: Digest,
    pub(super) place: Arc<CallPlace>,
    pub(super) approval: Option<ApprovalId>,
}

/// The rights of a call's commands.
#[derive(Clone, Copy)]
struct CommandRights {
    /// The effects that they may have.
    effects: Effects,
    /// Their access to the workspace.
    access: WorkspaceAccess,
}

impl Trip<'_> {
    /// Step 5: plans the call and decides on it.
    pub(super) async fn judge(
        &mut self,
        args: &Value,
        left: Effects,
        scrubber: &CallScrubber,
    ) -> Result<Judged, Refusal> {
        let (mut judged, judgement) = self.weigh(args, left).await?;
        let reason = match judgement {
            Judgement::Allow => return Ok(judged),
            Judgement::Ask { reason } => reason,
            Judgement::Deny { reason, advice, setting } => {
                return Err(Refusal { setting, ..denied(reason, advice) });
            }
        };
        if self.request.asking == Asking::Impossible {
            return Err(approval::nobody_to_ask(&reason, self.request.call));
        }
        let request = self.approval_request(&judged, args, reason, scrubber);
        let approval = match self.request.asking.parks() {
            true => approval::find_answer(self.executor, self.offer, request, &self.request.cancel).await?,
            false => approval::ask(self.executor, self.offer, request, &self.request.cancel).await?,
        };
        judged.approval = Some(approval);
        self.scope.take();
        judged.built = self.reconsider(&judged).await?;
        Ok(judged)
    }

    /// Plans the call and applies the rules to the plan. Nobody is asked yet.
    pub(super) async fn weigh(
        &mut self,
        args: &Value,
        left: Effects,
    ) -> Result<(Judged, Judgement), Refusal> {
        let meta = &self.tool.entry.meta;
        let place = self.place().await?;
        let plan = catch_unwind(AssertUnwindSafe(|| self.built.tool.plan(&place.facts, args)))
            .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
            .map_err(|error| self.unplanned(error))?;
        let programs = self.programs(&plan).await?;
        let analysis = self.analyse(&plan, &programs);
        self.find_directories(&analysis, &place).await?;
        let of_commands = analysis.command_effects(place.facts.sandboxed, left);
        let effects = plan.all_effects(meta.effects).and(of_commands);
        let access = self.access(&analysis, effects);
        let mut sights = self.look(&plan, &analysis, CommandRights { effects: left, access }, &place).await?;
        sights.extend(self.asked.iter().map(|root| Sight::outside(root.path.display().to_string())));
        let definition = self.built.definition();
        let identity = Identity { definition, place: place.digest, left, args, plan: &plan, sights: &sights };
        let digest = identity.digest();
        let built = Arc::clone(&self.built);
        let mut judged =
            Judged { built, plan, analysis, effects, left, sights, digest, place, approval: None };
        let judgement = self.decide(&mut judged).await;
        Ok((judged, judgement))
    }

    /// The refusal of a call that has no plan; its cause is for the log.
    fn unplanned(&self, error: ToolError) -> Refusal {
        let scrubber = self.executor.scrubbers().for_tenant(&self.offer.caller().tenant);
        let (tool, cause) = (&self.tool.entry.meta.name, scrubber.text(&error.for_log()));
        tracing::debug!(%tool, call = %self.request.call, error = cause, "a call could not be planned");
        Refusal { advice: error.advice, ..Refusal::at(Step::Judge, error.message) }
    }

    /// The circumstances of the call, with the current settings.
    async fn place(&self) -> Result<Arc<CallPlace>, Refusal> {
        let settings = self.executor.0.settings.of(&self.offer.caller().tenant);
        let settings = tokio::select! {
            settings = settings => settings,
            () = self.request.cancel.cancelled() => {
                return Err(Refusal::at(Step::Judge, "the call was cancelled"));
            }
        };
        let stored = settings.map_err(|error| {
            tracing::error!(%error, "the settings of tools could not be read");
            Refusal::at(Step::Judge, "the tool's settings cannot be read right now, so it is not run")
                .try_instead("try again later")
        })?;
        Ok(self.offer.place(self.tool, &stored))
    }

    /// Applies the current rules to the commands of a plan.
    fn analyse(&self, plan: &Plan, programs: &Registered) -> Analysis {
        let commands = self.executor.0.commands.of(self.offer.caller());
        let processes = &self.executor.0.processes;
        let typed =
            |input: &Input, rules: &Rules| processes.judge(&guard::owner(self.offer.caller()), input, rules);
        Analysis::of(plan, &commands.rules, commands.network, programs, typed)
    }

    pub(super) fn verdict(&self, judged: &Judged, analysis: &Analysis) -> Judgement {
        self.verdict_with(judged, analysis, &self.asked)
    }

    /// The verdict if a person had yet to grant these directories of the scope.
    fn verdict_with(&self, judged: &Judged, analysis: &Analysis, asked: &[Root]) -> Judgement {
        let circumstances = Circumstances {
            ceiling: self.tool.entry.meta.effects,
            left: judged.left,
            directory: &judged.place.facts.directory,
            scope: &self.scope(&judged.place),
            asked,
            sandboxed: judged.place.facts.sandboxed,
            analysis,
            sights: &judged.sights,
        };
        self.with_approvals(|rules| policy::judge(rules, &circumstances))
    }

    /// The way in which the commands of a call with these effects see the workspace. If changes have to be reviewed before
    /// they are applied, only a layer will do. A rule about writing was applied already if the call was judged to write.
    pub(super) fn access(&self, analysis: &Analysis, effects: Effects) -> WorkspaceAccess {
        let is_looked_at = || {
            let mode = self.executor.0.commands.of(self.offer.caller()).apply;
            let of_writing =
                self.with_approvals(|rules| rules.of_effect(Effect::Write).map(|(rule, _)| rule));
            let is_ruled = matches!(of_writing, Some(EffectRule::Ask | EffectRule::Deny));
            mode != ApplyMode::Auto || (is_ruled && !effects.has(Effect::Write))
        };
        match analysis.access() {
            WorkspaceAccess::Layer if is_looked_at() => WorkspaceAccess::OnlyLayer,
            access => access,
        }
    }

    /// When a person is asked: by the rules of now, in the mode of the call's run.
    pub(super) fn with_approvals<T>(&self, read: impl FnOnce(&ApprovalConfig) -> T) -> T {
        match &self.request.narrowing {
            None => read(&self.executor.0.approvals.load()),
            narrowing => read(&self.executor.approvals_in(narrowing.as_ref())),
        }
    }

    /// The files that the call may reach under the rules of now, or of when it was last asked for.
    pub(super) fn scope(&self, place: &CallPlace) -> Arc<Scope> {
        Arc::clone(self.scope.get_or_init(|| self.scope_now(place)))
    }

    fn scope_now(&self, place: &CallPlace) -> Arc<Scope> {
        let rules = self.executor.0.files.load();
        let is_plain = self.asked.is_empty() && self.granted.is_empty() && self.skills.directories.is_empty();
        match is_plain {
            true => place.scope(&rules, || self.scope_by(&rules, place)),
            false => Arc::new(self.scope_by(&rules, place)),
        }
    }

    fn scope_by(&self, rules: &FileRules, place: &CallPlace) -> Scope {
        let name = &self.tool.entry.meta.name;
        // A person may be asked for more than was granted.
        let is_asked = |root: &&Root| self.asked.iter().any(|asked| asked.path == root.path);
        let granted = self.granted.iter().map(|(_, root)| root).filter(|root| !is_asked(root));
        let directories: Vec<Root> = self.asked.iter().chain(granted).cloned().collect();
        let beside = guard::Beside { skills: &self.skills.directories, directories: &directories };
        guard::scope(rules, self.offer.caller(), name, &place.facts, beside)
    }

    /// Checks again after a person has answered: policy and settings may have changed meanwhile, and the
    /// approved call must still be allowed and the same. Returns the tool that is registered by now.
    async fn reconsider(&self, judged: &Judged) -> Result<Arc<Built>, Refusal> {
        if self.place().await?.digest != judged.place.digest {
            let reason = "the tool's settings changed while the approval was pending".to_owned();
            return Err(denied(reason, Some("make the call again, which asks again".to_owned())));
        }
        let Authorised { left, built } = self.authorise().await?;
        if left != judged.left {
            return Err(denied("the policy changed while the approval was pending".to_owned(), None));
        }
        let analysis = self.analyse(&judged.plan, &self.programs(&judged.plan).await?);
        if !analysis.has_routes_of(&judged.analysis) {
            let reason = "a program with credentials changed while the approval was pending".to_owned();
            return Err(denied(reason, Some("make the call again, which asks again".to_owned())));
        }
        if let Some(path) = self.moved(judged).await? {
            let reason = format!("`{path}` leads elsewhere than when the approval was requested");
            return Err(denied(reason, Some("make the call again, which asks again".to_owned())));
        }
        match self.verdict(judged, &analysis) {
            Judgement::Allow | Judgement::Ask { .. } => Ok(built),
            Judgement::Deny { reason, advice, setting } => Err(Refusal { setting, ..denied(reason, advice) }),
        }
    }

    /// A file of the plan that is elsewhere by now, since a link on its path was changed.
    async fn moved(&self, judged: &Judged) -> Result<Option<String>, Refusal> {
        let of_file = |sight: &&Sight| matches!(sight.target, Target::File { .. });
        let before: Vec<&Sight> = judged.sights.iter().filter(of_file).collect();
        let targets: Vec<Target> = before.iter().map(|sight| sight.target.clone()).collect();
        let now = guard::look_at_files(self.offer, &targets, &self.scope(&judged.place)).await;
        let now = now.map_err(|error| denied(error.message, error.advice))?;
        let moved = before.iter().zip(&now).find(|(before, now)| before.path != now.path);
        Ok(moved.and_then(|(before, _)| match &before.target {
            Target::File { path } => Some(path.clone()),
            _ => None,
        }))
    }

    /// Has the ports look at the targets of the plan, so that the approval covers what will really run.
    async fn look(
        &self,
        plan: &Plan,
        analysis: &Analysis,
        CommandRights { effects, access }: CommandRights,
        place: &CallPlace,
    ) -> Result<Vec<Sight>, Refusal> {
        let targets = policy::targets(analysis);
        let logins: Vec<_> = analysis.asks.iter().filter_map(AnalysedAsk::login).collect();
        if targets.is_empty() && logins.is_empty() {
            return Ok(Vec::new());
        }
        let (files, others): (Vec<_>, Vec<_>) =
            targets.into_iter().partition(|target| matches!(target, Target::File { .. }));
        let (processes, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|target| matches!(target, Target::Process { .. }));
        let (skills, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|target| matches!(target, Target::Skill { .. }));
        let (hosts, others): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|target| matches!(target, Target::Host { .. }));
        let (sessions, commands): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|target| matches!(target, Target::Session { .. }));
        let scope = self.scope(place);
        let looking = async {
            let mut sights = guard::look_at_files(self.offer, &files, &scope).await?;
            let owner = guard::owner(self.offer.caller());
            for target in &processes {
                sights.extend(self.executor.0.processes.look(&owner, target)?);
            }
            sights.extend(guard::look_at_hosts(self.offer, hosts));
            sights.extend(guard::look_at_sessions(self.offer, sessions).await?);
            sights.extend(guard::look_at_skills(self.executor, self.offer, &skills, &scope).await?);
            let cancel = &self.request.cancel;
            let (network, reads_only) =
                (analysis.network, self.with_approvals(ApprovalConfig::denies_writing));
            let judged = guard::Looking { plan, effects, network, access, reads_only, scope: &scope };
            sights.extend(guard::look_at_commands(self.offer, &commands, judged, cancel).await?);
            sights.extend(guard::look_at_programs(self.offer, &logins, judged, cancel).await?);
            Ok(sights)
        };
        let seen: Result<_, ToolError> = tokio::select! {
            seen = looking => seen,
            () = self.request.cancel.cancelled() => {
                return Err(Refusal::at(Step::Judge, "the call was cancelled"));
            }
            () = tokio::time::sleep(LOOKING) => {
                let reason = format!("looking at what the call leads to took longer than {} s", LOOKING.as_secs());
                return Err(Refusal::at(Step::Judge, reason).try_instead("try again later"));
            }
        };
        seen.map_err(|error| Refusal {
            advice: error.advice,
            setting: error.setting,
            ..Refusal::at(Step::Judge, error.message)
        })
    }

    fn approval_request(
        &self,
        judged: &Judged,
        args: &Value,
        reason: String,
        scrubber: &CallScrubber,
    ) -> NewApproval {
        let caller = self.offer.caller();
        let now = self.offer.0.registry.world().clock.now();
        let approvals = self.executor.0.approvals.load();
        let wait = match self.request.asking {
            Asking::Unwatched => Duration::from_secs(u64::from(approvals.park_hours) * 3600),
            _ => Duration::from_secs(approvals.wait_secs.into()),
        };
        let remember = self.executor.0.rules.as_ref().and_then(|_| self.suggestions(judged, scrubber));
        let remember = remember.map(|suggestions| match self.is_settled_by_rules(judged) {
            true => suggestions,
            false => {
                let mode = reason.strip_suffix(" says ask").filter(|by| by.starts_with("the mode"));
                Suggestions::impossible(format!("{} asks each time", mode.unwrap_or("the configuration")))
            }
        });
        NewApproval {
            tenant: caller.tenant.clone(),
            session: caller.session.clone(),
            agent: caller.agent.clone(),
            user: caller.user.clone(),
            call: self.request.call,
            run: self.request.run,
            digest: judged.digest,
            tool: self.tool.entry.meta.name.clone(),
            effects: judged.effects,
            summary: summary::summary(judged, args, scrubber),
            reason,
            asked: now,
            expires: now.plus(wait),
            remember,
            directories: self.asked.clone(),
            input: None,
        }
    }

    /// Returns whether the call would be allowed if rules covered every command: something else may be the
    /// reason to ask.
    fn is_settled_by_rules(&self, judged: &Judged) -> bool {
        let covered = judged.analysis.clone().with_all_covered(true);
        self.verdict_with(judged, &covered, &[]) == Judgement::Allow
    }
}

fn denied(reason: String, advice: Option<String>) -> Refusal {
    Refusal::at(Step::Judge, format!("this call is not allowed: {reason}"))
        .try_instead(advice.unwrap_or_else(|| "do it another way".to_owned()))
}
