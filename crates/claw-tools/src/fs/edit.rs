//! `edit`: replaces exact pieces of a file, all of them or none.
//!
//! Text is searched in the view: secrets are placeholders there, and the port puts them back. Either kind of
//! line end matches, and the file keeps its own.

mod find;
mod line_ends;
mod patch;
mod similar_text;

use claw_core::port::Splice;
use claw_core::tool::{Call, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;

use self::line_ends::{Plain, Replacement};
use super::write_file::told;

#[derive(Default)]
pub(crate) struct EditFile;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Path relative to the workspace root.
    path: String,
    /// Text to replace, exactly as in the file and without line numbers. It must occur once.
    old_string: Option<String>,
    /// Replacement text.
    new_string: Option<String>,
    /// Replace every occurrence of `old_string`.
    #[serde(default)]
    replace_all: bool,
    /// Several replacements of the text as it is now; all are made or none.
    #[serde(default)]
    edits: Vec<Edit>,
    /// A unified diff of this file, instead of the above.
    patch: Option<String>,
}

/// A replacement.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub(crate) struct Edit {
    /// Text to replace.
    old: String,
    /// Replacement text.
    new: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Tool for EditFile {
    type Args = Args;
    const META: Meta = Meta::new("edit", Group::Fs)
        .effects(&[Effect::Read, Effect::Write])
        .aliases(&["edit_file", "Edit"])
        .needs(&[Need::Files])
        .about("Replace exact pieces of text in a workspace file, or apply a unified diff to it.");

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::write(&args.path)
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let path = args.path.clone();
        let wanted = Wanted::try_from(args)?;
        let files = call.files()?;
        let view = files.view(&path).await?;
        let plain = Plain::of(&view.text);
        let replacements = match wanted {
            Wanted::Edits(edits) => find::all(&path, &plain, &edits)?,
            Wanted::Patch(patch) => patch::apply(&path, &plain, &patch)?,
        };
        let splices = in_order(&plain, replacements)?;
        let written = files.splice(&path, &view.version, &splices).await?;
        Ok(told(&path, &written))
    }
}

/// The requested change.
enum Wanted {
    Edits(Vec<Edit>),
    Patch(String),
}

impl TryFrom<Args> for Wanted {
    type Error = ToolError;

    fn try_from(args: Args) -> Result<Self, ToolError> {
        let Args { old_string, new_string, replace_all, mut edits, patch, .. } = args;
        match (old_string, new_string) {
            (Some(old), Some(new)) => edits.insert(0, Edit { old, new, replace_all }),
            (None, None) => {}
            _ => return Err(ToolError::invalid("`old_string` and `new_string` must be given together")),
        }
        match (patch.filter(|patch| !patch.trim().is_empty()), edits.is_empty()) {
            (Some(patch), true) => Ok(Self::Patch(patch)),
            (None, false) => Ok(Self::Edits(edits)),
            (Some(_), false) => Err(ToolError::invalid("`patch` cannot be combined with other edits")),
            (None, true) => Err(ToolError::invalid("no edit is given")
                .try_instead("give `old_string` and `new_string`, or `edits`, or `patch`")),
        }
    }
}

/// The replacements as changes of the view, sorted. Overlapping ones are refused.
fn in_order(plain: &Plain<'_>, mut replacements: Vec<Replacement>) -> Result<Vec<Splice>, ToolError> {
    replacements.sort_by_key(|replacement| (replacement.range.start, replacement.range.end));
    for pair in replacements.windows(2) {
        let [first, second] = pair else { continue };
        if second.range.start < first.range.end || second.range == first.range {
            let line = plain.line_of(second.range.start);
            let message = format!("{} and {} overlap at line {line}", first.origin, second.origin);
            return Err(ToolError::invalid(message).try_instead("combine them into one edit"));
        }
    }
    Ok(replacements.into_iter().map(|replacement| plain.splice(replacement)).collect())
}

#[cfg(test)]
mod tests;
