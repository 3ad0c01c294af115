//! Two tenants with an agent `a` each: nothing of one is seen by the other.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails loudly")]

use std::time::Duration;

use claw_core::image::Image;
use claw_core::message::Part;
use claw_core::port::{Clock as _, Owner};
use claw_core::store::{
    AgentKind, AgentSetup, AgentWrite, DocumentKey, RunEnd, RunEvent, SecretPlace, SessionEventBody, Shelf,
    Tenant,
};
use claw_core::{AgentId, JobId, SecretName, SessionKey, TenantId, UserId};
use claw_host::SystemClock;
use clawsmith::app::{App, Followed, Hooks, SessionsOptions, Setup};
use clawsmith::config::Surroundings;
use clawsmith::{Asking, Caller, Request, Toolbox};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// The deployment's own tenant is `main`, with an agent `a` in the configuration; `other` is in the store.
struct Deployment {
    app: App,
    _home: TempDir,
}

const CONFIG: &str = "
[agents.a]
name = \"Ours\"
deny = [\"write_file\"]
";

fn agent() -> AgentId {
    AgentId::new("a").unwrap()
}

fn session() -> SessionKey {
    SessionKey::new("cli:x").unwrap()
}

fn other() -> TenantId {
    TenantId::new("other").unwrap()
}

impl Deployment {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        std::fs::write(&file, CONFIG).unwrap();
        let around = Surroundings {
            directory: home.path().join("w"),
            variables: vec![("HOME".into(), home.path().into())],
        };
        std::fs::create_dir(&around.directory).unwrap();
        let app = Setup::load(Some(&file), &around).unwrap().open().await.unwrap();
        let tenant = Tenant {
            id: other(),
            name: "Other".to_owned(),
            created: SystemClock.now(),
            disabled: false,
            policy: json!({ "deny": ["edit"] }),
        };
        assert!(app.store().add_tenant(tenant).await.unwrap());
        let setup = AgentSetup {
            name: "Theirs".to_owned(),
            kind: AgentKind::Predefined,
            provider: None,
            model: None,
            policy: json!({ "deny": ["read_file"], "also_allow": ["write_file"] }),
            other_config: Map::new(),
        };
        app.store()
            .put_agent(&other(), &agent(), AgentWrite { setup, seen: None }, SystemClock.now())
            .await
            .unwrap();
        Self { app, _home: home }
    }

    fn caller(&self, tenant: &TenantId) -> Caller {
        let mut caller = Caller::new(agent(), session(), self.app.setup().around.directory.clone());
        caller.tenant = tenant.clone();
        caller.user = Some(UserId::new("ann").unwrap());
        caller
    }

    async fn toolbox(&self) -> Toolbox {
        self.app.toolbox(Hooks::default()).await.unwrap()
    }

    async fn names(&self, toolbox: &Toolbox, tenant: &TenantId) -> Vec<String> {
        toolbox.offer(self.caller(tenant)).await.names().iter().map(ToString::to_string).collect()
    }
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|one| one == name)
}

#[tokio::test]
async fn no_rule_of_one_tenant_holds_for_the_other() {
    let deployment = Deployment::new().await;
    let toolbox = deployment.toolbox().await;
    let ours = deployment.names(&toolbox, &TenantId::main()).await;
    assert!(!has(&ours, "write_file") && has(&ours, "read_file") && has(&ours, "edit"), "{ours:?}");
    let theirs = deployment.names(&toolbox, &other()).await;
    assert!(!has(&theirs, "read_file") && !has(&theirs, "edit"), "its own rules: {theirs:?}");
    assert!(has(&theirs, "write_file"), "our agent's rules are not theirs: {theirs:?}");
    let offer = toolbox.offer(deployment.caller(&other())).await;
    let reply = toolbox.execute(&offer, Request::new("read_file", json!({ "path": "x" }))).await;
    assert!(reply.refusal().is_some(), "{}", reply.model_text());
}

#[tokio::test]
async fn a_tenants_agent_cannot_give_itself_what_the_deployment_denies() {
    let deployment = Deployment::new().await;
    let mut setup = deployment.app.setup().clone();
    setup.loaded.config.tools.deny = vec!["write_file".to_owned()];
    deployment.app.close().await;
    let app = setup.open().await.unwrap();
    let toolbox = app.toolbox(Hooks::default()).await.unwrap();
    let theirs = deployment.names(&toolbox, &other()).await;
    assert!(!has(&theirs, "write_file"), "`also_allow` of a tenant's agent brings nothing back: {theirs:?}");
}

#[tokio::test]
async fn who_an_agent_is_is_answered_for_its_tenant() {
    let deployment = Deployment::new().await;
    let name = async |tenant: &TenantId| {
        let views = deployment.app.agents(tenant).await.unwrap();
        (views.len(), views[0].agent.name.clone(), views[0].agent.kind)
    };
    assert_eq!(name(&TenantId::main()).await, (1, "Ours".to_owned(), AgentKind::Open));
    assert_eq!(name(&other()).await, (1, "Theirs".to_owned(), AgentKind::Predefined));
}

#[tokio::test]
async fn a_secret_of_one_tenant_is_hidden_for_it_alone() {
    let deployment = Deployment::new().await;
    let vault = deployment.app.vault().await.unwrap();
    let place = SecretPlace { tenant: other(), agent: None, name: SecretName::new("KEY").unwrap() };
    let value = "hunter2-and-more";
    vault.put_secret(&place, &SecretString::from(value), SystemClock.now()).await.unwrap();
    let toolbox = deployment.toolbox().await;
    let scrubbed = |tenant: &TenantId| toolbox.scrubbers().for_tenant(tenant).text(value);
    assert!(!scrubbed(&other()).contains(value));
    assert_eq!(
        scrubbed(&TenantId::main()),
        value,
        "it is no secret of ours, and we do not learn that it is one"
    );
}

#[tokio::test]
async fn an_image_with_a_secret_is_sent_by_nobody_whose_secret_it_is() {
    let deployment = Deployment::new().await;
    let sessions = deployment.app.sessions(SessionsOptions::default()).await.unwrap();
    let value = "hunter2-and-more";
    sessions.deployment().executor.scrubbers().add_for(&other(), value).unwrap();
    let png = [&b"\x89PNG\r\n\x1a\n\0"[..], value.as_bytes(), b"\0"].concat();
    let send = async |tenant: &TenantId, image: Image| {
        sessions.send(&deployment.caller(tenant), vec![Part::Image(image)], Asking::Impossible).await
    };
    let refused = send(&other(), Image::new("image/png", png.clone())).await.unwrap_err();
    assert!(refused.to_string().contains("holds a secret"), "{refused}");
    send(&TenantId::main(), Image::new("image/png", png)).await.unwrap();
    let lies = send(&TenantId::main(), Image::new("image/png", &b"text"[..])).await.unwrap_err();
    assert!(format!("{lies:?}").contains("claimed to be"), "{lies:?}");
    sessions.end(None).await.unwrap();
}

/// A process that is at work hides a secret that another one sets.
#[tokio::test]
async fn a_secret_that_is_set_elsewhere_is_hidden_here() {
    let deployment = Deployment::new().await;
    let sessions = deployment.app.sessions(SessionsOptions::default()).await.unwrap();
    let elsewhere = deployment.app.setup().open().await.unwrap();
    let vault = elsewhere.vault().await.unwrap();
    let place = SecretPlace { tenant: TenantId::main(), agent: None, name: SecretName::new("KEY").unwrap() };
    let value = "hunter2-and-more";
    vault.put_secret(&place, &SecretString::from(value), SystemClock.now()).await.unwrap();
    let executor = sessions.deployment().executor.clone();
    let hidden = async {
        while executor.scrubbers().for_tenant(&TenantId::main()).text(value).contains(value) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), hidden).await.expect("it is hidden");
    sessions.end(None).await.unwrap();
}

#[tokio::test]
async fn events_of_one_tenant_are_not_followed_by_the_other() {
    let deployment = Deployment::new().await;
    let sessions = deployment.app.sessions(SessionsOptions::default()).await.unwrap();
    let follow = async |tenant: &TenantId| {
        sessions.follow(Owner { tenant: tenant.clone(), session: session() }, Some(0)).await.unwrap()
    };
    let (mut ours, mut theirs) = (follow(&TenantId::main()).await, follow(&other()).await);
    let event = SessionEventBody::Run { run: JobId::new(), state: RunEvent::Ended { end: RunEnd::Answered } };
    let store = deployment.app.store();
    store.log_event(&other(), &session(), SystemClock.now(), event.clone()).await.unwrap();
    match theirs.next().await.unwrap() {
        Followed::Event(found) => assert_eq!(found.what, event),
        other => panic!("{other:?}"),
    }
    let heard = tokio::time::timeout(Duration::from_millis(300), ours.next()).await;
    assert!(heard.is_err(), "the same session key of another tenant: {heard:?}");
    sessions.end(None).await.unwrap();
}

#[tokio::test]
async fn a_document_of_one_tenant_is_not_read_by_the_other() {
    let deployment = Deployment::new().await;
    let mut setup = deployment.app.setup().clone();
    setup.loaded.config.files.context = clawsmith::config::ContextFiles::Store;
    deployment.app.close().await;
    let app = setup.open().await.unwrap();
    let key = DocumentKey {
        tenant: other(),
        agent: Some(agent()),
        user: None,
        shelf: Shelf::Context,
        path: "SOUL.md".to_owned(),
    };
    app.store().put_document(&key, "their soul", None, SystemClock.now()).await.unwrap();
    let toolbox = app.toolbox(Hooks::default()).await.unwrap();
    let found = async |tenant: &TenantId, tool: &str, args: Value| {
        let offer = toolbox.offer(deployment.caller(tenant)).await;
        toolbox.execute(&offer, Request::new(tool, args)).await.model_text()
    };
    let ours = found(&TenantId::main(), "read_file", json!({ "path": "SOUL.md" })).await;
    assert!(!ours.contains("their soul"), "{ours}");
    let theirs = found(&other(), "list_files", json!({ "path": "." })).await;
    assert!(theirs.contains("SOUL.md"), "{theirs}");
    let listed = found(&TenantId::main(), "list_files", json!({ "path": "." })).await;
    assert!(!listed.contains("SOUL.md"), "{listed}");
}
