//! One container, with everything that defines it. Two that differ in any of it are two containers.

use std::collections::{BTreeMap, HashMap};

use bollard::models::{ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount};
use claw_core::port::Allowed;
use claw_core::tool::Digest;
use serde::Serialize;

use super::super::{Network, Reach};
use super::inside;
use super::mounts::{self, Mounts, WORKSPACE};
use super::this_program::Own;
use super::wire::Mounted;
use super::{DockerError, DockerOptions, WorkspaceAccess};

/// Label: the installation that owns the container.
pub(super) const INSTALLATION: &str = "clawsmith.installation";
/// Label: the key of the commands that share it.
pub(super) const KEY: &str = "clawsmith.key";
/// Label: the parts that may differ among those commands: the workspace and its access, the
/// network, extra grants.
pub(super) const VARIANT: &str = "clawsmith.variant";
/// Label: a digest of everything that defines the container.
pub(super) const DIGEST: &str = "clawsmith.digest";

/// A container as it is to be.
#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) labels: HashMap<String, String>,
    pub(super) body: ContainerCreateBody,
    pub(super) mounted: Vec<Mounted>,
    pub(super) reach: Reach,
    /// The id of the image, which stays when its name moves.
    pub(super) image: String,
}

/// An image, as the engine knows it now.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) id: String,
    /// Directories that the image declares as volumes; they would be writable and without limits.
    pub(super) volumes: Vec<String>,
}

/// The parts that a container is created from.
pub(super) struct Making<'a> {
    pub(super) options: &'a DockerOptions,
    pub(super) own: &'a Own,
    pub(super) image: Image,
    pub(super) key: &'a str,
    pub(super) reach: Reach,
    /// The grants of the reach that are for one command alone.
    pub(super) beside: &'a [Allowed],
}

impl Container {
    pub(super) fn new(making: Making<'_>) -> Result<Self, DockerError> {
        let Making { options, own, image, key, reach, beside } = making;
        let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let size = options.temporary;
        let temporary = format!("rw,exec,nosuid,nodev,size={size},mode=1777,uid={user},gid={group}");
        let mut mounts = Mounts::of(&reach, options.workspace, &temporary)?;
        let named = own.files.iter().map(|(path, at)| (path.to_str(), at.as_str()));
        for (path, at) in named {
            let path = path.ok_or_else(|| DockerError::Own("its path is not valid UTF-8".to_owned()))?;
            mounts.binds.push(mounts::bind(path, at, true));
        }
        mounts.tmpfs.insert("/tmp".to_owned(), temporary.clone());
        for volume in &image.volumes {
            let taken = mounts.mounted.iter().any(|mounted| mounted.path == *volume);
            if !taken && volume != WORKSPACE {
                mounts.tmpfs.insert(volume.clone(), temporary.clone());
            }
        }
        let network = match reach.network {
            Network::None | Network::Loopback => "none",
            Network::Host => &options.network,
        };
        let access = access(&reach, options.workspace);
        let mut variant = format!("{} {} {network}", reach.workspace.display(), access.name());
        // Else it would take the place of the container that has none of this, and the other way round.
        for Allowed { path, write } in beside {
            variant += &format!(" {}:{}", path.display(), if *write { "rw" } else { "ro" });
        }
        let (idle, age) = (options.idle.as_secs().to_string(), options.age.as_secs().to_string());
        let host = host_config(options, mounts.binds, mounts.tmpfs, network);
        let body = ContainerCreateBody {
            image: Some(image.id.clone()),
            entrypoint: Some(own.argv(&[inside::FIRST, &idle, &age])),
            cmd: Some(Vec::new()),
            user: Some(format!("{user}:{group}")),
            working_dir: Some("/".to_owned()),
            hostname: Some("sandbox".to_owned()),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        };
        let mut plain = body.clone();
        // Its order is not the same twice.
        let tmpfs = plain.host_config.as_mut().and_then(|host| host.tmpfs.take()).unwrap_or_default();
        let decides = Decides {
            body: &plain,
            tmpfs: tmpfs.into_iter().collect(),
            variant: &variant,
            own: &own.identity,
            mounted: &mounts.mounted,
            installation: &options.installation,
            key,
            seccomp: reach.network,
        };
        let digest = Digest::of(&decides);
        let name = digest.to_string();
        let name = format!("clawsmith-{}", name.trim_start_matches("sha256:").get(..32).unwrap_or_default());
        let labels = [
            (INSTALLATION, options.installation.clone()),
            (KEY, key.to_owned()),
            (VARIANT, variant),
            (DIGEST, digest.to_string()),
        ];
        let labels: HashMap<_, _> =
            labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let body = ContainerCreateBody { labels: Some(labels.clone()), ..body };
        Ok(Self { name, labels, body, mounted: mounts.mounted, reach, image: image.id })
    }
}

/// Returns the confinement of a container: nothing of it may be written but its mounts, nothing may be gained.
fn host_config(
    options: &DockerOptions,
    binds: Vec<Mount>,
    tmpfs: HashMap<String, String>,
    network: &str,
) -> HostConfig {
    HostConfig {
        mounts: Some(binds),
        tmpfs: Some(tmpfs),
        network_mode: Some(network.to_owned()),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        memory: Some(number(options.memory)),
        // As much as memory: nothing of it is swapped.
        memory_swap: Some(number(options.memory)),
        nano_cpus: Some(number(options.cpu_percent.saturating_mul(10_000_000))),
        pids_limit: Some(number(options.processes)),
        ipc_mode: Some("private".to_owned()),
        shm_size: Some(64 << 20),
        init: Some(false),
        auto_remove: Some(true),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        ..HostConfig::default()
    }
}

/// Returns the access to the workspace for a caller with this reach.
pub(super) fn access(reach: &Reach, most: WorkspaceAccess) -> WorkspaceAccess {
    match (most, reach.write) {
        (WorkspaceAccess::Rw, false) => WorkspaceAccess::Ro,
        (most, _) => most,
    }
}

#[derive(Serialize)]
struct Decides<'a> {
    body: &'a ContainerCreateBody,
    tmpfs: BTreeMap<String, String>,
    variant: &'a str,
    own: &'a [String],
    mounted: &'a [Mounted],
    installation: &'a str,
    key: &'a str,
    seccomp: Network,
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
