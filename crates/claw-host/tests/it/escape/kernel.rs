//! Asking the kernel for more than was given.

use crate::kit::Kit;

#[track_caller]
fn names(list: &[&'static str]) -> Vec<&'static str> {
    list.to_vec()
}

async fn refused(list: &[&'static str], error: i32) {
    let kit = Kit::new();
    for name in names(list) {
        kit.refuses(name, "", &[error]).await;
    }
}

#[tokio::test]
async fn refuses_io_uring() {
    refused(&["io_uring"], libc::EPERM).await;
}

#[tokio::test]
async fn refuses_ptrace() {
    refused(&["ptrace", "ptrace_first", "process_vm"], libc::EPERM).await;
}

#[tokio::test]
async fn refuses_mounts() {
    refused(&["mount", "remount", "umount", "chroot"], libc::EPERM).await;
}

#[tokio::test]
async fn refuses_nested_namespaces() {
    refused(&["userns", "clone_userns", "setns"], libc::EPERM).await;
}

#[tokio::test]
async fn refuses_to_become_another_user() {
    let kit = Kit::new();
    // Nobody else has a number inside.
    kit.refuses("setuid", "", &[libc::EPERM, libc::EINVAL]).await;
    for name in ["setuid_bit", "setuid_open", "capability", "no_new_privileges"] {
        kit.refuses(name, "", &[libc::EPERM]).await;
    }
}

#[tokio::test]
async fn refuses_the_keyring() {
    refused(&["keyring", "keyctl"], libc::EPERM).await;
}

#[tokio::test]
async fn refuses_programs_in_the_kernel_and_other_doors() {
    refused(&["bpf", "perf", "userfaultfd", "kexec", "handle"], libc::EPERM).await;
    refused(&["unknown_call"], libc::ENOSYS).await;
    #[cfg(target_arch = "x86_64")]
    refused(&["x32"], libc::ENOSYS).await;
}
