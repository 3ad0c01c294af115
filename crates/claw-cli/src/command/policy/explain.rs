//! `clawsmith policy explain`: why a caller has a tool or has it not.

use std::process::ExitCode;

use clap::Args;
use claw_policy::explain::{Presence, explain};
use claw_policy::pipeline::Subject;
use claw_terminal::{Cell, Table};
use serde_json::json;

use crate::caller::{self, CallerArgs};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_existing_app;

/// The tool and the caller to explain.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The tool [default: all of this build].
    tool: Option<String>,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Explain {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        let policy = caller::policy(&setup)?;
        let mut caller = self.caller.caller(setup.config(), &session.around, &session.around.directory)?;
        if caller.provider.is_none() {
            let stored =
                with_existing_app(&setup, async |app| Ok(app.agent(&caller.tenant, &caller.agent).await?))?;
            let agent = stored
                .unwrap_or_else(|| setup.agents().into_iter().find(|view| view.agent.id == caller.agent));
            caller.provider = setup.provider_of(agent.as_ref()).map(Into::into);
        }
        let stored = with_existing_app(&setup, async |app| Ok(app.registry_of(&caller).await?))?;
        let tools = stored.unwrap_or_else(|| setup.registry()).tool_set();
        let subject = Subject::from(&caller);
        if let Some(tool) = &self.tool {
            let explained = explain(&policy, &tools, &subject, tool);
            if session.out.json {
                session.out.json(&explained)?;
            } else if matches!(explained.presence, Presence::Unknown { .. }) {
                return Err(Failure::usage(explained.to_string()).hint("clawsmith tools list --all"));
            } else {
                session.out.prose(&explained)?;
            }
            let unknown = matches!(explained.presence, Presence::Unknown { .. });
            return Ok(ExitCode::from(if unknown { 2 } else { 0 }));
        }
        let decision = policy.decide(&tools, &subject);
        if session.out.json {
            let lines =
                decision.iter().map(|(meta, verdict)| json!({ "tool": meta.name, "verdict": verdict }));
            session.out.json(&lines.collect::<Vec<_>>())?;
            return Ok(ExitCode::SUCCESS);
        }
        session.out.prose(format_args!(
            "agent `{}` has {} of {} tools\n",
            caller.agent,
            decision.allowed().count(),
            tools.len()
        ))?;
        let mut table = Table::new(["tool", "allowed", "effects", "why"]);
        for (meta, verdict) in decision.iter() {
            let allowed = if verdict.allowed { Cell::good("yes") } else { Cell::bad("no") };
            table.row([
                Cell::strong(&meta.name),
                allowed,
                Cell::new(verdict.effects),
                Cell::new(&verdict.trace),
            ]);
        }
        session.out.table(&table)?;
        Ok(ExitCode::SUCCESS)
    }
}
