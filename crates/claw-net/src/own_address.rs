//! Whether an address leads back to this process: its listeners ([`claw_core::own_listen_addresses`]), by every name and address of
//! this machine. Clients of this crate do not connect to them, whatever their configuration names.

use std::net::{IpAddr, UdpSocket};

use claw_core::own_listen_addresses::{is_own_name, is_own_port};
use url::{Host, Url};

/// Returns whether a URL leads to a listener of this process by its text: an address of this machine with the listener's
/// port, or one of the listener's names with any port. Other names are judged by their addresses.
pub(crate) fn leads_here(url: &Url) -> bool {
    let port = url.port_or_known_default();
    match url.host() {
        Some(Host::Ipv4(address)) => is_own_port(port) && is_this_machine(address.into()),
        Some(Host::Ipv6(address)) => is_own_port(port) && is_this_machine(address.into()),
        Some(Host::Domain(name)) => is_own_name(name),
        None => false,
    }
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

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use claw_core::own_listen_addresses::{OwnListener, own_ports};

    use super::*;

    #[track_caller]
    fn check(url: &str, expected: bool) {
        assert_eq!(leads_here(&Url::parse(url).unwrap()), expected, "{url}");
    }

    #[test]
    fn every_spelling_of_this_machine_leads_here() {
        let address = SocketAddr::from(([127, 0, 0, 1], 61_234));
        let closed = OwnListener::close_to_agents(address.port(), &["Agents.example.org".to_owned()]);
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
