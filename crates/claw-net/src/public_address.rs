//! Public addresses: those that are routed on the internet and belong to no private network.
//!
//! Addresses that embed another one (IPv4 in IPv6, NAT64) are judged by that one. If the embedded one is
//! obscured, or the address leads through a tunnel, it is not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether an address is public.
pub fn is_public(address: IpAddr) -> bool {
    why_not_public(address).is_none()
}

/// Returns the reason why an address is not public; `None` if it is.
pub fn why_not_public(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

fn v4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, d] = address.octets();
    match (a, b, c, d) {
        (0, ..) => Some("this network"),
        (10, ..) | (172, 16..=31, ..) | (192, 168, ..) => Some("a private network"),
        (100, 64..=127, ..) => Some("a carrier's shared network (CGNAT)"),
        (127, ..) => Some("this machine"),
        (169, 254, 169, 254) | (168, 63, 129, 16) => Some("a cloud's metadata service"),
        (169, 254, ..) => Some("a link-local address"),
        (192, 0, 0, _) => Some("a range reserved for protocols"),
        (192, 0, 2, _) | (198, 51, 100, _) | (203, 0, 113, _) => Some("a range for documentation"),
        (192, 88, 99, _) => Some("a 6to4 relay"),
        (198, 18..=19, ..) => Some("a range for benchmarks"),
        (224..=239, ..) => Some("a multicast group"),
        (240..=255, ..) => Some("a reserved range"),
        _ => None,
    }
}

fn v6(address: Ipv6Addr) -> Option<&'static str> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let carried = || {
        let ([g1, g2], [h1, h2]) = (g.to_be_bytes(), h.to_be_bytes());
        v4(Ipv4Addr::new(g1, g2, h1, h2))
    };
    match (a, b, c, d, e, f) {
        _ if address.is_loopback() => Some("this machine"),
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => carried(),
        (0x64, 0xff9b, ..) => Some("a range for local NAT64 translation"),
        (0xfe80..=0xfebf, ..) => Some("a link-local address"),
        (0xfc00..=0xfdff, ..) | (0xfec0..=0xfeff, ..) => Some("a private network"),
        (0xff00..=0xffff, ..) => Some("a multicast group"),
        (0x2001, 0xdb8, ..) | (0x3fff, 0..=0x0fff, ..) => Some("a range for documentation"),
        (0x2001, 0..=0x01ff, ..) => Some("a range reserved for protocols"),
        (0x2002, ..) => Some("a tunnel"),
        (0x2000..=0x3fff, ..) => None,
        _ => Some("a reserved range"),
    }
}

#[cfg(test)]
mod tests;
