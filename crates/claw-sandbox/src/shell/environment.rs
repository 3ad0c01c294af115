//! The variables that a command gets: a short list of harmless ones, and those added for it.
//!
//! Everything else stays out, so that no secret of the program reaches a command by oversight.

use std::path::Path;

use super::search_path::SearchPath;

/// Variables that are passed on if they are set: how text is shown, and when it is.
const PASSED: &[&str] =
    &["LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "TZ", "COLORTERM", "NO_COLOR"];

/// Returns all variables of a command, sorted by name; those added last win.
pub(crate) fn environment(
    variable: impl Fn(&str) -> Option<String>,
    home: &Path,
    added: &[(String, String)],
) -> Vec<(String, String)> {
    with_path(variable, home, &SearchPath::default(), added)
}

/// Returns the variables with another search path than the system's.
pub(super) fn with_path(
    variable: impl Fn(&str) -> Option<String>,
    home: &Path,
    search: &SearchPath,
    added: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all: std::collections::BTreeMap<String, String> =
        PASSED.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect();
    all.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
    all.entry("TERM".to_owned()).or_insert_with(|| "dumb".to_owned());
    all.insert("PATH".to_owned(), search.value());
    all.insert("HOME".to_owned(), home.display().to_string());
    all.extend(search.variables.iter().cloned());
    all.extend(added.iter().cloned());
    all.into_iter().collect()
}

#[cfg(test)]
mod tests;
