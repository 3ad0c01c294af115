//! `clawsmith tools schema`: definitions in the form of a provider's API.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use claw_core::tool::Meta;
use claw_core::tool::dialect::Dialect;
use clawsmith::app;
use serde_json::Value;

use super::{is_in_build, known};
use crate::cli::Session;
use crate::failure::{Failure, Outcome};

/// The tools to export, and their caller.
#[derive(Debug, Args)]
#[command(after_help = "The output is JSON whether `--json` is given or not.

Examples:
  clawsmith tools schema --provider anthropic
  clawsmith tools schema datetime agents_list --provider openai-strict")]
pub(crate) struct SchemaOf {
    /// The tools [default: all of this build].
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// The provider whose form to print.
    #[arg(long, value_enum, default_value_t = Provider::Default)]
    provider: Provider,
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
        let metas: Vec<Meta> = if self.names.is_empty() {
            let mut all: Vec<_> = claw_tools::builtin().map(|tool| tool.meta.clone()).collect();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            all
        } else {
            self.names.iter().map(|name| known(name)).collect::<Result<_, _>>()?
        };
        let rendered = metas.iter().map(|meta| render(meta, dialect)).collect::<Result<Vec<_>, _>>()?;
        session.out.json(&rendered)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn render(meta: &Meta, dialect: Dialect) -> Result<Value, Failure> {
    let absent = || {
        Failure::usage(format!("`{}` is known but not in this build, so it has no schema yet", meta.name))
            .hint("clawsmith tools list")
    };
    let spec = app::spec(meta).filter(|_| is_in_build(meta)).ok_or_else(absent)?;
    Ok(dialect.tool(&spec))
}
