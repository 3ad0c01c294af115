//! Reaching files that are not to be reached.

use std::fs;
use std::os::unix::fs::symlink;

use claw_core::tool::Effect;
use claw_sandbox::Grant;

use crate::kit::Kit;
use crate::sandboxes::{self, Sandbox as _, check_refused, without};

#[tokio::test]
async fn works_in_its_workspace_and_keeps_owners() {
    let kit = Kit::new();
    fs::write(kit.workspace.path().join("in"), "read me").unwrap();
    let finished = kit
        .script("cat in && mkdir -p a/b && echo made > a/b/out && mv a/b/out moved && ls /usr/bin/env")
        .await;
    assert_eq!((finished.ended.exit, finished.output.as_str()), (Some(0), "read me/usr/bin/env\n"));
    assert_eq!(fs::read_to_string(kit.workspace.path().join("moved")).unwrap(), "made\n");
    let owner = |name: &str| {
        std::os::unix::fs::MetadataExt::uid(&kit.workspace.path().join(name).metadata().unwrap())
    };
    assert_eq!(owner("in"), owner("moved"));
}

#[tokio::test]
async fn refuses_to_read_the_shadow_file() {
    let kit = Kit::new();
    let finished = kit.script("cat /etc/shadow; ls /etc/ssh /root /home /var/lib /sys /boot").await;
    assert_ne!(finished.ended.exit, Some(0));
    assert!(!finished.output.contains("root:"), "{finished:?}");
    assert!(finished.output.contains("/etc/shadow: No such file"), "{finished:?}");
}

#[tokio::test]
async fn refuses_to_read_beside_the_workspace() {
    let kit = Kit::new();
    let secret = kit.outside.path().join("secret");
    fs::write(&secret, "secret-content").unwrap();
    check_refused(kit.script(&format!("cat {}", secret.display())).await);
}

#[tokio::test]
async fn refuses_to_write_outside() {
    let kit = Kit::new();
    let outside = kit.outside.path().display();
    for place in
        ["/usr/bin/x", "/etc/x", "/x", "/proc/sys/kernel/core_pattern", "/dev/x", &format!("{outside}/x")]
    {
        let finished = kit.script(&format!("echo x > {place}")).await;
        assert_ne!(finished.ended.exit, Some(0), "{place}: {finished:?}");
    }
    assert_eq!(fs::read_dir(kit.outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn temporary_files_are_its_own() {
    let kit = Kit::new();
    let name = kit.outside.path().file_name().unwrap().to_str().unwrap().to_owned() + "-mine";
    let finished =
        kit.script(&format!("echo x > /tmp/{name} && cat /tmp/{name} && echo y > /dev/shm/{name}")).await;
    assert_eq!(finished.ended.exit, Some(0), "{finished:?}");
    assert!(!std::path::Path::new("/tmp").join(&name).exists());
    assert!(!std::path::Path::new("/dev/shm").join(&name).exists());
    check_refused(kit.script(&format!("cat /tmp/{name}")).await);
}

#[tokio::test]
async fn refuses_a_symlink_out() {
    let kit = Kit::new();
    let secret = kit.outside.path().join("secret");
    fs::write(&secret, "secret-content").unwrap();
    symlink(&secret, kit.workspace.path().join("link")).unwrap();
    check_refused(kit.script("cat link").await);
    check_refused(kit.script(&format!("ln -s {} other && cat other", secret.display())).await);
    check_refused(kit.script("echo overwritten > link").await);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret-content");
}

#[tokio::test]
async fn refuses_the_old_root_by_way_of_processes() {
    let kit = Kit::new();
    let secret = kit.outside.path().join("secret");
    fs::write(&secret, "secret-content").unwrap();
    let path = secret.display();
    for root in ["/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/.."] {
        check_refused(kit.script(&format!("cat {root}{path}")).await);
    }
}

#[tokio::test]
async fn refuses_to_write_to_a_workspace_that_is_only_read() {
    let mut kit = Kit::new();
    kit.context = without(&kit.context, Effect::Write);
    fs::write(kit.workspace.path().join("in"), "read me").unwrap();
    sandboxes::only_reads_the_workspace(&kit).await;
}

#[tokio::test]
async fn refuses_the_store_and_the_keys_inside_the_workspace() {
    let mut kit = Kit::new();
    sandboxes::hides_the_store_and_the_keys(&mut kit).await;
    check_refused(kit.script("cat data/keys/ring clawsmith.db").await);
    check_refused(kit.script("echo x > clawsmith.db").await);
}

#[tokio::test]
async fn refuses_to_move_the_keys_out_of_hiding_for_the_next_command() {
    sandboxes::keeps_hidden_keys_where_they_are(Kit::new()).await;
}

#[tokio::test]
async fn grants_are_shown_as_they_were_granted() {
    let mut kit = Kit::new();
    let (read, write) = (kit.outside.path().join("read"), kit.outside.path().join("write"));
    for directory in [&read, &write] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("file"), "shown").unwrap();
    }
    fs::write(kit.outside.path().join("beside"), "secret-content").unwrap();
    kit.options.grants.push(Grant { path: read.clone(), write: false });
    kit.options.grants.push(Grant { path: write.clone(), write: true });
    let (r, w, beside) = (read.display(), write.display(), kit.outside.path().join("beside"));
    let script =
        format!("cat {r}/file {w}/file; echo new > {w}/file; echo new > {r}/file; cat {}", beside.display());
    let finished = kit.script(&script).await;
    assert!(finished.output.starts_with("shownshown"), "{finished:?}");
    assert!(!finished.output.contains("secret-content"), "{finished:?}");
    assert_eq!(fs::read_to_string(read.join("file")).unwrap(), "shown");
    assert_eq!(fs::read_to_string(write.join("file")).unwrap(), "new\n");
}

#[tokio::test]
async fn refuses_devices() {
    let kit = Kit::new();
    let finished = kit.script("ls /dev").await;
    let mut names: Vec<_> = finished.output.split_whitespace().collect();
    names.sort_unstable();
    let known = ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"];
    assert_eq!(names, known);
    let finished = kit.script("head -c 4 /dev/zero | wc -c && echo gone > /dev/null").await;
    assert_eq!((finished.ended.exit, finished.output.trim()), (Some(0), "4"));
    kit.refuses("mknod", "", &[libc::EPERM, libc::EACCES]).await;
    kit.refuses("tiocsti", "", &[libc::EPERM]).await;
}

#[tokio::test]
async fn device_nodes_of_the_machine_stay_as_they_are() {
    use std::os::unix::fs::MetadataExt as _;
    let before = std::fs::metadata("/dev/full").unwrap();
    let kit = Kit::new();
    for attack in ["device_mode", "device_owner"] {
        kit.refuses(attack, "", &[libc::EROFS, libc::EPERM, libc::EACCES]).await;
    }
    let finished = kit.script("chmod 600 /dev/full; echo x > /dev/null && head -c 1 /dev/zero | wc -c").await;
    assert!(finished.output.ends_with("1\n"), "devices still work: {finished:?}");
    assert_eq!(std::fs::metadata("/dev/full").unwrap().mode(), before.mode());
}
