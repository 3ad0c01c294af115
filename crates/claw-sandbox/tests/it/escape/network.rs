//! Attacks on other machines, or on other programs of this one.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use claw_core::own_listen_addresses::OwnListener;
use claw_core::tool::{Effect, Effects};
use claw_sandbox::Network;

use crate::kit::Kit;
use crate::sandboxes::Sandbox as _;

#[tokio::test]
async fn refuses_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let kit = Kit::new();
    kit.refuses("tcp", &listener.local_addr().unwrap().to_string(), &[libc::EPERM]).await;
    kit.refuses("tcp", "[::1]:9", &[libc::EPERM]).await;
}

#[tokio::test]
async fn refuses_udp() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    Kit::new().refuses("udp", &socket.local_addr().unwrap().to_string(), &[libc::EPERM]).await;
}

#[tokio::test]
async fn refuses_raw_packet_and_virtual_machine_sockets() {
    let mut kit = Kit::new();
    for network in [Network::None, Network::Loopback, Network::Host] {
        kit.options.network = network;
        for name in ["raw", "packet", "vsock"] {
            kit.refuses(name, "", &[libc::EPERM]).await;
        }
    }
}

#[tokio::test]
async fn refuses_abstract_sockets_of_others() {
    let name = format!("clawsmith-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let mut kit = Kit::new();
    kit.refuses("abstract", &name, &[libc::ECONNREFUSED, libc::EPERM]).await;
    // With the machine's network the names are seen, and Landlock refuses them.
    kit.options.network = Network::Host;
    kit.refuses("abstract", &name, &[libc::EPERM]).await;
}

#[tokio::test]
async fn refuses_the_machine_s_loopback_where_it_has_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut kit = Kit::new();
    kit.options.network = Network::Loopback;
    kit.refuses("tcp", &listener.local_addr().unwrap().to_string(), &[libc::ECONNREFUSED]).await;
    kit.refuses("tcp", "192.0.2.1:80", &[libc::ENETUNREACH]).await;
}

#[tokio::test]
async fn a_granted_network_is_reached_unless_the_caller_may_not() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut kit = Kit::new();
    kit.options.network = Network::Host;
    assert_eq!(kit.attack("tcp", &address).await.output, "escaped\n");
    kit.context.effects = Effects::ALL.without(Effects::of(&[Effect::Network]));
    kit.refuses("tcp", &address, &[libc::EPERM]).await;
}

#[tokio::test]
async fn refuses_the_address_on_which_this_program_listens() {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let own = listener.local_addr().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut kit = Kit::new();
    kit.options.network = Network::Host;
    let here = |host: &str| format!("{host}:{}", own.port());
    for attack in ["tcp", "fast_open"] {
        assert_eq!(
            kit.attack(attack, &here("127.0.0.1")).await.output,
            "escaped\n",
            "{attack} works otherwise"
        );
    }
    let _closed = OwnListener::close_to_agents(own.port(), &[]);
    for host in ["127.0.0.1", "127.0.0.2", "0.0.0.0", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
        kit.refuses("tcp", &here(host), &[libc::EACCES]).await;
    }
    kit.refuses("fast_open", &here("127.0.0.1"), &[libc::EPERM]).await;
    kit.refuses("mptcp", &here("127.0.0.1"), &[libc::EPROTONOSUPPORT]).await;
    // The rest of the network is there.
    assert_eq!(kit.attack("tcp", &other.local_addr().unwrap().to_string()).await.output, "escaped\n");
}
