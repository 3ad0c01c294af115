//! `clawsmith mcp login` and `logout`.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use claw_core::port::UnixMillis;
use claw_core::store::McpOAuth;
use claw_core::{ServerName, UserId};
use claw_terminal::{tell, visible};
use clawsmith::app::App;
use clawsmith::app::mcp::is_per_user;
use clawsmith::app::mcp::protocol::{LoginView, LoginWish};
use clawsmith::app::words::time;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::server_name;
use crate::caller::user_of;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_app;

/// The longest a person may take to log in.
const LONGEST_LOGIN: Duration = Duration::from_secs(10 * 60);
/// The longest head of a request that is read, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// A login to begin.
#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server's name.
    name: String,
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
    name: String,
}

impl Login {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = server_name(&self.name)?;
        let secret = self.client_secret.as_deref().map(|variable| {
            let value = session.around.variable(variable).and_then(|value| value.to_str());
            value
                .map(|value| value.to_owned().into())
                .ok_or_else(|| Failure::usage(format!("the environment has no variable `{variable}`")))
        });
        let secret = secret.transpose()?;
        let (setup, me) = (session.load()?, me(session)?);
        let report = with_app(&setup, async |app| {
            let user = whose(app, &name, me).await?;
            let listener = TcpListener::bind("127.0.0.1:0").await;
            let listener =
                listener.map_err(|error| Failure::failed("no port could be opened").because(error))?;
            let port = listener.local_addr().map_err(|error| Failure::failed(error.to_string()))?.port();
            let redirect = format!("http://127.0.0.1:{port}/callback");
            let wish = LoginWish { user: user.clone(), redirect, scopes: self.scope, client_secret: secret };
            let url = app.begin_mcp_login(&name, wish).await?;
            tell(format_args!("open this address to log in to {name}:\n\n  {url}\n"));
            let ended = tokio::select! {
                ended = timeout(LONGEST_LOGIN, sent_back(&listener, state_of(&url))) => ended.ok().flatten(),
                pasted = pasted() => pasted,
            };
            let Some(callback) = ended else {
                return Err(Failure::failed("nobody logged in within ten minutes").hint("begin again"));
            };
            Ok(app.finish_mcp_login(&name, user.as_ref(), &callback).await?)
        })?;
        match session.out.json {
            true => session.out.json(&report)?,
            false => session.out.line(format_args!("logged in to {name}: {} tools", report.tools.len()))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Logout {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = server_name(&self.name)?;
        let me = me(session)?;
        let setup = session.load()?;
        let ended = with_app(&setup, async |app| {
            let user = whose(app, &name, me).await?;
            Ok(app.end_mcp_login(&name, user.as_ref()).await?)
        })?;
        match (session.out.json, ended) {
            (true, _) => session.out.json(&serde_json::json!({ "ended": ended }))?,
            (false, true) => session.out.line(format_args!("the login at {name} is forgotten"))?,
            (false, false) => session.out.line(format_args!("nobody was logged in to {name}"))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(super) fn me(session: &Session) -> Result<UserId, Failure> {
    user_of(&session.around).map_err(|error| Failure::usage(error.to_string()))
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

/// Waits for the browser to be sent back; returns the address.
async fn sent_back(listener: &TcpListener, state: &str) -> Option<String> {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        if let Ok(Some(callback)) = timeout(Duration::from_secs(10), answer(stream)).await
            && state_of(&callback) == state
        {
            return Some(callback);
        }
    }
}

/// The state in an address, by which a login knows its own end.
fn state_of(address: &str) -> &str {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    query.split('&').find_map(|pair| pair.strip_prefix("state=")).unwrap_or_default()
}

/// Answers one request of a browser; returns its address if it ends the login.
async fn answer(mut stream: TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.ok()?;
        head.extend_from_slice(&piece[..read]);
        if read == 0 || head.len() > LONGEST_HEAD {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head);
    let path = head.lines().next()?.strip_prefix("GET ")?.split(' ').next()?;
    let ends = path.starts_with("/callback?");
    let (status, words) = match ends {
        true => ("200 OK", "You can close this page and go back to the terminal."),
        false => ("404 Not Found", "There is nothing here."),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{words}",
        words.len()
    );
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    ends.then(|| format!("http://127.0.0.1{path}"))
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
