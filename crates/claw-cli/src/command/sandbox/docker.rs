//! The sandbox of containers.

use std::process::ExitCode;

use claw_core::tool::Effect;
use claw_sandbox::Network;
use claw_sandbox::docker::{DockerCommand, DockerShell, Listed, WorkspaceAccess};
use claw_sandbox::shell::Finished;
use serde_json::json;

use super::{Place, held, size};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Table};

/// The escape attempts for containers only.
pub(super) const TRIES: &[(&str, &str)] = &[
    ("write to the image", "touch /clawsmith-probe || touch /bin/clawsmith-probe"),
    ("reach the engine", "ls /var/run/docker.sock || ls /run/docker.sock"),
    ("change this program", "echo x >> /.clawsmith/program"),
];

pub(super) async fn finish(
    docker: &DockerShell,
    place: &Place,
    argv: &[String],
) -> Result<Finished, Failure> {
    let command = DockerCommand { argv: argv.to_vec(), ..DockerCommand::default() };
    let finished = docker.finish(&place.context, command).await;
    finished.map_err(|error| {
        Failure::failed("the command did not run").because(error).hint("clawsmith sandbox status").refusing()
    })
}

pub(super) async fn status(docker: &DockerShell, place: &Place, session: &mut Session) -> Outcome {
    let options = docker.options();
    let engine = docker.engine().await;
    let image = docker.image().await;
    let containers = docker.containers().await.unwrap_or_default();
    let write = options.workspace == WorkspaceAccess::Rw && place.context.effects.has(Effect::Write);
    let access = match (options.workspace, write) {
        (WorkspaceAccess::None, _) => "not shown",
        (_, true) => "read, write",
        (_, false) => "read",
    };
    let network = match place.options.network {
        Network::None | Network::Loopback => "none",
        Network::Host => &options.network,
    };
    if session.out.json {
        let error = engine.as_ref().err().or(image.as_ref().err()).map(ToString::to_string);
        session.out.json(&json!({
            "mode": place.mode,
            "backend": "docker",
            "usable": error.is_none(),
            "error": error,
            "engine": engine.ok(),
            "socket": options.socket,
            "image": { "name": options.image, "digest": image.ok() },
            "containers": containers,
            "reach": {
                "workspace": place.context.workspace, "access": options.workspace, "write": write,
                "grants": place.options.grants, "hidden": place.options.hidden, "network": network,
            },
            "limits": {
                "memory": options.memory, "cpu_percent": options.cpu_percent, "processes": options.processes,
                "temporary": place.options.limits.temporary, "disk": place.options.limits.disk,
                "idle_seconds": options.idle.as_secs(), "age_seconds": options.age.as_secs(),
            },
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    session.out.line(held(place.mode))?;
    session.out.line("It is made of Docker containers (`sandbox.backend` is `docker`).\n")?;
    let mut table = Table::new(["part", "here", "what"]);
    table.row(match &engine {
        Ok(facts) => {
            let what = format!("{}, API {}, at {}", facts.version, facts.api, options.socket.display());
            [Cell::strong("engine"), Cell::good("works"), Cell::quiet(what)]
        }
        Err(error) => [Cell::strong("engine"), Cell::bad("missing"), Cell::new(error)],
    });
    table.row(match &image {
        Ok(digest) => {
            [Cell::strong("image"), Cell::good("works"), Cell::quiet(format!("{} {digest}", options.image))]
        }
        Err(error) => [Cell::strong("image"), Cell::bad("missing"), Cell::new(error)],
    });
    session.out.table(&table)?;
    if engine.is_err() || image.is_err() {
        session.out.line("\nNo command runs.")?;
    }
    session.out.line("")?;
    session.out.heading("A command in it reaches")?;
    let mut table = Table::new(["path", "inside", "access"]);
    table.row([Cell::strong(place.context.workspace.display()), Cell::new("/workspace"), Cell::new(access)]);
    for grant in &place.options.grants {
        let access = if grant.write && write { "read, write" } else { "read" };
        table.row([Cell::new(grant.path.display()), Cell::new(grant.path.display()), Cell::new(access)]);
    }
    table.row([Cell::new("the image"), Cell::new("/"), Cell::new("read")]);
    table.row([Cell::new("its own"), Cell::new("/tmp"), Cell::new("gone with the container")]);
    for path in &place.options.hidden {
        table.row([Cell::quiet(path.display()), Cell::quiet(""), Cell::quiet("never, wherever it lies")]);
    }
    table.row([Cell::new("network"), Cell::new(""), Cell::new(network)]);
    session.out.table(&table)?;
    session.out.line("")?;
    session.out.heading("and all commands of a container together may use")?;
    let mut table = Table::new(["what", "at most"]);
    for (what, most) in [
        ("memory", size(Some(options.memory))),
        ("processors", format!("{} %", options.cpu_percent)),
        ("processes", options.processes.to_string()),
        ("the workspace's disk", size(place.options.limits.disk)),
        ("/tmp", size(Some(place.options.limits.temporary))),
    ] {
        table.row([Cell::new(what), Cell::new(most)]);
    }
    session.out.table(&table)?;
    listed(&containers, session)?;
    Ok(ExitCode::SUCCESS)
}

fn listed(containers: &[Listed], session: &mut Session) -> Result<(), Failure> {
    if containers.is_empty() {
        return Ok(());
    }
    session.out.line("")?;
    session.out.heading("Containers")?;
    let mut table = Table::new(["container", "shared by", "shows", "state"]);
    for container in containers {
        let id: String = container.id.chars().take(12).collect();
        let state = if container.running { Cell::good("runs") } else { Cell::warning("stopped") };
        table.row([Cell::strong(id), Cell::new(&container.key), Cell::new(&container.variant), state]);
    }
    session.out.table(&table)
}
