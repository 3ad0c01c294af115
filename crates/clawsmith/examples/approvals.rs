//! Approvals inside a program: an approver sees what a call would do, and says yes or no.

use std::collections::BTreeMap;

use clawsmith::policy::approval::EffectRule;
use clawsmith::store::Approval;
use clawsmith::{
    AgentId, ApprovalAnswer, ApprovalConfig, Approver, Caller, Effect, Request, SessionKey, Toolbox,
};
use serde_json::json;

/// Lets notes be written, and nothing else.
struct NotesOnly;

#[async_trait::async_trait]
impl Approver for NotesOnly {
    async fn answer(&self, approval: &Approval) -> ApprovalAnswer {
        // A program for people would show these lines and wait for a click.
        println!("{} wants to:\n{}", approval.request.tool, approval.request.summary);
        match approval.request.summary.contains("write notes.txt") {
            true => ApprovalAnswer::yes("the program"),
            false => ApprovalAnswer::no("the program").because("only notes are written here"),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> anyhow::Result<()> {
    let workspace = tempfile::tempdir()?;
    let effects = BTreeMap::from([(Effect::Write, EffectRule::Ask)]);
    let asks_before_writes = ApprovalConfig { effects, ..ApprovalConfig::default() };
    let toolbox = Toolbox::builder().approvals(asks_before_writes).approver(NotesOnly).build()?;
    let caller =
        Caller::new(AgentId::new("demo")?, SessionKey::new("example:6")?, workspace.path().canonicalize()?);
    let offer = toolbox.offer(caller).await;

    let write = |path: &str| Request::new("write_file", json!({ "path": path, "content": "hello\n" }));
    let reply = toolbox.execute(&offer, write("notes.txt")).await;
    println!("notes.txt: {}", reply.model_text());
    assert!(reply.is_done() && workspace.path().join("notes.txt").exists());

    let reply = toolbox.execute(&offer, write("main.rs")).await;
    println!("main.rs: {}", reply.model_text());
    assert!(reply.model_text().contains("only notes are written here"));
    assert!(!workspace.path().join("main.rs").exists());
    Ok(())
}
