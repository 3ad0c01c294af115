//! Fills the tables that the player does not: access, agents, settings, documents, secrets, costs, rules,
//! processes, files.

use std::time::Duration;

use claw_core::graph::{EntityFacts, GraphSource, RelationFacts};
use claw_core::port::{Artifact, Expect, Owner, UnixMillis, Version};
use claw_core::provenance::Provenance;
use claw_core::skill::SkillTier;
use claw_core::store::{
    AcceptedSkill, AccessRole, AgentWrite, ApiKey, Claim, CustomToolAction, CustomToolCard,
    CustomToolDefinition, CustomToolGrants, CustomToolPlace, DocumentKey, DocumentWrite, FactsFrom,
    FileChange, FileState, GraphOwner, KeptArtifact, KeyScope, Layer, McpGrant, McpRequest, McpServer,
    McpSubject, NewBlob, NewEntity, NewFacts, NewJob, NewKey, NewMessage, NewProcess, NewRelation, NewRule,
    NewSkillVersion, NewUndo, NewUsage, Party, Passage, ProcessEnd, Program, ProgramCard, ProgramPlace,
    ProgramSettings, RelationEnd, RuleScope, Sealed, SecretPlace, Shelf, SkillGrant, SkillGrantee, SkillUse,
    Store, StoredCustomTool, Summary, Tenant, Tokens, User,
};
use claw_core::tool::PeerKind;
use claw_core::{
    AccessRequestId, AgentId, ArtifactId, CallId, JobId, ProcessId, ProgramName, RuleId, SecretName,
    TenantId, ToolName, UndoId, UsageId, UserId,
};
use claw_testkit::fixture::{
    NOW, PNG, agent, agent_setup, digest, job, job_of, key_of, message, object, owner, process, rule,
    session, tenant, user, worker,
};
use serde_json::json;

/// Text stored as JSON or as bytes, so that it may be anything.
const ODD: &str = "naïve \u{1f980} \0 \u{202e} \" \\ \r\n";
/// Text stored as PostgreSQL text, which has no NUL.
const NAME: &str = "Ännchen \u{1f980} \u{202e} ' \" \\ \r\n";
const TIMES: [UnixMillis; 3] = [UnixMillis(i64::MIN), NOW, UnixMillis(i64::MAX)];

/// Fills something of each.
pub(super) async fn fill(store: &impl Store) {
    access(store).await;
    agents_and_settings(store).await;
    skills(store).await;
    documents(store).await;
    graph(store).await;
    secrets(store).await;
    custom_tools(store).await;
    mcp(store).await;
    usage(store).await;
    rules_and_processes(store).await;
    files(store).await;
    workspace(store).await;
    blobs(store).await;
    conversations(store).await;
}

async fn conversations(store: &impl Store) {
    for (n, peer) in [PeerKind::Direct, PeerKind::Group].into_iter().enumerate() {
        let (user, chat) = (Some(UserId::new("ann").unwrap()), Some(NAME.replace(['\r', '\n'], " ").into()));
        let party = Party { agent: agent(), user, channel: "cli".into(), chat, peer };
        let key = format!("talk:ä{n}");
        let job = NewJob { payload: json!({ "odd": ODD }), ..job_of(&key) };
        store.accept_from(&party, NewMessage { at: TIMES[n], ..message(&key, ODD) }, job).await.unwrap();
    }
}

async fn access(store: &impl Store) {
    for (id, disabled) in [("other", false), ("closed", true)] {
        let name = NAME.to_owned();
        store
            .add_tenant(Tenant {
                id: tenant(id),
                name,
                created: NOW,
                disabled,
                policy: json!({ "deny": ["exec"] }),
            })
            .await
            .unwrap();
    }
    for (id, role) in ["ann", "ben", "Zoe", "zoe"].into_iter().zip(AccessRole::ALL) {
        let disabled = id == "ben";
        store.add_user(User { role, disabled, name: NAME.to_owned(), ..user(id) }).await.unwrap();
    }
    store.add_user(User { tenant: tenant("other"), ..user("ann") }).await.unwrap();
    let keys = [1, 2, 3].map(|seed| ApiKey::from_random([seed; 32]));
    let of_ann = NewKey {
        user: Some(UserId::new("ann").unwrap()),
        scopes: [KeyScope::Admin, KeyScope::ReadLedger].into_iter().collect(),
        expires: Some(UnixMillis(i64::MAX)),
        ..key_of(&keys[0])
    };
    let revoked = key_of(&keys[1]);
    let bare = NewKey { label: String::new(), tenant: tenant("other"), ..key_of(&keys[2]) };
    for key in [of_ann, revoked.clone(), bare] {
        assert!(store.add_key(key).await.unwrap());
    }
    store.revoke_key(&TenantId::main(), revoked.id, NOW).await.unwrap();
    assert!(store.authenticate(&keys[0].hash(), NOW).await.unwrap().is_some(), "so that it was used");
}

async fn agents_and_settings(store: &impl Store) {
    let main = TenantId::main();
    for name in ["helper", "gone"] {
        let id = AgentId::new(name).unwrap();
        let mut setup = agent_setup(ODD);
        setup.model = Some("large".into());
        setup.policy = json!({ "deny": [ODD], "number": u64::MAX });
        let put = store.put_agent(&main, &id, AgentWrite { setup, seen: None }, NOW).await.unwrap();
        if name == "gone" {
            store.remove_agent(&main, &id, put.version, NOW).await.unwrap();
        }
    }
    for layer in [Layer::Deployment, Layer::Tenant(main), Layer::Tenant(tenant("other"))] {
        let settings = object(json!({ "b": ODD, "a": [0.1, null], "most": u64::MAX }));
        store.put_settings(&layer, &ToolName::literal("exec"), settings, NOW).await.unwrap();
    }
}

async fn skills(store: &impl Store) {
    for (of, body) in [("main", "one"), ("main", ODD), ("other", "one")] {
        let new = claw_testkit::conformance::skill_version("lint", body);
        let new = NewSkillVersion { tenant: tenant(of), findings: vec![ODD.to_owned()], ..new };
        let name = new.manifest.name.clone();
        store.publish_skill(new).await.unwrap();
        let grantee = SkillGrantee::Agent(agent());
        store.grant_skill(&tenant(of), &name, SkillGrant { grantee, version: Some(1) }).await.unwrap();
        let (digest, at) = (digest(body), NOW);
        let accepted = AcceptedSkill { digest, name: name.clone(), by: NAME.to_owned(), at };
        store.accept_skill(&tenant(of), accepted).await.unwrap();
        let (tier, run) = (SkillTier::Store, Some(JobId::new()));
        let used = SkillUse { name, digest, tier, run, allowed: Some(vec![ODD.to_owned()]), at };
        store.use_skill(&Owner { tenant: tenant(of), ..owner() }, used).await.unwrap();
    }
}

async fn documents(store: &impl Store) {
    for (path, text) in super::DOCUMENTS {
        for (tenant, user) in [("main", None), ("main", Some("ann")), ("other", None)] {
            let key = document(tenant, user, path);
            let version = store.put_document(&key, text, None, NOW).await.unwrap();
            super::index(store, &key, version).await;
        }
    }
    for work in store.claim_unembedded("bird", NOW, Duration::from_secs(1), 2).await.unwrap() {
        let vectors: Vec<_> =
            work.passages.iter().map(|passage| (passage.hash, vec![0.6, 0.8, -0.0])).collect();
        store.put_embeddings(&work.key.tenant, "bird", &vectors, NOW).await.unwrap();
        store.embed_document(&work.key, work.version, "bird").await.unwrap();
    }
    let provenance = Provenance { run: Some(JobId::new()), untrusted: true };
    let untrusted = DocumentWrite { text: ODD, seen: None, at: NOW, provenance, keeps_mark: true };
    store.write_document(&document("main", Some("ann"), "memory/page.md"), untrusted).await.unwrap();
    store.mark_untrusted(&tenant("main"), &owner().session, NOW).await.unwrap();
    // One that was changed, and one that is gone: their versions go on.
    let [waits, gone] = ["memory/waits.md", "memory/gone.md"].map(|path| document("main", None, path));
    for key in [&waits, &gone] {
        let version = store.put_document(key, "a kingfisher", None, NOW).await.unwrap();
        store.put_document(key, "two kingfishers", Some(version), NOW).await.unwrap();
    }
    store.remove_document(&gone, 2, NOW).await.unwrap();
    let soul = DocumentKey { shelf: Shelf::Context, ..document("main", None, "SOUL.md") };
    store.put_document(&soul, ODD, None, UnixMillis(i64::MIN)).await.unwrap();
    let one = Passage { first_line: 1, last_line: 2, heading: ODD.to_owned(), text: ODD.to_owned() };
    assert!(store.index_document(&soul, 1, vec![one]).await.unwrap());
}

/// A memory document of [`agent`].
pub(crate) fn document(of: &str, user: Option<&str>, path: &str) -> DocumentKey {
    let user = user.map(|user| UserId::new(user).unwrap());
    DocumentKey {
        tenant: tenant(of),
        agent: Some(agent()),
        user,
        shelf: Shelf::Memory,
        path: path.to_owned(),
    }
}

/// Adds facts of a document and of a person, with two similar names.
async fn graph(store: &impl Store) {
    for of in ["main", "other"] {
        let key = document(of, Some("ann"), "memory/graph ä.md");
        let version = store.put_document(&key, ODD, None, NOW).await.unwrap();
        let person = GraphOwner { tenant: tenant(of), agent: None, user: None };
        for from in [
            FactsFrom::Document { key: key.clone(), version, model: ODD.to_owned() },
            FactsFrom::Person(person),
        ] {
            let entity = |name: &str| NewEntity {
                said: EntityFacts {
                    description: ODD.to_owned(),
                    aliases: vec![NAME.to_owned()],
                    external_id: name.starts_with('Z').then(|| NAME.to_owned()),
                    confidence: 0.1,
                    properties: [(ODD.to_owned(), json!(ODD))].into(),
                    valid_from: Some(UnixMillis(-1)),
                    valid_until: Some(NOW),
                    ..EntityFacts::new(name, "bird")
                },
                source: Some(GraphSource::new(key.path.clone(), 1, u64::MAX)),
            };
            let entities = vec![entity("Ännchen Hüber"), entity("Ännchen Huuber"), entity("Zoe \u{1f980}")];
            let said = RelationFacts { confidence: 1.0 / 3.0, ..RelationFacts::new("日本") };
            let (source, target) = (RelationEnd::New(0), RelationEnd::New(2));
            let relations = vec![NewRelation { source, target, said, place: None }];
            store.keep_facts(&from, NewFacts { entities, relations }, NOW).await.unwrap();
        }
    }
}

async fn secrets(store: &impl Store) {
    let sealed = |content: &[u8]| {
        let bytes = [&[1][..], &[0xff; 8], &[0; 12], content, &[9; 16]].concat();
        Sealed::from_bytes(bytes).unwrap()
    };
    for (of, agent) in [("main", None), ("main", Some(agent())), ("other", None)] {
        let name = SecretName::new("TOKEN").unwrap();
        let place = SecretPlace { tenant: tenant(of), agent: agent.clone(), name };
        store.put_secret(&place, &sealed(b"\0\xff"), NOW).await.unwrap();
        let place = ProgramPlace { tenant: tenant(of), agent, name: ProgramName::new("gh").unwrap() };
        let settings = ProgramSettings { tips: ODD.to_owned(), ..ProgramSettings::new("/usr/bin/gh") };
        let card = ProgramCard { place: place.clone(), settings, variables: vec!["T".to_owned()], at: NOW };
        store.put_program(&Program { card, env: sealed(&[0; 300]) }).await.unwrap();
        store.enable_program(&place, of == "main", NOW).await.unwrap();
    }
}

async fn custom_tools(store: &impl Store) {
    let place = CustomToolPlace { tenant: tenant("other"), agent: None, name: ToolName::new("dns").unwrap() };
    let definition = CustomToolDefinition {
        description: ODD.to_owned(),
        parameters: json!({ "type": "object", "properties": { "domain": { "type": "string" } } }),
        action: CustomToolAction::Command {
            template: "dig +short {{.domain}}".to_owned(),
            working_dir: ".".to_owned(),
        },
        timeout_seconds: 10,
        grants: CustomToolGrants::default(),
        enabled: true,
    };
    let card = CustomToolCard { place, definition, variables: vec![NAME.to_owned()], version: 1, at: NOW };
    let env = Sealed::from_bytes([&[1][..], &[3; 8], &[7; 12], b"x", &[0; 16]].concat()).unwrap();
    store.put_custom_tool(&StoredCustomTool { card, env }, None).await.unwrap();
}

async fn mcp(store: &impl Store) {
    let (of, ann) = (tenant("other"), UserId::new("ann").unwrap());
    let server = json!({ "name": "files", "transport": "stdio", "command": NAME, "args": [ODD] });
    let server: McpServer = serde_json::from_value(server).unwrap();
    store.put_mcp_server(&of, &server, NOW).await.unwrap();
    let subject = McpSubject::User(ann.clone());
    let mut grant = McpGrant::new(server.name.clone(), subject.clone());
    grant.tool_deny = vec![ODD.to_owned()];
    store.put_mcp_grant(&of, &grant, NOW).await.unwrap();
    let listed = [("read".to_owned(), json!({ "description": ODD }))].into();
    store.list_mcp_tools(&of, &server.name, &listed, NOW).await.unwrap();
    let (id, reason) = (AccessRequestId::new(), ODD.to_owned());
    let request = McpRequest {
        id,
        server: server.name,
        user: ann,
        subject,
        tools: None,
        reason,
        at: NOW,
        review: None,
    };
    store.add_mcp_request(&of, &request).await.unwrap();
}

async fn usage(store: &impl Store) {
    for at in TIMES {
        let most = NewUsage::MOST;
        let tokens = Tokens { input: most.unsigned_abs(), output: 1, cache_read: 0, cache_write: 7 };
        let new = NewUsage {
            id: UsageId::new(),
            tenant: TenantId::main(),
            agent: agent(),
            user: (at == NOW).then(|| UserId::new("ann").unwrap()),
            session: session("cli:me"),
            run: (at == NOW).then(JobId::new),
            provider: NAME.into(),
            model: "large".into(),
            tokens,
            cost: most,
            at,
        };
        store.record_usage(new).await.unwrap();
    }
    let tools = ["write_file", "exec"].map(ToolName::literal);
    for of in [TenantId::main(), tenant("other")] {
        store.set_offered(&of, &session("cli:me"), &tools).await.unwrap();
        let uses = tools.clone().map(|tool| (tool, 1 << 40));
        store.count_tool_uses(&of, &agent(), &uses).await.unwrap();
    }
}

async fn rules_and_processes(store: &impl Store) {
    let main = TenantId::main();
    let scopes = [rule().scope, RuleScope::Agent { agent: agent() }, RuleScope::Tenant];
    for (scope, expires) in scopes.into_iter().zip([None, Some(NOW.plus(std::time::Duration::MAX)), None]) {
        let new = NewRule { id: RuleId::new(), scope, expires, text: ODD.to_owned(), ..rule() };
        store.put_rule(new.clone()).await.unwrap();
        match new.scope {
            RuleScope::Tenant => drop(store.revoke_rule(&main, new.id, NOW).await.unwrap()),
            _ => drop(store.use_rule(&main, new.id, NOW).await.unwrap()),
        }
    }
    let me = worker("player");
    let exited = |code, signal| Some(ProcessEnd::Exited { code, signal });
    for end in [
        None,
        exited(Some(i32::MIN), None),
        exited(None, Some(9)),
        Some(ProcessEnd::Killed),
        Some(ProcessEnd::Lost),
    ] {
        let new = NewProcess { id: ProcessId::new(), command: ODD.to_owned(), ..process(&me) };
        store.begin_process(new.clone()).await.unwrap();
        if let Some(end) = end {
            store.end_process(&main, new.id, end, NOW).await.unwrap();
        }
    }
}

async fn files(store: &impl Store) {
    let worker = worker("summariser");
    store.enqueue(NewJob { lane: "summaries".into(), ..job() }).await.unwrap();
    let claim = Claim { worker, lanes: vec!["summaries".into()], now: NOW, until: NOW };
    let (_, lease) = store.claim(claim).await.unwrap().unwrap();
    let summary = Summary { upto: 1, text: ODD.to_owned(), at: NOW };
    store.summarise(&lease, &owner(), summary).await.unwrap();
    store.finish_job(&lease).await.unwrap();
    store.saw_file(&owner(), &digest("a place"), &Version("1".into()), NOW).await.unwrap();
    for (n, at) in TIMES.into_iter().enumerate() {
        let artifact = Artifact { id: ArtifactId::new(), call: CallId::new(), bytes: n << 40, lines: n };
        let owner = Owner { session: session("cli:ä"), ..owner() };
        store.put_artifact(KeptArtifact { owner, artifact, at }).await.unwrap();
    }
    let state = |mode| Some(FileState { blob: digest("x"), bytes: u64::MAX, mode });
    for (before, after) in [(None, state(Some(u32::MAX))), (state(None), None), (state(None), state(None))] {
        let new = NewUndo {
            id: UndoId::new(),
            tenant: TenantId::main(),
            session: session("cli:me"),
            agent: agent(),
            user: None,
            call: CallId::new(),
            run: before.is_some().then(JobId::new),
            tool: ToolName::literal("write_file"),
            workspace: "/srv".to_owned(),
            place: format!("/srv/{ODD}"),
            sandbox: after.is_none().then(|| ODD.to_owned()),
            shown: ODD.to_owned(),
            before,
            after,
            command: None,
            at: NOW,
        };
        store.record_undo(new.clone()).await.unwrap();
        match (&new.before, &new.after) {
            (None, _) => drop(store.mark_undone(&new.tenant, new.id, NOW).await.unwrap()),
            (_, None) => store.withdraw_undo(&new.tenant, new.id).await.unwrap(),
            _ => {}
        }
    }
}

async fn blobs(store: &impl Store) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(2_000_000).collect();
    for of in [TenantId::main(), tenant("other")] {
        for (mime, bytes) in [("image/png", PNG), ("text/plain", b""), ("a/b", &every_byte)] {
            store.put_blob(&of, &NewBlob::new(mime, bytes).unwrap(), UnixMillis(i64::MIN)).await.unwrap();
        }
    }
}

async fn workspace(store: &impl Store) {
    let every_byte: Vec<u8> = (0..=255).cycle().take(2_000_000).collect();
    let deep = format!("/w{}", format!("/{}", "nä".repeat(80)).repeat(60));
    for of in [TenantId::main(), tenant("other")] {
        let change = |at| FileChange { tenant: &of, path: &deep, expect: Expect::Anything, room: None, at };
        for (path, bytes) in [("/w/ä \n\u{1f980}", ODD.as_bytes()), ("/w/a/b", &every_byte), ("/W", b"")] {
            store.put_file(&FileChange { path, ..change(UnixMillis(i64::MIN)) }, bytes).await.unwrap();
        }
        store.put_directory(&change(NOW)).await.unwrap();
    }
}
