//! Attacks on a container, each made from inside of it on the real engine.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::symlink;
use std::time::Duration;

use claw_core::port::ShellHost as _;
use claw_core::tool::{Effect, Effects, Script};
use claw_sandbox::{Grant, Stopped};

use super::kit::DockerKit;
use crate::attacker::{DOORS, KEYRING, MOUNTS, NAMESPACES, OTHERS, PRIVILEGES, RINGS};
use crate::sandboxes::{self, Sandbox as _, check_refused, start, until, without};

async fn refused(list: &[&str]) {
    let Some(kit) = DockerKit::new() else { return };
    for name in list {
        kit.refuses(name, "", &[libc::EPERM]).await;
    }
}

#[tokio::test]
async fn refuses_io_uring() {
    refused(RINGS).await;
}

#[tokio::test]
async fn refuses_ptrace() {
    refused(OTHERS).await;
}

#[tokio::test]
async fn refuses_mounts() {
    refused(MOUNTS).await;
}

#[tokio::test]
async fn refuses_nested_namespaces() {
    refused(NAMESPACES).await;
}

#[tokio::test]
async fn refuses_to_become_another_user() {
    let Some(kit) = DockerKit::new() else { return };
    kit.refuses("setuid", "", &[libc::EPERM]).await;
    for name in PRIVILEGES {
        kit.refuses(name, "", &[libc::EPERM]).await;
    }
}

#[tokio::test]
async fn refuses_the_keyring() {
    refused(KEYRING).await;
}

#[tokio::test]
async fn refuses_programs_in_the_kernel_and_other_doors() {
    refused(DOORS).await;
}

#[tokio::test]
async fn refuses_inherited_descriptors_and_devices() {
    let Some(kit) = DockerKit::new() else { return };
    kit.refuses("descriptors", "", &[libc::EBADF]).await;
    kit.refuses("mknod", "", &[libc::EPERM, libc::EACCES]).await;
    let finished = kit.script("ls /dev | grep -E '^(sd|vd|nvme|loop|kvm|mem|fuse)'").await;
    assert_eq!(finished.output, "");
}

#[tokio::test]
async fn refuses_the_network() {
    let Some(kit) = DockerKit::new() else { return };
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    kit.refuses("tcp", &tcp.local_addr().unwrap().to_string(), &[libc::EPERM]).await;
    kit.refuses("udp", &udp.local_addr().unwrap().to_string(), &[libc::EPERM]).await;
    for name in ["raw", "packet", "vsock"] {
        kit.refuses(name, "", &[libc::EPERM]).await;
    }
    assert_eq!(kit.script("ls /sys/class/net").await.output, "lo\n");
}

#[tokio::test]
async fn a_granted_network_is_another_container_and_only_for_those_who_may() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.script("true").await;
    kit.context.network = true;
    assert_eq!(kit.script("ls /sys/class/net").await.output, "eth0\nlo\n");
    assert_eq!(kit.containers().await.len(), 2);
    kit.refuses("raw", "", &[libc::EPERM]).await;
    // Loopback there is its own: what listens on the machine's is not reached.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    kit.refuses("tcp", &listener.local_addr().unwrap().to_string(), &[libc::ECONNREFUSED]).await;
    kit.context.effects = Effects::ALL.without(Effects::of(&[Effect::Network]));
    assert_eq!(kit.script("ls /sys/class/net").await.output, "lo\n");
}

#[tokio::test]
async fn refuses_files_of_the_machine() {
    let Some(kit) = DockerKit::new() else { return };
    let secret = kit.outside.path().join("secret");
    fs::write(&secret, "secret-content").unwrap();
    let path = secret.display();
    let finished = kit.script("cat /etc/shadow; ls /root /home /boot /var/lib").await;
    assert!(
        finished.ended.exit != Some(0) && !finished.output.lines().any(|line| line.starts_with("root:")),
        "{finished:?}"
    );
    check_refused(kit.script(&format!("cat {path}")).await);
    for root in ["/proc/1/root", "/proc/self/root", "/proc/1/cwd", "/.."] {
        check_refused(kit.script(&format!("cat {root}{path}")).await);
    }
    symlink(&secret, kit.workspace.path().join("link")).unwrap();
    check_refused(kit.script("cat link").await);
    check_refused(kit.script(&format!("ln -s {path} other && cat other")).await);
    check_refused(kit.script("echo overwritten > link").await);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret-content");
}

#[tokio::test]
async fn refuses_to_write_outside() {
    let Some(kit) = DockerKit::new() else { return };
    let outside = format!("{}/x", kit.outside.path().display());
    let own = "/.clawsmith/program";
    for place in
        ["/bin/x", "/etc/x", "/x", "/proc/sys/kernel/core_pattern", "/sys/x", "/lib/x", own, &outside]
    {
        let finished = kit.script(&format!("echo x >> {place}")).await;
        assert_ne!(finished.ended.exit, Some(0), "{place}: {finished:?}");
    }
    assert_eq!(fs::read_dir(kit.outside.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn refuses_the_engine_itself() {
    let Some(kit) = DockerKit::new() else { return };
    let socket = kit.docker.socket.display();
    let finished =
        kit.script(&format!("ls {socket} /var/run/docker.sock /run/docker.sock /run/containerd")).await;
    assert!(!finished.output.lines().any(|line| line.starts_with('/')), "{finished:?}");
}

#[tokio::test]
async fn refuses_to_see_or_signal_others() {
    let Some(kit) = DockerKit::new() else { return };
    let seen =
        kit.script("ls -d /proc/[0-9]* | wc -l; cat /proc/1/environ; ls /proc/1/fd; cat /proc/1/maps").await;
    let count: u32 = seen.output.lines().next().unwrap().parse().unwrap();
    assert!((2..=8).contains(&count), "{seen:?}");
    assert!(seen.output.to_lowercase().contains("denied"), "{seen:?}");
    // Its keeper says nothing of what it was told either.
    let keepers =
        "for p in /proc/[0-9]*; do grep -l be-the-first $p/cmdline; cat $p/environ; done | grep -c MARK";
    let told = kit.script(&format!("MARK=1; {keepers}")).await;
    assert_eq!(told.output.lines().last(), Some("0"), "{told:?}");
    for pid in [std::process::id(), std::os::unix::process::parent_id()] {
        // Numbers inside are others; those of the machine mean nothing there.
        kit.refuses("signal", &pid.to_string(), &[libc::ESRCH, libc::EPERM]).await;
    }
    let mut bystander = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    kit.script("kill -9 -1").await;
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn refuses_to_end_the_container_from_inside() {
    let Some(kit) = DockerKit::new() else { return };
    kit.script("echo kept > /tmp/kept").await;
    kit.script("kill -9 1; kill -TERM 1; kill -USR1 1; kill -INT 1; sleep 0.3").await;
    assert_eq!(kit.script("cat /tmp/kept").await.output, "kept\n");
}

#[tokio::test]
async fn refuses_the_environment_of_the_program() {
    let Some(kit) = DockerKit::new() else { return };
    let finished = kit.script("env; tr '\\0' '\\n' < /proc/self/environ").await;
    assert!(finished.output.lines().count() < 30, "{finished:?}");
    assert!(!finished.output.contains("CLAWSMITH_") && !finished.output.contains("CARGO"), "{finished:?}");
}

#[tokio::test]
async fn refuses_to_write_to_a_workspace_that_is_only_read() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.script("echo 'read me' > in").await;
    kit.context = without(&kit.context, Effect::Write);
    sandboxes::only_reads_the_workspace(&kit).await;
    // Two containers: one that writes is never lent to who may not.
    assert_eq!(kit.containers().await.len(), 2);
}

#[tokio::test]
async fn refuses_the_store_and_the_keys_inside_the_workspace() {
    let Some(mut kit) = DockerKit::new() else { return };
    let store = sandboxes::hides_the_store_and_the_keys(&mut kit).await;
    // Replaced from outside, as an editor does: what covers the old file does not cover the new one.
    fs::write(kit.workspace.path().join("new"), "secret-content").unwrap();
    fs::rename(kit.workspace.path().join("new"), &store).unwrap();
    check_refused(kit.script("grep . clawsmith.db").await);
}

#[tokio::test]
async fn refuses_to_move_the_keys_out_of_hiding_for_the_next_command() {
    let Some(kit) = DockerKit::new() else { return };
    sandboxes::keeps_hidden_keys_where_they_are(kit).await;
}

#[tokio::test]
async fn refuses_what_cannot_be_hidden() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.options.hidden = vec![kit.workspace.path().join("later")];
    let error = kit.try_script("true").await.unwrap_err().to_string();
    assert!(error.contains("later") && error.contains("create it first"), "{error}");
    assert!(kit.containers().await.is_empty());
}

/// The engine follows links when it mounts: a directory that is swapped for a link while a container is
/// created would show the link's target. The mounts are verified before anything runs.
#[tokio::test(flavor = "multi_thread")]
async fn refuses_a_directory_that_is_swapped_while_it_is_mounted() {
    let Some(mut kit) = DockerKit::new() else { return };
    let (inner, away) = (kit.workspace.path().join("inner"), kit.workspace.path().join("away"));
    fs::create_dir_all(inner.join("data")).unwrap();
    fs::create_dir_all(kit.outside.path().join("data")).unwrap();
    fs::write(kit.outside.path().join("secret"), "secret-content").unwrap();
    kit.options.hidden = vec![inner.join("data")];
    let mut refused = 0;
    for round in 0..8 {
        // Each round is a container of its own.
        kit.context.sandbox_key = format!("{}-{round}", kit.workspace.path().display()).into();
        let swap = async {
            // The engine mounts when it starts what it has made.
            while kit.containers().await.is_empty() {}
            fs::rename(&inner, &away).unwrap();
            symlink(kit.outside.path(), &inner).unwrap();
        };
        let (ran, ()) = tokio::join!(kit.try_script("cat inner/secret"), swap);
        match ran {
            Ok(finished) => check_refused(finished),
            Err(error) => refused += u32::from(error.to_string().contains("check the mounts")),
        }
        fs::remove_file(&inner).unwrap();
        fs::rename(&away, &inner).unwrap();
    }
    assert!(refused > 0, "no swap came in time, so nothing was tried");
}

#[tokio::test]
async fn grants_are_shown_as_they_were_granted() {
    let Some(mut kit) = DockerKit::new() else { return };
    let (read, write) = (kit.outside.path().join("read"), kit.outside.path().join("write"));
    for directory in [&read, &write] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("file"), "shown").unwrap();
    }
    kit.options.grants =
        vec![Grant { path: read.clone(), write: false }, Grant { path: write.clone(), write: true }];
    let (r, w) = (read.display(), write.display());
    let finished =
        kit.script(&format!("cat {r}/file {w}/file; echo new > {w}/file; echo new > {r}/file")).await;
    assert!(finished.output.starts_with("shownshown"), "{finished:?}");
    assert_eq!(fs::read_to_string(read.join("file")).unwrap(), "shown");
    assert_eq!(fs::read_to_string(write.join("file")).unwrap(), "new\n");
}

#[tokio::test]
async fn stops_a_fork_bomb() {
    let Some(kit) = DockerKit::new() else { return };
    let bomb = "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; echo all of them";
    let finished = kit.script(bomb).await;
    assert!(!finished.output.contains("all of them"), "{finished:?}");
    assert!(finished.output.contains("fork"), "{finished:?}");
    // One that fills every place and stays is ended by its time, and more can run.
    // It must not fork once the bomb has begun: a shell that cannot ends.
    let stays = "trap '' TERM; b() { b | b & }; (b) & while :; do :; done";
    let mut kit = kit;
    kit.options.sandbox_timeout = std::time::Duration::from_secs(1);
    let finished = kit.script(stays).await;
    assert_eq!(finished.ended.signal, Some(9), "{:?}", finished.ended);
    kit.options.sandbox_timeout = std::time::Duration::from_secs(60);
    assert_eq!(kit.script("echo more").await.output, "more\n");
}

#[tokio::test]
async fn stops_a_memory_hog() {
    let Some(kit) = DockerKit::new() else { return };
    let finished = kit.script("exec tail /dev/zero").await;
    assert_eq!(
        (finished.ended.signal, finished.ended.stopped),
        (Some(9), Some(Stopped::Memory)),
        "{finished:?}"
    );
    assert_eq!(kit.script("echo more").await.output, "more\n");
}

#[tokio::test]
async fn says_that_tmp_is_full_how_large_it_is_and_which_setting_helps() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.docker.temporary = 8 << 20;
    let script = |text: &str| Script { text: text.to_owned(), ..Script::default() };
    let shell = kit.shell();
    let ran = shell.run(&kit.context, &script("head -c 12582912 /dev/zero > /tmp/fill")).await.unwrap();
    let told: Vec<String> = ran.full.iter().map(ToString::to_string).collect();
    let expected = "`/tmp` was full: it holds 8 MiB; delete files there, or ask a person to raise `sandbox.docker.tmp_mib`";
    assert_eq!((ran.exit, told), (Some(1), vec![expected.to_owned()]), "{ran:?}");
    // It still is; once there is room again, nothing is said.
    let ran = shell.run(&kit.context, &script("true")).await.unwrap();
    assert_eq!(ran.full.len(), 1, "{ran:?}");
    let ran = shell.run(&kit.context, &script("rm /tmp/fill; sleep 0.3; echo x > /tmp/x")).await.unwrap();
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    let ran = shell.run(&kit.context, &script("true")).await.unwrap();
    assert!(ran.full.is_empty(), "{ran:?}");
    // A place that has no setting.
    let ran = shell.run(&kit.context, &script("head -c 99999999 /dev/zero > /dev/shm/fill")).await.unwrap();
    let told: Vec<_> = ran.full.iter().map(|place| (place.path.as_str(), place.setting.as_deref())).collect();
    assert_eq!(told, [("/dev/shm", None)], "{ran:?}");
}

/// A container whose `/tmp` an earlier command filled: the next ones begin, run and end, and those that need room are told why
/// they failed. Nothing waits for room that nobody makes.
#[tokio::test]
async fn a_full_tmp_holds_up_no_command_and_is_told_to_each() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.docker.temporary = 8 << 20;
    let script = |text: &str| Script { text: text.to_owned(), ..Script::default() };
    let within = async |what: &str, text: &str| {
        // Another program with the same container: nothing is left of the shell before.
        let (shell, script) = (kit.shell(), script(text));
        let ran = tokio::time::timeout(Duration::from_secs(60), shell.run(&kit.context, &script));
        ran.await.unwrap_or_else(|_| panic!("{what} hangs")).unwrap()
    };
    within("the one that fills it", "head -c 12582912 /dev/zero > /tmp/fill").await;
    let failing = within("one that writes", "echo x > /tmp/x && echo written").await;
    assert!(failing.exit != Some(0) && !failing.output.contains("written"), "{failing:?}");
    let lines = "a line\n".repeat(10_000);
    let here = within("a here-document", &format!("wc -l <<'E'\n{lines}E\n")).await;
    let reading = within("one that only reads", "ls /tmp; cat /workspace/none 2>&1; echo over").await;
    assert!(reading.output.contains("fill") && reading.output.ends_with("over\n"), "{reading:?}");
    for ran in [&failing, &here, &reading] {
        let told: Vec<String> = ran.full.iter().map(ToString::to_string).collect();
        assert!(told.len() == 1 && told[0].starts_with("`/tmp` was full: it holds 8 MiB"), "{ran:?}");
    }
    let started = tokio::time::timeout(Duration::from_secs(60), async {
        let mut child = kit.shell().start(&kit.context, &start("echo ready; cat")).await.unwrap();
        until(&mut child, "ready").await;
        child.control.kill().await;
        child.control.ended().await.unwrap()
    });
    assert_eq!(started.await.expect("a command in the background hangs").exit, None);
    let after = within("the one that makes room", "rm /tmp/fill && echo x > /tmp/x && cat /tmp/x").await;
    assert_eq!((after.exit, after.output.as_str()), (Some(0), "x\n"), "{after:?}");
}

#[tokio::test]
async fn bounds_what_is_written() {
    let Some(mut kit) = DockerKit::new() else { return };
    kit.docker.temporary = 8 << 20;
    kit.options.limits.file_size = Some(16 << 20);
    let finished = kit.script("head -c 12582912 /dev/zero > /tmp/fill && echo all; wc -c < /tmp/fill").await;
    assert_eq!(finished.output.lines().last(), Some("8388608"), "{finished:?}");
    assert!(!finished.output.contains("all"), "{finished:?}");
    let finished = kit.script("head -c 20971520 /dev/zero > large; wc -c < large").await;
    assert_eq!(finished.output.lines().last(), Some("16777216"), "{finished:?}");
    kit.options.limits.disk = Some(32 << 20);
    let fill = "i=0; while :; do head -c 4194304 /dev/zero > fill$i; i=$((i+1)); sleep 0.02; done";
    let finished = kit.script(fill).await;
    assert_eq!(
        (finished.ended.signal, finished.ended.stopped),
        (Some(9), Some(Stopped::Disk)),
        "{finished:?}"
    );
}
