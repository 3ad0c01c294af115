//! Files that a command writes itself, with their contents in case it runs them.
//!
//! Files are distinguished by their names, without directories.

use super::{Output, Place, Walker, Written, programs};
use crate::shell::verdict::{Argument, UNKNOWN};

/// Number of texts remembered that may be scripts.
const TEXTS: usize = 32;
/// Number of possible contents remembered per file.
const HELD: usize = 8;

impl Walker<'_> {
    /// Remembers the files that redirections of a command wrote.
    pub(super) fn note_written(&mut self, place: &Place, output: &Output) {
        for path in &place.writes {
            let fetched = self.commands.last().is_some_and(programs::fetches);
            let written = match output {
                Some(text) if !place.mixes => Written::Text(text.clone()),
                _ if fetched => Written::Fetched,
                _ => Written::Unknown,
            };
            match (place.appends, place.writes.len()) {
                (false, _) => self.wrote(path, written),
                (true, 1) => self.appended(path, written),
                // It is not recorded which of several is appended to.
                (true, _) => self.wrote(path, Written::Unknown),
            }
        }
    }

    /// Remembers text that was appended to a file. The result is known if it happens once, to a known text.
    fn appended(&mut self, path: &Argument, added: Written) {
        let once =
            self.perhaps + self.parallel + self.inside == 0 && self.calls.is_empty() && !self.skips.any();
        let name = file_name(path.text());
        let known = path.known().is_some() && !path.is_many() && !self.linked.contains(name);
        match (self.files.get_mut(name), added) {
            (Some(Written::Text(text)), Written::Text(added))
                if once && known && !self.ran.contains(name) =>
            {
                text.push_str(&added);
            }
            (_, Written::Fetched) => self.wrote(path, Written::Fetched),
            _ => self.wrote(path, Written::Unknown),
        }
    }

    /// Remembers a written file. If it was written before, or through another path, its content is unknown.
    pub(in crate::shell) fn wrote(&mut self, path: &Argument, written: Written) {
        let name = file_name(path.text()).to_owned();
        if name.contains(UNKNOWN) || path.is_many() {
            self.writes_unknown = true;
            // It may be any of these.
            self.files.values_mut().filter(|known| **known != written).for_each(|known| {
                if *known != Written::Fetched {
                    *known = Written::Unknown;
                }
            });
            if self.defers && !self.ran.is_empty() {
                self.hit("unknown.script", Some("it may be written before it runs"));
                if let Written::Text(script) = &written {
                    self.attempt_script(&script.clone());
                }
            }
            return;
        }
        let is_device = |path: &str| path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
        if path.known().is_some_and(is_device) {
            return;
        }
        if self.ran.contains(&name) {
            // Through a trap or a background command it may run after all of this.
            self.hit("unknown.script", Some("it is run before it is written"));
            if let Written::Text(script) = &written {
                self.attempt_script(&script.clone());
            }
        }
        if matches!(written, Written::Text(_) | Written::Program(_)) {
            let held = self.held.entry(name.clone()).or_default();
            if held.len() < HELD && !held.contains(&written) {
                held.push(written.clone());
            }
        }
        let written = match self.files.get(&name) {
            None => written,
            Some(before) if *before == written => written,
            Some(Written::Fetched) => Written::Fetched,
            Some(_) if written == Written::Fetched => written,
            Some(_) => Written::Unknown,
        };
        if self.linked.contains(&name) {
            // The same file under another name.
            let others = self.linked.iter().filter(|other| **other != name);
            self.files.extend(others.map(|other| (other.clone(), Written::Unknown)));
        }
        self.files.insert(name, written);
    }

    /// The content of a file, if this command may have written it.
    pub(super) fn written(&self, path: &str) -> Option<Written> {
        let name = file_name(path);
        let found = self.files.get(name).cloned();
        // Backups that programs keep of changed files.
        let kept = || {
            let before = ["~", ".bak", ".orig", ".old"].iter().find_map(|ending| name.strip_suffix(ending));
            before.filter(|before| self.files.contains_key(*before)).map(|_| Written::Unknown)
        };
        found.or_else(kept).or(self.writes_unknown.then_some(Written::Unknown))
    }

    /// The content of a file that is run.
    pub(super) fn run_file(&mut self, path: &str) -> Option<Written> {
        let name = file_name(path).to_owned();
        let written = self.written(path);
        if written.is_none() && !self.attempting && self.given.contains(&name) {
            // Some text of this script may be in it.
            let texts = std::mem::take(&mut self.texts);
            for text in &texts {
                self.attempt_script(text);
                // As added by a patch.
                if let Some(added) = text.strip_prefix('+') {
                    self.attempt_script(added);
                }
            }
            self.texts = texts;
        }
        if written == Some(Written::Unknown) && !self.attempting {
            for held in self.held(path) {
                if let Written::Text(script) = held {
                    self.attempt_script(&script);
                }
            }
        }
        self.ran.insert(name);
        written
    }

    /// The possible contents of a file.
    pub(super) fn held(&self, path: &str) -> Vec<Written> {
        self.held.get(file_name(path)).cloned().unwrap_or_default()
    }

    /// Remembers a text that may be a script.
    pub(super) fn keep_text(&mut self, text: &str) {
        if text.contains(' ') && self.texts.len() < TEXTS && !self.texts.iter().any(|kept| kept == text) {
            self.texts.push(text.to_owned());
        }
    }

    /// Notes a program that may change or create files in a way that is not followed.
    pub(super) fn note_reworked(&mut self, name: &str, arguments: &[Argument]) {
        // These write files that are not named here.
        if matches!(name, "tar" | "bsdtar" | "unzip" | "git" | "patch" | "rename" | "gunzip" | "cpio") {
            self.files.values_mut().filter(|file| matches!(file, Written::Text(_))).for_each(|file| {
                *file = Written::Unknown;
            });
        }
        if brings(name, arguments) {
            let operands = arguments.iter().filter(|argument| !argument.text().contains(':'));
            let is_path = |path: &str| !path.starts_with('-');
            let paths: Vec<Argument> =
                operands.filter(|path| path.known().is_some_and(is_path)).cloned().collect();
            paths.iter().for_each(|path| self.wrote(path, Written::Fetched));
        }
        let words =
            arguments.iter().flat_map(|argument| argument.text().split(['=', '/', ' ', ':', '"', '\'']));
        for word in words.filter(|word| !word.is_empty()) {
            // An unpacked file has the name without the ending; a name may be joined to its option.
            let unpacked = word.rsplit_once('.').map_or(word, |(before, _)| before);
            let joined = word.strip_prefix('-').and_then(|word| word.get(1..)).unwrap_or("");
            let numbered = matches!(name, "csplit" | "split").then(|| format!("{word}00"));
            let names = [word, unpacked, joined].map(str::to_owned).into_iter().chain(numbered);
            self.given.extend(names.filter(|name| !name.is_empty()));
        }
        if matches!(name, "patch" | "csplit" | "split" | "git") {
            // Names in their input.
            let words = self.texts.iter().flat_map(|text| text.split([' ', '/', '\n', '\t']));
            let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
            self.given.extend(words);
            self.given.extend(["xx00", "xx01", "xaa", "xab"].map(str::to_owned));
        }
        if matches!(name, "ln" | "link") {
            let operands = arguments.iter().map(Argument::text).filter(|text| !text.starts_with('-'));
            self.linked.extend(operands.map(|path| file_name(path).to_owned()));
        }
        if !reworks(name, arguments) {
            return;
        }
        let letter = |c: char| c.is_ascii_alphanumeric() || "._-+@%~".contains(c);
        let names = arguments.iter().flat_map(|argument| argument.text().split(|c| !letter(c)));
        // `-of`: the name may be joined to its option.
        let names = names.flat_map(|name| [name, name.get(2..).unwrap_or("")]);
        for name in names.filter(|name| !name.is_empty() && !name.starts_with('-')).chain(
            // The first of many.
            matches!(name, "split" | "csplit").then_some(if name == "split" { "xaa" } else { "xx00" }),
        ) {
            if self.files.get(name) != Some(&Written::Fetched) {
                self.files.insert(name.to_owned(), Written::Unknown);
            }
        }
    }
}

/// Returns whether a program copies files from another machine, or from another place that was not examined.
fn brings(name: &str, arguments: &[Argument]) -> bool {
    let has = |verb: &str| arguments.iter().any(|argument| argument.text() == verb);
    let remote = || {
        let is = |text: &str| text.contains(':') && !text.starts_with(['/', '.', '-']);
        arguments.iter().any(|argument| is(argument.text()))
    };
    match name {
        "scp" | "rsync" | "sftp" | "rclone" | "lftp" | "ftp" => remote(),
        "aws" | "gsutil" => remote() && (has("cp") || has("sync") || has("mv")),
        "docker" | "podman" | "kubectl" | "oc" => has("cp") && remote(),
        "gh" => has("download"),
        _ => false,
    }
}

/// Returns whether a program writes files that its arguments name.
fn reworks(name: &str, arguments: &[Argument]) -> bool {
    let any = |test: &dyn Fn(&str) -> bool| arguments.iter().any(|argument| test(argument.text()));
    let option = |short: &str, long: &str| {
        any(&|text| {
            text.starts_with(short) && !text.starts_with("--") || long.len() > 2 && text.starts_with(long)
        })
    };
    let operands = || {
        let is_operand = |text: &str| text == "-" || !text.starts_with('-');
        arguments.iter().filter(|argument| is_operand(argument.text())).count()
    };
    match name {
        "sort" | "iconv" => option("-o", "--output"),
        "uniq" => operands() > 1,
        "sed" | "gsed" => option("-i", "--in-place") || any(&|text| text.contains("w ")),
        "awk" | "gawk" | "mawk" => any(&|text| text.contains('>')),
        "find" => any(&|text| text.starts_with("-fprint") || text.starts_with("-fls")),
        "openssl" => any(&|text| text == "-out"),
        "xxd" => option("-r", ""),
        "perl" | "ruby" | "python" | "python3" | "node" | "php" => {
            any(&|text| text.contains(['(', ' ']) || text.starts_with("-i") || text.starts_with("-pi"))
        }
        // Their own commands name files as well.
        "sqlite3" | "duckdb" | "psql" | "mysql" | "mariadb" => true,
        "split" | "csplit" | "sponge" => true,
        _ => false,
    }
}

/// A path's last component, which identifies files: the start of a relative path is not followed.
fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}
