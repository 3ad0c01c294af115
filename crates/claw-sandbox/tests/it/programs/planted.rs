//! Files that an agent left in its workspace and its `/tmp` are neither run nor read as configuration.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use claw_core::port::{Allowed, ShellHost as _, WorkspaceAccess};
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
        // A launcher with its interpreter, laid out as the one of `gcloud`.
        gcloud_in(&program.workspace().join("sdk"), "echo x > ran\n", "open('ran', 'w')\n");
        attacks.push("sdk/bin/gcloud".to_owned());
        program.plant("evil.py", "open('ran', 'w')\n");
        // `gcloud` is written in Python and needs it; the test below shows what it runs.
        if preset.name != "gcloud" {
            attacks.extend(PYTHONS.map(|python| format!("{python} evil.py")));
        }
        for attack in attacks {
            let ran = program.run(".", &["attack", "execute", &attack]).await;
            assert!(ran.output.contains("refused"), "{}: `{attack}`: {ran:?}", preset.name);
            assert!(!program.workspace().join(RAN).exists(), "{}: `{attack}`: {ran:?}", preset.name);
        }
    }
}

const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];

/// Writes a program like `gcloud`: a script for `sh` that tries an interpreter and then starts it with a file beside it.
fn gcloud_in(sdk: &Path, launcher: &str, module: &str) -> PathBuf {
    for directory in ["bin", "lib"] {
        fs::create_dir_all(sdk.join(directory)).unwrap();
    }
    let binary = sdk.join("bin/gcloud");
    fs::write(&binary, format!("#!/bin/sh\n{launcher}")).unwrap();
    fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    fs::write(sdk.join("lib/gcloud.py"), module).unwrap();
    binary
}

/// Plants what a Python could take for its own: programs of its name, modules that it imports first, its settings.
fn plant_for_python(program: &Registered) {
    let evil = "open('ran', 'w')\n";
    let modules = [
        "encodings/__init__",
        "gcloud",
        "google/__init__",
        "googlecloudsdk/__init__",
        "json",
        "lib/gcloud",
        "multiprocessing/__init__",
        "multiprocessing/spawn",
        "os",
        "platform",
        "site",
        "sitecustomize",
        "usercustomize",
    ];
    for module in modules {
        program.plant(&format!("{module}.py"), evil);
        program.plant(&format!(".local/lib/python3.11/site-packages/{module}.py"), evil);
    }
    for name in ["python", "python3", "python3.12", "dirname", "readlink", "uname", "which"] {
        for directory in ["", "bin/", "platform/bundledpythonunix/bin/"] {
            program.plant(&format!("{directory}{name}"), PLANTED);
        }
    }
    program.plant("pyvenv.cfg", "home = .\ninclude-system-site-packages = true\n");
    program.plant("planted.pth", "import os; open('ran', 'w')\n");
    program.plant(".config/gcloud/virtenv/bin/activate", "echo x > ran\n");
    program.plant(".config/gcloud/virtenv/enabled", "");
}

/// A launcher that looks for an interpreter, and for itself, as the one of `gcloud` does.
const LAUNCHER: &str = r#"
path=$(readlink "$0") || path=$0
root=$(dirname "$(dirname "$path")")
[ "$(uname -m)" ] || exit 8
if [ -f "$HOME/.config/gcloud/virtenv/enabled" ]; then . "$HOME/.config/gcloud/virtenv/bin/activate"; fi
for candidate in python3.14 python3 python; do
  if "$candidate" -c 'import json, platform, sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null; then
    exec "$candidate" -S "$root/lib/gcloud.py" "$@"
  fi
done
echo no interpreter
"#;

/// Starts another Python, as `gcloud storage` does for each of its processes.
const MODULE: &str = r#"
import json, os, subprocess, sys
import beside
spawn = "from multiprocessing.spawn import spawn_main; print('spawned')"
subprocess.run([sys.executable, "-c", spawn], check=True)
print(beside.NAME, os.environ["TOKEN"][:7], "" in sys.path, os.getcwd() in sys.path)
"#;

#[tokio::test]
async fn refuses_to_import_what_an_agent_planted_into_the_python_of_gcloud() {
    if !Path::new("/usr/bin/python3").exists() {
        eprintln!("skipped: no python3");
        return;
    }
    let outside = crate::kit::outside_tmp();
    let sdk = outside.path().canonicalize().unwrap();
    // As `gcloud.py` does.
    let own = "import os, sys\nsys.path.insert(0, os.path.dirname(__file__))\n";
    let binary = gcloud_in(&sdk, LAUNCHER, &format!("{own}{MODULE}"));
    fs::write(sdk.join("lib/beside.py"), "NAME = 'own files only'\n").unwrap();
    let preset = claw_policy::program::preset("gcloud").unwrap();
    let mut program = Registered::new("gcloud", &binary, preset.helpers, &[("TOKEN", TOKEN)]);
    program.kit.options.grants.push(Grant { path: sdk, write: false });
    plant_for_python(&program);
    let ran = program.run(".", &[]).await;
    assert_eq!(ran.output, "spawned\nown files only hunter2 False False\n", "{ran:?}");
    assert!(!program.workspace().join(RAN).exists(), "{ran:?}");
}

/// Where `gcloud` itself is installed.
#[tokio::test]
async fn the_real_gcloud_runs_nothing_that_an_agent_planted() {
    let Some(binary) = Path::new("/usr/bin/gcloud").canonicalize().ok() else {
        eprintln!("skipped: no gcloud");
        return;
    };
    let preset = claw_policy::program::preset("gcloud").unwrap();
    let mut program =
        Registered::new("gcloud", &binary, preset.helpers, &[("CLOUDSDK_AUTH_ACCESS_TOKEN", TOKEN)]);
    plant_for_python(&program);
    program.seconds = 120;
    let ran = program.run(".", &["version", "--format=json"]).await;
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert!(ran.output.contains("Google Cloud SDK"), "{ran:?}");
    assert!(!program.workspace().join(RAN).exists(), "{ran:?}");
}

/// A program whose own file Python runs, with a module beside it.
#[tokio::test]
async fn refuses_to_import_what_an_agent_planted_into_a_script_in_python() {
    if !Path::new("/usr/bin/python3").exists() {
        eprintln!("skipped: no python3");
        return;
    }
    let outside = crate::kit::outside_tmp();
    let directory = outside.path().canonicalize().unwrap();
    let binary = directory.join("tool");
    fs::write(&binary, format!("#!/usr/bin/python3\n{MODULE}")).unwrap();
    fs::set_permissions(&binary, Permissions::from_mode(0o755)).unwrap();
    fs::write(directory.join("beside.py"), "NAME = 'own files only'\n").unwrap();
    let mut program = Registered::new("tool", &binary, &[], &[("TOKEN", TOKEN)]);
    program.kit.options.grants.push(Grant { path: directory, write: false });
    plant_for_python(&program);
    let ran = program.run(".", &[]).await;
    assert_eq!(ran.output, "spawned\nown files only hunter2 False False\n", "{ran:?}");
    assert!(!program.workspace().join(RAN).exists(), "{ran:?}");
}

/// It does not know the setting that keeps others from importing what is planted.
#[tokio::test]
async fn refuses_an_old_python_as_a_helper() {
    let outside = crate::kit::outside_tmp();
    let directory = outside.path().canonicalize().unwrap();
    let place = |name: &str| {
        let path = directory.join(name);
        fs::copy("/bin/true", &path).unwrap();
        path.display().to_string()
    };
    let (old, new) = (place("python3.10"), place("python3.11"));
    let this = std::env::current_exe().unwrap();
    let run = async |helpers: &[&str], what: &str| {
        let mut program = Registered::new("stand-in", &this, helpers, &[("STAND_IN_TOKEN", TOKEN)]);
        program.kit.options.grants.push(Grant { path: directory.clone(), write: false });
        program.try_run(".", &["attack", "execute", what]).await
    };
    let error = run(&[&old], &old).await.unwrap_err();
    assert!(error.message.contains("python3.10` is older than Python 3.11"), "{error:?}");
    // Beside a newer one it is left out.
    assert_eq!(run(&[&old, &new], &new).await.unwrap().output, "escaped\n");
    let refused = run(&[&old, &new], &old).await.unwrap();
    assert!(refused.output.contains("refused"), "{refused:?}");
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
    let outside = crate::kit::outside_tmp();
    let mut program = Registered::new("gh", Path::new("/bin/bash"), &["cat"], &[("GH_TOKEN", TOKEN)]);
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
    // However the directory was granted, and whether this program sees it or not.
    program.kit.options.grants.pop();
    let grants: [fn(&mut Registered, PathBuf); 5] = [
        |program, path| program.kit.context.granted.push(Allowed { path, write: true }),
        |program, path| program.kit.context.changeable.push(path),
        |program, path| program.changeable.push(path),
        |program, path| program.kit.options.homes = Some(path),
        |program, path| program.kit.options.temporary = Some(path),
    ];
    for (at, grant) in grants.into_iter().enumerate() {
        let mut other = executing(&[]);
        other.card.settings.helpers.clone_from(&program.card.settings.helpers);
        grant(&mut other, granted.clone());
        let error = other.try_run(".", &["attack", "execute", "./helper"]).await.unwrap_err();
        assert!(error.message.contains("but agents can change it"), "{at}: {error:?}");
        // The file of the program itself too.
        let binary = granted.join("program");
        fs::copy(std::env::current_exe().unwrap(), &binary).unwrap();
        let mut other = Registered::new("stand-in", &binary, &[], &[("STAND_IN_TOKEN", TOKEN)]);
        grant(&mut other, granted.clone());
        let error = other.try_run(".", &["--help"]).await.unwrap_err();
        assert!(error.message.contains("where agents can change it"), "{at}: {error:?}");
    }
    assert_eq!(program.kit.context.access, WorkspaceAccess::Direct);
}
