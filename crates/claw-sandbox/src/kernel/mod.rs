//! The parts of the kernel that hold a command: rules about files, a filter of calls, namespaces, limits.
//!
//! The helper does all of it; the program itself only reads the results.

pub(super) mod cgroup;
pub(super) mod landlock;
pub(super) mod mounts;
pub(super) mod privileges;
pub(super) mod probe;
pub(super) mod rename;
pub(super) mod seccomp;
pub(super) mod sys;
