//! Two tenants with an agent `a` each: nothing of one is seen by the other. Processes over one store: a secret or a rule of
//! one holds in all.

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
use claw_testkit::postgres::Database;
use clawsmith::app::custom::CustomToolDocument;
use clawsmith::app::{App, Followed, Following, Hooks, SessionsOptions, Setup};
use clawsmith::config::Surroundings;
use clawsmith::{Asking, Caller, Executor, Request, Toolbox};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// The deployment's own tenant is `main`, with an agent `a` in the configuration; `other` is in the store.
struct Deployment {
    app: App,
    _home: TempDir,
    _database: Option<Database>,
}

const CONFIG: &str = "
[agents.a]
name = \"Ours\"
deny = [\"write_file\"]

[agents.ours]
";

/// The longest that a change of another process may take to hold here. A second is promised; a machine that runs other tests
/// gets more.
const PROMISED: Duration = Duration::from_secs(10);

/// A value that is made a secret.
const VALUE: &str = "hunter2-and-more";

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
        Self::over(None).await
    }

    /// Runs a test on SQLite and on PostgreSQL.
    async fn on_both(test: impl AsyncFn(&Self)) {
        test(&Self::new().await).await;
        if let Some(database) = Database::new() {
            test(&Self::over(Some(database)).await).await;
        }
    }

    async fn over(database: Option<Database>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("config.toml");
        let store = database.as_ref().map(|database| format!("[store]\nurl = \"{}\"\n", database.url()));
        std::fs::write(&file, format!("{CONFIG}{}", store.unwrap_or_default())).unwrap();
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
        Self { app, _home: home, _database: database }
    }

    /// Opens the same deployment as another process does.
    async fn elsewhere(&self) -> App {
        self.app.setup().open().await.unwrap()
    }

    async fn followed(&self) -> (Toolbox, Following) {
        self.app.followed_toolbox(Hooks::default()).await.unwrap()
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

async fn put_secret(app: &App, tenant: &TenantId, value: &str) {
    let place = SecretPlace { tenant: tenant.clone(), agent: None, name: SecretName::new("KEY").unwrap() };
    app.vault().await.unwrap().put_secret(&place, &value.into(), SystemClock.now()).await.unwrap();
}

fn hides(executor: &Executor, tenant: &TenantId, value: &str) -> bool {
    !executor.scrubbers().for_tenant(tenant).text(value).contains(value)
}

/// Waits until a change of another process holds here.
async fn soon(what: &str, holds: impl AsyncFn() -> bool) {
    let held = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PROMISED, held).await.is_ok(), "not within {PROMISED:?}: {what}");
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
    assert_eq!(name(&TenantId::main()).await, (2, "Ours".to_owned(), AgentKind::Open));
    assert_eq!(name(&other()).await, (1, "Theirs".to_owned(), AgentKind::Predefined));
}

#[tokio::test]
async fn an_agent_of_the_configuration_is_no_agent_of_other_tenants() {
    let deployment = Deployment::new().await;
    let theirs = deployment.app.of_tenant(&other());
    for agent in ["a", "ours", "default"] {
        deployment.app.must_have_agent(agent).await.unwrap();
    }
    for agent in ["a", "default"] {
        theirs.must_have_agent(agent).await.unwrap();
    }
    let refused = theirs.must_have_agent("ours").await.unwrap_err();
    assert_eq!(refused.message(), "agent `ours` is not set up");
}

#[tokio::test]
async fn a_secret_of_one_tenant_is_hidden_for_it_alone() {
    let deployment = Deployment::new().await;
    put_secret(&deployment.app, &other(), VALUE).await;
    let toolbox = deployment.toolbox().await;
    assert!(hides(&toolbox, &other(), VALUE));
    let shown = toolbox.scrubbers().for_tenant(&TenantId::main()).text(VALUE);
    assert_eq!(shown, VALUE, "it is no secret of ours, and we do not learn that it is one");
}

#[tokio::test]
async fn an_image_with_a_secret_is_sent_by_nobody_whose_secret_it_is() {
    let deployment = Deployment::new().await;
    let sessions = deployment.app.sessions(SessionsOptions::default()).await.unwrap();
    sessions.deployment().executor.scrubbers().add_for(&other(), VALUE).unwrap();
    let png = [&b"\x89PNG\r\n\x1a\n\0"[..], VALUE.as_bytes(), b"\0"].concat();
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

/// A process that is at work hides a secret that another one sets, in runs of agents and in calls.
#[tokio::test]
async fn a_secret_that_is_set_elsewhere_is_hidden_here() {
    Deployment::on_both(async |deployment| {
        let sessions = deployment.app.sessions(SessionsOptions::default()).await.unwrap();
        let (toolbox, _following) = deployment.followed().await;
        let executors = [&sessions.deployment().executor, toolbox.executor()];
        let (elsewhere, main) = (deployment.elsewhere().await, TenantId::main());
        put_secret(&elsewhere, &main, VALUE).await;
        for executor in executors {
            soon("the secret is hidden", async || hides(executor, &main, VALUE)).await;
        }
        elsewhere.remove_secret(SecretName::new("KEY").unwrap(), None).await.unwrap();
        for executor in executors {
            soon("the removed secret is shown", async || !hides(executor, &main, VALUE)).await;
        }
        sessions.end(None).await.unwrap();
        elsewhere.close().await;
        deployment.app.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_custom_tools_secret_that_is_set_elsewhere_is_hidden_here() {
    Deployment::on_both(async |deployment| {
        let (toolbox, _following) = deployment.followed().await;
        let elsewhere = deployment.elsewhere().await;
        let document = json!({
            "name": "ask", "description": "Asks.",
            "http": { "method": "GET", "url": "https://api.example/v1/{{.a}}", "headers": { "Authorization": VALUE } },
            "parameters": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
        });
        let document = CustomToolDocument::from_value(document).unwrap();
        elsewhere.add_custom_tool(document).await.unwrap();
        soon("the header is hidden", async || hides(&toolbox, &TenantId::main(), VALUE)).await;
        elsewhere.close().await;
        deployment.app.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_rule_that_is_set_elsewhere_holds_here() {
    Deployment::on_both(async |deployment| {
        let (toolbox, _following) = deployment.followed().await;
        let names = async || deployment.names(&toolbox, &other()).await;
        assert!(has(&names().await, "list_files"));
        let elsewhere = deployment.elsewhere().await;
        let deny = |setup| Ok(AgentSetup { policy: json!({ "deny": ["list_files"] }), ..setup });
        elsewhere.of_tenant(&other()).edit_agent(&agent(), None, deny).await.unwrap();
        soon("the tool is denied", async || !has(&names().await, "list_files")).await;
        elsewhere.close().await;
        deployment.app.close().await;
    })
    .await;
}

/// The cost of a new secret does not grow with the number of tenants.
#[tokio::test]
async fn a_new_secret_reads_those_of_its_tenant_alone() {
    const FIRST_READING: &str = "only-in-the-first-reading";
    Deployment::on_both(async |deployment| {
        let (main, other) = (TenantId::main(), other());
        put_secret(&deployment.app, &other, "theirs-and-more").await;
        let (toolbox, _following) = deployment.followed().await;
        // The store does not have it, so it is gone once the tenant's secrets are read again.
        toolbox.scrubbers().add_for(&other, FIRST_READING).unwrap();
        let elsewhere = deployment.elsewhere().await;
        put_secret(&elsewhere, &main, VALUE).await;
        soon("our secret is hidden", async || hides(&toolbox, &main, VALUE)).await;
        assert!(hides(&toolbox, &other, FIRST_READING) && hides(&toolbox, &other, "theirs-and-more"));
        put_secret(&elsewhere, &other, "theirs-anew").await;
        soon("their secret is hidden", async || hides(&toolbox, &other, "theirs-anew")).await;
        assert!(!hides(&toolbox, &other, FIRST_READING), "theirs were read again");
        elsewhere.close().await;
        deployment.app.close().await;
    })
    .await;
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
    let feed = async |tenant| sessions.follow_feed(tenant, Some(0)).await.unwrap();
    let (mut our_feed, mut their_feed) = (feed(TenantId::main()).await, feed(other()).await);
    assert_eq!(their_feed.next().await.unwrap().event.what, event);
    let heard = tokio::time::timeout(Duration::from_millis(300), async {
        tokio::select! {
            heard = ours.next() => format!("{heard:?}"),
            heard = our_feed.next() => format!("{heard:?}"),
        }
    });
    let heard = heard.await;
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
    let put = async |tenant: TenantId, path: &str, text: &str| {
        let (agent, path) = (Some(agent()), path.to_owned());
        let key = DocumentKey { tenant, agent, user: None, shelf: Shelf::Context, path };
        app.store().put_document(&key, text, None, SystemClock.now()).await.unwrap();
    };
    put(other(), "SOUL.md", "their soul").await;
    put(TenantId::main(), "IDENTITY.md", "our identity").await;
    let toolbox = app.toolbox(Hooks::default()).await.unwrap();
    let found = async |tenant: &TenantId, tool: &str, args: Value| {
        let offer = toolbox.offer(deployment.caller(tenant)).await;
        toolbox.execute(&offer, Request::new(tool, args)).await.model_text()
    };
    let ours = found(&TenantId::main(), "read_file", json!({ "path": "SOUL.md" })).await;
    assert!(!ours.contains("their soul"), "{ours}");
    let ours = found(&TenantId::main(), "read_file", json!({ "path": "IDENTITY.md" })).await;
    assert!(ours.contains("our identity"), "{ours}");
    let listed = async |tenant: &TenantId| found(tenant, "list_files", json!({ "path": "." })).await;
    let (ours, theirs) = (listed(&TenantId::main()).await, listed(&other()).await);
    assert!(ours.contains("IDENTITY.md") && !ours.contains("SOUL.md"), "{ours}");
    assert!(theirs.contains("SOUL.md") && !theirs.contains("IDENTITY.md"), "{theirs}");
    // Their rules deny `read_file`.
    let searched = async |pattern: &str| found(&other(), "search", json!({ "pattern": pattern })).await;
    let theirs = searched("their soul").await;
    assert!(theirs.contains("SOUL.md"), "{theirs}");
    let theirs = searched("our identity").await;
    assert!(!theirs.contains("IDENTITY.md"), "{theirs}");
}
