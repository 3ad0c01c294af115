//! The parts of the kernel that hold a command: rules about files, a filter of calls, namespaces, limits.
//!
//! All of it is done by the helper; the program itself only reads what came of it.

pub(super) mod cgroup;
pub(super) mod landlock;
pub(super) mod mounts;
pub(super) mod privileges;
pub(super) mod probe;
pub(super) mod rename;
pub(super) mod seccomp;
pub(super) mod sys;
