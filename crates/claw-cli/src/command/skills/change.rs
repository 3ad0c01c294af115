//! `clawsmith skills add`, `publish`, `grant` and `remove`.

use std::path::PathBuf;

use clap::Args;
use claw_core::store::{SkillChange, SkillGrant, SkillGrantee, SkillVisibility, StoredSkill};
use claw_core::{AgentId, SkillName, UserId};
use clawsmith::app::SkillPublication;
use serde_json::json;

use super::{Where, person, to_look_at};
use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::command::users::OfTenant;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_app;

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
    user: Option<UserId>,
    #[command(flatten)]
    of: OfTenant,
}

impl Add {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let owner = session.user(self.user)?;
        let visibility = if self.private { SkillVisibility::Private } else { SkillVisibility::Tenant };
        let directory = session.around.directory.join(&self.directory);
        let by = owner.to_string();
        let publication = SkillPublication { directory, visibility, owner: Some(owner), by };
        let stored = session.app(async |app| self.of.app(app).publish_skill(publication).await)?;
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
    session.shown(stored, |out| {
        let (name, version, visibility) = (&stored.name, stored.newest, stored.visibility);
        out.line(format_args!("skill {name} is in the store as version {version} ({visibility})"))?;
        Ok(to_look_at(out, &stored.current.findings)?)
    })
}

/// A grant of a skill, with its version.
#[derive(Debug, Args)]
pub(crate) struct GrantSkill {
    /// The skill's name.
    name: SkillName,
    /// Grant it to this agent, for any user.
    #[arg(long, value_name = "ID", conflicts_with = "to_user")]
    to_agent: Option<AgentId>,
    /// Grant it to this user, with any agent.
    #[arg(long, value_name = "ID")]
    to_user: Option<UserId>,
    /// Grant only this version [default: the pinned one, or the newest].
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Revoke the grant.
    #[arg(long, conflicts_with = "version")]
    revoke: bool,
    /// The visibility of the skill.
    #[arg(long, value_parser = one_of(VISIBILITIES))]
    visibility: Option<SkillVisibility>,
    /// Pin this version, for everyone without a version in their grant.
    #[arg(long, value_name = "N", conflicts_with = "unpin")]
    pin: Option<u64>,
    /// Unpin: everyone without a version in their grant gets the newest.
    #[arg(long)]
    unpin: bool,
    #[command(flatten)]
    of: OfTenant,
}

const VISIBILITIES: Choices<SkillVisibility> = &[
    ("private", "The owner, and those it is granted to", SkillVisibility::Private),
    ("tenant", "Everyone of the tenant", SkillVisibility::Tenant),
];

impl GrantSkill {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = self.name;
        let grantee = match (self.to_agent, self.to_user) {
            (Some(agent), _) => Some(SkillGrantee::Agent(agent)),
            (None, user) => user.map(SkillGrantee::User),
        };
        let pinned = match (self.pin, self.unpin) {
            (Some(version), _) => Some(Some(version)),
            (None, true) => Some(None),
            (None, false) => None,
        };
        let change = SkillChange { visibility: self.visibility, pinned };
        if grantee.is_none() && change == SkillChange::default() {
            let failure = Failure::usage("there is nothing to change");
            return Err(failure.hint("name `--to-agent`, `--to-user`, `--visibility`, `--pin` or `--unpin`"));
        }
        let stored = session.existing_app(async |app| {
            let app = self.of.app(app);
            match grantee {
                Some(grantee) if self.revoke => app.revoke_skill(&name, &grantee).await?,
                Some(grantee) => {
                    drop(app.grant_skill(&name, SkillGrant { grantee, version: self.version }).await?);
                }
                None => {}
            }
            app.change_skill(&name, change).await
        })?;
        let stored = stored.ok_or_else(|| not_there(&name))?;
        let grants: Vec<String> = stored.grants.iter().map(|grant| grant.grantee.to_string()).collect();
        let grants = if grants.is_empty() { "nobody".to_owned() } else { grants.join(", ") };
        let version =
            stored.pinned.map_or("newest".to_owned(), |version| format!("pinned to version {version}"));
        let words = format!("skill {name}: {}, {version}, granted to {grants}", stored.visibility);
        session.told(&stored, words)
    }
}

/// The skill to remove.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// The skill's name.
    name: SkillName,
    #[command(flatten)]
    of: OfTenant,
}

impl Remove {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = self.name;
        let done = session.existing_app(async |app| self.of.app(app).remove_skill(&name).await)?;
        let (removed, forgotten) = done.ok_or_else(|| not_there(&name))?;
        session.shown(&json!({ "removed": removed, "forgotten": forgotten }), |out| {
            if removed {
                out.line(format_args!("skill {name} is removed from the store"))?;
            }
            if forgotten > 0 {
                out.line(format_args!("skill {name} of a workspace is no longer accepted"))?;
            }
            Ok(())
        })
    }
}

fn not_there(name: &SkillName) -> Failure {
    Failure::usage(format!("there is no skill `{name}` in the store"))
}
