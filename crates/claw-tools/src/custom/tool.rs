//! A custom tool, as the executor runs it.

use async_trait::async_trait;
use claw_core::port::{HttpRequest, Ran, Stopped};
use claw_core::store::{CustomToolAction, CustomToolDefinition, CustomToolGrants, CustomToolPlace};
use claw_core::tool::{
    AnyTool, Argv, Ask, Call, Effect, Effects, Facts, Given, GivenPath, Group, Meta, Need, Output, Plan,
    Script, SecretVariables, Source, Spec, ToolError,
};
use serde_json::{Value, json};

use super::check::{self, Action, DefinitionError};
use super::fill::FillError;
use super::http_template::Filled;
use super::parameters;
use crate::runtime::exec;

/// Secret values of a custom tool. Their `Debug` output shows names only.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CustomToolSecrets {
    /// Variables of its commands.
    pub variables: SecretVariables,
    /// Headers of its requests.
    pub headers: SecretVariables,
}

/// A custom tool that is ready to be called.
pub struct CustomTool {
    meta: Meta,
    spec: Spec,
    action: Action,
    definition: CustomToolDefinition,
    secrets: CustomToolSecrets,
}

impl CustomTool {
    /// Makes a tool of a definition, which is checked again.
    pub fn new(
        place: &CustomToolPlace,
        definition: CustomToolDefinition,
        secrets: CustomToolSecrets,
    ) -> Result<Self, DefinitionError> {
        check::check(place, &definition)?;
        let action = check::action(&definition)?;
        let mut meta = Meta::of(place.name.clone(), Group::Custom).source(Source::Custom);
        meta.about = definition.description.trim().into();
        let (effects, need) = match &action {
            Action::Http(http) if http.changes() => {
                (Effects::of(&[Effect::Read, Effect::Write, Effect::Network]), Need::Http)
            }
            Action::Http(_) => (Effects::of(&[Effect::Read, Effect::Network]), Need::Http),
            Action::Command(_) | Action::Argv(_) => {
                meta.removable = Effects::of(&[Effect::Write, Effect::Network]);
                (Effects::of(&[Effect::Read, Effect::Write, Effect::Execute, Effect::Network]), Need::Shell)
            }
        };
        meta.effects = effects;
        meta.needs = vec![need].into();
        // The shell stops a shell command itself and keeps the output so far.
        let margin = if matches!(action, Action::Command(_)) { 10 } else { 0 };
        meta.timeout_secs = Some(definition.timeout_seconds + margin);
        let spec = Spec::with_schema(&meta, parameters::for_model(&definition.parameters));
        Ok(Self { meta, spec, action, definition, secrets })
    }

    /// The command or request of a call, for people; without the values of variables and headers.
    pub fn rendered(&self, args: &Value) -> Result<String, ToolError> {
        match &self.action {
            Action::Command(template) | Action::Argv(template) => template.command(args).map_err(invalid),
            Action::Http(template) => {
                Ok(format!("{} {}", template.method, template.fill(args).map_err(invalid)?.url))
            }
        }
    }

    fn script(&self, text: String, working_dir: &str) -> Script {
        Script {
            text,
            directory: working_dir.to_owned(),
            network: self.definition.grants.network,
            timeout_secs: Some(self.definition.timeout_seconds),
            ..Script::default()
        }
    }

    fn ask(&self, args: &Value) -> Result<Asked, ToolError> {
        Ok(match (&self.action, &self.definition.action) {
            (Action::Command(template), CustomToolAction::Command { working_dir, .. }) => {
                Asked::Script(self.script(template.command(args).map_err(invalid)?, working_dir))
            }
            (Action::Argv(template), CustomToolAction::Argv { working_dir, .. }) => Asked::Argv(Argv {
                argv: template.argv(args).map_err(invalid)?,
                directory: working_dir.clone(),
                env: Vec::new(),
                credentials: false,
            }),
            (Action::Http(template), _) => {
                let Filled { url, body } = template.fill(args).map_err(invalid)?;
                let (method, headers) = (template.method.clone(), self.secrets.headers.clone());
                let origin = template.origin.clone();
                Asked::Http(HttpRequest { method, url, origin, headers, body })
            }
            _ => return Err(ToolError::internal("a template that is not of its definition")),
        })
    }

    fn given(&self) -> Given {
        let CustomToolGrants { network, paths } = &self.definition.grants;
        let path = |path: &claw_core::store::GrantedPath| GivenPath {
            path: path.path.clone().into(),
            write: path.write,
        };
        Given {
            network: *network,
            paths: paths.iter().map(path).collect(),
            variables: self.secrets.variables.clone(),
        }
    }
}

/// The asks of one call.
enum Asked {
    Script(Script),
    Argv(Argv),
    Http(HttpRequest),
}

#[async_trait]
impl AnyTool for CustomTool {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn plan(&self, _: &Facts, args: &Value) -> Result<Plan, ToolError> {
        let plan = match self.ask(args)? {
            Asked::Script(script) => Plan::script(script).with(Effect::Read).giving(self.given()),
            Asked::Argv(argv) => Plan::argv(argv).with(Effect::Read).giving(self.given()),
            Asked::Http(request) => {
                let plan = Plan::read().asking(Ask::Host { origin: request.origin });
                if self.meta.effects.has(Effect::Write) { plan.with(Effect::Write) } else { plan }
            }
        };
        Ok(if self.definition.grants.network { plan.with(Effect::Network) } else { plan })
    }

    async fn run_erased(&self, call: &Call, args: Value) -> Result<Output, ToolError> {
        let ran = match self.ask(&args)? {
            Asked::Script(script) => call.shell()?.run(&script).await?,
            Asked::Argv(argv) => call.shell()?.spawn(&argv).await?,
            Asked::Http(request) => return answered(call.http()?.send(&request).await?),
        };
        Ok(told(&ran, &self.definition))
    }
}

impl std::fmt::Debug for CustomTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CustomTool").field(&self.meta.name).finish()
    }
}

fn invalid(error: FillError) -> ToolError {
    let advice = match &error {
        FillError::Dash { .. } => Some("use a value that does not begin with `-`"),
        _ => None,
    };
    let error = ToolError::invalid(error.to_string());
    match advice {
        Some(advice) => error.try_instead(advice),
        None => error,
    }
}

fn answered(answer: claw_core::port::HttpAnswer) -> Result<Output, ToolError> {
    let claw_core::port::HttpAnswer { status, body } = answer;
    let details = json!({ "status": status });
    if status >= 400 {
        let shown: String = body.chars().take(2000).collect();
        return Err(
            ToolError::failed(format!("the endpoint answered {status}: {shown}")).with_details(details)
        );
    }
    Ok(Output::text(format!("{}[status {status}]", exec::printed(&body)))
        .for_user(format!("status {status}"))
        .with_details(details))
}

fn told(ran: &Ran, definition: &CustomToolDefinition) -> Output {
    let mut ending = ending(ran, definition);
    ending.extend(exec::changed(ran, false));
    let lines: String = ending.iter().map(|line| format!("[{line}]\n")).collect();
    let mut text = format!("{}{lines}", exec::printed(&ran.output));
    if let Some(changes) = &ran.changes {
        text.push_str(&changes.diff);
    }
    let mut details = json!({
        "exit": ran.exit,
        "signal": ran.signal,
        "stopped": ran.stopped.map(exec::word),
        "stragglers": ran.stragglers,
        "left_out_bytes": ran.dropped,
        "place": ran.place,
    });
    if let Some(changes) = &ran.changes {
        details["changes"] = json!(changes);
    }
    Output::text(text.trim_end()).for_user(ending.join("; ")).with_details(details)
}

/// Describes how the command ended and what it lacked.
fn ending(ran: &Ran, definition: &CustomToolDefinition) -> Vec<String> {
    let mut lines = Vec::new();
    match ran.stopped {
        Some(Stopped::Time) => {
            lines.push(format!(
                "stopped: the tool's time limit of {} s was reached",
                definition.timeout_seconds
            ));
        }
        Some(Stopped::Memory) => lines.push("stopped: it reached its memory limit".to_owned()),
        Some(Stopped::Disk) => lines.push("stopped: the disk filled up".to_owned()),
        None => {}
    }
    lines.push(match (ran.exit, ran.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}{}", exec::name(signal)),
        (None, None) => "ended without an exit code".to_owned(),
    });
    lines.extend(ran.full.iter().map(ToString::to_string));
    if exec::lacks_network(ran) && !definition.grants.network {
        lines.push("this tool has no network; its owner can grant it".to_owned());
    }
    if ran.dropped > 0 {
        lines.push(format!("{} bytes are left out of the middle", ran.dropped));
    }
    lines
}

/// Grants whose absence explains the output of a failed call: `network`, or a path that the command could not
/// reach. Paths are taken from the output; the caller has to check whether they exist and are outside the
/// workspace.
pub fn missing_grants(definition: &CustomToolDefinition, exit: Option<i32>, output: &str) -> Vec<String> {
    const UNREACHED: [&str; 4] = [
        "No such file or directory",
        "Permission denied",
        "Read-only file system",
        "Operation not permitted",
    ];
    if exit == Some(0) {
        return Vec::new();
    }
    let mut missing = Vec::new();
    let ran = Ran { exit, output: output.to_owned(), place: "a sandbox", ..Ran::default() };
    if !definition.grants.network && exec::lacks_network(&ran) {
        missing.push("network".to_owned());
    }
    for line in output.lines().filter(|line| UNREACHED.iter().any(|why| line.contains(why))) {
        let ends = |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '`' | ':' | ',' | '(' | ')');
        let paths = line.split(ends).filter(|word| word.len() > 1 && word.starts_with('/'));
        missing.extend(paths.map(str::to_owned));
    }
    missing.dedup();
    missing
}
