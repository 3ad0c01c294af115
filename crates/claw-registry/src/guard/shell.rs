//! Commands, exactly as the plan names them.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{ProgramHost, ProgramRun, Ran, RunContext, Shell, ShellHost, gap, gaps};
use claw_core::tool::{Argv, Ask, Caller, Effect, Script, Sight, ToolError};

use super::Grant;
use crate::Executor;

/// Where commands run, and where those with credentials do.
type Hosts = (Arc<dyn ShellHost>, Option<Arc<dyn ProgramHost>>);

/// How much is cut on both sides of a gap in what a command printed. A secret that the gap goes through is not whole on
/// either side and so not recognised; longer ones than this are not expected.
const EDGE: usize = 16 << 10;

pub(super) fn guard(
    (host, programs): Hosts,
    executor: &Executor,
    caller: &Caller,
    grant: &Arc<Grant>,
) -> Arc<dyn Shell> {
    let context = context(caller, grant);
    // What was seen by one is compared by that one.
    let is_login = |sight: &&Sight| sight.credential.is_some();
    let of_logins = grant.sights.iter().filter(is_login).cloned().collect();
    let others = grant.sights.iter().filter(|sight| !is_login(sight)).cloned().collect();
    let login = RunContext { sights: of_logins, ..context.clone() };
    let context = RunContext { sights: others, ..context };
    let (executor, tenant) = (executor.clone(), caller.tenant.clone());
    Arc::new(GuardedShell { host, programs, context, login, grant: Arc::clone(grant), executor, tenant })
}

/// For whom and within what the caller's commands run.
pub(super) fn context(caller: &Caller, grant: &Grant) -> RunContext {
    let wished = |ask: &Ask| matches!(ask, Ask::Script(script) if script.network);
    RunContext {
        workspace: caller.workspace.clone(),
        sandbox_key: caller.sandbox_key.clone(),
        sandboxed: caller.sandboxed,
        effects: grant.effects,
        network: grant.effects.has(Effect::Network) && (grant.network || grant.plan.asks.iter().any(wished)),
        hidden: grant.scope.denied.clone(),
        sights: grant.sights.clone(),
        cancel: grant.cancel.clone(),
        progress: grant.progress.clone(),
        secrets: grant.secrets.clone(),
    }
}

struct GuardedShell {
    host: Arc<dyn ShellHost>,
    programs: Option<Arc<dyn ProgramHost>>,
    context: RunContext,
    /// The same for programs with credentials.
    login: RunContext,
    grant: Arc<Grant>,
    executor: Executor,
    tenant: TenantId,
}

impl GuardedShell {
    /// The program with credentials that an ask was judged to lead to.
    fn login(&self, is_it: impl Fn(&Ask) -> bool) -> Option<(&dyn ProgramHost, &ProgramRun)> {
        let run = self.grant.logins.iter().find_map(|(ask, run)| is_it(ask).then_some(run))?;
        Some((self.programs.as_deref()?, run))
    }

    /// What a command printed, without what stood beside a gap.
    fn without_edges(&self, mut ran: Ran) -> Ran {
        if ran.dropped > 0 {
            let scrubber = self.executor.scrubbers().for_call(&self.tenant, &self.grant.secrets);
            for printed in [&mut ran.output, &mut ran.errors] {
                *printed = without_edges(printed, |text| scrubber.text(text));
            }
        }
        ran
    }
}

/// Hides what is whole on each side of the gaps, and only then cuts their edges off.
fn without_edges(printed: &str, scrub: impl Fn(&str) -> String) -> String {
    let (mut text, mut from) = (String::new(), 0);
    let mut take = |piece: &str, (first, last): (bool, bool), left_out: Option<u64>| {
        let piece = scrub(piece);
        let start = if first { 0 } else { piece.ceil_char_boundary(EDGE.min(piece.len())) };
        let end =
            if last { piece.len() } else { piece.floor_char_boundary(piece.len().saturating_sub(EDGE)) };
        text.push_str(piece.get(start..end).unwrap_or_default());
        if let Some(left_out) = left_out {
            text.push_str(&gap(left_out));
        }
    };
    let gaps = gaps(printed);
    for (at, (range, left_out)) in gaps.iter().enumerate() {
        take(&printed[from..range.start], (at == 0, false), Some(*left_out));
        from = range.end;
    }
    take(&printed[from..], (gaps.is_empty(), true), None);
    text
}

#[async_trait]
impl Shell for GuardedShell {
    async fn run(&self, script: &Script) -> Result<Ran, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Script(named) if named == script);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("running `{}`", script.text)));
        }
        let ran = match self.login(named) {
            Some((programs, run)) => programs.run(&self.login, run).await,
            None => self.host.run(&self.context, script).await,
        };
        ran.map(|ran| self.without_edges(ran))
    }

    async fn spawn(&self, argv: &Argv) -> Result<Ran, ToolError> {
        self.grant.live()?;
        let named = |ask: &Ask| matches!(ask, Ask::Argv(named) if named == argv);
        if !self.grant.plan.asks.iter().any(named) {
            return Err(super::unplanned(format!("running `{}`", argv.argv.join(" "))));
        }
        let ran = match self.login(named) {
            Some((programs, run)) => programs.run(&self.login, run).await,
            None if argv.credentials => Err(super::unplanned("a program with credentials".to_owned())),
            None => self.host.spawn(&self.context, argv).await,
        };
        ran.map(|ran| self.without_edges(ran))
    }
}

#[cfg(test)]
mod tests {
    use super::{EDGE, gap, without_edges};

    #[test]
    fn a_secret_that_a_gap_goes_through_is_on_neither_side() {
        let hide = |text: &str| text.replace("secret-value", "[HIDDEN]");
        let printed = format!(
            "secret-value {}secret-v{}value{} secret-value",
            "x".repeat(EDGE),
            gap(7),
            "y".repeat(EDGE)
        );
        let shown = without_edges(&printed, hide);
        assert!(shown.starts_with("[HIDDEN] x") && shown.ends_with("y [HIDDEN]"), "{}", shown.len());
        assert!(shown.contains(&gap(7)) && !shown.contains("secret") && !shown.contains("value"), "{shown}");
        // What is hidden before the cut may reach over where the cut falls.
        let printed = format!("{}secret-value{}{}rest", "x".repeat(10), "z".repeat(EDGE - 5), gap(1));
        assert!(!without_edges(&printed, hide).contains("secret"));
        // A program that prints such a line itself loses more of what it prints, and nothing else.
        assert_eq!(without_edges(&format!("a{}b{}c", gap(1), gap(2)), hide), format!("{}{}", gap(1), gap(2)));
    }
}
