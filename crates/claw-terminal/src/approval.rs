//! Asks the person at the terminal whether something may be done, or for values.
//!
//! The question goes to standard error and the answer comes from standard input. The question is shown without
//! control characters: its text must not be able to rewrite it.

mod form;

use std::io::{self, BufRead, BufReader, Write};

use serde_json::{Map, Value};
use tokio::sync::oneshot;

use crate::run::lines as lines_of;
use crate::wrap::wrapped;
use crate::{AnswerInput, AnswerWanted, beside, told_columns, visible};

/// The number of attempts to get an answer that is yes or no.
const ATTEMPTS: usize = 3;
/// The most lines of a question shown at once, and how many of them are its last.
const SCREEN: usize = 60;
const TAIL: usize = 10;
/// The column at which the explanation of a choice begins.
const CHOICE: &str = "             ";
/// The margin of the call's lines, and of rows that continue a line. No line of a call can begin in it.
const MARGIN: &str = "           ";
const CONTINUED: &str = "         ↪ ";

/// Checks values before they are given; the error is the reason why they cannot be.
pub type ValuesCheck = dyn Fn(&Map<String, Value>) -> Result<(), String> + Send;

/// An approval as the person at the terminal reads it.
#[derive(Debug, Clone, Default)]
pub struct ApprovalPrompt {
    /// The tool that waits.
    pub tool: String,
    /// The effects of the call.
    pub effects: String,
    /// The rule that asks.
    pub reason: String,
    /// The call, a line or many.
    pub summary: String,
    /// The rules that can be remembered with a yes, the narrowest first.
    pub rules: Vec<String>,
    /// The time the call waits, in seconds.
    pub wait_secs: u64,
    /// The input that is asked for; `None` for a plain yes or no.
    pub input: Option<PromptInput>,
}

/// Input that is asked for.
#[derive(Debug, Clone)]
pub enum PromptInput {
    /// Values by a JSON Schema of an object.
    Form(Value),
    /// A visit of a page, to which the person consents.
    Page,
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// No, with the reason.
    No(Option<String>),
    /// Yes, this once.
    Once,
    /// Yes, and without asking from now on.
    Always {
        /// The sessions in which nothing is asked any more.
        scope: AnswerScope,
        /// The rule, by its place in the list that was offered.
        rule: usize,
    },
    /// The values that were asked for.
    Values(Map<String, Value>),
    /// No answer to a request for values.
    Dismissed,
}

/// The sessions that an answer is remembered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerScope {
    /// The session that asks.
    Session,
    /// All sessions of the agent that asks.
    Agent,
}

/// A question that is on the terminal.
#[derive(Debug)]
pub struct AskedApproval {
    answer: oneshot::Receiver<ApprovalAnswer>,
    wanted: AnswerWanted,
}

impl AskedApproval {
    /// Puts a question on the terminal. It is read on a thread of its own, since reading cannot be stopped.
    pub fn put(prompt: ApprovalPrompt, check: Box<ValuesCheck>) -> Self {
        let (sender, answer) = oneshot::channel();
        let (input, wanted) = AnswerInput::new();
        std::thread::spawn(move || {
            AnswerInput::forget_typed();
            // Standard error is not locked: whoever waits here must not keep others from saying why it is over.
            let answer = ask(&prompt, &*check, &mut BufReader::new(input), &mut io::stderr());
            let unread = match prompt.input {
                Some(_) => ApprovalAnswer::Dismissed,
                None => ApprovalAnswer::No(None),
            };
            let _ = sender.send(answer.unwrap_or(unread));
        });
        Self { answer, wanted }
    }

    /// Waits for the answer; `None` if there is none. Nothing is lost if the returned future is dropped.
    pub async fn answer(&mut self) -> Option<ApprovalAnswer> {
        (&mut self.answer).await.ok()
    }

    /// Takes the question back; returns once the terminal is free for the next reader.
    pub async fn withdraw(self) {
        drop(self.wanted);
        let _ = self.answer.await;
    }
}

/// Asks; only a clear yes counts as one.
fn ask(
    prompt: &ApprovalPrompt,
    check: &ValuesCheck,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> io::Result<ApprovalAnswer> {
    let what = if prompt.input.is_some() { "input" } else { "approval" };
    let columns = told_columns();
    writeln!(output, "\n`{}` needs your {what}", prompt.tool)?;
    writeln!(output, "{}", beside("  effects  ", &prompt.effects, columns))?;
    writeln!(output, "{}", beside("  why      ", &visible(&prompt.reason), columns))?;
    let summary = visible(&prompt.summary);
    let is_long = show(&summary, columns, output)?;
    if let Some(wanted) = &prompt.input {
        return form::ask(wanted, check, input, output);
    }
    let rules = prompt.rules.as_slice();
    let question = choices(prompt, is_long, columns, output)?;
    for _ in 0..ATTEMPTS {
        write!(output, "{question}, within {} s: ", prompt.wait_secs)?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(ApprovalAnswer::No(None));
        }
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(ApprovalAnswer::Once),
            "n" | "no" => return Ok(ApprovalAnswer::No(None)),
            "v" | "view" if is_long => writeln!(output, "{summary}")?,
            said => match (because(&line), always(said, rules.len())) {
                (Some(why), _) => return Ok(ApprovalAnswer::No(Some(why))),
                (None, Some(said)) => return Ok(said),
                (None, None) if rules.is_empty() => writeln!(output, "please answer `y` or `n`")?,
                (None, None) => writeln!(output, "please answer `y`, `s`, `a` or `n`")?,
            },
        }
    }
    writeln!(output, "taken as no")?;
    Ok(ApprovalAnswer::No(None))
}

/// Shows the call; returns whether it is too long to be shown whole. A line that is too wide goes on behind a mark: where a
/// command ends its lines is a part of it.
fn show(summary: &str, columns: Option<usize>, output: &mut impl Write) -> io::Result<bool> {
    let mut write = |margin: &str, line: &str| {
        let columns = columns.filter(|_| !line.contains('\t')).unwrap_or(usize::MAX);
        let rows = wrapped(line, columns, MARGIN.len(), MARGIN.len());
        writeln!(output, "{margin}{}", rows.join(&format!("\n{CONTINUED}")))
    };
    let lines: Vec<&str> = summary.lines().collect();
    let is_long = lines.len() > SCREEN;
    let (start, end) = if is_long { (SCREEN - TAIL, lines.len() - TAIL) } else { (lines.len(), lines.len()) };
    for (i, line) in lines.iter().take(start).enumerate() {
        write(if i == 0 { "  what     " } else { MARGIN }, line)?;
    }
    if is_long {
        write(&format!("  [{} left out; `v` shows the whole]", lines_of(end - start)), "")?;
        lines.iter().skip(end).try_for_each(|line| write(MARGIN, line))?;
    }
    Ok(is_long)
}

/// Shows what each choice does, where there are more than yes and no; returns the question for the answer.
fn choices(
    prompt: &ApprovalPrompt,
    is_long: bool,
    columns: Option<usize>,
    output: &mut impl Write,
) -> io::Result<String> {
    if prompt.rules.is_empty() {
        let view = if is_long { " / [v]iew whole" } else { "" };
        return Ok(format!("[y]es once / [n]o, or no and why{view}"));
    }
    let mut write = |label: &str, text: &str| writeln!(output, "{}", beside(label, text, columns));
    write("  [y]es      ", "this once")?;
    write("  [s]ession  ", "yes, and in this session do not ask again about")?;
    write("  [a]lways   ", "yes, and in every session of this agent do not ask again about")?;
    for (i, text) in prompt.rules.iter().enumerate() {
        let number = if prompt.rules.len() > 1 { format!("{}  ", i + 1) } else { String::new() };
        write(&format!("{CHOICE}  {number}"), &visible(text))?;
    }
    if prompt.rules.len() > 1 {
        let last = prompt.rules.len();
        let how = format!("(`s{last}` or `a{last}` chooses line {last}; `s` or `a` alone is line 1)");
        write(CHOICE, &how)?;
    }
    write("  [n]o       ", "refuse it; words after `n` tell the agent why")?;
    if is_long {
        write("  [v]iew     ", "show the whole call")?;
    }
    Ok("Your answer".to_owned())
}

/// The rule in an answer such as `a` or `s2`: the letter says for which sessions, the number which of the rules.
fn always(line: &str, rules: usize) -> Option<ApprovalAnswer> {
    let letters = line.find(|c: char| c.is_ascii_digit()).unwrap_or(line.len());
    let (word, number) = line.split_at(letters);
    let scope = match word.trim() {
        "s" | "session" => AnswerScope::Session,
        "a" | "always" => AnswerScope::Agent,
        _ => return None,
    };
    let number = if number.is_empty() { 1 } else { number.parse::<usize>().ok()? };
    let rule = number.checked_sub(1).filter(|rule| *rule < rules)?;
    Some(ApprovalAnswer::Always { scope, rule })
}

/// The reason in an answer such as `no, because it is the main branch`.
fn because(line: &str) -> Option<String> {
    let line = line.trim();
    let (word, rest) = line.split_once(|c: char| c.is_whitespace() || c == ',' || c == ':')?;
    let rest = rest.trim_start_matches([' ', ',', ':']).trim();
    (["n", "no"].contains(&word.to_lowercase().as_str()) && !rest.is_empty()).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests;
