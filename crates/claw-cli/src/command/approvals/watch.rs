//! `clawsmith approvals watch`: approvals as they come, answered here.

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

use claw_terminal::tell;
use clawsmith::app::Setup;

use crate::cli::Session;
use crate::command::tools::approve;
use crate::failure::Outcome;
use crate::opened::with_app;

/// The interval between checks for new approvals.
const EVERY: Duration = Duration::from_millis(300);

pub(super) fn run(session: &mut Session, setup: &Setup) -> Outcome {
    let by = session.user(None)?;
    with_app(setup, async |app| {
        if !session.out.json {
            tell("Waiting for approvals; Ctrl-C to stop.");
        }
        let mut seen = HashSet::new();
        loop {
            for approval in app.pending_approvals().await? {
                if !seen.insert(approval.id) {
                    continue;
                }
                match session.out.json {
                    true => session.out.json_line(&approval)?,
                    false => approve::put(app, approval, by.to_string()).await,
                }
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            }
        }
    })
}
