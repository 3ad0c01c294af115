//! `clawsmith chat --connect URL`: the same chat, with a session that lives at a gateway.
//!
//! The gateway's workers answer, in the workspace that the key's user has there. Nothing of the session is stored here but
//! the lines that were typed.

use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use claw_core::{JobId, SessionKey};
use claw_gateway::client::{GatewayAddress, GatewayClient, RemoteSession, ShownRemote};
use claw_terminal::style::QUIET;
use claw_terminal::{Entry, Names, complain, tell, visible};
use clawsmith::app::session_list::{shortened, words};
use clawsmith::app::shown_session::Answerer;
use secrecy::SecretString;
use tokio::sync::Mutex;

use super::slash_commands::{self, SlashCommand};
use super::view::View;
use super::{Chat, MOST_BYTES, STOPPING, line_editor, unread};
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::runtime;

/// The environment variable that holds the key, unless `--key-env` names another.
pub(super) const KEY_ENV: &str = "CLAWSMITH_API_KEY";

/// How much of what was last said is shown when a session goes on.
const RECAP: usize = 4;
const RECAP_CHARACTERS: usize = 160;

const HELP: &[(&str, &str)] = &[
    ("/new", "begin a new session"),
    ("/resume KEY", "resume another session of yours, by its key"),
    ("/session", "the key of this session"),
    ("/cost", "what this session cost so far"),
    ("/help", "this"),
    ("/quit", "quit (or Ctrl-D); the session is kept"),
];

/// Talks with a gateway.
pub(super) fn run(chat: &Chat, session: &mut Session, url: &str) -> Outcome {
    let address: GatewayAddress = url.parse()?;
    let key = key(chat, session)?;
    let message = match chat.is_interactive(session) {
        true => None,
        false => Some(chat.message()?),
    };
    runtime()?.block_on(async {
        let named = chat.resume.as_deref().filter(|name| !name.is_empty()).or(chat
            .caller
            .session
            .as_ref()
            .map(SessionKey::as_str));
        let mut remote = RemoteSession::open(address, key, Some(chat.caller.agent.as_str()), named).await?;
        match message {
            Some(message) => {
                let text = match &message.piped {
                    Some(piped) => format!("{}\n\n{piped}", message.text),
                    None => message.text,
                };
                let (answerer, client) = (answerer(&remote), remote.client().clone());
                let run = remote.send(&text, chat.remote_approvals()).await?;
                let remote = Rc::new(Mutex::new(remote));
                let mut view = View::new(Box::new(ShownRemote::of(&remote).await), session.out.json);
                view.introduce(&mut session.out, &answerer)?;
                let ended = followed(session, &mut view, &client, run, Some(STOPPING)).await;
                view.tell_usage(&mut session.out, run).await?;
                Ok(ExitCode::from(ended?))
            }
            None => talk(chat, session, remote).await,
        }
    })
}

/// The key, from the environment: an argument could be read by every user of this machine.
fn key(chat: &Chat, session: &Session) -> Result<SecretString, Failure> {
    let name = chat.key_env.as_deref().unwrap_or(KEY_ENV);
    match session.variable(name).map(str::trim).filter(|value| !value.is_empty()) {
        Some(value) => Ok(SecretString::from(value.to_owned())),
        None => Err(Failure::usage(format!("the environment variable `{name}` holds no key")).hint(format!(
            "run `clawsmith api-keys create` on the gateway's machine, and set `{name}` here to the key"
        ))),
    }
}

fn answerer(remote: &RemoteSession) -> Answerer {
    let opened = remote.opened();
    Answerer { provider: opened.provider.clone(), model: opened.model.clone(), demo: opened.demo }
}

/// Shows a run until it is over. Ctrl-C stops it; with a note, a second one ends the program.
async fn followed(
    session: &mut Session,
    view: &mut View,
    client: &GatewayClient,
    run: JobId,
    note: Option<&str>,
) -> Result<u8, Failure> {
    let key = view.key().clone();
    view.follow(&mut session.out, run, note, async || client.abort(&key).await).await
}

/// Talks until the person goes.
async fn talk(chat: &Chat, session: &mut Session, remote: RemoteSession) -> Outcome {
    let setup = session.load()?;
    let (client, answerer) = (remote.client().clone(), answerer(&remote));
    let agent = remote.opened().agent_id.to_string();
    let remote = Rc::new(Mutex::new(remote));
    let mut view = View::new(Box::new(ShownRemote::of(&remote).await), false);
    view.introduce(&mut session.out, &answerer)?;
    let address = chat.connect.as_deref().unwrap_or_default();
    session.out.styled(QUIET, &format!("Agent {agent} · {answerer} · {address} · /help for commands"))?;
    recap(session, &client, view.key()).await?;
    let mut lines = line_editor(&setup, session, Names::of_commands(HELP), Path::new(""))?;
    loop {
        lines.put(&view.take_typed());
        match lines.entry(&agent).await.map_err(unread)? {
            Entry::End => break,
            Entry::Message(text) if text.len() > MOST_BYTES / 2 => {
                complain(
                    "not sent",
                    format_args!(
                        "the message has {} bytes; at most {} are allowed",
                        text.len(),
                        MOST_BYTES / 2
                    ),
                );
            }
            Entry::Message(text) => {
                let sent = remote.lock().await.send(&text, chat.remote_approvals()).await;
                match sent {
                    Ok(run) if followed(session, &mut view, &client, run, None).await? == 130 => {
                        tell("Stopped. The partial answer is saved.");
                    }
                    Ok(_) => {}
                    Err(error) => complain("not sent", error),
                }
            }
            Entry::Command { word, rest } => {
                let command = SlashCommand { word: &word, rest: &rest };
                let done = obey(session, &remote, &client, &mut view, command).await;
                done.unwrap_or_else(|failure| complain("error", failure));
            }
        }
        session.out.flush()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a command.
async fn obey(
    session: &mut Session,
    remote: &Rc<Mutex<RemoteSession>>,
    client: &GatewayClient,
    view: &mut View,
    SlashCommand { word, rest }: SlashCommand<'_>,
) -> Result<(), Failure> {
    match (word, rest) {
        ("help" | "?", _) => slash_commands::help_of(session, HELP),
        ("session", _) => Ok(session.out.line(view.key())?),
        ("cost", _) => slash_commands::cost_of(session, &view.usage().await?),
        ("resume", "") => {
            Err(Failure::usage("which session?").hint("/session shows the key of the current one"))
        }
        ("new" | "resume", _) => {
            let named = Some(rest).filter(|_| word == "resume");
            remote.lock().await.move_to(named).await?;
            *view = View::new(Box::new(ShownRemote::of(remote).await), false);
            session.out.line(format_args!("session {}", view.key()))?;
            recap(session, client, view.key()).await
        }
        _ => {
            Err(Failure::usage(format!("there is no command `/{word}` in a chat with a gateway"))
                .hint("/help"))
        }
    }
}

/// Says what was last said in a session.
async fn recap(session: &mut Session, client: &GatewayClient, key: &SessionKey) -> Result<(), Failure> {
    // A fresh session is not there before its first message.
    let Ok(messages) = client.messages(key, None, RECAP).await else { return Ok(session.out.flush()?) };
    for message in messages {
        let said = shortened(&words(&message.content), RECAP_CHARACTERS);
        if !said.trim().is_empty() {
            session.out.styled(QUIET, &format!("  {}", visible(&said)))?;
        }
    }
    Ok(session.out.flush()?)
}
