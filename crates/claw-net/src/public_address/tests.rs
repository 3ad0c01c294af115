use super::why_not_public;

#[track_caller]
fn check(addresses: &[&str], expected: Option<&str>) {
    for address in addresses {
        assert_eq!(why_not_public(address.parse().unwrap()), expected, "{address}");
    }
}

#[test]
fn public_addresses_are_public() {
    check(&["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"], None);
    check(
        &["169.253.255.255", "192.0.1.0", "192.167.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255"],
        None,
    );
    check(&["2606:4700:4700::1111", "2001:4860:4860::8888", "2001:200::1", "2a00::1", "3ffe::1"], None);
    check(&["::ffff:1.1.1.1", "64:ff9b::8.8.8.8"], None);
}

#[test]
fn refuses_what_is_near() {
    check(&["127.0.0.1", "127.255.255.255", "::1"], Some("this machine"));
    check(&["0.0.0.0", "0.1.2.3"], Some("this network"));
    check(
        &["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12::1", "fec0::1"],
        Some("a private network"),
    );
    check(&["100.64.0.1", "100.127.255.255", "100.100.100.200"], Some("a carrier's shared network (CGNAT)"));
    check(&["169.254.1.1", "fe80::1", "febf::1"], Some("a link-local address"));
}

#[test]
fn refuses_metadata_services() {
    check(&["169.254.169.254", "168.63.129.16"], Some("a cloud's metadata service"));
    check(&["fd00:ec2::254"], Some("a private network"));
    check(&["192.0.0.192"], Some("a range reserved for protocols"));
}

#[test]
fn refuses_ipv4_carried_in_ipv6() {
    check(&["::ffff:127.0.0.1", "64:ff9b::127.0.0.1", "::ffff:7f00:1"], Some("this machine"));
    check(&["::ffff:10.0.0.1", "64:ff9b::192.168.0.1"], Some("a private network"));
    check(&["::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"], Some("a cloud's metadata service"));
    check(&["64:ff9b:1::1.1.1.1", "64:ff9b::1:0:1.1.1.1"], Some("a range for local NAT64 translation"));
    check(&["::127.0.0.1", "::1.1.1.1", "::", "::ffff:0:1.1.1.1"], Some("a reserved range"));
    check(&["2002:7f00:1::", "2002:101:101::1"], Some("a tunnel"));
    check(&["2001::1", "2001:0:5ef5:79fb::1", "2001:1ff::1"], Some("a range reserved for protocols"));
}

#[test]
fn refuses_what_is_routed_nowhere() {
    check(&["224.0.0.1", "239.255.255.255", "ff02::1"], Some("a multicast group"));
    check(
        &["240.0.0.1", "255.255.255.255", "4000::1", "1fff::1", "5f00::1", "100::1"],
        Some("a reserved range"),
    );
    check(
        &["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"],
        Some("a range for documentation"),
    );
    check(&["198.18.0.1", "198.19.255.255"], Some("a range for benchmarks"));
    check(&["192.88.99.1"], Some("a 6to4 relay"));
}
