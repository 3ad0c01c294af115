use super::*;

const MOUNTS: &str = "\
24 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw
30 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
31 24 0:28 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
32 24 0:29 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

#[test]
fn hierarchies_are_found_by_whole_names() {
    let named = |wanted: &str| {
        let wanted = wanted.to_owned();
        mounted(MOUNTS, move |kind, options| {
            kind == "cgroup" && options.split(',').any(|name| name == wanted)
        })
    };
    assert_eq!(named("cpu"), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
    assert_eq!(named("cpuset"), Some("/sys/fs/cgroup/cpuset".into()));
    assert_eq!(named("memory"), None);
    assert_eq!(mounted(MOUNTS, |kind, _| kind == "cgroup2"), Some("/sys/fs/cgroup/unified".into()));
}

#[test]
fn groups_of_the_dead_are_swept_and_those_of_the_living_are_not() {
    let parent = tempfile::tempdir().unwrap();
    let (dead, living) = ("clawsmith-4999999", format!("clawsmith-{}", std::process::id()));
    for name in [dead, &living, "others-4999999"] {
        fs::create_dir(parent.path().join(name)).unwrap();
    }
    sweep(parent.path());
    let left = |name: &str| parent.path().join(name).exists();
    assert!(!left(dead) && left(&living) && left("others-4999999"));
}
