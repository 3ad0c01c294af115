//! Secrets in granted directories, and the `/tmp` and home of commands whose changes are discarded.

use std::fs;
use std::path::Path;
use std::time::Duration;

use claw_core::port::{Allowed, CommandHome, ShellHost as _};
use claw_core::tool::Script;
use claw_host::transaction::Transactions;

use super::kit::Kit;
use super::transactions::Layered;
use crate::sandboxes::Sandbox as _;

/// A shell whose commands can read a directory beside the workspace.
fn granting(path: &Path) -> Kit {
    let mut kit = Kit::new();
    kit.context.granted = vec![Allowed { path: path.canonicalize().unwrap(), write: false }];
    kit
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_covered_file_of_a_granted_directory_that_is_replaced_meanwhile_stays_covered() {
    let granted = tempfile::tempdir().unwrap();
    let root = granted.path().canonicalize().unwrap();
    let names = [".npmrc", "deep/er/.env", "keys/own.key"];
    for name in names {
        write(&root, name, "SECRET=1");
    }
    write(&root, "deep/er/plain", "shown");
    write(&root, "bin/run", "#!/bin/sh\necho ran\n");
    fs::set_permissions(root.join("bin/run"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let kit = granting(&root);
    let replaced = root.clone();
    let replace = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            for name in names {
                fs::write(replaced.join("saved"), "SECRET=2").unwrap();
                fs::rename(replaced.join("saved"), replaced.join(name)).unwrap();
            }
        }
    });
    let files = names.join(" ");
    let script = format!(
        "cd {} && for i in 1 2 3 4 5 6 7 8; do sleep 0.1; cat {files} 2>&1; done; cat deep/er/plain; bin/run; ls -A . keys; \
         touch new",
        root.display()
    );
    let ran = kit.script(&script).await;
    replace.abort();
    assert!(!ran.output.contains("SECRET"), "{}", ran.output);
    for shown in ["shown", "ran", "Read-only file system"] {
        assert!(ran.output.contains(shown), "{shown}: {}", ran.output);
    }
    assert!(!ran.output.contains("\n.npmrc") && !ran.output.contains("\nown.key"), "{}", ran.output);
}

#[tokio::test]
async fn a_granted_directory_with_hundreds_of_covered_names_stops_no_command() {
    let granted = tempfile::tempdir().unwrap();
    let root = granted.path();
    for number in 0..400 {
        write(root, &format!("versions/{}/lib/{number}/private.key", number % 7), "SECRET");
        write(root, &format!("versions/{}/lib/{number}/plain", number % 7), "shown");
    }
    let kit = granting(root);
    let there = root.canonicalize().unwrap();
    let all = format!("cat {}/versions/*/lib/*/*", there.display());
    let ran = kit.script(&all).await;
    assert_eq!((ran.ended.exit, ran.output), (Some(0), "shown".repeat(400)));
}

#[tokio::test]
async fn a_dry_run_changes_neither_the_session_s_tmp_nor_the_home() {
    let mut layered = Layered::new();
    let outside = crate::kit::outside_tmp();
    let (workspace, data) = (outside.path().join("workspace"), outside.path().join("data"));
    fs::create_dir(&workspace).unwrap();
    let kit = &mut layered.kit;
    kit.context.workspace = workspace.canonicalize().unwrap();
    kit.context.home = Some(CommandHome { key: "one".into(), write: true });
    kit.options.grants.clear();
    kit.options.transactions = Some(Transactions::new(&data));
    kit.options.temporary = Some(data.join("sandbox"));
    kit.options.homes = Some(data.join("homes"));
    let all = "cat /tmp/kept ~/kept; ls /tmp ~";
    layered.run("echo session > /tmp/kept; echo home > ~/kept").await;
    let before = layered.run(all).await.output.clone();
    assert_eq!(before, "session\nhome\n/run/home:\nkept\n\n/tmp:\nkept\n");

    let text = "cat /tmp/kept ~/kept; for d in /tmp ~; do echo dry > $d/kept; echo dry > $d/made; done; cat /tmp/kept ~/made";
    let script = Script { text: text.into(), directory: ".".into(), dry_run: true, ..Script::default() };
    let ran = layered.kit.shell().run(&layered.kit.context, &script).await.unwrap();
    assert_eq!(ran.output, "session\nhome\ndry\ndry\n");
    drop(ran);
    assert_eq!(layered.run(all).await.output, before);
}
