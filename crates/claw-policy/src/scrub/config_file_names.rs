//! The names of configuration files.

/// Extensions of configuration files.
const EXTENSIONS: &[&str] = &[
    "env",
    "cnf",
    "conf",
    "cfg",
    "config",
    "ini",
    "properties",
    "yaml",
    "yml",
    "toml",
    "json",
    "jsonc",
    "json5",
    "tfvars",
];
/// Whole names of configuration files without such an extension.
const NAMES: &[&str] = &[
    ".env",
    ".envrc",
    ".flaskenv",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".npmrc",
    ".yarnrc",
    ".pypirc",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    "credentials",
];
/// Parts of the names of templates, which hold no secrets to hide.
const TEMPLATES: &[&str] = &["example", "sample", "template", "dist", "schema"];

/// [`is_settings_file`] for a name in a text.
pub(super) fn is_settings_name(name: &[u8]) -> bool {
    // Most texts before a sign have no extension; of the whole names without one these two are left.
    let may_be = name.contains(&b'.') || name.ends_with(b"netrc") || name.ends_with(b"credentials");
    may_be && std::str::from_utf8(name).is_ok_and(is_settings_file)
}

/// Returns whether `path` names a configuration file: `.env`, `my.cnf`, `compose.yaml`, `.env.production`.
/// A template (`.env.example`) is none.
pub fn is_settings_file(path: &str) -> bool {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_ascii_lowercase();
    let mut parts = name.split('.');
    if parts.clone().any(|part| TEMPLATES.contains(&part)) {
        return false;
    }
    let extension = parts.next_back().filter(|extension| extension.len() < name.len());
    NAMES.contains(&name.as_str())
        || name.starts_with(".env.")
        || extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}
