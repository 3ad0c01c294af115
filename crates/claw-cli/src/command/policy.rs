//! `clawsmith policy`: explain, lint, diff, replay, test.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use claw_core::counted::counted;
use claw_policy::diff::diff;
use claw_policy::explain::{Presence, explain};
use claw_policy::lint::Severity;
use claw_policy::pipeline::Subject;
use claw_terminal::{Cell, Table};
use clawsmith::app::policy::PolicyTests;
use clawsmith::app::replay::{Proposal, Replay as Found, ReplayRange, ReplayVerdict, since};
use clawsmith::app::{self, Setup};
use clawsmith::config::{Loaded, Surroundings};
use serde_json::json;

use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::runtime;

subcommands! {
    /// The operations on the policy.
    pub(crate) enum Policy {
        /// Explain why a caller has a tool or not, and what would have to change.
        Explain(Explain),
        /// List rules that match nothing, change nothing, or allow what another denies.
        Lint(Lint),
        /// Show the tools that each agent gains and loses between two configurations.
        Diff(Diff),
        /// Show which recorded calls another configuration would decide differently.
        Replay(Replay),
        /// Check assertions about who may call what.
        Test(Test),
    }
}

/// The tool and the caller to explain.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The tool [default: all of this build].
    tool: Option<String>,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Explain {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        let policy = runtime()?.block_on(setup.enforced_policy())?;
        let mut caller = self.caller.caller_here(&setup)?;
        let tools = runtime()?.block_on(setup.tools_of(&mut caller))?;
        let subject = Subject::from(&caller);
        if let Some(tool) = &self.tool {
            let explained = explain(&policy, &tools, &subject, tool);
            let is_unknown = matches!(explained.presence, Presence::Unknown { .. });
            session.shown(&explained, |out| match is_unknown {
                true => Err(Failure::usage(explained.to_string()).hint("clawsmith tools list --all")),
                false => Ok(out.prose(&explained)?),
            })?;
            return Ok(ExitCode::from(if is_unknown { 2 } else { 0 }));
        }
        let decision = policy.decide(&tools, &subject);
        let lines: Vec<_> =
            decision.iter().map(|(meta, verdict)| json!({ "tool": meta.name, "verdict": verdict })).collect();
        session.shown(&lines, |out| {
            let (agent, allowed, all) = (&caller.agent, decision.allowed().count(), tools.len());
            out.prose(format_args!("agent `{agent}` has {allowed} of {all} tools\n"))?;
            let mut table = Table::new(["tool", "allowed", "effects", "why"]);
            for (meta, verdict) in decision.iter() {
                let (effects, why) = (Cell::new(verdict.effects), Cell::new(&verdict.trace));
                table.row([Cell::strong(&meta.name), Cell::yes(verdict.allowed), effects, why]);
            }
            Ok(out.table(&table)?)
        })
    }
}

/// The options of linting.
#[derive(Debug, Args)]
pub(crate) struct Lint {
    /// Treat every finding as an error.
    #[arg(long)]
    strict: bool,
}

impl Lint {
    fn run(self, session: &mut Session) -> Outcome {
        // Looking at a file does nothing under its rules.
        let findings = session.read()?.policy_findings();
        session.shown(&findings, |out| {
            if findings.is_empty() {
                out.line("No problems found.")?;
            }
            Ok(findings.iter().try_for_each(|finding| out.prose(finding))?)
        })?;
        let bad = findings.iter().any(|finding| self.strict || finding.severity == Severity::Error);
        Ok(ExitCode::from(u8::from(bad)))
    }
}

/// The configurations to compare.
#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The configuration before the change.
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The configuration after the change.
    #[arg(value_name = "B")]
    after: PathBuf,
}

impl Diff {
    fn run(self, session: &mut Session) -> Outcome {
        // The same variables would be laid over both and hide what differs.
        let around = Surroundings { directory: session.around.directory.clone(), variables: Vec::new() };
        let before = Loaded::load(Some(&self.before), &around)?;
        let after = Loaded::load(Some(&self.after), &around)?;
        let difference = diff(&before.config.policy(), &after.config.policy(), &app::catalogue())
            .map_err(|error| Failure::usage(error.to_string()))?;
        session.shown(&difference, |out| Ok(out.foreign(&difference.to_string())?))
    }
}

/// The rules to try, and the calls to try them on.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The other configuration.
    #[arg(value_name = "FILE", required_unless_present = "change", conflicts_with = "change")]
    file: Option<PathBuf>,
    /// A change to the current configuration, instead of a whole one: its keys replace the current ones.
    #[arg(long, value_name = "FILE")]
    change: Option<PathBuf>,
    /// The beginning of the range, as time before now: days (`7d`) or hours (`12h`).
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = since)]
    since: Duration,
    /// The end of the range, as time before now [default: now].
    #[arg(long, value_name = "TIME", value_parser = since)]
    until: Option<Duration>,
}

impl Replay {
    fn run(self, session: &mut Session) -> Outcome {
        let range = ReplayRange::ago(self.since, self.until)?;
        let named = self.change.as_ref().or(self.file.as_ref());
        if let Some(directory) = named.filter(|path| session.around.directory.join(path).is_dir()) {
            let shown = directory.display();
            return Err(Failure::usage(format!("`{shown}` is a directory"))
                .hint(format!("name a file, such as `{}`", directory.join("clawsmith.toml").display())));
        }
        let whole = self.file.as_ref().map(|file| Setup::read(Some(file), &session.around)).transpose()?;
        let change = self.change.as_ref().map(|file| session.text_of(file)).transpose()?;
        let found = session.existing_app(async |app| {
            let other = match (whole, change) {
                (Some(whole), _) => whole,
                (None, change) => {
                    app.changed(&self.change.unwrap_or_default(), change.unwrap_or_default())?
                }
            };
            app.replay(Proposal::Deployment(Box::new(other)), range).await
        })?;
        let found = found.ok_or_else(|| Failure::failed("nothing is recorded yet: there is no store"))?;
        session.shown(&found, |out| {
            let Found { calls, same, skipped, skips, truncated, changes } = &found;
            let otherwise = calls - same - skipped;
            let calls = counted(*calls, "recorded call");
            out.line(format_args!(
                "{calls}: {same} decided the same, {otherwise} differently, {skipped} not judged"
            ))?;
            for skip in skips {
                out.line(format_args!("  {} not judged: {}", skip.calls, skip.reason))?;
            }
            if *truncated {
                out.line("Older calls in this range were left out: only the latest 200,000 ledger entries are read.")?;
            }
            if changes.is_empty() {
                return Ok(());
            }
            out.line("")?;
            Ok(out.table(&Table::of(
                changes,
                &[
                    ("calls", &|change| Cell::new(change.calls)),
                    ("agent", &|change| Cell::strong(&change.agent)),
                    ("tool", &|change| Cell::strong(&change.tool)),
                    ("now", &|change| verdict(change.before)),
                    ("then", &|change| verdict(change.after)),
                    ("why", &|change| Cell::new(&change.reason)),
                    ("for example", &|change| Cell::quiet(&change.example)),
                ],
            ))?)
        })
    }
}

fn verdict(verdict: ReplayVerdict) -> Cell {
    match verdict {
        ReplayVerdict::Allow => Cell::good("allow"),
        ReplayVerdict::Ask => Cell::warning("ask"),
        ReplayVerdict::Deny => Cell::bad("deny"),
    }
}

/// The assertions.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The file of assertions.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

impl Test {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let tests = PolicyTests::parse(&session.text_of(&self.file)?)?;
        let outcomes = runtime()?.block_on(setup.test_policy(&tests, &session.around.directory))?;
        let failed = outcomes.iter().filter(|outcome| !outcome.passed).count();
        session.shown(&outcomes, |out| {
            out.table(&Table::of(
                &outcomes,
                &[
                    ("test", &|outcome| Cell::strong(&outcome.name)),
                    ("holds", &|outcome| Cell::yes(outcome.passed)),
                    ("expected", &|outcome| verdict(outcome.expected)),
                    ("found", &|outcome| verdict(outcome.found)),
                    ("why", &|outcome| Cell::new(&outcome.reason)),
                ],
            ))?;
            Ok(out.line(format_args!("\n{} of {} hold", outcomes.len() - failed, outcomes.len()))?)
        })?;
        Ok(ExitCode::from(u8::from(failed > 0)))
    }
}
