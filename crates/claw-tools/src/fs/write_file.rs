//! `write_file`: writes a whole file, or appends to it.

use claw_core::port::{WriteMode, Written};
use claw_core::tool::{Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::format;

#[derive(Default)]
pub(crate) struct WriteFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Path relative to the workspace root. Missing directories are made.
    path: String,
    /// The text to write. Send a long text in parts: the first, then the others with `append`.
    content: String,
    /// `overwrite` creates the file or replaces it whole; an existing file must be read first.
    #[serde(default)]
    mode: Mode,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Mode {
    #[default]
    Overwrite,
    Create,
    Append,
}

impl Tool for WriteFile {
    type Args = Args;
    const META: Meta = Meta::new("write_file", Group::Fs)
        .effects(&[Effect::Read, Effect::Write])
        .aliases(&["write", "Write"])
        .needs(&[Need::Files])
        .about("Create a workspace file, replace it whole or append to it.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::write(&args.path)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let mode = match args.mode {
            Mode::Overwrite => WriteMode::Overwrite,
            Mode::Create => WriteMode::Create,
            Mode::Append => WriteMode::Append,
        };
        let written = call.files()?.write(&args.path, &args.content, mode).await?;
        Ok(told(&args.path, &written))
    }
}

/// Tells what was written.
pub(super) fn told(path: &str, written: &Written) -> Output {
    let Written { created, size, diff, .. } = written;
    let size = format::count(*size, "byte", "bytes");
    let text = match (created, diff.is_empty()) {
        (true, _) => format!("created `{path}`: {size}"),
        (false, true) => format!("`{path}` already has this content; nothing was changed"),
        (false, false) => format!("changed `{path}`: {size} now\n{}", diff.trim_end()),
    };
    let changed = *created || !diff.is_empty();
    Output::text(text)
        .with_details(json!({ "path": path, "created": created, "changed": changed, "size": size }))
}

#[cfg(test)]
mod tests;
