//! A chat of this process with an agent: the worker that answers, the caller, the model and the mode.
//!
//! Messages go into the queue like all others, in a lane of their session: this process takes them from there, and if
//! it dies, the next chat in the session resumes where it stopped.

use std::path::{Path, PathBuf};

use claw_core::JobId;
use claw_core::counted::counted;
use claw_core::message::Part;
use claw_core::tool::Caller;
use claw_registry::Asking;

use super::attached_files::{self, Attachment};
use super::mode::Mode;
use super::shown_session::{Answerer, LocalSession};
use super::{App, ChosenSession, Error, ModelChoice, Sessions, SessionsOptions, private_lane};

/// The answers of a chat: by whom, and within which limits.
#[derive(Debug, Clone)]
pub struct ChatOptions {
    /// A script that is played instead of asking a model.
    pub script: Option<PathBuf>,
    /// The model that answers; `None` for the agent's.
    pub model: Option<ModelChoice>,
    /// The actions allowed without asking.
    pub mode: Mode,
}

/// A chat of this process.
pub struct LocalChat {
    app: App,
    caller: Caller,
    options: ChatOptions,
    sessions: Sessions,
}

impl LocalChat {
    /// Starts a worker for the caller's session.
    pub async fn start(app: &App, caller: Caller, options: ChatOptions) -> Result<Self, Error> {
        let sessions = started(app, &caller, &options).await?;
        Ok(Self { app: app.clone(), caller, options, sessions })
    }

    /// The caller of the agent's calls.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The worker's sessions.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// The actions allowed without asking.
    pub fn mode(&self) -> Mode {
        self.options.mode
    }

    /// Changes the actions that messages from now on allow without asking.
    pub fn set_mode(&mut self, mode: Mode) {
        self.options.mode = mode;
        self.sessions.set_mode(mode);
    }

    /// The provider and model that answer.
    pub async fn answerer(&self) -> Result<Answerer, Error> {
        Ok(Answerer::of(&*self.sessions.model(&self.caller).await?))
    }

    /// The session as it goes on from now.
    pub async fn shown(&self) -> Result<LocalSession, Error> {
        LocalSession::new(&self.sessions, &self.app, &self.caller).await
    }

    /// Says which background commands ended with programs that died; each is reported once.
    pub fn lost(&self) -> Vec<String> {
        let Caller { tenant, session, .. } = &self.caller;
        let (here, elsewhere): (Vec<_>, Vec<_>) = self
            .sessions
            .lost()
            .iter()
            .partition(|process| process.new.tenant == *tenant && process.new.session == *session);
        let mut lines: Vec<String> = Vec::new();
        for process in here {
            let (id, command) = (process.new.id.name(), &process.new.command);
            lines.push(format!(
                "lost: the background command `{id}` ended with the program that ran it: {command}"
            ));
        }
        if !elsewhere.is_empty() {
            let commands = counted(elsewhere.len(), "background command");
            lines.push(format!("also lost: {commands} of other sessions"));
        }
        lines
    }

    /// Returns the files named as `@path` in a message; a picture is refused if the model takes none.
    pub async fn named_in(&self, text: &str) -> Result<Vec<Attachment>, Error> {
        let attached = attached_files::named_in(text, &self.caller.workspace)?;
        if attached.iter().any(|one| matches!(one.part, Part::Image(_))) {
            self.must_take_images().await?;
        }
        Ok(attached)
    }

    /// A picture to be sent, relative to the workspace, if the model accepts any.
    pub async fn picture(&self, path: &Path) -> Result<Attachment, Error> {
        self.must_take_images().await?;
        attached_files::picture(&self.caller.workspace.join(path))
    }

    async fn must_take_images(&self) -> Result<(), Error> {
        let model = self.sessions.model(&self.caller).await?;
        let card = model.card();
        if !card.images {
            let message = format!("`{}/{}` takes no images", card.provider, card.model);
            return Err(Error::invalid(message).hint(format!(
                "choose another model with `--model` or `/model`; if it does take images, set \
                 `models.providers.{}.models.\"{}\".images = true`",
                card.provider, card.model
            )));
        }
        Ok(())
    }

    /// Stores a message, and the run that will answer it; returns the run.
    pub async fn send(&self, parts: Vec<Part>, asking: Asking) -> Result<JobId, Error> {
        self.sessions.send(&self.caller, parts, asking).await
    }

    /// Stops every run of the session.
    pub async fn stop(&self) -> Result<(), Error> {
        let by = self.caller.user.as_ref().map_or("cli", |user| user.as_str());
        self.sessions.stop(&self.caller, by).await
    }

    /// Goes on in another session; returns how many background commands were ended.
    pub async fn move_to(&mut self, to: &ChosenSession) -> Result<usize, Error> {
        let mut caller = self.caller.clone();
        caller.session = to.session.clone();
        if let Some(workspace) = to.earlier.as_ref().and_then(|earlier| earlier.workspace.clone()) {
            caller.workspace = workspace;
        }
        self.app.setup().config().sandbox.sandboxing().apply(&mut caller);
        self.caller = caller;
        self.restart().await
    }

    /// Lets another model answer from now on; returns how many background commands were ended.
    pub async fn use_model(&mut self, model: ModelChoice) -> Result<usize, Error> {
        self.sessions.model_named(&self.caller, &model).await?;
        self.options.model = Some(model);
        self.restart().await
    }

    async fn restart(&mut self) -> Result<usize, Error> {
        let ended = self.end().await?;
        self.sessions = started(&self.app, &self.caller, &self.options).await?;
        Ok(ended)
    }

    /// Ends the worker once its runs have ended; returns how many background commands were ended.
    pub async fn end(&self) -> Result<usize, Error> {
        self.sessions.end(None).await
    }
}

async fn started(app: &App, caller: &Caller, options: &ChatOptions) -> Result<Sessions, Error> {
    let instead = options.model.as_ref().map(|choice| (caller.agent.clone(), choice.clone()));
    let sessions = app
        .sessions(SessionsOptions {
            lanes: vec![private_lane(&caller.session)],
            script: options.script.clone(),
            instead,
            owner_answers: true,
            ..SessionsOptions::default()
        })
        .await?;
    sessions.set_mode(options.mode);
    Ok(sessions)
}
