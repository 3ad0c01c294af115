//! `clawsmith tools add|test|edit|disable|enable|remove`: custom tools.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use claw_core::store::CustomToolCard;
use claw_terminal::{Cell, Table};
use clawsmith::app::Setup;
use clawsmith::app::custom::{CustomToolDocument, CustomToolView, shown_action};
use serde_json::{Map, Value, json};

use super::call::{self, CallOptions, CallTool};
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::command::prompt;
use crate::exit_code::{Failure, Outcome};
use crate::opened::{runtime, with_existing_app};

/// The tool: a file, flags, or a file with flags over it.
#[derive(Debug, Args)]
pub(crate) struct Add {
    /// A JSON file that defines the tool; `-` reads standard input.
    file: Option<PathBuf>,
    /// The name that a model calls it by.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The one agent that has it [default: every agent].
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    #[command(flatten)]
    fields: Fields,
}

/// A tool and its changes.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// The tool.
    name: String,
    /// A JSON file with the fields that change; `-` reads standard input.
    file: Option<PathBuf>,
    /// The agent that has it [default: the tool of every agent].
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    #[command(flatten)]
    fields: Fields,
}

/// The fields of a tool.
#[derive(Debug, Args)]
pub(crate) struct Fields {
    /// The tool's purpose, for the model.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A shell command with placeholders.
    #[arg(long, value_name = "TEMPLATE", conflicts_with = "argv")]
    command: Option<String>,
    /// A program and its arguments as a JSON list, run without a shell.
    #[arg(long, value_name = "JSON")]
    argv: Option<String>,
    /// JSON Schema of the arguments.
    #[arg(long, value_name = "JSON")]
    parameters: Option<String>,
    /// The directory that the command starts in, relative to the workspace.
    #[arg(long, value_name = "DIR")]
    working_dir: Option<String>,
    /// Time limit of one call, in seconds.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u32>,
    /// A variable to set, whose value is asked for or read from standard input.
    #[arg(long, value_name = "NAME")]
    env: Option<String>,
    /// A variable to set, with the value it has here; may be repeated.
    #[arg(long, value_name = "NAME")]
    from_env: Vec<String>,
    /// Let the tool reach other machines.
    #[arg(long)]
    network: bool,
    /// A path outside the workspace that the tool may read; may be repeated.
    #[arg(long, value_name = "PATH")]
    path: Vec<String>,
    /// A path outside the workspace that the tool may change; may be repeated.
    #[arg(long, value_name = "PATH")]
    write_path: Vec<String>,
}

/// A tool by its name.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The tool.
    name: String,
    /// The agent that has it [default: the tool of every agent].
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

/// A call of a tool, and its caller.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// The tool.
    name: String,
    /// The arguments: JSON, `@FILE` to read a file, or `-` to read standard input [default: `{}`].
    #[arg(value_name = "JSON")]
    args: Option<String>,
    /// The directory that the tool's files are in [default: the current directory].
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    #[command(flatten)]
    options: CallOptions,
}

impl Add {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let mut document = read(session, self.file.as_ref())?;
        let flags = [("name", self.name), ("agent", self.agent)];
        document.extend(flags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value?)))));
        self.fields.apply(session, &mut document)?;
        let document = CustomToolDocument::from_value(Value::Object(document))?;
        let card = session.app(async |app| app.add_custom_tool(document).await)?;
        told(session, &card, "added")
    }
}

impl Edit {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let mut change = read(session, self.file.as_ref())?;
        let (name, agent) = (self.name.as_str(), self.agent.as_deref());
        let card = session.app(async |app| {
            let now = app.custom_tool(name, agent).await?;
            if !change.contains_key("grants") && self.fields.grants() {
                change.insert("grants".to_owned(), json!(now.definition.grants));
            }
            self.fields.apply(session, &mut change)?;
            if change.is_empty() {
                return Err(Failure::usage("no change is given").hint("clawsmith tools edit --help"));
            }
            Ok(app.edit_custom_tool(name, agent, Value::Object(change), Some(now.version)).await?)
        })?;
        told(session, &card, "changed")
    }
}

impl Named {
    pub(super) fn enable(self, session: &mut Session, enabled: bool) -> Outcome {
        let (name, agent) = (&self.name, self.agent.as_deref());
        let card = session.app(async |app| app.enable_custom_tool(name, agent, enabled).await)?;
        told(session, &card, if enabled { "enabled" } else { "disabled" })
    }

    pub(super) fn remove(self, session: &mut Session) -> Outcome {
        let (name, agent) = (&self.name, self.agent.as_deref());
        session.app(async |app| app.remove_custom_tool(name, agent, None).await)?;
        session.told(&json!({ "removed": name, "agent": agent }), format_args!("removed {name}"))
    }
}

impl Test {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let caller = &self.options.caller;
        let found = find(&caller.load(session)?, &self.name, caller)?;
        if found.is_some_and(|card| !card.definition.enabled) {
            let name = &self.name;
            return Err(Failure::usage(format!("the custom tool `{name}` is disabled, and was not called"))
                .hint(format!("clawsmith tools enable {name}"))
                .refusing());
        }
        let mut call = CallTool::of(&self.name, self.args, self.options);
        (call.workspace, call.plain, call.test) = (self.workspace, false, true);
        call.run(session)
    }
}

impl Fields {
    fn grants(&self) -> bool {
        self.network || !self.path.is_empty() || !self.write_path.is_empty()
    }

    /// Lays the flags over a document.
    fn apply(&self, session: &Session, document: &mut Map<String, Value>) -> Result<(), Failure> {
        let parsed = |flag: &str, text: &Option<String>| {
            let parsed = text.as_deref().map(serde_json::from_str::<Value>).transpose();
            parsed.map_err(|error| Failure::usage(format!("`--{flag}` is not JSON")).because(error))
        };
        let given = [
            ("description", self.description.clone().map(Value::from)),
            ("command", self.command.clone().map(Value::from)),
            ("working_dir", self.working_dir.clone().map(Value::from)),
            ("argv", parsed("argv", &self.argv)?),
            ("parameters", parsed("parameters", &self.parameters)?),
            ("timeout_seconds", self.timeout.map(Value::from)),
        ];
        document.extend(given.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        self.values(session, document)?;
        if self.grants() {
            let grants = document.entry("grants").or_insert_with(|| json!({}));
            if self.network {
                grants["network"] = json!(true);
            }
            let mut paths = grants["paths"].as_array().cloned().unwrap_or_default();
            let write = self.write_path.iter().map(|path| (path, true));
            for (path, write) in self.path.iter().map(|path| (path, false)).chain(write) {
                paths.retain(|granted| granted["path"] != json!(path));
                paths.push(json!({ "path": path, "write": write }));
            }
            grants["paths"] = json!(paths);
        }
        Ok(())
    }

    fn values(&self, session: &Session, document: &mut Map<String, Value>) -> Result<(), Failure> {
        let mut values = Map::new();
        for name in &self.from_env {
            let unset = || Failure::usage(format!("`{name}` is not set here, or is not UTF-8"));
            values.insert(name.clone(), json!(session.variable(name).ok_or_else(unset)?));
        }
        if let Some(name) = &self.env {
            let hint =
                "give the value on standard input, or name a variable that holds it with `--from-env NAME`";
            let told = prompt::value(&runtime()?, &format!("the value of `{name}`"), hint)?;
            let told = told.ok_or_else(|| Failure::usage("no value was given"))?;
            values.insert(name.clone(), json!(secrecy::ExposeSecret::expose_secret(&told)));
        }
        if !values.is_empty() {
            let env = document.entry("env").or_insert_with(|| json!({}));
            if let Some(env) = env.as_object_mut() {
                env.extend(values);
            }
        }
        Ok(())
    }
}

/// Reads the JSON object of a file; an empty one if none is named.
fn read(session: &Session, file: Option<&PathBuf>) -> Result<Map<String, Value>, Failure> {
    let Some(file) = file else { return Ok(Map::new()) };
    let bytes = match file.as_os_str() == "-" {
        true => call::read(std::io::stdin().lock()),
        false => std::fs::File::open(session.around.directory.join(file)).and_then(call::read),
    };
    let shown = file.display();
    let bytes = bytes.map_err(|error| Failure::usage(format!("`{shown}` cannot be read")).because(error))?;
    let value: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::usage(format!("`{shown}` is not JSON")).because(error))?;
    match value {
        Value::Object(object) => Ok(object),
        _ => Err(Failure::usage(format!("`{shown}` holds no JSON object"))),
    }
}

fn told(session: &mut Session, card: &CustomToolCard, what: &str) -> Outcome {
    let of = card.place.agent.as_ref().map_or_else(String::new, |agent| format!(" of agent {agent}"));
    let (name, version, action) = (&card.place.name, card.version, shown_action(&card.definition));
    let words = format!("{what} {name}{of}, version {version}: {action}");
    session.told(&json!({ what: CustomToolView::from(card) }), words)
}

/// Shows a custom tool of this name, the agent's before the tenant's; `None` if there is none.
pub(super) fn show(
    session: &mut Session,
    setup: &Setup,
    name: &str,
    caller: &CallerArgs,
) -> Result<Option<ExitCode>, Failure> {
    let Some(card) = find(setup, name, caller)? else { return Ok(None) };
    let view = json!(CustomToolView::from(&card));
    let shown = session.shown(&view, |out| {
        let mut table = Table::new(["field", "value"]);
        for (field, value) in view.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            table.row([Cell::strong(field), Cell::new(text)]);
        }
        Ok(out.table(&table)?)
    })?;
    Ok(Some(shown))
}

/// Finds a custom tool in the store, the agent's before the tenant's; `None` where there is none.
fn find(setup: &Setup, name: &str, caller: &CallerArgs) -> Result<Option<CustomToolCard>, Failure> {
    let caller = caller.caller_here(setup)?;
    Ok(with_existing_app(setup, async |app| Ok(app.custom_tool_of(&caller, name).await?))?.flatten())
}
