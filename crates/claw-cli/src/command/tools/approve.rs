//! Asking the person at the terminal whether a call may run.
//!
//! The question goes to standard error and the answer comes from standard input. What the call is about is
//! shown without control characters: a call must not be able to rewrite its own question.

mod input;

use std::io::{self, BufRead, BufReader, IsTerminal as _, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claw_core::event::{Event, Listener, What};
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Approval, ApprovalState};
use claw_host::SystemClock;
use clawsmith::app::{App, InputValues, RuleFor, Verdict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::output::{beside, tell, told_columns, visible};

/// How often an answer that is neither yes nor no is asked for again.
const ATTEMPTS: usize = 3;
/// The most lines of a question that are shown at once, and how many of them are its last ones.
const SCREEN: usize = 60;
const TAIL: usize = 10;
/// How often it is looked whether a question still waits.
const LOOKED_AFTER: Duration = Duration::from_millis(200);
/// How long whoever reads the answer takes to notice that none is wanted any more.
const POLLED: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Whether somebody sits at a terminal who can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
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
    match &request.input {
        Some(_) => tell(format_args!("  and: clawsmith approvals answer {id} NAME=VALUE ...")),
        None => tell(format_args!("  and: clawsmith approvals approve {id}")),
    }
}

/// Puts a question; the store gets the answer. A question that is over before there is one (answered elsewhere,
/// expired, withdrawn) gives the terminal back at once, with what was typed and not yet read.
pub(crate) async fn put(app: &App, approval: Approval, by: String) {
    let (sender, mut answer) = tokio::sync::oneshot::channel();
    let (shown, over) = (approval.clone(), Over::default());
    let input = Watched { over: Arc::clone(&over.0) };
    let checker = app.clone();
    std::thread::spawn(move || {
        // What was typed before the question is no answer to it. A terminal that is gone gives none.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        // Standard error is not locked: whoever waits here must not keep others from saying why it is over.
        let check = |values: &Map<String, Value>| {
            let given = InputValues { values: values.clone(), allow_secrets: false };
            checker.input_values(&shown, given).map(drop).map_err(|error| error.message().to_owned())
        };
        let answer = ask(&shown, &check, &mut BufReader::new(input), &mut io::stderr());
        let unread = if shown.request.input.is_some() { Said::Dismissed } else { Said::No(None) };
        let _ = sender.send(answer.unwrap_or(unread));
    });
    let said = loop {
        tokio::select! {
            biased;
            said = &mut answer => match said {
                Ok(said) => break said,
                Err(_) => return,
            },
            () = tokio::time::sleep(LOOKED_AFTER) => {}
        }
        if let Some(how) = ended(app, &approval).await {
            drop(over);
            // Whoever reads next must not have to share the terminal.
            let _ = answer.await;
            return tell(format_args!("\n{how}"));
        }
    };
    let verdict = match said {
        Said::No(reason) => Verdict::Deny { reason },
        Said::Once => Verdict::Once,
        Said::Always => Verdict::Always { scope: RuleFor::Session, lasts: None },
        Said::Values(values) => Verdict::Values(InputValues { values, allow_secrets: false }),
        Said::Dismissed => Verdict::Dismiss,
    };
    if let Err(error) = app.answer_found(&approval, verdict, &by).await {
        tracing::debug!(%error, "an answer came too late");
        if let Some(how) = ended(app, &approval).await {
            tell(format_args!("the answer came too late: {how}"));
        }
    }
}

/// How an approval ended; `None` while it waits. A store that cannot be read now may be in a moment.
async fn ended(app: &App, asked: &Approval) -> Option<String> {
    let found = app.store().approval(&asked.request.tenant, asked.id).await.ok()?;
    how_ended(found.as_ref(), SystemClock.now())
}

fn how_ended(found: Option<&Approval>, now: UnixMillis) -> Option<String> {
    let Some(Approval { request, state, answered_by, .. }) = found else {
        return Some("the question is withdrawn".to_owned());
    };
    let by = visible(answered_by.as_deref().unwrap_or("somebody"));
    Some(match state {
        // Whoever asked closes it, if they are still there.
        ApprovalState::Pending if now < request.expires => return None,
        ApprovalState::Approved | ApprovalState::Used => format!("answered elsewhere: {by} said yes"),
        ApprovalState::Denied => format!("answered elsewhere: {by} said no"),
        ApprovalState::Expired if answered_by.is_some() => {
            format!("answered elsewhere: {by} said yes, and it was not used in time")
        }
        ApprovalState::Pending | ApprovalState::Expired => {
            let waited = request.expires.since(request.asked).as_secs();
            format!("the question expired: nobody answered within {waited} s")
        }
        ApprovalState::Cancelled => "the question is withdrawn: the call was given up".to_owned(),
    })
}

/// Tells whoever reads the answer, when it is dropped, that none is wanted any more.
#[derive(Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Standard input until a question is over: a read that blocks could not be taken back, and would swallow what is
/// typed next.
struct Watched {
    over: Arc<AtomicBool>,
}

impl Read for Watched {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        loop {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
            let ready = match poll(&mut waiting, Some(&POLLED)) {
                Ok(ready) => ready > 0,
                Err(Errno::INTR) => false,
                Err(error) => return Err(error.into()),
            };
            if self.over.load(Ordering::Acquire) {
                return Err(io::Error::other("the question is over"));
            }
            if ready {
                return Ok(rustix::io::read(&stdin, bytes)?);
            }
        }
    }
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    /// No, and why.
    No(Option<String>),
    Once,
    /// Yes, and in this conversation without asking from now on.
    Always,
    /// These values, for a request for input.
    Values(Map<String, Value>),
    /// No answer to a request for input.
    Dismissed,
}

/// The reason in an answer such as `no, because it is the main branch`.
fn because(line: &str) -> Option<String> {
    let line = line.trim();
    let (word, rest) = line.split_once(|c: char| c.is_whitespace() || c == ',' || c == ':')?;
    let rest = rest.trim_start_matches([' ', ',', ':']).trim();
    (["n", "no"].contains(&word.to_lowercase().as_str()) && !rest.is_empty()).then(|| rest.to_owned())
}

/// Asks; only a clear yes is one.
fn ask(
    approval: &Approval,
    check: &input::Check<'_>,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<Said> {
    let request = &approval.request;
    let wait = request.expires.since(request.asked).as_secs();
    match &request.input {
        Some(_) => writeln!(output, "\n`{}` needs your input", request.tool)?,
        None => writeln!(output, "\n`{}` needs your approval", request.tool)?,
    }
    writeln!(output, "  effects  {}", request.effects)?;
    let columns = told_columns();
    writeln!(output, "{}", beside("  why      ", &visible(&request.reason), columns))?;
    // As it is: where a command ends its lines is a part of it.
    let summary = visible(&request.summary);
    let what: Vec<&str> = summary.lines().collect();
    let is_long = what.len() > SCREEN;
    let (start, end) = if is_long { (SCREEN - TAIL, what.len() - TAIL) } else { (what.len(), what.len()) };
    for (i, line) in what.iter().take(start).enumerate() {
        writeln!(output, "  {}{line}", if i == 0 { "what     " } else { "         " })?;
    }
    if is_long {
        writeln!(output, "  [{} more lines; `v` shows the whole]", end - start)?;
        for line in what.iter().skip(end) {
            writeln!(output, "           {line}")?;
        }
    }
    if let Some(wanted) = &request.input {
        return input::ask(wanted, check, input, output);
    }
    let always = request.remember.as_ref().filter(|suggestion| suggestion.rule.is_some());
    if let Some(suggestion) = always {
        let covered = format!("in this session, {}", visible(&suggestion.text));
        writeln!(output, "{}", beside("  always   ", &covered, columns))?;
    }
    let choice = match (always.is_some(), is_long) {
        (true, true) => "[y]es once / [a]lways / [n]o, or no and why / [v]iew whole",
        (true, false) => "[y]es once / [a]lways / [n]o, or no and why",
        (false, true) => "[y]es once / [n]o, or no and why / [v]iew whole",
        (false, false) => "[y]es once / [n]o, or no and why",
    };
    for _ in 0..ATTEMPTS {
        write!(output, "{choice}, within {wait} s: ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(Said::No(None));
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Said::Once),
            "a" | "always" if always.is_some() => return Ok(Said::Always),
            "n" | "no" => return Ok(Said::No(None)),
            "v" | "view" if is_long => writeln!(output, "{summary}")?,
            _ if because(&line).is_some() => return Ok(Said::No(because(&line))),
            _ if always.is_some() => writeln!(output, "please answer `y`, `a` or `n`")?,
            _ => writeln!(output, "please answer `y` or `n`")?,
        }
    }
    writeln!(output, "taken as no")?;
    Ok(Said::No(None))
}

#[cfg(test)]
mod tests;
