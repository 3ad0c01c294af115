//! The role of this binary inside a sandbox: attacks that no shell can make.

#![expect(unsafe_code, reason = "an attack calls the kernel as it likes")]

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;

/// Attacks that ask the kernel for more than was granted; every sandbox answers with `EPERM`.
pub(crate) const RINGS: &[&str] = &["io_uring"];
pub(crate) const OTHERS: &[&str] = &["ptrace", "ptrace_first", "process_vm"];
pub(crate) const MOUNTS: &[&str] = &["mount", "remount", "umount", "chroot"];
pub(crate) const NAMESPACES: &[&str] = &["userns", "clone_userns", "setns"];
pub(crate) const PRIVILEGES: &[&str] = &["setuid_bit", "setuid_open", "capability", "no_new_privileges"];
pub(crate) const KEYRING: &[&str] = &["keyring", "keyctl"];
pub(crate) const DOORS: &[&str] = &["bpf", "perf", "userfaultfd", "kexec", "handle"];

/// Attacks if this process was started for it, and prints how the kernel answered.
pub(crate) fn attack_if_asked() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, word, name, with] = arguments.as_slice() else { return };
    if word != "attack" {
        return;
    }
    let answer = match attack(name, with) {
        Ok(()) => "escaped".to_owned(),
        Err(error) => format!("refused {}", error.raw_os_error().unwrap_or(0)),
    };
    println!("{answer}");
    std::process::exit(0);
}

fn attack(name: &str, with: &str) -> io::Result<()> {
    match name {
        "tcp" => TcpStream::connect(with).map(drop),
        "fast_open" => fast_open(with),
        "mptcp" => connect(with, libc::IPPROTO_MPTCP),
        "udp" => UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.send_to(b"out", with)).map(drop),
        "raw" => call(|| unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP) }.into()),
        "packet" => call(|| unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) }.into()),
        "vsock" => call(|| unsafe { libc::socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) }.into()),
        "abstract" => abstract_socket(with),
        "io_uring" => call(|| unsafe {
            let mut parameters = [0_u8; 120];
            libc::syscall(libc::SYS_io_uring_setup, 8, parameters.as_mut_ptr())
        }),
        "ptrace" => ptrace(),
        "ptrace_first" => call(|| unsafe { libc::ptrace(libc::PTRACE_ATTACH, 1, 0, 0) }),
        "process_vm" => call(|| unsafe {
            let mut byte = 0_u8;
            let vector = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            libc::process_vm_readv(1, &raw const vector, 1, &raw const vector, 1, 0) as libc::c_long
        }),
        "mount" => call(|| unsafe {
            let (tmpfs, at) = (c"tmpfs".as_ptr(), c"/tmp".as_ptr());
            libc::mount(tmpfs, at, tmpfs, 0, std::ptr::null()).into()
        }),
        "remount" => call(|| unsafe {
            let flags = libc::MS_REMOUNT | libc::MS_BIND;
            libc::mount(std::ptr::null(), c"/usr".as_ptr(), std::ptr::null(), flags, std::ptr::null()).into()
        }),
        "umount" => call(|| unsafe { libc::umount2(c"/proc".as_ptr(), libc::MNT_DETACH) }.into()),
        "chroot" => call(|| unsafe { libc::chroot(c"/tmp".as_ptr()) }.into()),
        "userns" => call(|| unsafe { libc::unshare(libc::CLONE_NEWUSER) }.into()),
        "clone_userns" => call(|| unsafe {
            let pid = libc::syscall(libc::SYS_clone, libc::CLONE_NEWUSER | libc::SIGCHLD, 0, 0, 0, 0);
            if pid == 0 {
                libc::_exit(0);
            }
            pid
        }),
        "setns" => call(|| unsafe { libc::setns(0, 0) }.into()),
        "setuid" => call(|| unsafe { libc::setresuid(12345, 12345, 12345) }.into()),
        "setuid_bit" => call(|| unsafe {
            libc::close(libc::open(c"lent".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o755));
            libc::chmod(c"lent".as_ptr(), 0o4755).into()
        }),
        "setuid_open" => {
            call(|| unsafe { libc::open(c"lent".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o4755) }.into())
        }
        "capability" => capability(),
        "keyring" => call(|| unsafe {
            let (kind, name) = (c"user".as_ptr(), c"stolen".as_ptr());
            libc::syscall(libc::SYS_add_key, kind, name, c"x".as_ptr(), 1, -3)
        }),
        "keyctl" => call(|| unsafe { libc::syscall(libc::SYS_keyctl, 0, -3, 0) }),
        "bpf" => call(|| unsafe { libc::syscall(libc::SYS_bpf, 0, 0, 0) }),
        "perf" => call(|| unsafe { libc::syscall(libc::SYS_perf_event_open, 0, 0, -1, -1, 0) }),
        "userfaultfd" => call(|| unsafe { libc::syscall(libc::SYS_userfaultfd, 1) }),
        "kexec" => call(|| unsafe { libc::syscall(libc::SYS_kexec_load, 0, 0, 0, 0) }),
        "handle" => call(|| unsafe { libc::syscall(libc::SYS_open_by_handle_at, 0, 0, 0) }),
        "unknown_call" => call(|| unsafe { libc::syscall(467, 0, 0, 0) }),
        #[cfg(target_arch = "x86_64")]
        "x32" => call(|| unsafe { libc::syscall(0x4000_0000 | libc::SYS_ptrace, 0, 0, 0, 0) }),
        "tiocsti" => call(|| unsafe {
            let byte = b'x';
            libc::ioctl(0, libc::TIOCSTI, &raw const byte).into()
        }),
        "mknod" => call(|| unsafe { libc::mknod(c"disk".as_ptr(), libc::S_IFBLK | 0o666, 0x800) }.into()),
        "signal" => {
            let pid = with.parse().map_err(io::Error::other)?;
            call(|| unsafe { libc::kill(pid, libc::SIGKILL) }.into())
        }
        "limit_first" => call(|| unsafe {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::prlimit(1, libc::RLIMIT_NOFILE, &raw const none, std::ptr::null_mut()).into()
        }),
        "priority_first" => call(|| unsafe { libc::setpriority(libc::PRIO_PROCESS, 1, 19) }.into()),
        "device_mode" => call(|| unsafe { libc::chmod(c"/dev/full".as_ptr(), 0o600) }.into()),
        "device_owner" => call(|| unsafe { libc::chown(c"/dev/null".as_ptr(), 0, 0) }.into()),
        "descriptors" => descriptors(),
        "execute" => execute(with),
        "core" => limit(libc::RLIMIT_CORE),
        "more_files" => limit(libc::RLIMIT_NOFILE),
        "no_new_privileges" => call(|| match unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } {
            1 => fail(libc::EPERM),
            other => other.into(),
        }),
        other => Err(io::Error::other(format!("`{other}` is no attack"))),
    }
}

fn call(call: impl FnOnce() -> libc::c_long) -> io::Result<()> {
    if call() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn fail(error: i32) -> libc::c_long {
    unsafe { *libc::__errno_location() = error };
    -1
}

/// Runs a program with its arguments, separated by blanks.
fn execute(command: &str) -> io::Result<()> {
    let mut words = command.split(' ');
    let ended = std::process::Command::new(words.next().unwrap_or_default()).args(words).status()?;
    if ended.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
}

fn abstract_socket(name: &str) -> io::Result<()> {
    use std::os::linux::net::SocketAddrExt as _;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
    UnixStream::connect_addr(&address).map(drop)
}

/// Traces a child of its own: even that gives power over calls the filter has already judged.
fn ptrace() -> io::Result<()> {
    let child = unsafe { libc::fork() };
    if child == 0 {
        loop {
            unsafe { libc::pause() };
        }
    }
    let traced = call(|| unsafe { libc::ptrace(libc::PTRACE_ATTACH, child, 0, 0) });
    unsafe { libc::kill(child, libc::SIGKILL) };
    traced
}

/// Succeeds if any capability is held or could be regained.
fn capability() -> io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let held = |line: &str| !line.trim_end().ends_with("\t0000000000000000");
    // The bounding set matters to those who may gain by executing; nobody does here.
    let sets = ["CapInh", "CapPrm", "CapEff", "CapAmb"];
    let any = status.lines().any(|line| sets.iter().any(|set| line.starts_with(set)) && held(line));
    if any { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

/// Succeeds if a descriptor beside the three streams was inherited.
fn descriptors() -> io::Result<()> {
    let open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } != -1;
    match (3..4096).find(open) {
        Some(fd) => {
            println!("descriptor {fd} is open");
            Ok(())
        }
        None => Err(io::Error::from_raw_os_error(libc::EBADF)),
    }
}

/// Raises a limit.
fn limit(resource: libc::__rlimit_resource_t) -> io::Result<()> {
    let most = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
    call(|| unsafe { libc::setrlimit(resource, &raw const most) }.into())
}

/// An IPv4 address with its port, as the kernel takes it.
fn internet(address: &str) -> libc::sockaddr_in {
    let address: std::net::SocketAddrV4 = address.parse().unwrap();
    libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*address.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

/// Connects with a stream socket of this protocol.
fn connect(address: &str, protocol: i32) -> io::Result<()> {
    let (address, length) = (internet(address), size_of::<libc::sockaddr_in>() as u32);
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, protocol) };
    call(|| socket.into())?;
    call(|| unsafe { libc::connect(socket, (&raw const address).cast(), length) }.into())
}

/// Connects by sending data with the first packet.
fn fast_open(address: &str) -> io::Result<()> {
    let (address, length) = (internet(address), size_of::<libc::sockaddr_in>() as u32);
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    call(|| socket.into())?;
    let (data, flags) = (b"GET".as_ptr().cast(), libc::MSG_FASTOPEN);
    call(|| unsafe { libc::sendto(socket, data, 3, flags, (&raw const address).cast(), length) }
        as libc::c_long)
}
