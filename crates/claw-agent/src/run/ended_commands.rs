//! Background commands that ended: each is reported in its session, once.
//!
//! The ends come from the store, so that they are reported even if the program that ran the command is gone.
//! The message has the command's own id, and a message whose id is known is not stored again.

use std::collections::HashSet;

use claw_core::message::Turn;
use claw_core::store::{Process, ProcessEnd, Role};
use claw_core::{MessageId, ProcessId};

use super::Run;
use crate::{History, RunError};

/// The commands whose ends the run has reported.
pub(super) type ReportedEnds = HashSet<ProcessId>;

impl Run<'_> {
    /// Reports background commands that ended since the last report.
    pub(super) async fn report_ended_commands(&mut self) -> Result<(), RunError> {
        if !self.known.must_read_processes() {
            return Ok(());
        }
        let store = &self.deployment.store;
        let processes = store.processes(&self.caller.tenant, &self.caller.session).await?;
        let mut said = Vec::new();
        for process in processes {
            let (Some((end, _)), id) = (process.ended, process.new.id) else { continue };
            if self.told.insert(id)
                && let Ok(message) = id.to_string().parse::<MessageId>()
            {
                said.push(self.message(message, &Turn::text(Role::User, notice(&process, end)))?);
            }
        }
        if said.is_empty() {
            return Ok(());
        }
        self.stopping.check()?;
        store.say_in_run(self.lease, said).await?;
        let (tenant, session) = (&self.caller.tenant, &self.caller.session);
        self.history = History::read(&**store, tenant, session, self.lease.job).await?;
        Ok(())
    }
}

/// The longest part of a command that a report shows, in characters.
const SHOWN: usize = 200;

fn notice(process: &Process, end: ProcessEnd) -> String {
    // One line, so that the command cannot pass for more than a part of the sentence.
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut command: String = process.new.command.chars().take(SHOWN).map(plain).collect();
    if process.new.command.chars().nth(SHOWN).is_some() {
        command.push_str("...");
    }
    let how = match end {
        ProcessEnd::Exited { code: Some(code), .. } => {
            format!("ended with exit code {code}; `process` shows its output")
        }
        ProcessEnd::Exited { signal: Some(signal), .. } => {
            format!("ended by signal {signal}; `process` shows its output")
        }
        ProcessEnd::Exited { .. } => "ended; `process` shows its output".to_owned(),
        ProcessEnd::Killed => "was killed".to_owned(),
        ProcessEnd::Lost => {
            "was lost: the program that ran it ended; the command may not have finished".to_owned()
        }
    };
    format!(
        "[told by the system, not by the user: the background command `{}` {how}. Command: {command}]",
        process.new.id.name()
    )
}
