//! The variables that a command gets: a short list of harmless ones, and what was added for it.
//!
//! Everything else stays out, so that no secret of the program reaches a command by being forgotten.

use std::path::Path;

/// Variables that are passed on if they are set: how text is shown, and when it is.
const PASSED: &[&str] =
    &["LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM", "TZ", "COLORTERM", "NO_COLOR"];
/// Where programs are looked for; the same for everybody, whatever the program itself was started with.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// All variables of a command, sorted by name; those that were added last win.
pub(crate) fn environment(
    variable: impl Fn(&str) -> Option<String>,
    home: &Path,
    added: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all: std::collections::BTreeMap<String, String> =
        PASSED.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?))).collect();
    all.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
    all.entry("TERM".to_owned()).or_insert_with(|| "dumb".to_owned());
    all.insert("PATH".to_owned(), PATH.to_owned());
    all.insert("HOME".to_owned(), home.display().to_string());
    all.extend(added.iter().cloned());
    all.into_iter().collect()
}

#[cfg(test)]
mod tests;
