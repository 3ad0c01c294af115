//! Toolboxes of programs that embed the tools: over a store that lasts, and over files of their own.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use claw_core::store::{
    DocumentKey, Documents as _, Layer, SettingsStore as _, Shelf, UndoFilter, UndoIndex as _,
};
use claw_core::tool::{Digest, Sight, Target};
use claw_core::{JobId, NodeId};
use claw_store::SqliteStore;
use clawsmith::port::{FilePlace, FsBridge, Stat, Version};
use clawsmith::{
    AgentId, Caller, ErrorKind, MemoryFiles, Reply, Request, SessionKey, Status, SystemClock, TenantId,
    ToolError, ToolName, Toolbox, UnixMillis, UserId, World, workspace_path,
};
use serde_json::json;
use tempfile::TempDir;

async fn call(toolbox: &Toolbox, caller: &Caller, request: Request) -> Reply {
    let offer = toolbox.offer(caller.clone()).await;
    toolbox.execute(&offer, request).await
}

/// Takes the parts of a plan, a call and a result by their types.
fn parts_of_a_call(plan: clawsmith::Plan, parts: clawsmith::tool::CallParts) {
    use clawsmith::tool;

    type Others = (
        tool::Script,
        tool::Argv,
        tool::Input,
        tool::Origin,
        tool::Identity<'static>,
        tool::Secrets,
        tool::Source,
        tool::Aliases,
        tool::Media,
        tool::Usage,
    );
    let given: Option<Box<tool::Given>> = plan.given;
    let _: Option<(Vec<tool::GivenPath>, tool::SecretVariables)> =
        given.map(|given| (given.paths, given.variables));
    let _: clawsmith::provenance::RunTrace = parts.caller.trace.clone();
    let _: Option<Others> = None;
    let unknown: Result<clawsmith::Effect, tool::UnknownEffect> = "x".parse();
    assert!(unknown.is_err());
}

/// Takes the parts that a toolbox and a world are made of by their types.
fn parts_of_a_toolbox(
    builder: clawsmith::ExecutorBuilder,
    weak: clawsmith::WeakExecutor,
    discovered: clawsmith::Discovered,
    limit: clawsmith::TimeLimit,
    span: clawsmith::CallSpan,
) {
    type Hosts = (
        clawsmith::SkillShelf,
        clawsmith::SkillOptions,
        clawsmith::StoredSeen,
        clawsmith::StoredUndo,
        clawsmith::UndoLimits,
        clawsmith::ProcessTable,
        clawsmith::IndexedArtifacts,
    );
    let _: Option<clawsmith::Executor> = weak.upgrade();
    let _: clawsmith::Paused = limit.pause();
    let _: (clawsmith::Meta, clawsmith::Executor) = (discovered.meta, builder.build());
    let _ = span;
    let _: Option<Hosts> = None;
}

/// Takes rules and verdicts by their types.
fn rules_and_verdicts(approvals: clawsmith::ApprovalConfig, verdict: clawsmith::Verdict) {
    use clawsmith::policy::{approval, entry, explain, pipeline, rate_window, scrub, shell};

    type Others = (
        approval::EffectRule,
        entry::BadEntry,
        explain::Change,
        explain::Presence,
        pipeline::Decision,
        rate_window::Limited,
        rate_window::LimitedBy,
        scrub::ValueError,
        shell::Rules,
        shell::ShellConfig,
        clawsmith::schema::dialect::NotStrict,
    );
    let _: (approval::AskMode, approval::Security) = (approvals.ask, approvals.security);
    let _: (approval::WebApprovals, approval::OutsideRule) = (approvals.web, approvals.outside);
    let _: Vec<approval::Narrowing> = approvals.narrowing;
    let _: pipeline::Trace = verdict.trace;
    let _: Option<Others> = None;
}

/// Everything that public types name can be named through the library.
#[test]
fn an_embedder_can_name_what_public_types_hold() {
    use clawsmith::message::Part;
    use clawsmith::store::{NewRule, SecretPlace};

    fn rule_id(rule: &NewRule) -> clawsmith::RuleId {
        rule.id
    }
    fn secret_name(place: &SecretPlace) -> &clawsmith::SecretName {
        &place.name
    }
    fn image(part: &Part) -> Option<&clawsmith::image::Image> {
        match part {
            Part::Image(image) => Some(image),
            _ => None,
        }
    }
    let _ = (rule_id, secret_name, image, parts_of_a_call, parts_of_a_toolbox, rules_and_verdicts);
    let ids = [
        clawsmith::MessageId::new().to_string(),
        clawsmith::UndoId::new().to_string(),
        clawsmith::UsageId::new().to_string(),
        clawsmith::ProcessId::new().to_string(),
        clawsmith::ArtifactId::new().to_string(),
        clawsmith::RelationId::new().to_string(),
    ];
    assert!(ids.iter().all(|id| !id.is_empty()));
}

fn write(path: &str, content: &str) -> Request {
    Request::new("write_file", json!({ "path": path, "content": content }))
}

fn read(path: &str) -> Request {
    Request::new("read_file", json!({ "path": path }))
}

fn caller(workspace: impl Into<PathBuf>) -> Caller {
    Caller::new(AgentId::new("helper").unwrap(), SessionKey::new("demo:1").unwrap(), workspace)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_toolbox_over_a_store_keeps_what_concerns_files_there() {
    let place = TempDir::new().unwrap();
    let (data, project) = (place.path().join("data"), place.path().join("project"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir(&project).unwrap();
    let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
    let toolbox =
        || Toolbox::builder().everything_in(Arc::clone(&store) as _).data_dir(&data).build().unwrap();
    let (first, in_project) = (toolbox(), caller(&project));
    std::fs::write(project.join("a"), "one\n").unwrap();
    assert!(call(&first, &in_project, read("a")).await.outcome.is_ok());

    // Another process of the same conversation knows what was seen, and what it changes belongs to its run.
    let second = toolbox();
    let run = JobId::new();
    let args = json!({ "path": "a", "content": "two\n", "mode": "overwrite" });
    let request = Request { run: Some(run), ..Request::new("write_file", args) };
    let reply = call(&second, &in_project, request).await;
    assert!(reply.outcome.is_ok(), "{}", reply.model_text());
    let filter = UndoFilter { run: Some(run), ..UndoFilter::default() };
    let undone = store.undos(&TenantId::main(), &filter, 10).await.unwrap();
    assert_eq!((undone.len(), undone[0].new.shown.as_str(), undone[0].new.call), (1, "a", reply.call));
    assert!(call(&second, &in_project, write("b", "x")).await.outcome.is_ok());
    let all = store.undos(&TenantId::main(), &UndoFilter::default(), 10).await.unwrap();
    assert_eq!(all[0].new.run, None, "made by hand");

    // Settings of the store hold, and context files of managed workspaces are its documents.
    let settings = json!({ "deny_paths": ["a"] }).as_object().unwrap().clone();
    let tool = ToolName::new("read_file").unwrap();
    store.put_settings(&Layer::Deployment, &tool, settings, UnixMillis(1)).await.unwrap();
    assert!(call(&second, &in_project, read("a")).await.outcome.is_err());
    let base = data.canonicalize().unwrap().join("workspaces");
    let mut managed = caller(&project);
    managed.user = Some(UserId::new("ann").unwrap());
    managed.workspace = workspace_path(&base, &managed.tenant, &managed.agent, managed.user.as_ref());
    let reply = call(&second, &managed, write("SOUL.md", "kind\n")).await;
    assert!(reply.outcome.is_ok(), "{}", reply.model_text());
    let key = DocumentKey {
        tenant: TenantId::main(),
        agent: Some(managed.agent.clone()),
        user: managed.user.clone(),
        shelf: Shelf::Context,
        path: "SOUL.md".to_owned(),
    };
    assert_eq!(store.document(&key).await.unwrap().unwrap().text, "kind\n");
}

/// Files by their paths as they come, with no idea of roots.
#[derive(Default)]
struct Flat(Mutex<BTreeMap<String, Vec<u8>>>);

impl Flat {
    fn key(place: &FilePlace<'_>, path: &str) -> String {
        place.directory.join(path).to_string_lossy().into_owned()
    }

    fn of(bytes: &[u8]) -> Stat {
        let version = Version(Digest::of_bytes(bytes).to_string().into());
        Stat { directory: false, size: bytes.len() as u64, modified: UnixMillis(1), version, mode: None }
    }
}

#[async_trait]
impl FsBridge for Flat {
    async fn stat(&self, place: &FilePlace<'_>, path: &str) -> Result<Option<Stat>, ToolError> {
        Ok(self.0.lock().unwrap().get(&Self::key(place, path)).map(|bytes| Self::of(bytes)))
    }

    async fn read(&self, place: &FilePlace<'_>, path: &str) -> Result<(Vec<u8>, Stat), ToolError> {
        let files = self.0.lock().unwrap();
        let bytes =
            files.get(&Self::key(place, path)).ok_or_else(|| ToolError::not_found("it is not there"))?;
        Ok((bytes.clone(), Self::of(bytes)))
    }

    async fn mkdirp(&self, _: &FilePlace<'_>, _: &str) -> Result<(), ToolError> {
        Ok(())
    }

    async fn write(&self, place: &FilePlace<'_>, path: &str, bytes: &[u8]) -> Result<Stat, ToolError> {
        self.0.lock().unwrap().insert(Self::key(place, path), bytes.to_vec());
        Ok(Self::of(bytes))
    }

    async fn look(&self, place: &FilePlace<'_>, path: &str) -> Result<Sight, ToolError> {
        let identity = self.stat(place, path).await?.map(|stat| stat.version.0.to_string());
        let target = Target::File { path: path.to_owned() };
        Ok(Sight { target, path: Some(Self::key(place, path)), identity, credential: None, writable: false })
    }
}

fn over(bridge: Option<Arc<dyn FsBridge>>) -> Toolbox {
    let mut world = World::new(Arc::new(SystemClock));
    world.bridge = bridge;
    Toolbox::builder().world(world).build().unwrap()
}

#[tokio::test]
async fn a_bridge_of_ones_own_is_confined_by_text_and_that_is_said() {
    let flat = Arc::new(Flat::default());
    flat.0.lock().unwrap().insert("/etc/passwd".to_owned(), b"root".to_vec());
    flat.0.lock().unwrap().insert("/w/.clawsmith/x".to_owned(), b"ours".to_vec());
    let toolbox = over(Some(Arc::clone(&flat) as _));
    let caller = caller("/w");
    assert!(call(&toolbox, &caller, write("a", "mine")).await.outcome.is_ok());
    assert_eq!(flat.0.lock().unwrap()["/w/a"], b"mine");
    for (path, kind) in [
        ("/etc/passwd", ErrorKind::Forbidden),
        ("../etc/passwd", ErrorKind::Forbidden),
        ("a/../../etc/passwd", ErrorKind::Forbidden),
        (".clawsmith/x", ErrorKind::NotFound),
    ] {
        match call(&toolbox, &caller, read(path)).await.outcome {
            Err(clawsmith::CallError::Failed(error)) => assert_eq!(error.kind, kind, "{path}: {error}"),
            other => panic!("{path}: {other:?}"),
        }
        assert!(call(&toolbox, &caller, write(path, "x")).await.outcome.is_err(), "{path}");
    }
    assert_eq!(flat.0.lock().unwrap()["/etc/passwd"], b"root");
    let list = toolbox.registry().list();
    let note = |name: &str| list.iter().find(|tool| tool.meta.name.as_str() == name).unwrap().note;
    assert!(
        note("read_file").is_some_and(|note| note.contains("comparing path names only")),
        "{:?}",
        note("edit")
    );
    assert_eq!(note("datetime"), None);
    let enforced = over(Some(Arc::new(MemoryFiles::new())));
    assert!(enforced.registry().list().iter().all(|tool| tool.note.is_none()));
}

#[tokio::test]
async fn without_a_bridge_the_file_tools_are_unavailable_with_the_reason() {
    let toolbox = over(None);
    for tool in toolbox.registry().list() {
        if ["read_file", "write_file", "edit", "list_files", "search", "glob"]
            .contains(&tool.meta.name.as_str())
        {
            let Status::Unavailable(reason) = &tool.status else { panic!("{:?}", tool.status) };
            assert!(reason.contains("no file bridge is set up"), "{reason}");
        }
    }
    let reply = call(&toolbox, &caller("/w"), read("a")).await;
    assert!(reply.model_text().contains("no file bridge is set up"), "{}", reply.model_text());
}
