//! Using up the machine.

use claw_sandbox::{LayerName, Stopped};

use crate::kit::Kit;
use crate::sandboxes::Sandbox as _;

const MIB: u64 = 1 << 20;

#[tokio::test]
async fn stops_a_fork_bomb() {
    let mut kit = Kit::new();
    if !kit.launcher.layers().await.works(LayerName::ProcessCount) {
        return eprintln!("there is no limit on processes here; the status says so");
    }
    kit.options.limits.processes = Some(40);
    let bomb = "i=0; while [ $i -lt 200 ]; do sleep 600 & i=$((i+1)); done; echo all of them";
    let finished = kit.script(bomb).await;
    assert!(!finished.output.contains("all of them"), "{finished:?}");
    assert!(finished.output.contains("fork"), "{finished:?}");
    // Its files are gone with it, and more commands can run.
    assert_eq!(kit.script("true").await.ended.exit, Some(0));
}

#[tokio::test]
async fn stops_a_memory_hog() {
    let mut kit = Kit::new();
    kit.options.limits.memory = Some(64 * MIB);
    let finished = kit.script("head -c 300m /dev/zero | tail | wc -c").await;
    assert!(!finished.output.contains("314572800"), "{finished:?}");
    let finished = kit.script("exec tail /dev/zero").await;
    assert_ne!(finished.ended.exit, Some(0), "{finished:?}");
    let counted =
        std::path::Path::new("/sys/fs/cgroup/memory").exists() && rustix::process::geteuid().is_root();
    if counted {
        assert_eq!((finished.ended.signal, finished.ended.stopped), (Some(9), Some(Stopped::Memory)));
    }
    // The same supervisor takes the next command, which must not be blamed.
    let finished = kit.script("true").await;
    assert_eq!((finished.ended.exit, finished.ended.stopped), (Some(0), None), "{finished:?}");
}

#[tokio::test]
async fn the_limits_of_one_command_are_not_those_of_the_next() {
    let mut kit = Kit::new();
    if !kit.launcher.layers().await.works(LayerName::ProcessCount) {
        return eprintln!("there is no limit on processes here; the status says so");
    }
    let many = "for i in 1 2 3 4 5 6 7 8 9; do sleep 0.2 & done; wait; echo all";
    kit.options.limits.processes = Some(4);
    assert!(!kit.script(many).await.output.contains("all"));
    kit.options.limits.processes = Some(40);
    assert!(kit.script(many).await.output.contains("all"));
    kit.options.limits.processes = Some(4);
    assert!(!kit.script(many).await.output.contains("all"));
    kit.context.sandboxed = false;
    let finished = kit.script(many).await;
    assert!(finished.output.contains("all"), "on the host it is in no group: {finished:?}");
}

#[tokio::test]
async fn temporary_files_are_bounded() {
    let mut kit = Kit::new();
    kit.options.limits.temporary = 8 * MIB;
    let finished = kit.script("head -c 20m /dev/zero > /tmp/fill").await;
    assert!(finished.output.contains("No space left"), "{finished:?}");
    let full = finished.ended.full.iter().map(|(path, bytes)| (path.to_str().unwrap(), *bytes));
    assert_eq!(full.collect::<Vec<_>>(), [("/tmp", 8 * MIB)]);
    let finished = kit.script("head -c 2m /dev/zero > /tmp/fill").await;
    assert_eq!((finished.ended.exit, finished.ended.full), (Some(0), Vec::new()));
}

#[tokio::test]
async fn notices_and_stops_a_disk_fill() {
    let mut kit = Kit::new();
    kit.options.limits.disk = Some(32 * MIB);
    let fill = "i=0; while :; do head -c 4m /dev/zero > fill$i; i=$((i+1)); sleep 0.02; done";
    let finished = kit.script(fill).await;
    assert_eq!(
        (finished.ended.signal, finished.ended.stopped),
        (Some(9), Some(Stopped::Disk)),
        "{finished:?}"
    );
}

#[tokio::test]
async fn stops_a_large_file() {
    let mut kit = Kit::new();
    kit.options.limits.file_size = Some(MIB);
    let finished = kit.script("head -c 2m /dev/zero > large; wc -c < large").await;
    assert_eq!(finished.output.lines().last(), Some("1048576"), "{finished:?}");
}

#[tokio::test]
async fn stops_open_files_and_keeps_limits_down() {
    let mut kit = Kit::new();
    kit.options.limits.open_files = Some(20);
    let finished = kit.script("ulimit -n; ulimit -c; ulimit -Hc").await;
    assert_eq!(finished.output, "20\n0\n0\n");
    kit.refuses("more_files", "", &[libc::EPERM]).await;
    kit.refuses("core", "", &[libc::EPERM]).await;
}

#[tokio::test]
async fn leaves_no_core_dump() {
    let kit = Kit::new();
    let finished = kit.script("ulimit -c unlimited; sh -c 'kill -SEGV $$'; ls").await;
    assert!(finished.output.contains("Segmentation") || finished.ended.exit == Some(0), "{finished:?}");
    assert_eq!(std::fs::read_dir(kit.workspace.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn stops_a_busy_process() {
    let mut kit = Kit::new();
    kit.options.limits.cpu_seconds = Some(1);
    let finished = kit.script("while :; do :; done").await;
    assert!(matches!(finished.ended.signal, Some(libc::SIGKILL | libc::SIGXCPU)), "{finished:?}");
}
