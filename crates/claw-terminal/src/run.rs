//! An answer and its calls on a terminal, while they happen: text as it streams, the output of commands, results and
//! changes, and what is being waited for.
//!
//! Text goes to standard output, everything else to standard error.

use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::time::{Duration, Instant};

use anstyle::Style;

use crate::{Out, Quiet, Speech, Spinner, style, tell, tell_styled};

/// The number of lines shown of a long output, from its beginning and from its end.
const HEAD: usize = 12;
const TAIL: usize = 8;
/// The number of lines shown of a change.
const CHANGED: usize = 40;
/// The number of other details shown.
const DETAILS: usize = 6;
/// About so many bytes are a token.
const TOKEN_BYTES: u64 = 4;

/// The result of a call, for display.
#[derive(Debug, Clone, Default)]
pub struct CallResult {
    /// The call in a few words.
    pub what: String,
    /// True if the call achieved its purpose.
    pub is_good: bool,
    /// A few words beside it: `+3 -1`, `exit code 1`.
    pub note: String,
    /// The output of a command.
    pub printed: Vec<String>,
    /// The lines of a diff, or other details.
    pub details: Vec<String>,
    /// The details are a diff.
    pub is_change: bool,
}

/// Shows runs one after the other; messages are known by `M`, calls by `C`.
#[derive(Debug)]
pub struct RunDisplay<M, C> {
    /// The streaming message, and the bytes of it already shown.
    saying: Option<(M, usize)>,
    /// The message that was shown last: pieces of it that come late are no news.
    finished: Option<M>,
    /// Calls that run, in the order in which they began.
    running: Vec<RunningCall<C>>,
    /// Calls that succeeded and whose result is still to come, with the microseconds each took.
    ended: HashMap<C, u64>,
    /// Lines of a call's output that were shown while it ran.
    live: HashMap<C, LiveOutput>,
    /// The beginning of the run, and the tokens of its answers so far.
    since: Instant,
    tokens: u64,
    /// Bytes of the answer that is coming.
    coming: u64,
    spinner: Spinner,
    speech: Speech,
    /// Keeps input typed ahead from being echoed.
    quiet: Option<Quiet>,
    /// The text typed before a question.
    typed: String,
}

/// A call that runs.
#[derive(Debug)]
struct RunningCall<C> {
    id: C,
    what: String,
    since: Instant,
}

/// The output of a running command so far.
#[derive(Debug, Default)]
struct LiveOutput {
    bytes: u64,
    lines: usize,
    shown: usize,
    /// The last complete line, if it is not among those shown.
    last: String,
    /// A line that has not ended.
    partial: String,
}

impl LiveOutput {
    /// The latest text that is not shown above: a line that has not ended, else the last complete one.
    fn latest(&self) -> Option<&str> {
        fn of(line: &str) -> &str {
            line.trim_end().rsplit('\r').next().unwrap_or_default().trim_start()
        }
        [of(&self.partial), of(&self.last)].into_iter().find(|text| !text.is_empty())
    }
}

impl<M: Copy + Eq, C: Copy + Eq + Hash> RunDisplay<M, C> {
    /// A display without a run; `json` if programs read standard output.
    pub fn new(json: bool) -> Self {
        Self {
            saying: None,
            finished: None,
            running: Vec::new(),
            ended: HashMap::new(),
            live: HashMap::new(),
            since: Instant::now(),
            tokens: 0,
            coming: 0,
            spinner: Spinner::new(json),
            speech: Speech::default(),
            quiet: None,
            typed: String::new(),
        }
    }

    /// Begins a run. Input typed from now on is kept for the next prompt; not so if programs read the output.
    pub fn begin(&mut self, json: bool) {
        (self.since, self.tokens, self.coming) = (Instant::now(), 0, 0);
        self.quiet = Quiet::begin().filter(|_| !json);
    }

    /// Ends a run.
    pub fn end(&mut self) {
        self.spinner.clear();
        self.running.clear();
        self.quiet = None;
    }

    /// Gives the terminal to a question. Input typed so far is no answer to it.
    pub fn pause(&mut self) {
        if let Some(quiet) = self.quiet.take() {
            self.typed += &quiet.take_typed();
        }
    }

    /// Takes the terminal back after a question.
    pub fn resume(&mut self) {
        self.quiet = Quiet::begin();
    }

    /// Takes the input typed before a question, to be put back.
    pub fn take_typed(&mut self) -> String {
        std::mem::take(&mut self.typed)
    }

    /// Removes the line about what is waited for, before other output.
    pub fn clear(&mut self) {
        self.spinner.clear();
    }

    /// Shows what the run waits for, below a line of the answer that has not ended.
    pub fn tick(&mut self, out: &mut Out) -> io::Result<()> {
        if self.spinner.is_due()
            && let Some(column) = self.speech.column(out)?
        {
            let what = self.waits_for();
            self.spinner.tick(&what, column);
        }
        Ok(())
    }

    fn waits_for(&self) -> String {
        match self.running.last() {
            Some(call) => {
                let time = seconds(call.since.elapsed());
                match self.live.get(&call.id).and_then(|live| Some((live.lines, live.latest()?))) {
                    // The call itself stands above its output.
                    Some((lines, latest)) if lines > HEAD => {
                        format!("{time} · {lines} lines · Ctrl-C stops · {latest}")
                    }
                    Some((_, latest)) => format!("{time} · Ctrl-C stops · {latest}"),
                    None => format!("{} · {time} · Ctrl-C stops", call.what),
                }
            }
            None => {
                let count = self.tokens + self.coming / TOKEN_BYTES;
                let count = if count > 0 { format!(" · {}", tokens(count)) } else { String::new() };
                format!("thinking · {}{count} · Ctrl-C stops", seconds(self.since.elapsed()))
            }
        }
    }

    /// Counts text of a message that comes; returns whether the message is news.
    pub fn comes(&mut self, message: M, text: &str) -> bool {
        let is_news = self.finished != Some(message);
        self.coming += if is_news { text.len() as u64 } else { 0 };
        is_news
    }

    /// Shows a piece of a message, if nothing is missing before it.
    pub fn say(&mut self, out: &mut Out, message: M, offset: u64, text: &str) -> io::Result<()> {
        let shown = match self.saying {
            Some((saying, shown)) if saying == message => shown,
            // An answer that failed half-way begins anew.
            Some(_) => {
                self.speech.say(out, "\n")?;
                0
            }
            None => 0,
        };
        if usize::try_from(offset).ok() == Some(shown) {
            self.spinner.clear();
            self.speech.say(out, text)?;
            self.saying = Some((message, shown + text.len()));
        }
        Ok(())
    }

    /// Shows the rest of a message that is whole now, and counts the tokens of the run so far.
    pub fn finish(&mut self, out: &mut Out, message: M, text: &str, tokens: Option<u64>) -> io::Result<()> {
        self.coming = 0;
        self.tokens = tokens.unwrap_or(self.tokens);
        self.finished = Some(message);
        let shown = match self.saying.take() {
            Some((saying, shown)) if saying == message => shown,
            _ => 0,
        };
        self.speech.say(out, text.get(shown..).unwrap_or_default())?;
        if !text.is_empty() && !text.ends_with('\n') {
            self.speech.say(out, "\n")?;
        }
        self.speech.finish(out)
    }

    /// Shows the output of a running command: its first lines as they come, later ones in the line that moves.
    pub fn print(&mut self, call: C, offset: u64, text: &str) {
        let live = self.live.entry(call).or_default();
        if offset != live.bytes {
            return;
        }
        live.bytes += text.len() as u64;
        live.partial.push_str(text);
        while let Some(end) = live.partial.find('\n') {
            let line: String = live.partial.drain(..=end).collect();
            live.lines += 1;
            if live.lines <= HEAD {
                self.spinner.clear();
                live.shown += 1;
                tell_styled(style::QUIET, format_args!("  {}", line.trim_end()));
            } else {
                live.last = line;
            }
        }
    }

    /// Shows that a call began.
    pub fn call_began(&mut self, call: C, what: String) {
        tell(format_args!("→ {what}"));
        self.running.push(RunningCall { id: call, what, since: Instant::now() });
    }

    /// Notes that a call succeeded; its result is still to come.
    pub fn call_succeeded(&mut self, call: C, micros: u64) {
        self.running.retain(|running| running.id != call);
        self.ended.insert(call, micros);
    }

    /// Shows that a call did not succeed, and why.
    pub fn call_failed(&mut self, call: C, why: impl std::fmt::Display) {
        self.running.retain(|running| running.id != call);
        tell(format_args!("✗ {why}"));
    }

    /// Shows the result of a call that succeeded before.
    pub fn result(&mut self, call: C, result: CallResult) {
        let Some(micros) = self.ended.remove(&call) else { return };
        let live = self.live.remove(&call).unwrap_or_default();
        let CallResult { what, is_good, note, printed, details, is_change } = result;
        for part in head_and_tail(&printed, HEAD, TAIL, live.shown) {
            match part {
                Excerpt::Line(line) => tell_styled(style::QUIET, format_args!("  {line}")),
                Excerpt::Left(count) => tell_styled(style::QUIET, format_args!("  … {} …", lines(count))),
            }
        }
        let sign = if is_good { "✓" } else { "✗" };
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        tell(format_args!("{sign} {what}{note} {}", took(micros)));
        let most = if is_change { CHANGED } else { DETAILS };
        for line in details.iter().take(most) {
            tell_styled(if is_change { changed(line) } else { style::QUIET }, format_args!("  {line}"));
        }
        if details.len() > most {
            tell_styled(style::QUIET, format_args!("  … and {}", lines(details.len() - most)));
        }
    }
}

/// Shows a change that is asked about, as lines of a diff.
pub fn tell_change(lines: &[String]) {
    lines.iter().for_each(|line| tell_styled(changed(line), format_args!("  {line}")));
}

fn changed(line: &str) -> Style {
    match line.as_bytes().first() {
        Some(b'+') => style::ADDED,
        Some(b'-') => style::TAKEN,
        _ => style::QUIET,
    }
}

/// A duration that a person waits.
fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..=59 => format!("{} s", time.as_secs()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// The duration of a call, from microseconds.
pub fn took(micros: u64) -> String {
    match micros {
        0..=999_999 => format!("{:.1} ms", micros as f64 / 1000.0),
        _ => format!("{:.1} s", micros as f64 / 1_000_000.0),
    }
}

/// A number of lines.
pub(crate) fn lines(count: usize) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

/// A number of tokens.
fn tokens(count: u64) -> String {
    match count {
        1 => "1 token".to_owned(),
        0..=999 => format!("{count} tokens"),
        _ => format!("{}.{}k tokens", count / 1000, count % 1000 / 100),
    }
}

/// A line of a long text, or how many are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Excerpt<'a> {
    /// A line.
    Line(&'a str),
    /// The number of lines left out here.
    Left(usize),
}

/// The first and the last lines of a text that is longer than both together. `shown` of the first were shown before.
fn head_and_tail(lines: &[String], head: usize, tail: usize, shown: usize) -> Vec<Excerpt<'_>> {
    let whole = |lines: &[String]| lines.len() <= head + tail + 1;
    let rest = &lines[shown.min(lines.len())..];
    if whole(lines) {
        return rest.iter().map(|line| Excerpt::Line(line)).collect();
    }
    let first = lines[..head].iter().skip(shown).map(|line| Excerpt::Line(line));
    let from = (lines.len() - tail).max(shown).min(lines.len());
    let left = from.saturating_sub(head.max(shown));
    let gap = (left > 0).then_some(Excerpt::Left(left));
    first.chain(gap).chain(lines[from..].iter().map(|line| Excerpt::Line(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_output_is_shown_by_its_ends() {
        let lines: Vec<String> = (1..=10).map(|n| n.to_string()).collect();
        let of = |head, tail, shown| -> String {
            let text = |part: &Excerpt<'_>| match part {
                Excerpt::Line(line) => format!("{line} "),
                Excerpt::Left(count) => format!("({count}) "),
            };
            head_and_tail(&lines, head, tail, shown).iter().map(text).collect()
        };
        assert_eq!(of(3, 2, 0), "1 2 3 (5) 9 10 ");
        assert_eq!(of(3, 2, 3), "(5) 9 10 ");
        assert_eq!(of(3, 2, 9), "10 ");
        assert_eq!(of(3, 2, 20), "");
        assert_eq!(of(6, 3, 0), "1 2 3 4 5 6 7 8 9 10 ", "a gap of one line is shown");
    }
}
