//! Files that an agent left in its workspace and its `/tmp` are neither run nor read as configuration.

use std::fs;
use std::path::Path;

use claw_core::port::{ShellHost as _, WorkspaceAccess};
use claw_core::tool::Script;
use claw_policy::program::PRESETS;
use claw_sandbox::Grant;

use super::{Registered, TOKEN};

/// A file whose presence shows that something planted ran.
const RAN: &str = "ran";
const PLANTED: &str = "#!/bin/sh\nenv | tr a-z A-Z > ran\n";

/// Registers this test binary, which executes what it is told to, in place of a program.
fn executing(helpers: &[&str]) -> Registered {
    let this = std::env::current_exe().unwrap();
    Registered::new("stand-in", &this, helpers, &[("STAND_IN_TOKEN", TOKEN)])
}

#[tokio::test]
async fn refuses_to_run_what_an_agent_planted_for_every_preset() {
    for preset in PRESETS {
        let program = executing(preset.helpers);
        program.plant("evil", PLANTED);
        program.plant("bin/git", PLANTED);
        program.plant(".terraform/providers/evil/terraform-provider-evil", PLANTED);
        fs::copy("/usr/bin/touch", program.workspace().join("touch")).unwrap();
        // Programs of the system that run what their arguments say are no helpers either.
        let mut attacks = vec![
            "./evil".to_owned(),
            program.workspace().join("evil").display().to_string(),
            "bin/git status".to_owned(),
            ".terraform/providers/evil/terraform-provider-evil".to_owned(),
            "./touch ran".to_owned(),
            "/usr/bin/env touch ran".to_owned(),
            "/usr/bin/touch ran".to_owned(),
            "/usr/bin/perl evil".to_owned(),
            // The loader is executed by the kernel, and would run what is mapped.
            format!("{} ./touch ran", loader()),
        ];
        // A shell is executable only where the preset's own program is a script for one.
        attacks.push("/bin/sh evil".to_owned());
        for attack in attacks {
            let ran = program.run(".", &["attack", "execute", &attack]).await;
            assert!(ran.output.contains("refused"), "{}: `{attack}`: {ran:?}", preset.name);
            assert!(!program.workspace().join(RAN).exists(), "{}: `{attack}`: {ran:?}", preset.name);
        }
    }
}

/// The loader of this test binary.
fn loader() -> String {
    let places = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1"];
    places.into_iter().find(|path| Path::new(path).exists()).unwrap().to_owned()
}

#[tokio::test]
async fn a_program_runs_itself_and_its_helpers() {
    let program = executing(&["touch"]);
    let ran = program.run(".", &["attack", "execute", "touch ran"]).await;
    assert_eq!(ran.output, "escaped\n");
    assert!(program.workspace().join(RAN).exists());
    let this = std::env::current_exe().unwrap();
    let itself = format!("{} --help", this.canonicalize().unwrap().display());
    assert!(program.run(".", &["attack", "execute", &itself]).await.output.ends_with("escaped\n"));
}

#[tokio::test]
async fn refuses_the_tmp_and_the_home_that_other_commands_of_the_session_wrote() {
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut program = Registered::new("gh", Path::new("/bin/bash"), &["cat"], &[("GH_TOKEN", TOKEN)]);
    // Where the workspace lies in `/tmp` the session has none of its own.
    let workspace = outside.path().join("workspace");
    fs::create_dir(&workspace).unwrap();
    program.kit.context.workspace = workspace.canonicalize().unwrap();
    program.kit.options.grants.clear();
    program.kit.options.temporary = Some(outside.path().join("temporary"));
    let script =
        "mkdir -p /tmp/.config/gh; echo 'aliases: evil' > /tmp/.config/gh/config.yml; cat /tmp/.config/gh/*";
    let script = Script { text: script.to_owned(), directory: ".".to_owned(), ..Script::default() };
    let shell = program.kit.shell();
    shell.run(&program.kit.context, &script).await.unwrap();
    let again = Script { text: "cat /tmp/.config/gh/config.yml".to_owned(), ..script };
    let kept = shell.run(&program.kit.context, &again).await.unwrap();
    assert_eq!(kept.output, "aliases: evil\n", "the session's `/tmp` lasts");
    let ran = program.run(".", &["-c", "echo $HOME; cat $HOME/.config/gh/config.yml; echo /tmp/*"]).await;
    assert!(ran.output.starts_with("/tmp\n") && !ran.output.contains("evil"), "{ran:?}");
    assert!(ran.output.ends_with("/tmp/*\n"), "it is empty: {ran:?}");
}

#[tokio::test]
async fn refuses_a_helper_where_agents_can_write() {
    let mut program = executing(&[]);
    let planted = program.plant("helper", PLANTED);
    let error = {
        program.card.settings.helpers = vec![planted.display().to_string()];
        program.try_run(".", &["attack", "execute", "./helper"]).await.unwrap_err()
    };
    assert!(error.message.contains("but agents can change it"), "{error:?}");
    assert!(!program.workspace().join(RAN).exists());
    // So it is in a directory that their commands are granted for writing.
    let granted = program.kit.outside.path().canonicalize().unwrap();
    program.kit.options.grants.push(Grant { path: granted.clone(), write: true });
    fs::copy(&planted, granted.join("helper")).unwrap();
    program.card.settings.helpers = vec![granted.join("helper").display().to_string()];
    let error = program.try_run(".", &["attack", "execute", "./helper"]).await.unwrap_err();
    assert!(error.message.contains("but agents can change it"), "{error:?}");
    assert_eq!(program.kit.context.access, WorkspaceAccess::Direct);
}
