use super::*;

fn context(sights: Vec<Sight>) -> RunContext {
    RunContext { sights, ..RunContext::new("/ws", "cli:me") }
}

fn script(text: &str) -> Script {
    Script { text: text.to_owned(), directory: "/ws".to_owned(), ..Script::default() }
}

#[tokio::test]
async fn answers_from_its_script_and_remembers_what_ran() {
    let shell = FakeShell::new(Reply::prints("")).on("false", Reply::exits(1, "no"));
    assert_eq!(shell.run(&context(Vec::new()), &script("true")).await.unwrap().exit, Some(0));
    assert_eq!(shell.run(&context(Vec::new()), &script("false")).await.unwrap().exit, Some(1));
    assert_eq!(shell.runs().iter().map(|run| run.command.as_str()).collect::<Vec<_>>(), ["true", "false"]);
}

#[tokio::test]
async fn hangs_until_it_is_cancelled() {
    let shell = FakeShell::new(Reply::Hangs);
    let (context, sleep) = (context(Vec::new()), script("sleep 9"));
    let (outcome, ()) = tokio::join!(shell.run(&context, &sleep), async {
        shell.started(1).await;
        context.cancel.cancel();
    });
    assert_eq!(outcome.unwrap_err().kind, ErrorKind::Cancelled);
}

#[tokio::test]
async fn refuses_a_program_swapped_after_it_was_judged() {
    let shell = FakeShell::new(Reply::prints(""));
    let target = Target::Program { name: "git".to_owned(), directory: "/ws".to_owned() };
    let sights = shell.look(&context(Vec::new()), std::slice::from_ref(&target)).await.unwrap();
    shell.run(&context(sights.clone()), &script("git status")).await.unwrap();
    shell.swap(target, "another");
    let outcome = shell.run(&context(sights), &script("git status")).await;
    assert_eq!(outcome.unwrap_err().kind, ErrorKind::Conflict);
    assert_eq!(shell.runs().len(), 1);
}
