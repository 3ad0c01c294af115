//! The machine itself: power, services, users, containers, schedules.

use super::Seen;
use crate::shell::walk::Walker;

pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let first = seen.verb();
    match seen.name {
        "shutdown" | "reboot" | "poweroff" | "halt" => walker.hit("system.power", None),
        "init" | "telinit" => {
            if matches!(first, "0" | "6" | "1" | "s" | "S") {
                walker.hit("system.power", None);
            }
        }
        "systemctl" | "loginctl" => match first {
            "poweroff" | "reboot" | "halt" | "suspend" | "hibernate" | "kexec" | "emergency" | "rescue"
            | "hybrid-sleep" | "soft-reboot" => walker.hit("system.power", None),
            "status" | "list-units" | "is-active" | "is-enabled" | "show" | "cat" | "list-timers"
            | "list-unit-files" | "" | "list-sessions" | "is-failed" => {}
            "enable" | "link" | "edit" => walker.hit("persistence.schedule", None),
            _ => walker.hit("system.services", None),
        },
        "service" if !seen.has("status") && seen.arguments().len() > 1 => {
            walker.hit("system.services", None);
        }
        "launchctl" | "update-rc.d" | "chkconfig" | "rc-update" | "at" | "batch" | "atq"
            if seen.name != "atq" && !seen.short('l') =>
        {
            walker.hit("persistence.schedule", None);
        }
        "crontab" if !(seen.short('l') && seen.arguments().len() <= 3) => {
            walker.hit("persistence.schedule", None);
        }
        "insmod" | "rmmod" | "modprobe" | "kexec" | "depmod" => walker.hit("system.services", None),
        "sysctl" if (seen.short('w') || seen.any(|argument| argument.contains('=')) || seen.short('p')) => {
            walker.hit("system.services", None);
        }
        "kill" | "killall" | "pkill" | "skill" | "killall5" => kill(walker, seen),
        "useradd" | "userdel" | "usermod" | "groupadd" | "groupdel" | "groupmod" | "passwd" | "chpasswd"
        | "adduser" | "deluser" | "visudo" | "vipw" | "gpasswd" | "chsh" | "chfn" | "newusers" | "dscl" => {
            walker.hit("system.accounts", None);
        }
        "iptables" | "ip6tables" | "nft" | "ufw" | "firewall-cmd" | "pfctl" | "ebtables"
        | "iptables-restore"
            if !lists_firewall(seen, first) =>
        {
            walker.hit("system.firewall", None);
        }
        "ip" | "ifconfig" | "route" | "ifdown" | "nmcli" | "tc"
            if (seen.any(|argument| {
                matches!(argument, "down" | "del" | "flush" | "add" | "delete" | "replace" | "disconnect")
            }) || seen.name == "ifdown") =>
        {
            walker.hit("system.firewall", None);
        }
        "hostnamectl" | "timedatectl" | "localectl" if first.starts_with("set") => {
            walker.hit("system.services", None);
        }
        "sudo" | "doas" | "su" | "pkexec" | "runuser" | "sudoedit" | "gosu" | "su-exec" | "run0"
        | "newgrp" | "sg" => {
            let asks_only = matches!(seen.name, "sudo")
                && (seen.long("version", 3) || seen.short('V') || seen.long("help", 2));
            if !asks_only {
                walker.hit("privilege.become", None);
            }
        }
        "setcap" | "capsh" | "setpriv" => walker.hit("privilege.setuid", None),
        "unshare" | "nsenter" | "chroot" | "pivot_root" | "switch_root" | "mount" | "umount" | "bwrap"
        | "systemd-nspawn" | "machinectl" | "fusermount" => {
            let lists = seen.name == "mount" && (seen.arguments().is_empty() || seen.short('l'));
            if !lists {
                walker.hit("container.namespace", None);
            }
        }
        "docker" | "podman" | "nerdctl" | "ctr" | "runc" | "lxc" => container(walker, seen),
        "kubectl" | "oc" if asks_for_host(seen) => walker.hit("container.escape", None),
        _ => {}
    }
    if names_way_out(seen) && !mentions_only(seen) {
        walker.hit("container.escape", None);
    }
}

/// Returns whether the rules of a firewall are only shown.
fn lists_firewall(seen: &Seen<'_>, first: &str) -> bool {
    seen.short('L') || seen.short('S') || matches!(first, "status" | "list") || seen.long("list-all", 5)
}

/// Returns whether a command of a cluster asks for parts of its machine.
fn asks_for_host(seen: &Seen<'_>) -> bool {
    let line = seen.arguments().iter().map(|a| a.text()).collect::<Vec<_>>().join(" ");
    ["hostPID", "privileged", "hostPath", "hostNetwork"].iter().any(|word| line.contains(word))
}

/// Returns whether an argument names a file by which a container is left.
fn names_way_out(seen: &Seen<'_>) -> bool {
    const WAYS: [&str; 4] = ["/proc/1/root", "docker.sock", "release_agent", "/proc/sys/kernel/core_pattern"];
    seen.any(|argument| WAYS.iter().any(|way| argument.contains(way)))
}

/// Returns whether a program only prints or searches for its arguments.
fn mentions_only(seen: &Seen<'_>) -> bool {
    matches!(seen.name, "echo" | "printf" | "grep" | "rg" | "egrep" | "fgrep" | "git" | "ag" | "ack")
}

fn kill(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let mut targets = seen.arguments().iter().map(|argument| argument.text());
    let everything = match seen.name {
        "killall5" => true,
        "kill" => {
            // The first argument with a dash is the signal; a later -1 means every process.
            let all: Vec<&str> = targets.collect();
            all.iter().skip(1).any(|target| matches!(*target, "-1" | "1")) || all == ["1"]
        }
        _ => targets.any(|target| {
            matches!(
                target,
                "-u" | "-U" | "--uid" | "--euid" | "." | ".*" | "" | "init" | "systemd" | "sshd" | "-1"
            )
        }),
    };
    if everything {
        walker.hit("system.kill-all", None);
    }
}

fn container(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let arguments: Vec<&str> = seen.arguments().iter().map(|argument| argument.text()).collect();
    let host = |value: &str| {
        let from = value.split(':').next().unwrap_or(value);
        let from = from.strip_prefix("type=bind,").unwrap_or(from);
        matches!(
            from,
            "/" | "/etc"
                | "/root"
                | "/home"
                | "/var"
                | "/proc"
                | "/sys"
                | "/dev"
                | "/boot"
                | "/var/run"
                | "/run"
                | "/usr"
                | "/var/lib"
        ) || from.contains("docker.sock")
            || value.contains("source=/,")
            || value.contains("src=/,")
            || value.contains("containerd.sock")
    };
    let pair = |option: &str, value: &str| match option {
        "-v" | "--volume" | "--mount" => host(value),
        "--pid" | "--network" | "--net" | "--ipc" | "--uts" | "--userns" | "--cgroupns" => value == "host",
        "--cap-add" => matches!(
            value.to_ascii_uppercase().trim_start_matches("CAP_"),
            "ALL" | "SYS_ADMIN" | "SYS_PTRACE" | "SYS_MODULE" | "DAC_READ_SEARCH" | "SYS_RAWIO" | "NET_ADMIN"
        ),
        "--security-opt" => value.contains("unconfined") || value.contains("disable"),
        "--device" => true,
        _ => false,
    };
    let bad = arguments.iter().any(|argument| {
        *argument == "--privileged"
            || *argument == "--privileged=true"
            || argument.split_once('=').is_some_and(|(option, value)| pair(option, value))
            || argument.strip_prefix("-v").is_some_and(|value| !value.is_empty() && host(value))
    }) || arguments.windows(2).any(|two| pair(two[0], two[1]));
    if bad {
        walker.hit("container.escape", None);
    }
}
