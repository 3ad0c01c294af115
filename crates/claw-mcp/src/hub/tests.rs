mod connection_life;

use async_trait::async_trait;
use claw_core::store::{McpGrant, McpOverrides, McpProgram, McpStore as _, McpSubject, McpTransport};
use claw_core::{NodeId, SecretName};
use claw_registry::CallerTools as _;
use claw_store::SqliteStore;
use claw_testkit::fixture::{NOW, caller};
use claw_testkit::{FakeShell, ManualClock, Reply};
use serde_json::json;

use super::*;
use crate::connection::ConnectionStatus;

struct NoSecrets;

#[async_trait]
impl McpSecrets for NoSecrets {
    async fn secret(
        &self,
        _: &TenantId,
        _: Option<&AgentId>,
        _: &SecretName,
    ) -> Result<Option<SecretString>, StoreError> {
        Ok(None)
    }

    async fn seal(&self, _: &TenantId, _: &SecretName, _: Option<&SecretString>) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A hub over a store in a file, which another process may have open too.
struct Setting {
    hub: Hub,
    here: Arc<SqliteStore>,
    directory: tempfile::TempDir,
}

impl Setting {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let here =
            Arc::new(SqliteStore::open(&directory.path().join("a.db"), NodeId::local()).await.unwrap());
        let hub = Hub::new(HubOptions {
            store: Arc::clone(&here) as _,
            secrets: Arc::new(NoSecrets),
            shell: Arc::new(FakeShell::new(Reply::exits(1, "broken"))),
            directory: directory.path().join("mcp"),
            sandboxed: false,
            threads: 0,
            clock: Arc::new(ManualClock::default()),
        });
        let program = McpProgram { command: "server".into(), ..McpProgram::default() };
        let tenant = TenantId::main();
        here.put_mcp_server(&tenant, &McpServer::new(name(), McpTransport::Stdio(program)), NOW)
            .await
            .unwrap();
        here.put_mcp_grant(&tenant, &grant(), NOW).await.unwrap();
        let tools =
            BTreeMap::from([("t".to_owned(), json!({"name": "t", "inputSchema": {"type": "object"}}))]);
        here.list_mcp_tools(&tenant, &name(), &tools, NOW).await.unwrap();
        Self { hub, here, directory }
    }

    /// The same store, opened a second time: its changes are not announced here.
    async fn elsewhere(&self) -> SqliteStore {
        SqliteStore::open(&self.directory.path().join("a.db"), NodeId::local()).await.unwrap()
    }

    /// The reason why a call is refused; `None` if it is not.
    async fn refused(&self) -> Option<String> {
        let connection = self.hub.connection_for(&caller(), &name(), "t").await;
        connection.err().map(|error| error.message)
    }

    /// The seconds after which the road ends a call of the server's tool.
    async fn road_limit(&self) -> Option<u32> {
        let layer = self.hub.tools().layer(&caller()).await.unwrap_or_else(|why| panic!("{}", why.0));
        let mut limits = layer.tools().iter().filter(|tool| tool.meta().name.as_str() == "mcp_s_t");
        limits.next().and_then(|tool| tool.meta().timeout_secs)
    }
}

fn name() -> ServerName {
    ServerName::new("s").unwrap()
}

fn grant() -> McpGrant {
    McpGrant::new(name(), McpSubject::Agent(caller().agent))
}

#[tokio::test]
async fn refuses_calls_after_a_revocation_whose_notice_has_not_arrived() {
    let setting = Setting::new().await;
    let (elsewhere, tenant) = (setting.elsewhere().await, TenantId::main());
    // The snapshot of the tenant's servers is there.
    setting.hub.servers(&tenant).await.unwrap();
    assert_eq!(setting.refused().await, None);
    elsewhere.remove_mcp_grant(&tenant, &name(), &grant().subject).await.unwrap();
    let why = setting.refused().await.unwrap();
    assert!(why.contains("neither the agent nor the user has a grant"), "{why}");

    let narrow = McpGrant { tool_allow: Some(vec!["other".into()]), ..grant() };
    elsewhere.put_mcp_grant(&tenant, &narrow, NOW).await.unwrap();
    let why = setting.refused().await.unwrap();
    assert!(why.contains("its grant does not cover the tool"), "{why}");

    elsewhere.put_mcp_grant(&tenant, &grant(), NOW).await.unwrap();
    assert_eq!(setting.refused().await, None);
    let server = elsewhere.mcp_servers(&tenant).await.unwrap().remove(0);
    elsewhere.put_mcp_server(&tenant, &McpServer { enabled: false, ..server }, NOW).await.unwrap();
    let why = setting.refused().await.unwrap();
    assert!(why.contains("removed or disabled"), "{why}");
}

#[tokio::test]
async fn an_agents_own_longer_time_is_not_cut_at_the_servers() {
    let setting = Setting::new().await;
    assert_eq!(setting.road_limit().await, Some(75));
    let own = McpOverrides { timeout_secs: Some(300), ..McpOverrides::default() };
    let longer = McpGrant { config_overrides: own, ..grant() };
    let put = async |grant: &McpGrant| {
        setting.here.put_mcp_grant(&TenantId::main(), grant, NOW).await.unwrap();
        let call = setting.hub.connection_for(&caller(), &name(), "t").await;
        call.ok().map(|(_, limit)| limit.as_secs())
    };
    assert_eq!(put(&longer).await, Some(300));
    assert_eq!(setting.road_limit().await, Some(315));
    // A disabled grant gives nobody more time, and a shorter time of one agent takes none from others.
    assert_eq!(put(&McpGrant { enabled: false, ..longer.clone() }).await, None);
    let other = McpSubject::Agent(AgentId::new("other").unwrap());
    let shorter = McpOverrides { timeout_secs: Some(5), ..McpOverrides::default() };
    put(&McpGrant { subject: other, config_overrides: shorter, ..grant() }).await;
    put(&grant()).await;
    assert_eq!(setting.road_limit().await, Some(75));
}

#[tokio::test]
async fn shows_a_server_that_cannot_be_reached_with_its_reason_and_next_try() {
    let setting = Setting::new().await;
    let tenant = TenantId::main();
    assert!(setting.hub.states(&tenant).is_empty());
    let (connection, _) = setting.hub.connection_for(&caller(), &name(), "t").await.unwrap();
    assert_eq!(setting.hub.states(&tenant)[&name()][0].state, ConnectionStatus::Idle);
    assert!(connection.live().await.is_err());
    let states = setting.hub.states(&tenant);
    let [state] = &states[&name()][..] else { panic!("{states:?}") };
    assert_eq!((state.state, state.attempts), (ConnectionStatus::Waiting, 1));
    assert!(state.reason.is_some() && state.next_try.is_some(), "{state:?}");
    assert!(setting.hub.states(&claw_testkit::fixture::tenant("other")).is_empty());
    connection.close();
    assert!(setting.hub.states(&tenant)[&name()].is_empty());
}

#[tokio::test]
async fn a_tool_that_did_not_change_is_the_same_one_in_running_sessions() {
    let setting = Setting::new().await;
    let tool = async || {
        let layer = setting.hub.tools().layer(&caller()).await.unwrap_or_else(|why| panic!("{}", why.0));
        let tool = layer.tools().iter().find(|tool| tool.meta().name.as_str() == "mcp_s_t").cloned();
        (layer, tool.unwrap())
    };
    let (layer, before) = tool().await;
    let list = async |names: &[&str]| {
        let tools = names.iter().map(|name| {
            let definition = json!({ "name": name, "inputSchema": { "type": "object" } });
            ((*name).to_owned(), definition)
        });
        setting.here.list_mcp_tools(&TenantId::main(), &name(), &tools.collect(), NOW).await.unwrap();
    };
    list(&["t"]).await;
    assert!(Arc::ptr_eq(&layer, &tool().await.0), "nothing changed");
    list(&["t", "other"]).await;
    let (more, same) = tool().await;
    assert!(Arc::ptr_eq(&before, &same) && more.tools().len() == 2);
}

/// A gateway makes a hub with each reload.
#[tokio::test]
async fn a_hub_that_is_gone_leaves_no_task_behind() {
    let Setting { hub, here: _store, .. } = Setting::new().await;
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let tools = hub.tools();
    let yields = async || {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    };
    // The task has seen the changes before it, and waits for the next one, which does not come.
    yields().await;
    assert_eq!(tasks(), before + 1);
    drop((hub, tools));
    yields().await;
    assert_eq!(tasks(), before);
}
