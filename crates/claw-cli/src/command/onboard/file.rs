//! The file that is written: what is there stays as it is, to the last comment.

use std::fs::{self, DirBuilder};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use claw_llm::ProviderKind;
use clawsmith::app::Setup;
use clawsmith::config::{Loaded, NAME, Surroundings};
use toml::{Table, Value};

use super::questions::{Answers, Key};
use crate::failure::Failure;

/// The file.
pub(super) struct Target {
    pub(super) path: PathBuf,
    /// What is in it; `None` where there is none.
    before: Option<String>,
}

/// What is to become of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// The text goes to its end.
    Add,
    /// It says so already.
    Same,
    /// It says something else of models, which a person wrote.
    Clash,
}

impl Target {
    /// The file that is named, or the user's.
    pub(super) fn find(named: Option<&Path>, around: &Surroundings) -> Result<Self, Failure> {
        let path = match named {
            Some(path) => around.directory.join(path),
            None => {
                let directory = around.config_dir().ok_or_else(|| {
                    Failure::usage("there is no place for the file: no home directory is set")
                        .hint("name it with `--file`")
                })?;
                directory.join(NAME)
            }
        };
        let unread = |error| Failure::failed(format!("`{}` cannot be read", path.display())).because(error);
        // Where it is a link, what it leads to is written, and it stays one.
        let path = match path.canonicalize() {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => {
                return Ok(Self { path, before: None });
            }
            Err(error) => return Err(unread(error)),
        };
        if !fs::metadata(&path).map_err(unread)?.is_file() {
            return Err(Failure::usage(format!("`{}` is no file", path.display())));
        }
        let before = fs::read_to_string(&path).map_err(unread)?;
        Ok(Self { path, before: Some(before) })
    }

    /// What holds by the file as it is.
    pub(super) fn setup(&self, around: &Surroundings) -> Result<Setup, Failure> {
        proposed(&self.path, self.before.clone().unwrap_or_default(), around)
    }

    /// What holds with the text in it.
    pub(super) fn with(&self, text: &str, around: &Surroundings) -> Result<Setup, Failure> {
        proposed(&self.path, self.after(text), around)
    }

    /// What the text would change. The file was read as a configuration before.
    pub(super) fn change(&self, text: &str) -> Change {
        let models = |text: &str| toml::from_str::<Table>(text).ok()?.remove("models");
        match self.before.as_deref().and_then(models) {
            None => Change::Add,
            there if there == models(text) => Change::Same,
            Some(_) => Change::Clash,
        }
    }

    fn after(&self, text: &str) -> String {
        match self.before.as_deref() {
            None | Some("") => text.to_owned(),
            Some(before) if before.ends_with('\n') => format!("{before}\n{text}"),
            Some(before) => format!("{before}\n\n{text}"),
        }
    }

    /// Writes it, whole or not at all, for its owner alone.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        let shown = self.path.display();
        let failed = |error: io::Error| {
            Failure::failed(format!("`{shown}` cannot be written"))
                .because(error)
                .hint("make the directory writable, or name another file with `--file`")
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let mut new = tempfile::NamedTempFile::new_in(directory).map_err(failed)?;
        new.write_all(self.after(text).as_bytes()).map_err(failed)?;
        new.as_file().sync_all().map_err(failed)?;
        let changed = || {
            Failure::failed(format!("`{shown}` was changed meanwhile, and is left as it is"))
                .hint("clawsmith onboard, once more")
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

/// The answers as the file says them. A key is never in it.
pub(super) fn text(answers: &Answers) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let Answers { provider, kind, base_url, model, key } = answers;
    let mut own = String::new();
    if *kind == Some(ProviderKind::OpenAi) {
        own += "kind = \"openai\"\n";
    }
    if let Some(url) = base_url {
        own += &format!("base_url = {}\n", quoted(url));
    }
    match key {
        Key::None => {}
        Key::Env(name) => own += &format!("key_env = [{}]\n", quoted(name)),
        Key::Given(_) => own += &format!("key_secret = [{}]\n", quoted(provider)),
    }
    let mut text = format!("[models]\nprovider = {}\nmodel = {}\n", quoted(provider), quoted(model));
    if !own.is_empty() {
        text += &format!("\n[models.providers.{provider}]\n{own}");
    }
    text
}

/// The configuration that a file with this text would be.
pub(super) fn proposed(path: &Path, text: String, around: &Surroundings) -> Result<Setup, Failure> {
    Ok(Setup { loaded: Loaded::proposed(path, text, around)?, around: around.clone() })
}
