//! Commands in the background, with the real tools, a real shell and the kernel's sandbox.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use claw_core::port::{Child, HostRan, ProcessState, RunContext, ShellHost, Start, World};
use claw_core::store::{Approval, Approvals as _, ProcessEnd, Processes as _, Worker};
use claw_core::tool::{Argv, Caller, Effect, Script, Sight, Target, ToolError};
use claw_core::{AgentId, BootId, NodeId, SessionKey, TenantId};
use claw_host::{ProcessKeeping, ProcessLimits, ProcessTable, SystemClock};
use claw_policy::approval::EffectRule;
use claw_policy::config::PolicyConfig;
use claw_policy::pipeline::Policy;
use claw_registry::{ApprovalAnswer, Approver, Asking, Discovery, Executor, Registry, Reply, Request};
use claw_sandbox::Launcher;
use claw_sandbox::docker::{DockerOptions, DockerShell};
use claw_sandbox::shell::{LocalShell, ShellOptions};
use claw_store::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

/// Tools over a real shell.
struct Desk {
    executor: Executor,
    store: Arc<SqliteStore>,
    workspace: TempDir,
    sandboxed: bool,
}

impl Desk {
    async fn new() -> Self {
        Self::with(ProcessLimits { grace: Duration::from_millis(300), ..ProcessLimits::default() }).await
    }

    async fn with(limits: ProcessLimits) -> Self {
        let shell = LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default());
        Self::over(Arc::new(shell), limits).await
    }

    /// Runs commands in containers; `None` if there is no engine.
    async fn in_containers() -> Option<Self> {
        let docker = DockerOptions {
            socket: crate::docker::socket()?.into(),
            image: crate::docker::IMAGE.to_owned(),
            idle: Duration::from_secs(10),
            installation: format!("desk-{}", BootId::new()),
            ..DockerOptions::default()
        };
        let local = LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default());
        let limits = ProcessLimits { grace: Duration::from_millis(300), ..ProcessLimits::default() };
        Some(Self::over(Arc::new(DockerShell::new(local, docker)), limits).await)
    }

    async fn over(shell: Arc<dyn ShellHost>, limits: ProcessLimits) -> Self {
        Self::answered(shell, limits, None).await
    }

    /// Approvals are answered by `approver`.
    async fn answered(
        shell: Arc<dyn ShellHost>,
        limits: ProcessLimits,
        approver: Option<Arc<dyn Approver>>,
    ) -> Self {
        let store = Arc::new(SqliteStore::memory(NodeId::local()).await.unwrap());
        let mut world = World::new(Arc::new(SystemClock));
        world.shell = Some(shell);
        let registry = Registry::new(world);
        clawsmith::populate(&registry, &Discovery::default(), |warning| panic!("{warning}"));
        let worker = Worker { node: NodeId::local(), boot: BootId::new() };
        let policy = Policy::compile(&PolicyConfig::default()).unwrap();
        let mut builder = Executor::builder(Arc::new(registry), store.clone(), policy)
            .processes(Arc::new(ProcessTable::new(ProcessKeeping { store: store.clone(), worker, limits })));
        if let Some(approver) = approver {
            builder = builder.approver(approver);
        }
        let executor = builder.build();
        executor.scrubbers().add("open-sesame-4711").unwrap();
        Self { executor, store, workspace: tempfile::tempdir().unwrap(), sandboxed: true }
    }

    fn caller(&self, session: &str) -> Caller {
        let workspace = self.workspace.path().canonicalize().unwrap();
        let session = SessionKey::new(session).unwrap();
        let mut caller = Caller::new(AgentId::new("main").unwrap(), session, workspace);
        caller.sandboxed = self.sandboxed;
        caller
    }

    async fn call_as(&self, caller: Caller, tool: &str, args: Value) -> Reply {
        let offer = self.executor.offer(caller).await;
        let request = Request { asking: Asking::Impossible, ..Request::new(tool, args) };
        self.executor.execute(&offer, request).await
    }

    async fn asking(&self, asking: Asking, tool: &str, args: Value) -> Reply {
        let offer = self.executor.offer(self.caller("test:one")).await;
        self.executor.execute(&offer, Request { asking, ..Request::new(tool, args) }).await
    }

    async fn call(&self, tool: &str, args: Value) -> Reply {
        self.call_as(self.caller("test:one"), tool, args).await
    }

    async fn process(&self, args: Value) -> Reply {
        self.call("process", args).await
    }

    /// Starts a command; returns its name.
    async fn start(&self, mut args: Value) -> String {
        args["background"] = json!(true);
        let details = details(&self.call("exec", args).await);
        let id = details["id"].as_str().unwrap();
        id[id.len() - 8..].to_owned()
    }

    async fn wait(&self, id: &str, pattern: &str) -> Value {
        let reply = self.process(json!({ "action": "wait", "id": id, "pattern": pattern })).await;
        let details = details(&reply);
        assert!(details["matched"].is_string(), "{pattern}: {}", self.poll(id, 0).await["text"]);
        details
    }

    async fn ended(&self, id: &str) -> Value {
        let details = details(&self.process(json!({ "action": "wait", "id": id })).await);
        assert_eq!(details["card"]["state"]["state"], "ended", "{details}");
        details["card"]["state"].clone()
    }

    async fn poll(&self, id: &str, offset: u64) -> Value {
        details(&self.process(json!({ "action": "poll", "id": id, "offset": offset })).await)
    }

    async fn write(&self, id: &str, text: &str) -> Reply {
        self.process(json!({ "action": "write", "id": id, "text": text })).await
    }
}

/// Approves everything that it is asked.
struct Agrees;

#[async_trait]
impl Approver for Agrees {
    async fn answer(&self, _: &Approval) -> ApprovalAnswer {
        ApprovalAnswer::yes("a person")
    }
}

/// A shell that starts the commands of one tenant only once it is told to.
struct SlowShell {
    shell: LocalShell,
    /// Told when such a command is being started.
    reached: Notify,
    /// Lets it start.
    go: Notify,
}

/// The sandbox key of the tenant whose commands are slow.
const SLOW: &str = "slow";

#[async_trait]
impl ShellHost for SlowShell {
    async fn look(&self, context: &RunContext, targets: &[Target]) -> Result<Vec<Sight>, ToolError> {
        self.shell.look(context, targets).await
    }

    async fn run(&self, context: &RunContext, script: &Script) -> Result<HostRan, ToolError> {
        self.shell.run(context, script).await
    }

    async fn spawn(&self, context: &RunContext, argv: &Argv) -> Result<HostRan, ToolError> {
        self.shell.spawn(context, argv).await
    }

    async fn start(&self, context: &RunContext, start: &Start) -> Result<Child, ToolError> {
        if context.sandbox_key == SLOW {
            self.reached.notify_one();
            self.go.notified().await;
        }
        self.shell.start(context, start).await
    }
}

#[tokio::test]
async fn a_command_that_is_slow_to_start_holds_up_no_other_tenant() {
    let shell = LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default());
    let shell = Arc::new(SlowShell { shell, reached: Notify::new(), go: Notify::new() });
    let limits = ProcessLimits { per_session: 1, ..ProcessLimits::default() };
    let desk = Desk::over(Arc::clone(&shell) as _, limits).await;
    let slow = || {
        let mut caller = desk.caller("test:one");
        (caller.tenant, caller.sandbox_key) = (TenantId::new(SLOW).unwrap(), SLOW.into());
        caller
    };
    let args = || json!({ "command": "true", "background": true });
    let first = desk.call_as(slow(), "exec", args());
    let others = async {
        shell.reached.notified().await;
        details(&desk.call("exec", args()).await);
        // The command that is being started counts.
        refused(&desk.call_as(slow(), "exec", args()).await, "which is the limit");
        shell.go.notify_one();
    };
    // The time only keeps a failure from hanging.
    let both = tokio::time::timeout(Duration::from_secs(120), async { tokio::join!(first, others) });
    let (first, ()) = both.await.expect("one slow start holds up the others");
    details(&first);
}

#[tokio::test]
async fn a_write_runs_in_the_background_only_if_a_person_was_asked_about_it() {
    let shell = LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default());
    let desk = Desk::answered(Arc::new(shell), ProcessLimits::default(), Some(Arc::new(Agrees))).await;
    let mut approvals = (*desk.executor.approvals()).clone();
    approvals.effects.insert(Effect::Write, EffectRule::Ask);
    desk.executor.set_approvals(approvals);
    let args = |command: &str| json!({ "command": command, "background": true });
    let made = desk.workspace.path().join("made");
    for asking in [Asking::Impossible, Asking::Possible] {
        // Its text does not say that it writes, so nobody was asked.
        let reply = desk.asking(asking, "exec", args("sort -o made /dev/null")).await;
        refused(&reply, "cannot be held back until a person has approved them");
        assert!(!made.exists());
    }
    refused(&desk.asking(Asking::Impossible, "exec", args("touch made")).await, "approval");
    let started = details(&desk.asking(Asking::Possible, "exec", args("touch made")).await);
    let id = started["id"].as_str().unwrap();
    assert_eq!(desk.ended(&id[id.len() - 8..]).await["code"], 0);
    assert!(made.exists());
    // A command that only reads needs no approval.
    details(&desk.asking(Asking::Impossible, "exec", args("cat /dev/null")).await);
}

#[track_caller]
fn details(reply: &Reply) -> Value {
    match &reply.outcome {
        Ok(output) => output.details.clone().unwrap(),
        Err(error) => panic!("{error}"),
    }
}

#[track_caller]
fn refused(reply: &Reply, expected: &str) {
    let text = reply.model_text();
    assert!(reply.outcome.is_err() && text.contains(expected), "{text}");
}

/// Counts the processes that have this word in their environment.
pub(crate) fn processes_with(word: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let has = |pid: &u32| {
        let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    };
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has).count()
}

pub(crate) async fn until_none_is_left(word: &str) {
    for _ in 0..600 {
        if processes_with(word) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} processes are left", processes_with(word));
}

#[tokio::test]
async fn what_is_printed_is_read_in_order_by_offsets() {
    let desk = Desk::new().await;
    let id =
        desk.start(json!({ "command": "echo one; read go; echo two; read go; echo three; exit 4" })).await;
    desk.wait(&id, "one").await;
    let first = desk.poll(&id, 0).await;
    assert_eq!((first["text"].as_str(), first["next"].as_u64()), (Some("one\n"), Some(4)));
    desk.write(&id, "\n").await;
    desk.wait(&id, "two").await;
    let second = desk.poll(&id, 4).await;
    assert_eq!((second["text"].as_str(), second["next"].as_u64()), (Some("two\n"), Some(8)));
    desk.write(&id, "\n").await;
    assert_eq!(
        desk.ended(&id).await,
        json!({ "state": "ended", "end": "exited", "code": 4, "signal": null })
    );
    assert_eq!(desk.poll(&id, 8).await["text"], "three\n");
    assert_eq!(desk.poll(&id, 2).await["text"], "e\ntwo\nthree\n");
    let stored =
        desk.store.processes(&TenantId::main(), &SessionKey::new("test:one").unwrap()).await.unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!(stored[0].ended.unwrap().0, ProcessEnd::Exited { code: Some(4), signal: None });
    refused(&desk.write(&id, "\n").await, "no longer reads input");
}

#[tokio::test]
async fn what_is_too_much_is_dropped_and_counted() {
    let desk = Desk::with(ProcessLimits { output_bytes: 1000, ..ProcessLimits::default() }).await;
    let id = desk.start(json!({ "command": "for i in $(seq 1000 1999); do echo $i; done" })).await;
    desk.ended(&id).await;
    let printed = desk.poll(&id, 500).await;
    assert_eq!(
        (&printed["dropped"], &printed["from"], &printed["next"]),
        (&json!(3500), &json!(4000), &json!(5000))
    );
    assert!(printed["text"].as_str().unwrap().starts_with("1800\n1801\n"), "{printed}");
    let reply = desk.process(json!({ "action": "poll", "id": id, "offset": 500 })).await;
    assert!(
        reply.model_text().starts_with("[3500 bytes before this are no longer kept]\n"),
        "{}",
        reply.model_text()
    );
}

#[tokio::test]
async fn refuses_to_show_a_secret_that_comes_in_two_pieces() {
    let desk = Desk::new().await;
    for pty in [false, true] {
        let command = "stty -echo 2>/dev/null; echo begin; printf 'say open-ses'; read go; printf 'ame-4711 now\\nAKIAIOSFOD'; read go; \
                       printf 'NN7EXAMPLQ\\n\\033[1mopen-\\033[0msesame-4711\\n> '; read go";
        let id = desk.start(json!({ "command": command, "pty": pty })).await;
        desk.wait(&id, "begin").await;
        for step in 0..2 {
            // It has printed the first half when it waits in `read`; what is shown until then holds none of it.
            for _ in 0..40 {
                let shown = desk.poll(&id, 0).await;
                let text =
                    format!("{}{}", shown["text"].as_str().unwrap(), shown["unfinished"].as_str().unwrap());
                assert!(!text.contains("open-s") && !text.contains("AKIA"), "{step}: {text}");
                tokio::task::yield_now().await;
            }
            desk.write(&id, "\n").await;
        }
        desk.wait(&id, "^> $").await;
        let shown = desk.poll(&id, 0).await;
        let text = shown["text"].as_str().unwrap();
        assert!(text.contains("say [REDACTED] now\n"), "{text}");
        for part in ["sesame", "4711", "AKIA", "EXAMPLQ"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
        assert_eq!(shown["unfinished"], "> ");
        desk.process(json!({ "action": "kill", "id": id })).await;
    }
}

#[tokio::test]
async fn what_a_program_reads_is_its_input() {
    let desk = Desk::new().await;
    let id = desk.start(json!({ "command": "cat" })).await;
    details(&desk.write(&id, "rm -rf / is only text here\n").await);
    desk.wait(&id, "only text").await;
    details(&desk.process(json!({ "action": "write", "id": id, "text": "last\n", "end": true })).await);
    assert_eq!(desk.ended(&id).await["code"], 0);
    assert_eq!(desk.poll(&id, 0).await["text"], "rm -rf / is only text here\nlast\n");
}

#[tokio::test]
async fn refuses_to_type_into_a_shell_what_would_not_run() {
    let desk = Desk::new().await;
    std::fs::create_dir(desk.workspace.path().join("tree")).unwrap();
    std::os::unix::fs::symlink("/bin/bash", desk.workspace.path().join("quiet")).unwrap();
    let id = desk.start(json!({ "command": "bash" })).await;
    details(&desk.write(&id, "X=rm; echo hello $((6*7))\n").await);
    desk.wait(&id, "hello 42").await;
    refused(&desk.write(&id, "rm -rf tree\n").await, "destructive.rm-recursive");
    refused(&desk.write(&id, "$X -rf tree\n").await, "destructive.rm-recursive");
    refused(&desk.write(&id, "rm -r").await, "destructive.rm-tree");
    refused(&desk.write(&id, "read y\ncat <<E\nrm -rf tree\nE\n").await, "unknown.script");
    details(&desk.write(&id, "echo still; ls\n").await);
    desk.wait(&id, "still\nquiet\ntree").await;

    let python = desk.start(json!({ "command": "python3 -i" })).await;
    refused(&desk.write(&python, "print(1)\n").await, "unknown.input");
    let quiet = desk.start(json!({ "command": "./quiet" })).await;
    refused(&desk.write(&quiet, "echo\n").await, "/bash`");
    assert!(desk.workspace.path().join("tree").exists());
}

#[tokio::test]
async fn refuses_an_answer_to_what_was_typed_when_something_else_was_typed_first() {
    let desk = Desk::new().await;
    let id = desk.start(json!({ "command": "python3 -i" })).await;
    let offer = desk.executor.offer(desk.caller("test:one")).await;
    let typed = |text: &str| Request::new("process", json!({ "action": "write", "id": id, "text": text }));
    let first = desk.executor.execute(&offer, typed("print('first')\n"));
    let second = desk.executor.execute(&offer, typed("print('second')\n"));
    let answers = async {
        let now = claw_core::port::Clock::now(&SystemClock);
        let pending = loop {
            let pending = desk.store.pending(&TenantId::main(), now).await.unwrap();
            if pending.len() == 2 {
                break pending;
            }
            tokio::task::yield_now().await;
        };
        assert!(pending[0].request.summary.contains("print('"), "{}", pending[0].request.summary);
        for question in pending {
            let answer = claw_core::store::Answer {
                approve: true,
                by: "ana".into(),
                at: now,
                reason: None,
                values: None,
            };
            desk.store.answer(&TenantId::main(), question.id, answer).await.unwrap();
        }
    };
    let (first, second, ()) = tokio::join!(first, second, answers);
    let texts = [first.model_text(), second.model_text()];
    let conflicts = texts.iter().filter(|text| text.contains("since this input was judged")).count();
    assert_eq!(conflicts, 1, "{texts:?}");
    desk.wait(&id, "^(>>> )?(first|second)$").await;
}

#[tokio::test]
async fn waits_for_what_is_printed_and_no_longer_than_it_is_told() {
    let desk = Desk::new().await;
    let id = desk.start(json!({ "command": "echo port 8080; read go" })).await;
    let found = desk.wait(&id, r"port (\d+)").await;
    assert_eq!((&found["matched"], &found["next"]), (&json!("port 8080"), &json!(9)));
    let args = json!({ "action": "wait", "id": id, "pattern": "never", "timeout_seconds": 1 });
    let reply = desk.process(args).await;
    assert!(reply.model_text().contains("within 1 s, and still runs"), "{}", reply.model_text());
    desk.write(&id, "\n").await;
    let reply = desk.process(json!({ "action": "wait", "id": id, "pattern": "never" })).await;
    assert!(reply.model_text().contains("ended with exit code 0"), "{}", reply.model_text());
    refused(&desk.process(json!({ "action": "wait", "id": id, "pattern": "(" })).await, "regular expression");
}

#[tokio::test]
async fn kill_takes_the_whole_tree() {
    for sandboxed in [true, false] {
        let desk = Desk { sandboxed, ..Desk::new().await };
        let word = format!("background-{sandboxed}-{}", std::process::id());
        let command =
            "trap '' TERM; sleep 999 & setsid sleep 999 & (sleep 999 &); echo ready; wait; sleep 999";
        let args = json!({ "command": command, "env": [format!("MARK={word}")] });
        let id = desk.start(args).await;
        desk.wait(&id, "ready").await;
        assert!(processes_with(&word) > 2);
        let card = details(&desk.process(json!({ "action": "kill", "id": id })).await);
        assert_eq!(card["state"], json!({ "state": "ended", "end": "killed" }));
        assert_eq!(processes_with(&word), 0);
    }
}

#[tokio::test]
async fn refuses_another_session_and_another_tenant() {
    let desk = Desk::new().await;
    let id = desk.start(json!({ "command": "cat" })).await;
    let mut tenant = desk.caller("test:one");
    tenant.tenant = TenantId::new("other").unwrap();
    for caller in [desk.caller("test:two"), tenant] {
        let listed = desk.call_as(caller.clone(), "process", json!({ "action": "list" })).await;
        assert_eq!(details(&listed), json!([]));
        for (action, with) in [
            ("poll", json!({})),
            ("write", json!({ "text": "x" })),
            ("keys", json!({ "keys": ["C-c"] })),
            ("resize", json!({ "columns": 9, "rows": 9 })),
            ("wait", json!({})),
            ("kill", json!({})),
        ] {
            let mut args = with;
            args["action"] = json!(action);
            args["id"] = json!(id);
            refused(&desk.call_as(caller.clone(), "process", args).await, "has no background command");
        }
    }
    assert_eq!(desk.poll(&id, 0).await["card"]["state"]["state"], "running");
    for short in ["", "a", "-"] {
        refused(&desk.process(json!({ "action": "kill", "id": short })).await, "has no background command");
    }
}

#[tokio::test]
async fn a_terminal_has_keys_a_size_and_a_prompt() {
    let desk = Desk::new().await;
    let command = "PS1='ready> ' bash --norc --noprofile -i";
    let id = desk.start(json!({ "command": command, "pty": true })).await;
    desk.wait(&id, "ready> ").await;
    details(&desk.write(&id, "test -t 0 && stty size\r").await);
    desk.wait(&id, "^24 80$").await;
    details(&desk.process(json!({ "action": "resize", "id": id, "columns": 132, "rows": 43 })).await);
    details(&desk.write(&id, "stty size; sh -c 'echo asleep; exec sleep 600'; echo over $?\r").await);
    desk.wait(&id, "^43 132\nasleep$").await;
    let keys = |keys: Value| json!({ "action": "keys", "id": id, "keys": keys });
    details(&desk.process(keys(json!(["C-c"]))).await);
    details(&desk.write(&id, "echo then $((1 + 1))\r").await);
    // With the prompt: the shell takes the end of its input for one only while it reads a line.
    desk.wait(&id, "^then 2\nready> ").await;
    refused(&desk.process(keys(json!(["Up", "Enter"]))).await, "rule `");
    refused(&desk.write(&id, "rm -rf x\r").await, "destructive.rm-recursive");
    let with_end = json!({ "action": "write", "id": id, "text": "echo\r", "end": true });
    refused(&desk.process(with_end).await, "keys within the text");
    details(&desk.process(json!({ "action": "write", "id": id, "end": true })).await);
    desk.ended(&id).await;

    let plain = desk.start(json!({ "command": "cat" })).await;
    refused(&desk.process(json!({ "action": "keys", "id": plain, "keys": ["Up"] })).await, "no terminal");
    refused(
        &desk.process(json!({ "action": "resize", "id": plain, "columns": 9, "rows": 9 })).await,
        "no terminal",
    );
}

#[tokio::test]
async fn refuses_more_than_a_session_may_have() {
    let desk = Desk::with(ProcessLimits { per_session: 2, ended: 1, ..ProcessLimits::default() }).await;
    let first = desk.start(json!({ "command": "cat" })).await;
    desk.start(json!({ "command": "cat" })).await;
    refused(&desk.call("exec", json!({ "command": "cat", "background": true })).await, "2 commands");
    let other =
        desk.call_as(desk.caller("test:two"), "exec", json!({ "command": "cat", "background": true })).await;
    details(&other);
    desk.process(json!({ "action": "kill", "id": first })).await;
    let third = desk.start(json!({ "command": "exit 0" })).await;
    desk.ended(&third).await;
    desk.start(json!({ "command": "cat" })).await;
    let listed = details(&desk.process(json!({ "action": "list" })).await);
    assert_eq!(listed.as_array().unwrap().len(), 3, "two that run and the last that ended: {listed}");
    let desk = Desk::with(ProcessLimits { per_session: 0, ..ProcessLimits::default() }).await;
    let reply = desk.call("exec", json!({ "command": "touch made", "background": true })).await;
    refused(&reply, "`limits.background_commands` is 0");
    assert!(!desk.workspace.path().join("made").exists());
}

#[tokio::test]
async fn a_time_that_is_given_holds() {
    let desk = Desk::new().await;
    let id = desk.start(json!({ "command": "sleep 600", "timeout_seconds": 1 })).await;
    assert_eq!(desk.ended(&id).await["end"], "killed");
}

#[tokio::test]
async fn nothing_outlives_its_owner() {
    let desk = Desk::new().await;
    let word = format!("background-owner-{}", std::process::id());
    let mark = json!([format!("MARK={word}")]);
    for pty in [false, true] {
        let id = desk.start(json!({ "command": "echo ready; sleep 999", "env": mark, "pty": pty })).await;
        desk.wait(&id, "ready").await;
    }
    // One that is just becoming another program shows no environment.
    for _ in 0..100 {
        if processes_with(&word) >= 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(processes_with(&word) >= 2);
    let Desk { executor, store, .. } = desk;
    assert_eq!(executor.end_processes().await, 2);
    assert_eq!(processes_with(&word), 0);
    drop((executor, store));

    let desk = Desk::new().await;
    let id = desk.start(json!({ "command": "echo ready; sleep 999", "env": mark })).await;
    desk.wait(&id, "ready").await;
    drop(desk);
    until_none_is_left(&word).await;
}

#[tokio::test]
async fn in_a_container_all_of_it_is_the_same() {
    let Some(desk) = Desk::in_containers().await else { return };
    let word = format!("background-container-{}", std::process::id());
    let command =
        "echo one open-sesame-4711; read go; sleep 999 & setsid sleep 999 & echo two $go; wait; sleep 999";
    let id = desk.start(json!({ "command": command, "env": [format!("MARK={word}")] })).await;
    desk.wait(&id, "one").await;
    assert_eq!(desk.poll(&id, 0).await["text"], "one [REDACTED]\n");
    let listed = details(&desk.process(json!({ "action": "list" })).await);
    assert_eq!(listed[0]["place"], "a Docker container", "{listed}");
    details(&desk.write(&id, "typed\n").await);
    desk.wait(&id, "^two typed$").await;
    assert!(processes_with(&word) > 2);
    let card = details(&desk.process(json!({ "action": "kill", "id": id })).await);
    assert_eq!(card["state"], json!({ "state": "ended", "end": "killed" }));
    assert_eq!(processes_with(&word), 0);
    // A shell on a terminal: what is typed is judged, however the shell is called in the image.
    std::fs::create_dir(desk.workspace.path().join("tree")).unwrap();
    let id = desk.start(json!({ "command": "PS1='ready> ' sh -i", "pty": true })).await;
    desk.wait(&id, "ready> ").await;
    details(&desk.write(&id, "test -t 0 && stty size\r").await);
    desk.wait(&id, "^24 80$").await;
    details(&desk.process(json!({ "action": "resize", "id": id, "columns": 132, "rows": 43 })).await);
    details(&desk.write(&id, "stty size; sh -c 'echo asleep; exec sleep 600'\r").await);
    desk.wait(&id, "^43 132\nasleep$").await;
    details(&desk.process(json!({ "action": "keys", "id": id, "keys": ["C-c"] })).await);
    details(&desk.write(&id, "echo then $((1 + 1))\r").await);
    desk.wait(&id, "^then 2$").await;
    refused(&desk.write(&id, "rm -rf tree\r").await, "destructive.rm-recursive");
    details(&desk.process(json!({ "action": "write", "id": id, "end": true })).await);
    desk.ended(&id).await;
    assert!(desk.workspace.path().join("tree").exists());
    let args = json!({ "command": "test -t 1 && stty size", "pty": true });
    let reply = desk.call("exec", args).await;
    assert!(reply.model_text().contains("24 80"), "{}", reply.model_text());
    // All that runs ends with the program's table of it.
    let args = json!({ "command": "echo ready; sleep 999", "env": [format!("MARK={word}")] });
    let id = desk.start(args).await;
    desk.wait(&id, "ready").await;
    drop(desk);
    until_none_is_left(&word).await;
}

#[tokio::test]
async fn refuses_to_survive_in_a_container_by_stopping_what_would_end_it() {
    let Some(desk) = Desk::in_containers().await else { return };
    let within = Duration::from_secs(60);
    // Its supervisor; its keeper too, and every other process that it may signal.
    for (at, stop) in ["kill -STOP $PPID", "kill -STOP -1"].into_iter().enumerate() {
        let word = format!("background-frozen-{at}-{}", std::process::id());
        let script = format!(
            "echo ready; read go; trap '' HUP TERM; {stop}; touch stopped; setsid sleep 999 & while :; do sleep 1; done"
        );
        std::fs::write(desk.workspace.path().join("stop.sh"), script).unwrap();
        // The shell of the script is the command itself: its parent is what keeps it.
        let args = json!({ "command": "exec sh stop.sh", "env": [format!("MARK={word}")] });
        let id = desk.start(args).await;
        desk.wait(&id, "ready").await;
        details(&desk.write(&id, "go\n").await);
        let stopped = desk.workspace.path().join("stopped");
        let made = async {
            while !stopped.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(within, made).await.expect("the command got there");
        let killed = desk.process(json!({ "action": "kill", "id": id }));
        let card = details(&tokio::time::timeout(within, killed).await.expect("it is killed"));
        assert_eq!(card["state"]["state"], "ended", "{stop}: {card}");
        until_none_is_left(&word).await;
        std::fs::remove_file(stopped).unwrap();
        // The session's next command has a container that works.
        let reply = desk.call("exec", json!({ "command": "echo fine" })).await;
        assert!(reply.model_text().starts_with("fine\n"), "{}", reply.model_text());
    }
}

#[tokio::test]
async fn a_hung_engine_is_told_to_who_starts_a_background_command() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("engine.sock");
    // Takes connections and says nothing.
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let docker = DockerOptions { socket, image: crate::docker::IMAGE.to_owned(), ..DockerOptions::default() };
    let local = LocalShell::new(Arc::new(Launcher::new()), ShellOptions::default());
    let desk = Desk::over(Arc::new(DockerShell::new(local, docker)), ProcessLimits::default()).await;
    for args in [json!({ "command": "sleep 999", "background": true }), json!({ "command": "true" })] {
        let reply = tokio::time::timeout(Duration::from_secs(25), desk.call("exec", args)).await;
        refused(&reply.expect("within seconds"), "did not answer in time");
    }
    let listed = desk.process(json!({ "action": "list" })).await;
    assert!(listed.model_text().contains("nothing runs"), "{}", listed.model_text());
}

#[tokio::test]
async fn refuses_to_keep_commands_where_the_program_ends_with_the_call() {
    let desk = Desk::new().await;
    let registry = Arc::clone(desk.executor.registry());
    let policy = Policy::compile(&PolicyConfig::default()).unwrap();
    let desk = Desk { executor: Executor::builder(registry, desk.store.clone(), policy).build(), ..desk };
    let reply = desk.call("exec", json!({ "command": "sleep 1", "background": true })).await;
    refused(&reply, "`clawsmith chat`");
}

#[test]
fn states_are_told_apart() {
    let state = serde_json::to_value(ProcessState::Running).unwrap();
    assert_eq!(state, json!({ "state": "running" }));
}
