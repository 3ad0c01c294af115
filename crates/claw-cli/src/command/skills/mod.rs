//! `clawsmith skills`: see, accept and publish the skills that agents take up.

mod change;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::SkillName;
use claw_core::skill::{SkillCard, SkillState};
use claw_core::tool::Caller;
use clawsmith::app::Setup;

use super::tools::workspace;
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;
use crate::output::{Cell, Table};

/// The operations on skills.
#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    /// List the skills of this workspace, user, deployment, store and program, and which can be used.
    #[command(after_help = "Examples:
  clawsmith skills list
  clawsmith skills list --agent coder --json")]
    List(Where),
    /// Show a skill: its instructions, files, versions, grants, and lines that look like an attack.
    #[command(after_help = "Examples:
  clawsmith skills show review-change")]
    Show(show::Show),
    /// Search the skills that an agent could use.
    #[command(after_help = "Examples:
  clawsmith skills search 'review a diff'
  clawsmith skills search pdf --limit 3 --json")]
    Search(show::Search),
    /// Accept a skill of this workspace as it is now, after you have read it.
    #[command(
        after_help = "A skill that lies in a workspace is used only after a person has accepted it. If a file of \
it changes, it must be accepted again.

Examples:
  clawsmith skills show pdf-forms
  clawsmith skills accept pdf-forms"
    )]
    Accept(show::Accept),
    /// Add a directory of this machine to the store, for everyone of the tenant.
    #[command(after_help = "Examples:
  clawsmith skills add ./pdf-forms
  clawsmith skills add ~/skills/pdf-forms --private")]
    Add(change::Add),
    /// Publish a skill of this workspace to the store, for yourself or the tenant.
    #[command(after_help = "Examples:
  clawsmith skills publish skills/pdf-forms
  clawsmith skills publish .agents/skills/pdf-forms --tenant-wide")]
    Publish(change::Publish),
    /// Set who may use a published skill, and which version.
    #[command(after_help = "Examples:
  clawsmith skills grant pdf-forms --to-agent coder
  clawsmith skills grant pdf-forms --to-user ann --version 2
  clawsmith skills grant pdf-forms --to-user ann --revoke
  clawsmith skills grant pdf-forms --visibility tenant --pin 3")]
    Grant(change::GrantSkill),
    /// Remove a published skill with its versions, and forget that skills of this name were accepted.
    #[command(after_help = "Examples:
  clawsmith skills remove pdf-forms")]
    Remove(change::Remove),
}

impl Skills {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List(list) => list.list(session),
            Self::Show(show) => show.run(session),
            Self::Search(search) => search.run(session),
            Self::Accept(accept) => accept.run(session),
            Self::Add(add) => add.run(session),
            Self::Publish(publish) => publish.run(session),
            Self::Grant(grant) => grant.run(session),
            Self::Remove(remove) => remove.run(session),
        }
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
        let workspace = workspace(self.workspace.as_deref(), &session.around)?;
        let caller = self.caller.caller(setup.config(), &session.around, &workspace)?;
        Ok((setup, caller))
    }

    fn list(&self, session: &mut Session) -> Outcome {
        let (setup, caller) = self.caller(session)?;
        let cards = with_app(&setup, async |app| Ok(app.skills(&caller).await?))?;
        listed(session, &cards)
    }
}

/// Parses a skill's name.
fn named(name: &str) -> Result<SkillName, Failure> {
    SkillName::new(name).map_err(|error| Failure::usage(error.to_string()).hint("clawsmith skills list"))
}

/// The person at this terminal.
fn person(caller: &Caller) -> String {
    caller.user.as_ref().map_or_else(|| "cli".to_owned(), ToString::to_string)
}

fn listed(session: &mut Session, cards: &[SkillCard]) -> Outcome {
    if session.out.json {
        session.out.json(&cards)?;
        return Ok(ExitCode::SUCCESS);
    }
    if cards.is_empty() {
        session.out.line("no skill found")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["name", "from", "state", "description"]);
    for card in cards {
        let (state, about) = match &card.state {
            SkillState::Usable => (Cell::good("usable"), card.description.clone()),
            SkillState::Unaccepted => (
                Cell::warning("unaccepted"),
                format!("{} (`clawsmith skills accept {}`)", card.description, card.name),
            ),
            SkillState::Shadowed { by } => {
                (Cell::quiet(format!("shadowed by {by}")), card.description.clone())
            }
            SkillState::Invalid { why } => (Cell::bad("invalid"), why.clone()),
        };
        let from = format!("{} ({})", card.tier, card.source);
        table.row([Cell::strong(&card.name), Cell::quiet(from), state, Cell::new(about)]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}
