//! Control files: files of a workspace that make other programs run something, outside of any sandbox.
//!
//! A command may write them on its layer; they reach the workspace only if a person approves.

use std::path::Path;

use crate::git_config::harmless_config;

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
}
