//! Setting up a model: the answers, a test of them, and the configuration file that is written.
//!
//! The file's own text is preserved, to the last comment. The key is never in it: it is sealed in the store,
//! or in an environment variable.

pub mod answers;
mod plan;
mod rewrite;

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{Clock as _, Fault, ModelError, Models as _};
use claw_core::store::SecretPlace;
use claw_core::{SecretName, TenantId};
use claw_host::SystemClock;
use claw_llm::{KeyPlace, Keys, ProviderKind};
use secrecy::SecretString;
use serde::Serialize;
use toml::{Table, Value};

pub use self::plan::{ASK_DELETES, FoundToolchains, ModelPlan};
use super::{Error, Setup, key_in_environment, model_probe};
use crate::config::{Loaded, NAME, Surroundings};

/// The longest the test waits for an answer to begin, in seconds.
const PATIENCE_SECS: u32 = 60;

/// A model to be set up.
pub struct NewModel {
    /// The provider's name.
    pub provider: String,
    /// The protocol; `None` if the provider is known by name.
    pub kind: Option<ProviderKind>,
    /// The address; `None` for the provider's default.
    pub base_url: Option<String>,
    /// The model.
    pub model: String,
    /// The API key.
    pub key: NewKey,
}

/// The place of an API key.
pub enum NewKey {
    /// The provider needs none.
    None,
    /// An environment variable.
    Env(String),
    /// A given key, to be sealed under the provider's name.
    Given(SecretString),
}

/// The result of testing a model.
#[derive(Debug, Clone, Serialize)]
pub struct ModelTest {
    /// The outcome.
    pub state: ModelTestState,
    /// The outcome in words.
    pub what: String,
    /// The time the answer took, in milliseconds; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<u64>,
}

/// The outcome of a test of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelTestState {
    /// The model answered.
    Works,
    /// The provider rejected the key.
    KeyRefused,
    /// The provider has no such model.
    NoSuchModel,
    /// The provider cannot be reached.
    Unreachable,
    /// The test failed otherwise.
    Failed,
}

/// The configuration file that a model is written to.
pub struct Target {
    /// The file's path.
    pub path: PathBuf,
    /// The text before; `None` if there is no file.
    before: Option<String>,
}

/// The effect of writing on the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetChange {
    /// The text is appended.
    Add,
    /// The file has it already.
    Same,
    /// Provider, model or key are replaced; everything else stays.
    Replace,
    /// The file configures other models in a way that cannot be replaced line by line, and is left alone.
    Clash,
}

impl Target {
    /// The file that is named, or the user's.
    pub fn find(named: Option<&Path>, around: &Surroundings) -> Result<Self, Error> {
        let path = match named {
            Some(path) => around.directory.join(path),
            None => {
                let directory = around.config_dir().ok_or_else(|| {
                    Error::invalid("there is no place for the file: no home directory is set")
                        .hint("name it with `--file`")
                })?;
                directory.join(NAME)
            }
        };
        let unread = |error| Error::failed(format!("`{}` cannot be read", path.display())).because(error);
        // Where it is a link, what it leads to is written, and it stays one.
        let path = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                return Ok(Self { path, before: None });
            }
            Err(error) => return Err(unread(error)),
        };
        if !fs::metadata(&path).map_err(unread)?.is_file() {
            return Err(Error::invalid(format!("`{}` is not a regular file", path.display())));
        }
        let before = fs::read_to_string(&path).map_err(unread)?;
        Ok(Self { path, before: Some(before) })
    }

    /// The configuration by the file as it is.
    pub fn setup(&self, around: &Surroundings) -> Result<Setup, Error> {
        proposed(&self.path, self.before.clone().unwrap_or_default(), around)
    }

    /// The configuration with the text in it.
    fn with(&self, text: &str, around: &Surroundings) -> Result<Setup, Error> {
        proposed(&self.path, self.after(text, &[]), around)
    }

    /// Tells how writing the text would change the file, which was read as a configuration before.
    fn change(&self, text: &str) -> TargetChange {
        let models = |text: &str| toml::from_str::<Table>(text).ok()?.remove("models");
        match self.before.as_deref().and_then(models) {
            None => TargetChange::Add,
            there if there == models(text) => TargetChange::Same,
            Some(_) if self.replaced(text).is_some() => TargetChange::Replace,
            Some(_) => TargetChange::Clash,
        }
    }

    /// Whether the file has a table of this name, so that no second one can be added to it.
    fn has(&self, table: &str) -> bool {
        let whole = self.before.as_deref().and_then(|text| toml::from_str::<Table>(text).ok());
        whole.is_some_and(|whole| whole.contains_key(table))
    }

    /// The file with another model in it; `None` where it has none, or cannot be changed line by line.
    fn replaced(&self, text: &str) -> Option<String> {
        rewrite::replaced(self.before.as_deref()?, text)
    }

    /// The file's text once a model is set up and these tables are added; without a text, no model is.
    fn after(&self, text: &str, added: &[String]) -> String {
        let models = match self.change(text) {
            _ if text.is_empty() => self.before.clone().unwrap_or_default(),
            TargetChange::Add => self.appended(text),
            TargetChange::Replace => self.replaced(text).unwrap_or_default(),
            TargetChange::Same | TargetChange::Clash => self.before.clone().unwrap_or_default(),
        };
        let after = |whole: String, table: &String| appended(Some(&whole), table);
        added.iter().fold(models, after)
    }

    fn appended(&self, text: &str) -> String {
        appended(self.before.as_deref(), text)
    }
}

fn appended(before: Option<&str>, text: &str) -> String {
    match before {
        None | Some("") => text.to_owned(),
        Some(before) if before.ends_with('\n') => format!("{before}\n{text}"),
        Some(before) => format!("{before}\n\n{text}"),
    }
}

impl Target {
    /// Writes the model and further tables, whole or not at all, for its owner alone.
    pub fn write(&self, text: &str, added: &[String]) -> Result<(), Error> {
        let shown = self.path.display();
        let failed = |error: io::Error| {
            Error::failed(format!("`{shown}` cannot be written"))
                .because(error)
                .hint("make the directory writable, or name another file with `--file`")
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        new.write_all(self.after(text, added).as_bytes()).map_err(failed)?;
        new.as_file().sync_all().map_err(failed)?;
        let changed = || {
            Error::failed(format!("`{shown}` was changed meanwhile, and is not overwritten"))
                .hint("run `clawsmith onboard` again")
        };
        let Some(before) = &self.before else {
            return match new.persist_noclobber(&self.path) {
                Ok(_) => Ok(()),
                Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(changed()),
                Err(error) => Err(failed(error.error)),
            };
        };
        if fs::read(&self.path).map_err(failed)? != before.as_bytes() {
            return Err(changed());
        }
        new.persist(&self.path).map_err(|error| failed(error.error))?;
        Ok(())
    }
}

/// The text that sets a model up. A key is never in it.
fn text(model: &NewModel) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let NewModel { provider, kind, base_url, model, key } = model;
    let mut own = String::new();
    if *kind == Some(ProviderKind::OpenAi) {
        own += "kind = \"openai\"\n";
    }
    if let Some(url) = base_url {
        own += &format!("base_url = {}\n", quoted(url));
    }
    match key {
        NewKey::None => {}
        NewKey::Env(name) => own += &format!("key_env = [{}]\n", quoted(name)),
        NewKey::Given(_) => own += &format!("key_secret = [{}]\n", quoted(provider)),
    }
    let mut text = format!("[models]\nprovider = {}\nmodel = {}\n", quoted(provider), quoted(model));
    if !own.is_empty() {
        text += &format!("\n[models.providers.{provider}]\n{own}");
    }
    text
}

/// The configuration that a file with this text would be.
fn proposed(path: &Path, text: String, around: &Surroundings) -> Result<Setup, Error> {
    Ok(Setup { loaded: Loaded::proposed(path, text, around)?, around: around.clone(), local_user: false })
}

impl Setup {
    /// Refuses an invalid model.
    fn check_model(&self, model: &NewModel) -> Result<(), Error> {
        self.models(OfferedKeys::new(&self.around, model), None).map(drop)
    }

    /// Tests a new model by asking for one word.
    pub async fn test_model(&self, model: &NewModel) -> Result<ModelTest, Error> {
        let mut setup = self.clone();
        let config = &mut setup.loaded.config.models;
        config.retries = 0;
        config.fallback = Vec::new();
        config.first_byte_secs = config.first_byte_secs.min(PATIENCE_SECS);
        let providers = setup.models(OfferedKeys::new(&self.around, model), None)?;
        let named = (Some(model.provider.as_str()), Some(model.model.as_str()));
        let found = match providers.model(self.tenant(), named.0, named.1).await {
            Ok(found) => found,
            Err(error) => {
                return Ok(ModelTest { state: ModelTestState::Failed, what: error.message, millis: None });
            }
        };
        Ok(match model_probe::ask(&*found).await {
            Ok(took) => works(model, took),
            Err(error) => failed(model, &error),
        })
    }

    /// Seals an API key under its provider's name.
    pub async fn seal_key(&self, provider: &str, key: &SecretString) -> Result<(), Error> {
        let name = SecretName::new(provider).map_err(|error| Error::invalid(error.to_string()))?;
        let place = SecretPlace { tenant: self.tenant().clone(), agent: None, name };
        let app = self.open().await?;
        let put = app.vault().await?.put_secret(&place, key, SystemClock.now()).await;
        app.close().await;
        Ok(put?)
    }
}

fn works(NewModel { provider, model, .. }: &NewModel, took: Duration) -> ModelTest {
    let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    ModelTest {
        state: ModelTestState::Works,
        what: format!("`{provider}/{model}` answered in {millis} ms"),
        millis: Some(millis),
    }
}

fn failed(NewModel { provider, model, .. }: &NewModel, error: &ModelError) -> ModelTest {
    let (state, what) = match error.fault {
        Fault::Unauthorised => (ModelTestState::KeyRefused, format!("`{provider}` refused the key")),
        // The only fault of this kind that a server tells.
        Fault::NotSetUp if error.message.starts_with("status 404") => {
            (ModelTestState::NoSuchModel, format!("`{provider}` has no model `{model}`"))
        }
        Fault::Connection | Fault::TimedOut => {
            (ModelTestState::Unreachable, format!("`{provider}` cannot be reached"))
        }
        Fault::RateLimited { .. } => {
            (ModelTestState::Failed, format!("`{provider}` has reached a limit, or its account is empty"))
        }
        _ => (ModelTestState::Failed, format!("`{provider}/{model}` did not answer: {}", error.fault)),
    };
    ModelTest { state, what: format!("{what}: {}", error.message), millis: None }
}

/// The given key, before it is stored, and those of the environment.
struct OfferedKeys {
    around: Surroundings,
    key: Option<SecretString>,
}

impl OfferedKeys {
    fn new(around: &Surroundings, model: &NewModel) -> Arc<Self> {
        let key = match &model.key {
            NewKey::Given(key) => Some(key.clone()),
            NewKey::None | NewKey::Env(_) => None,
        };
        Arc::new(Self { around: around.clone(), key })
    }
}

#[async_trait]
impl Keys for OfferedKeys {
    async fn key(&self, _: &TenantId, place: &KeyPlace) -> Result<Option<SecretString>, String> {
        match place {
            KeyPlace::Env(name) => key_in_environment(&self.around, name),
            KeyPlace::Secret(_) => Ok(self.key.clone()),
        }
    }
}
