//! A configuration with the environment of its process: all paths, before anything is opened.
//!
//! Nothing here creates a file or opens a store. Listing, explaining and checking work on a [`Setup`] alone and leave
//! no trace.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::TenantId;
use claw_core::tool::{Meta, Spec};
use claw_policy::lint::{self, Finding};
use claw_policy::pipeline::{Policy, PolicyError, ToolSet};
use claw_schema::dialect::{self, Dialect};
use claw_store::StoreLocation;
use claw_store::encryption::KeySource;

use super::Error;
use crate::config::{Config, KEYS, Loaded, Surroundings, Trust};

/// The configuration that applies, and the environment that it was loaded in.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The configuration and its file.
    pub loaded: Loaded,
    /// The current directory and the environment variables.
    pub around: Surroundings,
    /// True if every call is the local user's own, so that the skills in their home directory can be used.
    /// Never true if others connect over a network.
    pub local_user: bool,
}

impl Setup {
    /// Loads the configuration that applies here. A project's file that nobody accepted is refused, and so is a policy
    /// with an error.
    pub fn load(file: Option<&Path>, around: &Surroundings) -> Result<Self, Error> {
        let setup = Self::read(file, around)?;
        setup.must_be_trusted()?;
        if let Some(error) = lint::errors(&setup.config().policy(), &catalogue()).first() {
            return Err(Error::invalid(error.without_severity().to_string()).hint(
                "correct it in the configuration; `clawsmith config check` lists everything it finds",
            ));
        }
        Ok(setup)
    }

    /// Returns the findings about the policy, the worst first. One with an error is not used.
    pub fn policy_findings(&self) -> Vec<Finding> {
        lint::lint(&self.config().policy(), &catalogue())
    }

    /// Reads the configuration whether or not it was accepted. Do nothing under its rules.
    pub fn read(file: Option<&Path>, around: &Surroundings) -> Result<Self, Error> {
        Ok(Self { loaded: Loaded::load(file, around)?, around: around.clone(), local_user: false })
    }

    /// Tells whether the configuration may be used.
    pub fn trust(&self) -> Result<Trust, Error> {
        self.loaded.trust(&self.around).map_err(|error| {
            Error::failed("the record of accepted configuration files cannot be read").because(error)
        })
    }

    /// Refuses a configuration that nobody has accepted as it is, or that lacks one that was accepted.
    pub fn must_be_trusted(&self) -> Result<(), Error> {
        let trust = self.trust()?;
        let file =
            self.loaded.found.as_ref().map(|found| found.path.display().to_string()).unwrap_or_default();
        let refused = |what: &str| {
            Error::invalid(format!("`{file}` {what}, so nothing runs here")).hint(
                "if the file is not yours, remove it; otherwise review and accept it with `clawsmith config trust`",
            )
        };
        match trust {
            Trust::Holds => Ok(()),
            Trust::New => Err(refused("was found here but has not been accepted")),
            Trust::Changed => Err(refused("has changed since it was accepted")),
            Trust::Gone => {
                let gone = self.loaded.gone(&self.around);
                let file = gone.map(|path| path.display().to_string()).unwrap_or_default();
                Err(Error::invalid(format!(
                    "`{file}` was accepted and is gone, so its rules no longer apply here"
                ))
                .hint("restore it, or run `clawsmith config trust --forget` if you removed it"))
            }
        }
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// The deployment's own tenant.
    pub fn tenant(&self) -> &TenantId {
        &self.loaded.config.tenant
    }

    /// Returns the data directory.
    pub fn data_dir(&self) -> Result<PathBuf, Error> {
        let hint = "set `CLAWSMITH_DATA_DIR` to a directory";
        let directory = self.loaded.data_dir(&self.around).ok_or_else(|| {
            Error::invalid("there is no directory for data: neither `data_dir` nor a home directory is set")
                .hint(hint)
        })?;
        match self.around.home() {
            Some(home) if directory.starts_with(home) && !home.exists() => {
                Err(Error::invalid(format!("the home directory `{}` does not exist", home.display()))
                    .hint(hint))
            }
            _ => Ok(directory),
        }
    }

    /// The place of the store.
    pub fn place(&self) -> Result<StoreLocation, Error> {
        match self.loaded.place(&self.around) {
            Some(place) => Ok(place),
            // The data directory is missing.
            None => self.data_dir().map(StoreLocation::File),
        }
    }

    /// Returns the file with the keys of sealed values, used if no variable holds them.
    pub fn key_file(&self) -> Result<PathBuf, Error> {
        Ok(self.data_dir()?.join("keys").join("ring"))
    }

    /// The source of the keys of sealed values: `CLAWSMITH_KEYS`, or the key file.
    pub(crate) fn keys(&self) -> Result<KeySource, Error> {
        Ok(KeySource::new(self.around.variable(KEYS).cloned(), self.key_file()?)?)
    }

    /// The policy. It was checked when the configuration was loaded.
    pub fn policy(&self) -> Result<Policy, Error> {
        Policy::compile(&self.config().policy())
            .map_err(|error: PolicyError| Error::invalid(error.to_string()))
    }
}

/// Returns every tool of the catalogue, absent ones included: a policy may name future tools.
pub fn catalogue() -> ToolSet {
    ToolSet::new(claw_tools::catalogue().into_iter().map(Arc::new), [])
}

/// The cost of a tool's definition, in tokens.
#[derive(Debug, Clone, Copy)]
pub struct Tokens {
    /// The number of tokens.
    pub count: usize,
    /// The count is an estimate.
    pub estimated: bool,
}

/// Returns the cost of a built-in tool's definition; `None` for a tool that this build lacks.
pub fn tokens(meta: &Meta) -> Option<Tokens> {
    if let Some(count) = meta.tokens.or_else(|| claw_tools::tokens(meta.name.as_str())) {
        return Some(Tokens { count: count as usize, estimated: false });
    }
    let count = dialect::estimate_tokens(&Dialect::Default.tool(&spec(meta)?));
    Some(Tokens { count, estimated: true })
}

/// Returns the specification of a built-in tool that a model is sent; `None` for a tool that this build lacks.
pub fn spec(meta: &Meta) -> Option<Spec> {
    let tool = claw_tools::builtin().find(|tool| tool.meta.name == meta.name)?;
    Some((tool.make)().spec().clone())
}

/// Returns the absolute path, with links resolved if it exists: workspaces are compared with it.
pub fn real(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.canonicalize().unwrap_or(absolute)
}
