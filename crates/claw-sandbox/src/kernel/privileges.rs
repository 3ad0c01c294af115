//! Drops rights for good, and sets limits for each process.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use super::sys;
use crate::Limits;

/// Drops every capability, and the ways by which a program could regain one. A process without the right to
/// do so had none to drop.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    set_no_new_privs(true)?;
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    let held = rustix::thread::capabilities(None)?;
    if held.effective.contains(CapabilitySet::SETPCAP) {
        sys::drop_bounding_set()?;
        set_capabilities_secure_bits(bits)?;
    }
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// Sets limits for each process. Memory and the number of processes are limited here only if no control group
/// counts them for all together.
pub(crate) fn limit(limits: &Limits, memory_counted: bool, processes_counted: bool) -> io::Result<()> {
    let memory = limits.memory.filter(|_| !memory_counted);
    let processes = limits.processes.filter(|_| !processes_counted);
    for (resource, most) in [
        (Resource::Core, Some(0)),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_size),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::As, memory),
        (Resource::Nproc, processes),
    ] {
        let Some(most) = most else { continue };
        // An existing limit is not raised; that would need a privilege.
        let most = getrlimit(resource).maximum.map_or(most, |held| held.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
