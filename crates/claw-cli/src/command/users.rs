//! `clawsmith users` and `clawsmith tenants`: access over the network.

use clap::{Args, Subcommand};
use claw_core::store::{AccessRole, TenantChange, UserChange};
use claw_core::{TenantId, UserId};
use claw_terminal::Cell;
use clawsmith::app::App;
use clawsmith::app::words::time;

use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::Outcome;

/// The operations on users.
#[derive(Debug, Subcommand)]
pub(crate) enum Users {
    /// List the users of a tenant: their roles, and who is disabled.
    List(OfTenant),
    /// Add a user.
    Add(AddUser),
    /// Change a user's name or role, or disable them.
    Edit(EditUser),
}

/// The operations on tenants.
#[derive(Debug, Subcommand)]
pub(crate) enum Tenants {
    /// List the tenants.
    List,
    /// Add a tenant, whose data is separate from that of all others.
    Add(AddTenant),
    /// Change a tenant's name, or disable it.
    Edit(EditTenant),
}

/// A tenant.
#[derive(Debug, Clone, Args)]
pub(crate) struct OfTenant {
    /// The tenant [default: the deployment's tenant].
    #[arg(long, value_name = "ID")]
    tenant: Option<TenantId>,
}

impl OfTenant {
    /// The application of the tenant.
    pub(crate) fn app(&self, app: &App) -> App {
        self.tenant.as_ref().map_or_else(|| app.clone(), |tenant| app.of_tenant(tenant))
    }
}

/// Roles of users; each includes those before it.
pub(crate) const ROLES: Choices<AccessRole> = &[
    ("viewer", "Look", AccessRole::Viewer),
    ("operator", "Work: talk to agents, call tools, answer approvals", AccessRole::Operator),
    ("admin", "Change agents, settings and access", AccessRole::Admin),
    ("owner", "Everything", AccessRole::Owner),
];

#[derive(Debug, Args)]
pub(crate) struct AddUser {
    /// The user's id.
    id: UserId,
    #[command(flatten)]
    of: OfTenant,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Role of the user.
    #[arg(long, value_name = "ROLE", value_parser = one_of(ROLES), default_value = "operator")]
    role: AccessRole,
}

#[derive(Debug, Args)]
#[group(id = "change", required = true, multiple = true, args = ["name", "role", "disabled"])]
pub(crate) struct EditUser {
    /// The user's id.
    id: UserId,
    #[command(flatten)]
    of: OfTenant,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Role of the user.
    #[arg(long, value_name = "ROLE", value_parser = one_of(ROLES))]
    role: Option<AccessRole>,
    /// True rejects all their keys.
    #[arg(long, value_name = "BOOL")]
    disabled: Option<bool>,
}

#[derive(Debug, Args)]
pub(crate) struct AddTenant {
    /// The tenant's id.
    id: TenantId,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
}

#[derive(Debug, Args)]
#[group(id = "tenant_change", required = true, multiple = true, args = ["name", "disabled"])]
pub(crate) struct EditTenant {
    /// The tenant's id.
    id: TenantId,
    /// Display name.
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// True rejects all its keys.
    #[arg(long, value_name = "BOOL")]
    disabled: Option<bool>,
}

impl Users {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List(of) => {
                let users = session.existing_app(async |app| of.app(app).users().await)?;
                session.list(
                    &users.unwrap_or_default(),
                    "no users; `clawsmith users add ID` adds one",
                    &[
                        ("id", &|user| Cell::strong(&user.id)),
                        ("name", &|user| Cell::new(&user.name)),
                        ("role", &|user| Cell::new(user.role)),
                        ("state", &|user| state(user.disabled)),
                        ("added", &|user| Cell::quiet(time(user.created))),
                    ],
                )
            }
            Self::Add(AddUser { id, of, name, role }) => {
                let user = session.app(async |app| of.app(app).add_user(id, name, role).await)?;
                session.told(&user, format_args!("user {} is added, as {}", user.id, user.role))
            }
            Self::Edit(EditUser { id, of, name, role, disabled }) => {
                let change = UserChange { name, role, disabled };
                let user = session.app(async |app| of.app(app).edit_user(&id, change).await)?;
                session.told(&user, format_args!("user {} is changed", user.id))
            }
        }
    }
}

impl Tenants {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::List => {
                let tenants = session.existing_app(async |app| app.tenants().await)?;
                session.list(
                    &tenants.unwrap_or_default(),
                    "no tenants; `clawsmith tenants add ID` adds one",
                    &[
                        ("id", &|tenant| Cell::strong(&tenant.id)),
                        ("name", &|tenant| Cell::new(&tenant.name)),
                        ("state", &|tenant| state(tenant.disabled)),
                        // The deployment's own tenant comes with the store, which says no time for it.
                        ("added", &|tenant| match tenant.created.0 {
                            0 => Cell::quiet(""),
                            _ => Cell::quiet(time(tenant.created)),
                        }),
                    ],
                )
            }
            Self::Add(AddTenant { id, name }) => {
                let tenant = session.app(async |app| app.add_tenant(id, name).await)?;
                session.told(&tenant, format_args!("tenant {} is added", tenant.id))
            }
            Self::Edit(EditTenant { id, name, disabled }) => {
                let change = TenantChange { name, disabled, policy: None };
                let tenant = session.app(async |app| app.edit_tenant(&id, change).await)?;
                session.told(&tenant, format_args!("tenant {} is changed", tenant.id))
            }
        }
    }
}

fn state(is_disabled: bool) -> Cell {
    if is_disabled { Cell::bad("disabled") } else { Cell::good("active") }
}
