//! `clawsmith tools schema`: definitions in the form of a provider's API.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use claw_core::tool::{Meta, Spec};
use claw_schema::dialect::Dialect;
use clawsmith::app;
use serde_json::Value;

use super::{is_in_build, known};
use crate::caller::{CallerArgs, DEFAULT_AGENT};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_existing_app;

/// The tools to export, and their caller.
#[derive(Debug, Args)]
pub(crate) struct SchemaOf {
    /// The tools; all of this build and the custom tools where none is named.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The provider whose form to print.
    #[arg(long, value_enum, default_value_t = Provider::Default)]
    provider: Provider,
    /// The agent whose custom tools are included.
    #[arg(long, value_name = "ID", default_value = DEFAULT_AGENT)]
    agent: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Provider {
    /// Name, description and plain JSON Schema.
    Default,
    #[value(name = "openai")]
    OpenAi,
    #[value(name = "openai-strict")]
    OpenAiStrict,
    Anthropic,
    #[value(aliases = ["google", "google-generative-ai", "google-vertex"])]
    Gemini,
    #[value(name = "xai")]
    XAi,
}

impl From<Provider> for Dialect {
    fn from(provider: Provider) -> Self {
        match provider {
            Provider::Default => Self::Default,
            Provider::OpenAi => Self::OpenAi,
            Provider::OpenAiStrict => Self::OpenAiStrict,
            Provider::Anthropic => Self::Anthropic,
            Provider::Gemini => Self::Gemini,
            Provider::XAi => Self::XAi,
        }
    }
}

impl SchemaOf {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let dialect = Dialect::from(self.provider);
        let caller = CallerArgs::of_agent(self.agent);
        let setup = caller.load(session)?;
        let caller = caller.caller(setup.config(), &session.around, &session.around.directory)?;
        let custom = with_existing_app(&setup, async |app| Ok(app.custom_specs(&caller).await?))?;
        let custom = custom.unwrap_or_default();
        let specs: Vec<Spec> = if self.names.is_empty() {
            let builtin = claw_tools::builtin().map(|tool| builtin_spec(&tool.meta));
            let mut all = builtin.chain(custom.into_iter().map(Ok)).collect::<Result<Vec<_>, _>>()?;
            all.sort_by(|a, b| a.name.cmp(&b.name));
            all
        } else {
            let spec = |name: &String| match custom.iter().find(|spec| spec.name.as_str() == name) {
                Some(spec) => Ok(spec.clone()),
                None => known(name).and_then(|meta| builtin_spec(&meta)),
            };
            self.names.iter().map(spec).collect::<Result<_, _>>()?
        };
        let rendered: Vec<Value> = specs.iter().map(|spec| dialect.tool(spec)).collect();
        session.out.json(&rendered)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn builtin_spec(meta: &Meta) -> Result<Spec, Failure> {
    let absent = || {
        Failure::usage(format!("`{}` is known but not in this build, so it has no schema yet", meta.name))
            .hint("clawsmith tools list")
    };
    app::spec(meta).filter(|_| is_in_build(meta)).ok_or_else(absent)
}
