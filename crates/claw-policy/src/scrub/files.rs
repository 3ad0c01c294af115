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
