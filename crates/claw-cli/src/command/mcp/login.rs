//! `clawsmith mcp login` and `logout`.

use std::time::Duration;

use clap::Args;
use claw_core::port::UnixMillis;
use claw_core::store::McpOAuth;
use claw_core::{ServerName, UserId};
use claw_terminal::{tell, visible};
use clawsmith::app::App;
use clawsmith::app::mcp::protocol::{LoginView, LoginWish};
use clawsmith::app::mcp::{LoginCallback, is_per_user};
use clawsmith::app::words::time;
use serde_json::json;
use tokio::time::timeout;

use crate::cli::Session;
use crate::failure::{Failure, Outcome};

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
            let value = session.around.variable(variable).and_then(|value| value.to_str());
            value
                .map(|value| value.to_owned().into())
                .ok_or_else(|| Failure::usage(format!("the environment has no variable `{variable}`")))
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
                return Err(Failure::failed("nobody logged in within ten minutes").hint("begin again"));
            };
            Ok(app.finish_mcp_login(&name, user.as_ref(), &callback).await?)
        })?;
        session.told(&report, format_args!("logged in to {name}: {} tools", report.tools.len()))
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
            true => format!("the login at {name} is forgotten"),
            false => format!("nobody was logged in to {name}"),
        };
        session.told(&json!({ "ended": ended }), words)
    }
}

/// A login for a person.
pub(super) fn described(name: &ServerName, oauth: &McpOAuth, login: Option<&LoginView>) -> String {
    let whose = if oauth.per_user { "yours" } else { "one for all" };
    let Some(login) = login else { return format!("none; `clawsmith mcp login {name}` logs in") };
    let mut words = vec![whose.to_owned()];
    if !login.scopes.is_empty() {
        words.push(format!("scopes {}", visible(&login.scopes.join(" "))));
    }
    match (login.renewable, login.expires) {
        (true, _) => words.push("renewed by itself".to_owned()),
        (false, Some(ends)) => words.push(format!("until {}", time(UnixMillis(ends as i64 * 1000)))),
        (false, None) => {}
    }
    words.join("; ")
}

/// Returns the user of the login; `None` if one login serves all.
async fn whose(app: &App, name: &ServerName, me: UserId) -> Result<Option<UserId>, Failure> {
    Ok(is_per_user(&app.mcp_server(name).await?.server).then_some(me))
}

/// Waits for an address on standard input; forever if there is none.
async fn pasted() -> Option<String> {
    let (sender, mut lines) = tokio::sync::mpsc::channel::<String>(1);
    // A thread of its own: the runtime would wait for one of its own that reads, and the command would not end.
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    while let Some(line) = lines.recv().await {
        match line.trim() {
            "" => {}
            address if address.starts_with("http") => return Some(address.to_owned()),
            _ => tell("that is no address; paste the whole address of the page that the browser shows"),
        }
    }
    std::future::pending().await
}
