//! `credentialed_exec`: runs a registered program, with its credentials and without a shell.

mod split;

use claw_core::port::{Ran, Stopped};
use claw_core::tool::{Argv, Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::exec;

/// The longest time limit that a program can be registered with, and a margin.
const LONGEST: u32 = 86_400 + 60;

#[derive(Default)]
pub(crate) struct CredentialedExec;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The program and its arguments, such as `gh pr list --limit 5`. Quotes group words; nothing is
    /// expanded, and pipes, redirections and other operators are refused.
    #[schemars(length(min = 1))]
    command: String,
    /// Further arguments, each passed unchanged: for long texts and text that would need quotes.
    #[serde(default)]
    arguments: Vec<String>,
    /// Working directory, relative to the workspace.
    #[serde(default = "here")]
    directory: String,
}

fn here() -> String {
    ".".to_owned()
}

impl Args {
    fn argv(&self) -> Result<Argv, ToolError> {
        let mut argv = split::split(&self.command).map_err(|wrong| {
            ToolError::invalid(format!("`command` {wrong}"))
                .try_instead("call one program alone; pass texts with such characters in `arguments`")
        })?;
        if argv.is_empty() {
            return Err(ToolError::invalid("`command` names no program"));
        }
        argv.extend(self.arguments.iter().cloned());
        Ok(Argv { argv, directory: self.directory.clone(), env: Vec::new(), credentials: true })
    }
}

impl Tool for CredentialedExec {
    type Args = Args;
    // The program logs in to a remote service, so it cannot be used without the network.
    const META: Meta = Meta::new("credentialed_exec", Group::Runtime)
        .effects(&[Effect::Read, Effect::Write, Effect::Execute, Effect::Network])
        .needs(&[Need::Shell, Need::Programs])
        .timeout_secs(LONGEST)
        .about("Run a registered command-line program with its credentials, without a shell.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        let plan = |argv| Plan::argv(argv).with(Effect::Read).with(Effect::Write).with(Effect::Network);
        // An invalid command is refused, and runs nothing.
        args.argv().map_or_else(|_| Plan::read(), plan)
    }

    fn refusal(&self, args: &Args) -> Option<ToolError> {
        args.argv().err()
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let ran = call.shell()?.spawn(&args.argv()?).await?;
        Ok(told(&ran))
    }
}

fn told(ran: &Ran) -> Output {
    let ending = ending(ran);
    let lines: String = ending.iter().map(|line| format!("[{line}]\n")).collect();
    let text = format!("{}{lines}", exec::printed(&ran.output));
    let details = json!({
        "exit": ran.exit,
        "signal": ran.signal,
        "stopped": ran.stopped.map(exec::word),
        "left_out_bytes": ran.dropped,
        "place": ran.place,
    });
    Output::text(text.trim_end()).for_user(ending.join("; ")).with_details(details)
}

/// Describes how the program ended.
fn ending(ran: &Ran) -> Vec<String> {
    let stopped = match ran.stopped {
        Some(Stopped::Time) => Some("stopped: its registered time limit was reached"),
        Some(Stopped::Memory) => Some("stopped: it reached its memory limit"),
        Some(Stopped::Disk) => Some("stopped: the disk filled up"),
        None => None,
    };
    let mut lines: Vec<String> = stopped.into_iter().map(ToOwned::to_owned).collect();
    lines.push(match (ran.exit, ran.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}{}", exec::name(signal)),
        (None, None) => "ended, exit status unknown".to_owned(),
    });
    lines.extend(ran.full.iter().map(ToString::to_string));
    if ran.dropped > 0 {
        lines.push(format!("{} bytes are left out of the middle", ran.dropped));
    }
    let dry_run = false;
    lines.extend(exec::changed(ran, dry_run));
    lines
}

#[cfg(test)]
mod tests;
