//! Options by which a harmless program runs another one.

use super::Seen;
use super::destructive::git_verb;
use crate::shell::walk::Walker;

pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let runs = match seen.name {
        "sort" | "gsort" => seen.long("compress-program", 3),
        "git" => git(seen),
        "tar" | "gtar" | "bsdtar" => tar(seen),
        "vi" | "vim" | "nvim" | "ex" | "view" | "vimdiff" | "rvim" | "gvim" => vim(seen),
        "emacs" => {
            seen.long("eval", 4)
                || seen.long("execute", 4)
                || seen.any(|a| a == "-f" || a == "--funcall" || a == "-batch" || a == "--batch")
        }
        "ssh" | "scp" | "sftp" => ssh(seen),
        "rsync" => {
            seen.any(|a| a.starts_with("--rsh=") || a.starts_with("--rsync-path="))
                && !seen.any(|a| matches!(a, "--rsh=ssh"))
                || shell_after(seen, &["-e", "--rsh"])
        }
        "zip" => seen.any(|a| a == "-TT" || a.starts_with("--unzip-command")),
        "less" | "more" | "most" => seen.any(|a| a.starts_with("+!") || a.starts_with("+|")),
        "man" => {
            after(seen, &["-P", "--pager", "-H", "--html"])
                .is_some_and(|pager| !matches!(pager, "cat" | "less" | "more"))
                || seen.any(|a| a.starts_with("--pager=") && a != "--pager=cat")
        }
        "awk" | "gawk" | "mawk" | "nawk" => seen.any(|a| a == "-l" || a.starts_with("--load")),
        "sed" | "gsed" => seen.arguments().iter().any(|a| sed_runs(a.text())),
        "ed" | "red" => true,
        "nmap" => {
            seen.any(|a| a == "--interactive" || a.starts_with("--script=/") || a.starts_with("--script=./"))
        }
        "tcpdump" => seen.short('z'),
        "make" | "gmake" => {
            seen.any(|a| a.starts_with("--eval") || a.starts_with("SHELL=") || a == "-f/dev/stdin")
                || after(seen, &["-f", "--file"]) == Some("/dev/stdin")
        }
        "gdb" | "lldb" => seen.any(|a| {
            matches!(a, "-ex" | "-iex" | "--eval-command" | "-o" | "--one-line" | "-x" | "--batch-silent")
                || a.starts_with("--eval-command=")
        }),
        "rpm" => seen.long("eval", 3) || seen.long("pipe", 3),
        "dpkg" => seen.long("pre-invoke", 3) || seen.long("post-invoke", 3),
        "apt" | "apt-get" => {
            seen.any(|a| a.contains("Pre-Invoke") || a.contains("Post-Invoke") || a.contains("Dir::Bin"))
        }
        "tmux" | "screen" => seen.any(|a| {
            matches!(a, "send-keys" | "send" | "-X" | "run-shell" | "run" | "if-shell" | "pipe-pane" | "-c")
        }),
        "fzf" => seen.any(|a| a.starts_with("--bind") || a.starts_with("--preview")),
        "mysql" | "mariadb" => seen.any(|a| a.starts_with("--pager=")),
        "psql" => seen.any(|a| a.contains("\\!")),
        "php" => seen.any(|a| a.contains("auto_prepend_file") || a.contains("allow_url_include")),
        "npm" | "pnpm" | "yarn" => seen.any(|a| a.starts_with("--script-shell")),
        "cargo" => {
            seen.any(|a| a.contains("rustc-wrapper") || a.contains(".runner=") || a.contains(".linker="))
        }
        "pip" | "pip3" => {
            seen.any(|a| a.starts_with("--index-url=http://") || a.starts_with("--trusted-host"))
                || shell_after(seen, &["--trusted-host"])
        }
        "split" => seen.long("filter", 3),
        "zsh" => seen.any(|a| a == "zmodload zsh/net/tcp"),
        "hg" => seen
            .any(|a| a.contains("alias.") && a.contains('!') || a.contains("hooks.") || a.contains("ui.ssh")),
        "svn" => seen
            .any(|a| a.contains("config:tunnels") || a.contains("--editor-cmd") || a.contains("--diff-cmd")),
        "cpio" => seen.any(|a| a.starts_with("--rsh-command")),
        "dvips" => seen.short('R'),
        "latex" | "pdflatex" | "xelatex" | "lualatex" => {
            seen.any(|a| a.contains("shell-escape") || a.contains("write18"))
        }
        "ip" => seen.has("netns") && seen.has("exec"),
        "wget" => seen.any(|a| a.starts_with("--use-askpass")),
        "ltrace" | "strace" => seen.short('p'),
        "logrotate" => true,
        "run-parts" | "start-stop-daemon" => true,
        "enable" => seen.short('f'),
        _ => false,
    };
    if runs {
        walker.hit("eval.option", None);
    }
    if seen.name == "git" && git_config_runs(seen) {
        walker.hit("eval.option", None);
    }
}

fn after<'a>(seen: &'a Seen<'_>, options: &[&str]) -> Option<&'a str> {
    seen.arguments().windows(2).find(|two| options.contains(&two[0].text())).map(|two| two[1].text())
}

/// Whether an option's value is more than the plain name of ssh.
fn shell_after(seen: &Seen<'_>, options: &[&str]) -> bool {
    after(seen, options).is_some_and(|value| {
        let first = value.split(' ').next().unwrap_or("");
        first.rsplit('/').next() != Some("ssh") || value.contains("ProxyCommand")
    })
}

/// Settings of git whose value is a command.
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
    let settings = [
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.askpass",
        "core.fsmonitor",
        "core.hookspath",
        "core.gitproxy",
        "diff.external",
        "credential.helper",
        "gpg.program",
        "sequence.editor",
        "web.browser",
        "uploadpack.packobjectshook",
        "core.alternaterefscommand",
        "init.templatedir",
        "http.proxy.command",
        "protocol.ext.allow",
        "interactive.difffilter",
        "browser.cmd",
    ];
    let shaped = name.starts_with("pager.")
        || (name.starts_with("filter.")
            && (name.ends_with(".clean") || name.ends_with(".smudge") || name.ends_with(".process")))
        || (name.starts_with("diff.") && (name.ends_with(".command") || name.ends_with(".textconv")))
        || name.starts_with("difftool.") && name.ends_with(".cmd")
        || name.starts_with("mergetool.") && name.ends_with(".cmd")
        || name.starts_with("merge.") && name.ends_with(".driver")
        || name.starts_with("remote.") && (name.ends_with("pack") || name.ends_with(".vcs"))
        || name.starts_with("gpg.") && name.ends_with(".program")
        || name.starts_with("browser.")
        || name.starts_with("man.") && name.ends_with(".cmd")
        || name.starts_with("submodule.") && name.ends_with(".update") && value.starts_with('!');
    let alias = name.starts_with("alias.") && value.trim_start().starts_with('!');
    alias || ((settings.contains(&name.as_str()) || shaped) && !harmless && value != "never")
}

fn git(seen: &Seen<'_>) -> bool {
    let arguments = seen.arguments();
    let set = |text: &str| text.split_once('=').is_some_and(|(name, value)| runs_setting(name, value));
    arguments.windows(2).any(|two| matches!(two[0].text(), "-c" | "--config") && set(two[1].text()))
        || seen.any(|a| {
            a.starts_with("--config-env")
                || a.strip_prefix("-c").is_some_and(&set)
                || a.strip_prefix("--config=").is_some_and(&set)
        })
        || seen.any(|a| {
            a.starts_with("--upload-pack")
                || a.starts_with("--receive-pack")
                || a.starts_with("ext::")
                || a.starts_with("--exec-path=")
                || a.starts_with("--open-files-in-pager")
                || a.starts_with("--extcmd")
        })
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
    let compressors = [
        "gzip", "bzip2", "xz", "zstd", "pigz", "lz4", "lzip", "pbzip2", "pixz", "gzip -9", "zstd -19",
        "zstd -T0", "xz -9", "xz -T0",
    ];
    let program = after(seen, &["-I", "--use-compress-program"])
        .or_else(|| seen.arguments().iter().find_map(|a| a.text().strip_prefix("--use-compress-program=")));
    program.is_some_and(|program| !compressors.contains(&program))
        || seen.any(|a| {
            [
                "--checkpoint-action",
                "--to-command",
                "--info-script",
                "--new-volume-script",
                "--rsh-command",
                "--rmt-command",
            ]
            .iter()
            .any(|option| {
                let given = a.split('=').next().unwrap_or(a);
                given.len() > 6 && option.starts_with(given)
            }) && !a.ends_with("=dot")
                && !a.ends_with("=echo")
                && a != "--checkpoint"
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
    };
    seen.arguments().windows(2).any(|two| {
        matches!(two[0].text(), "-c" | "--cmd" | "-S") && (two[0].text() == "-S" || command(two[1].text()))
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
            "match exec",
        ]
        .iter()
        .any(|name| text.starts_with(name))
    };
    seen.arguments().windows(2).any(|two| two[0].text() == "-o" && option(two[1].text()))
        || seen.any(|a| a.strip_prefix("-o").is_some_and(option))
        || (matches!(seen.name, "scp" | "sftp") && (shell_after(seen, &["-S"]) || shell_after(seen, &["-D"])))
}

/// `e` commands and `s///e` of sed, and `w` to a program's pipe.
fn sed_runs(script: &str) -> bool {
    let script = script.trim_start_matches(|c: char| c.is_ascii_digit() || "$,! ".contains(c));
    if let Some(rest) = script.strip_prefix('e') {
        return rest.starts_with(' ') || rest.is_empty() && script.len() == 1;
    }
    let Some(rest) = script.strip_prefix('s') else { return false };
    let Some(mark) = rest.chars().next().filter(|c| !c.is_alphanumeric() && !c.is_whitespace()) else {
        return false;
    };
    let mut parts = rest[mark.len_utf8()..].split(mark);
    let flags = parts.nth(2).unwrap_or("");
    flags.chars().take_while(|c| c.is_ascii_alphanumeric()).any(|c| c == 'e')
}
