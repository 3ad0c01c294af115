use std::path::Path;

use claw_core::SessionKey;
use claw_core::port::UnixMillis;
use claw_core::store::{McpProgram, McpServer, McpTransport};
use serde_json::json;

use super::*;
use crate::app::Setup;
use crate::config::Surroundings;

/// A source of the tools in the directory `tools`, whose look at the files is moved by hand.
struct Looked {
    source: CustomToolSource,
    home: tempfile::TempDir,
}

impl Looked {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("tools")).unwrap();
        let config = home.path().join("own.toml");
        std::fs::write(&config, "[custom_tools]\ndirectory = \"tools\"\n").unwrap();
        let around = Surroundings {
            directory: home.path().to_owned(),
            variables: vec![("HOME".into(), home.path().into())],
        };
        let app = Setup::read(Some(&config), &around).unwrap().open().await.unwrap();
        Self { source: CustomToolSource::new(&app).unwrap(), home }
    }

    fn write(&self, name: &str, definition: &str) {
        std::fs::write(self.home.path().join("tools").join(format!("{name}.json")), definition).unwrap();
    }

    /// Defines a tool that says hello.
    fn define(&self, name: &str) {
        let definition = json!({ "name": name, "description": "Says hello.", "command": "echo hello" });
        self.write(name, &definition.to_string());
    }

    /// The names of the tools, after so many seconds.
    async fn names_after(&self, seconds: u64) -> Vec<String> {
        let passed = Duration::from_secs(seconds);
        {
            let mut read = self.source.files.lock().await;
            read.looked = read.looked.checked_sub(passed).unwrap();
            if let Some((_, at)) = &mut read.again {
                *at = at.checked_sub(passed).unwrap();
            }
        }
        let session = SessionKey::new("cli:x").unwrap();
        let caller = Caller::new(AgentId::new("default").unwrap(), session, Path::new("/w"));
        let layer = self.source.layer(&caller).await.unwrap_or_else(|why| panic!("{}", why.0));
        layer.tools().iter().map(|tool| tool.meta().name.to_string()).collect()
    }
}

#[tokio::test]
async fn a_file_whose_tool_is_named_like_a_servers_is_read_once_the_server_is_gone() {
    let looked = Looked::new().await;
    looked.define("one");
    assert_eq!(looked.names_after(2).await, ["one"]);
    let (store, tenant) = (Arc::clone(&looked.source.store), TenantId::main());
    let program = McpProgram { command: "server".into(), ..McpProgram::default() };
    let name = claw_core::ServerName::new("x").unwrap();
    let mut server = McpServer::new(name.clone(), McpTransport::Stdio(program));
    server.prefix = Some("x_".to_owned());
    store.put_mcp_server(&tenant, &server, UnixMillis(1)).await.unwrap();
    looked.define("x_read");
    assert_eq!(looked.names_after(2).await, ["one"]);
    store.remove_mcp_server(&tenant, &name).await.unwrap();
    assert_eq!(looked.names_after(2).await, ["one"], "the store is not asked each second");
    assert_eq!(looked.names_after(30).await, ["one", "x_read"]);
}

#[tokio::test]
async fn a_wrong_file_is_read_again_when_it_changes() {
    let looked = Looked::new().await;
    looked.write("one", "{");
    assert_eq!(looked.names_after(2).await, [""; 0]);
    let read = looked.source.files.lock().await;
    assert!(read.again.is_none() && read.seen.len() == 1, "another try would fail again");
    drop(read);
    looked.define("one");
    assert_eq!(looked.names_after(2).await, ["one"]);
}
