//! A skills port with one skill.

use std::sync::Arc;

use async_trait::async_trait;
use claw_core::SkillName;
use claw_core::port::{OpenedSkill, PublishedSkill, SkillRequest, Skills};
use claw_core::skill::{SkillCard, SkillManifest, SkillState, SkillTier};
use claw_core::tool::{Digest, ToolError};

use crate::fixture::Fixture;

pub(crate) struct OneSkill;

impl OneSkill {
    /// A fixture whose calls have this port.
    pub(crate) fn fixture() -> Fixture {
        let mut fixture = Fixture::new();
        fixture.ports.skills = Some(Arc::new(Self));
        fixture
    }
}

#[async_trait]
impl Skills for OneSkill {
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<SkillCard>, ToolError> {
        let card = SkillCard {
            name: "pdf-forms".to_owned(),
            description: "Fill PDF forms.".to_owned(),
            tier: SkillTier::Store,
            source: "version 2".to_owned(),
            digest: None,
            state: SkillState::Usable,
        };
        Ok([card].into_iter().filter(|_| query.contains("pdf")).take(limit).collect())
    }

    async fn open(&self, name: &SkillName) -> Result<OpenedSkill, ToolError> {
        if name.as_str() != "pdf-forms" {
            return Err(ToolError::not_found(format!("there is no skill `{name}`")));
        }
        let manifest = SkillManifest {
            name: name.clone(),
            description: "Fill PDF forms.".to_owned(),
            license: None,
            compatibility: Some("Python 3".to_owned()),
            metadata: Default::default(),
            allowed_tools: Some(vec!["Read".to_owned(), "Bash(python3:*)".to_owned()]),
        };
        Ok(OpenedSkill {
            manifest,
            body: "# Forms\n\nRun the script.\n".to_owned(),
            tier: SkillTier::Store,
            digest: Digest::of_bytes(b"x"),
            directory: "/data/skills/abc/pdf-forms".into(),
            files: vec![("scripts/fill.py".to_owned(), 120)],
        })
    }

    async fn end(&self) -> Result<Option<SkillName>, ToolError> {
        Ok(SkillName::new("pdf-forms").ok())
    }

    async fn publish(&self, request: &SkillRequest) -> Result<PublishedSkill, ToolError> {
        Ok(PublishedSkill {
            name: SkillName::new("pdf-forms").map_err(ToolError::internal)?,
            version: 3,
            digest: Digest::of_bytes(b"x"),
            visibility: request.visibility,
            findings: vec!["SKILL.md:4: hides something: silently".to_owned()],
        })
    }
}
