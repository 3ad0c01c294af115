//! The filter, run by a small interpreter of our own: cases that no attack program can easily provoke.

use super::*;

fn filter(network: Network) -> Filter {
    Filter {
        network,
        closes_ports: false,
        renames: Renaming::Direct,
        shares_files: false,
        shares_processes: false,
    }
}

/// The answer of the filter to a call.
fn answer(network: Network, arch: u32, call: u32, arguments: [u64; 6]) -> u32 {
    answer_of(&filter(network), arch, call, arguments)
}

fn answer_of(filter: &Filter, arch: u32, call: u32, arguments: [u64; 6]) -> u32 {
    let mut data = Vec::new();
    data.extend(call.to_le_bytes());
    data.extend(arch.to_le_bytes());
    data.extend([0; 8]);
    arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
    let program = program(filter).unwrap();
    let (mut at, mut held) = (0, 0_u32);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let jump = |yes: bool| usize::from(if yes { jt } else { jf });
        match code {
            0x20 => held = u32::from_le_bytes(data[k as usize..k as usize + 4].try_into().unwrap()),
            0x54 => held &= k,
            0x06 => return k,
            0x15 => at += jump(held == k),
            0x25 => at += jump(held > k),
            0x45 => at += jump(held & k != 0),
            _ => panic!("unknown instruction {code:#x}"),
        }
    }
}

#[track_caller]
fn check(network: Network, call: libc::c_long, arguments: [u64; 6], expected: u32) {
    assert_eq!(answer(network, MACHINE.unwrap(), call as u32, arguments), expected, "{call} {arguments:?}");
}

const REFUSE: u32 = refuse(libc::EPERM);

#[test]
fn every_listed_call_is_refused() {
    for call in REFUSED.iter().chain(REFUSED_HERE) {
        check(Network::Host, *call, [0; 6], REFUSE);
    }
    for call in UNKNOWN {
        check(Network::Host, *call, [0; 6], refuse(libc::ENOSYS));
    }
}

#[test]
fn everyday_calls_are_allowed() {
    for call in [libc::SYS_read, libc::SYS_write, libc::SYS_execve, libc::SYS_exit_group, libc::SYS_wait4] {
        check(Network::None, call, [u64::MAX; 6], ALLOW);
    }
}

#[test]
fn refuses_calls_of_another_numbering_and_those_not_yet_known() {
    assert_eq!(answer(Network::Host, 0x4000_0003, 0, [0; 6]), KILL);
    for call in [NEWEST + 1, 0x4000_0000 | libc::SYS_ptrace as u32, u32::MAX] {
        assert_eq!(answer(Network::Host, MACHINE.unwrap(), call, [0; 6]), refuse(libc::ENOSYS));
    }
}

#[test]
fn where_ports_are_closed_no_call_connects_past_landlock() {
    let closing = Filter { closes_ports: true, ..filter(Network::Host) };
    let asked = |call: libc::c_long, arguments| answer_of(&closing, MACHINE.unwrap(), call as u32, arguments);
    let fast = libc::MSG_FASTOPEN as u64;
    for (call, at) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
        let mut arguments = [0; 6];
        assert_eq!(asked(call, arguments), ALLOW);
        arguments[at] = fast | libc::MSG_NOSIGNAL as u64;
        assert_eq!(asked(call, arguments), REFUSE);
        check(Network::Host, call, arguments, ALLOW);
    }
    for family in [libc::AF_INET, libc::AF_INET6] {
        let socket = |protocol: i32| {
            asked(libc::SYS_socket, [family as u64, libc::SOCK_STREAM as u64, protocol as u64, 0, 0, 0])
        };
        assert_eq!(socket(0), ALLOW);
        assert_eq!(socket(libc::IPPROTO_TCP), ALLOW);
        assert_eq!(socket(libc::IPPROTO_MPTCP), refuse(libc::EPROTONOSUPPORT));
        assert_eq!(socket(256), refuse(libc::EPROTONOSUPPORT));
    }
}

#[test]
fn sockets_are_those_that_the_network_allows() {
    let (stream, datagram, raw) = (1 | 0o2_000_000, 2, 3);
    for (family, kind, network, expected) in [
        (libc::AF_UNIX, stream, Network::None, ALLOW),
        (libc::AF_INET, stream, Network::None, REFUSE),
        (libc::AF_INET6, datagram, Network::None, REFUSE),
        (libc::AF_INET, stream, Network::Host, ALLOW),
        (libc::AF_INET6, datagram, Network::Loopback, ALLOW),
        (libc::AF_INET, raw, Network::Host, REFUSE),
        (libc::AF_PACKET, raw, Network::Host, REFUSE),
        (libc::AF_VSOCK, stream, Network::Host, REFUSE),
        (libc::AF_NETLINK, raw, Network::Host, ALLOW),
        (libc::AF_NETLINK, raw, Network::None, REFUSE),
    ] {
        check(network, libc::SYS_socket, [family as u64, kind, 0, 0, 0, 0], expected);
        // The upper half of an `int` is noise that the kernel does not look at.
        check(network, libc::SYS_socket, [family as u64 | 7 << 32, kind, 0, 0, 0, 0], expected);
    }
    check(Network::Host, libc::SYS_socket, [libc::AF_NETLINK as u64, raw, 12, 0, 0, 0], REFUSE);
}

#[test]
fn threads_are_made_and_namespaces_are_not() {
    let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
    check(Network::None, libc::SYS_clone, [thread, 0, 0, 0, 0, 0], ALLOW);
    for flag in [libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWNET, libc::CLONE_NEWPID] {
        check(Network::None, libc::SYS_clone, [thread | flag as u64, 0, 0, 0, 0, 0], REFUSE);
    }
}

#[test]
fn modes_that_lend_an_identity_are_refused() {
    check(Network::None, libc::SYS_fchmodat, [0, 0, 0o755, 0, 0, 0], ALLOW);
    check(Network::None, libc::SYS_fchmodat, [0, 0, 0o4755, 0, 0, 0], REFUSE);
    check(Network::None, libc::SYS_fchmod, [0, 0o2755, 0, 0, 0, 0], REFUSE);
    let create = libc::O_CREAT as u64;
    check(Network::None, libc::SYS_openat, [0, 0, create, 0o4755, 0, 0], REFUSE);
    check(Network::None, libc::SYS_openat, [0, 0, create, 0o644, 0, 0], ALLOW);
    check(Network::None, libc::SYS_openat, [0, 0, 0, 0o4755, 0, 0], ALLOW);
    // Opening a directory has a bit in common with making a file without a name.
    check(Network::None, libc::SYS_openat, [0, 0, libc::O_DIRECTORY as u64, 0o4755, 0, 0], ALLOW);
    check(Network::None, libc::SYS_openat, [0, 0, libc::O_TMPFILE as u64, 0o4755, 0, 0], REFUSE);
}

#[test]
fn typing_into_a_terminal_is_refused() {
    check(Network::None, libc::SYS_ioctl, [0, 0x5412, 0, 0, 0, 0], REFUSE);
    check(Network::None, libc::SYS_ioctl, [0, 0x5412 | 1 << 32, 0, 0, 0, 0], REFUSE);
    check(Network::None, libc::SYS_ioctl, [0, 0x5413, 0, 0, 0, 0], ALLOW);
}

#[test]
fn refuses_limits_and_priorities_of_others() {
    let null = [7, 0, 0, 0, 0, 0];
    check(Network::None, libc::SYS_prlimit64, [0, 7, 0x1000, 0, 0, 0], ALLOW);
    check(Network::None, libc::SYS_prlimit64, null, ALLOW);
    check(Network::None, libc::SYS_prlimit64, [1, 7, 0x1000, 0, 0, 0], REFUSE);
    check(Network::None, libc::SYS_prlimit64, [1, 7, 0x1_0000_0000, 0, 0, 0], REFUSE);
    check(Network::None, libc::SYS_setpriority, [0, 0, 19, 0, 0, 0], ALLOW);
    check(Network::None, libc::SYS_setpriority, [0, 99, 19, 0, 0, 0], REFUSE);
    check(Network::None, libc::SYS_sched_setaffinity, [99, 8, 1, 0, 0, 0], ALLOW);
    check(Network::None, libc::SYS_sched_setaffinity, [1, 8, 1, 0, 0, 0], REFUSE);
    let shared = Filter { shares_processes: true, ..filter(Network::None) };
    for (pid, expected) in [(0, ALLOW), (99, REFUSE), (1, REFUSE)] {
        for call in [libc::SYS_sched_setaffinity, libc::SYS_sched_setscheduler, libc::SYS_sched_setattr] {
            assert_eq!(answer_of(&shared, MACHINE.unwrap(), call as u32, [pid, 0, 0, 0, 0, 0]), expected);
        }
    }
}

#[test]
fn refuses_sockets_of_other_programs_where_their_files_are_seen() {
    let unix = [libc::AF_UNIX as u64, libc::SOCK_STREAM as u64, 0, 0, 0, 0];
    let shared = Filter { shares_files: true, ..filter(Network::Host) };
    let machine = MACHINE.unwrap();
    assert_eq!(answer_of(&shared, machine, libc::SYS_socket as u32, unix), REFUSE);
    assert_eq!(answer_of(&shared, machine, libc::SYS_socketpair as u32, unix), ALLOW);
    check(Network::None, libc::SYS_socket, unix, ALLOW);
}
