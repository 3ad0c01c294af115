//! Options with which a harmless program runs another one.

use super::Seen;
use super::destructive::git_verb;
use crate::shell::verdict::Argument;
use crate::shell::walk::{Input, Walker, long_option};

pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let runs = runs_by_option(seen);
    if runs == Some(true) || seen.any(|a| a.contains("%pipe%")) {
        walker.hit("eval.option", None);
    }
    let others = ["curl", "wget", "docker", "podman", "nerdctl", "find", "gfind", "script"];
    if (runs.is_some() || others.contains(&seen.name)) && has_unclear_option(seen) {
        walker.hit("unknown.argument", None);
        let texts: Vec<String> =
            seen.arguments().iter().filter_map(Argument::known).map(str::to_owned).collect();
        texts.iter().filter(|text| text.contains(' ')).for_each(|text| walker.attempt_script(text));
    }
    named_options(walker, seen);
    if seen.name == "git" && git_config_runs(seen) {
        walker.hit("eval.option", None);
    }
}

/// Returns whether an option is known only at run time.
fn has_unclear_option(seen: &Seen<'_>) -> bool {
    // `git log -$N` is a count, and no verb here runs anything by a short option.
    let counts = seen.name == "git"
        && matches!(git_verb(seen), "log" | "show" | "rev-list" | "diff" | "shortlog" | "blame");
    let options = seen.arguments().iter().take_while(|argument| argument.text() != "--");
    options.into_iter().any(|argument| {
        let text = argument.text();
        let long = text.starts_with("--");
        // The last of several letters may take the unknown part as its value, so these are not names.
        let letters = text.starts_with('-') && !text.starts_with("-\0") && !long;
        let whole = matches!(seen.name, "find" | "gfind");
        (whole || !letters) && (long || !counts) && argument.is_unclear_option("")
    })
}

/// Returns whether the options of a program make it run another one; `None` if no such option is known.
fn runs_by_option(seen: &Seen<'_>) -> Option<bool> {
    viewer(seen).or_else(|| carrier(seen)).or_else(|| builder(seen)).or_else(|| other(seen))
}

/// Editors, pagers, and programs with a language of their own for text.
fn viewer(seen: &Seen<'_>) -> Option<bool> {
    let runs = match seen.name {
        "vi" | "vim" | "nvim" | "ex" | "view" | "vimdiff" | "rvim" | "gvim" => vim(seen),
        "emacs" => {
            seen.long("eval", 4)
                || seen.long("execute", 4)
                || seen.any(|a| {
                    matches!(a, "-f" | "--funcall" | "-batch" | "--batch" | "-l" | "--load" | "--script")
                })
        }
        "less" | "more" | "most" => seen.any(|a| a.starts_with("+!") || a.starts_with("+|")),
        "man" => {
            let plain = |pager: &str| matches!(pager, "" | "cat" | "less" | "more");
            after(seen, &["-P", "--pager", "--html"]).is_some_and(|pager| !plain(pager))
                || seen.any(|a| {
                    let joined =
                        ["--pager=", "--html=", "-P", "-H"].iter().find_map(|option| a.strip_prefix(option));
                    joined.is_some_and(|pager| !plain(pager))
                })
        }
        "awk" | "gawk" | "mawk" | "nawk" => seen.any(|a| a == "-l" || is_long(a, "--load")),
        "sed" | "gsed" => super::sed::scripts(seen).iter().any(|script| script.runs),
        "ed" | "red" => true,
        "nano" | "pico" => seen.short('s') || seen.long("speller", 2),
        "w3m" | "lynx" | "links" => seen.any(|a| a.contains("browser=") || a.contains("-editor=")),
        "fzf" => seen.any(|a| is_long(a, "--bind") || is_long(a, "--preview")),
        _ => return None,
    };
    Some(runs)
}

/// Programs that carry files between machines, archives and repositories.
fn carrier(seen: &Seen<'_>) -> Option<bool> {
    let runs = match seen.name {
        "git" => git(seen),
        "tar" | "gtar" | "bsdtar" => tar(seen),
        "sftp" => ssh(seen) || typed(seen),
        "ssh" | "scp" => ssh(seen),
        "rsync" => {
            seen.any(|a| is_long(a, "--rsh") || is_long(a, "--rsync-path"))
                && !seen.any(|a| matches!(a, "--rsh=ssh"))
                || shell_after(seen, &["--rsh"])
                || seen.arguments().iter().enumerate().any(|(i, a)| {
                    let flags = a.text().strip_prefix('-').filter(|flags| !flags.starts_with('-'));
                    let value = flags.and_then(|flags| flags.split_once('e')).map(|(_, value)| value);
                    let next = seen.arguments().get(i + 1).map_or("", Argument::text);
                    value.is_some_and(|value| runs_more_than_ssh(if value.is_empty() { next } else { value }))
                })
        }
        "zip" => seen.any(|a| a == "-TT" || is_long(a, "--unzip-command")),
        "ftp" | "lftp" | "ncftp" | "mail" | "mailx" | "mutt" | "dc" | "bc" => typed(seen),
        "ssh-keygen" => seen.short('D'),
        "ssh-add" => seen.short('s'),
        "mosh" => seen.any(|a| is_long(a, "--ssh") || is_long(a, "--server")),
        "split" => seen.long("filter", 3),
        "hg" => seen
            .any(|a| a.contains("alias.") && a.contains('!') || a.contains("hooks.") || a.contains("ui.ssh")),
        "svn" => seen
            .any(|a| a.contains("config:tunnels") || a.contains("--editor-cmd") || a.contains("--diff-cmd")),
        "cpio" => seen.any(|a| is_long(a, "--rsh-command")),
        "wget" => seen.any(|a| is_long(a, "--use-askpass")),
        _ => return None,
    };
    Some(runs)
}

/// Compilers, build tools and package managers.
fn builder(seen: &Seen<'_>) -> Option<bool> {
    let runs = match seen.name {
        "make" | "gmake" => {
            let input = |file: &str| matches!(file, "-" | "/dev/stdin") || file.starts_with("/dev/fd/");
            let joined = ["--file=", "--makefile=", "-f"];
            seen.any(|a| is_long(a, "--eval") || a.starts_with("SHELL=") || a.starts_with(".SHELLFLAGS="))
                || seen.any(|a| a.contains("$(shell") || a.contains("${shell") || a.contains("!="))
                || seen.short('E')
                || after(seen, &["-f", "--file", "--makefile"]).is_some_and(input)
                || seen.any(|a| joined.iter().find_map(|option| a.strip_prefix(option)).is_some_and(input))
        }
        "go" => seen.any(|a| {
            let option = a.trim_start_matches('-').split('=').next().unwrap_or(a);
            a.starts_with('-') && matches!(option, "exec" | "toolexec" | "vettool" | "overlay")
        }),
        "gcc" | "g++" | "cc" | "c++" | "clang" | "clang++" => seen.any(|a| {
            let linker = a.strip_prefix("-fuse-ld=").or_else(|| a.strip_prefix("--ld-path="));
            a == "-wrapper"
                || ["-fplugin=", "-specs=", "--specs=", "-Xclang=-load", "-B"]
                    .iter()
                    .any(|option| a.starts_with(option))
                || linker.is_some_and(|linker| linker.contains('/'))
        }),
        "rustc" => rustc(seen),
        "java" => seen.any(|a| {
            a.starts_with("-javaagent:")
                || a.starts_with("-agentpath:")
                || (a.starts_with("-agentlib:") && !a.starts_with("-agentlib:jdwp"))
                || a.starts_with("-XX:On")
                || a.starts_with("-XX:Flags=")
        }),
        "mvn" => seen.any(|a| a.starts_with("-Dexec.executable") || a.starts_with("exec:exec")),
        "gradle" => seen.any(|a| a == "-I" || is_long(a, "--init-script")),
        "npm" | "pnpm" | "yarn" => seen.any(|a| {
            let option = a.trim_start_matches("--").split('=').next().unwrap_or(a);
            let runs = matches!(
                option,
                "script-shell" | "editor" | "viewer" | "git" | "shell" | "node-gyp" | "init-module"
            );
            runs && (a.starts_with("--") || seen.any(|verb| verb == "config" || verb == "set"))
        }),
        "cargo" => {
            let runs = ["rustc", "rustc-wrapper", "rustc-workspace-wrapper", "rustdoc", "runner", "linker"];
            seen.any(|a| {
                let setting = a.split_once('=').map(|(name, _)| name.trim_start_matches("--config=").trim());
                setting.is_some_and(|name| {
                    name.contains('.') && name.rsplit('.').next().is_some_and(|last| runs.contains(&last))
                })
            }) || rustc(seen)
        }
        "pip" | "pip3" => {
            seen.any(|a| a.starts_with("--index-url=http://") || is_long(a, "--trusted-host"))
                || shell_after(seen, &["--trusted-host"])
        }
        "dvips" => seen.short('R'),
        "latex" | "pdflatex" | "xelatex" | "lualatex" => {
            seen.any(|a| a.contains("shell-escape") || a.contains("write18"))
        }
        _ => return None,
    };
    Some(runs)
}

/// Other programs.
fn other(seen: &Seen<'_>) -> Option<bool> {
    let runs = match seen.name {
        "sort" | "gsort" => seen.long("compress-program", 3),
        "nmap" => {
            seen.any(|a| a == "--interactive" || a.starts_with("--script=/") || a.starts_with("--script=./"))
        }
        "tcpdump" => seen.short('z'),
        "emacsclient" => seen.short('e') || seen.long("eval", 2),
        "gdb" | "lldb" => {
            seen.any(|a| {
                matches!(a, "-ex" | "-iex" | "--eval-command" | "-o" | "--one-line" | "-x" | "--batch-silent")
                    || is_long(a, "--eval-command")
                    || a.starts_with("-ex=")
            }) || matches!(&seen.place.input, Input::Text(text) if text.contains("shell") || text.contains('!') || text.contains("python"))
        }
        "rpm" => seen.long("eval", 3) || seen.long("pipe", 3),
        "dpkg" => seen.long("pre-invoke", 3) || seen.long("post-invoke", 3),
        "apt" | "apt-get" => {
            seen.any(|a| a.contains("Pre-Invoke") || a.contains("Post-Invoke") || a.contains("Dir::Bin"))
        }
        "tmux" | "screen" => seen.any(|a| {
            matches!(a, "send-keys" | "send" | "-X" | "run-shell" | "run" | "if-shell" | "pipe-pane" | "-c")
        }),
        "mysql" | "mariadb" => seen.any(|a| {
            let statement = a.trim_start();
            is_long(a, "--pager")
                || statement.starts_with("system ")
                || a.contains("\\!")
                || a.contains("; system ")
        }),
        "rg" => {
            let joined = ["--pre=", "--hostname-bin="];
            after(seen, &["--pre", "--hostname-bin"]).is_some_and(|program| program.contains('/'))
                || seen
                    .any(|a| joined.iter().any(|name| a.strip_prefix(name).is_some_and(|a| a.contains('/'))))
        }
        "coreutils" => seen.long("coreutils-prog", 10) || seen.long("coreutils-prog-shebang", 10),
        "psql" => seen.any(|a| a.contains("\\!")),
        "php" => seen.any(|a| a.contains("auto_prepend_file") || a.contains("allow_url_include")),
        "zsh" => seen.any(|a| a == "zmodload zsh/net/tcp"),
        "ip" => seen.has("netns") && seen.has("exec"),
        "ltrace" | "strace" => seen.short('p'),
        "logrotate" => true,
        "run-parts" | "start-stop-daemon" => true,
        "enable" => seen.short('f'),
        _ => return None,
    };
    Some(runs)
}

/// Returns whether an argument is a long option, written in full with anything after it, or shortened as
/// programs allow.
fn is_long(argument: &str, option: &str) -> bool {
    argument.starts_with(option) || long_option(argument, option).is_some()
}

/// Judges the values of long options whose name says that they take a command, for any program.
fn named_options(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    const NAMED: &[&str] = &[
        "command",
        "commands",
        "cmd",
        "hook",
        "rsh",
        "ssh",
        "exec",
        "execute",
        "program",
        "prog",
        "wrapper",
        "launcher",
        "runner",
        "pager",
        "editor",
        "shell",
        "askpass",
        "call",
        "script",
        "prepare",
        "cleanup",
        "setup",
        "under",
        "viewer",
        "filter",
        "executable",
        "prefix",
    ];
    if matches!(seen.name, "echo" | "printf" | "grep" | "rg" | "egrep" | "fgrep") {
        return;
    }
    let arguments = seen.arguments().to_vec();
    for (i, argument) in arguments.iter().enumerate() {
        let Some(option) = argument.text().strip_prefix("--") else { continue };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, arguments.get(i + 1).and_then(Argument::known)),
        };
        let takes = name.rsplit(['-', '_']).next().is_some_and(|last| NAMED.contains(&last));
        if let Some(value) = value.filter(|value| takes && !value.contains('\0') && !value.starts_with('-')) {
            walker.attempt_script(value);
        }
    }
}

/// Judges packages that come from an address.
pub(super) fn judge_packages(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let module = seen.arguments().windows(2).any(|two| two[0].text() == "-m" && two[1].text() == "pip");
    let verb = match seen.name {
        "pip" | "pip3" | "pipx" | "uv" | "uvx" | "gem" | "npm" | "pnpm" | "yarn" | "bun" | "npx" | "bunx" => {
            true
        }
        "python" | "python3" => module,
        "cargo" => seen.has("install"),
        "deno" => seen.any(|a| matches!(a, "run" | "install" | "test" | "bench" | "x")),
        "code" | "codium" => seen.any(|a| is_long(a, "--install-extension")),
        _ => false,
    };
    let installs =
        |a: &str| matches!(a, "install" | "i" | "add" | "run" | "exec" | "x" | "dlx" | "download" | "test");
    if !verb
        || !(seen.any(installs) || matches!(seen.name, "npx" | "bunx" | "uvx" | "code" | "codium" | "deno"))
    {
        return;
    }
    // Options that name a package source, and packages that are addresses.
    let address = |a: &str| {
        let a = a.split_once('=').filter(|(option, _)| option.starts_with('-')).map_or(a, |(_, value)| value);
        let a = a.split_once(" @ ").map_or(a, |(_, address)| address);
        ["http://", "https://", "git+", "git://", "git@", "ssh://", "github:", "gitlab:", "bitbucket:"]
            .iter()
            .any(|scheme| a.starts_with(scheme))
    };
    if seen.any(address) {
        walker.hit("remote-code.package", None);
    }
}

fn after<'a>(seen: &'a Seen<'_>, options: &[&str]) -> Option<&'a str> {
    seen.arguments().windows(2).find(|two| options.contains(&two[0].text())).map(|two| two[1].text())
}

/// Returns whether an option's value is more than the plain name of ssh.
fn shell_after(seen: &Seen<'_>, options: &[&str]) -> bool {
    after(seen, options).is_some_and(runs_more_than_ssh)
}

fn runs_more_than_ssh(value: &str) -> bool {
    let first = value.trim_start().split(' ').next().unwrap_or("");
    first.rsplit('/').next() != Some("ssh") || value.contains("ProxyCommand")
}

/// Returns whether a setting of git has a command as its value.
fn runs_setting(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let harmless = matches!(
        value,
        "" | "cat"
            | "less"
            | "true"
            | "false"
            | "vim"
            | "vi"
            | "nano"
            | "less -FRX"
            | "less -R"
            | "less -F"
            | "delta"
            | "code --wait"
            | "store"
            | "cache"
            | "osxkeychain"
            | "manager"
    );
    // By the setting's last word: a program, or a path from which more settings or hooks come.
    const COMMANDS: &[&str] = &[
        "pager",
        "editor",
        "sshcommand",
        "askpass",
        "fsmonitor",
        "hookspath",
        "gitproxy",
        "external",
        "helper",
        "program",
        "browser",
        "packobjectshook",
        "alternaterefscommand",
        "templatedir",
        "allow",
        "difffilter",
        "command",
        "cmd",
        "textconv",
        "clean",
        "smudge",
        "process",
        "driver",
        "uploadpack",
        "receivepack",
        "vcs",
        "defaultkeycommand",
        "sendmailcmd",
        "tocmd",
        "cccmd",
        "headercmd",
        "httpd",
        "proxycommand",
    ];
    let (section, last) = (name.split('.').next().unwrap_or(""), name.rsplit('.').next().unwrap_or(""));
    let path = last == "path"
        && matches!(section, "include" | "includeif" | "difftool" | "mergetool" | "man" | "browser");
    let command = (COMMANDS.contains(&last) && (section != "protocol" || name.starts_with("protocol.ext")))
        || (last == "smtpserver" && value.contains('/'))
        || section == "pager"
        || path
        || (last == "update" && value.starts_with('!'))
        || (last == "insteadof" && section == "url" && name.contains("ext::"))
        || value.starts_with("ext::");
    let alias = name.starts_with("alias.") && value.trim_start().starts_with('!');
    alias || (command && !harmless && !matches!(value, "never" | "user"))
}

fn git(seen: &Seen<'_>) -> bool {
    let arguments = seen.arguments();
    let set = |text: &str| text.split_once('=').is_some_and(|(name, value)| runs_setting(name, value));
    arguments.windows(2).any(|two| matches!(two[0].text(), "-c" | "--config") && set(two[1].text()))
        || seen.any(|a| {
            is_long(a, "--config-env")
                || a.strip_prefix("-c").is_some_and(&set)
                || a.strip_prefix("--config=").is_some_and(&set)
        })
        || seen.any(|a| {
            is_long(a, "--upload-pack")
                || is_long(a, "--receive-pack")
                || a.starts_with("ext::")
                || is_long(a, "--exec-path")
                || is_long(a, "--open-files-in-pager")
                || is_long(a, "--extcmd")
                || is_long(a, "--template")
                || is_long(a, "--access-hook")
                || is_long(a, "--httpd")
        })
        || (matches!(git_verb(seen), "push" | "archive" | "fetch" | "ls-remote")
            && seen.any(|a| is_long(a, "--exec")))
        || (git_verb(seen) == "clone" && seen.short('u'))
        || matches!(git_verb(seen), "for-each-repo")
        || (git_verb(seen) == "grep" && seen.any(|a| a.starts_with("-O")))
        || (matches!(git_verb(seen), "difftool") && seen.short('x'))
}

fn git_config_runs(seen: &Seen<'_>) -> bool {
    if git_verb(seen) != "config" {
        return false;
    }
    let words: Vec<&str> =
        seen.operands().skip_while(|word| *word != "config").skip(1).filter(|word| *word != "set").collect();
    matches!(words.as_slice(), [name, value, ..] if runs_setting(name, value))
}

fn tar(seen: &Seen<'_>) -> bool {
    const COMPRESSORS: &[&str] = &[
        "gzip", "bzip2", "xz", "zstd", "pigz", "lz4", "lzip", "pbzip2", "pixz", "gzip -9", "zstd -19",
        "zstd -T0", "xz -9", "xz -T0",
    ];
    let arguments = seen.arguments();
    let takes = |text: &str, next: Option<&Argument>, flag: char, long: &str| {
        let value = next.map_or("", Argument::text).to_owned();
        match text.strip_prefix("--") {
            Some(option) => match option.split_once('=') {
                Some((name, value)) => (name.len() > 3 && long.starts_with(name)).then(|| value.to_owned()),
                None => (option.len() > 3 && long.starts_with(option)).then_some(value),
            },
            // A cluster, or text joined to the option; the first argument may lack its dash.
            None => {
                let flags = text.strip_prefix('-').unwrap_or(text);
                flags.split_once(flag).map(|(_, rest)| if rest.is_empty() { value } else { rest.to_owned() })
            }
        }
    };
    arguments.iter().enumerate().any(|(i, argument)| {
        let text = argument.text();
        let options =
            text.starts_with('-') || (i == 0 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let given = |flag, long| takes(text, arguments.get(i + 1), flag, long).filter(|_| options);
        let long = |name: &str| takes(text, None, '\0', name).is_some() && text.starts_with("--");
        given('I', "use-compress-program").is_some_and(|program| {
            // `cIf PROGRAM x`: which of the next arguments it is, is not determined.
            !COMPRESSORS.contains(&program.as_str())
                && !COMPRESSORS.contains(&arguments.get(i + 1).map_or("", Argument::text))
        }) || given('F', "info-script").is_some()
            || ["to-command", "new-volume-script", "rsh-command", "rmt-command"].into_iter().any(long)
            || (long("checkpoint-action")
                && !text.ends_with("=dot")
                && !text.ends_with("=echo")
                && text.len() > 12)
    })
}

/// Returns whether a program that takes its own commands gets `!cmd`.
fn typed(seen: &Seen<'_>) -> bool {
    let runs = |text: &str| text.lines().any(|line| line.trim_start().starts_with(['!', '~', '|']));
    matches!(&seen.place.input, Input::Text(text) if runs(text)) || seen.any(|a| a.starts_with('!'))
}

/// `-C linker=...` and the like.
fn rustc(seen: &Seen<'_>) -> bool {
    let linkers = ["clang", "gcc", "cc", "lld", "rust-lld", "mold", "ld.lld", "wasm-ld"];
    seen.any(|a| {
        a.split_once("linker=").is_some_and(|(before, linker)| {
            (before.is_empty() || before.ends_with("-C"))
                && !linkers.contains(&linker)
                && !linker.ends_with("-gcc")
        })
    })
}

fn vim(seen: &Seen<'_>) -> bool {
    let command = |text: &str| {
        text.starts_with('!')
            || text.contains("!")
            || text.contains("system(")
            || text.contains("py ")
            || text.contains("python")
            || text.contains("lua ")
            || text.contains("perl")
            || text.contains("ruby")
            || text.contains("term")
            || text.contains("source")
            || text.contains("jobstart")
            || text.contains("delete(")
            || text.contains("luafile")
            || text.contains("runtime")
            || text.contains("exe")
    };
    // Commands come from a script, or as if they were typed.
    if !matches!(seen.place.input, Input::Inherited)
        && (seen.name == "ex" || seen.any(|a| a == "-es" || a == "-Es"))
    {
        return true;
    }
    let script = after(seen, &["-u", "-U", "-s", "-l"]);
    if script.is_some_and(|file| !matches!(file, "NONE" | "NORC" | "DEFAULTS" | "/dev/null")) {
        return true;
    }
    seen.arguments().windows(2).any(|two| {
        let option = two[0].text();
        let takes = matches!(option, "--cmd" | "-S")
            || (option.starts_with('-') && !option.starts_with("--") && option.ends_with('c'));
        takes && (option == "-S" || command(two[1].text()))
    }) || seen.any(|a| a.starts_with('+') && command(&a[1..]) || a.strip_prefix("-c").is_some_and(command))
}

fn ssh(seen: &Seen<'_>) -> bool {
    let option = |text: &str| {
        let text = text.trim_start().to_ascii_lowercase();
        [
            "proxycommand",
            "localcommand",
            "knownhostscommand",
            "permitlocalcommand=yes",
            "pkcs11provider",
            "securitykeyprovider",
            "match",
            "include",
        ]
        .iter()
        .any(|name| text.starts_with(name))
    };
    seen.arguments().windows(2).any(|two| two[0].text() == "-o" && option(two[1].text()))
        || seen.any(|a| a.strip_prefix("-o").is_some_and(option))
        || (seen.name == "ssh" && seen.any(|a| a.starts_with("-I")))
        || (matches!(seen.name, "scp" | "sftp") && (shell_after(seen, &["-S"]) || shell_after(seen, &["-D"])))
}
