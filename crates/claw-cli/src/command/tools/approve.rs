//! Asking the person at the terminal whether a call may run.
//!
//! The question goes to standard error and the answer comes from standard input. The call is shown without
//! control characters: it must not be able to rewrite its own question.

pub(crate) mod input;

use std::io::{self, BufRead, BufReader, Write};
use std::sync::Arc;

use claw_core::event::{Event, Listener, What};
use claw_core::store::{Approval, RuleWidth};
use claw_terminal::{AnswerInput, beside, can_ask, tell, told_columns, visible};
use clawsmith::app::question::{AskedFor, InputCheck, Question, StoredApproval};
use clawsmith::app::{App, InputValues, RuleFor, Verdict};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// The number of attempts to get an answer that is yes or no.
const ATTEMPTS: usize = 3;
/// The most lines of an approval shown at once, and how many of them are its last.
const SCREEN: usize = 60;
const TAIL: usize = 10;

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

/// Prints where an approval can be answered that nobody here can answer.
pub(crate) fn announce(question: &Question, elsewhere: &[String]) {
    tell(format_args!(
        "`{}` waits for approval `{}`, {} s at most",
        question.tool,
        question.id,
        question.wait_secs()
    ));
    for (i, command) in elsewhere.iter().enumerate() {
        tell(format_args!("  {}: {command}", if i == 0 { "try" } else { "and" }));
    }
}

/// Puts a question in the store to the person at the terminal, or prints where it can be answered.
pub(crate) async fn put(app: &App, approval: Approval, by: String) {
    let approval = StoredApproval::new(app, approval, by);
    let question = approval.question();
    match can_ask() {
        true => ask_person(&approval, question).await,
        false => announce(&question, &question.elsewhere()),
    }
}

/// Asks the person at the terminal. A question that is over before there is an answer (answered elsewhere, expired,
/// withdrawn) gives the terminal back at once, with what was typed and not yet read.
pub(crate) async fn ask_person(approval: &dyn AskedFor, question: Question) {
    let (sender, mut answer) = tokio::sync::oneshot::channel();
    let shown = question.clone();
    let (input, wanted) = AnswerInput::new();
    let check = approval.checker();
    std::thread::spawn(move || {
        AnswerInput::forget_typed();
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
            drop(wanted);
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
    check: &InputCheck,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<Said> {
    let wait = request.wait_secs();
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
