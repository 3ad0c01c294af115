//! `clawsmith tools schema`: definitions in the form of a provider's API.

use std::process::ExitCode;

use clap::Args;
use claw_core::tool::{Caller, Meta, Spec};
use claw_core::{AgentId, SessionKey};
use claw_schema::dialect::Dialect;
use clawsmith::app;
use clawsmith::app::tool_list::known_tool;
use serde_json::Value;

use crate::caller::DEFAULT_AGENT;
use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::{runtime, with_existing_app};

/// The tools to export, and their caller.
#[derive(Debug, Args)]
pub(crate) struct SchemaOf {
    /// The tools; where none is named, all of this build, custom tools and tools of MCP servers.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The provider whose form to print.
    #[arg(long, value_parser = one_of(DIALECTS), default_value = "default")]
    provider: Dialect,
    /// The agent whose custom tools and tools of MCP servers are included.
    #[arg(long, value_name = "ID", default_value = DEFAULT_AGENT)]
    agent: AgentId,
}

const DIALECTS: Choices<Dialect> = &[
    ("default", "Name, description and plain JSON Schema", Dialect::Default),
    ("openai", "", Dialect::OpenAi),
    ("openai-strict", "", Dialect::OpenAiStrict),
    ("anthropic", "", Dialect::Anthropic),
    ("gemini|google|google-generative-ai|google-vertex", "", Dialect::Gemini),
    ("xai", "", Dialect::XAi),
];

impl SchemaOf {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        runtime()?.block_on(setup.must_have_agent(self.agent.as_str()))?;
        let key = SessionKey::new("cli:schema")?;
        let mut caller = Caller::new(self.agent, key, &session.around.directory);
        caller.tenant = setup.tenant().clone();
        let own = with_existing_app(&setup, async |app| Ok(app.caller_specs(&caller).await?))?;
        let own = own.unwrap_or_default();
        let specs: Vec<Spec> = if self.names.is_empty() {
            let builtin = claw_tools::builtin().map(|tool| builtin_spec(&tool.meta));
            let mut all = builtin.chain(own.into_iter().map(Ok)).collect::<Result<Vec<_>, _>>()?;
            all.sort_by(|a, b| a.name.cmp(&b.name));
            all
        } else {
            let spec = |name: &String| match own.iter().find(|spec| spec.name.as_str() == name) {
                Some(spec) => Ok(spec.clone()),
                None => builtin_spec(&known_tool(name)?),
            };
            self.names.iter().map(spec).collect::<Result<_, _>>()?
        };
        let rendered: Vec<Value> = specs.iter().map(|spec| self.provider.tool(spec)).collect();
        session.out.json(&rendered)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn builtin_spec(meta: &Meta) -> Result<Spec, Failure> {
    let absent = || {
        Failure::usage(format!("`{}` is known but not in this build, so it has no schema yet", meta.name))
            .hint("clawsmith tools list")
    };
    app::spec(meta).ok_or_else(absent)
}
