//! A shell that runs nothing and answers from a script.

use std::collections::HashMap;
use std::sync::Mutex;

use async_trait::async_trait;
use claw_core::port::{Child, Control, Ended, HostRan, Ran, RunContext, ShellHost, Size, Start};
use claw_core::tool::{Argv, Effects, ErrorKind, Script, Sight, Target, ToolError};
use tokio::sync::watch;

/// The scripted result of a command.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The command ends.
    Ran(Box<Ran>),
    /// The command cannot be run.
    Fails(ToolError),
    /// The command runs until it is cancelled.
    Hangs,
}

impl Reply {
    /// Returns a reply that prints this and exits with 0.
    pub fn prints(output: impl Into<String>) -> Self {
        Self::Ran(Box::new(Ran { exit: Some(0), output: output.into(), ..Ran::default() }))
    }

    /// Returns a reply that prints this and exits with `code`.
    pub fn exits(code: i32, output: impl Into<String>) -> Self {
        Self::Ran(Box::new(Ran { exit: Some(code), output: output.into(), ..Ran::default() }))
    }
}

/// A command as it was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The text of the script, or the words of the program separated by blanks.
    pub command: String,
    /// The directory it started in.
    pub directory: String,
    /// The variables added to its environment.
    pub env: Vec<(String, String)>,
    /// True if it had to run in a sandbox.
    pub sandboxed: bool,
    /// The effects it was left.
    pub effects: Effects,
}

/// A fake shell.
#[derive(Debug)]
pub struct FakeShell {
    otherwise: Reply,
    replies: HashMap<String, Reply>,
    swapped: Mutex<Vec<(Target, String)>>,
    runs: watch::Sender<Vec<Run>>,
}

impl FakeShell {
    /// Creates a shell in which every command gives this reply.
    pub fn new(otherwise: Reply) -> Self {
        Self { otherwise, replies: HashMap::new(), swapped: Mutex::default(), runs: watch::Sender::default() }
    }

    /// Sets the reply of a command.
    #[must_use]
    pub fn on(mut self, command: impl Into<String>, reply: Reply) -> Self {
        self.replies.insert(command.into(), reply);
        self
    }

    /// Changes the identity of a target, as if someone had swapped it.
    pub fn swap(&self, target: Target, identity: impl Into<String>) {
        self.swapped.lock().unwrap().push((target, identity.into()));
    }

    /// Returns the runs so far.
    pub fn runs(&self) -> Vec<Run> {
        self.runs.borrow().clone()
    }

    /// Waits until this many commands have started.
    pub async fn started(&self, count: usize) {
        let started = |runs: &Vec<Run>| runs.len() >= count;
        self.runs.subscribe().wait_for(started).await.expect("the sender is in `self`");
    }

    fn see(&self, target: &Target) -> Sight {
        let (path, identity) = match target {
            Target::Program { name, .. } => (Some(format!("/usr/bin/{name}")), format!("program:{name}")),
            Target::File { path } => (Some(path.clone()), format!("file:{path}")),
            Target::Skill { path } => (None, format!("skill:{path}")),
            Target::Sandbox => (None, "fake".to_owned()),
            Target::Process { process } => (None, format!("process:{process}")),
            Target::Outside { path } => (Some(path.clone()), Sight::DIRECTORY.to_owned()),
            Target::Host { host } => (None, format!("host:{host}")),
            Target::Session { session } => (None, format!("session:{session}")),
        };
        let swapped = self.swapped.lock().unwrap();
        let swapped = swapped.iter().rev().find(|(other, _)| other == target).map(|(_, now)| now.clone());
        Sight {
            target: target.clone(),
            path,
            identity: swapped.or(Some(identity)),
            credential: None,
            writable: false,
        }
    }

    async fn reply(&self, context: &RunContext, run: Run) -> Result<Ran, ToolError> {
        // The registry compares background commands itself.
        let is_own = |sight: &&Sight| !matches!(sight.target, Target::Process { .. });
        if let Some(sight) =
            context.sights.iter().filter(is_own).find(|sight| self.see(&sight.target) != **sight)
        {
            let message = format!("{:?} changed since the call was judged", sight.target);
            return Err(ToolError::new(ErrorKind::Conflict, message));
        }
        let reply = self.replies.get(&run.command).unwrap_or(&self.otherwise).clone();
        self.runs.send_modify(|runs| runs.push(run));
        match reply {
            Reply::Ran(ran) => {
                context.progress.tell(&ran.output);
                Ok(*ran)
            }
            Reply::Fails(error) => Err(error),
            Reply::Hangs => {
                context.cancel.cancelled().await;
                Err(ToolError::new(ErrorKind::Cancelled, "the command was cancelled"))
            }
        }
    }
}

#[async_trait]
impl ShellHost for FakeShell {
    async fn look(&self, _: &RunContext, targets: &[Target]) -> Result<Vec<Sight>, ToolError> {
        Ok(targets.iter().map(|target| self.see(target)).collect())
    }

    async fn run(&self, context: &RunContext, script: &Script) -> Result<HostRan, ToolError> {
        let run = Run {
            command: script.text.clone(),
            directory: script.directory.clone(),
            env: script.env.clone(),
            sandboxed: context.sandboxed,
            effects: context.effects,
        };
        self.reply(context, run).await.map(HostRan::from)
    }

    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<HostRan, ToolError> {
        let run = Run {
            command: argv.argv.join(" "),
            directory: argv.directory.clone(),
            env: argv.env.clone(),
            sandboxed: context.sandboxed,
            effects: context.effects,
        };
        self.reply(context, run).await.map(HostRan::from)
    }

    async fn start(&self, _: &RunContext, _: &Start) -> Result<Child, ToolError> {
        let (input, output) = (Box::new(tokio::io::sink()), Box::new(tokio::io::empty()));
        let control = Box::new(Running(watch::Sender::new(false)));
        Ok(Child { pid: 1, place: "fake", input, output, errors: None, control })
    }
}

/// A command that runs until it is ended.
struct Running(watch::Sender<bool>);

#[async_trait]
impl Control for Running {
    async fn ended(&mut self) -> Result<Ended, ToolError> {
        self.0.subscribe().wait_for(|over| *over).await.expect("the sender is in `self`");
        Ok(Ended { signal: Some(15), ..Ended::default() })
    }

    async fn terminate(&mut self) {
        self.0.send_replace(true);
    }

    async fn kill(&mut self) {
        self.0.send_replace(true);
    }

    fn resize(&self, _: Size) -> Result<(), ToolError> {
        Err(ToolError::invalid("it has no terminal"))
    }
}

#[cfg(test)]
mod tests;
