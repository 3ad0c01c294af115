//! The kernel calls without a safe wrapper. All `unsafe` of this crate is here.
//!
//! Everything in this file runs in the helper, which has one thread, asks the kernel about its features, or saves memory.

#![expect(unsafe_code, reason = "the kernel is called directly; each call says why it is sound")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;

pub(crate) use libc::sock_filter as Instruction;

/// Forks a process that runs `work` and exits with its return code; `flags` name its own new namespaces. To
/// be called with one thread only.
pub(crate) fn fork(flags: libc::c_int, work: impl FnOnce() -> u8) -> io::Result<Pid> {
    // SAFETY: no stack is given, so the child goes on with a copy of ours, as after `fork`; nothing is shared.
    // There is one thread, so no lock can be held by one that the child lacks.
    let pid = match flags {
        0 => unsafe { libc::fork() as libc::c_long },
        _ => unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) },
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // The child must not come back into its parent's frames, not even by a panic.
            let code = catch_unwind(AssertUnwindSafe(work)).unwrap_or(70);
            exit(code)
        }
        pid => Pid::from_raw(pid as libc::pid_t).ok_or_else(io::Error::last_os_error),
    }
}

/// Ends the process at once, with nothing flushed and no handler run.
pub(crate) fn exit(code: u8) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code.into()) }
}

/// Unmaps the pages of this program's file that nobody wrote to: code and constants. The kernel maps a page again, from the
/// same file, when it is next used.
pub(crate) fn release_code() -> io::Result<()> {
    let program = std::fs::read_link("/proc/self/exe")?;
    let mappings = std::fs::read_to_string("/proc/self/smaps")?;
    for (start, length) in unwritten(&mappings, &program.to_string_lossy()) {
        // SAFETY: the mapping belongs to the program's own file, which is never unmapped; it is not writable and has no page
        // of its own, so that every page can be read from the file again.
        let answer = unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        check(answer.into())?;
    }
    Ok(())
}

/// Limits the heaps of the C library, which would make one for nearly every thread, each with free memory that the others cannot
/// use. Has no effect with another C library.
pub(crate) fn limit_heaps(most: usize) {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes two numbers; a number that it does not accept changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, libc::c_int::try_from(most.max(1)).unwrap_or(libc::c_int::MAX));
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = most;
}

/// Returns start and length of the mappings of this file that are not writable and in which no page was written, by the
/// text of `/proc/self/smaps`.
fn unwritten(mappings: &str, file: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut current = None;
    for line in mappings.lines() {
        if let Some((range, rest)) = line.split_once(' ')
            && let Some((start, end)) = range.split_once('-')
        {
            let bounds = usize::from_str_radix(start, 16).ok().zip(usize::from_str_radix(end, 16).ok());
            let is_read_only = !rest.get(..4).is_some_and(|rights| rights.contains('w'));
            current = bounds.filter(|(start, end)| is_read_only && start < end && rest.ends_with(file));
        } else if line.strip_prefix("Anonymous:").is_some_and(|size| size.trim() == "0 kB") {
            found.extend(current.take().map(|(start, end)| (start, end - start)));
        }
    }
    found
}

/// Closes every descriptor from `first` on.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: called in the helper alone, after what is needed was moved below `first`; owners of the closed
    // descriptors are never used or dropped again.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) }).map(drop)
}

/// Marks every descriptor from `first` on to be closed when a program is executed.
pub(crate) fn close_on_exec_from(first: u32) -> io::Result<()> {
    const CLOEXEC: u32 = 4;
    // SAFETY: changes a flag of descriptors, and closes none now.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, CLOEXEC) }).map(drop)
}

/// Resets every signal to its default, and unblocks all.
pub(crate) fn reset_signals() {
    for signal in 1..=64 {
        // SAFETY: the default handler is always valid; the kernel refuses the signals that have none.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    // SAFETY: an empty set is a valid set, and the old one is not asked for.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Children that end are forgotten by the kernel, without anybody waiting for them.
pub(crate) fn forget_children() {
    // SAFETY: to ignore is a valid disposition, and no handler is involved.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
}

/// Makes writing to a broken pipe an error, not a signal.
pub(crate) fn ignore_broken_pipes() {
    // SAFETY: to ignore is a valid disposition, and no handler is involved.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Returns a descriptor that becomes readable when a child has ended; the signal itself is blocked from now
/// on.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    signals(&[libc::SIGCHLD])
}

/// Returns a descriptor from which these signals can be read; the signals themselves are blocked from now on.
pub(crate) fn signals(list: &[libc::c_int]) -> io::Result<OwnedFd> {
    // SAFETY: the set is made before it is used; the descriptor that comes back belongs to nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in list {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(fd.into())?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Sends a signal to every process that can be reached; in a process namespace that is all of it but its first.
pub(crate) fn signal_all(signal: libc::c_int) {
    // SAFETY: takes two numbers. That nobody is left to be signalled is no error.
    unsafe { libc::kill(-1, signal) };
}

/// Sets attributes of a mount and all below it.
pub(crate) fn set_mount_attributes(tree: BorrowedFd<'_>, attributes: u64) -> io::Result<()> {
    let attr = [attributes, 0, 0, 0];
    let flags = libc::AT_EMPTY_PATH | libc::AT_RECURSIVE;
    // SAFETY: the path is empty and ends with NUL; the structure is four words and lives through the call.
    check(unsafe {
        libc::syscall(libc::SYS_mount_setattr, tree.as_raw_fd(), c"".as_ptr(), flags, attr.as_ptr(), 32)
    })
    .map(drop)
}

/// Names the host, in a namespace of names.
pub(crate) fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes as it is told there are.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }.into()).map(drop)
}

/// Brings the loopback interface of this network namespace up.
pub(crate) fn loopback_up(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the structure is zeroed and as the kernel expects it; the name fits and ends with NUL.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l' as libc::c_char;
        request.ifr_name[1] = b'o' as libc::c_char;
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request).into()).map(drop)
    }
}

/// The version of Landlock that the kernel has.
pub(crate) fn landlock_version() -> io::Result<u32> {
    // SAFETY: a null pointer of size 0 with this flag asks for the version.
    check(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, 1_u32) })
        .map(|version| u32::try_from(version).unwrap_or(0))
}

/// Creates a rule set about files, TCP and scopes, of which the kernel of this version knows the first
/// `words`.
pub(crate) fn landlock_ruleset(handled: [u64; 3], words: usize) -> io::Result<OwnedFd> {
    let size = words.clamp(1, 3) * 8;
    // SAFETY: the structure has at least `size` bytes; the descriptor that comes back belongs to nobody else.
    unsafe {
        let fd = libc::syscall(libc::SYS_landlock_create_ruleset, handled.as_ptr(), size, 0_u32);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

/// Allows `access` below `path`.
pub(crate) fn landlock_allow(rules: impl AsFd, path: impl AsFd, access: u64) -> io::Result<()> {
    #[repr(C, packed)]
    struct Beneath {
        access: u64,
        parent: libc::c_int,
    }
    let beneath = Beneath { access, parent: path.as_fd().as_raw_fd() };
    let rules = rules.as_fd().as_raw_fd();
    // SAFETY: the structure is laid out as the kernel's and lives through the call.
    check(unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules, 1, &raw const beneath, 0_u32) })
        .map(drop)
}

/// Allows `access` to a TCP port.
pub(crate) fn landlock_allow_port(rules: impl AsFd, port: u16, access: u64) -> io::Result<()> {
    let allowed: [u64; 2] = [access, port.into()];
    let rules = rules.as_fd().as_raw_fd();
    // SAFETY: the two words are laid out as the kernel's structure and live through the call.
    check(unsafe { libc::syscall(libc::SYS_landlock_add_rule, rules, 2, allowed.as_ptr(), 0_u32) }).map(drop)
}

/// Puts this process under the rules, for good.
pub(crate) fn landlock_restrict(rules: impl AsFd) -> io::Result<()> {
    // SAFETY: takes a descriptor and a number.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_fd().as_raw_fd(), 0_u32) })
        .map(drop)
}

/// Checks that the kernel can filter system calls and answer refused ones with an error.
pub(crate) fn seccomp_can_refuse() -> io::Result<()> {
    const GET_ACTION_AVAIL: libc::c_long = 2;
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one word.
    check(unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0, &raw const action) }).map(drop)
}

/// Puts this process under a filter of system calls, for good.
pub(crate) fn seccomp_filter(program: &[Instruction]) -> io::Result<()> {
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `length` instructions and writes none; it checks the program.
    check(unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &raw const filter) })
        .map(drop)
}

/// Returns whether a filter can hand calls to another process, which may let them go on.
pub(crate) fn seccomp_can_notify() -> bool {
    const GET_ACTION_AVAIL: libc::c_long = 2;
    let action: u32 = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads one word.
    check(unsafe { libc::syscall(libc::SYS_seccomp, GET_ACTION_AVAIL, 0, &raw const action) }).is_ok()
}

/// Puts this process under a filter, for good; returns the descriptor on which the calls arrive that it hands over.
pub(crate) fn seccomp_filter_listening(program: &[Instruction]) -> io::Result<OwnedFd> {
    const NEW_LISTENER: libc::c_long = 8;
    // A signal does not interrupt a call that was received: its outcome would be lost. Since Linux 5.19.
    const WAIT_KILLABLE: libc::c_long = 32;
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut() };
    // SAFETY: the kernel copies `length` instructions and checks them; the descriptor belongs to nobody else.
    unsafe {
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        let listen =
            |flags: libc::c_long| check(libc::syscall(libc::SYS_seccomp, mode, flags, &raw const filter));
        let fd = listen(NEW_LISTENER | WAIT_KILLABLE).or_else(|_| listen(NEW_LISTENER))?;
        Ok(OwnedFd::from_raw_fd(fd as libc::c_int))
    }
}

/// A system call that a filter handed over; its process waits for the answer.
pub(crate) struct Notification {
    pub(crate) id: u64,
    pub(crate) pid: u32,
    pub(crate) call: libc::c_int,
    pub(crate) arguments: [u64; 6],
}

/// Answer to a system call that was handed over.
pub(crate) enum Answer {
    /// The kernel carries the call out as if it had not been intercepted.
    Continue,
    /// The call returns this value.
    Value(i64),
    /// The call fails with this error.
    Error(i32),
}

#[repr(C)]
#[derive(Default)]
struct RawNotification {
    id: u64,
    pid: u32,
    flags: u32,
    call: libc::c_int,
    machine: u32,
    pointer: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct RawAnswer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

const RECEIVE: u64 = 0xc050_2100;
const SEND: u64 = 0xc018_2101;
const IS_VALID: u64 = 0x4008_2102;

/// Receives an intercepted call; `None` if its process was killed meanwhile.
pub(crate) fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    let mut raw = RawNotification::default();
    // SAFETY: the structure is zeroed, laid out as the kernel's, and lives through the call.
    match check(unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut raw) }.into()) {
        Ok(_) => {
            let RawNotification { id, pid, call, arguments, .. } = raw;
            Ok(Some(Notification { id, pid, call, arguments }))
        }
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether the process still waits for the answer.
pub(crate) fn is_notification_valid(listener: BorrowedFd<'_>, id: u64) -> bool {
    // SAFETY: the kernel reads one number.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), IS_VALID as _, &raw const id) }.into()).is_ok()
}

/// Answers an intercepted call. If its process was killed, the answer is ignored.
pub(crate) fn answer_notification(listener: BorrowedFd<'_>, id: u64, answer: Answer) {
    let (value, error, flags) = match answer {
        Answer::Continue => (0, 0, 1),
        Answer::Value(value) => (value, 0, 0),
        Answer::Error(error) => (0, -error, 0),
    };
    let raw = RawAnswer { id, value, error, flags };
    // SAFETY: the structure is laid out as the kernel's and lives through the call.
    let _ = unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const raw) };
}

/// Removes all capabilities from the bounding set, from which an executed program could regain them.
pub(crate) fn drop_bounding_set() -> io::Result<()> {
    for capability in 0..64 {
        // SAFETY: takes numbers. The first that is not known ends the list.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }.into()) {
            Ok(_) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn check(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_wrote_to_is_released() {
        let mapping = |range: &str, rights: &str, file: &str, anonymous: u32| {
            format!(
                "{range} {rights} 00000000 fe:00 17    {file}\nSize:  8 kB\nAnonymous:  {anonymous} kB\nVmFlags: rd\n"
            )
        };
        let mappings = [
            mapping("1000-3000", "r--p", "/bin/claw", 0),
            mapping("3000-8000", "r-xp", "/bin/claw", 0),
            // Relocated, and then write-protected.
            mapping("8000-9000", "r--p", "/bin/claw", 4),
            mapping("9000-a000", "rw-p", "/bin/claw", 0),
            mapping("a000-b000", "r-xp", "/lib/libc.so.6", 0),
            mapping("b000-c000", "r--p", "", 0),
        ];
        assert_eq!(unwritten(&mappings.concat(), "/bin/claw"), [(0x1000, 0x2000), (0x3000, 0x5000)]);
    }

    #[test]
    fn a_program_goes_on_without_its_pages() {
        release_code().unwrap();
        assert_eq!("still here".to_uppercase(), "STILL HERE");
    }
}
