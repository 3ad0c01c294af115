//! `clawsmith mcp login` and `logout`.

use std::time::Duration;

use clap::Args;
use claw_core::counted::counted;
use claw_core::{ServerName, UserId};
use claw_terminal::{tell, typed_lines};
use clawsmith::app::App;
use clawsmith::app::mcp::protocol::LoginWish;
use clawsmith::app::mcp::{ListedTools, LoginCallback, is_per_user};
use serde_json::json;
use tokio::time::timeout;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// The longest a person may take to log in.
const LONGEST_LOGIN: Duration = Duration::from_secs(10 * 60);

/// A login to begin.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server's name.
    name: ServerName,
    /// A scope to request, besides those that the server asks for itself.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// The environment variable with the secret of the client that `mcp add --client-id` named.
    #[arg(long, value_name = "VARIABLE")]
    client_secret: Option<String>,
}

/// The login that is to be forgotten.
#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// The server's name.
    name: ServerName,
}

impl Login {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = self.name;
        let secret = self.client_secret.as_deref().map(|variable| {
            let value = session.variable(variable).map(|value| value.to_owned().into());
            value.ok_or_else(|| Failure::usage(format!("the environment variable `{variable}` is not set")))
        });
        let (secret, me) = (secret.transpose()?, session.user(None)?);
        let report = session.app(async |app| {
            let user = whose(app, &name, me).await?;
            let callback = LoginCallback::open().await?;
            let (redirect, scopes) = (callback.redirect(), self.scope);
            let wish = LoginWish { user: user.clone(), redirect, scopes, client_secret: secret };
            let url = app.begin_mcp_login(&name, wish).await?;
            tell(format_args!("open this address to log in to {name}:\n\n  {url}\n"));
            let ended = tokio::select! {
                ended = timeout(LONGEST_LOGIN, callback.wait(&url)) => ended.ok(),
                pasted = pasted() => pasted,
            };
            let Some(callback) = ended else {
                return Err(Failure::failed("nobody logged in within ten minutes")
                    .hint(format!("start again with `clawsmith mcp login {name}`")));
            };
            // The command line acts as the owner.
            Ok(app.finish_mcp_login(&name, user.as_ref(), &callback, ListedTools::Stored).await?)
        })?;
        session.told(&report, format_args!("logged in to {name}: {}", counted(report.tools.len(), "tool")))
    }
}

impl Logout {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let (name, me) = (self.name, session.user(None)?);
        let ended = session.app(async |app| {
            let user = whose(app, &name, me).await?;
            Ok::<_, Failure>(app.end_mcp_login(&name, user.as_ref()).await?)
        })?;
        let words = match ended {
            true => format!("logged out of {name}"),
            false => format!("nobody was logged in to {name}"),
        };
        session.told(&json!({ "ended": ended }), words)
    }
}

/// Returns the user of the login; `None` if one login serves all.
async fn whose(app: &App, name: &ServerName, me: UserId) -> Result<Option<UserId>, Failure> {
    Ok(is_per_user(&app.mcp_server(name).await?.server).then_some(me))
}

/// Waits for an address on standard input; forever if there is none.
async fn pasted() -> Option<String> {
    let mut lines = typed_lines();
    while let Some(line) = lines.recv().await {
        match line.trim() {
            "" => {}
            address if address.starts_with("http") => return Some(address.to_owned()),
            _ => tell("that is not an address; paste the whole address of the page that the browser shows"),
        }
    }
    std::future::pending().await
}
