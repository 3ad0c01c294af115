//! Asking the person at the terminal whether a call may run.
//!
//! The question goes to standard error and the answer comes from standard input. The call is shown without
//! control characters: it must not be able to rewrite its own question.

pub(crate) mod input;

use std::io::{self, BufRead, BufReader, IsTerminal as _, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use claw_core::event::{Event, Listener, What};
use claw_core::port::{Clock as _, InputRequest, UnixMillis};
use claw_core::store::{Approval, ApprovalState, RuleWidth};
use claw_core::tool::Effects;
use claw_core::{ApprovalId, CallId, ToolName};
use claw_host::SystemClock;
use clawsmith::app::{App, InputValues, RuleFor, Verdict};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::output::{beside, tell, told_columns, visible};

/// The number of attempts to get an answer that is yes or no.
const ATTEMPTS: usize = 3;
/// The most lines of an approval shown at once, and how many of them are its last.
const SCREEN: usize = 60;
const TAIL: usize = 10;
/// The interval between checks whether an approval is still pending.
const LOOKED_AFTER: Duration = Duration::from_millis(200);
/// The longest the reader of the answer takes to notice that none is wanted any more.
const POLLED: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Returns whether a person at a terminal can be asked.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Receives the approvals of calls.
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

/// Advice for a call that was refused because nobody could be asked.
pub(crate) const NOBODY_HERE: &str = "  try: the same on a terminal, where you are asked; or with `--wait`, and answer \
                                      from another terminal: `clawsmith approvals list`, then `clawsmith approvals \
                                      approve ID`";

/// Returns whether a call was refused because nobody could be asked.
pub(crate) fn is_unasked(reason: &str) -> bool {
    reason.contains("nobody can be asked")
}

/// An approval as the person at the terminal is asked for it.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) id: ApprovalId,
    pub(crate) tool: ToolName,
    pub(crate) effects: Effects,
    /// The rule that asks.
    pub(crate) reason: String,
    /// The call as a person reads it.
    pub(crate) summary: String,
    pub(crate) call: CallId,
    pub(crate) asked: UnixMillis,
    pub(crate) expires: UnixMillis,
    /// The rules that can be given with a yes, the narrowest first: their widths and what they cover.
    pub(crate) offered: Vec<(RuleWidth, String)>,
    /// Input that a server asks for; `None` for a plain yes or no.
    pub(crate) input: Option<Box<InputRequest>>,
}

impl From<&Approval> for Question {
    fn from(approval: &Approval) -> Self {
        let request = &approval.request;
        let rules = request.remember.iter().flat_map(|suggestions| &suggestions.rules);
        Self {
            id: approval.id,
            tool: request.tool.clone(),
            effects: request.effects,
            reason: request.reason.clone(),
            summary: request.summary.clone(),
            call: request.call,
            asked: request.asked,
            expires: request.expires,
            offered: rules.map(|rule| (rule.width, rule.text.clone())).collect(),
            input: request.input.clone(),
        }
    }
}

/// Prints where an approval can be answered that nobody here can answer.
pub(crate) fn announce(question: &Question) {
    let id = question.id;
    let wait = question.expires.since(question.asked).as_secs();
    tell(format_args!("`{}` waits for approval `{id}`, {wait} s at most", question.tool));
    tell(format_args!("  try: clawsmith approvals show {id}"));
    match &question.input {
        Some(_) => tell(format_args!("  and: clawsmith approvals answer {id} NAME=VALUE ...")),
        None => tell(format_args!("  and: clawsmith approvals approve {id}")),
    }
}

/// Puts a question; the store gets the answer.
pub(crate) async fn put(app: &App, approval: Approval, by: String) {
    let question = Question::from(&approval);
    ask_person(&StoredApproval { app, approval, by }, question).await;
}

/// The approval behind a question: in the store of this process, or at a gateway.
#[async_trait(?Send)]
pub(crate) trait AskedFor {
    /// How often it is looked whether the question still waits.
    fn look_after(&self) -> Duration;
    /// Says how the approval ended; `None` while it waits, or where that cannot be known now.
    async fn ended(&self, question: &Question) -> Option<String>;
    /// Returns a check of values for a request for input; they are checked again when they are given.
    fn checker(&self) -> Box<input::Check<'static>>;
    /// Answers it.
    async fn answer(&self, question: &Question, verdict: Verdict) -> Result<(), Failure>;
}

/// An approval in the store.
struct StoredApproval<'a> {
    app: &'a App,
    approval: Approval,
    by: String,
}

#[async_trait(?Send)]
impl AskedFor for StoredApproval<'_> {
    fn look_after(&self) -> Duration {
        LOOKED_AFTER
    }

    async fn ended(&self, _: &Question) -> Option<String> {
        let found = self.app.store().approval(&self.approval.request.tenant, self.approval.id).await.ok()?;
        how_ended(found.as_ref(), SystemClock.now())
    }

    fn checker(&self) -> Box<input::Check<'static>> {
        let (app, approval) = (self.app.clone(), self.approval.clone());
        Box::new(move |values| {
            let given = InputValues { values: values.clone(), allow_secrets: false };
            app.input_values(&approval, given).map(drop).map_err(|error| error.message().to_owned())
        })
    }

    async fn answer(&self, _: &Question, verdict: Verdict) -> Result<(), Failure> {
        self.app.answer_found(&self.approval, verdict, &self.by).await?;
        Ok(())
    }
}

/// Asks the person at the terminal. A question that is over before there is an answer (answered elsewhere, expired,
/// withdrawn) gives the terminal back at once, with what was typed and not yet read.
pub(crate) async fn ask_person(approval: &impl AskedFor, question: Question) {
    let (sender, mut answer) = tokio::sync::oneshot::channel();
    let (shown, over) = (question.clone(), Over::default());
    let input = Watched { over: Arc::clone(&over.0) };
    let check = approval.checker();
    std::thread::spawn(move || {
        // Input typed before the question is not an answer to it. A terminal that is gone gives none.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        // Standard error is not locked: whoever waits here must not keep others from saying why it is over.
        let answer = ask(&shown, &*check, &mut BufReader::new(input), &mut io::stderr());
        let unread = if shown.input.is_some() { Said::Dismissed } else { Said::No(None) };
        let _ = sender.send(answer.unwrap_or(unread));
    });
    let said = loop {
        tokio::select! {
            biased;
            said = &mut answer => match said {
                Ok(said) => break said,
                Err(_) => return,
            },
            () = tokio::time::sleep(approval.look_after()) => {}
        }
        if let Some(how) = approval.ended(&question).await {
            drop(over);
            // The next reader must not have to share the terminal.
            let _ = answer.await;
            return tell(format_args!("\n{how}"));
        }
    };
    let verdict = match said {
        Said::No(reason) => Verdict::Deny { reason },
        Said::Once => Verdict::Once,
        Said::Always { scope, width } => Verdict::Always { scope, lasts: None, width: Some(width) },
        Said::Values(values) => Verdict::Values(InputValues { values, allow_secrets: false }),
        Said::Dismissed => Verdict::Dismiss,
    };
    if let Err(error) = approval.answer(&question, verdict).await {
        match approval.ended(&question).await {
            Some(how) => tell(format_args!("the answer came too late: {how}")),
            None => tell(format_args!("not answered: {error}")),
        }
    }
}

fn how_ended(found: Option<&Approval>, now: UnixMillis) -> Option<String> {
    let Some(Approval { request, state, answered_by, .. }) = found else {
        return Some("the approval was withdrawn".to_owned());
    };
    let by = visible(answered_by.as_deref().unwrap_or("somebody"));
    Some(match state {
        // The asking program closes it, if it is still there.
        ApprovalState::Pending if now < request.expires => return None,
        ApprovalState::Approved | ApprovalState::Used => format!("answered elsewhere: {by} said yes"),
        ApprovalState::Denied => format!("answered elsewhere: {by} said no"),
        ApprovalState::Expired if answered_by.is_some() => {
            format!("answered elsewhere: {by} said yes, and it was not used in time")
        }
        ApprovalState::Pending | ApprovalState::Expired => {
            let waited = request.expires.since(request.asked).as_secs();
            format!("the approval expired: nobody answered within {waited} s")
        }
        ApprovalState::Cancelled => "the approval was withdrawn: the call was given up".to_owned(),
    })
}

/// Tells the reader of the answer, on drop, that none is wanted any more.
#[derive(Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Standard input until an approval is over: a blocking read could not be undone, and would swallow the next
/// input.
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
                return Err(io::Error::other("the approval is no longer pending"));
            }
            if ready {
                return Ok(rustix::io::read(&stdin, bytes)?);
            }
        }
    }
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    /// No, with the reason.
    No(Option<String>),
    Once,
    /// Yes, and without asking from now on.
    Always {
        scope: RuleFor,
        width: RuleWidth,
    },
    /// These values, for a request for input.
    Values(Map<String, Value>),
    /// No answer to a request for input.
    Dismissed,
}

/// The rule in an answer such as `a` or `s2`: the letter says for whom, the number which of the rules that are offered.
fn always(line: &str, offered: &[(RuleWidth, String)]) -> Option<Said> {
    let letters = line.find(|c: char| c.is_ascii_digit()).unwrap_or(line.len());
    let (word, number) = line.split_at(letters);
    let scope = match word.trim() {
        "s" | "session" => RuleFor::Session,
        "a" | "always" => RuleFor::Agent,
        _ => return None,
    };
    let number = if number.is_empty() { 1 } else { number.parse::<usize>().ok()? };
    let width = offered.get(number.checked_sub(1)?)?.0;
    Some(Said::Always { scope, width })
}

/// The reason in an answer such as `no, because it is the main branch`.
fn because(line: &str) -> Option<String> {
    let line = line.trim();
    let (word, rest) = line.split_once(|c: char| c.is_whitespace() || c == ',' || c == ':')?;
    let rest = rest.trim_start_matches([' ', ',', ':']).trim();
    (["n", "no"].contains(&word.to_lowercase().as_str()) && !rest.is_empty()).then(|| rest.to_owned())
}

/// Asks; only a clear yes counts as one.
fn ask(
    request: &Question,
    check: &input::Check<'_>,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<Said> {
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
    let offered = request.offered.as_slice();
    for (i, (_, text)) in offered.iter().enumerate() {
        let name = if i == 0 { "  always   " } else { "           " };
        let number = if offered.len() > 1 { format!("{}  ", i + 1) } else { String::new() };
        writeln!(output, "{}", beside(name, &format!("{number}{}", visible(text)), columns))?;
    }
    let mut choice = "[y]es once".to_owned();
    match offered.len() {
        0 => {}
        1 => choice.push_str(" / yes in this [s]ession / [a]lways"),
        count => {
            choice.push_str(&format!(" / yes in this [s]ession / [a]lways, with 1 to {count}: s1, a{count}"));
        }
    }
    choice.push_str(" / [n]o, or no and why");
    if is_long {
        choice.push_str(" / [v]iew whole");
    }
    for _ in 0..ATTEMPTS {
        write!(output, "{choice}, within {wait} s: ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(Said::No(None));
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Said::Once),
            "n" | "no" => return Ok(Said::No(None)),
            "v" | "view" if is_long => writeln!(output, "{summary}")?,
            said => match (because(&line), always(said, offered)) {
                (Some(why), _) => return Ok(Said::No(Some(why))),
                (None, Some(said)) => return Ok(said),
                (None, None) if offered.is_empty() => writeln!(output, "please answer `y` or `n`")?,
                (None, None) => writeln!(output, "please answer `y`, `s`, `a` or `n`")?,
            },
        }
    }
    writeln!(output, "taken as no")?;
    Ok(Said::No(None))
}

#[cfg(test)]
mod tests;
