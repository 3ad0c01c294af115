//! `clawsmith api-keys`: the keys that programs come in with.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use claw_core::port::Clock as _;
use claw_core::store::{AccessRole, Key, KeyLimits, KeyScope, KeyScopes, User};
use claw_core::{AgentId, UserId};
use claw_host::SystemClock;
use clawsmith::app::access::{KeyRequest, is_good};
use serde_json::json;

use super::ledger::time;
use super::users::{OfTenant, Role};
use crate::caller;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::{with_app, with_existing_app};
use crate::output::{Cell, Table, tell};

/// The operations on keys.
#[derive(Debug, Subcommand)]
pub(crate) enum ApiKeys {
    /// Create a key. It is shown once and stored nowhere.
    #[command(
        after_help = "What can be done with a key is what its scopes and the role of its user both allow.

Examples:
  clawsmith api-keys create --user ann
  clawsmith api-keys create --user ci --scope tools:read,tools:call --days 30 --label pipeline
  clawsmith api-keys create --user bot --agent helper --per-minute 60
  clawsmith api-keys create --user ops --role admin --scope admin"
    )]
    Create(Create),
    /// List the keys: owner, purpose and state.
    #[command(after_help = "Examples:
  clawsmith api-keys list
  clawsmith api-keys list --json")]
    List(OfTenant),
    /// Revoke a key for good.
    #[command(after_help = "Examples:
  clawsmith api-keys revoke 019b7611")]
    Revoke(Which),
}

/// The key to make.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The key's user [default: `$USER`]; a missing user is added.
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    #[command(flatten)]
    of: OfTenant,
    /// The role of a user that is added [default: operator].
    #[arg(long, value_name = "ROLE", value_enum)]
    role: Option<Role>,
    /// Scopes of the key, such as `tools:call` [default: see and call tools, send messages, and see
    /// approvals; not answer them].
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    scope: Vec<KeyScope>,
    /// Purpose of the key, for display.
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// The only agent that may be used with it; can be given several times [default: all agents].
    #[arg(long, value_name = "ID")]
    agent: Vec<AgentId>,
    /// The most requests in a minute [default: no limit of its own].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    per_minute: Option<u32>,
    /// Days until it expires [default: never].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: Option<u32>,
}

/// A key.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The key's id, or the beginning of one.
    id: String,
    #[command(flatten)]
    of: OfTenant,
}

/// The scopes of a key that names none.
const USUAL: [KeyScope; 6] = [
    KeyScope::ReadAgents,
    KeyScope::ReadApprovals,
    KeyScope::ReadSessions,
    KeyScope::WriteSessions,
    KeyScope::CallTools,
    KeyScope::ReadTools,
];

impl ApiKeys {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        match self {
            Self::Create(create) => create.run(session),
            Self::List(of) => list(session, &of),
            Self::Revoke(which) => which.run(session),
        }
    }
}

impl Create {
    fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let user = match &self.user {
            Some(user) => UserId::new(user),
            None => caller::user_of(&session.around),
        };
        let user = user.map_err(|error| Failure::usage(format!("`--user`: {error}")))?;
        let scopes: KeyScopes = match self.scope.is_empty() {
            true => USUAL.into_iter().collect(),
            false => self.scope.into_iter().collect(),
        };
        let (asked, tenant) = (self.role.map(AccessRole::from), self.of.id(&setup)?);
        let role = asked.unwrap_or(AccessRole::Operator);
        let lasts = self.days.map(|days| Duration::from_secs(u64::from(days) * 86_400));
        let agents = Some(self.agent).filter(|agents| !agents.is_empty());
        let limits = KeyLimits { agents, per_minute: self.per_minute };
        let request = KeyRequest { user, role, label: self.label, scopes, lasts, limits };
        let (key, new) = with_app(&setup, async |app| {
            let app = app.of_tenant(&tenant);
            let known = app.users().await?.into_iter().find(|known| known.id == request.user);
            match known.filter(|known| asked.is_some_and(|asked| asked != known.role)) {
                Some(known) => Err(has_another_role(&known)),
                None => Ok(app.create_key(request).await?),
            }
        })?;
        if session.out.json {
            session.out.json(
                &json!({ "key": key.reveal(), "id": new.id, "user": new.user, "scopes": new.scopes }),
            )?;
        } else {
            session.out.line(key.reveal())?;
            tell("this is shown once: keep it; programs send it as `Authorization: Bearer KEY`");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn list(session: &mut Session, of: &OfTenant) -> Outcome {
    let setup = session.load()?;
    let tenant = of.id(&setup)?;
    let keys = with_existing_app(&setup, async |app| Ok(app.of_tenant(&tenant).api_keys().await?))?;
    let keys = keys.unwrap_or_default();
    if session.out.json {
        session.out.json(&keys)?;
        return Ok(ExitCode::SUCCESS);
    }
    if keys.is_empty() {
        session.out.line("no keys; `clawsmith api-keys create --user NAME` makes one")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["id", "user", "state", "scopes", "label", "last used"]);
    for key in &keys {
        table.row([
            Cell::strong(key.new.id),
            Cell::new(key.new.user.as_ref().map_or("-", |user| user.as_str())),
            state(key),
            Cell::new(&key.new.scopes),
            Cell::new(&key.new.label),
            Cell::quiet(key.last_used.map_or_else(|| "never".to_owned(), time)),
        ]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}

/// The error for `--role` where the user has another one: a key has its user's role.
fn has_another_role(user: &User) -> Failure {
    let (id, role) = (&user.id, user.role);
    Failure::usage(format!("user `{id}` has the role `{role}`, and a key has the role of its user"))
        .hint(format!("leave `--role` out, or change it with `clawsmith users edit {id} --role ROLE`"))
}

fn state(key: &Key) -> Cell {
    match (is_good(key, SystemClock.now()), key.revoked) {
        (true, _) => Cell::good("active"),
        (false, Some(_)) => Cell::bad("revoked"),
        (false, None) => Cell::warning("expired"),
    }
}

impl Which {
    fn run(&self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let tenant = self.of.id(&setup)?;
        let revoked =
            with_existing_app(&setup, async |app| Ok(app.of_tenant(&tenant).revoke_key(&self.id).await?))?;
        let key = revoked.ok_or_else(|| Failure::usage(format!("there is no key `{}`", self.id)))?;
        match session.out.json {
            true => session.out.json(&key)?,
            false => session.out.line(format_args!("key {} is revoked", key.new.id))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
