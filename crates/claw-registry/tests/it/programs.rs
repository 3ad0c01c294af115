//! Programs with credentials on the road: access, routing, comparison and scrubbing.

use std::sync::Arc;

use claw_core::port::{Clock as _, World};
use claw_core::store::{Answer, Approvals as _, Changes as _, Ledger as _, Topic, Worker};
use claw_core::tool::{
    Argv, Ask, Call, Effect, Effects, Facts, Group, Input, Meta, Need, Output, Plan, Progress, Script, Tool,
    ToolError, erase,
};
use claw_core::{BootId, NodeId, TenantId};
use claw_host::{ProcessKeeping, ProcessLimits, ProcessTable};
use claw_policy::approval::{ApprovalConfig, AskMode};
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_registry::{Executor, Registry, Reply, Request};
use claw_store::SqliteStore;
use claw_store_memory::MemoryStore;
use claw_testkit::{FakePrograms, FakeShell, ManualClock, Recorder, Reply as Shown};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::kit::{all, caller, done, refused};

const VALUE: &str = "hunter2-and-more-than-that";

/// Runs a program with credentials, or something else than it planned.
struct Login;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LoginArgs {
    words: Vec<String>,
    #[serde(default)]
    instead: Option<Vec<String>>,
}

fn argv(words: &[String]) -> Argv {
    Argv { argv: words.to_vec(), directory: ".".to_owned(), env: Vec::new(), credentials: true }
}

impl Tool for Login {
    type Args = LoginArgs;
    const META: Meta = Meta::new("login", Group::Runtime)
        .effects(&[Effect::Execute, Effect::Network])
        .needs(&[Need::Shell, Need::Programs])
        .about("Run a program with credentials.");

    fn plan(&self, _: &Facts, args: &LoginArgs) -> Plan {
        Plan::argv(argv(&args.words))
    }

    async fn run(&self, call: &Call, args: LoginArgs) -> Result<Output, ToolError> {
        let ran = call.shell()?.spawn(&argv(args.instead.as_ref().unwrap_or(&args.words))).await?;
        Ok(Output::text(ran.output))
    }
}

/// Plans text for a running command, scripts and opaque work in any order, and runs one of the scripts.
struct Mixed;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MixedArgs {
    /// `input`, `opaque`, or the text of a script.
    asks: Vec<String>,
    /// The script to run.
    run: String,
    /// The running command that `input` is for.
    process: String,
}

fn script(text: &str) -> Script {
    Script { text: text.to_owned(), directory: ".".to_owned(), ..Script::default() }
}

impl Tool for Mixed {
    type Args = MixedArgs;
    const META: Meta =
        Meta::new("mixed", Group::Runtime).needs(&[Need::Shell]).about("Type, run and do other things.");

    fn plan(&self, _: &Facts, args: &MixedArgs) -> Plan {
        let typed = || Input { process: args.process.clone(), text: "y\n".to_owned(), ..Input::default() };
        let ask = |text: &String| match text.as_str() {
            "input" => Ask::Input(typed()),
            "opaque" => Ask::Opaque,
            text => Ask::Script(script(text)),
        };
        Plan { effects: Effects::NONE, asks: args.asks.iter().map(ask).collect(), given: None }
    }

    async fn run(&self, call: &Call, args: MixedArgs) -> Result<Output, ToolError> {
        Ok(Output::text(call.shell()?.run(&script(&args.run)).await?.output))
    }
}

/// Leaves `cat` running in the background, and returns its name.
struct Keep;

#[derive(Deserialize, JsonSchema)]
struct KeepArgs {}

impl Tool for Keep {
    type Args = KeepArgs;
    const META: Meta = Meta::new("keep", Group::Runtime).needs(&[Need::Processes]).about("Start a command.");

    fn plan(&self, _: &Facts, _: &KeepArgs) -> Plan {
        Plan::script(script("cat"))
    }

    async fn run(&self, call: &Call, _: KeepArgs) -> Result<Output, ToolError> {
        Ok(Output::text(call.processes()?.start(&script("cat")).await?.name()))
    }
}

struct ProgramBench {
    executor: Executor,
    programs: Arc<FakePrograms>,
    shell: Arc<FakeShell>,
    store: Arc<MemoryStore>,
    clock: Arc<ManualClock>,
    heard: Arc<Recorder>,
}

impl ProgramBench {
    async fn new(ask: AskMode, policy: serde_json::Value) -> Self {
        let processes = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
        let worker = Worker { node: NodeId::local(), boot: BootId::new() };
        let (clock, store) = (Arc::new(ManualClock::default()), Arc::new(MemoryStore::new()));
        let programs = Arc::new(FakePrograms::new(TenantId::main(), caller().agent, VALUE));
        programs.register("gh", &["auth"]);
        let shell = Arc::new(FakeShell::new(Shown::prints("plain\n")));
        let mut world = World::new(clock.clone());
        world.shell = Some(shell.clone());
        world.programs = Some(programs.clone());
        let registry = Arc::new(Registry::new(world));
        let tools = all().into_iter().chain([erase(Login), erase(Mixed), erase(Keep)]);
        for tool in tools.filter(|tool| ["sh", "login", "mixed", "keep"].contains(&tool.meta().name.as_str()))
        {
            registry.register(tool).unwrap();
        }
        let heard = Arc::new(Recorder::default());
        let policy: PolicyConfig = serde_json::from_value(policy).unwrap();
        let keeping = ProcessKeeping { store: processes, worker, limits: ProcessLimits::default() };
        let executor = Executor::builder(registry, store.clone(), Policy::compile(&policy).unwrap())
            .approvals(ApprovalConfig { ask, ..ApprovalConfig::default() })
            .listener(heard.clone())
            .processes(Arc::new(ProcessTable::new(keeping)))
            .build();
        Self { executor, programs, shell, store, clock, heard }
    }

    async fn open() -> Self {
        Self::new(AskMode::OnMiss, json!({})).await
    }

    async fn call(&self, tool: &str, args: serde_json::Value) -> Reply {
        let offer = self.executor.offer(caller()).await;
        self.executor.execute(&offer, Request::new(tool, args)).await
    }

    /// Approves the only pending call and returns its summary.
    async fn approve(&self) -> String {
        let mut changes = self.store.changes(Topic::Approvals);
        let row = loop {
            if let Some(row) = self.store.pending(&TenantId::main(), self.clock.now()).await.unwrap().pop() {
                break row;
            }
            changes.changed().await.unwrap();
        };
        let answer =
            Answer { approve: true, by: "ada".into(), at: self.clock.now(), reason: None, values: None };
        self.store.answer(&TenantId::main(), row.id, answer).await.unwrap();
        row.request.summary
    }

    async fn login(&self, words: &[&str]) -> Reply {
        self.call("login", json!({ "words": words })).await
    }

    async fn sh(&self, command: &str) -> Reply {
        self.call("sh", json!({ "command": command })).await
    }
}

#[tokio::test]
async fn both_ways_lead_to_the_program_and_are_scrubbed() {
    let place = ProgramBench::open().await;
    assert_eq!(done(&place.login(&["gh", "pr"]).await), "the token is [REDACTED]\n");
    assert_eq!(done(&place.sh("gh pr").await), "the token is [REDACTED]\n");
    assert_eq!(place.programs.runs(), [["gh", "pr"], ["gh", "pr"]]);
    assert!(place.shell.runs().is_empty());
    assert_eq!(done(&place.sh("ls").await), "plain\n");
    assert_eq!(place.programs.runs().len(), 2);
}

#[tokio::test]
async fn refuses_to_tell_the_value_while_it_runs() {
    let place = ProgramBench::open().await;
    let told = Arc::new(std::sync::Mutex::new(String::new()));
    let hears = Arc::clone(&told);
    let progress = Progress::to(move |text| hears.lock().unwrap().push_str(text));
    let offer = place.executor.offer(caller()).await;
    let request = Request { progress, ..Request::new("login", json!({ "words": ["gh"] })) };
    place.executor.execute(&offer, request).await;
    assert_eq!(*told.lock().unwrap(), "the token is [REDACTED]\n");
    assert!(place.heard.names().iter().any(|name| name == "call_progress"));
    let entries = place.store.recent(&TenantId::main(), 10).await.unwrap();
    assert!(!format!("{entries:?}").contains(VALUE));
}

#[tokio::test]
async fn refuses_what_the_plan_did_not_name() {
    let place = ProgramBench::open().await;
    let reply = place.call("login", json!({ "words": ["gh", "pr"], "instead": ["gh", "auth"] })).await;
    assert!(reply.model_text().contains("is not in the plan"), "{}", reply.model_text());
    assert!(place.programs.runs().is_empty());
}

#[tokio::test]
async fn refuses_who_may_not_use_the_tool_for_it() {
    let denied = json!({ "tools": { "deny": ["login"] } });
    let place = ProgramBench::new(AskMode::OnMiss, denied).await;
    assert_eq!(refused(&place.login(&["gh"]).await).0, "authorise");
    assert_eq!(
        done(&place.sh("gh pr").await),
        "plain\n",
        "without its credentials it is a program like others"
    );
    assert!(place.programs.runs().is_empty());
    // Allowed when the offer was made, but no longer.
    let place = ProgramBench::open().await;
    let offer = place.executor.offer(caller()).await;
    let policy: PolicyConfig = serde_json::from_value(json!({ "tools": { "deny": ["login"] } })).unwrap();
    place.executor.set_policy(Policy::compile(&policy).unwrap());
    let reply = place.executor.execute(&offer, Request::new("sh", json!({ "command": "gh pr" }))).await;
    assert_eq!(done(&reply), "plain\n");
    // Another agent, another tenant.
    let place = ProgramBench::open().await;
    for change in [
        |caller: &mut claw_core::tool::Caller| caller.agent = "other".parse().unwrap(),
        |caller: &mut claw_core::tool::Caller| caller.tenant = "other".parse().unwrap(),
    ] {
        let mut other = caller();
        change(&mut other);
        let offer = place.executor.offer(other).await;
        let reply = place.executor.execute(&offer, Request::new("login", json!({ "words": ["gh"] }))).await;
        assert!(refused(&reply).1.contains("no program is registered"));
    }
    assert!(place.programs.runs().is_empty());
}

#[tokio::test]
async fn refuses_a_program_that_changed_while_the_question_waited() {
    let place = ProgramBench::new(AskMode::Always, json!({})).await;
    let answered = async |change: &dyn Fn()| {
        let mut changes = place.store.changes(Topic::Approvals);
        let row = loop {
            if let Some(row) = place.store.pending(&TenantId::main(), place.clock.now()).await.unwrap().pop()
            {
                break row;
            }
            changes.changed().await.unwrap();
        };
        assert!(row.request.summary.contains("with the credentials TOKEN"), "{}", row.request.summary);
        change();
        let answer =
            Answer { approve: true, by: "ada".into(), at: place.clock.now(), reason: None, values: None };
        place.store.answer(&TenantId::main(), row.id, answer).await.unwrap();
    };
    let (reply, ()) = tokio::join!(place.login(&["gh", "pr"]), answered(&|| {}));
    assert_eq!(done(&reply), "the token is [REDACTED]\n");
    let swap = || place.programs.swap("another");
    let (reply, ()) = tokio::join!(place.login(&["gh", "pr"]), answered(&swap));
    assert!(reply.model_text().contains("changed since the call was judged"), "{}", reply.model_text());
    let deny = || place.programs.register("gh", &["auth", "pr"]);
    let (reply, ()) = tokio::join!(place.sh("gh pr"), answered(&deny));
    assert!(refused(&reply).1.contains("changed while the approval was pending"));
    assert_eq!(place.programs.runs().len(), 1);
}

/// Runs one script of a mixed plan; only that script decides whether it gets credentials.
#[track_caller]
fn check_mixed(place: &ProgramBench, reply: &Reply, script: &str, asks: &[&str]) {
    let (printed, runs): (_, &[&[&str]]) = match script {
        "gh pr" => ("the token is [REDACTED]\n", &[&["gh", "pr"]]),
        _ => ("plain\n", &[]),
    };
    assert_eq!(done(reply), printed, "{script} of {asks:?}");
    assert_eq!(place.programs.runs(), runs, "{script} of {asks:?}");
}

#[tokio::test]
async fn refuses_credentials_of_another_script_in_a_plan_that_also_types() {
    for asks in [
        ["input", "gh pr", "opaque", "ls"],
        ["input", "opaque", "ls", "gh pr"],
        ["gh pr", "input", "opaque", "ls"],
        ["opaque", "ls", "input", "gh pr"],
        ["ls", "opaque", "gh pr", "input"],
        ["gh pr", "opaque", "ls", "input"],
    ] {
        for script in ["gh pr", "ls"] {
            let place = ProgramBench::new(AskMode::Always, json!({})).await;
            let (kept, _) = tokio::join!(place.call("keep", json!({})), place.approve());
            let args = json!({ "asks": asks, "run": script, "process": done(&kept) });
            let (reply, summary) = tokio::join!(place.call("mixed", args), place.approve());
            check_mixed(&place, &reply, script, &asks);
            let shown = |text: &str| summary.find(text).unwrap_or_else(|| panic!("{text} in {summary}"));
            let (login, plain, typed) =
                (shown("with the credentials TOKEN"), shown("\n  ls"), shown("type into"));
            let at = |ask: &str| asks.iter().position(|other| *other == ask).unwrap();
            assert_eq!(login < plain, at("gh pr") < at("ls"), "{summary}");
            assert_eq!(typed < plain, at("input") < at("ls"), "{summary}");
        }
    }
}
