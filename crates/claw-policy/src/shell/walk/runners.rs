//! Programs that run a command somewhere in their arguments.
//!
//! These are known to run a command, but the form of all their own options is not. So every position at which
//! the command may begin is tried, and one counts if rules object to the command that begins there. An
//! unknown program whose arguments read like a denied command is treated the same, and asked about.

use super::environment::Environment;
use super::{Input, Place, Walker, programs};
use crate::shell::verdict::{Argument, Decision};

/// Runners, and the verbs after which they run something; those without verbs always do.
const RUNNERS: &[(&[&str], &[&str])] = &[
    (&["npm", "pnpm", "yarn", "bun"], &["exec", "x", "explore", "dlx", "run", "create"]),
    (&["npx", "pnpx", "bunx", "uvx", "nodemon", "concurrently", "tsx", "ts-node"], &[]),
    (
        &["pipx", "conda", "mamba", "micromamba", "uv", "poetry", "pipenv", "hatch", "pdm", "rye"],
        &["run", "tool"],
    ),
    (
        &[
            "bundle", "gem", "composer", "stack", "cabal", "asdf", "mise", "pyenv", "rbenv", "nodenv",
            "direnv",
        ],
        &["exec", "x", "run"],
    ),
    (&["nvm", "volta", "fnm", "rustup"], &["exec", "run"]),
    (&["nix", "nix-shell"], &[]),
    (&["cargo"], &["watch", "run", "test", "bench", "nextest", "flamegraph"]),
    (&["bazel", "bazelisk"], &["run", "build", "test"]),
    (&["docker", "podman", "nerdctl", "lxc", "docker-compose"], &["run", "exec", "create"]),
    (&["kubectl", "oc"], &["exec", "run", "debug"]),
    (&["vagrant"], &["ssh"]),
    (&["ansible", "salt", "fab", "pssh", "parallel-ssh", "pdsh", "dsh", "clush", "mosh", "autossh"], &[]),
    (&["ssh-agent", "gpg-agent", "dbus-launch", "systemd-run", "systemd-inhibit", "systemd-cat"], &[]),
    (&["tmux", "screen", "dtach", "abduco", "zellij", "daemonize", "daemon"], &[]),
    (&["xterm", "gnome-terminal", "konsole", "alacritty", "kitty", "foot", "wezterm", "urxvt", "st"], &[]),
    (
        &["watchexec", "watchman", "entr", "hyperfine", "reflex", "gdb", "lldb", "rr", "perf", "heaptrack"],
        &[],
    ),
    (&["setarch", "choom", "coresched", "uclampset", "cpulimit", "trickle", "schedtool", "memusage"], &[]),
    (
        &["softlimit", "setlock", "chpst", "envdir", "envuidgid", "setuidgid", "s6-setuidgid", "s6-envdir"],
        &[],
    ),
    (&["dumb-init", "tini", "catatonit", "fakechroot", "proot", "tsocks", "runcon", "aa-exec", "scl"], &[]),
    (&["faketime", "datefudge", "libtool", "sem", "chronic", "ifne", "mispipe", "pee", "kstart5"], &[]),
    (&["valgrind", "firejail", "bwrap", "sandbox-exec", "dbus-run-session", "xvfb-run", "cgexec"], &[]),
];

/// Programs that take names of others without running them.
const NAMING: &[&str] = &[
    "apt",
    "apt-get",
    "aptitude",
    "apk",
    "brew",
    "dnf",
    "yum",
    "pacman",
    "zypper",
    "port",
    "snap",
    "flatpak",
    "dpkg",
    "rpm",
    "pip",
    "pip3",
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "cargo",
    "gem",
    "go",
    "uv",
    "pipx",
    "conda",
    "man",
    "tldr",
    "apropos",
    "whatis",
    "git",
    "gh",
    "hg",
    "svn",
    "logger",
    "notify-send",
    "wall",
    "write",
    "command",
    "builtin",
    "docker",
    "podman",
    "kubectl",
    "systemctl",
    "ssh",
    "make",
    "cmake",
];

/// Number of positions that are tried.
const PLACES: usize = 64;

impl Walker<'_> {
    /// Searches for commands in the arguments of a program.
    pub(super) fn runner(
        &mut self,
        name: &str,
        arguments: &[Argument],
        place: &Place,
        environment: &Environment,
    ) {
        let listed = RUNNERS.iter().find(|(names, _)| names.contains(&name));
        let from = match listed {
            Some((_, [])) => Some(0),
            Some((_, verbs)) => {
                let is_verb =
                    |argument: &Argument| argument.known().is_some_and(|text| verbs.contains(&text));
                arguments.iter().position(is_verb).map(|at| at + 1)
            }
            None => None,
        };
        let Some(from) = from else {
            self.perhaps_runs(name, arguments, place, environment);
            return;
        };
        for (at, argument) in arguments.iter().enumerate().skip(from).take(PLACES) {
            if argument.known() == Some("--") && arguments.get(at + 1).is_some_and(Argument::may_be_option) {
                self.hit("unknown.command", None);
            }
            let Some(text) = argument.known() else { continue };
            let value = text.strip_prefix("--").and_then(|long| long.split_once('=')).map(|(_, value)| value);
            if let Some(script) = value.or((!text.starts_with('-')).then_some(text))
                && script.contains([' ', '\t', '\n'])
            {
                self.attempt(|walker| {
                    let mut outside = environment.clone();
                    outside.positional = None;
                    walker.nested_script(script, &mut outside, &Input::Inherited);
                });
            } else if !text.starts_with('-') && (at + 1 < arguments.len() || place.input != Input::Inherited)
            {
                self.attempt(|walker| {
                    let mut outside =
                        Environment { variables: environment.variables.clone(), ..Environment::default() };
                    walker.run(&arguments[at..], place, &mut outside);
                });
            }
        }
    }

    /// Judges an unknown program with arguments that read like `rm -rf x` or `sh -c '...'`.
    fn perhaps_runs(&mut self, name: &str, arguments: &[Argument], place: &Place, environment: &Environment) {
        if self.attempting || programs::only_itself(name) || NAMING.contains(&name) {
            return;
        }
        for at in 0..arguments.len().saturating_sub(1).min(PLACES) {
            let plain = arguments[at].known().is_some_and(|text| !text.starts_with('-'));
            if !plain || !arguments[at + 1].text().starts_with('-') {
                continue;
            }
            let (findings, commands) = (self.findings.len(), self.commands.len());
            let mut outside =
                Environment { variables: environment.variables.clone(), ..Environment::default() };
            self.attempting = true;
            self.run(&arguments[at..], place, &mut outside);
            self.attempting = false;
            let denied = self.findings[findings..].iter().any(|finding| finding.verdict == Decision::Deny);
            self.findings.truncate(findings);
            self.commands.truncate(commands);
            self.here = place.span;
            if denied {
                self.hit("unknown.command", Some("it may run its later arguments as a command"));
                return;
            }
        }
    }

    /// Follows a text that may be a script.
    pub(in crate::shell) fn attempt_script(&mut self, script: &str) {
        self.attempt(|walker| {
            walker.nested_script(script, &mut Environment::default(), &Input::Inherited);
        });
    }

    /// Follows something that may not be a command. It counts as one if rules object to it.
    pub(super) fn attempt(&mut self, follow: impl FnOnce(&mut Self)) {
        let (findings, commands, here) = (self.findings.len(), self.commands.len(), self.here);
        let attempting = std::mem::replace(&mut self.attempting, true);
        self.depth += 1;
        follow(self);
        self.depth -= 1;
        self.attempting = attempting;
        self.here = here;
        let mut kept = self.findings.split_off(findings);
        kept.retain(|finding| finding.rule != "unknown.syntax");
        if kept.is_empty() {
            self.commands.truncate(commands);
        }
        self.findings.append(&mut kept);
    }
}
