//! The TCP addresses on which this process listens. Nothing that agents use connects to them: not a client of `claw-net`,
//! whatever its configuration names, and not a command with the machine's network.
//!
//! The list belongs to the process and not to a client, so that no client can be made without it. This module opens no
//! socket and asks the machine nothing.

use std::sync::{Mutex, MutexGuard, PoisonError};

static LISTENERS: Mutex<Vec<Listener>> = Mutex::new(Vec::new());

#[derive(Debug, Clone, PartialEq, Eq)]
struct Listener {
    port: u16,
    names: Vec<String>,
}

/// A listener of this process. Its address is closed to agents until this is dropped.
#[derive(Debug)]
#[must_use = "the address is closed for as long as this lives"]
pub struct OwnListener(Listener);

impl OwnListener {
    /// Closes a TCP port that this process listens on, and the names by which others reach it.
    pub fn close_to_agents(port: u16, names: &[String]) -> Self {
        let names = names.iter().map(|name| bare(name)).collect();
        let listener = Listener { port, names };
        listeners().push(listener.clone());
        Self(listener)
    }
}

impl Drop for OwnListener {
    fn drop(&mut self) {
        let mut listeners = listeners();
        if let Some(at) = listeners.iter().position(|listener| *listener == self.0) {
            listeners.swap_remove(at);
        }
    }
}

/// Returns the TCP ports on which this process listens.
pub fn own_ports() -> Vec<u16> {
    listeners().iter().map(|listener| listener.port).collect()
}

/// Returns whether this process listens on the port.
pub fn is_own_port(port: Option<u16>) -> bool {
    listeners().iter().any(|listener| Some(listener.port) == port)
}

/// Returns whether a host name, with or without a port, is one of a listener of this process.
pub fn is_own_name(name: &str) -> bool {
    let name = bare(name);
    listeners().iter().any(|listener| listener.names.contains(&name))
}

fn listeners() -> MutexGuard<'static, Vec<Listener>> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a name as it is compared: without a port, a last dot and capitals.
fn bare(name: &str) -> String {
    let name = match name.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}
