//! `clawsmith sessions`: find a session again, name it, fork it, remove it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use claw_core::counted::counted;
use claw_core::message::Part;
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Circle, MessagePage, Role};
use claw_core::tool::Caller;
use claw_host::SystemClock;
use claw_terminal::{Cell, Table, tell, visible};
use clawsmith::app::caller::local_workspace;
use clawsmith::app::session_list::{short_id, shortened};
use clawsmith::app::shown_call::summary;
use clawsmith::app::{App, SessionView};
use serde::Deserialize as _;
use serde_json::json;

use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_app;

/// The most messages that are read at a time.
const PAGE: usize = 500;

/// Sessions of a user at the terminal.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List sessions, the latest first.
    List(List),
    /// Print the messages of a session.
    Show(One),
    /// Give a session a title; an empty one removes it.
    Rename(Rename),
    /// Copy a session, to continue it in another direction.
    Fork(One),
    /// Remove a session and its messages. The ledger and file changes stay.
    Remove(One),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only sessions of this directory.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// The most sessions listed.
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    caller: CallerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct One {
    /// The session: its id, title or key.
    #[arg(value_name = "SESSION")]
    name: String,
    #[command(flatten)]
    caller: CallerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Rename {
    #[command(flatten)]
    one: One,
    /// The new title.
    #[arg(value_name = "TITLE")]
    title: String,
}

impl Sessions {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let caller = match &self {
            Self::List(list) => &list.caller,
            Self::Show(one) | Self::Fork(one) | Self::Remove(one) => &one.caller,
            Self::Rename(rename) => &rename.one.caller,
        };
        let setup = caller.load(session)?;
        let caller = caller.caller_here(&setup)?;
        with_app(&setup, async |app| {
            match &self {
                Self::List(list) => list.run(session, app, &caller).await?,
                Self::Show(one) => show(session, app, &caller, &one.name).await?,
                Self::Rename(Rename { one, title }) => {
                    let view = app.session_named(&caller, &one.name).await?;
                    app.rename_session(&caller, &view.session, title).await?;
                    changed(session, &app.session_named(&caller, view.session.as_str()).await?, "renamed")?;
                }
                Self::Fork(one) => {
                    let view = app.session_named(&caller, &one.name).await?;
                    let key = app.fork_session(&caller, &view.session).await?;
                    let fork = app.session_named(&caller, key.as_str()).await?;
                    changed(session, &fork, "forked")?;
                    if !session.out.json {
                        tell(format_args!("next: clawsmith chat --resume {}", short_id(&key)));
                    }
                }
                Self::Remove(one) => {
                    let view = app.session_named(&caller, &one.name).await?;
                    app.remove_session(&caller, &view).await?;
                    changed(session, &view, "removed")?;
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl List {
    async fn run(&self, session: &mut Session, app: &App, caller: &Caller) -> Result<(), Failure> {
        let of =
            self.workspace.as_deref().map(|path| local_workspace(Some(path), &session.around)).transpose()?;
        let mut list = app.session_list(caller, of.as_deref()).await?;
        let more = list.len().saturating_sub(self.limit);
        list.truncate(self.limit);
        if session.out.json {
            return Ok(session.out.json(&list)?);
        }
        if list.is_empty() {
            return Ok(session.out.line("No sessions yet; `clawsmith chat` begins one.")?);
        }
        table(session, &list)?;
        if more > 0 {
            tell(format_args!("{more} more; `--limit` shows them"));
        }
        Ok(())
    }
}

/// A table of sessions.
pub(super) fn table(session: &mut Session, list: &[SessionView]) -> Result<(), Failure> {
    let mut table = Table::new(["id", "last", "messages", "workspace", "about"]);
    let home = session.around.home().map(ToOwned::to_owned);
    for view in list {
        let workspace = view.workspace.as_deref().map(|path| {
            let below = home.as_ref().and_then(|home| path.strip_prefix(home).ok());
            below.map_or_else(|| path.display().to_string(), |below| format!("~/{}", below.display()))
        });
        let state = match (view.open, view.running) {
            (true, _) => " (open)",
            (_, true) => " (running)",
            _ => "",
        };
        table.row([
            Cell::strong(&view.id),
            Cell::new(format!("{}{state}", ago(view.last))),
            Cell::new(view.messages),
            Cell::new(workspace.unwrap_or_default()),
            Cell::new(&view.about),
        ]);
    }
    Ok(session.out.table(&table)?)
}

fn changed(session: &mut Session, view: &SessionView, how: &str) -> Outcome {
    session.told(view, format_args!("{how} {} ({})", view.id, shortened(&view.about, 60)))
}

async fn show(session: &mut Session, app: &App, caller: &Caller, name: &str) -> Result<(), Failure> {
    let view = app.session_named(caller, name).await?;
    let circle = Circle::of(caller);
    let said = app.store().said_in(&caller.tenant, &circle, &view.session, MessagePage::last(PAGE)).await;
    let said = said.map_err(|error| Failure::failed("the session cannot be read").because(error))?;
    let said = said.unwrap_or_default();
    if session.out.json {
        return Ok(session.out.json(&json!({ "session": view, "messages": said }))?);
    }
    let about = visible(&view.about);
    session.out.heading(&format!("{} · {about} · {}", view.id, counted(view.messages, "message")))?;
    for message in said {
        let who = match message.new.role {
            Role::User => "you",
            Role::Assistant => "agent",
            Role::System => "system",
            Role::Tool => continue,
        };
        for part in Vec::<Part>::deserialize(&message.new.content).unwrap_or_default() {
            match part {
                Part::Text { text } if !text.trim().is_empty() => {
                    session.out.line("")?;
                    session.out.field(who, text.trim())?;
                }
                Part::Call(wanted) => {
                    session
                        .out
                        .field("", &format!("→ {} {}", wanted.tool, summary(&wanted.tool, &wanted.args)))?;
                }
                Part::Image(image) => session.out.field(who, &format!("[{}]", image.mime))?,
                _ => {}
            }
        }
    }
    Ok(())
}

/// Says how long ago a time is.
pub(super) fn ago(at: UnixMillis) -> String {
    clawsmith::app::words::ago(at, SystemClock.now())
}
