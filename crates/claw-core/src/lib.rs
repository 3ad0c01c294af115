//! The vocabulary of Clawsmith, and the interfaces between its parts.
//!
//! Everything else depends on this crate, and this crate depends on nothing of ours. It does no I/O, holds no
//! SQL and speaks no HTTP. It defines [tools](tool), [calls](tool::Call), the [ports](port) a tool may ask,
//! the [stores](store) and the [events](event).
//!
//! Read [`tool`] first.

pub mod attachment;
pub mod counted;
pub mod did_you_mean;
pub mod event;
pub mod graph;
pub mod id;
pub mod image;
pub mod media_type;
pub mod message;
pub mod own_listen_addresses;
pub mod port;
pub mod provenance;
pub mod rank_texts;
pub mod redact;
pub mod skill;
pub mod store;
pub mod text;
pub mod tool;
pub mod untrusted_fence;

pub use id::{
    AccessRequestId, AgentId, ApprovalId, ArtifactId, BootId, CallId, EntityId, InstallationId, InvalidId,
    JobId, KeyId, MessageId, NodeId, ProcessId, ProgramName, RelationId, RuleId, SecretName, ServerName,
    SessionKey, SkillName, TenantId, ToolName, UndoId, UsageId, UserId,
};
