//! A command that runs on its own, as the port returns it.

use async_trait::async_trait;
use claw_core::port::{Child, Control, Ended, Size, Stopped};
use claw_core::tool::{ErrorKind, ToolError};

use super::local::refused;
use super::process::{Parts, Process};
use super::terminal::Terminal;
use crate::Running;

/// Returns the command as the port has it: its streams and its control.
pub(super) fn child(process: Process, place: &'static str) -> Child {
    let pid = process.pid();
    let Parts { input, output, errors, terminal, running } = process.into_parts();
    Child {
        pid,
        place,
        input: match input {
            Some(input) => Box::new(input),
            None => Box::new(tokio::io::sink()),
        },
        output: Box::new(output),
        errors: errors.map(|errors| Box::new(errors) as _),
        control: Box::new(Held { running, terminal }),
    }
}

struct Held {
    running: Running,
    terminal: Option<Terminal>,
}

#[async_trait]
impl Control for Held {
    async fn ended(&mut self) -> Result<Ended, ToolError> {
        let ended = self.running.ended().await.map_err(refused)?;
        let stopped = ended.stopped.map(|stopped| match stopped {
            crate::Stopped::Memory => Stopped::Memory,
            crate::Stopped::Disk => Stopped::Disk,
        });
        Ok(Ended { exit: ended.exit, signal: ended.signal, stragglers: ended.stragglers, stopped })
    }

    async fn terminate(&mut self) {
        self.running.terminate().await;
    }

    async fn kill(&mut self) {
        self.running.kill().await;
    }

    fn resize(&self, size: Size) -> Result<(), ToolError> {
        let Some(terminal) = &self.terminal else {
            return Err(ToolError::invalid("the command has no terminal").try_instead("start it with `pty`"));
        };
        terminal.resize(size).map_err(|error| {
            ToolError::new(ErrorKind::Failed, "the terminal could not be resized").because(error)
        })
    }
}
