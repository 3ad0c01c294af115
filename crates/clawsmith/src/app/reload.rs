//! Reloading: a changed configuration file holds in a running process, and a broken one changes nothing.
//!
//! Agents, policy, tools, models, limits and the like are read anew. What was opened at the start stays as it is, and is
//! named: a person has to start the process again for it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claw_core::port::{Clock as _, UnixMillis};
use claw_host::SystemClock;
use schemars::JsonSchema;
use serde::Serialize;

use super::{App, Error, Sessions, Setup};
use crate::config::{Config, candidates};

/// The configuration that a process runs with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigurationStatus {
    /// The file; `None` where there is none.
    pub file: Option<String>,
    /// Time at which the configuration that holds was loaded.
    pub loaded_at: UnixMillis,
    /// How often it was reloaded since the process started.
    pub reloads: u64,
    /// The file cannot be used, and an earlier version of it holds; `None` where the file holds as it is.
    pub failure: Option<ReloadFailure>,
    /// Settings that differ from the file until the process is started again.
    pub needs_restart: Vec<String>,
}

/// A configuration file that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReloadFailure {
    /// Time of the attempt.
    pub at: UnixMillis,
    /// The fault of the file, with its line if it has one.
    pub error: String,
}

impl ConfigurationStatus {
    /// The status of a process that has just started.
    pub fn at_start(setup: &Setup) -> Self {
        Self {
            file: setup.loaded.found.as_ref().map(|found| found.path.display().to_string()),
            loaded_at: SystemClock.now(),
            reloads: 0,
            failure: None,
            needs_restart: Vec::new(),
        }
    }

    /// Notes how a reload went, and says so in the log.
    pub fn note(&mut self, reloaded: &Result<Vec<&'static str>, Error>) {
        match reloaded {
            Ok(needs_restart) => {
                self.loaded_at = SystemClock.now();
                self.reloads += 1;
                self.failure = None;
                self.needs_restart = needs_restart.iter().map(ToString::to_string).collect();
                let restart = self.needs_restart.join(", ");
                tracing::info!(file = self.file, needs_restart = restart, "the configuration was reloaded");
            }
            Err(error) => {
                let error = described(error);
                tracing::error!(
                    file = self.file,
                    error,
                    "the configuration was not reloaded; the old one stays in force"
                );
                self.failure = Some(ReloadFailure { at: SystemClock.now(), error });
            }
        }
    }
}

fn described(error: &Error) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{}{cause}", error.message())
}

impl Sessions {
    /// Reads the configuration of a running application again and puts it in force. Returns the application with it, and
    /// the settings that hold only after a restart. If the file cannot be used, nothing changes.
    pub async fn reload_from(
        &self,
        app: &App,
        flag: Option<&Path>,
    ) -> Result<(App, Vec<&'static str>), Error> {
        let before = app.setup();
        let mut setup = Setup::load(flag, &before.around)?;
        setup.local_user = before.local_user;
        let path = |setup: &Setup| setup.loaded.found.as_ref().map(|found| found.path.clone());
        if path(&setup) != path(before) {
            let shown = |path: Option<PathBuf>| {
                path.map_or("no file".to_owned(), |path| format!("`{}`", path.display()))
            };
            let what = format!(
                "the configuration would now be read from {}, but the process was started with {}",
                shown(path(&setup)),
                shown(path(before))
            );
            return Err(Error::invalid(what).hint("restore the old file, or restart the process"));
        }
        let needs_restart = keep_what_was_opened(before.config(), &mut setup.loaded.config);
        let app = App { setup: Arc::new(setup), embedder: Arc::default(), ..app.clone() };
        self.reload(&app).await?;
        Ok((app, needs_restart))
    }
}

/// Takes the settings of what was opened at the start from the configuration before; returns the names of those that the
/// new one has otherwise.
fn keep_what_was_opened(before: &Config, now: &mut Config) -> Vec<&'static str> {
    let mut names = Vec::new();
    macro_rules! keep {
        ($($field:ident).+) => {
            if now.$($field).+ != before.$($field).+ {
                now.$($field).+.clone_from(&before.$($field).+);
                names.push(concat!($(".", stringify!($field)),+).trim_start_matches('.'));
            }
        };
    }
    keep!(tenant);
    keep!(node);
    keep!(data_dir);
    keep!(store);
    keep!(gateway);
    keep!(telemetry);
    keep!(memory);
    keep!(limits.background_commands);
    keep!(limits.background_bytes);
    names
}

/// A file's state: inode, length and time of its last change; `None` where it is not there.
type Stamp = Option<(u64, u64, i64, i64)>;

/// Notices that configuration files have changed: those that are read, those that would be, and those that a person has
/// accepted.
#[derive(Debug)]
pub struct ConfigurationWatch {
    paths: Vec<PathBuf>,
    /// The state that was loaded, or refused, last.
    loaded: Vec<Stamp>,
    /// The state that was seen last.
    seen: Vec<Stamp>,
}

impl ConfigurationWatch {
    /// Watches the files of a configuration that was just loaded.
    pub fn new(setup: &Setup) -> Self {
        let mut paths = candidates(setup.loaded.found.as_ref(), &setup.around);
        paths.extend(setup.around.trusted());
        let loaded = stamps(&paths);
        Self { paths, seen: loaded.clone(), loaded }
    }

    /// Returns whether the files have changed since the last time and are no longer being written: two looks in a row find
    /// the same.
    pub fn has_changed(&mut self) -> bool {
        let now = stamps(&self.paths);
        let is_settled = now == self.seen;
        self.seen = now;
        let is_new = is_settled && self.seen != self.loaded;
        if is_new {
            self.loaded.clone_from(&self.seen);
        }
        is_new
    }
}

fn stamps(paths: &[PathBuf]) -> Vec<Stamp> {
    let stamp = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
    };
    paths.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_stays_and_is_named() {
        let before = Config::default();
        let mut now = Config::default();
        now.gateway.hosts.push("agents.example.org".to_owned());
        now.limits.background_commands += 1;
        now.limits.output_bytes += 1;
        assert_eq!(keep_what_was_opened(&before, &mut now), ["gateway", "limits.background_commands"]);
        assert_eq!(now.gateway, before.gateway);
        assert_eq!(now.limits.background_commands, before.limits.background_commands);
        assert_ne!(now.limits.output_bytes, before.limits.output_bytes);
    }

    #[test]
    fn a_file_that_is_being_written_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("clawsmith.toml");
        let paths = vec![path.clone()];
        let loaded = stamps(&paths);
        let mut watch = ConfigurationWatch { paths, seen: loaded.clone(), loaded };
        assert!(!watch.has_changed());
        fs::write(&path, "a").unwrap();
        assert!(!watch.has_changed(), "it may still be written");
        fs::write(&path, "ab").unwrap();
        assert!(!watch.has_changed(), "it was");
        assert!(watch.has_changed());
        assert!(!watch.has_changed(), "it is told once");
        fs::remove_file(&path).unwrap();
        assert!(!watch.has_changed());
        assert!(watch.has_changed());
    }
}
