//! Plans that name less than the tool tries.

use super::*;

#[tokio::test]
async fn a_write_needs_the_effect_to_write() {
    let approvals = ApprovalConfig { ask: AskMode::Always, ..ApprovalConfig::default() };
    let bench = Bench::new(Setup { approvals, ..Setup::default() });
    let mut meta = Meta::of("reader".parse().unwrap(), Group::Tools);
    meta.effects = Effects::of(&[Effect::Read]);
    meta.needs = vec![Need::Files].into();
    let (tool, _) = custom(
        meta,
        any_schema(),
        |_, _| {
            Ok(Plan {
                effects: Effects::of(&[Effect::Read]),
                asks: vec![Ask::Write { path: "a.txt".into() }],
                given: None,
            })
        },
        |call, _| {
            Box::pin(async move {
                let files = call.files()?;
                files.read("a.txt", WHOLE).await?;
                files.write("a.txt", "overwritten", WriteMode::Overwrite).await.map(|_| Output::text("ok"))
            })
        },
    );
    bench.executor.registry().register(tool).unwrap();
    let reply = bench.call("reader", json!({})).await;
    assert_eq!(
        bench.files.text("/w/a.txt").unwrap(),
        "one\ntwo\n",
        "a tool that only reads wrote: {}",
        reply.model_text()
    );
}

#[tokio::test]
async fn a_script_needs_the_effect_to_execute() {
    let effects = [(Effect::Execute, EffectRule::Deny)].into_iter().collect();
    let bench = Bench::new(Setup {
        approvals: ApprovalConfig { effects, ..ApprovalConfig::default() },
        ..Setup::default()
    });
    let mut meta = Meta::of("reader".parse().unwrap(), Group::Tools);
    meta.effects = Effects::of(&[Effect::Read]);
    meta.needs = vec![Need::Shell].into();
    let script = || Script { text: "id".into(), directory: "/w".into(), ..Script::default() };
    let (tool, _) = custom(
        meta,
        any_schema(),
        move |_, _| {
            Ok(Plan { effects: Effects::of(&[Effect::Read]), asks: vec![Ask::Script(script())], given: None })
        },
        move |call, _| {
            Box::pin(async move { call.shell()?.run(&script()).await.map(|ran| Output::text(ran.output)) })
        },
    );
    bench.executor.registry().register(tool).unwrap();
    let offer = bench.offer().await;
    let reply = tokio::select! {
        reply = bench.executor.execute(&offer, Request::new("reader", json!({}))) => Some(reply),
        row = question(&bench) => { println!("asked: {}", row.request.reason); None }
    };
    assert!(
        reply.is_some_and(|r| !r.is_done()),
        "`approvals.effects.execute` says deny, and a person was asked"
    );
}

#[tokio::test]
async fn a_file_that_changed_while_the_question_waited_is_not_written() {
    let effects = [(Effect::Write, EffectRule::Ask)].into_iter().collect();
    let bench = Bench::new(Setup {
        approvals: ApprovalConfig { effects, ..ApprovalConfig::default() },
        ..Setup::default()
    });
    let offer = bench.offer().await;
    let (reply, ()) = tokio::join!(
        bench.executor.execute(&offer, Request::new("save", json!({"file_path": "a.txt"}))),
        async {
            let _ = question(&bench).await;
            bench.files.put("/w/a.txt", "the user's new work");
            approve_one(&bench).await;
        }
    );
    assert_eq!(bench.files.text("/w/a.txt").unwrap(), "the user's new work", "{}", reply.model_text());
}
