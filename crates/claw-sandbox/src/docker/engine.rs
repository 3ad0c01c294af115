//! The engine: the few requests it gets, and the meaning of its answers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, KillContainerOptionsBuilder, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, Docker};

use super::DockerError;
use super::container::{self, Container, Image};

/// The timeout of an engine request, in seconds. Commands are not bound by it.
const PATIENCE: u64 = 30;
/// The timeout of a request that costs the engine nothing, in seconds.
const QUICK: u64 = 8;
/// The timeout of removing a container, in seconds. With the wait before it, it ends before a call gives up looking.
const REMOVING: u64 = 15;
/// The seconds after which a container that was created and not started is abandoned.
const FORGOTTEN: i64 = 60;

/// An engine behind a socket. Each request has a connection of its own, so an engine that restarts is found
/// again.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    socket: PathBuf,
}

/// Facts about the engine, for display.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct EngineFacts {
    /// The engine's version.
    pub version: String,
    /// The version of its API.
    pub api: String,
}

impl Engine {
    pub(super) fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    fn connect(&self) -> Result<Docker, DockerError> {
        self.connect_within(PATIENCE)
    }

    /// Connects for a request that a working engine answers at once: one that hangs is noticed here.
    pub(super) fn connect_quickly(&self) -> Result<Docker, DockerError> {
        self.connect_within(QUICK)
    }

    fn connect_within(&self, seconds: u64) -> Result<Docker, DockerError> {
        let socket = self.socket.to_string_lossy();
        Docker::connect_with_unix(&socket, seconds, API_DEFAULT_VERSION).map_err(|error| self.away(error))
    }

    /// Explains why the engine does not answer.
    fn away(&self, source: bollard::errors::Error) -> DockerError {
        let socket = self.socket.clone();
        match source {
            bollard::errors::Error::RequestTimeoutError => DockerError::Hung { socket },
            source if is_forbidden(&source) || is_out_of_reach(&socket) => {
                DockerError::Forbidden { socket, source }
            }
            source => DockerError::Away { socket, source },
        }
    }

    /// Converts an error: the engine's own message, or why the engine does not answer.
    pub(super) fn failed(&self, step: &'static str, error: bollard::errors::Error) -> DockerError {
        match error {
            bollard::errors::Error::DockerResponseServerError { message, .. } => {
                DockerError::Engine { step, reason: message.trim().to_owned() }
            }
            error => self.away(error),
        }
    }

    pub(super) async fn facts(&self) -> Result<EngineFacts, DockerError> {
        let answer = self
            .connect_quickly()?
            .version()
            .await
            .map_err(|error| self.failed("report its version", error))?;
        let (version, api) = (answer.version.unwrap_or_default(), answer.api_version.unwrap_or_default());
        Ok(EngineFacts { version, api })
    }

    pub(super) async fn image(&self, name: &str) -> Result<Image, DockerError> {
        match self.connect_quickly()?.inspect_image(name).await {
            Ok(found) => {
                let volumes = found.config.and_then(|config| config.volumes).unwrap_or_default();
                let id = found.id.filter(|id| !id.is_empty());
                let id = id.ok_or_else(|| DockerError::Image { image: name.to_owned() })?;
                Ok(Image { id, volumes: volumes.into_iter().collect() })
            }
            Err(error) if status(&error) == Some(404) => Err(DockerError::Image { image: name.to_owned() }),
            Err(error) => Err(self.failed("inspect the image", error)),
        }
    }

    /// Creates a container; another program may have created one of that name meanwhile.
    pub(super) async fn create(&self, container: &Container) -> Result<(), DockerError> {
        let options = CreateContainerOptionsBuilder::new().name(&container.name).build();
        match self.connect()?.create_container(Some(options), container.body.clone()).await {
            Ok(_) => Ok(()),
            Err(error) if status(&error) == Some(409) => Ok(()),
            Err(error) => Err(self.failed("create a container", error)),
        }
    }

    /// Starts a container, and returns whether it runs now; `false` if it is gone or being removed.
    pub(super) async fn start(&self, name: &str) -> Result<bool, DockerError> {
        match self.connect()?.start_container(name, None).await {
            Ok(()) => Ok(true),
            Err(error) if status(&error) == Some(304) => Ok(true),
            Err(error) if is_gone(&error) => Ok(false),
            Err(error) => Err(self.failed("start a container", error)),
        }
    }

    /// Kills and removes a container. A missing one counts as removed.
    pub(super) async fn remove(&self, name: &str) -> Result<(), DockerError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        match self.connect_within(REMOVING)?.remove_container(name, Some(options)).await {
            Err(error) if !is_gone(&error) => Err(self.failed("remove a container", error)),
            _ => Ok(()),
        }
    }

    /// Asks a container to end once nobody uses it.
    pub(super) async fn retire(&self, name: &str) -> Result<(), DockerError> {
        let options = KillContainerOptionsBuilder::new().signal("SIGUSR1").build();
        match self.connect_quickly()?.kill_container(name, Some(options)).await {
            Err(error) if !is_gone(&error) => Err(self.failed("retire a container", error)),
            _ => Ok(()),
        }
    }

    /// Lists the containers of an installation, in any state.
    pub(super) async fn list(&self, installation: &str) -> Result<Vec<Listed>, DockerError> {
        let label = format!("{}={installation}", container::INSTALLATION);
        let filters = HashMap::from([("label".to_owned(), vec![label])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        let found = self.connect_quickly()?.list_containers(Some(options)).await;
        let found = found.map_err(|error| self.failed("list containers", error))?;
        Ok(found.into_iter().filter_map(Listed::of).collect())
    }
}

/// A container, as the engine lists it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    /// The container's id.
    pub id: String,
    /// The key of the commands that share it.
    pub key: String,
    /// The parts that may differ among those commands.
    pub variant: String,
    /// The digest of everything that defines it.
    pub digest: String,
    /// True if it runs.
    pub running: bool,
    /// True if it has exited or was never started, so that nobody will use it.
    pub left: bool,
    /// The time of creation, in seconds since the epoch.
    pub created: i64,
}

impl Listed {
    fn of(found: ContainerSummary) -> Option<Self> {
        let labels = found.labels.unwrap_or_default();
        let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
        let created = found.created.unwrap_or(0);
        let age = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_secs().cast_signed() - created);
        use ContainerSummaryStateEnum as State;
        let left = match found.state {
            Some(State::EXITED | State::DEAD) => true,
            // Its creator may be about to start it.
            Some(State::CREATED) => age > FORGOTTEN,
            _ => false,
        };
        Some(Self {
            id: found.id?,
            key: label(container::KEY),
            variant: label(container::VARIANT),
            digest: label(container::DIGEST),
            running: found.state == Some(State::RUNNING),
            left,
            created,
        })
    }
}

/// Returns whether the kernel did not let us connect.
fn is_forbidden(error: &(dyn std::error::Error + 'static)) -> bool {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.filter_map(|error| error.downcast_ref::<std::io::Error>()).any(|error| {
        error.kind() == std::io::ErrorKind::PermissionDenied
            || error.get_ref().is_some_and(|inner| is_forbidden(inner))
    })
}

/// Returns whether a directory above a path keeps us out.
fn is_out_of_reach(path: &Path) -> bool {
    path.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Returns whether somebody paused the container: it is there and does nothing.
pub(super) fn is_paused(error: &bollard::errors::Error) -> bool {
    error.to_string().to_lowercase().contains("is paused")
}

fn status(error: &bollard::errors::Error) -> Option<u16> {
    match error {
        bollard::errors::Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// Returns whether the container does not exist, does not run or is being removed. A missing network or image
/// is something else.
pub(super) fn is_gone(error: &bollard::errors::Error) -> bool {
    let said = error.to_string().to_lowercase();
    let going =
        ["no such container", "no such exec", "is not running", "marked for removal", "removal of container"];
    status(error) == Some(409) || going.iter().any(|words| said.contains(words))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::net::UnixListener;

    use rustix::process::Uid;

    use super::*;

    /// Asks an engine for its facts on a thread that is not root.
    fn facts_for_nobody(engine: Engine) -> Result<EngineFacts, DockerError> {
        let asking = std::thread::spawn(move || {
            let nobody = Uid::from_raw(65_534);
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(engine.facts())
        });
        asking.join().unwrap()
    }

    #[test]
    fn refuses_to_call_a_socket_without_the_right_to_it_an_engine_that_is_away() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("engine.sock");
        let _listener = UnixListener::bind(&socket).unwrap();
        for (of_directory, of_socket) in [(0o755, 0o000), (0o000, 0o777)] {
            set_permissions(&socket, Permissions::from_mode(of_socket)).unwrap();
            set_permissions(directory.path(), Permissions::from_mode(of_directory)).unwrap();
            let forbidden = facts_for_nobody(Engine::at(&socket));
            set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
            assert!(matches!(forbidden, Err(DockerError::Forbidden { .. })), "{forbidden:?}");
        }
        let away = facts_for_nobody(Engine::at(&directory.path().join("nobody.sock")));
        assert!(matches!(away, Err(DockerError::Away { .. })), "{away:?}");
    }
}
