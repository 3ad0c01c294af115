//! Which models there are: a script that was named, or the demo where no provider is set up.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::TenantId;
use claw_core::port::{Model, ModelError, Models};
use claw_llm::{Script, Scripted};

use crate::failure::Failure;

/// One model, that of a script.
pub(super) struct LocalModels(Arc<dyn Model>);

impl LocalModels {
    /// The script in this file, or the demo.
    pub(super) fn new(script: Option<&Path>) -> Result<Self, Failure> {
        let (name, script) = match script {
            Some(path) => ("script", Script::read(path).map(Arc::new)),
            None => ("demo", Script::demo()),
        };
        let script = script.map_err(|error| Failure::usage("the script cannot be played").because(error))?;
        Ok(Self(Arc::new(Scripted::new("script", name, script))))
    }
}

#[async_trait]
impl Models for LocalModels {
    async fn model(
        &self,
        _: &TenantId,
        _: Option<&str>,
        _: Option<&str>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        Ok(Arc::clone(&self.0))
    }
}
