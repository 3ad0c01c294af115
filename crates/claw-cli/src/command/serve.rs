//! `clawsmith serve`: agents and tools over HTTP, until told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use claw_gateway::{GatewayOptions, ReloadOptions};
use claw_terminal::{stop_requested, tell};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_serving_app;

/// The note on the first signal to stop.
const ENDING: &str = "shutting down: active requests and runs may finish; a second signal quits at once";

/// The time after which everything that a start does is done.
const STARTED: Duration = Duration::from_secs(2);

/// The address to listen on.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The address and port, instead of `gateway.listen`; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Play this script instead of asking a model.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

impl Serve {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let mut setup = session.load()?;
        // Others come in: the skills in this user's home directory are not for them.
        setup.local_user = false;
        let listening = setup.listening(self.listen)?;
        let (address, scheme) = (listening.address, if listening.tls.is_some() { "https" } else { "http" });
        let reload = ReloadOptions { file: session.globals.config.clone(), now: Arc::default() };
        let hangups = Arc::clone(&reload.now);
        let options = GatewayOptions {
            hosts: setup.config().gateway.hosts.clone(),
            tls: listening.tls,
            peers: listening.peers,
            proxies: setup.config().gateway.proxies.clone(),
            script: self.script,
            reload: Some(reload),
            drain: Duration::from_secs(setup.config().gateway.drain_secs.into()),
        };
        with_serving_app(&setup, async |app| {
            reload_on_hangup(hangups)?;
            let listener = TcpListener::bind(address).await.map_err(|error| {
                Failure::failed(format!("cannot listen on {address}"))
                    .because(error)
                    .hint("choose another with `--listen`")
            })?;
            let bound = listener.local_addr().unwrap_or(address);
            if app.api_keys().await?.is_empty() {
                tell("there is no API key yet; create one with `clawsmith api-keys create --user NAME`");
            }
            match session.out.json {
                true => session.out.json_line(&json!({ "listening": format!("{scheme}://{bound}") }))?,
                false => session.out.line(format_args!("listening on {scheme}://{bound}"))?,
            }
            session.out.flush()?;
            release_memory_after_start();
            claw_gateway::serve(app.clone(), listener, options, stop_requested(ENDING)).await?;
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// Gives back, once, the code pages that only the start needed. A failure costs memory and nothing else.
fn release_memory_after_start() {
    tokio::spawn(async {
        tokio::time::sleep(STARTED).await;
        let _ = tokio::task::spawn_blocking(claw_sandbox::release_code).await;
    });
}

/// Rings on every SIGHUP.
fn reload_on_hangup(reload: Arc<Notify>) -> Result<(), Failure> {
    let hangups = signal(SignalKind::hangup());
    let mut hangups =
        hangups.map_err(|error| Failure::failed("SIGHUP cannot be listened for").because(error))?;
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            reload.notify_one();
        }
    });
    Ok(())
}
