//! `clawsmith skills`: see, accept and publish the skills that agents take up.

mod change;
mod show;

use std::path::PathBuf;

use clap::Args;
use claw_core::skill::{SkillCard, SkillState};
use claw_core::tool::Caller;
use claw_terminal::{Cell, Out, visible};
use clawsmith::app::Setup;
use clawsmith::app::caller::local_workspace;

use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_app;

subcommands! {
    /// The operations on skills.
    pub(crate) enum Skills {
        /// List all skills (the workspace's, your own, the deployment's, the store's and the built-in ones), and show which can be used.
        List(Where),
        /// Show a skill: its instructions, files, versions, grants, and lines that look like an attack.
        Show(show::Show),
        /// Search the skills that an agent could use.
        Search(show::Search),
        /// Accept a skill of this workspace as it is now, after you have read it.
        Accept(show::Accept),
        /// Add a skill to the store, from a directory on this machine, for everyone in the tenant.
        Add(change::Add),
        /// Publish a skill of this workspace to the store, for yourself or the tenant.
        Publish(change::Publish),
        /// Set who may use a published skill, and which version.
        Grant(change::GrantSkill),
        /// Remove a published skill with its versions, and withdraw the acceptance of all skills with this name.
        Remove(change::Remove),
    }
}

/// The workspace, and the caller whose skills are shown.
#[derive(Debug, Args)]
pub(crate) struct Where {
    /// The workspace [default: the current directory].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Where {
    fn caller(&self, session: &Session) -> Result<(Setup, Caller), Failure> {
        let setup = self.caller.load(session)?;
        let workspace = local_workspace(self.workspace.as_deref(), &session.around)?;
        let caller = self.caller.caller(&setup, &workspace)?;
        Ok((setup, caller))
    }

    /// Lists the skills.
    fn run(self, session: &mut Session) -> Outcome {
        let (setup, caller) = self.caller(session)?;
        let cards = with_app(&setup, async |app| Ok(app.skills(&caller).await?))?;
        listed(session, &cards)
    }
}

/// The person at this terminal.
fn person(caller: &Caller) -> String {
    caller.user.as_ref().map_or_else(|| "cli".to_owned(), ToString::to_string)
}

fn listed(session: &mut Session, cards: &[SkillCard]) -> Outcome {
    session.list(
        cards,
        "no skill found",
        &[
            ("name", &|card| Cell::strong(&card.name)),
            ("from", &|card| Cell::quiet(format!("{} ({})", card.tier, card.source))),
            ("state", &|card| match &card.state {
                SkillState::Usable => Cell::good("usable"),
                SkillState::Unaccepted => Cell::warning("unaccepted"),
                SkillState::Shadowed { by } => Cell::quiet(format!("shadowed by {by}")),
                SkillState::Invalid { .. } => Cell::bad("invalid"),
            }),
            ("description", &|card| match &card.state {
                SkillState::Unaccepted => {
                    Cell::new(format!("{} (`clawsmith skills accept {}`)", card.description, card.name))
                }
                SkillState::Invalid { why } => Cell::new(why),
                _ => Cell::new(&card.description),
            }),
        ],
    )
}

/// Lines of a skill that look like an attack.
fn to_look_at(out: &mut Out, findings: &[String]) -> std::io::Result<()> {
    findings.iter().try_for_each(|finding| out.line(format_args!("look at   {}", visible(finding))))
}
