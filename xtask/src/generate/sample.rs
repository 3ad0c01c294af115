//! Two tools for the generators' own tests: one with nothing, one with every kind of field.

use std::sync::Arc;

use claw_core::tool::{AnyTool, Call, Cost, Effect, Group, Meta, Need, Output, Tool, ToolError, erase};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tools() -> Vec<Arc<dyn AnyTool>> {
    vec![erase(Ping), erase(Move)]
}

struct Ping;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

impl Tool for Ping {
    type Args = Nothing;
    const META: Meta = Meta::new("sample_ping", Group::Tools).effects(&[]).about("Answer.");

    async fn run(&self, _: &Call, _: Nothing) -> Result<Output, ToolError> {
        Ok(Output::text("pong"))
    }
}

struct Move;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only their schema is of interest")]
struct Args {
    /// Source | or `-`.
    from: String,
    /// Targets, each in turn.
    to: Vec<String>,
    /// Most things to move.
    #[schemars(range(min = 1, max = 10))]
    count: Option<u8>,
    /// Mode.
    mode: Option<Mode>,
    /// Name of the result.
    #[serde(default = "it")]
    a_name: String,
    /// Report the move.
    #[serde(default = "yes")]
    loud: bool,
}

const fn yes() -> bool {
    true
}

fn it() -> String {
    "it".to_owned()
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    /// Leave nothing behind.
    Cut,
    /// Leave the original.
    Copy,
}

impl Tool for Move {
    type Args = Args;
    const META: Meta = Meta::new("sample_move", Group::Fs)
        .label("Move things")
        .effects(&[Effect::Read, Effect::Write])
        .cost(Cost::Heavy)
        .aliases(&["mv"])
        .needs(&[Need::Files])
        .timeout_secs(9)
        .about("Move things about.");

    async fn run(&self, _: &Call, _: Args) -> Result<Output, ToolError> {
        Ok(Output::text("moved"))
    }
}
