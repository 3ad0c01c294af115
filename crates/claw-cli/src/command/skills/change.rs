//! `clawsmith skills add`, `publish`, `grant` and `remove`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use claw_core::store::{SkillChange, SkillGrant, SkillGrantee, SkillVisibility, StoredSkill};
use claw_core::{AgentId, UserId};
use clawsmith::app::SkillPublication;
use serde_json::json;

use super::{Where, named, person};
use crate::caller;
use crate::cli::Session;
use crate::command::users::OfTenant;
use crate::failure::{Failure, Outcome};
use crate::opened::{with_app, with_existing_app};
use crate::output::visible;

/// The directory to add.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The directory, with a `SKILL.md` in it.
    directory: PathBuf,
    /// Only for its owner and those it is granted to.
    #[arg(long)]
    private: bool,
    /// The user who owns it [default: `$USER`].
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    #[command(flatten)]
    of: OfTenant,
}

impl Add {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let owner = match &self.user {
            Some(user) => UserId::new(user),
            None => caller::user_of(&session.around),
        };
        let owner = owner.map_err(|error| Failure::usage(format!("`--user`: {error}")))?;
        let visibility = if self.private { SkillVisibility::Private } else { SkillVisibility::Tenant };
        let directory = session.around.directory.join(&self.directory);
        let by = owner.to_string();
        let publication = SkillPublication { directory, visibility, owner: Some(owner), by };
        let tenant = self.of.id(&setup)?;
        let stored =
            with_app(&setup, async |app| Ok(app.of_tenant(&tenant).publish_skill(publication).await?))?;
        published(session, &stored)
    }
}

/// The workspace skill to publish.
#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// The skill's directory, relative to the workspace.
    path: PathBuf,
    /// For everyone of the tenant, instead of for its owner and those it is granted to.
    #[arg(long)]
    tenant_wide: bool,
    #[command(flatten)]
    place: Where,
}

impl Publish {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let (setup, caller) = self.place.caller(session)?;
        let visibility = if self.tenant_wide { SkillVisibility::Tenant } else { SkillVisibility::Private };
        let (directory, by) = (caller.workspace.join(&self.path), person(&caller));
        let publication = SkillPublication { directory, visibility, owner: caller.user, by };
        let stored = with_app(&setup, async |app| Ok(app.publish_skill(publication).await?))?;
        published(session, &stored)
    }
}

fn published(session: &mut Session, stored: &StoredSkill) -> Outcome {
    if session.out.json {
        session.out.json(stored)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (name, version) = (&stored.name, stored.newest);
    session
        .out
        .line(format_args!("skill {name} is in the store as version {version} ({})", stored.visibility))?;
    for finding in &stored.current.findings {
        session.out.line(format_args!("look at   {}", visible(finding)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A grant of a skill, with its version.
#[derive(Debug, Args)]
pub(crate) struct GrantSkill {
    /// The skill's name.
    name: String,
    /// Grant it to this agent, for any user.
    #[arg(long, value_name = "ID", conflicts_with = "to_user")]
    to_agent: Option<String>,
    /// Grant it to this user, with any agent.
    #[arg(long, value_name = "ID")]
    to_user: Option<String>,
    /// Grant this version alone [default: the newest].
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Take the grant back.
    #[arg(long, conflicts_with = "version")]
    revoke: bool,
    /// The others who may use it.
    #[arg(long, value_enum)]
    visibility: Option<VisibilityName>,
    /// The version for everyone without one of their own.
    #[arg(long, value_name = "N", conflicts_with = "unpin")]
    pin: Option<u64>,
    /// Everyone without a version of their own gets the newest.
    #[arg(long)]
    unpin: bool,
    #[command(flatten)]
    of: OfTenant,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum VisibilityName {
    /// The owner, and those it is granted to.
    Private,
    /// Everyone of the tenant.
    Tenant,
}

impl From<VisibilityName> for SkillVisibility {
    fn from(name: VisibilityName) -> Self {
        match name {
            VisibilityName::Private => Self::Private,
            VisibilityName::Tenant => Self::Tenant,
        }
    }
}

impl GrantSkill {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = named(&self.name)?;
        let setup = session.load()?;
        let tenant = self.of.id(&setup)?;
        let grantee = self.grantee()?;
        let pinned = match (self.pin, self.unpin) {
            (Some(version), _) => Some(Some(version)),
            (None, true) => Some(None),
            (None, false) => None,
        };
        let change = SkillChange { visibility: self.visibility.map(Into::into), pinned };
        if grantee.is_none() && change == SkillChange::default() {
            let failure = Failure::usage("there is nothing to change");
            return Err(failure.hint("name `--to-agent`, `--to-user`, `--visibility`, `--pin` or `--unpin`"));
        }
        let stored = with_existing_app(&setup, async |app| {
            let app = app.of_tenant(&tenant);
            if let Some(grantee) = grantee {
                match self.revoke {
                    true => app.revoke_skill(&name, &grantee).await?,
                    false => {
                        drop(app.grant_skill(&name, SkillGrant { grantee, version: self.version }).await?);
                    }
                }
            }
            Ok(app.change_skill(&name, change).await?)
        })?;
        let stored =
            stored.ok_or_else(|| Failure::usage(format!("there is no skill `{name}` in the store")))?;
        if session.out.json {
            session.out.json(&stored)?;
            return Ok(ExitCode::SUCCESS);
        }
        let grants: Vec<String> = stored.grants.iter().map(|grant| grant.grantee.to_string()).collect();
        let grants = if grants.is_empty() { "nobody".to_owned() } else { grants.join(", ") };
        let version =
            stored.pinned.map_or("newest".to_owned(), |version| format!("pinned to version {version}"));
        session
            .out
            .line(format_args!("skill {name}: {}, {version}, granted to {grants}", stored.visibility))?;
        Ok(ExitCode::SUCCESS)
    }

    fn grantee(&self) -> Result<Option<SkillGrantee>, Failure> {
        let wrong = |flag: &str, error: claw_core::InvalidId| Failure::usage(format!("`{flag}`: {error}"));
        Ok(match (&self.to_agent, &self.to_user) {
            (Some(agent), _) => {
                Some(SkillGrantee::Agent(AgentId::new(agent).map_err(|error| wrong("--to-agent", error))?))
            }
            (None, Some(user)) => {
                Some(SkillGrantee::User(UserId::new(user).map_err(|error| wrong("--to-user", error))?))
            }
            (None, None) => None,
        })
    }
}

/// The skill to remove.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The skill's name.
    name: String,
    #[command(flatten)]
    of: OfTenant,
}

impl Remove {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = named(&self.name)?;
        let setup = session.load()?;
        let tenant = self.of.id(&setup)?;
        let done =
            with_existing_app(&setup, async |app| Ok(app.of_tenant(&tenant).remove_skill(&name).await?))?;
        let (removed, forgotten) =
            done.ok_or_else(|| Failure::usage(format!("there is no skill `{name}` in the store")))?;
        if session.out.json {
            session.out.json(&json!({ "removed": removed, "forgotten": forgotten }))?;
            return Ok(ExitCode::SUCCESS);
        }
        if removed {
            session.out.line(format_args!("skill {name} is removed from the store"))?;
        }
        if forgotten > 0 {
            session.out.line(format_args!("skill {name} of a workspace is no longer accepted"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}
