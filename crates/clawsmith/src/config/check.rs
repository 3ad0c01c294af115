//! Warns of settings that are valid but probably not meant.

use std::path::Path;

use claw_core::nearest::nearest;
use claw_llm::{KNOWN_PROVIDERS, ModelsConfig};

use super::find::Surroundings;
use super::load::Loaded;

/// Returns warnings about settings that are probably not meant. `tools` are the known names.
pub fn warnings(loaded: &Loaded, around: &Surroundings, tools: &[&str]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(found) = &loaded.found {
        let file = found.path.canonicalize().unwrap_or_else(|_| found.path.clone());
        if others_may_write(&file) {
            warnings.push(format!(
                "`{}` can be changed by other users of this machine; remove their write permission",
                found.path.display()
            ));
        }
    }
    if !loaded.config.scrub.output {
        warnings.push(
            "`scrub.output` is false: models and users are shown secrets; ledger and logs stay scrubbed"
                .to_owned(),
        );
    }
    for name in &loaded.config.scrub.values_from_env {
        match around.variable(name) {
            None => warnings.push(format!("`scrub.values_from_env` names `{name}`, which is not set")),
            Some(value) if value.len() < super::SHORTEST_SECRET => warnings.push(format!(
                "the value of `{name}` is too short to be scrubbed, so calls are refused; use a longer one"
            )),
            Some(_) => {}
        }
    }
    for name in loaded.config.settings.keys().filter(|name| !tools.contains(&name.as_str())) {
        let hint = nearest(name, tools.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        warnings.push(format!("`settings.{name}` names no known tool{}", hint.unwrap_or_default()));
    }
    warnings
}

/// Explains why a provider's name is unknown: it is neither configured nor built in. `None` if it is known.
pub fn unknown_provider(models: &ModelsConfig, name: &str) -> Option<String> {
    let known = KNOWN_PROVIDERS.iter().map(|known| known.name);
    let names: Vec<&str> = models.providers.keys().map(String::as_str).chain(known).collect();
    if name.is_empty() || names.contains(&name) {
        return None;
    }
    let hint = match nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "the providers are {}; define another one as `[models.providers.{name}]`",
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    Some(format!("there is no provider `{name}`; {hint}"))
}

#[cfg(unix)]
fn others_may_write(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn others_may_write(_: &Path) -> bool {
    false
}
