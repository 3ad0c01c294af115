//! Attacks by links.

use std::fs;
use std::os::unix::fs::{chown, symlink};

use claw_core::tool::ErrorKind;

use super::{CANARY, Target, is_administrator};

const REFUSED: &[ErrorKind] = &[ErrorKind::Forbidden];

impl Target {
    /// Makes a link in the workspace.
    fn link(&self, name: &str, to: impl AsRef<std::path::Path>) {
        symlink(to, self.root.join(name)).unwrap();
    }
}

#[tokio::test]
async fn refuses_absolute_links_that_leave() {
    for target in Target::disks() {
        target.link("file", target.around.join("outside/canary"));
        target.link("directory", target.around.join("outside"));
        target.link("top", "/");
        target.link("sibling", target.around.join("ws-evil"));
        let around = target.around.display().to_string();
        for path in ["file", "directory", "directory/canary", "directory/dir/canary", "directory/../canary"] {
            target.refused(path, REFUSED).await;
        }
        for path in ["top", "top/etc/passwd", "sibling/canary", "dir/../directory/canary"] {
            target.refused(path, REFUSED).await;
        }
        target.refused(&format!("top{around}/canary"), REFUSED).await;
        target.refused(&format!("{around}/ws/directory/canary"), REFUSED).await;
    }
}

#[tokio::test]
async fn refuses_relative_links_that_leave() {
    for target in Target::disks() {
        target.link("file", "../outside/canary");
        target.link("directory", "../outside");
        target.link("dir/deep/far", "../../../outside");
        target.link("round", "dir/../../outside");
        target.link("sibling", "../ws-evil");
        for path in
            ["file", "directory", "directory/canary", "dir/deep/far/canary", "round/canary", "sibling/canary"]
        {
            target.refused(path, REFUSED).await;
        }
        target.refused("dir/../dir/deep/far/canary", REFUSED).await;
    }
}

#[tokio::test]
async fn refuses_chains_of_links_that_leave() {
    for target in Target::disks() {
        target.link("a", "b");
        target.link("b", "dir/c");
        target.link("dir/c", "deep/d");
        target.link("dir/deep/d", "../../../outside");
        target.link("into", "a/canary");
        target.link("inside-then-out", target.root.join("dir/c"));
        for path in ["a/canary", "b/dir/canary", "dir/c/canary", "into", "inside-then-out/canary", "a"] {
            target.refused(path, REFUSED).await;
        }
    }
}

#[tokio::test]
async fn refuses_links_to_a_parent() {
    for target in Target::disks() {
        target.link("up", "..");
        target.link("dir/deep/up", "../../..");
        target.link("self", ".");
        for path in ["up", "up/canary", "up/outside/canary", "dir/deep/up/canary", "self/up/canary"] {
            target.refused(path, REFUSED).await;
        }
        target.link("dir/up", "..");
        assert_eq!(target.text("self/self/self/dir/file").await.unwrap(), "inside");
        assert_eq!(target.text("dir/up/dir/up/dir/file").await.unwrap(), "inside");
        target.refused("dir/up/../canary", REFUSED).await;
    }
}

#[tokio::test]
async fn refuses_dangling_links_that_leave_and_makes_nothing_there() {
    for target in Target::disks() {
        target.link("new", "../outside/new");
        target.link("new-directory", target.around.join("outside/made"));
        target.link("nowhere", "/nonexistent/at/all");
        for path in ["new", "new-directory/file", "new-directory", "nowhere", "nowhere/x"] {
            target.refused(path, REFUSED).await;
        }
        // One that stays inside names what is not there yet.
        target.link("later", "dir/later");
        assert_eq!(target.files.stat(&target.place(), "later").await.unwrap(), None);
        target.files.write(&target.place(), "later", b"made").await.unwrap();
        assert_eq!(fs::read_to_string(target.root.join("dir/later")).unwrap(), "made");
        assert!(target.root.join("later").is_symlink());
    }
}

#[tokio::test]
async fn refuses_links_in_circles() {
    for target in Target::disks() {
        target.link("one", "two");
        target.link("two", "one");
        target.link("self", "self");
        target.link("grows", "grows/grows");
        target.link("dir/round", "../dir/round/x");
        for path in ["one", "one/file", "self", "self/x", "grows", "grows/x", "dir/round", "dir/round/y"] {
            target.refused(path, &[ErrorKind::Invalid]).await;
        }
        for link in 0..60 {
            target.link(&format!("chain{link}"), format!("chain{}", link + 1));
        }
        fs::write(target.root.join("chain60"), "end").unwrap();
        assert_eq!(target.text("chain30").await.unwrap(), "end");
        assert_eq!(target.text("chain0").await.unwrap_err().kind, ErrorKind::Invalid, "too many");
    }
}

#[tokio::test]
async fn follows_links_that_stay_inside() {
    for target in Target::disks() {
        target.link("relative", "dir");
        target.link("absolute", target.root.join("dir"));
        target.link("dir/deep/up", "../file");
        target.link("chain", "relative/deep/up");
        for path in [
            "relative/file",
            "absolute/file",
            "dir/deep/up",
            "chain",
            "absolute/deep/up",
            "relative/../dir/file",
        ] {
            assert_eq!(target.text(path).await.unwrap(), "inside", "{path}");
        }
        // The write goes to the link's target; the link stays.
        target.files.write(&target.place(), "chain", b"changed").await.unwrap();
        assert_eq!(fs::read_to_string(target.root.join("dir/file")).unwrap(), "changed");
        assert!(target.root.join("chain").is_symlink() && target.root.join("dir/deep/up").is_symlink());
        target.files.write(&target.place(), "absolute/made/new", b"new").await.unwrap();
        assert_eq!(fs::read_to_string(target.root.join("dir/made/new")).unwrap(), "new");
        let sight = target.files.look(&target.place(), "absolute/deep/up").await.unwrap();
        let real = target.root.canonicalize().unwrap().join("dir/file");
        assert_eq!(sight.path.as_deref(), real.to_str(), "a person is shown where it leads");
    }
}

#[tokio::test]
async fn a_workspace_behind_a_link_is_the_same_by_both_names() {
    for mut target in Target::disks() {
        let real = target.root.clone();
        symlink(&real, target.around.join("alias")).unwrap();
        target.root = target.around.join("alias");
        target.scope = claw_core::port::Scope::workspace(&target.root);
        for path in ["dir/file".to_owned(), format!("{}/dir/file", real.display())] {
            assert_eq!(target.text(&path).await.unwrap(), "inside");
        }
        assert_eq!(target.text(&format!("{}/dir/file", target.root.display())).await.unwrap(), "inside");
        for path in [format!("{}-evil/canary", real.display()), format!("{}/../canary", real.display())] {
            assert_eq!(target.text(&path).await.unwrap_err().kind, ErrorKind::Forbidden, "{path}");
        }
    }
}

#[tokio::test]
async fn never_writes_through_a_hard_link() {
    for target in Target::disks() {
        fs::hard_link(target.around.join("outside/canary"), target.root.join("hard")).unwrap();
        target.files.write(&target.place(), "hard", b"attacker").await.unwrap();
        assert_eq!(fs::read_to_string(target.around.join("outside/canary")).unwrap(), CANARY);
        assert_eq!(target.text("hard").await.unwrap(), "attacker");
    }
}

#[tokio::test]
async fn refuses_hard_links_to_files_of_others() {
    if !is_administrator("refuses_hard_links_to_files_of_others") {
        return;
    }
    for target in Target::disks() {
        let outside = target.around.join("outside/canary");
        chown(&outside, Some(12345), Some(12345)).unwrap();
        fs::hard_link(&outside, target.root.join("hard")).unwrap();
        let (files, place) = (&target.files, target.place());
        let kinds = [
            files.read(&place, "hard").await.unwrap_err().kind,
            files.stat(&place, "hard").await.unwrap_err().kind,
            files.look(&place, "hard").await.unwrap_err().kind,
            files.write(&place, "hard", b"attacker").await.unwrap_err().kind,
            files.remove(&place, "hard").await.unwrap_err().kind,
        ];
        assert_eq!(kinds, [ErrorKind::Forbidden; 5]);
        assert_eq!(fs::read_to_string(&outside).unwrap(), CANARY);
        // With one name it is a file like any other; it keeps its owner.
        fs::remove_file(&outside).unwrap();
        assert_eq!(target.text("hard").await.unwrap(), CANARY);
        files.write(&place, "hard", b"changed").await.unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(target.root.join("hard")).unwrap());
        assert_eq!(owner, 12345);
    }
}
