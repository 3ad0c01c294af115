//! `clawsmith mcp serve`: our tools for an MCP client that starts us.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use claw_core::SessionKey;
use clawsmith::app::caller::local_workspace;
use clawsmith::app::mcp::protocol::serve_stdio;
use clawsmith::app::{Hooks, mcp::OneClient};

use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_app;

/// The caller of the client's calls.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The directory that the tools' files are in [default: the current directory].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Ask the client's user for the approvals of its calls, if the client can ask.
    #[arg(long)]
    ask_client: bool,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Serve {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        let workspace = local_workspace(self.workspace.as_deref(), &session.around)?;
        let mut caller = self.caller.caller(&setup, &workspace)?;
        if self.caller.session.is_none() {
            let user = caller.user.as_ref().map_or_else(|| "me".to_owned(), ToString::to_string);
            caller.session = SessionKey::new(format!("mcp:{user}"))?;
            setup.config().sandbox.sandboxing().apply(&mut caller);
        }
        with_app(&setup, async |app| {
            let (toolbox, _following) = app.followed_toolbox(Hooks::default()).await?;
            let by = caller.user.as_ref().map_or_else(|| "mcp".to_owned(), ToString::to_string);
            let mut client = OneClient::new(toolbox.executor().clone(), caller, app);
            if self.ask_client {
                client = client.answering(app, by);
            }
            serve_stdio(Arc::new(client)).await.map_err(Failure::failed)?;
            Ok(ExitCode::SUCCESS)
        })
    }
}
