//! Placeholders for sessions, skills and memory while no store is open: the tools that need them are listed,
//! and none of them is called.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use claw_core::port::{
    ActiveSkills, GraphFound, GraphHost, GraphQuery, MemoryFound, MemoryHost, MemoryPart, MemoryQuery,
    MemoryReader, MemoryText, OpenedSkill, Owner, Posted, PublishedSkill, SkillHost, Talk, TalkFigures,
    TalkHost, TalkLine, TalkLines, TalkPage,
};
use claw_core::skill::{SkillCard, SkillPackage};
use claw_core::store::{Circle, SkillVisibility, StoreError};
use claw_core::tool::{Caller, ErrorKind, ToolError};
use claw_core::{JobId, SessionKey, SkillName, TenantId};

/// Stands in for the store's sessions and skills.
pub(crate) struct Unopened;

fn unopened() -> ToolError {
    ToolError::new(ErrorKind::Unavailable, "no store is open")
        .try_instead("call the tool with `clawsmith tools call`")
}

#[async_trait]
impl TalkHost for Unopened {
    async fn list(&self, _: &TenantId, _: &Circle, _: &TalkPage) -> Result<Vec<Talk>, ToolError> {
        Err(unopened())
    }

    async fn history(
        &self,
        _: &TenantId,
        _: &Circle,
        _: &SessionKey,
        _: TalkLines,
    ) -> Result<Option<Vec<TalkLine>>, ToolError> {
        Err(unopened())
    }

    async fn workspace(&self, _: &Caller, _: &SessionKey) -> Result<Option<PathBuf>, ToolError> {
        Err(unopened())
    }

    async fn send(&self, _: &Caller, _: &SessionKey, _: &str) -> Result<Posted, ToolError> {
        Err(unopened())
    }

    async fn figures(&self, _: &Owner) -> Result<TalkFigures, ToolError> {
        Err(unopened())
    }
}

#[async_trait]
impl SkillHost for Unopened {
    async fn skills(&self, _: &Caller) -> Result<Vec<SkillCard>, ToolError> {
        Err(unopened())
    }

    async fn search(&self, _: &Caller, _: &str, _: usize) -> Result<Vec<SkillCard>, ToolError> {
        Err(unopened())
    }

    async fn open(&self, _: &Caller, _: Option<JobId>, _: &SkillName) -> Result<OpenedSkill, ToolError> {
        Err(unopened())
    }

    async fn end(&self, _: &Caller, _: Option<JobId>) -> Result<Option<SkillName>, ToolError> {
        Err(unopened())
    }

    async fn active(&self, _: &Owner, _: Option<JobId>) -> Result<Arc<ActiveSkills>, StoreError> {
        Ok(Arc::default())
    }

    async fn pack(&self, _: &Caller, _: &str) -> Result<SkillPackage, ToolError> {
        Err(unopened())
    }

    async fn publish(
        &self,
        _: &Caller,
        _: SkillPackage,
        _: SkillVisibility,
        _: Vec<String>,
    ) -> Result<PublishedSkill, ToolError> {
        Err(unopened())
    }
}

#[async_trait]
impl MemoryHost for Unopened {
    async fn search(&self, _: &MemoryReader, _: &MemoryQuery) -> Result<MemoryFound, ToolError> {
        Err(unopened())
    }

    async fn get(&self, _: &MemoryReader, _: &MemoryPart) -> Result<Option<MemoryText>, ToolError> {
        Err(unopened())
    }

    async fn paths(&self, _: &MemoryReader) -> Result<Vec<String>, ToolError> {
        Err(unopened())
    }
}

#[async_trait]
impl GraphHost for Unopened {
    async fn search(&self, _: &MemoryReader, _: &GraphQuery) -> Result<GraphFound, ToolError> {
        Err(unopened())
    }
}
