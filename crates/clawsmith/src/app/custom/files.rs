//! Custom tools that files of the deployment define: `*.json` in the directory that `custom_tools.directory` names.
//!
//! Only that directory is read, never one of a workspace: its writers define programs that run on the host.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use claw_core::AgentId;
use claw_core::store::CustomToolCard;
use claw_core::tool::AnyTool;
use claw_store::vault::CustomToolValues;
use claw_tools::custom::CustomTool;

use super::document::CustomToolDocument;
use super::{check, source};
use crate::app::{App, Error};

/// Most bytes of one file.
const MOST_BYTES: u64 = 256 * 1024;
/// Most files.
const MOST_FILES: usize = 1000;

/// A tool of a file, and the one agent that has it; `None` means every agent.
pub(super) type FileTool = (Option<AgentId>, Arc<dyn AnyTool>);

/// The files with their times and sizes: another value means that one changed.
pub(super) type Seen = Vec<(PathBuf, Option<SystemTime>, u64)>;

/// Looks at the deployment's files without reading them.
pub(super) fn seen(app: &App) -> Seen {
    let setup = app.setup();
    let Some(directory) = setup.loaded.custom_tools_directory(&setup.around) else { return Seen::new() };
    let look = |file: PathBuf| {
        let about = std::fs::metadata(&file).ok();
        let changed = about.as_ref().and_then(|about| about.modified().ok());
        (file, changed, about.map_or(0, |about| about.len()))
    };
    files(&directory).unwrap_or_default().into_iter().map(look).collect()
}

/// Loads the tools of the deployment's files. An invalid one is an error: a deployment must not start without
/// a tool it defines.
pub(super) fn load(app: &App) -> Result<Vec<FileTool>, Error> {
    let mut tools: Vec<FileTool> = Vec::new();
    for Defined { file, card, values } in defined(app)? {
        let of_file = |error: Error| in_file(&file, &error);
        if !card.definition.enabled {
            continue;
        }
        let made = CustomTool::new(&card.place, card.definition, source::secrets(&values));
        let tool = made.map_err(|error| of_file(Error::invalid(error.to_string())))?;
        tools.push((card.place.agent, Arc::new(tool)));
    }
    Ok(tools)
}

/// Refuses files whose tools have names that begin like the tools of an MCP server.
pub(super) async fn check_names(app: &App) -> Result<(), Error> {
    let ours = app.of_tenant(app.setup().tenant());
    for Defined { file, card, .. } in defined(app)? {
        ours.check_custom_name(&card.place.name).await.map_err(|error| in_file(&file, &error))?;
    }
    Ok(())
}

/// A tool that a file defines.
pub(super) struct Defined {
    file: PathBuf,
    pub(super) card: CustomToolCard,
    values: CustomToolValues,
}

/// Reads the definitions of the deployment's files, enabled or not.
pub(super) fn defined(app: &App) -> Result<Vec<Defined>, Error> {
    let setup = app.setup();
    let Some(directory) = setup.loaded.custom_tools_directory(&setup.around) else { return Ok(Vec::new()) };
    let mut all: Vec<Defined> = Vec::new();
    for file in files(&directory)? {
        let of_file = |error: Error| in_file(&file, &error);
        let document = read(&file).map_err(of_file)?;
        let (card, values) = document.read(setup.tenant()).map_err(of_file)?;
        check(&card.place, &card.definition).map_err(of_file)?;
        app.check_grants(&card.definition).map_err(of_file)?;
        app.check_variables(&values).map_err(of_file)?;
        let is_same = |known: &Defined| known.card.definition.enabled && known.card.place == card.place;
        if all.iter().any(is_same) {
            let error =
                Error::invalid(format!("the custom tool `{}` is in another file too", card.place.name));
            return Err(of_file(error));
        }
        all.push(Defined { file, card, values });
    }
    Ok(all)
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let unread = |error| {
        Error::invalid(format!("`custom_tools.directory` `{}` cannot be read", directory.display()))
            .because(error)
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unread)? {
        let path = entry.map_err(unread)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    if files.len() > MOST_FILES {
        return Err(Error::invalid(format!(
            "`custom_tools.directory` has {} files; at most {MOST_FILES} are allowed",
            files.len()
        )));
    }
    files.sort();
    Ok(files)
}

fn read(file: &Path) -> Result<CustomToolDocument, Error> {
    let unread = |error: std::io::Error| Error::invalid("it cannot be read").because(error);
    let size = std::fs::metadata(file).map_err(unread)?.len();
    if size > MOST_BYTES {
        return Err(Error::invalid(format!("it has {size} bytes; at most {MOST_BYTES} are allowed")));
    }
    CustomToolDocument::parse(&std::fs::read_to_string(file).map_err(unread)?)
}

fn in_file(file: &Path, error: &Error) -> Error {
    let told = Error::invalid(format!("`{}`: {}", file.display(), error.what()));
    match error.advice() {
        Some(advice) => told.hint(advice),
        None => told,
    }
}
