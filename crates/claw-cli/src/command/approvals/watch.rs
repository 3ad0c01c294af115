//! `clawsmith approvals watch`: approvals as they come, answered here.

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

use clawsmith::app::Setup;

use crate::caller;
use crate::cli::Session;
use crate::command::tools::approve::{self, Question};
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;
use crate::output::tell;

/// The interval between checks for new approvals.
const EVERY: Duration = Duration::from_millis(300);

pub(super) fn run(session: &mut Session, setup: &Setup) -> Outcome {
    let by = caller::user_of(&session.around).map_err(|error| Failure::usage(error.to_string()))?;
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
                if session.out.json {
                    session.out.json_line(&approval)?;
                } else if approve::can_ask() {
                    approve::put(app, approval, by.to_string()).await;
                } else {
                    approve::announce(&Question::from(&approval));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            }
        }
    })
}
