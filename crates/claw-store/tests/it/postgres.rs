//! The PostgreSQL backend: the shared suites, and features of several nodes and a server.

pub(crate) mod database;
mod frozen;
mod proxy;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claw_core::port::{Expect, Owner};
use claw_core::store::{
    AccessStore as _, AgentStore as _, AgentWrite, ApiKey, Approvals as _, Changes as _, Claim, Delta,
    DocumentKey, Documents as _, FileChange, Layer, Ledger as _, NewJob, NewKey, Outcome, ProcessEnd,
    Processes as _, Queue as _, Rules as _, RunEvent, SessionEventBody, SessionLog as _, Settings,
    SettingsStore as _, Shelf, Source, StoreError, Streams as _, TenantChange, Topic, User, Voice,
    WorkspaceFiles as _,
};
use claw_core::{AgentId, CallId, JobId, MessageId, NodeId, TenantId, ToolName};
use claw_host::SystemClock;
use claw_host::files::StoreFiles;
use claw_store::chain::Fault;
use claw_store::{Backend as _, PostgresStore, StoreOptions};
use claw_testkit::conformance;
use claw_testkit::fixture::{
    NOW, agent_setup, intent, job, job_of, key_of, outcome, process, question, refused, rule, session,
    tenant, user, worker,
};
use tokio::sync::{broadcast, watch};
use tokio::time::timeout;

use self::database::{Database, Databases};

/// A store that hangs fails instead; nothing else depends on it.
pub(crate) const STUCK: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn calls() {
    let databases = Databases::default();
    conformance::calls(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue() {
    let databases = Databases::default();
    conformance::queue(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_log() {
    let databases = Databases::default();
    // When a store begins to listen it wakes everyone, which the suite would take for a change.
    let quiet = async || {
        let store = databases.store().await;
        listening(store.changes(Topic::Work)).await;
        store
    };
    conformance::session_log(quiet).await;
    conformance::conversations(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs() {
    let databases = Databases::default();
    conformance::runs(async || databases.store().await).await;
    conformance::runs_in_store(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage() {
    let databases = Databases::default();
    conformance::usage(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offers() {
    let databases = Databases::default();
    conformance::offers(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules() {
    let databases = Databases::default();
    conformance::rules(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs() {
    let databases = Databases::default();
    let make = async |blobs| databases.store_with(&StoreOptions { blobs, ..StoreOptions::default() }).await;
    conformance::blobs(make).await;
    conformance::blob_room(make).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workspace_files() {
    let databases = Databases::default();
    conformance::workspace_files(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_a_store_are_a_bridge() {
    let databases = Databases::default();
    conformance::bridge(async || {
        let store = Arc::new(databases.store().await);
        (StoreFiles::new(store, Arc::new(SystemClock)), "/ws".into())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_two_nodes_are_the_same_files() {
    let database = Database::create().await;
    let nodes = [Arc::new(database.store("a").await), Arc::new(database.store("b").await)];
    let main = TenantId::main();
    for round in 0..20 {
        let path = format!("/w/{round}");
        let expect = Expect::Absent;
        let new = FileChange { tenant: &main, path: &path, expect, room: None, at: NOW };
        let (one, other) = tokio::join!(nodes[0].put_file(&new, b"a"), nodes[1].put_file(&new, b"b"));
        assert!(one.is_ok() != other.is_ok(), "{one:?}, {other:?}");
        let written: &[u8] = if one.is_ok() { b"a" } else { b"b" };
        for node in &nodes {
            assert_eq!(node.file(&main, &path).await.unwrap().unwrap().1, written);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes() {
    let databases = Databases::default();
    conformance::processes(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_index() {
    let databases = Databases::default();
    conformance::artifact_index(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_index() {
    let databases = Databases::default();
    conformance::undo_index(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn seen_index() {
    let databases = Databases::default();
    conformance::seen_index(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn access() {
    let databases = Databases::default();
    conformance::access(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents() {
    let databases = Databases::default();
    conformance::agents(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn skills() {
    let databases = Databases::default();
    conformance::skills(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn settings() {
    let databases = Databases::default();
    conformance::settings(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets() {
    let databases = Databases::default();
    conformance::secrets(async || databases.store().await).await;
    conformance::programs(async || databases.store().await).await;
    conformance::custom_tools(async || databases.store().await).await;
    conformance::sealed_values(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp() {
    let databases = Databases::default();
    conformance::mcp(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn graph() {
    let databases = Databases::default();
    conformance::graph(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memories() {
    let databases = Databases::default();
    conformance::memories(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents() {
    let databases = Databases::default();
    conformance::documents(async || databases.store().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_start_together_make_the_schema_once() {
    let database = Database::create().await;
    let nodes: Vec<_> = (0..8)
        .map(|n| {
            let url = database.url();
            tokio::spawn(async move { PostgresStore::connect(&url, node(&format!("n{n}"))).await.map(drop) })
        })
        .collect();
    for started in nodes {
        started.await.unwrap().unwrap();
    }
    let migrations = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres")).unwrap();
    let applied = database.count("SELECT count(*) FROM _sqlx_migrations").await;
    assert_eq!(applied, migrations.count() as i64);
}

#[tokio::test]
async fn every_table_says_whose_its_rows_are() {
    let database = Database::create().await;
    drop(database.store("a").await);
    // The installation is the one that all tenants are part of, and a copy is of all of them.
    let tables = "FROM information_schema.tables WHERE table_schema = 'public'
                  AND table_name NOT IN ('_sqlx_migrations', 'installation', 'copy_progress')";
    let with_tenant = "FROM information_schema.columns
                       WHERE table_schema = 'public' AND column_name = 'tenant' AND is_nullable = 'NO'";
    let all = database.count(&format!("SELECT count(*) {tables}")).await;
    assert!(all > 0);
    assert_eq!(database.count(&format!("SELECT count(*) {with_tenant}")).await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn gives_each_job_to_one_claimer_of_two_nodes() {
    let database = Database::create().await;
    let stores = [Arc::new(database.store("a").await), Arc::new(database.store("b").await)];
    for n in 0..150 {
        let new = if n < 50 { job() } else { job_of(&format!("cli:{}", n % 10)) };
        stores[0].enqueue(new).await.unwrap();
    }
    let claimers: Vec<_> = (0..32)
        .map(|n| {
            let store = Arc::clone(&stores[n % 2]);
            tokio::spawn(async move {
                let (mut taken, me) = (Vec::new(), worker(&format!("n{n}")));
                while let Some((job, _)) = store.claim(claim(&me)).await.unwrap() {
                    taken.push(job.new);
                }
                taken
            })
        })
        .collect();
    let mut taken: Vec<NewJob> = Vec::new();
    for claimer in claimers {
        taken.extend(claimer.await.unwrap());
    }
    let jobs: HashSet<_> = taken.iter().map(|job| job.id).collect();
    let sessions: HashSet<_> = taken.iter().filter_map(|job| job.session.as_ref()).collect();
    assert_eq!((taken.len(), jobs.len(), sessions.len()), (60, 60, 10), "50 alone, and one of each session");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_begins_on_one_of_two_nodes() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    for _ in 0..20 {
        let call = CallId::new();
        let (first, second) =
            tokio::join!(a.begin_call(intent(call, "ls", None)), b.begin_call(intent(call, "ls", None)));
        assert!(first.is_ok() != second.is_ok(), "{first:?}, {second:?}");
    }
    let reports = a.verify().await.unwrap();
    assert_eq!(reports.iter().map(|report| report.entries).sum::<u64>(), 20);
    assert!(reports.iter().all(|report| report.fault.is_none()), "{reports:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chains_stay_whole_under_many_writers_and_show_damage() {
    let database = Database::create().await;
    let stores = [Arc::new(database.store("a").await), Arc::new(database.store("b").await)];
    let writers: Vec<_> = (0..16)
        .map(|n| {
            let store = Arc::clone(&stores[n % 2]);
            tokio::spawn(async move {
                for _ in 0..5 {
                    let call = CallId::new();
                    store.begin_call(intent(call, "ls", None)).await.unwrap();
                    store.finish_call(outcome(call, Outcome::Done)).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    check_chains(&stores[0], [None, None]).await;
    // The tool's name, which entries of every kind have: whichever is the seventh still reads.
    database
        .run(r#"UPDATE ledger SET line = replace(line, '"exec"', '"read"') WHERE node = 'a' AND seq = 7"#)
        .await;
    check_chains(&stores[0], [Some(Fault::Changed { seq: 7 }), None]).await;
    database.run("DELETE FROM ledger WHERE node = 'a' AND seq > 5").await;
    database
        .run("UPDATE ledger SET outcome = 'failed' WHERE node = 'b' AND event = 'outcome' AND seq = 80")
        .await;
    let cut_off = Some(Fault::CutOff { counted: 80, found: 5 });
    check_chains(&stores[0], [cut_off, Some(Fault::Changed { seq: 80 })]).await;
    database.run("DELETE FROM ledger_head WHERE node = 'a'").await;
    check_chains(&stores[0], [Some(Fault::HeadMissing), Some(Fault::Changed { seq: 80 })]).await;
    let appended = stores[0].refuse(refused(CallId::new())).await;
    assert!(matches!(appended, Err(StoreError::Damaged { .. })), "{appended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_wake_each_other() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    let (mut work, mut changes) =
        (listening(a.changes(Topic::Work)).await, listening(a.changes(Topic::Approvals)).await);

    b.enqueue(job_of("cli:me")).await.unwrap();
    woken(&mut work, "a job was accepted").await;
    let lease = b.claim(claim(&worker("b"))).await.unwrap().unwrap().1;
    b.finish_job(&lease).await.unwrap();
    woken(&mut work, "a session is free").await;
    assert!(!changes.has_changed().unwrap(), "work is not a question");
    b.request(question(CallId::new(), "ls")).await.unwrap();
    woken(&mut changes, "a question was put").await;
    let mut told = listening(a.changes(Topic::Sessions)).await;
    told.mark_unchanged();
    let of = |key| Owner { tenant: TenantId::main(), session: session(key) };
    let (mut mine, other) = (a.session_changes(&of("cli:me")), a.session_changes(&of("cli:you")));
    let event = SessionEventBody::Run { run: JobId::new(), state: RunEvent::Woken };
    b.log_event(&TenantId::main(), &session("cli:me"), NOW, event).await.unwrap();
    woken(&mut told, "an event was told").await;
    woken(&mut mine, "an event of its session was told").await;
    assert!(!other.has_changed().unwrap(), "it is not of the other session");

    let (main, given) = (TenantId::main(), rule());
    b.put_rule(given.clone()).await.unwrap();
    woken(&mut changes, "a rule was given").await;
    b.use_rule(&main, given.id, NOW).await.unwrap();
    let (mut processes, begun) = (a.changes(Topic::Processes), process(&worker("b")));
    b.begin_process(begun.clone()).await.unwrap();
    woken(&mut processes, "a process was begun").await;
    assert!(!changes.has_changed().unwrap(), "that a rule was used is nobody's concern");
    b.revoke_rule(&main, given.id, NOW).await.unwrap();
    woken(&mut changes, "a rule was revoked").await;
    b.end_process(&main, begun.id, ProcessEnd::Killed, NOW).await.unwrap();
    woken(&mut processes, "a process ended").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_hear_of_access_agents_and_settings() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    let mut access = listening(a.changes(Topic::Access)).await;
    let mut agents = listening(a.changes(Topic::Agents)).await;
    let mut settings = listening(a.changes(Topic::Settings)).await;
    let (key, exec) = (ApiKey::from_random([7; 32]), ToolName::literal("exec"));
    let new = key_of(&key);

    b.change_tenant(&TenantId::main(), TenantChange::default()).await.unwrap();
    woken(&mut access, "a tenant was changed").await;
    b.add_user(user("ann")).await.unwrap();
    woken(&mut access, "a user was added").await;
    b.add_key(new.clone()).await.unwrap();
    woken(&mut access, "a key was added").await;
    assert!(b.authenticate(&key.hash(), NOW).await.unwrap().is_some());
    // Told in order: what comes after the use is heard, and the use was not.
    let (main, id) = (TenantId::main(), AgentId::new("a").unwrap());
    b.put_agent(&main, &id, AgentWrite { setup: agent_setup("a"), seen: None }, NOW).await.unwrap();
    woken(&mut agents, "an agent was added").await;
    assert!(!access.has_changed().unwrap(), "that a key is used is no change");
    b.revoke_key(&main, new.id, NOW).await.unwrap();
    woken(&mut access, "a key was revoked").await;
    b.remove_agent(&main, &id, 1, NOW).await.unwrap();
    woken(&mut agents, "an agent was removed").await;
    for layer in [Layer::Deployment, Layer::Tenant(main)] {
        b.put_settings(&layer, &exec, Settings::new(), NOW).await.unwrap();
        woken(&mut settings, "settings were written").await;
        b.remove_settings(&layer, &exec).await.unwrap();
        woken(&mut settings, "settings were removed").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn names_keep_every_character_but_nul() {
    let database = Database::create().await;
    let store = database.store("a").await;
    store.add_user(User { name: "a\0b".to_owned(), ..user("ann") }).await.unwrap();
    assert_eq!(store.users(&TenantId::main()).await.unwrap()[0].name, "a\u{fffd}b");
    let key = ApiKey::from_random([7; 32]);
    store.add_key(NewKey { label: "\0".to_owned(), ..key_of(&key) }).await.unwrap();
    assert_eq!(store.keys(&TenantId::main()).await.unwrap()[0].new.label, "\u{fffd}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_tell_each_other_of_documents() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    let mut documents = listening(a.changes(Topic::Documents)).await;
    let (tenant, agent) = (TenantId::main(), AgentId::new("main").unwrap());
    let key = DocumentKey {
        tenant,
        agent: Some(agent),
        user: None,
        shelf: Shelf::Context,
        path: "SOUL.md".to_owned(),
    };
    b.put_document(&key, "one", None, NOW).await.unwrap();
    woken(&mut documents, "a document was written").await;
    b.put_document(&key, "two", Some(1), NOW).await.unwrap();
    woken(&mut documents, "it was changed").await;
    assert!(b.index_document(&key, 2, vec![]).await.unwrap());
    let before = *documents.borrow_and_update();
    b.remove_document(&key, 2, NOW).await.unwrap();
    woken(&mut documents, "it was removed").await;
    assert_eq!(*documents.borrow(), before + 1, "that it was indexed is not told");
}

#[tokio::test(flavor = "multi_thread")]
async fn wakes_everyone_when_the_connection_that_listens_was_lost() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    let (mut work, mut changes) =
        (listening(a.changes(Topic::Work)).await, listening(a.changes(Topic::Approvals)).await);
    database.end_connections("query LIKE 'LISTEN%'").await;
    woken(&mut work, "something may have been missed").await;
    woken(&mut changes, "something may have been missed").await;
    b.enqueue(job()).await.unwrap();
    woken(&mut work, "it listens again").await;
}

/// Collects a text from the pieces that a listener receives.
async fn heard(listener: &mut broadcast::Receiver<Delta>, length: usize) -> String {
    let mut text = String::new();
    while text.len() < length {
        let delta = tokio::time::timeout(STUCK, listener.recv()).await.expect("it is told").unwrap();
        assert_eq!(delta.offset, text.len() as u64, "in order and once");
        text += &delta.text;
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_being_said_reaches_other_nodes() {
    let database = Database::create().await;
    let (a, b) = (database.store("a").await, database.store("b").await);
    listening(b.changes(Topic::Work)).await;
    let within = Owner { tenant: TenantId::main(), session: session("cli:me") };
    let (message, mut there) = (Source::Message(MessageId::new()), b.listen(&within));
    let words: Vec<String> = (0..500).map(|n| format!("{n} \u{1f980}\u{1}\"\\ ")).collect();
    words.iter().for_each(|word| a.say(&within, message, Voice::Text, word));
    let whole = words.concat();
    assert_eq!(heard(&mut there, whole.len()).await, whole);
    let said = [Delta { source: message, voice: Voice::Text, offset: 0, text: whole.clone() }];
    assert_eq!(b.so_far(&within), said);

    // One that comes in the middle has what was said before it came.
    let late = database.store("c").await;
    let mut there = late.listen(&within);
    listening(late.changes(Topic::Work)).await;
    a.say(&within, message, Voice::Text, "and more");
    assert_eq!(heard(&mut there, whole.len() + 8).await, whole.clone() + "and more");

    // The output of a call goes the same way.
    let call = Source::Call(CallId::new());
    let mut there = b.listen(&within);
    a.say(&within, call, Voice::Output, "line 1\n");
    let output = async {
        loop {
            // Words of the message may still be on their way.
            let delta = there.recv().await.unwrap();
            if delta.source == call {
                return (delta.voice, delta.text);
            }
        }
    };
    let output = tokio::time::timeout(STUCK, output).await.expect("it is told");
    assert_eq!(output, (Voice::Output, "line 1\n".to_owned()));
    a.said(&within, call);

    a.said(&within, message);
    let forgotten = async {
        while !b.so_far(&within).is_empty() || !late.so_far(&within).is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(STUCK, forgotten).await.expect("what is stored is forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_listening_when_the_store_is_dropped() {
    const CONNECTIONS: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%LISTEN%'
         AND pid <> pg_backend_pid()";
    let database = Database::create().await;
    let store = database.store("a").await;
    listening(store.changes(Topic::Work)).await;
    assert_eq!(database.count(CONNECTIONS).await, 1);
    drop(store);
    let gone = async {
        while database.count(CONNECTIONS).await > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(STUCK, gone).await.expect("the listener ends with its store");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_transient_and_the_next_try_works() {
    let database = Database::create().await;
    let store = Arc::new(database.store("a").await);
    let call = CallId::new();
    store.refuse(refused(CallId::new())).await.unwrap();
    let lock = database.lock("SELECT FROM ledger_head FOR UPDATE").await;
    let waiting = {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.begin_call(intent(call, "ls", None)).await })
    };
    database.end_connections("wait_event_type = 'Lock'").await;
    let error = waiting.await.unwrap().unwrap_err();
    assert!(matches!(error, StoreError::Database { transient: true, .. }), "{error}");
    drop(lock);

    store.begin_call(intent(call, "ls", None)).await.expect("it had not begun");
    database.end_connections("application_name = 'clawsmith'").await;
    while let Err(error) = store.finish_call(outcome(call, Outcome::Done)).await {
        assert!(matches!(error, StoreError::Database { transient: true, .. }), "{error}");
    }
    assert_eq!(store.recent(&TenantId::main(), 10).await.unwrap().len(), 3);
}

/// A client that retries until its jobs are accepted, whatever happens to the database; it counts as refused
/// once.
async fn insist(
    store: Arc<PostgresStore>,
    jobs: Vec<NewJob>,
    accepted: Arc<AtomicUsize>,
    refused: Arc<AtomicUsize>,
) {
    let mut noticed = false;
    for job in jobs {
        while let Err(error) = store.enqueue(job.clone()).await {
            assert!(matches!(error, StoreError::Database { transient: true, .. }), "{error}");
            refused.fetch_add(usize::from(!noticed), Ordering::Relaxed);
            noticed = true;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        accepted.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_for_a_while_costs_nothing_but_time() {
    const CLIENTS: usize = 8;
    let database = Database::create().await;
    let (mut proxy, url) = database.behind_a_proxy();
    let store = Arc::new(PostgresStore::connect(&url, node("a")).await.unwrap());
    let mut work = listening(store.changes(Topic::Work)).await;
    let kept = job();
    store.enqueue(kept.clone()).await.unwrap();
    let lease = store.claim(claim(&worker("a"))).await.unwrap().unwrap().1;

    let jobs: Vec<Vec<NewJob>> = (0..CLIENTS).map(|_| (0..200).map(|_| job()).collect()).collect();
    let (accepted, refused) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let client = |jobs: &Vec<NewJob>| {
        let (accepted, refused) = (Arc::clone(&accepted), Arc::clone(&refused));
        tokio::spawn(insist(Arc::clone(&store), jobs.clone(), accepted, refused))
    };
    let clients: Vec<_> = jobs.iter().map(client).collect();
    while accepted.load(Ordering::Relaxed) < CLIENTS {
        tokio::task::yield_now().await;
    }
    proxy.cut();
    let error = store.finish_job(&lease).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { transient: true, .. }), "{error}");
    while refused.load(Ordering::Relaxed) < CLIENTS {
        tokio::task::yield_now().await;
    }
    proxy.mend();
    for client in clients {
        client.await.unwrap();
    }
    for job in jobs.iter().flatten() {
        let found = store.job(&job.tenant, job.id).await.unwrap().expect("what was accepted is there");
        assert_eq!(&found.new, job);
    }
    store.finish_job(&lease).await.expect("the lease is still its holder's");
    work.mark_unchanged();
    database.store("b").await.enqueue(job()).await.unwrap();
    woken(&mut work, "it listens again").await;
    assert_eq!(store.lanes(&TenantId::main()).await.unwrap()[0].pending, (CLIENTS * 200 + 1) as u64);
}

#[tokio::test]
async fn errors_say_what_to_do_and_hold_no_values() {
    let secret = "postgres://me:hunter2@";
    let error = PostgresStore::connect(&format!("{secret}[/x"), node("a")).await.unwrap_err().to_string();
    assert!(error.contains("postgres://user@host/name") && !error.contains("hunter2"), "{error}");

    let database = Database::create().await;
    let missing = database.url().replace("clawtest_", "missing_");
    let error = PostgresStore::connect(&missing, node("a")).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { transient: false, .. }), "{error}");
    assert!(error.to_string().contains("does not exist"), "{error}");

    let store = database.store("a").await;
    let error = store.enqueue(NewJob { lane: "hunter2\0".into(), ..job() }).await.unwrap_err();
    assert!(matches!(error, StoreError::Database { transient: false, .. }), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
    let ours = job();
    store.enqueue(ours.clone()).await.unwrap();
    let error = store.enqueue(NewJob { tenant: tenant("other"), ..ours }).await.unwrap_err();
    assert!(error.to_string().contains("its id is taken"), "{error}");
}

async fn check_chains(store: &PostgresStore, faults: [Option<Fault>; 2]) {
    let reports = store.verify().await.unwrap();
    let found: Vec<_> = reports.iter().map(|report| (report.chain.as_str(), report.fault)).collect();
    assert_eq!(found, [("main@a", faults[0]), ("main@b", faults[1])]);
}

/// Waits until the store listens, which it announces as a change.
async fn listening(mut watch: watch::Receiver<u64>) -> watch::Receiver<u64> {
    tokio::time::timeout(STUCK, watch.wait_for(|count| *count > 0)).await.expect("listens").unwrap();
    watch
}

async fn woken(watch: &mut watch::Receiver<u64>, why: &str) {
    tokio::time::timeout(STUCK, watch.changed()).await.expect(why).unwrap();
}

fn claim(worker: &claw_core::store::Worker) -> Claim {
    let until = NOW.plus(Duration::from_secs(60));
    Claim { worker: worker.clone(), lanes: vec!["main".into()], now: NOW, until }
}

fn node(name: &str) -> NodeId {
    NodeId::new(name).unwrap()
}

/// Options with short waits, for a server that is frozen.
fn impatient() -> StoreOptions {
    let patience = Duration::from_millis(300);
    StoreOptions { statement_timeout: patience, acquire_timeout: patience, ..StoreOptions::default() }
}

#[track_caller]
fn check_silent(error: &StoreError) {
    let says = error.to_string();
    assert!(matches!(error, StoreError::Database { transient: true, .. }), "{says}");
    assert!(says.contains("no answer") || says.contains("no connection became free in time"), "{says}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_frozen_holds_nobody_up_for_ever() {
    let database = Database::create().await;
    let (proxy, url) = database.behind_a_proxy();
    let options = impatient();
    let store = PostgresStore::connect_with(&url, node("a"), &options).await.unwrap();
    let new = job();
    store.enqueue(new.clone()).await.unwrap();
    proxy.freeze();
    let asked = async {
        let read = store.job(&new.tenant, new.id).await.unwrap_err();
        let written = store.enqueue(job()).await.unwrap_err();
        let begun = store.claim(claim(&worker("a"))).await.unwrap_err();
        let opened = PostgresStore::connect_with(&url, node("b"), &options).await.unwrap_err();
        [read, written, begun, opened]
    };
    let errors = timeout(STUCK, asked).await.expect("each wait has a bound");
    errors.iter().for_each(check_silent);

    proxy.thaw();
    let works_again = async {
        // Connections of the frozen time may still be on their way back into the pool.
        while let Err(error) = store.enqueue(job()).await {
            check_silent(&error);
        }
    };
    timeout(STUCK, works_again).await.expect("a thawed server is used again");
    assert_eq!(store.job(&new.tenant, new.id).await.unwrap().unwrap().new, new);

    proxy.freeze();
    timeout(STUCK, store.disconnect()).await.expect("the end has a bound");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_freezes_while_it_is_opened_is_named_in_time() {
    const PARTS: u64 = 12;
    let database = Database::create().await;
    drop(database.store("a").await);
    let (proxy, url) = database.behind_a_proxy();
    claw_store::migrate(&url.parse().unwrap(), &impatient()).await.unwrap();
    let (whole, database) = (proxy.passed(), &database);
    let opened = (0..PARTS).map(|part| async move {
        let (proxy, url) = database.behind_a_proxy();
        let place = url.parse().unwrap();
        proxy.freeze_after(whole * part / PARTS);
        let error = timeout(STUCK, claw_store::migrate(&place, &impatient())).await;
        check_silent(&error.unwrap_or_else(|_| panic!("part {part} has a bound")).unwrap_err());
        proxy.thaw();
        claw_store::migrate(&place, &StoreOptions::default()).await.unwrap();
    });
    futures_util::future::join_all(opened).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_network_forgot_its_connections_hears_of_changes_again() {
    let database = Database::create().await;
    let (proxy, url) = database.behind_a_proxy();
    let a = PostgresStore::connect_with(&url, node("a"), &impatient()).await.unwrap();
    let b = database.store("b").await;
    let mut work = listening(a.changes(Topic::Work)).await;
    proxy.forget_connections();
    woken(&mut work, "something may have been missed").await;
    b.enqueue(job()).await.unwrap();
    woken(&mut work, "it listens again").await;
    timeout(STUCK, a.disconnect()).await.expect("the forgotten connection is not waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_changes_the_schema_is_waited_for() {
    // A waiting node asks again and again; two of its questions show that it outlives the first refusal.
    const ASKED: &str = "SELECT coalesce(max(extract(epoch FROM query_start) * 1000000), 0)::bigint
        FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_try_advisory_lock%'
        AND pid <> pg_backend_pid()";
    let database = Database::create().await;
    let lock = database.lock("SELECT pg_advisory_xact_lock(hashtext('clawsmith schema'), 0)").await;
    let url = database.url();
    let opening =
        tokio::spawn(async move { PostgresStore::connect_with(&url, node("a"), &impatient()).await });
    let asked_again = async {
        let mut first = 0;
        loop {
            let last = database.count(ASKED).await;
            if first > 0 && last > first {
                return;
            }
            first = if first > 0 { first } else { last };
        }
    };
    timeout(STUCK, asked_again).await.expect("it asks for its turn");
    assert!(!opening.is_finished());
    lock.rollback().await.unwrap();
    timeout(STUCK, opening).await.expect("it has its turn").unwrap().unwrap();
}

#[tokio::test]
async fn a_database_that_cannot_hold_every_character_is_refused() {
    let database =
        Database::create_with("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0").await;
    let error = PostgresStore::connect(&database.url(), node("a")).await.unwrap_err().to_string();
    assert!(error.contains("LATIN1") && error.contains("createdb --encoding UTF8"), "{error}");
}
