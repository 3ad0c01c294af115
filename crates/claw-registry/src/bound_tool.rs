//! A resolved tool, bound to its offer and executor.

use std::sync::Arc;

use claw_core::tool::{Meta, Spec, Unavailable};

use crate::execute::Request;
use crate::{Executor, Offer, Reply};

/// A tool bound to the offer of one caller. Its `execute` takes the same road as every other call.
#[derive(Clone)]
pub struct BoundTool {
    executor: Executor,
    offer: Offer,
    meta: Arc<Meta>,
}

impl BoundTool {
    pub(crate) fn new(executor: Executor, offer: Offer, meta: Arc<Meta>) -> Self {
        Self { executor, offer, meta }
    }

    /// The tool's metadata.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The spec that models are sent, or why the tool cannot be made.
    pub fn spec(&self) -> Result<Spec, Unavailable> {
        let gone = || Unavailable::because("it is no longer in the offer");
        let tool = self.offer.find(self.meta.name.as_str()).ok_or_else(gone)?;
        Ok(self.offer.built(tool)?.spec.clone())
    }

    /// Calls the tool. The request's tool name is replaced by this tool's.
    pub async fn execute(&self, mut request: Request) -> Reply {
        request.tool = self.meta.name.to_string();
        self.executor.execute(&self.offer, request).await
    }
}

impl std::fmt::Debug for BoundTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BoundTool").field(&self.meta.name).finish()
    }
}
