//! Asking the person at the terminal whether a call may run.
//!
//! The question goes to standard error and the answer comes from standard input. What the call is about is
//! shown without control characters: a call must not be able to rewrite its own question.

use std::io::{self, BufRead, IsTerminal as _, Write};
use std::sync::Arc;

use claw_core::event::{Event, Listener, What};
use claw_core::store::{Answer, Approval};
use claw_registry::{Asking, Executor};
use tokio::sync::mpsc;

use crate::command::approvals::rules::{Scope, new_rule};
use crate::output::{beside, tell, told_columns, visible};

/// How often an answer that is neither yes nor no is asked for again.
const ATTEMPTS: usize = 3;

/// Whether somebody sits at a terminal who can be asked.
pub(crate) fn asking() -> Asking {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        Asking::Possible
    } else {
        Asking::Impossible
    }
}

/// Hears the questions of calls.
pub(crate) struct Questions(mpsc::UnboundedSender<Approval>);

impl Questions {
    pub(crate) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Approval>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self(sender)), receiver)
    }
}

impl Listener for Questions {
    fn hear(&self, event: Event) {
        if let What::ApprovalRequested { approval } = event.what {
            // Nobody listens once the call is over, and then there is nothing to ask.
            let _ = self.0.send(*approval);
        }
    }
}

/// What a person can do where nobody could be asked.
pub(crate) const NOBODY_HERE: &str = "  try: the same on a terminal, where you are asked; or with `--wait`, and answer \
                                      from another terminal: `clawsmith approvals list`, then `clawsmith approvals \
                                      approve ID`";

/// Whether a call was refused for want of somebody to ask.
pub(crate) fn is_unasked(reason: &str) -> bool {
    reason.contains("nobody can be asked")
}

/// Says where a question can be answered that nobody here can.
pub(crate) fn announce(approval: &Approval) {
    let (id, request) = (approval.id, &approval.request);
    let wait = request.expires.since(request.asked).as_secs();
    tell(format_args!("`{}` waits for approval `{id}`, {wait} s at most", request.tool));
    tell(format_args!("  try: clawsmith approvals show {id}"));
    tell(format_args!("  and: clawsmith approvals approve {id}"));
}

/// Puts a question on a thread of its own, since reading a terminal cannot be stopped; the store gets the
/// answer, unless the question was over before.
pub(crate) async fn put(executor: &Executor, approval: Approval, by: String) {
    let (sender, answer) = tokio::sync::oneshot::channel();
    let shown = approval.clone();
    std::thread::spawn(move || {
        // What was typed before the question is no answer to it. A terminal that is gone gives none.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        // Standard error is not locked: whoever waits here must not keep others from saying why it is over.
        let answer = ask(&shown, &mut io::stdin().lock(), &mut io::stderr());
        let _ = sender.send(answer.unwrap_or(Said::No));
    });
    let Ok(said) = answer.await else { return };
    let at = executor.registry().world().clock.now();
    let (tenant, id) = (&approval.request.tenant, approval.id);
    let rule = new_rule(&approval, Scope::Session, &by, at).ok();
    let answer = Answer { approve: said != Said::No, by, at };
    let answered = match (executor.rules(), rule) {
        (Some(rules), Some(rule)) if said == Said::Always => {
            rules.answer_with_rule(tenant, id, answer, rule).await
        }
        _ => executor.store().answer(tenant, id, answer).await,
    };
    if let Err(error) = answered {
        tracing::debug!(%error, "an answer came too late");
    }
}

/// What was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    No,
    Once,
    /// Yes, and in this conversation without asking from now on.
    Always,
}

/// Asks; only a clear yes is one.
fn ask(approval: &Approval, input: &mut impl BufRead, output: &mut impl Write) -> io::Result<Said> {
    let request = &approval.request;
    let wait = request.expires.since(request.asked).as_secs();
    writeln!(output, "\n`{}` needs your approval", request.tool)?;
    writeln!(output, "  effects  {}", request.effects)?;
    let columns = told_columns();
    writeln!(output, "{}", beside("  why      ", &visible(&request.reason), columns))?;
    // As it is: where a command ends its lines is a part of it.
    for (i, line) in visible(&request.summary).lines().enumerate() {
        writeln!(output, "  {}{line}", if i == 0 { "what     " } else { "         " })?;
    }
    let always = request.remember.as_ref().filter(|suggestion| suggestion.rule.is_some());
    if let Some(suggestion) = always {
        let covered = format!("in this session, {}", visible(&suggestion.text));
        writeln!(output, "{}", beside("  always   ", &covered, columns))?;
    }
    let choice = if always.is_some() { "[y]es once / [a]lways / [n]o" } else { "[y]es once / [n]o" };
    for _ in 0..ATTEMPTS {
        write!(output, "{choice}, within {wait} s: ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(Said::No);
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Said::Once),
            "a" | "always" if always.is_some() => return Ok(Said::Always),
            "n" | "no" => return Ok(Said::No),
            _ if always.is_some() => writeln!(output, "please answer `y`, `a` or `n`")?,
            _ => writeln!(output, "please answer `y` or `n`")?,
        }
    }
    writeln!(output, "taken as no")?;
    Ok(Said::No)
}

#[cfg(test)]
mod tests;
