//! Doctor: the state of a deployment, its problems, and their fixes.
//!
//! Examining changes nothing: if there is no store or key yet, a finding says that the first call creates
//! them.

mod models;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::KeyUse;
use claw_host::SystemClock;
use claw_policy::lint::Severity;
use claw_policy::sandbox_mode::SandboxMode;
use claw_sandbox::docker::DockerShell;
use claw_sandbox::shell::{LocalShell, ShellOptions};
use claw_sandbox::{Launcher, Standing};
use claw_store::encryption::{KeyRing, KeySource};
use claw_store::{Status, StoreLocation};
use serde::Serialize;

use super::toolchains::Toolchain;
use super::{App, Setup};
use crate::config::{KEYS, SandboxBackend};

/// The clock skew beyond which nodes disagree about expired leases, in milliseconds.
const SKEW_MS: i64 = 5_000;

/// A clock before this was never set: 2026-01-01.
const NOT_BEFORE: UnixMillis = UnixMillis(1_767_225_600_000);

/// The state of one part of the deployment.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The part.
    pub topic: &'static str,
    /// Says whether it is in order.
    pub state: FindingState,
    /// The observation, in words.
    pub what: String,
    /// The way to mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Says whether a part is in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// In order.
    Good,
    /// Working, with something worth knowing.
    Worth,
    /// Not working, or unsafe.
    Bad,
}

use FindingState as State;

impl Finding {
    fn new(topic: &'static str, state: State, what: impl Into<String>, fix: Option<String>) -> Self {
        Self { topic, state, what: what.into(), fix }
    }

    pub(crate) fn good(topic: &'static str, what: impl Into<String>) -> Self {
        Self::new(topic, State::Good, what, None)
    }

    pub(crate) fn worth(topic: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(topic, State::Worth, what, Some(fix.into()))
    }

    /// Returns a finding about a part that does not work, with its fix.
    pub fn bad(topic: &'static str, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(topic, State::Bad, what, Some(fix.into()))
    }
}

impl Setup {
    /// Examines the deployment. Models are asked only with `probe`, since that costs a request each.
    pub async fn examine(&self, probe: bool) -> Vec<Finding> {
        let mut findings = configuration(self);
        findings.extend(data_directory(self));
        let (store, status) = store(self).await;
        findings.push(store);
        findings.extend(clock(status.as_ref()));
        let current = status.is_some_and(|status| status.schema.pending.is_empty());
        // A store whose schema is not current is not opened: that would change it.
        let app = match current {
            true => self.open_existing().await,
            false => Ok(None),
        };
        findings.push(match &app {
            Ok(app) => keys(self, app.as_ref()).await,
            Err(error) => Finding::bad("keys", error.to_string(), "clawsmith db status"),
        });
        let app = app.unwrap_or_default();
        findings.extend(models::examine(self, app.as_ref(), probe).await);
        if let Some(app) = app {
            app.close().await;
        }
        findings.extend(sandbox(self).await);
        findings.extend(undo(self).await);
        findings.extend(toolchains(self));
        findings
    }
}

/// Checks that commands find the toolchains that the user finds.
fn toolchains(setup: &Setup) -> Vec<Finding> {
    const TOPIC: &str = "toolchains";
    // Told by another finding.
    if setup.data_dir().is_err() {
        return Vec::new();
    }
    if let Err(error) = setup.file_rules() {
        return vec![Finding::bad(TOPIC, error.to_string(), "change `files.read` or `files.write`")];
    }
    // On the host commands find what this program finds, and in a container what the image has.
    let (mode, backend) = (setup.config().sandbox.mode, setup.config().sandbox.backend);
    if mode == SandboxMode::Off || backend == SandboxBackend::Docker {
        return Vec::new();
    }
    let (granted, missing): (Vec<_>, Vec<_>) =
        setup.toolchains().into_iter().partition(|toolchain| toolchain.granted);
    let names = |list: &[Toolchain]| list.iter().map(|one| one.name).collect::<Vec<_>>().join(", ");
    let mut findings = Vec::new();
    if !granted.is_empty() {
        findings.push(Finding::good(TOPIC, format!("commands find {}", names(&granted))));
    }
    if !missing.is_empty() {
        let what = format!("commands in the sandbox do not find {}", names(&missing));
        let read = setup.read_setting(missing.iter().flat_map(|toolchain| &toolchain.directories));
        let fix = format!("let agents read them: `files.read = {}` in {}", read.list, read.place);
        findings.push(Finding::worth(TOPIC, what, fix));
    }
    findings
}

fn configuration(setup: &Setup) -> Vec<Finding> {
    const TOPIC: &str = "configuration";
    let mut findings = Vec::new();
    match &setup.loaded.found {
        None => findings.push(Finding::good(TOPIC, "no file; using defaults")),
        Some(found) => {
            let path = found.path.display();
            findings.push(match fs::metadata(&found.path) {
                Ok(file) if file.mode() & 0o022 != 0 => Finding::bad(
                    TOPIC,
                    format!("users other than its owner can change `{path}`, and so every rule in it"),
                    format!("chmod go-w {path}"),
                ),
                Ok(_) => Finding::good(TOPIC, format!("`{path}`")),
                Err(error) => Finding::bad(TOPIC, format!("`{path}`: {error}"), "clawsmith config check"),
            });
        }
    }
    for finding in setup.policy_findings() {
        let fix = "clawsmith policy lint";
        match finding.severity {
            Severity::Error => findings.push(Finding::bad("policy", finding.to_string(), fix)),
            Severity::Warning => findings.push(Finding::worth("policy", finding.to_string(), fix)),
            Severity::Note => {}
        }
    }
    findings
}

fn data_directory(setup: &Setup) -> Vec<Finding> {
    const TOPIC: &str = "data directory";
    let directory = match setup.data_dir() {
        Ok(directory) => directory,
        Err(failure) => return vec![Finding::bad(TOPIC, failure.to_string(), "set `CLAWSMITH_DATA_DIR`")],
    };
    let mut findings = vec![private(TOPIC, &directory)];
    let keys = directory.join("keys");
    for path in [directory.join("clawsmith.db"), keys.join("ring"), keys, directory.join("undo")] {
        let finding = private("permissions", &path);
        if finding.state == State::Bad {
            findings.push(finding);
        }
    }
    findings
}

/// Checks that a path is accessible to its owner alone, and that the owner runs this program.
fn private(topic: &'static str, path: &Path) -> Finding {
    let shown = path.display();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Finding::good(topic, format!("`{shown}` does not exist yet; the first call creates it"));
        }
        Err(error) => return Finding::bad(topic, format!("`{shown}`: {error}"), "check who owns it"),
    };
    let (mode, me) = (metadata.permissions().mode() & 0o777, rustix::process::geteuid().as_raw());
    if metadata.uid() != me {
        let what = format!("`{shown}` belongs to user {} and this runs as user {me}", metadata.uid());
        return Finding::bad(topic, what, format!("chown -R {me} {shown}"));
    }
    if mode & 0o077 != 0 {
        let what = format!("`{shown}` is open to others (mode {mode:o})");
        return Finding::bad(topic, what, format!("chmod go= {shown}"));
    }
    Finding::good(topic, format!("`{shown}`, for its owner alone"))
}

async fn store(setup: &Setup) -> (Finding, Option<Status>) {
    const TOPIC: &str = "store";
    let place = match setup.place() {
        Ok(place) => place,
        Err(failure) => return (Finding::bad(TOPIC, failure.to_string(), "set `store.url`"), None),
    };
    if place == StoreLocation::Memory {
        let what = "in memory: all data is lost when the program ends";
        return (Finding::worth(TOPIC, what, "remove `store.url` to keep it in a file"), None);
    }
    match claw_store::status(&place).await {
        Ok(None) => match setup.data_dir() {
            Ok(_) => (Finding::good(TOPIC, format!("none at {place} yet; the first call creates it")), None),
            Err(failure) => {
                let what = format!("none at {place} yet, and no call can create it: {failure}");
                (Finding::bad(TOPIC, what, "set `CLAWSMITH_DATA_DIR`"), None)
            }
        },
        Err(error) => (Finding::bad(TOPIC, format!("{place}: {error}"), "clawsmith db status"), None),
        Ok(Some(status)) => {
            let schema = &status.schema;
            let finding = if !schema.newer.is_empty() {
                let what =
                    format!("{place} was created by a newer Clawsmith, and this version cannot open it");
                Finding::bad(TOPIC, what, "install the newer Clawsmith")
            } else if schema.pending.is_empty() {
                Finding::good(TOPIC, format!("{place}, {} {}", status.backend, status.version))
            } else {
                let what = format!("{place} lacks {} migrations", schema.pending.len());
                Finding::worth(TOPIC, what, "clawsmith db migrate, or let the next call do it")
            };
            (finding, Some(status))
        }
    }
}

fn clock(status: Option<&Status>) -> Vec<Finding> {
    const TOPIC: &str = "clock";
    let now = SystemClock.now();
    if now < NOT_BEFORE {
        let what = format!("this machine's clock says {}", rfc3339(now));
        return vec![Finding::bad(TOPIC, what, "set the clock; leases and expiry depend on it")];
    }
    match status.and_then(|status| status.clock) {
        Some(server) if (server.0 - now.0).abs() > SKEW_MS => {
            let apart = (server.0 - now.0).abs() / 1000;
            let what = format!("the clocks of this machine and of the database differ by {apart} s");
            vec![Finding::bad(TOPIC, what, "synchronise both with the same time server (NTP)")]
        }
        Some(_) => vec![Finding::good(TOPIC, "the clocks of this machine and of the database agree")],
        None => vec![Finding::good(TOPIC, rfc3339(now))],
    }
}

/// Checks that the keys of all sealed values exist.
async fn keys(setup: &Setup, app: Option<&App>) -> Finding {
    const TOPIC: &str = "keys";
    let used = match app {
        Some(app) => match app.store().key_use().await {
            Ok(used) => used,
            Err(error) => return Finding::bad(TOPIC, error.to_string(), "clawsmith db status"),
        },
        None => Vec::new(),
    };
    let Ok(file) = setup.key_file() else {
        return Finding::bad(TOPIC, "there is no directory for the key file", "set `CLAWSMITH_DATA_DIR`");
    };
    let variable = setup.around.variable(KEYS).cloned();
    if variable.is_none() && !file.exists() && used.is_empty() {
        return Finding::good(TOPIC, "none yet; the first secret creates one");
    }
    let opened = KeySource::new(variable, file).and_then(|source| KeyRing::open(&source, &used));
    let ring = match opened {
        Ok(keys) => keys.ring(),
        Err(error) => return Finding::bad(TOPIC, error.to_string(), "restore the keys from a backup"),
    };
    let (ids, mut lost) = (ring.ids(), 0);
    for KeyUse { key, values } in &used {
        if key.is_none_or(|key| !ids.contains(&key)) {
            lost += values;
        }
    }
    match lost {
        0 => Finding::good(TOPIC, format!("{}; every secret is encrypted with one of them", ids.len())),
        lost => Finding::bad(
            TOPIC,
            format!("{lost} secrets cannot be decrypted with the available keys"),
            "restore the keys from a backup, or set those secrets again",
        ),
    }
}

async fn sandbox(setup: &Setup) -> Vec<Finding> {
    const TOPIC: &str = "sandbox";
    if setup.config().sandbox.mode == SandboxMode::Off {
        let what = "`sandbox.mode` is `off`: commands run without a sandbox and can reach everything that \
                    Clawsmith can, its own gateway included";
        return vec![Finding::worth(TOPIC, what, "remove `sandbox.mode`, or set it to `all`")];
    }
    if setup.config().sandbox.backend == SandboxBackend::Docker {
        let local = LocalShell::new(Arc::default(), ShellOptions::default());
        let docker = DockerShell::new(local, setup.docker_options());
        return vec![match docker.image().await {
            Ok(_) => Finding::good(TOPIC, "the Docker engine answers and has the image"),
            Err(error) => {
                Finding::bad(TOPIC, format!("{error}; no command runs"), "clawsmith sandbox status")
            }
        }];
    }
    let layers = Launcher::default().layers().await;
    let required = setup.config().sandbox.required();
    let mut findings = Vec::new();
    for layer in layers.iter() {
        if let Standing::Missing(why) = &layer.standing {
            let what = format!("{} is missing: {why}", layer.name);
            findings.push(match required.contains(&layer.name) {
                true => Finding::bad(TOPIC, format!("{what}; no command runs"), "see docs/sandbox.md"),
                false => Finding::worth(TOPIC, what, "clawsmith sandbox status"),
            });
        }
    }
    if !claw_sandbox::can_close_ports() {
        let what = "this kernel cannot block a port, so a gateway refuses commands that need the network";
        findings.push(Finding::worth(TOPIC, what, "use Linux 6.7 or newer, with Landlock"));
    }
    if findings.is_empty() {
        findings.push(Finding::good(TOPIC, "every layer works"));
    }
    findings
}

/// Checks whether changes of commands in the current directory can be undone.
async fn undo(setup: &Setup) -> Option<Finding> {
    const TOPIC: &str = "undo";
    // Without a sandbox or a data directory, another finding says so.
    let is_there = setup.data_dir().is_ok_and(|data| data.exists());
    if setup.config().sandbox.mode == SandboxMode::Off || !is_there {
        return None;
    }
    let directory = setup.around.directory.display();
    Some(match setup.not_undoable().await {
        Ok(None) => Finding::good(TOPIC, format!("changes of commands in `{directory}` can be undone")),
        Ok(Some(reason)) => Finding::worth(
            TOPIC,
            format!("changes of commands in `{directory}` cannot be undone: {reason}"),
            "see \"Changes\" in docs/sandbox.md",
        ),
        Err(error) => Finding::worth(TOPIC, error.to_string(), "clawsmith sandbox status"),
    })
}

/// A moment as RFC 3339 in UTC, to the second.
fn rfc3339(at: UnixMillis) -> String {
    match jiff::Timestamp::from_second(at.0.div_euclid(1000)) {
        Ok(time) => time.to_string(),
        Err(_) => at.0.to_string(),
    }
}
