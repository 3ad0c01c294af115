//! The trait that authors of tools implement, and the one that the registry stores.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;

use super::{Call, Facts, Meta, Output, Plan, Spec, ToolError};

/// A tool, as its author writes it. All calls share it, so it holds no state of a call.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Models get their schema, so the docs of the fields are for the model.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// The tool's static description.
    const META: Meta;

    /// Returns the plan of this call. Pure: no clock, no ports, no state that a call changes.
    fn plan(&self, facts: &Facts, args: &Self::Args) -> Plan {
        let _ = (facts, args);
        Plan::of(&Self::META)
    }

    /// Returns the reason to refuse this call before anybody judges its plan; `None` for a call that can be planned. Pure
    /// like the plan.
    fn refusal(&self, args: &Self::Args) -> Option<ToolError> {
        let _ = args;
        None
    }

    /// Runs the call. Everything that touches the world goes through a port of `call`.
    fn run(&self, call: &Call, args: Self::Args) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// A tool, as the registry stores it.
///
/// Only the executor runs one: a tidy check finds any other caller of [`run_erased`](AnyTool::run_erased).
#[async_trait]
pub trait AnyTool: Send + Sync {
    /// Returns the tool's static description.
    fn meta(&self) -> &Meta;

    /// Returns the description for the model.
    fn spec(&self) -> &Spec;

    /// Returns the plan of a call. The arguments satisfy the schema.
    fn plan(&self, facts: &Facts, args: &Value) -> Result<Plan, ToolError>;

    /// Runs the call.
    async fn run_erased(&self, call: &Call, args: Value) -> Result<Output, ToolError>;
}

/// Makes a registry tool of a typed one.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn AnyTool> {
    let meta = T::META;
    let spec = Spec::of::<T::Args>(&meta);
    Arc::new(Erased { tool, meta, spec })
}

struct Erased<T> {
    tool: T,
    meta: Meta,
    spec: Spec,
}

fn misfit(error: &serde_json::Error) -> ToolError {
    ToolError::invalid(format!("the arguments do not fit: {error}"))
}

#[async_trait]
impl<T: Tool> AnyTool for Erased<T> {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn plan(&self, facts: &Facts, value: &Value) -> Result<Plan, ToolError> {
        let args = T::Args::deserialize(value).map_err(|e| misfit(&e))?;
        match self.tool.refusal(&args) {
            Some(error) => Err(error),
            None => Ok(self.tool.plan(facts, &args)),
        }
    }

    async fn run_erased(&self, call: &Call, value: Value) -> Result<Output, ToolError> {
        let args = T::Args::deserialize(value).map_err(|e| misfit(&e))?;
        self.tool.run(call, args).await
    }
}
