//! Control files: files of a workspace by which other programs are made to run something, outside of any sandbox.
//!
//! A command may write them on its layer; they reach the workspace only if a person agrees.

use std::path::Path;

/// Why a changed file is held back; `None` for an ordinary file. `after` is the file's content, if it is a file that is
/// not too large; `repository` says that the file's directory is a git directory without being called `.git`.
pub fn control_reason(
    path: &Path,
    before: Option<&[u8]>,
    after: Option<&[u8]>,
    repository: bool,
) -> Option<&'static str> {
    let names: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_ascii_lowercase()).collect();
    let (name, parents) = names.split_last()?;
    if name == "clawsmith.toml" || parents.iter().any(|parent| parent == ".clawsmith") {
        return Some("it configures Clawsmith");
    }
    if name == ".git" {
        return Some("it tells git where to find its configuration and hooks");
    }
    let in_git = parents.iter().any(|parent| parent == ".git");
    if !in_git && !repository {
        return None;
    }
    let parent = parents.last().map_or("", String::as_str);
    match (parent, name.as_str()) {
        ("hooks", hook) if !hook.ends_with(".sample") => Some("git runs it as a hook"),
        ("info", "attributes") => Some("it makes git run filters and drivers"),
        (_, "commondir") => Some("it tells git where to find its configuration and hooks"),
        (_, "config" | "config.worktree") => match after.and_then(|after| harmless_config(before, after)) {
            Some(true) => None,
            _ => Some("it can make git run programs"),
        },
        _ => None,
    }
}

/// Returns whether a git configuration says nothing new that makes git run a program; `None` where it does not parse.
fn harmless_config(before: Option<&[u8]>, after: &[u8]) -> Option<bool> {
    let known = before.and_then(settings).unwrap_or_default();
    let new = settings(after)?;
    Some(new.iter().all(|setting| known.contains(setting) || is_harmless(setting)))
}

/// A setting: its section, its key and its value.
type Setting = (String, String, String);

fn settings(bytes: &[u8]) -> Option<Vec<Setting>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (mut section, mut found) = (String::new(), Vec::new());
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            let header = header.strip_suffix(']')?;
            section = header.split([' ', '"']).next()?.to_ascii_lowercase();
            continue;
        }
        // A line that goes on below could hide anything.
        if line.ends_with('\\') || section.is_empty() {
            return None;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        found.push((section.clone(), key.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    Some(found)
}

fn is_harmless((section, key, value): &Setting) -> bool {
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
    ];
    let is_address = matches!(key.as_str(), "url" | "pushurl");
    match section.as_str() {
        "core" => CORE.contains(&key.as_str()),
        "user" => matches!(key.as_str(), "name" | "email"),
        "branch" => matches!(key.as_str(), "remote" | "merge" | "rebase" | "description"),
        "remote" | "submodule" if is_address => !value.contains("::") && !value.starts_with('-'),
        "remote" => matches!(key.as_str(), "fetch" | "tagopt" | "prune"),
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
        control_reason(Path::new(path), None, Some(after.as_bytes()), false)
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
            (".git", "gitdir: /tmp/evil"),
            (".GIT/hooks/pre-commit", ""),
            ("clawsmith.toml", ""),
            ("sub/.clawsmith/skills/x", ""),
        ] {
            assert!(reason(path, text).is_some(), "{path}: {text}");
        }
        assert!(control_reason(Path::new("bare/config"), None, Some(b"[core]\nfsmonitor=x"), true).is_some());
        assert!(control_reason(Path::new("bare/hooks/x"), None, Some(b""), true).is_some());
        assert!(
            control_reason(Path::new(".git/config"), None, None, false).is_some(),
            "too large to be read"
        );
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
        assert_eq!(control_reason(Path::new(".git/config"), Some(known), Some(after), false), None);
    }
}
