//! Grants of MCP servers that another process changes: the next question has the new ones, although grants are kept.

use std::path::Path;

use claw_core::port::UnixMillis;
use claw_core::store::{McpEndpoint, McpGrant, McpServer, McpStore as _, McpSubject, McpTransport};
use claw_core::{AgentId, NodeId, ServerName, TenantId};
use claw_store::SqliteStore;
use tempfile::TempDir;

const NOW: UnixMillis = UnixMillis(1);

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, NodeId::local()).await.unwrap()
}

fn github() -> ServerName {
    ServerName::new("github").unwrap()
}

fn agent() -> AgentId {
    AgentId::new("default").unwrap()
}

fn subject() -> McpSubject {
    McpSubject::Agent(agent())
}

async fn put_server(store: &SqliteStore) {
    let endpoint = McpEndpoint {
        url: "https://mcp.example".to_owned(),
        headers: Vec::new(),
        private: false,
        oauth: None,
    };
    let server = McpServer::new(github(), McpTransport::Http(endpoint));
    store.put_mcp_server(&TenantId::main(), &server, NOW).await.unwrap();
}

async fn grant(store: &SqliteStore) {
    store.put_mcp_grant(&TenantId::main(), &McpGrant::new(github(), subject()), NOW).await.unwrap();
}

async fn revoke(store: &SqliteStore) {
    assert!(store.remove_mcp_grant(&TenantId::main(), &github(), &subject()).await.unwrap());
}

async fn is_granted(store: &SqliteStore) -> bool {
    let access = store.mcp_access(&TenantId::main(), &github(), &agent(), None).await.unwrap().unwrap();
    !access.grants.is_empty()
}

/// A store behaves to another one on the same file as two processes do: they share nothing but the files.
#[tokio::test]
async fn a_grant_that_another_process_revoked_holds_for_no_further_call() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let (here, there) = (open(&path).await, open(&path).await);
    put_server(&there).await;
    for round in 0..100 {
        grant(&there).await;
        assert!(is_granted(&here).await && is_granted(&here).await, "round {round}");
        revoke(&there).await;
        assert!(!is_granted(&here).await && !is_granted(&here).await, "round {round}");
    }
}

#[tokio::test]
async fn a_revocation_holds_though_the_mark_was_deleted_or_replaced() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("claw.db");
    let mark = directory.path().join("claw.db-mark");
    let here = open(&path).await;
    put_server(&here).await;
    grant(&here).await;
    assert!(is_granted(&here).await);
    std::fs::remove_file(&mark).unwrap();
    // Makes a mark of its own, which the first does not know.
    let there = open(&path).await;
    revoke(&there).await;
    assert!(mark.exists());
    assert!(!is_granted(&here).await);
}

#[tokio::test]
async fn a_mark_that_is_a_link_is_not_followed() {
    let directory = TempDir::new().unwrap();
    let (path, other) = (directory.path().join("claw.db"), directory.path().join("other"));
    std::fs::write(&other, "not ours, and longer than a mark").unwrap();
    std::os::unix::fs::symlink(&other, directory.path().join("claw.db-mark")).unwrap();
    let (here, there) = (open(&path).await, open(&path).await);
    put_server(&there).await;
    grant(&there).await;
    assert!(is_granted(&here).await);
    revoke(&there).await;
    assert!(!is_granted(&here).await);
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "not ours, and longer than a mark");
}
