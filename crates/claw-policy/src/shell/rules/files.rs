//! Files that matter wherever they are: start-up files, keys, schedules, devices.

use super::Seen;
use super::destructive::{is_disk, is_system_path, is_wide};
use crate::shell::verdict::Argument;
use crate::shell::walk::{Place, Walker};

/// Judges redirections.
pub(crate) fn judge_redirects(walker: &mut Walker<'_>, place: &Place) {
    for path in place.writes.iter().map(Argument::text) {
        judge_file(walker, path);
    }
    for path in place.writes.iter().chain(&place.reads).map(Argument::text) {
        if is_socket(path) {
            walker.hit("reverse-shell.device", None);
        }
    }
}

/// Judges a written file, wherever it is.
fn judge_file(walker: &mut Walker<'_>, path: &str) {
    if is_disk(path) {
        walker.hit("disk.device", None);
    } else if path.starts_with("/proc/sysrq")
        || path.starts_with("/sys/")
        || path.starts_with("/proc/sys/")
        || (path.starts_with("/proc/") && path.ends_with("/mem"))
    {
        walker.hit("system.services", None);
    } else if is_system_path(path) {
        walker.hit(
            if path.contains("cron") { "persistence.schedule" } else { "destructive.system-file" },
            None,
        );
    }
    judge_written(walker, path);
}

/// Settings of shells and programs in a home directory; the first twelve count in every directory.
const PROFILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".login",
    ".cshrc",
    ".kshrc",
    ".xinitrc",
    ".xprofile",
    ".xsessionrc",
    ".inputrc",
    ".vimrc",
    ".gitconfig",
    ".pam_environment",
    "config.fish",
    ".netrc",
    ".pythonrc",
    ".curlrc",
    ".wgetrc",
    ".npmrc",
    ".pypirc",
    ".tmux.conf",
    ".screenrc",
    ".emacs",
    ".gdbinit",
    ".lldbinit",
    ".lesskey",
    ".lessfilter",
    ".psqlrc",
    ".sqliterc",
    ".Rprofile",
    ".irbrc",
    ".pryrc",
    ".perldb",
    ".xsession",
    ".Xclients",
    ".bash_completion",
    ".direnvrc",
    "direnvrc",
    "pip.conf",
];

/// Programs and settings below a home directory, known only at run time, that everything there uses.
const BELOW_HOME: &[&str] = &[
    "/bin/",
    "/.local/bin/",
    "/.config/fish/",
    "/.config/git/",
    "/.config/nvim/",
    "/.config/environment.d/",
    "/.local/share/applications/",
    "/.vim/",
    "/.emacs.d/",
    "/.cargo/",
    "/.docker/",
    "/.kube/",
    "/.aws/",
    "/.gnupg/",
];

/// Parts of paths whose files run at a time or an event.
const SCHEDULED: &[&str] = &[
    "/.config/systemd/",
    "/.config/autostart/",
    "/LaunchAgents/",
    "/LaunchDaemons/",
    "/etc/cron",
    "/var/spool/cron",
    ".git/hooks/",
    ".git/config",
    ".git/info/attributes",
    "/etc/rc.local",
    "/etc/profile",
];

/// Judges a written file, if it is one that other programs read.
fn judge_written(walker: &mut Walker<'_>, path: &str) {
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some(rest) = path.strip_prefix('\0')
        && BELOW_HOME.iter().any(|place| rest.starts_with(place))
    {
        walker.hit("persistence.profile", None);
    }
    let inside = path.contains('/') || PROFILES[..12].contains(&name);
    if PROFILES.contains(&name) && inside {
        walker.hit("persistence.profile", None);
    }
    if path.contains(".ssh/")
        || name == "authorized_keys"
        || name == "sudoers"
        || path.contains("/sudoers.d/")
    {
        walker.hit("persistence.keys", None);
    }
    if SCHEDULED.iter().any(|part| path.contains(part)) && !path.ends_with(".sample") {
        walker.hit("persistence.schedule", None);
    }
}

/// Judges files in the arguments of programs that write them.
pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let written: Vec<&str> = match seen.name {
        "tee" | "touch" | "truncate" => seen.operands().collect(),
        "sed" if seen.short('i') || seen.long("in-place", 2) => seen.operands().collect(),
        "cp" | "mv" | "ln" | "install" | "rsync" | "scp" => seen.operands().last().into_iter().collect(),
        "curl" | "wget" => {
            let arguments = seen.arguments();
            let takes = |text: &str| matches!(text, "-o" | "--output" | "-O" | "--output-document" | "-P");
            arguments.windows(2).filter(|two| takes(two[0].text())).map(|two| two[1].text()).collect()
        }
        "find" | "gfind" => after(seen, &["-fprint", "-fprint0", "-fprintf", "-fls"]),
        "sort" | "gsort" => after(seen, &["-o", "--output"]),
        "tar" | "bsdtar" | "gtar" => after(seen, &["-C", "--directory", "-f"]),
        "unzip" | "7z" | "bsdunzip" => after(seen, &["-d"]),
        "git" => after(seen, &["--output", "-o"]),
        _ => Vec::new(),
    };
    let unpacks = matches!(
        seen.name,
        "find" | "gfind" | "sort" | "gsort" | "tar" | "bsdtar" | "gtar" | "unzip" | "7z" | "git"
    );
    for script in super::sed::scripts(seen).iter().filter(|_| matches!(seen.name, "sed" | "gsed")) {
        script.writes.iter().for_each(|path| judge_file(walker, path));
    }
    if matches!(seen.name, "awk" | "gawk" | "mawk" | "nawk") {
        for program in seen.arguments().iter().map(Argument::text) {
            // `print > "file"`.
            for (_, rest) in program.match_indices('>').map(|(at, _)| program.split_at(at + 1)) {
                let file = rest
                    .trim_start_matches(['>', ' '])
                    .strip_prefix('"')
                    .and_then(|rest| rest.split('"').next());
                file.into_iter().for_each(|path| judge_file(walker, path));
            }
        }
    }
    for path in written {
        if unpacks
            && (is_system_path(path)
                || (is_wide(path) && path.starts_with('/'))
                || is_system_path(&format!("{path}/")))
            && !(matches!(seen.name, "tar" | "bsdtar" | "gtar")
                && !(seen.short('x') || seen.verb().contains('x') || seen.long("extract", 3)))
        {
            walker.hit("destructive.system-file", None);
        }
        match unpacks {
            // Where a directory is unpacked or searched is not always written.
            true => judge_written(walker, path),
            false => judge_file(walker, path),
        }
        if is_disk(path) {
            walker.hit("disk.device", None);
        }
    }
    if seen.any(is_socket)
        && !matches!(seen.name, "echo" | "printf" | "grep" | "rg" | "git" | "egrep" | "fgrep" | "sed" | "awk")
    {
        walker.hit("reverse-shell.device", None);
    }
}

fn after<'a>(seen: &'a Seen<'_>, options: &[&str]) -> Vec<&'a str> {
    let arguments = seen.arguments();
    arguments.windows(2).filter(|two| options.contains(&two[0].text())).map(|two| two[1].text()).collect()
}

fn is_socket(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") || path.starts_with("/inet/")
}
