//! Attacks that ask the kernel for more than was granted.

use crate::attacker::{DOORS, KEYRING, MOUNTS, NAMESPACES, OTHERS, PRIVILEGES, RINGS};
use crate::kit::Kit;
use crate::sandboxes::Sandbox as _;

async fn refused(list: &[&'static str], error: i32) {
    let kit = Kit::new();
    for name in list {
        kit.refuses(name, "", &[error]).await;
    }
}

#[tokio::test]
async fn refuses_io_uring() {
    refused(RINGS, libc::EPERM).await;
}

#[tokio::test]
async fn refuses_ptrace() {
    refused(OTHERS, libc::EPERM).await;
}

#[tokio::test]
async fn refuses_mounts() {
    refused(MOUNTS, libc::EPERM).await;
}

#[tokio::test]
async fn refuses_nested_namespaces() {
    refused(NAMESPACES, libc::EPERM).await;
}

#[tokio::test]
async fn refuses_to_become_another_user() {
    let kit = Kit::new();
    // Nobody else has a number inside.
    kit.refuses("setuid", "", &[libc::EPERM, libc::EINVAL]).await;
    for name in PRIVILEGES {
        kit.refuses(name, "", &[libc::EPERM]).await;
    }
}

#[tokio::test]
async fn refuses_the_keyring() {
    refused(KEYRING, libc::EPERM).await;
}

#[tokio::test]
async fn refuses_programs_in_the_kernel_and_other_doors() {
    refused(DOORS, libc::EPERM).await;
    refused(&["unknown_call"], libc::ENOSYS).await;
    #[cfg(target_arch = "x86_64")]
    refused(&["x32"], libc::ENOSYS).await;
}
