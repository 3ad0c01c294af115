//! Variables that make programs load or run other code.

use crate::shell::verdict::{Argument, UNKNOWN};
use crate::shell::walk::{Place, Walker};

const INJECTING: &[&str] = &[
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_DEBUG_OUTPUT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "PS4",
    "PS1",
    "PS0",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_LOADABLES_PATH",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONHOME",
    "PYTHONWARNINGS",
    "PERL5OPT",
    "PERL5DB",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "NODE_OPTIONS",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXEC_PATH",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "LESSOPEN",
    "LESSCLOSE",
    "MANPAGER",
    "BROWSER",
    "FCEDIT",
    "GCONV_PATH",
    "LOCPATH",
    "GLIBC_TUNABLES",
    "RUSTC_WRAPPER",
    "RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "NPM_CONFIG_SCRIPT_SHELL",
    "npm_config_script_shell",
    "TAR_OPTIONS",
    "RSYNC_RSH",
    "CVS_RSH",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "BASH_FUNC_ls%%",
    "MAKEFLAGS",
    "SHELL",
    "HISTFILE",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "HOSTALIASES",
    "RES_OPTIONS",
    "TERMINFO",
    "EXINIT",
    "VIMINIT",
    "GVIMINIT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG",
    "ZDOTDIR",
    "FPATH",
    "INPUTRC",
    "MAKEFILES",
    "GNUMAKEFLAGS",
    "RSYNC_CONNECT_PROG",
    "LESSKEY",
    "LESSKEYIN",
    "LESSKEY_CONTENT",
    "PSQLRC",
    "R_PROFILE",
    "R_PROFILE_USER",
    "R_ENVIRON",
    "PYTHONBREAKPOINT",
    "PYTHONUSERBASE",
    "PERLLIB",
    "AWKLIBPATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "GTK_MODULES",
    "GIO_EXTRA_MODULES",
    "GDK_PIXBUF_MODULE_FILE",
    "QT_PLUGIN_PATH",
    "HGRCPATH",
    "WGETRC",
    "CURL_HOME",
    "CARGO_BUILD_RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "CCACHE_PREFIX",
    "CLOUDSDK_PYTHON",
    "RIPGREP_CONFIG_PATH",
    "ELECTRON_RUN_AS_NODE",
];
/// Endings of variables that hold a command. The command is judged, not the assignment.
const COMMANDS: &[&str] = &[
    "COMMAND", "CMD", "PAGER", "EDITOR", "BROWSER", "ASKPASS", "SSH", "RSH", "PROG", "EXTCMD", "WRAPPER",
    "LINKER", "RUNNER", "LAUNCHER", "CC", "CXX", "AR", "LD", "CPP", "AS", "RUSTC", "RUSTDOC", "CARGO",
    "MAKE", "CONFIG", "SHELL",
];
/// Variables that hold options, and the program that reads them.
const OPTIONS: &[(&str, &str)] = &[
    ("GOFLAGS", "go"),
    ("RUSTFLAGS", "rustc"),
    ("RUSTDOCFLAGS", "rustc"),
    ("CARGO_ENCODED_RUSTFLAGS", "rustc"),
    ("CARGO_BUILD_RUSTFLAGS", "rustc"),
    ("CFLAGS", "gcc"),
    ("CXXFLAGS", "gcc"),
    ("CPPFLAGS", "gcc"),
    ("LDFLAGS", "gcc"),
    ("CGO_CFLAGS", "gcc"),
    ("CGO_LDFLAGS", "gcc"),
    ("JAVA_OPTS", "java"),
    ("MAVEN_OPTS", "java"),
    ("GRADLE_OPTS", "java"),
    ("SBT_OPTS", "java"),
    ("ANT_OPTS", "java"),
    ("MAKEFLAGS", "make"),
    ("MFLAGS", "make"),
    ("LESS", "less"),
    ("MORE", "more"),
    ("MANOPT", "man"),
    ("FZF_DEFAULT_OPTS", "fzf"),
    ("ZIPOPT", "zip"),
    ("PYTEST_ADDOPTS", "pytest"),
];
/// Variables that often name a harmless program, but run whatever they name.
const VIEWERS: &[&str] =
    &["PAGER", "EDITOR", "VISUAL", "GIT_PAGER", "GIT_EDITOR", "MANPAGER", "BROWSER", "GIT_SEQUENCE_EDITOR"];

/// Values of these that run no command.
const HARMLESS_VIEWERS: &[&str] = &[
    "",
    "cat",
    "less",
    "more",
    "true",
    ":",
    "vi",
    "vim",
    "nano",
    "emacs",
    "code --wait",
    "less -R",
    "cat -",
    "/bin/cat",
    "/bin/true",
];

pub(crate) fn judge_assignments(walker: &mut Walker<'_>, place: &Place) {
    for (name, value) in &place.assigned {
        judge_assignment(walker, name, value);
    }
}

/// Judges a variable that gets an unknown value, from a file or by an expression.
pub(crate) fn judge_filled(walker: &mut Walker<'_>, name: &str) {
    judge_assignment(walker, name, &Argument::new("?"));
    // With a known value, it depends on that.
    if matches!(name, "PS1" | "PS4") {
        walker.hit("environment.injection", Some(name));
    }
}

pub(crate) fn judge_assignment(walker: &mut Walker<'_>, name: &str, value: &Argument) {
    if name.contains(UNKNOWN) {
        walker.hit("unknown.shell-state", Some("the variable's name is only known at run time"));
    }
    match name {
        "BASH_CMDS" | "BASH_ALIASES" | "BASH_COMPAT" | "FUNCNEST" => {
            walker.hit("unknown.shell-state", Some(name));
        }
        // Any value assigned to them is an expression.
        "RANDOM" | "SRANDOM" | "SECONDS" | "HISTCMD" | "OPTIND" => walker.uses_arithmetic(),
        "PATH" => walker.path_is_set = true,
        _ => {}
    }
    if VIEWERS.contains(&name) {
        if !value.known().is_some_and(|value| HARMLESS_VIEWERS.contains(&value)) {
            walker.hit("environment.injection", Some(name));
        }
        return;
    }
    let holds = name.rsplit('_').next().is_some_and(|last| COMMANDS.contains(&last));
    if let Some(command) = value.known().filter(|_| holds && !INJECTING.contains(&name)) {
        walker.attempt_script(command);
    }
    if let Some((_, program)) = OPTIONS.iter().find(|(variable, _)| *variable == name) {
        let options = value.text().split_whitespace().map(Argument::new);
        let argv: Vec<Argument> = std::iter::once(Argument::new(*program)).chain(options).collect();
        let place = Place::nowhere();
        super::options::judge(walker, &super::Seen { name: program, argv: &argv, place: &place });
    }
    if (INJECTING.contains(&name) || name.starts_with("BASH_FUNC_") || name.starts_with("GIT_CONFIG_KEY"))
        && !is_known_harmless(name, value)
    {
        walker.hit("environment.injection", Some(name));
    }
    if name == "PATH" {
        judge_path(walker, value);
    }
}

/// Returns whether a variable that can make programs run something has a value that does not.
fn is_known_harmless(name: &str, value: &Argument) -> bool {
    match name {
        "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "PSQLRC" | "WGETRC" | "INPUTRC" => {
            value.known().is_some_and(|value| matches!(value, "" | "/dev/null"))
        }
        "PYTHONBREAKPOINT" => value.known().is_some_and(|value| matches!(value, "0" | "pdb.set_trace")),
        "RUSTC_WORKSPACE_WRAPPER" | "CCACHE_PREFIX" => {
            value.known().is_some_and(|value| matches!(value, "" | "sccache" | "clippy-driver" | "distcc"))
        }
        "SHELL" => {
            value.known().is_some_and(|value| value.starts_with("/bin/") || value.starts_with("/usr/bin/"))
        }
        "MAKEFLAGS" => value.known().is_some_and(|value| value.starts_with("-j")),
        "HISTFILE" => false,
        "NODE_OPTIONS" => value.known().is_some_and(|value| {
            value.split(' ').all(|option| {
                option.starts_with("--max")
                    || option.starts_with("--trace")
                    || option == "--experimental-vm-modules"
                    || option.starts_with("--openssl-legacy")
            })
        }),
        "PYTHONWARNINGS" => {
            value.known().is_some_and(|value| matches!(value, "ignore" | "error" | "default" | "always"))
        }
        "PS1" | "PS4" => value.known().is_some_and(|value| !value.contains(['`', '$'])),
        "RUSTC_WRAPPER" => value.known().is_some_and(|value| matches!(value, "" | "sccache")),
        _ => false,
    }
}

fn judge_path(walker: &mut Walker<'_>, value: &Argument) {
    // The old value is unknown, so a value that contains it has an unknown part.
    if !value.text().contains(UNKNOWN) {
        walker.hit("environment.path", None);
    }
    let first = value.text().split(':').next().unwrap_or("");
    if matches!(first, "." | "" | "/tmp" | "/dev/shm" | "/var/tmp")
        || first.starts_with("/tmp/")
        || first.starts_with("/dev/shm/")
    {
        walker.hit("environment.path", None);
    }
}
