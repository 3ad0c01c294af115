//! `clawsmith api-keys`: the keys that programs come in with.

use std::time::Duration;

use clap::{Args, Subcommand};
use claw_core::port::Clock as _;
use claw_core::store::{AccessRole, Key, KeyLimits, KeyScope, KeyScopes, User};
use claw_core::{AgentId, UserId};
use claw_host::SystemClock;
use claw_terminal::{Cell, tell};
use clawsmith::app::access::{KeyRequest, is_good};
use clawsmith::app::words::time;
use serde_json::json;

use super::users::{OfTenant, ROLES};
use crate::choice::one_of;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The operations on keys.
#[derive(Debug, Subcommand)]
pub(crate) enum ApiKeys {
    /// Create a key. It is shown once and stored nowhere.
    Create(Create),
    /// List the keys: owner, purpose and state.
    List(OfTenant),
    /// Revoke a key for good.
    Revoke(Which),
}

/// The key to make.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// The key's user [default: `$USER`]; a user who does not exist yet is created.
    #[arg(long, value_name = "ID")]
    user: Option<UserId>,
    #[command(flatten)]
    of: OfTenant,
    /// The role of the user, if the user is created [default: operator].
    #[arg(long, value_name = "ROLE", value_parser = one_of(ROLES))]
    role: Option<AccessRole>,
    /// Scopes of the key, such as `tools:call` [default: may list and call tools, send messages, and
    /// see approvals, but not answer them].
    #[arg(long, value_name = "SCOPE", value_delimiter = ',')]
    scope: Vec<KeyScope>,
    /// Purpose of the key, for display.
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    /// An agent that the key may use; repeat the flag for more agents [default: all agents].
    #[arg(long, value_name = "ID")]
    agent: Vec<AgentId>,
    /// Maximum number of requests per minute [default: only the general limits apply].
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
            Self::List(of) => {
                let keys = session.existing_app(async |app| of.app(app).api_keys().await)?;
                session.list(
                    &keys.unwrap_or_default(),
                    "no keys; `clawsmith api-keys create --user NAME` makes one",
                    &[
                        ("id", &|key| Cell::strong(key.new.id)),
                        ("user", &|key| Cell::new(key.new.user.as_ref().map_or("-", |user| user.as_str()))),
                        ("state", &state),
                        ("scopes", &|key| Cell::new(&key.new.scopes)),
                        ("label", &|key| Cell::new(&key.new.label)),
                        ("last used", &|key| Cell::quiet(key.last_used.map_or("never".to_owned(), time))),
                    ],
                )
            }
            Self::Revoke(Which { id, of }) => {
                let revoked = session.existing_app(async |app| of.app(app).revoke_key(&id).await)?;
                let key = revoked.ok_or_else(|| Failure::usage(format!("there is no key `{id}`")))?;
                session.told(&key, format_args!("key {} is revoked", key.new.id))
            }
        }
    }
}

impl Create {
    fn run(self, session: &mut Session) -> Outcome {
        let user = session.user(self.user)?;
        let scopes: KeyScopes = match self.scope.is_empty() {
            true => USUAL.into_iter().collect(),
            false => self.scope.into_iter().collect(),
        };
        let asked = self.role;
        let role = asked.unwrap_or(AccessRole::Operator);
        let lasts = self.days.map(|days| Duration::from_secs(u64::from(days) * 86_400));
        let agents = Some(self.agent).filter(|agents| !agents.is_empty());
        let limits = KeyLimits { agents, per_minute: self.per_minute };
        let request = KeyRequest { user, role, label: self.label, scopes, lasts, limits };
        let (key, new) = session.app(async |app| {
            let app = self.of.app(app);
            let known = app.users().await?.into_iter().find(|known| known.id == request.user);
            match known.filter(|known| asked.is_some_and(|asked| asked != known.role)) {
                Some(known) => Err(has_another_role(&known)),
                None => Ok(app.create_key(request).await?),
            }
        })?;
        let value = json!({ "key": key.reveal(), "id": new.id, "user": new.user, "scopes": new.scopes });
        let told = session.told(&value, key.reveal())?;
        if !session.out.json {
            tell("the key is shown only once, so keep it; programs send it as `Authorization: Bearer KEY`");
        }
        Ok(told)
    }
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
