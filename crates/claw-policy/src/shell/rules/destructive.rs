//! Deletion, overwriting, disks.

use super::Seen;
use crate::shell::verdict::Argument;
use crate::shell::walk::{Input, Walker};

pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    match seen.name {
        "rm" | "grm" | "unlink" => remove(walker, seen),
        "find" | "gfind" | "fd" | "fdfind" => find(walker, seen),
        "shred" | "wipe" | "srm" | "scrub" | "nwipe" => walker.hit("destructive.overwrite", None),
        "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" => permissions(walker, seen),
        "del" | "erase" | "rmdir" | "rd" | "format" | "Remove-Item" | "cmd" | "powershell" | "pwsh" => {
            windows(walker, seen);
        }
        "git" => git(walker, seen),
        "rsync" if seen.long("delete", 3) && seen.operands().any(is_wide) => {
            walker.hit("destructive.rm-root", None);
        }
        "mv" | "cp" | "ln" | "install" | "tee" | "touch" => overwrites(walker, seen),
        "docker" | "podman" => {
            let prune = seen.has("prune")
                && (seen.has("system") || seen.has("volume"))
                && (seen.short('f') || seen.long("force", 1));
            if prune || (seen.has("volume") && seen.has("rm") && seen.short('f')) {
                walker.hit("destructive.history", None);
            }
        }
        "kubectl" | "oc"
            if seen.has("delete")
                && (seen.long("all", 3) || seen.any(|a| matches!(a, "namespace" | "ns" | "namespaces"))) =>
        {
            walker.hit("destructive.history", None);
        }
        "terraform" | "tofu" | "pulumi"
            if seen.has("destroy")
                && seen.any(|a| a.contains("auto-approve") || a == "--yes" || a == "-y") =>
        {
            walker.hit("destructive.history", None);
        }
        "psql" | "mysql" | "sqlite3" | "mariadb" | "redis-cli" | "mongo" | "mongosh" => {
            database(walker, seen);
        }
        "dropdb" => walker.hit("destructive.history", None),
        "crontab" if seen.short('r') => {
            walker.hit("persistence.schedule", None);
        }
        "dd" if !seen.only_asks_for_help() => walker.hit("disk.raw-copy", None),
        "mkswap" | "wipefs" | "fdisk" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "parted"
        | "blkdiscard" | "hdparm" | "badblocks" | "cryptsetup" | "pvcreate" | "vgremove" | "lvremove"
        | "pvremove" | "zpool" | "mdadm" | "diskutil" | "newfs" | "swapoff" | "tune2fs" | "debugfs"
        | "losetup" | "dmsetup" | "fsck" => {
            let only_lists =
                seen.short('l') || seen.long("list", 2) || seen.verb() == "list" || seen.long("help", 2);
            if !only_lists {
                walker.hit("disk.format", None);
            }
        }
        name if (name == "mkfs" || name.starts_with("mkfs.") || name.starts_with("mke2fs"))
            && !seen.only_asks_for_help() =>
        {
            walker.hit("disk.format", None);
        }
        _ => {}
    }
}

fn remove(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let recursive = seen.short('r') || seen.short('R') || seen.long("recursive", 1);
    let force = seen.short('f') || seen.long("force", 1);
    if recursive && force {
        walker.hit("destructive.rm-recursive", None);
    } else if seen.long("no-preserve-root", 3) {
        walker.hit("destructive.rm-root", None);
    }
    // `~` and `$X` may be anything, `/` included.
    let home = |path: &str| path.trim_end_matches('/').trim_end_matches("/*") == "\0";
    if recursive && seen.operands().any(home) {
        walker.hit("destructive.rm-root", None);
    }
    if seen.operands().any(is_wide) && (recursive || force || seen.operands().any(|path| path.ends_with('*')))
    {
        walker.hit("destructive.rm-root", None);
    } else if recursive && !force {
        walker.hit("destructive.rm-tree", None);
    }
    let dashes = seen.arguments().iter().position(|argument| argument.known() == Some("--"));
    let before = &seen.arguments()[..dashes.unwrap_or(seen.arguments().len())];
    // Options contain no slash.
    let option = |argument: &Argument| argument.may_be_option() && !argument.text().contains('/');
    let matches = |argument: &Argument| argument.is_many() && argument.text().starts_with(['?', '[']);
    let unclear =
        |argument: &Argument| option(argument) || matches(argument) || argument.is_unclear_option("");
    if before.iter().any(unclear) && !(dashes.is_none() && is_alone(before)) {
        walker.hit("unknown.argument", None);
    }
    // A pattern in an option may match a file named like one.
    if before.iter().any(|argument| argument.is_many() && argument.text().starts_with('-')) {
        walker.hit("unknown.argument", None);
    }
}

/// Returns whether there is exactly one argument besides options, and it becomes one word: if it turned out
/// to be an option too, nothing would be deleted.
fn is_alone(arguments: &[Argument]) -> bool {
    let is_option =
        |argument: &&Argument| argument.known().is_some_and(|text| text.len() > 1 && text.starts_with('-'));
    let mut others = arguments.iter().filter(|argument| !is_option(argument));
    matches!((others.next(), others.next()), (Some(one), None) if !one.is_many())
}

fn find(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let deletes = seen.has("-delete");
    let deletes_by =
        |argument: &str| matches!(argument, "-exec" | "-execdir" | "-x" | "-X" | "--exec" | "--exec-batch");
    let runs_rm = seen.arguments().windows(2).any(|two| {
        deletes_by(two[0].text()) && matches!(two[1].text().rsplit('/').next(), Some("rm" | "shred"))
    });
    if !deletes && !runs_rm {
        return;
    }
    let places: Vec<&str> = seen
        .arguments()
        .iter()
        .map(Argument::text)
        .take_while(|text| !text.starts_with(['-', '(', '!']))
        .collect();
    let tests = [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-regex",
        "-iregex",
        "-mtime",
        "-mmin",
        "-ctime",
        "-atime",
        "-newer",
        "-size",
        "-empty",
        "-e",
        "--extension",
        "-wholename",
    ];
    let tested = seen.any(|argument| tests.contains(&argument));
    if places.iter().any(|place| is_wide(place)) || (!tested && (deletes || runs_rm)) {
        walker.hit("destructive.find-delete", None);
    }
    if seen.arguments().windows(2).any(|two| deletes_by(two[0].text()) && two[1].may_be_option()) {
        walker.hit("unknown.command", None);
    }
}

fn permissions(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    if seen.name == "chattr" && seen.any(|argument| argument.contains('i')) {
        walker.hit("destructive.permissions", None);
    }
    let recursive = seen.short('R') || seen.long("recursive", 3);
    let wide = seen.operands().skip(1).any(|path| is_wide(path) || is_system_path(path));
    let open = seen.name == "chmod"
        && seen.operands().next().is_some_and(|mode| {
            matches!(mode.trim_start_matches('0'), "777" | "666" | "" | "000")
                || mode == "a+rwx"
                || mode == "ugo+rwx"
                || mode.contains("o+w")
                || mode.contains("a+w")
        });
    if wide || (recursive && open) {
        walker.hit("destructive.permissions", None);
    }
    if seen.name == "chmod" {
        let mode = seen
            .arguments()
            .iter()
            .map(Argument::text)
            .find(|text| !text.starts_with("--") && (!text.starts_with('-') || text.contains('s')));
        let special = mode.is_some_and(|mode| {
            let octal = mode.bytes().all(|byte| byte.is_ascii_digit());
            (octal && mode.len() == 4 && matches!(mode.as_bytes()[0], b'2' | b'4' | b'6' | b'7'))
                || (octal && mode.len() == 5 && matches!(mode.as_bytes()[1], b'2' | b'4' | b'6' | b'7'))
                || (!octal
                    && mode.split_once(['+', '=']).is_some_and(|(who, what)| {
                        what.contains('s') && who.bytes().all(|b| b"ugoa".contains(&b))
                    }))
        });
        if special {
            walker.hit("privilege.setuid", None);
        }
    }
}

/// `del /f`, `rmdir /s`, with either slash, in either case.
fn windows(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let flag = |flags: &[&str]| seen.any(|argument| flags.contains(&argument.to_ascii_lowercase().as_str()));
    let line = seen.arguments().iter().map(|a| a.text().to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
    let bad = match seen.name {
        "del" | "erase" => flag(&["/f", "/s", "/q", "//f", "//s", "//q"]),
        "rmdir" | "rd" => flag(&["/s", "/q", "//s", "//q"]),
        "format" => seen.any(|argument| argument.ends_with(':')),
        "Remove-Item" => line.contains("-recurse") || line.contains("-force"),
        _ => [
            "del /f",
            "del /s",
            "del /q",
            "rmdir /s",
            "rd /s",
            "remove-item",
            "format c:",
            "diskpart",
            "-recurse",
            "-encodedcommand",
            "-enc ",
            "downloadstring",
            "iex",
            "invoke-expression",
        ]
        .iter()
        .any(|bad| line.contains(bad)),
    };
    if bad {
        walker.hit("destructive.windows", None);
    }
}

fn git(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let verb = git_verb(seen);
    let bad = match verb {
        "clean" => {
            (seen.short('f') || seen.long("force", 1))
                && (seen.short('d') || seen.short('x') || seen.short('X'))
                && !(seen.short('n') || seen.long("dry-run", 1))
        }
        "push" => {
            (seen.short('f') || seen.options().any(|text| text == "--force") || seen.long("mirror", 3))
                && !seen.long("force-with-lease", 7)
        }
        "filter-branch" | "filter-repo" => true,
        "reflog" => {
            seen.has("expire")
                && seen.any(|argument| argument.contains("--expire") && argument.contains("now"))
        }
        "update-ref" => seen.short('d'),
        "rm" => seen.short('r') && (seen.short('f') || seen.long("force", 1)),
        _ => false,
    };
    if bad {
        walker.hit("destructive.history", None);
    }
    if discards(verb, seen) {
        walker.hit("destructive.uncommitted", None);
    }
}

/// Returns whether a git command discards uncommitted changes, which cannot be restored.
fn discards(verb: &str, seen: &Seen<'_>) -> bool {
    let force = seen.short('f') || seen.long("force", 1);
    match verb {
        "reset" => seen.long("hard", 2) || seen.long("merge", 2),
        "checkout" => {
            let paths =
                seen.arguments().iter().skip_while(|argument| argument.text() != "--").skip(1).count();
            force || paths > 0 || seen.any(|argument| matches!(argument, "." | "./" | ":/" | "*"))
        }
        "switch" => force || seen.long("discard-changes", 2),
        "restore" => {
            let staged = seen.short('S') || seen.long("staged", 2);
            !staged || seen.short('W') || seen.long("worktree", 1)
        }
        "stash" => seen.has("drop") || seen.has("clear"),
        "clean" => force && !(seen.short('n') || seen.long("dry-run", 1)),
        "worktree" => seen.has("remove") && force,
        "rm" => force,
        _ => false,
    }
}

/// The verb of a git command, past the options before it.
pub(super) fn git_verb<'a>(seen: &'a Seen<'_>) -> &'a str {
    let mut arguments = seen.arguments().iter().map(Argument::text);
    while let Some(argument) = arguments.next() {
        match argument {
            "-c" | "-C" | "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" | "--config-env" => {
                arguments.next();
            }
            text if text.starts_with('-') => {}
            text => return text,
        }
    }
    ""
}

fn database(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let line = seen.arguments().iter().map(|a| a.text().to_ascii_lowercase()).collect::<Vec<_>>().join(" ");
    let typed = match &seen.place.input {
        Input::Text(text) => text.to_ascii_lowercase(),
        _ => String::new(),
    };
    let line = format!("{line} {typed}").split_whitespace().collect::<Vec<_>>().join(" ");
    if [
        "drop database",
        "drop table",
        "drop schema",
        "truncate table",
        "flushall",
        "flushdb",
        "dropdatabase",
        "delete from users;",
    ]
    .iter()
    .any(|bad| line.contains(bad))
    {
        walker.hit("destructive.history", None);
    }
    if line.contains("copy ") && line.contains(" program ")
        || line.contains("\\!")
        || line.contains(".shell")
        || line.contains(".system")
        || line.contains("sys_exec")
        || line.contains("into outfile")
        || line.contains("load_extension")
        || line.contains("os.execute")
        || line.contains("io.popen")
        || typed.lines().any(|typed| typed.trim_start().starts_with("system "))
    {
        walker.hit("eval.option", None);
    }
}

fn overwrites(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    if seen.name == "mv" && (seen.operands().any(is_wide) || seen.operands().last() == Some("/dev/null")) {
        walker.hit("destructive.rm-root", None);
    }
    if seen.operands().any(is_disk) {
        walker.hit("disk.device", None);
    }
}

/// Returns whether a path is a root, a home, a system directory or everything in one.
pub(super) fn is_wide(path: &str) -> bool {
    let path = path.trim_end_matches("/.").trim_end_matches("/*").trim_end_matches("/..");
    let path = if path.len() > 1 { path.trim_end_matches('/') } else { path };
    let system = [
        "",
        "/",
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/lib64",
        "/opt",
        "/proc",
        "/root",
        "/sbin",
        "/srv",
        "/sys",
        "/usr",
        "/var",
        "/usr/bin",
        "/usr/lib",
        "/usr/local",
        "/var/lib",
        "/var/log",
        "/Users",
        "/System",
        "/Library",
        "/mnt",
        "/media",
        "C:",
        "C:\\",
        "c:",
        "c:\\",
        "..",
        ".*",
    ];
    system.contains(&path)
}

/// Returns whether a file belongs to the system.
pub(super) fn is_system_path(path: &str) -> bool {
    [
        "/etc/",
        "/boot/",
        "/bin/",
        "/sbin/",
        "/usr/",
        "/lib/",
        "/lib64/",
        "/sys/",
        "/proc/sys",
        "/proc/sysrq",
        "/var/spool/cron",
        "/var/lib/dpkg",
        "/dev/mem",
        "/dev/kmem",
        "/dev/port",
    ]
    .iter()
    .any(|prefix| path.starts_with(prefix))
        && !path.starts_with("/usr/local/share/")
        || path.starts_with('/') && path.contains("/.ssh/")
}

pub(super) fn is_disk(path: &str) -> bool {
    [
        "/dev/sd",
        "/dev/hd",
        "/dev/vd",
        "/dev/xvd",
        "/dev/nvme",
        "/dev/mmcblk",
        "/dev/disk",
        "/dev/mapper",
        "/dev/md",
        "/dev/loop",
        "/dev/dm-",
        "/dev/rdisk",
    ]
    .iter()
    .any(|prefix| path.starts_with(prefix))
}
