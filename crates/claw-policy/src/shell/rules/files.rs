//! Files that matter wherever they are named: start-up files, keys, schedules, devices.

use super::Seen;
use super::destructive::{is_disk, is_system_path};
use crate::shell::verdict::Argument;
use crate::shell::walk::{Place, Walker};

/// Redirections.
pub(crate) fn judge_redirects(walker: &mut Walker<'_>, place: &Place) {
    for path in place.writes.iter().map(Argument::text) {
        if is_disk(path) {
            walker.hit("disk.device", None);
        } else if path.starts_with("/proc/sysrq")
            || path.starts_with("/sys/")
            || path.starts_with("/proc/sys/")
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
    for path in place.writes.iter().chain(&place.reads).map(Argument::text) {
        if is_socket(path) {
            walker.hit("reverse-shell.device", None);
        }
    }
}

/// A file that something writes.
fn judge_written(walker: &mut Walker<'_>, path: &str) {
    let name = path.rsplit('/').next().unwrap_or(path);
    let profiles = [
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
    ];
    let inside = path.contains('/') || profiles[..12].contains(&name);
    if profiles.contains(&name) && inside {
        walker.hit("persistence.profile", None);
    }
    if path.contains(".ssh/")
        || name == "authorized_keys"
        || name == "sudoers"
        || path.contains("/sudoers.d/")
    {
        walker.hit("persistence.keys", None);
    }
    let scheduled = [
        "/.config/systemd/",
        "/.config/autostart/",
        "/LaunchAgents/",
        "/LaunchDaemons/",
        "/etc/cron",
        "/var/spool/cron",
        ".git/hooks/",
        "/etc/rc.local",
        "/etc/profile",
    ];
    if scheduled.iter().any(|part| path.contains(part)) && !path.ends_with(".sample") {
        walker.hit("persistence.schedule", None);
    }
}

/// Files in the arguments of programs that write them.
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
        _ => Vec::new(),
    };
    for path in written {
        judge_written(walker, path);
        if is_disk(path) {
            walker.hit("disk.device", None);
        }
        if matches!(seen.name, "curl" | "wget") && is_system_path(path) {
            walker.hit("destructive.system-file", None);
        }
    }
    if seen.any(is_socket)
        && !matches!(seen.name, "echo" | "printf" | "grep" | "rg" | "git" | "egrep" | "fgrep" | "sed" | "awk")
    {
        walker.hit("reverse-shell.device", None);
    }
}

fn is_socket(path: &str) -> bool {
    path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") || path.starts_with("/inet/")
}
