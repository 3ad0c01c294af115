//! The trait that people write, and the one that the registry stores.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::Value;

use super::{Call, Facts, Meta, Output, Plan, Spec, ToolError};

/// A tool, as its author writes it. Shared by all calls, so it holds no state of a call.
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Their schema is what the model is sent, so field docs are for the model.
    type Args: DeserializeOwned + JsonSchema + Send;

    /// What is known of it beforehand.
    const META: Meta;

    /// What this call would do. Pure: no clock, no ports, no state that a call changes.
    fn plan(&self, facts: &Facts, args: &Self::Args) -> Plan {
        let _ = (facts, args);
        Plan::of(&Self::META)
    }

    /// Does it. Whatever touches the world goes through a port of `call`.
    fn run(&self, call: &Call, args: Self::Args) -> impl Future<Output = Result<Output, ToolError>> + Send;
}

/// A tool, as the registry stores it.
///
/// Only the road runs one: whoever else calls [`run_erased`](AnyTool::run_erased) is found by a tidy check.
#[async_trait]
pub trait AnyTool: Send + Sync {
    /// Its name, place and ceiling.
    fn meta(&self) -> &Meta;

    /// What the model is sent of it.
    fn spec(&self) -> &Spec;

    /// What a call with these arguments would do. The arguments satisfy the schema.
    fn plan(&self, facts: &Facts, args: &Value) -> Result<Plan, ToolError>;

    /// Does it.
    async fn run_erased(&self, call: &Call, args: Value) -> Result<Output, ToolError>;
}

/// Makes a typed tool fit for the registry.
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
        Ok(self.tool.plan(facts, &args))
    }

    async fn run_erased(&self, call: &Call, value: Value) -> Result<Output, ToolError> {
        let args = T::Args::deserialize(value).map_err(|e| misfit(&e))?;
        self.tool.run(call, args).await
    }
}
