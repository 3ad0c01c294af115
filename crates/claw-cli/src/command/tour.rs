//! `clawsmith tour`: real calls in a temporary directory, each with its command and its real output.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;
use claw_terminal::style;
use clawsmith::config::Surroundings;
use serde::Deserialize;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

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

const NEXT: &str = "    clawsmith onboard         sets up a model: provider, API key, model
    clawsmith chat            talks with an agent that works in this directory
    clawsmith tools list      lists the tools
    clawsmith --help          everything else";

/// The stops, as data.
const STOPS: &str = include_str!("../../help/tour.toml");

#[derive(Deserialize)]
struct Stops {
    stop: Vec<Stop>,
}

/// A stop of the tour: its text, the words of the command, and the command's input.
#[derive(Deserialize)]
struct Stop {
    says: String,
    words: Vec<String>,
    #[serde(default)]
    input: Option<String>,
}

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
        let stops: Stops = toml::from_str(STOPS)
            .map_err(|error| Failure::failed("the stops of the tour cannot be read").because(error))?;
        for (number, stop) in stops.stop.iter().enumerate() {
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
        session.out.line(NEXT)?;
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
    let fed = stop
        .input
        .as_ref()
        .map(|input| format!("printf '{}' | ", input.replace('\n', "\\n")))
        .unwrap_or_default();
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
    command.args(&stop.words).current_dir(project).env_clear().env("USER", "you");
    // Named, since nobody has accepted it.
    command.env("CLAWSMITH_CONFIG", project.with_file_name("clawsmith.toml"));
    // Both through one pipe, so that they come in the order in which a terminal shows them.
    let (mut printed, pipe) = std::io::pipe()?;
    command.stdin(Stdio::piped()).stdout(pipe.try_clone()?).stderr(pipe);
    let mut child = command.spawn()?;
    drop(command);
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(stop.input.as_deref().unwrap_or_default().as_bytes())?;
    }
    let mut output = Vec::new();
    printed.read_to_end(&mut output)?;
    Ok((String::from_utf8_lossy(&output).into_owned(), child.wait()?.code()))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}
