//! `clawsmith users` and `clawsmith tenants`: access over the network.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use claw_core::store::{AccessRole, TenantChange, UserChange};
use claw_core::{TenantId, UserId};
use clawsmith::app::Setup;

use super::ledger::time;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::{with_app, with_existing_app};
use crate::output::{Cell, Table};

/// The operations on users.
#[derive(Debug, Subcommand)]
pub(crate) enum Users {
    /// List the users of a tenant: their roles, and who is disabled.
    #[command(after_help = "Examples:
  clawsmith users list
  clawsmith users list --tenant acme --json")]
    List(OfTenant),
    /// Add a user.
    #[command(after_help = "Examples:
  clawsmith users add ann --role admin --name 'Ann Example'")]
    Add(AddUser),
    /// Change a user's name or role, or disable them.
    #[command(after_help = "Examples:
  clawsmith users edit ann --role viewer
  clawsmith users edit ann --disabled true")]
    Edit(EditUser),
}

/// The operations on tenants.
#[derive(Debug, Subcommand)]
pub(crate) enum Tenants {
    /// List the tenants.
    #[command(after_help = "Examples:
  clawsmith tenants list")]
    List,
    /// Add a tenant, whose data is separate from that of all others.
    #[command(after_help = "Examples:
  clawsmith tenants add acme --name 'Acme Inc.'
  clawsmith api-keys create --tenant acme --user ann --role admin --scope admin")]
    Add(AddTenant),
    /// Change a tenant's name, or disable it.
    #[command(after_help = "Examples:
  clawsmith tenants edit acme --disabled true")]
    Edit(EditTenant),
}

/// A tenant.
#[derive(Debug, Clone, Args)]
pub(crate) struct OfTenant {
    /// The tenant [default: the deployment's own].
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
}

impl OfTenant {
    /// The tenant by its id.
    pub(crate) fn id(&self, setup: &Setup) -> Result<TenantId, Failure> {
        match &self.tenant {
            None => Ok(setup.tenant().clone()),
            Some(id) => TenantId::new(id).map_err(|error| Failure::usage(format!("`--tenant`: {error}"))),
        }
    }
}

/// Roles of users; each includes those before it.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Role {
    /// Look.
    Viewer,
    /// Work: talk to agents, call tools, answer approvals.
    Operator,
    /// Change agents, settings and access.
    Admin,
    /// Everything.
    Owner,
}

impl From<Role> for AccessRole {
    fn from(role: Role) -> Self {
        match role {
            Role::Viewer => Self::Viewer,
            Role::Operator => Self::Operator,
            Role::Admin => Self::Admin,
            Role::Owner => Self::Owner,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AddUser {
    /// The user's id.
    id: String,
    #[command(flatten)]
    of: OfTenant,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Role of the user.
    #[arg(long, value_name = "ROLE", value_enum, default_value_t = Role::Operator)]
    role: Role,
}

#[derive(Debug, Args)]
#[group(id = "change", required = true, multiple = true, args = ["name", "role", "disabled"])]
pub(crate) struct EditUser {
    /// The user's id.
    id: String,
    #[command(flatten)]
    of: OfTenant,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Role of the user.
    #[arg(long, value_name = "ROLE", value_enum)]
    role: Option<Role>,
    /// True rejects all their keys.
    #[arg(long, value_name = "BOOL")]
    disabled: Option<bool>,
}

#[derive(Debug, Args)]
pub(crate) struct AddTenant {
    /// The tenant's id.
    id: String,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
}

#[derive(Debug, Args)]
#[group(id = "tenant_change", required = true, multiple = true, args = ["name", "disabled"])]
pub(crate) struct EditTenant {
    /// The tenant's id.
    id: String,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// True rejects all its keys.
    #[arg(long, value_name = "BOOL")]
    disabled: Option<bool>,
}

impl Users {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        match self {
            Self::List(of) => {
                let tenant = of.id(&setup)?;
                let users =
                    with_existing_app(&setup, async |app| Ok(app.of_tenant(&tenant).users().await?))?;
                let users = users.unwrap_or_default();
                if session.out.json {
                    session.out.json(&users)?;
                    return Ok(ExitCode::SUCCESS);
                }
                let mut table = Table::new(["id", "name", "role", "state", "added"]);
                for user in &users {
                    let (id, role) = (Cell::strong(&user.id), Cell::new(user.role));
                    table.row([
                        id,
                        Cell::new(&user.name),
                        role,
                        state(user.disabled),
                        Cell::quiet(time(user.created)),
                    ]);
                }
                match users.is_empty() {
                    true => session.out.line("no users; `clawsmith users add ID` adds one")?,
                    false => session.out.table(&table)?,
                }
                Ok(ExitCode::SUCCESS)
            }
            Self::Add(AddUser { id, of, name, role }) => {
                let (tenant, id) = (of.id(&setup)?, user_id(&id)?);
                let user = with_app(&setup, async |app| {
                    Ok(app.of_tenant(&tenant).add_user(id, name, role.into()).await?)
                })?;
                told(session, &user, &format!("user {} is added, as {}", user.id, user.role))
            }
            Self::Edit(EditUser { id, of, name, role, disabled }) => {
                let (tenant, id) = (of.id(&setup)?, user_id(&id)?);
                let change = UserChange { name, role: role.map(Into::into), disabled };
                let user =
                    with_app(&setup, async |app| Ok(app.of_tenant(&tenant).edit_user(&id, change).await?))?;
                told(session, &user, &format!("user {} is changed", user.id))
            }
        }
    }
}

impl Tenants {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        match self {
            Self::List => {
                let tenants =
                    with_existing_app(&setup, async |app| Ok(app.tenants().await?))?.unwrap_or_default();
                if session.out.json {
                    session.out.json(&tenants)?;
                    return Ok(ExitCode::SUCCESS);
                }
                let mut table = Table::new(["id", "name", "state", "added"]);
                for tenant in &tenants {
                    let (id, name) = (Cell::strong(&tenant.id), Cell::new(&tenant.name));
                    // The deployment's own tenant comes with the store, which says no time for it.
                    let added = if tenant.created.0 == 0 { String::new() } else { time(tenant.created) };
                    table.row([id, name, state(tenant.disabled), Cell::quiet(added)]);
                }
                session.out.table(&table)?;
                Ok(ExitCode::SUCCESS)
            }
            Self::Add(AddTenant { id, name }) => {
                let id = tenant_id(&id)?;
                let tenant = with_app(&setup, async |app| Ok(app.add_tenant(id, name).await?))?;
                told(session, &tenant, &format!("tenant {} is added", tenant.id))
            }
            Self::Edit(EditTenant { id, name, disabled }) => {
                let id = tenant_id(&id)?;
                let change = TenantChange { name, disabled, policy: None };
                let tenant = with_app(&setup, async |app| Ok(app.edit_tenant(&id, change).await?))?;
                told(session, &tenant, &format!("tenant {} is changed", tenant.id))
            }
        }
    }
}

fn user_id(id: &str) -> Result<UserId, Failure> {
    UserId::new(id).map_err(|error| Failure::usage(error.to_string()))
}

fn tenant_id(id: &str) -> Result<TenantId, Failure> {
    TenantId::new(id).map_err(|error| Failure::usage(error.to_string()))
}

fn state(is_disabled: bool) -> Cell {
    if is_disabled { Cell::bad("disabled") } else { Cell::good("active") }
}

fn told(session: &mut Session, value: &impl serde::Serialize, words: &str) -> Outcome {
    match session.out.json {
        true => session.out.json(value)?,
        false => session.out.line(words)?,
    }
    Ok(ExitCode::SUCCESS)
}
