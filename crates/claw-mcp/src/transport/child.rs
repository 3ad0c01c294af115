//! A server that is a program: started in the sandbox, spoken to on its standard streams.

use std::path::PathBuf;

use claw_core::port::{Allowed, Child, Control, Program, RunContext, Start};
use claw_core::store::McpProgram;
use claw_core::tool::{Argv, ToolError};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use crate::hub::ConnectionParts;

/// The bytes of a program's standard error kept for messages.
const KEPT_ERRORS: usize = 4 * 1024;

/// A running server. Dropping its control ends it.
pub(crate) struct StdioChild {
    pub(crate) output: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) input: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) control: Box<dyn Control>,
    /// The last part of its standard error.
    pub(crate) errors: tokio::sync::watch::Receiver<String>,
}

/// Starts a program with these variables.
pub(crate) async fn start(
    place: &ConnectionParts,
    program: &McpProgram,
    env: Vec<(String, String)>,
    context: RunContext,
) -> Result<StdioChild, ToolError> {
    let mut argv = vec![program.command.clone()];
    argv.extend(program.args.iter().cloned());
    let allowed = |write: bool| move |path: &String| Allowed { path: PathBuf::from(path), write };
    let mut paths: Vec<Allowed> = program.read.iter().map(allowed(false)).collect();
    paths.extend(program.write.iter().map(allowed(true)));
    let argv = Argv { argv, directory: ".".to_owned(), env, credentials: false };
    let start = Start { apart: true, network: program.network, paths, ..Start::new(Program::Argv(argv)) };
    let Child { input, output, errors, control, .. } = place.shell.start(&context, &start).await?;
    let (sender, receiver) = tokio::sync::watch::channel(String::new());
    if let Some(errors) = errors {
        tokio::spawn(keep_errors(errors, sender));
    }
    Ok(StdioChild { output, input, control, errors: receiver })
}

/// Reads standard error to its end and keeps the last of it. A program must never block on it.
async fn keep_errors(
    mut errors: Box<dyn AsyncRead + Send + Unpin>,
    kept: tokio::sync::watch::Sender<String>,
) {
    let mut buffer = vec![0; 4096];
    loop {
        let read = match errors.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => read,
        };
        let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
        kept.send_modify(|all| {
            all.push_str(&text);
            if all.len() > KEPT_ERRORS {
                let from = all.len() - KEPT_ERRORS;
                let from = (from..all.len()).find(|at| all.is_char_boundary(*at)).unwrap_or(0);
                all.drain(..from);
            }
        });
    }
}
