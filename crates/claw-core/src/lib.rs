//! The vocabulary of Clawsmith, and the seams between its parts.
//!
//! Everything else depends on this crate and this crate on nothing of ours. It does no I/O, holds no SQL
//! and speaks no HTTP: it says what a [tool] is, what a [call](tool::Call) carries, which
//! [ports](port) a tool may ask, what the [stores](store) must remember and which [events](event) are told.
//!
//! Read [`tool`] first.

pub mod attachment;
pub mod event;
pub mod graph;
pub mod id;
pub mod image;
pub mod message;
pub mod port;
pub mod redact;
pub mod search;
pub mod skill;
pub mod store;
pub mod text;
pub mod tool;

pub use id::{
    AccessRequestId, AgentId, ApprovalId, ArtifactId, BootId, CallId, EntityId, InstallationId, InvalidId,
    JobId, KeyId, MessageId, NodeId, ProcessId, ProgramName, RelationId, RuleId, SecretName, ServerName,
    SessionKey, SkillName, TenantId, ToolName, UndoId, UsageId, UserId,
};
