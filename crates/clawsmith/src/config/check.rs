//! Warns of settings that are valid but probably not meant.

use std::path::Path;

use claw_core::did_you_mean::nearest;
use claw_llm::{KNOWN_PROVIDERS, ModelsConfig};

use super::find::Surroundings;
use super::load::Loaded;
use crate::app::Setup;

/// Said of `[telemetry]` in a build without the cargo feature `otel`.
pub(crate) const NOT_BUILT_IN: &str =
    "this program was built without traces; build it with the cargo feature `otel`, or remove `[telemetry]`";

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
    warnings.extend(of_gateway(loaded, around));
    warnings.extend(of_telemetry(loaded, around));
    for name in loaded.config.settings.keys().filter(|name| !tools.contains(&name.as_str())) {
        let hint = nearest(name, tools.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        warnings.push(format!("`settings.{name}` names no known tool{}", hint.unwrap_or_default()));
    }
    warnings
}

/// Warnings about settings with which `clawsmith serve` would not start here.
fn of_gateway(loaded: &Loaded, around: &Surroundings) -> Vec<String> {
    let setup = Setup { loaded: loaded.clone(), around: around.clone(), local_user: false };
    let listening = match setup.listening(None) {
        Ok(listening) => listening,
        Err(error) => {
            let hint = error.advice().map(|hint| format!("; {hint}")).unwrap_or_default();
            return vec![format!("`gateway.listen`: {}{hint}", error.message())];
        }
    };
    let files =
        listening.tls.into_iter().flat_map(|tls| [("certificate", tls.certificate), ("key", tls.key)]);
    let unread = files.filter_map(|(key, path)| {
        let error = std::fs::File::open(&path).err()?;
        Some(format!("`gateway.tls.{key}`: `{}` cannot be read: {error}", path.display()))
    });
    unread.collect()
}

/// Warnings about traces that this program or this environment would not send.
fn of_telemetry(loaded: &Loaded, around: &Surroundings) -> Vec<String> {
    let config = &loaded.config.telemetry;
    let mut warnings = Vec::new();
    if config.endpoint.is_none() {
        return warnings;
    }
    if !cfg!(feature = "otel") {
        warnings.push(format!("`telemetry.endpoint`: {NOT_BUILT_IN}"));
    }
    if let Some(name) = config.token_env.as_ref().filter(|name| around.variable(name).is_none()) {
        warnings.push(format!("`telemetry.token_env` names `{name}`, which is not set"));
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
