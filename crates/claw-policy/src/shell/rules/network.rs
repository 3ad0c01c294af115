//! Connections that carry a shell, fetch code or send secrets away.

use super::Seen;
use crate::shell::verdict::Argument;
use crate::shell::walk::{Input, Walker, Written, is_shell, name};

pub(super) fn judge(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    match seen.name {
        "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" => {
            if seen.short('e')
                || seen.short('c')
                || seen.long("exec", 1)
                || seen.long("sh-exec", 2)
                || seen.long("lua-exec", 3)
                || piped_shell(walker, seen)
            {
                walker.hit("reverse-shell.netcat", None);
            } else if piped_secret(walker, seen) || !seen.place.reads.is_empty() {
                walker.hit("exfiltration.secrets", None);
            } else if seen.short('l') {
                walker.hit("exfiltration.upload", None);
            }
        }
        "socat" => {
            let runs = |text: &str| {
                let text = text.to_ascii_lowercase();
                text.contains("exec:") || text.contains("system:") || text.contains("shell:")
            };
            walker.hit(if seen.any(runs) { "reverse-shell.netcat" } else { "exfiltration.upload" }, None);
        }
        "telnet" | "cryptcat" | "pwncat" | "sbd" | "dbd" | "chisel" | "ngrok" | "ligolo" | "msfvenom"
        | "msfconsole" => {
            if seen.name == "telnet" && seen.place.input == Input::Inherited {
                return;
            }
            walker.hit("reverse-shell.netcat", None);
        }
        "openssl"
            if seen.verb() == "s_client"
                && seen.place.input != Input::Inherited
                && !matches!(seen.place.input, Input::Text(_))
                && !is_null(&seen.place.input) =>
        {
            walker.hit("reverse-shell.netcat", None);
        }
        "curl" | "wget" | "http" | "https" | "xh" | "aria2c" => web(walker, seen),
        "scp" | "rsync" | "sftp" | "rclone" | "ftp" | "lftp" | "tftp" if sends_secret(seen) => {
            walker.hit("exfiltration.secrets", None);
        }
        "scp" | "rsync" | "sftp" | "rclone" | "ftp" | "lftp" | "tftp" | "aws" | "gsutil" | "gcloud"
        | "s3cmd" | "az"
            if uploads(seen) =>
        {
            walker.hit("exfiltration.upload", None);
        }
        "dig" | "nslookup" | "host" | "ping"
            if seen
                .arguments()
                .iter()
                .any(|argument| argument.known().is_none() && argument.text().contains('.')) =>
        {
            walker.hit("exfiltration.upload", None);
        }
        "mail" | "sendmail" | "mutt" | "mailx" => walker.hit("exfiltration.upload", None),
        "ssh" if (seen.short('R') || seen.short('D')) => {
            walker.hit("reverse-shell.netcat", None);
        }
        _ => {}
    }
}

/// Returns whether a secret is among the sent files; a key used to log in is not sent.
fn sends_secret(seen: &Seen<'_>) -> bool {
    let arguments = seen.arguments();
    arguments.iter().enumerate().any(|(i, argument)| {
        is_secret(argument.text())
            && (i == 0 || arguments[i - 1].text() != "-i")
            && !argument.text().starts_with("-i")
    })
}

/// Returns whether files of this machine go to another one, or may.
fn uploads(seen: &Seen<'_>) -> bool {
    let remote = |path: &str| {
        let host = path.split('/').next().unwrap_or("");
        path.contains("://") || host.contains(':') || path.contains('\0')
    };
    let to = || seen.operands().last().is_some_and(remote);
    match seen.name {
        "scp" | "rsync" => to(),
        "rclone" => {
            matches!(seen.verb(), "copy" | "copyto" | "sync" | "bisync" | "move" | "moveto" | "rcat") && to()
        }
        "aws" | "gsutil" | "gcloud" => {
            seen.any(|word| matches!(word, "cp" | "mv" | "sync" | "rsync" | "put-object"))
                && (to() || seen.has("put-object"))
        }
        "s3cmd" => matches!(seen.verb(), "put" | "sync" | "mv" | "cp") && to(),
        "az" => seen.any(|word| matches!(word, "upload" | "upload-batch" | "sync")),
        // They send their input, or what a person types.
        _ => !seen.only_asks_for_help(),
    }
}

fn is_null(input: &Input) -> bool {
    matches!(input, Input::File(path) if path.known() == Some("/dev/null"))
}

/// Returns whether the pipe carries a file that holds secrets.
fn piped_secret(walker: &Walker<'_>, seen: &Seen<'_>) -> bool {
    matches!(seen.place.input, Input::Unknown { .. })
        && walker.commands.iter().rev().skip(1).take(4).any(|simple| {
            let program = simple.argv.first().and_then(Argument::known).unwrap_or("");
            matches!(program, "env" | "printenv" | "set" | "export")
                || simple.argv.iter().skip(1).any(|argument| is_secret(argument.text()))
        })
}

/// Returns whether the pipe carries the output of a shell.
fn piped_shell(walker: &Walker<'_>, seen: &Seen<'_>) -> bool {
    matches!(seen.place.input, Input::Unknown { .. })
        && walker.commands.iter().rev().skip(1).take(4).any(|simple| {
            simple.argv.first().and_then(Argument::known).is_some_and(|program| is_shell(&name(program)))
        })
}

fn web(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    if seen.any(|argument| {
        argument.contains("169.254.169.254")
            || argument.contains("metadata.google.internal")
            || argument.contains("100.100.100.200")
            || argument.contains("169.254.170.2")
    }) {
        walker.hit("exfiltration.metadata", None);
    }
    note_fetched(walker, seen);
    let arguments = seen.arguments();
    let takes_file = |option: &str| {
        matches!(
            option,
            "-d" | "--data"
                | "--data-binary"
                | "--data-raw"
                | "--data-urlencode"
                | "--json"
                | "-F"
                | "--form"
                | "-T"
                | "--upload-file"
                | "--post-file"
                | "--body-file"
                | "--post-data"
        )
    };
    let mut sent: Vec<&str> =
        arguments.windows(2).filter(|two| takes_file(two[0].text())).map(|two| two[1].text()).collect();
    for argument in arguments.iter().map(Argument::text) {
        if let Some((option, value)) = argument.split_once('=')
            && takes_file(option)
        {
            sent.push(value);
        }
        for short in ["-T", "-d", "-F"] {
            if let Some(value) = argument.strip_prefix(short).filter(|value| !value.is_empty()) {
                sent.push(value);
            }
        }
    }
    let uploads = |option: &str| {
        matches!(option, "-T" | "--upload-file" | "--post-file" | "--body-file")
            || option.starts_with("--post-file=")
            || option.starts_with("--upload-file=")
            || option.starts_with("--body-file=")
    };
    let file = |value: &&str| value.starts_with('@') || value.contains("=@") || value.contains("=<");
    let uploaded = sent.iter().any(file) || seen.any(uploads);
    let secret = sent.iter().any(|value| is_secret(value)) || piped_secret(walker, seen);
    let runs_secret = sent.iter().any(|value| value.contains('\0')) && names_secret_reader(walker);
    if (uploaded && secret) || runs_secret || (sent.contains(&"@-") && secret) {
        walker.hit("exfiltration.secrets", None);
    } else if uploaded && seen.any(|a| a.contains("://")) && !local(seen) {
        walker.hit("exfiltration.upload", None);
    }
    if seen.arguments().iter().any(|argument| argument.known().is_none() && argument.text().contains("://"))
        && names_secret_reader(walker)
    {
        walker.hit("exfiltration.secrets", None);
    }
    if seen.any(|argument| argument.starts_with("--use-askpass"))
        || seen.name == "wget" && seen.long("execute", 3) && seen.any(|a| a.contains("use_askpass"))
    {
        walker.hit("eval.option", None);
    }
}

fn local(seen: &Seen<'_>) -> bool {
    seen.any(|argument| {
        ["://localhost", "://127.0.0.1", "://[::1]", "://0.0.0.0"].iter().any(|host| argument.contains(host))
    })
}

/// Returns whether a command found just before reads secrets.
fn names_secret_reader(walker: &Walker<'_>) -> bool {
    walker.commands.iter().rev().skip(1).take(6).any(|simple| {
        let program = simple.argv.first().and_then(Argument::known).unwrap_or("");
        matches!(program, "env" | "printenv")
            || simple.argv.iter().skip(1).any(|argument| is_secret(argument.text()))
    })
}

/// Remembers downloaded files, so that running them is noticed.
fn note_fetched(walker: &mut Walker<'_>, seen: &Seen<'_>) {
    let arguments = seen.arguments();
    let output = |text: &str| {
        matches!(text, "-o" | "--output" | "--output-document")
            || (seen.name == "wget"
                && (text == "-O"
                    || (text.starts_with('-') && !text.starts_with("--") && text.ends_with('O'))))
    };
    let clustered = |text: &str| {
        seen.name == "curl" && text.starts_with('-') && !text.starts_with("--") && text.ends_with('o')
    };
    let mut files: Vec<String> = arguments
        .windows(2)
        .filter(|two| output(two[0].text()) || clustered(two[0].text()))
        .map(|two| two[1].text().to_owned())
        .collect();
    for argument in arguments.iter().map(Argument::text) {
        for option in ["--output=", "--output-document=", "-o", "-O"] {
            if let Some(file) = argument.strip_prefix(option).filter(|file| !file.is_empty()) {
                files.push(file.to_owned());
            }
        }
    }
    let remote_name = seen.name == "wget" && files.is_empty()
        || seen.name == "curl" && seen.short('O')
        || seen.long("remote-name", 8);
    if remote_name {
        let names =
            arguments.iter().map(Argument::text).filter(|text| text.contains("://") || text.contains('/'));
        files.extend(
            names
                .filter_map(|url| url.rsplit('/').next())
                .map(|name| name.split('?').next().unwrap_or(name).to_owned()),
        );
    }
    if matches!(seen.name, "wget" | "curl")
        && files.is_empty()
        && (seen.short('i') || seen.long("remote-name-all", 12))
    {
        // No option tells the names; the last component of any argument may be one.
        files.extend(arguments.iter().filter_map(|a| a.text().rsplit('/').next()).map(str::to_owned));
    }
    for file in files.into_iter().filter(|file| !file.is_empty() && file != "-" && !file.contains('\0')) {
        walker.wrote(&Argument::new(file), Written::Fetched);
    }
}

/// Returns whether a file holds keys or passwords.
pub(super) fn is_secret(path: &str) -> bool {
    let path = path.trim_start_matches('@');
    [
        "/etc/shadow",
        "/etc/passwd",
        ".ssh/",
        "id_rsa",
        "id_ed25519",
        ".aws/",
        ".gnupg",
        ".env",
        ".netrc",
        ".kube/config",
        ".docker/config.json",
        "credentials",
        ".pgpass",
        ".npmrc",
        ".git-credentials",
        "/proc/self/environ",
        ".bash_history",
        "secrets",
        ".pem",
        ".config/gcloud",
        "wallet.dat",
        ".password-store",
        "cookies.sqlite",
        "Login Data",
    ]
    .iter()
    .any(|secret| path.contains(secret))
}
