//! Completion of a person's input in a chat: commands, names and files.

use std::fs;
use std::path::Path;

/// A replacement for the word at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The start of the word, in bytes of the line.
    pub start: usize,
    /// The text for it.
    pub value: String,
    /// A few words about it.
    pub about: String,
    /// True if only a blank follows; a directory continues.
    pub is_whole: bool,
}

/// The names that can be completed.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Commands with their `/`, each with a description.
    pub commands: Vec<(String, String)>,
    /// Tools that the agent has.
    pub tools: Vec<String>,
    /// Modes that a chat can be in.
    pub modes: Vec<String>,
}

impl Names {
    /// Commands by their usage, such as `/resume KEY`, and what each does.
    pub fn of_commands(commands: &[(&str, &str)]) -> Self {
        let word = |usage: &str| usage.split(' ').next().unwrap_or_default().to_owned();
        let commands = commands.iter().map(|(usage, about)| (word(usage), (*about).to_owned())).collect();
        Self { commands, ..Self::default() }
    }
}

/// The most files that are offered.
const MOST_FILES: usize = 200;
/// Directories that are offered only by their names.
const GENERATED: [&str; 3] = [".git", "target", "node_modules"];

/// The completions of the line's word before this position.
pub fn complete(line: &str, at: usize, names: &Names, workspace: &Path) -> Vec<Completion> {
    let Some(before) = line.get(..at) else { return Vec::new() };
    let start = before.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
    // The blank before may have more bytes than one.
    let start = (start..=at).find(|start| before.is_char_boundary(*start)).unwrap_or(at);
    let word = &before[start..];
    let whole = |value: &str, about: &str| Completion {
        start,
        value: value.to_owned(),
        about: about.to_owned(),
        is_whole: true,
    };
    if start == 0 && word.starts_with('/') {
        let fits = names.commands.iter().filter(|(name, _)| name.starts_with(word));
        return fits.map(|(name, about)| whole(name, about)).collect();
    }
    if let Some(path) = word.strip_prefix('@') {
        return files(path, start, "@", workspace);
    }
    let of = |list: &[String]| -> Vec<Completion> {
        list.iter().filter(|name| name.starts_with(word)).map(|name| whole(name, "")).collect()
    };
    match before.split_whitespace().next() {
        Some("/policy") => of(&names.tools),
        Some("/mode") => of(&names.modes),
        Some("/image") => files(word, start, "", workspace),
        _ => Vec::new(),
    }
}

fn files(path: &str, start: usize, before: &str, workspace: &Path) -> Vec<Completion> {
    let (directory, name) = path.rsplit_once('/').map_or(("", path), |(directory, name)| (directory, name));
    let shown = if path.contains('/') { format!("{directory}/") } else { String::new() };
    let listed = fs::read_dir(workspace.join(if directory.is_empty() && path.starts_with('/') {
        "/"
    } else {
        directory
    }));
    let mut found: Vec<Completion> = listed
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().to_str()?.to_owned();
            let is_hidden = file.starts_with('.') || GENERATED.contains(&file.as_str());
            if !file.starts_with(name) || (is_hidden && name.is_empty()) || file.contains(char::is_whitespace)
            {
                return None;
            }
            let is_directory = entry.path().is_dir();
            let value = format!("{before}{shown}{file}{}", if is_directory { "/" } else { "" });
            Some(Completion { start, value, about: String::new(), is_whole: !is_directory })
        })
        .collect();
    found.sort_by(|a, b| a.value.cmp(&b.value));
    found.truncate(MOST_FILES);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_tools_and_files_are_completed() {
        let workspace = tempfile::tempdir().unwrap();
        fs::create_dir_all(workspace.path().join("src/deep")).unwrap();
        fs::create_dir_all(workspace.path().join("target")).unwrap();
        for file in ["src/main.rs", "src/mode.rs", "readme.md", ".hidden"] {
            fs::write(workspace.path().join(file), "").unwrap();
        }
        let names = Names {
            commands: vec![("/model".into(), "who answers".into()), ("/mode".into(), String::new())],
            tools: vec!["read_file".into(), "exec".into()],
            modes: vec!["plan".into()],
        };
        let check = |line: &str, expected: &[&str]| {
            let found = complete(line, line.len(), &names, workspace.path());
            let found: Vec<&str> = found.iter().map(|one| one.value.as_str()).collect();
            assert_eq!(found, expected, "{line}");
        };
        check("/mo", &["/model", "/mode"]);
        check("say /mo", &[]);
        check("/policy re", &["read_file"]);
        check("/mode ", &["plan"]);
        check("look at @", &["@readme.md", "@src/"]);
        check("look at @src/m", &["@src/main.rs", "@src/mode.rs"]);
        check("@.h", &["@.hidden"]);
        check("@tar", &["@target/"]);
        check("naïve\u{a0}@re", &["@readme.md"]);
        check("/image re", &["readme.md"]);
        assert!(complete("é", 1, &names, workspace.path()).is_empty(), "a position within a character");
    }
}
