//! File and environment put together, checked as a whole.

use std::path::{Component, Path, PathBuf};

use claw_core::AgentId;
use claw_core::did_you_mean::nearest;
use claw_policy::pipeline::{Policy, PolicyError};
use claw_policy::shell::Rules;
use claw_store::StoreLocation;
use serde::Deserialize as _;
use toml::{Table, Value};

use super::check::unknown_provider;
use super::document::Document;
use super::env::{self, Override};
use super::find::{Found, FoundBy, Surroundings, find, of_user};
use super::problem::{Problem, ProblemPlace as At, Problems};
use super::schema::Node;
use super::{Config, StoreUrl, outside_names};
use crate::app::{catalogue, settings};

/// Lists that only restrict; those of the user and of a project are combined.
const ADDED: [&str; 5] = ["deny", "deny_paths", "block", "block_hosts", "values_from_env"];
/// The store's file in the data directory.
const STORE: &str = "clawsmith.db";

/// An effective configuration, and its sources.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// The effective configuration.
    pub config: Config,
    /// The file, if there is one.
    pub found: Option<Found>,
    pub(super) document: Document,
    /// The user's own file, below a project's: it supplies the keys that the project's does not have.
    pub(super) user: Option<Document>,
    pub(super) overrides: Vec<Override>,
}

impl Loaded {
    /// Finds the file, reads it, applies the environment and checks the whole.
    pub fn load(flag: Option<&Path>, around: &Surroundings) -> Result<Self, Problems> {
        Self::read(flag, around).map_err(Problems::without_passwords)
    }

    /// Returns the configuration that would hold if this text were in a named file; nothing is read or
    /// written.
    pub fn proposed(path: &Path, text: String, around: &Surroundings) -> Result<Self, Problems> {
        let found = Found { path: path.to_owned(), by: FoundBy::Flag };
        let document = Document::parse(path, text);
        document
            .and_then(|document| Self::of(Some(found), document, None, around))
            .map_err(Problems::without_passwords)
    }

    fn read(flag: Option<&Path>, around: &Surroundings) -> Result<Self, Problems> {
        let found = find(flag, around);
        let document = match &found {
            Some(found) => Document::read(&found.path)?,
            None => Document::default(),
        };
        let is_project = found.as_ref().is_some_and(|found| found.by == FoundBy::Project);
        let user = of_user(around).filter(|path| is_project && path.is_file());
        let user = user.map(|path| Document::read(&path)).transpose()?;
        Self::of(found, document, user, around)
    }

    fn of(
        found: Option<Found>,
        document: Document,
        user: Option<Document>,
        around: &Surroundings,
    ) -> Result<Self, Problems> {
        let mut loaded = Self { config: Config::default(), found, document, user, overrides: Vec::new() };
        loaded.overrides = env::overrides(around, &loaded.table()).map_err(Problems)?;
        loaded.config = loaded.merged()?;
        loaded.check()?;
        Ok(loaded)
    }

    /// Merges the files: the project's over the user's, key by key.
    fn table(&self) -> Table {
        let mut table = self.user.as_ref().map(|user| user.table.clone()).unwrap_or_default();
        layer(&mut table, &self.document.table);
        table
    }

    /// Returns the file that sets this key, or one below it.
    pub(super) fn file_of(&self, key: &str) -> &Document {
        match &self.user {
            Some(user) if !self.document.says(key) && user.says(key) => user,
            _ => &self.document,
        }
    }

    fn merged(&self) -> Result<Config, Problems> {
        if self.found.is_none() && self.overrides.is_empty() {
            return Ok(Config::default());
        }
        let mut problems = Vec::new();
        let mut table = self.table();
        for set in &self.overrides {
            // Alone first, so that an error is this variable's.
            let mut alone = Table::new();
            put(&mut alone, &set.path, set.value.clone());
            if let Err(error) = Config::deserialize(alone.clone()) {
                problems.push(self.of_variable(set, &reworded(error.message())));
            }
            layer(&mut table, &alone);
        }
        if !problems.is_empty() {
            return Err(Problems(problems));
        }
        Config::deserialize(table).map_err(|error| {
            let place = At::WholeFile { file: self.document.path.clone() };
            Problem { message: reworded(error.message()), place }.into()
        })
    }

    /// Checks what types cannot: readable entries, agent ids, sizes that make sense.
    fn check(&self) -> Result<(), Problems> {
        let mut problems = Vec::new();
        for id in self.config.agents.keys() {
            if let Err(error) = AgentId::new(id) {
                problems.push(self.at(&format!("agents.{id}"), "", error.to_string()));
            }
        }
        problems.extend(self.out_of_bounds());
        if let Some(url) = self.store_url()
            && let Err(error) = url.place()
        {
            problems.push(self.at("store.url", "", error.to_string()));
        }
        problems.extend(self.unknown_providers());
        problems.extend(
            outside_names::wrong(&self.config)
                .into_iter()
                .map(|(key, entry, why)| self.at(&key, &entry, why)),
        );
        problems.extend(self.unmatched_paths());
        problems.extend(self.unread_settings());
        if let Err(PolicyError(bad)) = Policy::compile(&self.config.policy()) {
            problems.extend(bad.iter().map(|bad| self.at(&bad.list, &bad.entry, bad.to_string())));
        }
        match Rules::compile(&self.config.shell) {
            Err(error) => {
                let key = format!("shell.{}", error.place);
                problems.push(self.at(&key, "", format!("`{key}`: {}", error.message)));
            }
            // A problem common to all would be reported again for each.
            Ok(_) => {
                for id in self.config.agents.keys() {
                    let Err(error) = self.config.shell_rules(id) else { continue };
                    let key = format!("agents.{id}.shell.{}", error.place);
                    problems.push(self.at(&key, "", format!("`{key}`: {}", error.message)));
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }

    /// Returns the numbers outside the schema's bounds.
    fn out_of_bounds(&self) -> Vec<Problem> {
        if self.found.is_none() && self.overrides.is_empty() {
            // Nobody set any.
            return Vec::new();
        }
        match serde_json::to_value(&self.config) {
            Ok(config) => {
                let found = Node::root().out_of_bounds("", &config).into_iter();
                found.map(|(key, message)| self.at(&key, "", message)).collect()
            }
            Err(error) => vec![self.at("", "", format!("cannot be checked: {error}"))],
        }
    }

    /// Settings of built-in tools that the tool would not read.
    fn unread_settings(&self) -> Vec<Problem> {
        let of_tool = |(tool, settings): (&String, &_)| {
            let is_known = catalogue().find(tool).is_some();
            let error = settings::check(tool, settings).err().filter(|_| is_known)?;
            let hint = error.advice().map(|hint| format!("; {hint}")).unwrap_or_default();
            let key = format!("settings.{tool}");
            Some(self.at(&key, "", format!("`{key}`: {}{hint}", error.what())))
        };
        self.config.settings.iter().filter_map(of_tool).collect()
    }

    /// Paths that can never be met: they would look as if they closed or granted something.
    fn unmatched_paths(&self) -> Vec<Problem> {
        let files = &self.config.files;
        let of_all =
            [("files.deny", &files.deny), ("files.read", &files.read), ("files.write", &files.write)];
        let of_agents = self.config.agents.iter().flat_map(|(id, agent)| {
            let (deny, read, write) = (&agent.deny_paths, &agent.read_paths, &agent.write_paths);
            let lists = [("deny_paths", deny), ("read_paths", read), ("write_paths", write)];
            lists.map(|(key, paths)| (format!("agents.{id}.{key}"), paths))
        });
        let lists = of_all.map(|(key, paths)| (key.to_owned(), paths)).into_iter().chain(of_agents);
        let mut problems = Vec::new();
        for (key, paths) in lists {
            for path in paths {
                let text = path.to_string_lossy();
                let why = match () {
                    () if text.contains(['*', '?', '[']) => {
                        "patterns are not supported; name a file or a directory"
                    }
                    () if path.components().any(|part| part == Component::ParentDir) => {
                        "`..` is not followed; write the path without it"
                    }
                    () if text.trim().is_empty() => "it is empty; name a file or a directory",
                    () => continue,
                };
                problems.push(self.at(&key, &text, format!("`{key}` entry `{text}`: {why}")));
            }
        }
        problems
    }

    /// Reports unknown providers, which would otherwise be noticed only at the first message.
    fn unknown_providers(&self) -> Vec<Problem> {
        let models = &self.config.models;
        let mut problems = Vec::new();
        let mut check = |key: &str, entry: &str, name: &str| {
            if let Some(why) = unknown_provider(models, name) {
                problems.push(self.at(key, entry, format!("`{key}`: {why}")));
            }
        };
        if let Some(name) = &models.provider {
            check("models.provider", "", name);
        }
        for entry in &models.fallback {
            check("models.fallback", entry, entry.split('/').next().unwrap_or_default());
        }
        for (provider, config) in &models.providers {
            for (model, config) in &config.models {
                let key = format!("models.providers.{provider}.models.{model}.fallback");
                for entry in config.fallback.iter().flatten() {
                    check(&key, entry, entry.split('/').next().unwrap_or_default());
                }
            }
        }
        for (id, agent) in &self.config.agents {
            if let Some(name) = &agent.provider {
                check(&format!("agents.{id}.provider"), "", name);
            }
        }
        if let Some(name) = self.config.memory.graph.as_ref().and_then(|graph| graph.provider.as_ref()) {
            check("memory.graph.provider", "", name);
        }
        problems
    }

    /// The key or entry, wherever it was set.
    fn at(&self, key: &str, entry: &str, message: String) -> Problem {
        let files = [Some(&self.document), self.user.as_ref()];
        let by_file = is_added(key) && files.into_iter().flatten().any(|file| file.has_entry(key, entry));
        match self.overrides.iter().rev().find(|set| set.covers(key) && !by_file) {
            Some(set) => self.of_variable(set, &message),
            None => {
                let of_user = self.user.as_ref().filter(|user| user.has_entry(key, entry));
                let file = of_user.filter(|_| !self.document.has_entry(key, entry));
                let file = file.unwrap_or_else(|| self.file_of(key));
                Problem { message, place: file.place_of(key, entry) }
            }
        }
    }

    fn of_variable(&self, set: &Override, message: &str) -> Problem {
        let place = At::Variable { variable: set.variable.clone() };
        Problem { message: message.to_owned(), place }
    }

    /// Returns the data directory: as configured, else below the user's data directory. A relative path
    /// starts from the file that holds it, or from the current directory.
    pub fn data_dir(&self, around: &Surroundings) -> Option<PathBuf> {
        // An empty one is none, as it is with other variables that name directories.
        let configured = self.config.data_dir.as_ref().filter(|path| !path.as_os_str().is_empty());
        let Some(configured) = configured else { return around.data_dir() };
        Some(self.resolved("data_dir", configured, around))
    }

    /// Returns the store's place: as configured, else a file in the data directory; `None` if that is not
    /// known either. A relative path starts as that of the data directory does.
    pub fn place(&self, around: &Surroundings) -> Option<StoreLocation> {
        match self.store_url().and_then(|url| url.place().ok()) {
            Some(StoreLocation::File(path)) => {
                Some(StoreLocation::File(self.resolved("store.url", &path, around)))
            }
            Some(place) => Some(place),
            None => Some(StoreLocation::File(self.data_dir(around)?.join(STORE))),
        }
    }

    /// Returns the directory of files that define custom tools, if configured. A relative path starts from
    /// the file that holds it.
    pub fn custom_tools_directory(&self, around: &Surroundings) -> Option<PathBuf> {
        let configured =
            self.config.custom_tools.directory.as_ref().filter(|path| !path.as_os_str().is_empty())?;
        Some(self.resolved("custom_tools.directory", configured, around))
    }

    fn store_url(&self) -> Option<&StoreUrl> {
        self.config.store.url.as_ref().filter(|url| !url.is_empty())
    }

    /// A path from the directory that it was written for.
    pub(crate) fn resolved(&self, key: &str, path: &Path, around: &Surroundings) -> PathBuf {
        let by_variable = self.overrides.iter().any(|set| set.covers(key));
        let from = match self.file_of(key).path.parent() {
            Some(directory) if !by_variable => around.directory.join(directory),
            _ => around.directory.clone(),
        };
        match (path.strip_prefix("~"), around.home()) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => from.join(path),
        }
    }
}

impl Override {
    /// Returns whether it sets this key: by its name, or in the table of its value.
    pub(super) fn covers(&self, key: &str) -> bool {
        let Some(mut rest) = key.strip_prefix(&self.path.join(".")) else { return false };
        let mut value = &self.value;
        while let Some(below) = rest.strip_prefix('.') {
            let Value::Table(table) = value else { return true };
            let of_rest = |(name, _): &(&String, &Value)| {
                let after = below.strip_prefix(name.as_str());
                after.is_some_and(|after| after.is_empty() || after.starts_with('.'))
            };
            let Some((name, found)) = table.iter().find(of_rest) else { return false };
            (value, rest) = (found, &below[name.len()..]);
        }
        rest.is_empty()
    }
}

/// Whether a key holds a list that takes something away.
pub(super) fn is_added(key: &str) -> bool {
    ADDED.contains(&key.rsplit('.').next().unwrap_or(key))
}

/// Merges one layer over another: tables key by key, other values whole. Restricting lists are combined: neither a
/// project's file nor a variable may allow what the layer below denied.
fn layer(below: &mut Table, above: &Table) {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => layer(below, above),
            (Some(Value::Array(below)), Value::Array(above)) if is_added(key) => {
                let new: Vec<Value> = above.iter().filter(|entry| !below.contains(entry)).cloned().collect();
                below.extend(new);
            }
            _ => {
                below.insert(key.clone(), value.clone());
            }
        }
    }
}

fn put(table: &mut Table, path: &[String], value: Value) {
    match path {
        [] => {}
        [key] => {
            table.insert(key.clone(), value);
        }
        [key, rest @ ..] => {
            let below = table.entry(key.clone()).or_insert_with(|| Value::Table(Table::new()));
            if !below.is_table() {
                *below = Value::Table(Table::new());
            }
            if let Value::Table(below) = below {
                put(below, rest, value);
            }
        }
    }
}

/// Rewords an error of the parser: one line, with the nearest of the expected names.
pub(super) fn reworded(message: &str) -> String {
    let message = message.trim().lines().collect::<Vec<_>>().join(", ");
    if let Some(rest) = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "))
        && let Some((got, expected)) = rest.rsplit_once(", expected ")
    {
        return format!("expected {}, got {got}", in_words(expected));
    }
    let Some(rest) = message.strip_prefix("unknown variant `") else { return message };
    let Some((word, expected)) = rest.split_once('`') else { return message };
    let names: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let choices = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    match nearest(word, names.iter().copied()) {
        Some(near) => format!("`{word}` is none of {choices}; did you mean `{near}`?"),
        None => format!("`{word}` is none of {choices}"),
    }
}

/// Translates the parser's names of types for people.
fn in_words(expected: &str) -> &str {
    match expected {
        "a sequence" => "a list",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "a map" => "a table",
        "a boolean" => "true or false",
        _ if expected.starts_with("struct ") => "a table",
        _ => expected,
    }
}
