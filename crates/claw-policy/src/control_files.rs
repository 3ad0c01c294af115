//! Control files: files of a workspace that make other programs run something, outside of any sandbox.
//!
//! A command may write them on its layer; they reach the workspace only if a person approves.

use std::path::Path;

/// Further facts about a changed entry.
#[derive(Debug, Clone, Copy, Default)]
pub struct Entry {
    /// It lies in a git directory that is not called `.git`.
    pub repository: bool,
    /// It is a symbolic link.
    pub link: bool,
}

/// Returns why a changed file is held back; `None` for an ordinary file. `after` is the file's content, if it is a file that is
/// not too large.
pub fn control_reason(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    Entry { repository, link }: Entry,
) -> Option<&'static str> {
    let names: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_ascii_lowercase()).collect();
    let (name, parents) = names.split_last()?;
    if name == "clawsmith.toml" || names.iter().any(|name| name == ".clawsmith") {
        return Some("it configures Clawsmith");
    }
    if name == ".git" {
        return Some("it tells git where to find its configuration and hooks");
    }
    if name == "commondir" {
        return Some("it tells git where to find its configuration and hooks");
    }
    let in_git = parents.iter().any(|parent| parent == ".git");
    if !in_git && !repository {
        return None;
    }
    if link {
        return Some("it is a link in a repository, and git follows it");
    }
    let parent = parents.last().map_or("", String::as_str);
    match (parent, name.as_str()) {
        ("hooks", hook) if !hook.ends_with(".sample") => Some("git runs it as a hook"),
        ("info", "attributes") => Some("it makes git run filters and drivers"),
        (_, "config" | "config.worktree") => match after.and_then(|after| harmless_config(before, after)) {
            Some(true) => None,
            _ => Some("it can make git run programs"),
        },
        _ => None,
    }
}

/// Returns whether a git configuration adds nothing that makes git run a program; `None` if it does not
/// parse.
fn harmless_config(before: Option<&[u8]>, after: &[u8]) -> Option<bool> {
    let known = before.and_then(settings).unwrap_or_default();
    let new = settings(after)?;
    Some(new.iter().all(|setting| known.contains(setting) || is_harmless(setting)))
}

/// Returns the settings of a git configuration that make git run nothing and send nothing elsewhere, as a
/// configuration. A line that is not plainly a setting or a section header is left out.
pub fn harmless_settings(config: &[u8]) -> String {
    let text = String::from_utf8_lossy(config);
    let (mut section, mut kept) = (String::new(), String::new());
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            section = header(line).unwrap_or_default().to_owned();
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !section.is_empty())
            && let setting = Setting::new(&section, key, value)
            && is_word(&setting.key)
            && is_plain(&setting.value)
            && is_harmless(&setting)
        {
            let Setting { header, key, value } = setting;
            kept.push_str(&format!("{header}\n\t{key} = {value}\n"));
        }
    }
    kept
}

/// Returns whether a text is the name of a setting.
fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Returns whether git reads a value exactly as written.
fn is_plain(value: &str) -> bool {
    let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let special: &[char] = if bare.is_some() { &['\\', '"'] } else { &['\\', '"', '#', ';'] };
    !bare.unwrap_or(value).contains(|c: char| c.is_control() || special.contains(&c))
}

/// The line, if it is only a section header.
fn header(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    (!name.contains([']', '[', '#', ';', '\\', '='])).then_some(line)
}

/// A setting of a git configuration.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    /// The header of its section.
    header: String,
    key: String,
    value: String,
}

impl Setting {
    fn new(header: &str, key: &str, value: &str) -> Self {
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_owned());
        Self { header: header.to_owned(), key, value }
    }
}

fn settings(bytes: &[u8]) -> Option<Vec<Setting>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if line.starts_with('[') {
            header(line)?.clone_into(&mut section);
            continue;
        }
        // A continued line could hide anything.
        if line.ends_with('\\') || section.is_empty() {
            return None;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        found.push(Setting::new(&section, key, value));
    }
    Some(found)
}

fn is_harmless(Setting { header, key, value }: &Setting) -> bool {
    let section = header.trim_matches(['[', ']']).split([' ', '"']).next().unwrap_or("").to_ascii_lowercase();
    const CORE: &[&str] = &[
        "repositoryformatversion",
        "filemode",
        "bare",
        "logallrefupdates",
        "ignorecase",
        "precomposeunicode",
        "symlinks",
        "autocrlf",
        "eol",
        "sparsecheckout",
        "sparsecheckoutcone",
    ];
    let is_address = matches!(key.as_str(), "url" | "pushurl");
    match section.as_str() {
        "core" => CORE.contains(&key.as_str()),
        "user" => matches!(key.as_str(), "name" | "email"),
        "branch" => matches!(key.as_str(), "remote" | "merge" | "rebase" | "description"),
        "remote" | "submodule" if is_address => !value.contains("::") && !value.starts_with('-'),
        "remote" => {
            matches!(key.as_str(), "fetch" | "push" | "tagopt" | "prune" | "promisor" | "partialclonefilter")
        }
        "extensions" => matches!(key.as_str(), "objectformat" | "partialclone" | "refstorage" | "noop"),
        "submodule" => matches!(key.as_str(), "active" | "branch"),
        "init" => key == "defaultbranch",
        "pull" => matches!(key.as_str(), "rebase" | "ff"),
        "push" => matches!(key.as_str(), "default" | "autosetupremote"),
        "color" | "advice" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(path: &str, after: &str) -> Option<&'static str> {
        control_reason(Path::new(path), None, Some(after.as_bytes()), Entry::default())
    }

    #[test]
    fn holds_back_files_that_make_programs_run() {
        for (path, text) in [
            (".git/hooks/pre-commit", "#!/bin/sh"),
            ("sub/.git/hooks/post-checkout", "#!/bin/sh"),
            (".git/config", "[core]\n\tfsmonitor = touch /tmp/x\n"),
            (".git/config", "[core]\n\tfilemode = true\n[alias]\n\tst = !sh\n"),
            (".git/config", "[include]\n\tpath = ../evil\n"),
            (".git/config", "[remote \"origin\"]\n\turl = ext::sh -c x\n"),
            (".git/config", "[core]\n\tfilemode = true \\\n\tx\n"),
            (".git/config", "filemode = true\n"),
            (".git/config.worktree", "[core]\n\thooksPath = /tmp\n"),
            (".git/modules/x/config", "[core]\n\tsshCommand = x\n"),
            (".git/info/attributes", "* filter=x"),
            (".git/config", "[core] fsmonitor = \"touch /tmp/x\" #]\n"),
            ("sub/commondir", "../c"),
            (".git", "gitdir: /tmp/evil"),
            (".GIT/hooks/pre-commit", ""),
            ("clawsmith.toml", ""),
            ("sub/.clawsmith/skills/x", ""),
        ] {
            assert!(reason(path, text).is_some(), "{path}: {text}");
        }
        let bare = Entry { repository: true, link: false };
        assert!(control_reason(Path::new("bare/config"), None, Some(b"[core]\nfsmonitor=x"), bare).is_some());
        assert!(control_reason(Path::new("bare/hooks/x"), None, Some(b""), bare).is_some());
        let none = Entry::default();
        assert!(control_reason(Path::new(".git/config"), None, None, none).is_some(), "too large to be read");
        let link = Entry { repository: false, link: true };
        for path in [".git/hooks", ".git/modules", ".clawsmith", "sub/.git"] {
            assert!(control_reason(Path::new(path), None, None, link).is_some(), "{path}");
        }
        let known = b"[includeIf \"gitdir:/nowhere/\"]\npath = x\n";
        let after = b"[includeIf \"gitdir:/**\"]\npath = x\n";
        assert!(control_reason(Path::new(".git/config"), Some(known), Some(after), none).is_some());
    }

    #[test]
    fn lets_everyday_files_pass() {
        let config = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
                      [remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
                      [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n[user]\n\tname = A\n";
        for (path, text) in [
            (".git/config", config),
            (".git/index", "x"),
            (".git/objects/ab/cd", "x"),
            (".git/hooks/pre-commit.sample", "#!/bin/sh"),
            (".git/info/exclude", "x"),
            ("config", "[alias]\nx = !sh"),
            ("hooks/pre-commit", "x"),
            (".gitignore", "x"),
        ] {
            assert_eq!(reason(path, text), None, "{path}: {text}");
        }
        let known = b"[alias]\n\tst = !sh\n";
        let after = b"[alias]\n\tst = !sh\n[branch \"x\"]\n\tremote = origin\n";
        assert_eq!(
            control_reason(Path::new(".git/config"), Some(known), Some(after), Entry::default()),
            None
        );
    }

    #[test]
    fn refuses_all_settings_but_harmless_ones() {
        let planted = "[core]\n\tbare = false\n\tfsmonitor = ./x\n\tfilemode = true # y\n[user]\nname = A B\n\
            [include]\n\tpath = x\n[url \"https://evil/\"]\n\tinsteadOf = https://github.com/\n\
            [http]\n\tproxy = http://evil\n[http \"https://github.com/a\"]\n\tsslVerify = false\n\
            [remote \"origin\"] uploadpack = x\n\turl = https://lost/\n\
            [remote \"origin\"]\n\turl = https://github.com/a\n\tproxy = x\n\turl = \"https://b/#1\"\n\turl = ext::sh\n\
            [branch \"main\"]\n\tmerge = refs/heads/\\\n\tremote = origin\n[extensions]\n\tworktreeConfig = true\n";
        let kept = "[core]\n\tbare = false\n[user]\n\tname = A B\n[remote \"origin\"]\n\turl = https://github.com/a\n\
            [remote \"origin\"]\n\turl = \"https://b/#1\"\n[branch \"main\"]\n\tremote = origin\n";
        assert_eq!(harmless_settings(planted.as_bytes()), kept);
        assert_eq!(harmless_settings(b"url = x\n\xff"), "");
    }
}
