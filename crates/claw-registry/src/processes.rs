//! Background commands of a session: found by name, and text typed into them judged together with all text typed
//! before. The host runs them and keeps their output.

use std::sync::Arc;

use claw_core::port::{BackgroundCommand, BackgroundStart, Owner, ProcessHost};
use claw_core::tool::{ErrorKind, Input, Sight, Target, ToolError};
use claw_policy::shell::{Invocation, Rules, Typing, Verdict};

/// The background commands that this program may run; none without a host.
#[derive(Clone, Default)]
pub(crate) struct BackgroundCommands(pub(crate) Option<Arc<dyn ProcessHost>>);

impl BackgroundCommands {
    /// The commands of an owner, in the order in which they were started.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<Arc<dyn BackgroundCommand>> {
        self.0.as_ref().map(|host| host.of(owner)).unwrap_or_default()
    }

    /// The command that an owner names, by its id or the end of it.
    pub(crate) fn find(&self, owner: &Owner, process: &str) -> Result<Arc<dyn BackgroundCommand>, ToolError> {
        let named = |command: &Arc<dyn BackgroundCommand>| {
            process.len() >= 4 && command.started().id.to_string().ends_with(process)
        };
        let mut found = self.of(owner).into_iter().filter(named);
        match (found.next(), found.next()) {
            (Some(command), None) => Ok(command),
            (Some(_), Some(_)) => Err(ToolError::invalid(format!("several ids end with `{process}`"))
                .try_instead("give more of the id")),
            (None, _) => {
                Err(ToolError::not_found(format!("this session has no background command `{process}`"))
                    .try_instead("`list` shows the ids"))
            }
        }
    }

    /// The current state of an owner's command, with all text typed into it.
    pub(crate) fn look(&self, owner: &Owner, target: &Target) -> Result<Option<Sight>, ToolError> {
        let Target::Process { process } = target else { return Ok(None) };
        self.find(owner, process).map(|command| Some(command.sight(process)))
    }

    /// Applies the rules to text that an owner would type; `None` if there is no such command.
    pub(crate) fn judge(&self, owner: &Owner, input: &Input, rules: &Rules) -> Option<Verdict> {
        let command = self.find(owner, &input.process).ok()?;
        let (known, typed) = (command.started(), command.typed());
        let script = &known.script;
        let started = Invocation { text: &script.text, env: &script.env, input: script.input.as_deref() };
        let programs = &known.programs;
        let typing = Typing { started, before: &typed, terminal: script.terminal, programs };
        Some(typing.analyse(&known.typed(input), rules))
    }

    /// Starts a script in the background.
    pub(crate) async fn start(
        &self,
        start: BackgroundStart<'_>,
    ) -> Result<Arc<dyn BackgroundCommand>, ToolError> {
        let Some(host) = &self.0 else {
            let message = "this program exits after the call, and a background command would end with it";
            return Err(ToolError::new(ErrorKind::Unavailable, message)
                .try_instead("run it without `background`, or in a session (`clawsmith chat`)"));
        };
        host.start(start).await
    }

    /// Ends all running commands and waits for them; returns how many there were.
    pub(crate) async fn end_all(&self) -> usize {
        match &self.0 {
            Some(host) => host.end_all().await,
            None => 0,
        }
    }
}
