//! `clawsmith tools schema`: definitions in the form of a provider's API.

use std::process::ExitCode;

use clap::Args;
use claw_core::tool::Caller;
use claw_core::{AgentId, SessionKey};
use claw_schema::dialect::Dialect;
use serde_json::Value;

use crate::caller::DEFAULT_AGENT;
use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::runtime;

/// The tools to export, and their caller.
#[derive(Debug, Args)]
pub(crate) struct SchemaOf {
    /// The tools [default: all of this build, custom tools and tools of MCP servers].
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
        let specs = runtime()?.block_on(setup.tool_specs(&caller, &self.names))?;
        let rendered: Vec<Value> = specs.iter().map(|spec| self.provider.tool(spec)).collect();
        session.out.json(&rendered)?;
        Ok(ExitCode::SUCCESS)
    }
}
