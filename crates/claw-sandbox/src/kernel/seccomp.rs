//! The system calls that a sandboxed command is refused, as a filter program that the kernel runs at each
//! call.
//!
//! This is a deny list, since the needs of programs cannot be listed; calls newer than this list are all
//! refused. The remaining sockets are an allow list.

use super::sys::Instruction;
use crate::Network;

/// The machine that the call numbers belong to; `None` if there is no list for it.
pub(crate) const MACHINE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xc000_003e)
} else if cfg!(target_arch = "aarch64") {
    Some(0xc000_00b7)
} else {
    None
};

/// `removexattrat`: the newest call that was reviewed. The other numbering of x86 (x32) begins far above it.
const NEWEST: u32 = 466;

/// Calls refused with any arguments.
const REFUSED: &[libc::c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Doors round the filter: requests in shared memory, programs in the kernel, faults handled by hand.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    // Keys that outlive the process.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // The tree of files as a whole.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Namespaces.
    libc::SYS_unshare,
    libc::SYS_setns,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_vhangup,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] =
    &[libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_modify_ldt, libc::SYS_kexec_file_load];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Calls that seem unknown to the kernel, so that programs fall back to those the filter can judge.
const UNKNOWN: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// Settings of the filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    /// Sockets of the internet that are allowed.
    pub(crate) network: Network,
    /// Landlock closes TCP ports: ways to connect that it does not see are refused.
    pub(crate) closes_ports: bool,
    /// Way of the calls that rename.
    pub(crate) renames: Renaming,
    /// True if the command has no file tree of its own and sees sockets of other programs.
    pub(crate) shares_files: bool,
    /// The command has no process namespace of its own: it can name processes outside.
    pub(crate) shares_processes: bool,
}

/// Way of the calls that rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renaming {
    /// The kernel carries them out.
    Direct,
    /// Renames are handed to the process that looks after the command.
    HandedOver,
}

#[cfg(target_arch = "x86_64")]
const RENAMES: &[libc::c_long] = &[libc::SYS_rename, libc::SYS_renameat, libc::SYS_renameat2];
#[cfg(not(target_arch = "x86_64"))]
const RENAMES: &[libc::c_long] = &[libc::SYS_renameat, libc::SYS_renameat2];

/// The set-id bits of a file's mode: running the file takes its owner's identity.
const SET_ID: u32 = 0o6000;
const CREATES: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;
const NAMESPACES: u32 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u32;

/// `ioctl` requests that inject input into a terminal as if its user had typed it, or take other rights over
/// it.
const TERMINAL: &[u32] = &[0x5412, 0x541c, 0x541d];

/// Shared memory communications, as a protocol of internet sockets.
const SMC: u32 = 256;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;

/// The filter; `None` on a machine that it was not written for.
pub(crate) fn program(options: &Filter) -> Option<Vec<Instruction>> {
    let renames = options.renames;
    let mut program = Program(Vec::new());
    program.load(4);
    program.unless_equal(MACHINE?, KILL);
    program.load(0);
    program.if_above(NEWEST, refuse(libc::ENOSYS));
    for call in REFUSED.iter().chain(REFUSED_HERE) {
        program.call(*call, |block| block.end(refuse(libc::EPERM)));
    }
    if renames == Renaming::HandedOver {
        for call in RENAMES {
            program.call(*call, |block| block.end(libc::SECCOMP_RET_USER_NOTIF));
        }
    }
    for call in UNKNOWN {
        program.call(*call, |block| block.end(refuse(libc::ENOSYS)));
    }
    program.call(libc::SYS_clone, |block| block.refuse_bits(0, NAMESPACES));
    program.call(libc::SYS_ioctl, |block| {
        block.argument(1);
        for request in TERMINAL {
            block.if_equal(*request, refuse(libc::EPERM));
        }
        block.end(ALLOW);
    });
    program.call(libc::SYS_personality, |block| {
        block.argument(0);
        block.if_equal(0, ALLOW);
        block.if_equal(u32::MAX, ALLOW);
        block.end(refuse(libc::EPERM));
    });
    modes(&mut program);
    others(&mut program, options.shares_processes);
    // Space that is set aside at once is noticed when it is gone; programs that may not write instead.
    program.call(libc::SYS_fallocate, |block| {
        block.argument(1);
        block.if_equal(0, refuse(libc::EOPNOTSUPP));
        block.if_equal(libc::FALLOC_FL_KEEP_SIZE as u32, refuse(libc::EOPNOTSUPP));
        block.end(ALLOW);
    });
    program.call(libc::SYS_socket, |block| {
        if options.shares_files {
            block.argument(0);
            block.if_equal(libc::AF_UNIX as u32, refuse(libc::EPERM));
        }
        sockets(block, options);
    });
    program.call(libc::SYS_socketpair, |block| sockets(block, options));
    if options.closes_ports {
        // Data that is sent with the first packet connects without the call that Landlock judges.
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            program.call(call, |block| block.refuse_bits(flags, libc::MSG_FASTOPEN as u32));
        }
    }
    program.end(ALLOW);
    Some(program.0)
}

/// Refuses set-id modes: a command that runs as the owner of the workspace must not leave a program there
/// that lends this identity.
fn modes(program: &mut Program) {
    const FCHMODAT2: libc::c_long = 452;
    let modes = [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2, 2), (libc::SYS_mknodat, 2)];
    for (call, argument) in modes {
        program.call(call, |block| block.refuse_bits(argument, SET_ID));
    }
    program.call(libc::SYS_openat, |block| block.refuse_created(2, 3));
    #[cfg(target_arch = "x86_64")]
    {
        for call in [libc::SYS_chmod, libc::SYS_creat, libc::SYS_mknod] {
            program.call(call, |block| block.refuse_bits(1, SET_ID));
        }
        program.call(libc::SYS_open, |block| block.refuse_created(1, 2));
    }
}

/// Limits and priorities are a process's own business. In a process namespace of its own a command may pin its threads,
/// which have numbers too, but not the first process, which looks after it.
fn others(program: &mut Program, shares_processes: bool) {
    // Reading limits is harmless: what is refused is a pointer to new ones.
    program.call(libc::SYS_prlimit64, |block| {
        block.argument(0);
        block.if_equal(0, ALLOW);
        block.argument(2);
        block.if_any(u32::MAX, refuse(libc::EPERM));
        block.upper_argument(2);
        block.if_any(u32::MAX, refuse(libc::EPERM));
        block.end(ALLOW);
    });
    program.call(libc::SYS_setpriority, |block| {
        block.argument(1);
        block.if_equal(0, ALLOW);
        block.end(refuse(libc::EPERM));
    });
    let scheduling = [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ];
    for call in scheduling {
        program.call(call, |block| {
            block.argument(0);
            block.if_equal(0, ALLOW);
            if shares_processes {
                return block.end(refuse(libc::EPERM));
            }
            block.if_equal(1, refuse(libc::EPERM));
            block.end(ALLOW);
        });
    }
}

/// Allows sockets within the machine, and internet sockets if a network is granted; never raw ones.
fn sockets(block: &mut Program, options: &Filter) {
    block.argument(0);
    block.if_equal(libc::AF_UNIX as u32, ALLOW);
    if options.network == Network::None {
        return block.end(refuse(libc::EPERM));
    }
    // Interfaces and routes can be asked for; with no capability nothing can be changed by it.
    block.call(libc::AF_NETLINK.into(), |block| {
        block.argument(2);
        block.if_equal(libc::NETLINK_ROUTE as u32, ALLOW);
        block.end(refuse(libc::EPERM));
    });
    for family in [libc::AF_INET, libc::AF_INET6] {
        block.call(family.into(), |block| {
            if options.closes_ports {
                // These speak to TCP servers too, and Landlock takes them for something else.
                block.argument(2);
                for protocol in [libc::IPPROTO_MPTCP as u32, SMC] {
                    block.if_equal(protocol, refuse(libc::EPROTONOSUPPORT));
                }
            }
            block.argument(1);
            block.mask(0xf);
            block.if_equal(libc::SOCK_STREAM as u32, ALLOW);
            block.if_equal(libc::SOCK_DGRAM as u32, ALLOW);
            block.end(refuse(libc::EPERM));
        });
    }
    block.end(refuse(libc::EPERM));
}

const fn refuse(error: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | error as u32
}

/// A filter program under construction. The accumulator holds the number loaded last.
struct Program(Vec<Instruction>);

impl Program {
    fn push(&mut self, code: u32, jt: u8, jf: u8, k: u32) {
        self.0.push(Instruction { code: code as u16, jt, jf, k });
    }

    fn load(&mut self, offset: u32) {
        self.push(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    }

    /// Loads the lower half of an argument: all that the kernel looks at of flags, modes and families.
    fn argument(&mut self, index: u32) {
        let half = if cfg!(target_endian = "big") { 4 } else { 0 };
        self.load(16 + 8 * index + half);
    }

    /// Loads the upper half of an argument.
    fn upper_argument(&mut self, index: u32) {
        let half = if cfg!(target_endian = "big") { 0 } else { 4 };
        self.load(16 + 8 * index + half);
    }

    fn mask(&mut self, bits: u32) {
        self.push(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, bits);
    }

    fn end(&mut self, answer: u32) {
        self.push(libc::BPF_RET | libc::BPF_K, 0, 0, answer);
    }

    fn if_equal(&mut self, value: u32, answer: u32) {
        self.push(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, value);
        self.end(answer);
    }

    fn unless_equal(&mut self, value: u32, answer: u32) {
        self.push(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, value);
        self.end(answer);
    }

    fn if_above(&mut self, value: u32, answer: u32) {
        self.push(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 1, value);
        self.end(answer);
    }

    fn if_any(&mut self, bits: u32, answer: u32) {
        self.push(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, bits);
        self.end(answer);
    }

    /// Refuses if the argument has any of these bits, and otherwise allows.
    fn refuse_bits(&mut self, argument: u32, bits: u32) {
        self.argument(argument);
        self.if_any(bits, refuse(libc::EPERM));
        self.end(ALLOW);
    }

    /// Refuses a call whose `flags` create a file and whose `mode` has set-id bits. If none is created, the
    /// mode is an arbitrary register.
    fn refuse_created(&mut self, flags: u32, mode: u32) {
        self.argument(flags);
        self.push(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 1, 0, CREATES);
        self.end(ALLOW);
        self.refuse_bits(mode, SET_ID);
    }

    /// Adds a block that runs if the loaded number is `number`; the block must return on every path.
    fn call(&mut self, number: libc::c_long, block: impl FnOnce(&mut Self)) {
        let mut inner = Self(Vec::new());
        block(&mut inner);
        // Blocks are a few instructions; one that were too long to be jumped over would be refused by the kernel.
        let length = u8::try_from(inner.0.len()).unwrap_or(u8::MAX);
        self.push(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, length, number as u32);
        self.0.append(&mut inner.0);
    }
}

#[cfg(test)]
mod tests;
