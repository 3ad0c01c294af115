//! `clawsmith shell`: the analysis of a command. Nothing is run.

use std::io;
use std::process::ExitCode;

use clap::Args;
use claw_core::store::Rule;
use claw_policy::config::ANY_AGENT;
use claw_policy::shell::{Decision, LONGEST, Rules, Verdict, analyse};
use claw_terminal::{Cell, Out, Table, bounded_line, visible};
use serde::Deserialize;
use serde_json::json;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::{runtime, with_existing_app};

subcommands! {
    /// The operations on shell commands.
    pub(crate) enum Shell {
        /// Check whether a command would be allowed, asked or denied, and why. Runs nothing.
        Check(Check),
    }
}

/// The command to check.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The command, as one argument.
    #[arg(required_unless_present = "batch", conflicts_with = "batch", last = true)]
    command: Vec<String>,
    /// Read JSON lines `{\"cmd\": \"...\"}` and answer each with a line of JSON.
    #[arg(long)]
    batch: bool,
    /// The agent whose rules apply.
    #[arg(long, value_name = "ID", default_value = ANY_AGENT)]
    agent: String,
}

impl Check {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        runtime()?.block_on(setup.must_have_agent(&self.agent))?;
        let config = setup.config();
        // They were tried when the configuration was loaded.
        let rules = config.shell_rules(&self.agent).map_err(|error| Failure::usage(error.to_string()))?;
        let command = match self.command.as_slice() {
            [] => return batch(session, &rules),
            [command] => command,
            words => {
                let hint = format!("clawsmith shell check -- '{}'", words.join(" "));
                return Err(Failure::usage("the command is one argument; put it in quotes").hint(hint));
            }
        };
        let verdict = analyse(command, &rules);
        let remembered = with_existing_app(&setup, async |app| {
            Ok(app.rules_covering(&self.agent, command, &rules).await?)
        })?;
        let remembered = remembered.unwrap_or_default();
        let mut json = serde_json::to_value(&verdict)?;
        let rule = |rule: &Rule| json!({ "id": rule.new.id, "for": rule.new.scope, "covers": rule.new.text });
        json["remembered"] = remembered.iter().map(rule).collect();
        session.shown(&json, |out| show(out, &verdict, &remembered))?;
        Ok(ExitCode::from(u8::from(verdict.decision != Decision::Allow)))
    }
}

fn show(out: &mut Out, verdict: &Verdict, remembered: &[Rule]) -> Result<(), Failure> {
    out.heading(&verdict.decision.to_string())?;
    for finding in &verdict.findings {
        out.prose(format_args!("  {} by `{}`: {}", finding.verdict, finding.rule, visible(&finding.reason)))?;
        out.line(format_args!("    in   {}", visible(&finding.part.replace('\n', " \u{23ce} "))))?;
        out.prose(format_args!("    try  {}", visible(&finding.advice)))?;
    }
    if !verdict.commands.is_empty() {
        out.line("")?;
        out.table(&Table::of(
            &verdict.commands,
            &[("command", &|simple| Cell::strong(simple)), ("effects", &|simple| Cell::new(simple.effects))],
        ))?;
    }
    if !remembered.is_empty() {
        out.line("")?;
        out.heading("covered by remembered rules, while the programs are the same files")?;
        out.table(&Table::of(
            remembered,
            &[
                ("rule", &|rule| Cell::strong(rule.new.id)),
                ("for", &|rule| Cell::new(&rule.new.scope)),
                ("covers", &|rule| Cell::new(&rule.new.text)),
            ],
        ))?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Line {
    cmd: String,
}

/// A line of JSON with a command of the greatest length, all of it escaped, fits.
const LONGEST_LINE: u64 = 16 * LONGEST as u64;

fn batch(session: &mut Session, rules: &Rules) -> Outcome {
    let mut stdin = io::stdin().lock();
    let (mut number, mut broken) = (0u64, false);
    let unread = |error| Failure::failed("standard input could not be read").because(error);
    while let Some(line) = bounded_line(&mut stdin, LONGEST_LINE).map_err(unread)? {
        number += 1;
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<Line>(&line) {
            Ok(Line { cmd }) => session.out.line(serde_json::to_string(&analyse(&cmd, rules))?)?,
            Err(error) => {
                broken = true;
                let error = format!("line {number} is not of the form {{\"cmd\": \"...\"}}: {error}");
                session.out.line(json!({ "error": error }))?;
            }
        }
        // The client may wait for each answer.
        session.out.flush()?;
    }
    Ok(ExitCode::from(u8::from(broken)))
}
