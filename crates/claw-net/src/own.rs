//! The addresses on which this process listens. Nothing that agents use connects to them: not a client of this crate,
//! whatever its configuration names, and not a command with the machine's network.
//!
//! The list belongs to the process and not to a client, so that no client can be made without it.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

use url::{Host, Url};

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
    /// Closes an address that this process listens on, and the names by which others reach it.
    pub fn close_to_agents(address: SocketAddr, names: &[String]) -> Self {
        let names = names.iter().map(|name| bare(name)).collect();
        let listener = Listener { port: address.port(), names };
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

fn listeners() -> MutexGuard<'static, Vec<Listener>> {
    LISTENERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the TCP ports on which this process listens.
pub fn own_ports() -> Vec<u16> {
    listeners().iter().map(|listener| listener.port).collect()
}

/// Returns whether a URL leads to a listener of this process by its text: an address of this machine with the listener's
/// port, or one of the listener's names with any port. Other names are judged by their addresses.
pub(crate) fn leads_here(url: &Url) -> bool {
    let port = url.port_or_known_default();
    match url.host() {
        Some(Host::Ipv4(address)) => is_own_port(port) && is_this_machine(address.into()),
        Some(Host::Ipv6(address)) => is_own_port(port) && is_this_machine(address.into()),
        Some(Host::Domain(name)) => {
            let name = bare(name);
            listeners().iter().any(|listener| listener.names.contains(&name))
        }
        None => false,
    }
}

/// Returns whether this process listens on the port.
pub(crate) fn is_own_port(port: Option<u16>) -> bool {
    listeners().iter().any(|listener| Some(listener.port) == port)
}

/// Returns whether an address is one of this machine's. The kernel is asked, by binding a socket to it: interfaces come
/// and go. An answer other than "no such address" counts as yes.
pub(crate) fn is_this_machine(address: IpAddr) -> bool {
    let address = address.to_canonical();
    if address.is_loopback() || address.is_unspecified() {
        return true;
    }
    match UdpSocket::bind((address, 0)) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::AddrNotAvailable,
    }
}

/// A name as it is compared: without a port, a last dot and capitals.
fn bare(name: &str) -> String {
    let name = match name.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => name,
    };
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: bool) {
        assert_eq!(leads_here(&Url::parse(url).unwrap()), expected, "{url}");
    }

    #[test]
    fn every_spelling_of_this_machine_leads_here() {
        let address = SocketAddr::from(([127, 0, 0, 1], 61_234));
        let closed = OwnListener::close_to_agents(address, &["Agents.example.org".to_owned()]);
        for url in [
            "http://127.0.0.1:61234/",
            "http://127.1:61234/",
            "http://2130706433:61234/",
            "http://0x7f.0.0.1:61234/",
            "http://127.9.9.9:61234/",
            "http://0.0.0.0:61234/",
            "http://0:61234/",
            "http://[::1]:61234/",
            "http://[::]:61234/",
            "http://[::ffff:127.0.0.1]:61234/",
            "http://[0:0:0:0:0:ffff:7f00:1]:61234/",
            "https://agents.example.org/v1/tools",
            "https://AGENTS.example.org.:8443/v1/tools",
        ] {
            check(url, true);
        }
        for url in [
            "http://127.0.0.1:61235/",
            "http://192.0.2.1:61234/",
            "https://example.org/",
            "https://other.agents.example.org/",
        ] {
            check(url, false);
        }
        assert!(own_ports().contains(&61_234));
        drop(closed);
        check("http://127.0.0.1:61234/", false);
    }

    #[test]
    fn addresses_of_interfaces_are_this_machine() {
        // The address that a packet to another machine would leave from, where there is a way to one.
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        if socket.connect("192.0.2.1:9").is_ok() {
            assert!(is_this_machine(socket.local_addr().unwrap().ip()));
        }
        assert!(!is_this_machine([192, 0, 2, 1].into()));
        assert!(is_this_machine([127, 3, 2, 1].into()));
    }
}
