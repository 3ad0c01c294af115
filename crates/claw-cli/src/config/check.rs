//! What is allowed in a configuration and probably not meant.

use std::path::Path;

use claw_policy::nearest::nearest;

use super::find::Surroundings;
use super::load::Loaded;

/// What is probably not meant, in words. `tools` are the known names.
pub fn warnings(loaded: &Loaded, around: &Surroundings, tools: &[&str]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(found) = &loaded.found {
        let file = found.path.canonicalize().unwrap_or_else(|_| found.path.clone());
        if others_may_write(&file) {
            warnings.push(format!(
                "`{}` can be changed by other users of this machine; take their write permission away",
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

#[cfg(unix)]
fn others_may_write(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn others_may_write(_: &Path) -> bool {
    false
}
