//! Settings of a git configuration: parses them, and tells which make git run nothing and send nothing elsewhere.
//!
//! The harmless settings are an allow list: a setting that is not on it counts as harmful.

/// Returns whether a git configuration adds nothing that makes git run a program; `None` if it does not
/// parse.
pub(crate) fn harmless_config(before: Option<&[u8]>, after: &[u8]) -> Option<bool> {
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
    use super::harmless_settings;

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
