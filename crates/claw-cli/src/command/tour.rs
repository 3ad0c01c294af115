//! `clawsmith tour`: real calls in a temporary directory, each with its command and its real output.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use claw_terminal::style;
use clawsmith::config::Surroundings;

use crate::cli::Session;
use crate::failure::{Failure, Outcome};

/// No options.
#[derive(Debug, Args)]
pub(crate) struct Tour {}

/// The indentation of a command's output.
const INDENT: usize = 2;

const CONFIG: &str = "\
# An agent that looks things up and cannot find out who else works here.
data_dir = \"data\"

[agents.researcher]
name = \"Ada\"
about = \"Looks things up and says where.\"
deny = [\"agents_list\"]
";

/// A stop of the tour: its text, the command, and the command's input.
struct Stop {
    says: &'static str,
    words: &'static [&'static str],
    input: Option<&'static str>,
}

const fn stop(says: &'static str, words: &'static [&'static str]) -> Stop {
    Stop { says, words, input: None }
}

const STOPS: &[Stop] = &[
    stop(
        "A call takes one road: found, authorised, limited, validated, judged, recorded, run, scrubbed.",
        &[
            "tools",
            "call",
            "datetime",
            "--args",
            r#"{"action": "convert", "time": "2026-03-29T12:00:00Z", "to_timezone": "Asia/Tokyo"}"#,
        ],
    ),
    stop(
        "Models slip. What can only mean one thing is repaired, and the model is told (`toTimezone`).",
        &[
            "tools",
            "call",
            "datetime",
            "--args",
            r#"{"action": "convert", "time": 1774785600, "toTimezone": "Europe/Paris"}"#,
        ],
    ),
    stop(
        "What cannot be guessed is refused, with what would fit. Exit code 3: nothing happened.",
        &["tools", "call", "datetime", "--args", r#"{"action": "yesterday"}"#],
    ),
    stop("A tool that does not exist: the nearest name.", &["tools", "call", "datetme"]),
    stop(
        "A tool this agent may not use: hidden is forbidden.",
        &["tools", "call", "agents_list", "--agent", "researcher"],
    ),
    stop(
        "Why? The explanation is the decision itself.",
        &["policy", "explain", "agents_list", "--agent", "researcher"],
    ),
    stop(
        "A secret in a result never reaches the model (this token is made up).",
        &[
            "tools",
            "call",
            "datetime",
            "--args",
            r#"{"action": "now", "format": "token ghp_16C7e42F292c6912E7710c838347Ae178B4a in %Y"}"#,
        ],
    ),
    Stop {
        says: "The same scrubber is a Unix filter.",
        words: &["scrub", "--report"],
        input: Some("password: \"hunter2-but-longer\"\nmax_tokens: 4096\n"),
    },
    stop(
        "Everything was written down, scrubbed, each line chained to the one before.",
        &["ledger", "show", "--last", "5"],
    ),
    stop("And nobody has touched it since.", &["ledger", "verify"]),
    stop(
        "An agent puts it together. No model is set up here, so a demo plays one; the tools are real.",
        &["chat", "-m", "show me"],
    ),
];

impl Tour {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let place = tempfile::Builder::new().prefix("clawsmith-tour-").tempdir();
        let place = place.map_err(|error| Failure::failed("no temporary directory").because(error))?;
        let project = place.path().join("project");
        let prepared = std::fs::create_dir(&project)
            .and_then(|()| std::fs::write(place.path().join("clawsmith.toml"), CONFIG));
        prepared.map_err(|error| Failure::failed("the tour could not be prepared").because(error))?;

        session.out.heading("A tour of Clawsmith: real calls, in a temporary directory")?;
        session.out.line("\nIts configuration:\n")?;
        for line in CONFIG.lines() {
            session.out.line(format_args!("    {line}"))?;
        }
        for (number, stop) in STOPS.iter().enumerate() {
            session.out.line("")?;
            session.out.heading(&format!("{}. {}", number + 1, stop.says))?;
            visit(session, stop, &project)?;
        }
        session.out.line("")?;
        session.out.heading("Where to go from here")?;
        session.out.line("")?;
        if !is_on_path(&session.around) {
            session.out.line("    make install              puts `clawsmith` on your PATH")?;
        }
        session.out.line("    clawsmith onboard         sets up a model: provider, API key, model")?;
        session.out.line("    clawsmith chat            talks with an agent that works in this directory")?;
        session.out.line("    clawsmith tools list      lists the tools")?;
        session.out.line("    clawsmith --help          everything else")?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns whether a shell finds this program by its name.
fn is_on_path(around: &Surroundings) -> bool {
    let path = around.variable("PATH").cloned().unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("clawsmith").is_file())
}

fn visit(session: &mut Session, stop: &Stop, project: &Path) -> Result<(), Failure> {
    let words: Vec<String> = stop.words.iter().map(|word| quoted(word)).collect();
    let fed =
        stop.input.map(|input| format!("printf '{}' | ", input.replace('\n', "\\n"))).unwrap_or_default();
    session.out.line("")?;
    session.out.styled(style::COMMAND, &format!("  $ {fed}clawsmith {}", words.join(" ")))?;
    let failed = |error| Failure::failed("a command of the tour could not be run").because(error);
    let (text, code) = output_of(stop, project, session.out.columns()).map_err(failed)?;
    for line in text.lines() {
        session.out.foreign(&format!("  {line}"))?;
    }
    if code != Some(0) {
        let code = code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        session.out.styled(style::QUIET, &format!("  (exit code {code})"))?;
    }
    // Each stop is read while the next one runs.
    Ok(session.out.flush()?)
}

/// Returns the command's output and messages in one, and its exit code.
fn output_of(stop: &Stop, project: &Path, columns: Option<usize>) -> std::io::Result<(String, Option<i32>)> {
    let mut command = Command::new(std::env::current_exe()?);
    // Nothing of the visitor's own configuration: the tour is the same for everybody.
    if let Some(columns) = columns {
        command.args(["--columns", &columns.saturating_sub(INDENT).to_string()]);
    }
    command.args(stop.words).current_dir(project).env_clear().env("USER", "you");
    // Named, since nobody has accepted it.
    command.env("CLAWSMITH_CONFIG", project.with_file_name("clawsmith.toml"));
    // Both through one pipe, so that they come in the order in which a terminal shows them.
    let (mut printed, pipe) = std::io::pipe()?;
    command.stdin(Stdio::piped()).stdout(pipe.try_clone()?).stderr(pipe);
    let mut child = command.spawn()?;
    drop(command);
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(stop.input.unwrap_or_default().as_bytes())?;
    }
    let mut output = Vec::new();
    printed.read_to_end(&mut output)?;
    Ok((String::from_utf8_lossy(&output).into_owned(), child.wait()?.code()))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}
