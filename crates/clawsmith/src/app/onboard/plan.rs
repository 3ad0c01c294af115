//! The change of a configuration file that sets a model up, before it is made.

use std::path::Path;

use claw_policy::shell::ShellConfig;

use super::{NewKey, NewModel, Target, TargetChange, proposed, text};
use crate::app::toolchains::Toolchain;
use crate::app::{Error, Setup};
use crate::config::{FoundBy, NAME, Surroundings, find};

/// The table by which a person is asked before a command deletes whole directories, instead of it being refused.
pub const ASK_DELETES: &str = "[shell.ask]\n\"destructive.rm-recursive\" = \"a machine of my own\"\n";

/// The change that sets a model up.
pub struct ModelPlan {
    /// The text that is written. A key is never in it.
    pub text: String,
    /// Its effect on the file.
    pub change: TargetChange,
    /// The configuration with the model, to be tested.
    pub setup: Setup,
}

/// The toolchains of this machine that agents' commands do not reach yet.
pub struct FoundToolchains {
    /// Their names, with the setting that lets commands read them.
    pub words: String,
    /// The table that can be added to the file; `None` if the file has such a table already.
    pub table: Option<String>,
}

impl ModelPlan {
    /// Shows the change to the file of this name, before it is made.
    pub fn announced(&self, answers: &NewModel, file: &str) -> String {
        let mut words = match self.change {
            TargetChange::Add => format!("\nTo be added to `{file}`:\n\n"),
            TargetChange::Same => format!("\n`{file}` already has these settings:\n\n"),
            TargetChange::Replace => format!("\nTo replace provider, model and key in `{file}`:\n\n"),
            TargetChange::Clash => {
                format!(
                    "\n`{file}` already configures other models; the settings for this model would be:\n\n"
                )
            }
        };
        for line in self.text.lines() {
            words += format!("    {line}").trim_end();
            words.push('\n');
        }
        if matches!(answers.key, NewKey::Given(_)) && self.change != TargetChange::Clash {
            let provider = &answers.provider;
            words +=
                &format!("\nThe key is stored encrypted as secret `{provider}`, replacing any stored before");
        }
        words
    }
}

impl ModelPlan {
    /// Says what was written to the file of this name, and what to do next. A project's file is to be accepted.
    pub fn written(&self, answers: &NewModel, file: &str, is_of_project: bool) -> Vec<String> {
        let mut lines = vec![match self.change {
            TargetChange::Add => format!("wrote `{file}`"),
            TargetChange::Replace => format!("changed provider, model and key in `{file}`"),
            _ => format!("`{file}` already has these settings"),
        }];
        if matches!(answers.key, NewKey::Given(_)) {
            lines.push(format!("the key is stored encrypted as secret `{}`", answers.provider));
        }
        lines.push(match is_of_project {
            true => "next: clawsmith config trust, and clawsmith chat".to_owned(),
            false => "next: clawsmith chat".to_owned(),
        });
        lines
    }

    /// Says why nothing was written to the file of this name, and what to do.
    pub fn unwritten(&self, answers: &NewModel, file: &str, works: bool) -> String {
        match (self.change, works) {
            (TargetChange::Clash, _) => {
                let mut text = format!(
                    "`{file}` already configures other models, so it was not changed.\n\
                     To use the new model, replace the model settings in that file with:\n\n{}",
                    self.text
                );
                if matches!(answers.key, NewKey::Given(_)) {
                    text += &format!("\nThen store the key: clawsmith secrets set {}", answers.provider);
                }
                text
            }
            (_, true) => "nothing was written".to_owned(),
            (_, false) => "nothing was written; to write it without a test, use --no-test".to_owned(),
        }
    }
}

impl Target {
    /// Plans to set a model up in this file, which `before` was read from. An invalid model is refused.
    pub fn plan(&self, model: &NewModel, before: Setup) -> Result<ModelPlan, Error> {
        let text = text(model);
        let change = self.change(&text);
        let around = before.around.clone();
        let setup = match change {
            TargetChange::Add | TargetChange::Replace => self.with(&text, &around)?,
            TargetChange::Same => before,
            TargetChange::Clash => {
                let mut setup = before;
                let alone = proposed(Path::new(NAME), text.clone(), &around)?;
                setup.loaded.config.models = alone.loaded.config.models;
                setup
            }
        };
        setup.check_model(model)?;
        Ok(ModelPlan { text, change, setup })
    }

    /// Returns whether the file is a project's, used only as it was accepted. `flag` is the file named by `--config`.
    pub fn is_of_project(&self, flag: Option<&Path>, around: &Surroundings) -> bool {
        let found = find(flag, around);
        found.is_some_and(|found| found.by == FoundBy::Project && self.is(&found.path, around))
    }

    /// Says which other file takes precedence over this one here; `None` if there is none.
    pub fn overridden(&self, flag: Option<&Path>, around: &Surroundings) -> Option<String> {
        let found = find(flag, around)?;
        if found.by == FoundBy::User || self.is(&found.path, around) {
            return None;
        }
        let (path, why) = (found.path.display(), found.by.words());
        let how = match found.by {
            FoundBy::Project => "applies here too, and its settings take precedence".to_owned(),
            _ => format!("is used here instead of `{}`", self.path.display()),
        };
        Some(format!("`{path}` ({why}) {how}; to change that file, use --file {path}"))
    }

    fn is(&self, path: &Path, around: &Surroundings) -> bool {
        let path = around.directory.join(path);
        path == self.path || path.canonicalize().is_ok_and(|real| real == self.path)
    }

    /// Finds the toolchains that agents' commands do not reach yet; `None` if there are none.
    pub fn toolchains(&self, setup: &Setup) -> Option<FoundToolchains> {
        let found: Vec<Toolchain> = setup.toolchains().into_iter().filter(|found| !found.granted).collect();
        if found.is_empty() {
            return None;
        }
        let names = found.iter().map(|found| found.name).collect::<Vec<_>>().join(", ");
        let read = setup.read_setting(found.iter().flat_map(|found| &found.directories));
        if self.has("files") {
            let setting = format!("`files.read = {}` in {}", read.list, read.place);
            let words = format!("Agents' commands cannot use {names} yet; to allow it, set {setting}");
            return Some(FoundToolchains { words, table: None });
        }
        let setting = format!("read = {}\n", read.list);
        let words =
            format!("Toolchains that agents' commands could use, read-only: {names}\n\n    {setting}");
        Some(FoundToolchains { words, table: Some(format!("[files]\n{setting}")) })
    }

    /// Returns whether nothing is set about commands yet, so that [`ASK_DELETES`] can be added.
    pub fn can_ask_deletes(&self, setup: &Setup) -> bool {
        !self.has("shell") && setup.config().shell == ShellConfig::default()
    }
}
