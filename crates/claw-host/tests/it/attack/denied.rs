//! Attacks on denied files.

use std::fs;
use std::os::unix::fs::symlink;

use claw_core::port::{Access, FilePlace, Root, Scope, Walk};
use claw_core::tool::ErrorKind;

use super::{CANARY, Target};
use crate::trees::all;

const ABSENT: &[ErrorKind] = &[ErrorKind::NotFound];

/// The denied files in the workspace: in a denied directory, and a denied file.
const DENIED: [&str; 3] = [".own/canary", ".own/deep/canary", "dir/secret"];

/// Targets on disk with a denied directory and a denied file in the workspace.
fn targets() -> impl Iterator<Item = Target> {
    Target::disks().map(|target| {
        fs::create_dir_all(target.root.join(".own/deep")).unwrap();
        for path in DENIED {
            fs::write(target.root.join(path), CANARY).unwrap();
        }
        denying(target)
    })
}

/// Returns such a target for every bridge.
async fn everywhere() -> Vec<Target> {
    let mut everywhere = Vec::new();
    for target in Target::all().await {
        for path in DENIED {
            target.files.write(&target.place(), path, CANARY.as_bytes()).await.unwrap();
        }
        everywhere.push(denying(target));
    }
    everywhere
}

fn denying(mut target: Target) -> Target {
    target.scope.denied =
        [".own", "dir/secret", "dir/missing/own"].map(|path| target.root.join(path)).to_vec();
    target
}

async fn unchanged(target: &Target) {
    let open = Scope::workspace(&target.root);
    let place = FilePlace { scope: &open, ..target.place() };
    for path in DENIED {
        assert_eq!(target.files.read(&place, path).await.unwrap().0, CANARY.as_bytes());
    }
    let walked = target.files.walk(&place, &Walk { depth: Some(1), ..all(".own") }).await.unwrap();
    assert_eq!(walked.entries.len(), 2);
}

#[tokio::test]
async fn a_denied_directory_is_absent_in_every_spelling() {
    for target in everywhere().await {
        let root = target.root.display().to_string();
        let mut paths: Vec<String> = [
            ".own",
            ".own/",
            ".own/canary",
            "./.own/canary",
            ".//.own//canary",
            ".own/./canary",
            ".own/deep/../canary",
            "dir/../.own/canary",
            "dir/deep/../../.own/deep/canary",
            ".own/new",
            ".own/deep/new",
            "dir/secret",
            "dir/../dir/secret",
        ]
        .map(str::to_owned)
        .to_vec();
        paths.extend([format!("{root}/.own/canary"), format!("{root}/dir/../.own/deep/canary")]);
        for path in &paths {
            let absent = format!("`{path}` does not exist");
            assert_eq!(target.text(path).await.unwrap_err().message, absent, "as what is missing");
            target
                .refused(
                    path,
                    if path.starts_with("dir/") {
                        &[ErrorKind::NotFound, ErrorKind::Invalid]
                    } else {
                        ABSENT
                    },
                )
                .await;
        }
        unchanged(&target).await;
    }
}

#[tokio::test]
async fn a_denied_directory_is_absent_behind_links() {
    for target in targets() {
        let link = |name: &str, to: &str| symlink(to, target.root.join(name)).unwrap();
        link("to-directory", ".own");
        link("to-deep", ".own/deep");
        link("to-file", ".own/canary");
        link("to-denied-file", "dir/secret");
        link("dir/up", "../.own");
        link("chain", "dir/up");
        link("absolute", target.root.join(".own").to_str().unwrap());
        link("through", ".own/../dir/file");
        link("nowhere", ".own/nowhere/../../dir/file");
        assert_eq!(target.text("through").await.unwrap_err().message, "`through` does not exist");
        assert_eq!(target.text("nowhere").await.unwrap_err().message, "`nowhere` does not exist");
        for path in ["to-directory/canary", "to-deep/canary", "to-file", "dir/up/canary", "chain/deep/canary"]
        {
            target.refused(path, ABSENT).await;
        }
        for path in ["absolute/canary", "to-directory", "chain", "dir/../chain/canary", "to-deep/new/new"] {
            target.refused(path, ABSENT).await;
        }
        target.refused("to-denied-file", &[ErrorKind::NotFound, ErrorKind::Invalid]).await;
        unchanged(&target).await;
    }
}

#[tokio::test]
async fn a_denied_directory_stays_denied_when_it_is_moved_while_its_name_is() {
    for target in targets() {
        // The denied path is a link itself: what it names is meant, by whatever way it is reached.
        fs::rename(target.root.join(".own"), target.root.join("elsewhere")).unwrap();
        symlink("elsewhere", target.root.join(".own")).unwrap();
        for path in ["elsewhere/canary", ".own/canary", "elsewhere/deep/canary", "elsewhere"] {
            target.refused(path, ABSENT).await;
        }
    }
}

#[tokio::test]
async fn what_is_denied_cannot_be_made_where_it_is_missing() {
    for mut target in targets() {
        target.scope.denied.push(target.root.join("later"));
        symlink("dir", target.root.join("alias")).unwrap();
        for path in ["later", "later/x", "./dir/../later"] {
            target.refused(path, ABSENT).await;
        }
        for path in ["dir/missing/own", "dir/missing/own/x", "alias/missing/own/x"] {
            let written = target.files.write(&target.place(), path, b"x").await;
            let made = target.files.mkdirp(&target.place(), path).await;
            for told in [written.unwrap_err(), made.unwrap_err()] {
                assert_eq!(told.message, format!("`{path}` does not exist"));
            }
        }
        assert!(!target.root.join("later").exists());
        assert!(!target.root.join("dir/missing/own").exists());
        // Directories on the way may be made.
        target.files.write(&target.place(), "dir/missing/other/x", b"x").await.unwrap();
        target.refused("alias/missing/own", ABSENT).await;
    }
}

#[tokio::test]
async fn a_hard_link_to_a_denied_file_is_denied() {
    for target in targets() {
        fs::hard_link(target.root.join("dir/secret"), target.root.join("other-name")).unwrap();
        target.refused("other-name", &[ErrorKind::NotFound, ErrorKind::Invalid]).await;
        unchanged(&target).await;
    }
}

#[tokio::test]
async fn a_root_within_what_is_denied_is_denied() {
    for mut target in everywhere().await {
        target.scope.roots.push(Root { path: target.root.join(".own/deep"), access: Access::Write });
        target.refused(&format!("{}/.own/deep/canary", target.root.display()), ABSENT).await;
        target.scope.denied.push(target.around.clone());
        target.refused("dir/file", ABSENT).await;
        unchanged(&target).await;
    }
}

#[tokio::test]
async fn a_look_alike_of_a_denied_name_is_another_file() {
    for target in everywhere().await {
        for path in [".OWN/x", ".own2/x", "dir/Secret", "dir/secret ", ".own\u{200b}/x"] {
            target.files.write(&target.place(), path, b"mine").await.unwrap();
            assert_eq!(target.text(path).await.unwrap(), "mine");
        }
        unchanged(&target).await;
    }
}
