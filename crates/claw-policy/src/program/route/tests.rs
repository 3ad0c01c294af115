use claw_core::port::UnixMillis;
use claw_core::store::{ProgramPlace, ProgramSettings};
use claw_core::{ProgramName, TenantId};

use super::*;
use crate::program::preset;
use crate::shell::{Invocation, Rules};

fn program(name: &str) -> Arc<ProgramCard> {
    let place = ProgramPlace { tenant: TenantId::main(), agent: None, name: ProgramName::new(name).unwrap() };
    let mut settings = ProgramSettings::new(format!("/usr/bin/{name}"));
    if let Some(known) = preset(name) {
        settings.deny_args = known.deny_args.iter().map(ToString::to_string).collect();
        settings.deny_verbose = known.deny_verbose.iter().map(ToString::to_string).collect();
    }
    Arc::new(ProgramCard { place, settings, variables: vec!["TOKEN".into()], at: UnixMillis(1) })
}

fn of_script(script: &Script) -> Route {
    let invocation = Invocation { text: &script.text, env: &script.env, input: script.input.as_deref() };
    Route::of_script(script, &invocation.analyse(&Rules::default()), &[program("gh"), program("git")])
}

fn of_text(text: &str) -> Route {
    of_script(&Script { text: text.to_owned(), ..Script::default() })
}

fn of_words(words: &[&str]) -> Route {
    let argv = words.iter().map(ToString::to_string).collect();
    let argv = Argv { argv, directory: ".".into(), env: Vec::new(), credentials: true };
    Route::of_argv(&argv, &[program("gh"), program("git")])
}

/// Checks the route of a shell command: its words, the reason of a refusal, or an empty reason for the shell.
#[track_caller]
fn check(text: &str, expected: Result<&[&str], &str>) {
    match (of_text(text), expected) {
        (Route::Program(run), Ok(words)) => {
            let argv: Vec<&str> =
                std::iter::once(&run.word).chain(&run.arguments).map(String::as_str).collect();
            assert_eq!(argv, words, "{text}");
        }
        (Route::Refused { reason, advice }, Err(why)) if !why.is_empty() => {
            assert!(reason.contains(why), "{text}: {reason}");
            assert!(!advice.is_empty());
        }
        (Route::Shell, Err("")) => {}
        (route, _) => panic!("{text}: {route:?}"),
    }
}

#[test]
fn one_registered_program_alone_gets_its_credentials() {
    check("gh pr list", Ok(&["gh", "pr", "list"]));
    check("gh pr list 2>&1", Ok(&["gh", "pr", "list"]));
    check(r#"g""h p\r 'a b' "c; d""#, Ok(&["gh", "pr", "a b", "c; d"]));
    check("/opt/x/gh pr", Ok(&["/opt/x/gh", "pr"]));
    check("./gh pr", Ok(&["./gh", "pr"]));
}

#[test]
fn what_names_no_registered_program_goes_to_the_shell() {
    for text in ["ls", "echo gh", "make gh", "cat gh | wc", "# gh", "grep 'gh pr' x", "ghx pr", ""] {
        check(text, Err(""));
    }
}

#[test]
fn refuses_a_registered_program_beside_anything_else() {
    for text in [
        "gh pr list | cat",
        "true; gh pr",
        "cd x && gh pr",
        "gh pr || true",
        "gh pr & ",
        "gh pr; rm x",
        "env gh pr",
        "command gh pr",
        "exec gh pr",
        "nice gh pr",
        "sudo gh pr",
        "timeout 5 gh pr",
        "sh -c 'gh pr'",
        "bash -c \"gh pr\"",
        "xargs gh pr",
        "find . -exec gh pr {} \\;",
        "$(gh pr)",
        "echo $(gh pr)",
        "`gh pr`",
        "if gh pr; then ls; fi",
        "for i in 1; do gh pr; done",
        "f() { gh pr; }; f",
        "gh pr <(ls)",
        "eval gh pr",
        "echo 'gh pr' | sh",
        "sh <<< 'gh pr'",
        "nohup gh pr",
        "gh pr; gh pr",
        "gh pr\ngit pull",
    ] {
        check(text, Err("this call also has"));
    }
    for text in [
        "GH_HOST=evil.example gh pr",
        "gh pr > x",
        "gh pr < x",
        "(gh pr)",
        "gh pr 2>/dev/null",
        "gh pr <<< x",
    ] {
        check(text, Err("this call also has more than one plain command"));
    }
    let script = Script { text: "gh pr".into(), ..Script::default() };
    let with = |script: Script| match of_script(&script) {
        Route::Refused { reason, .. } => reason,
        route => panic!("{route:?}"),
    };
    let env = vec![("GH_HOST".to_owned(), "evil.example".to_owned())];
    assert!(with(Script { env, ..script.clone() }).contains("its own environment variables"));
    assert!(with(Script { input: Some("x".into()), ..script }).contains("also has standard input"));
}

#[test]
fn refuses_words_that_only_run_time_knows() {
    for text in ["gh $X", "gh \"$X\"", "gh *.md", "gh pr --body \"$(<x)\"", "gh ${A:-auth}", "gh au?h token"]
    {
        match of_text(text) {
            Route::Refused { .. } => {}
            route => panic!("{text}: {route:?}"),
        }
    }
}

#[test]
fn refuses_denied_arguments_however_they_are_written() {
    let denied = "may not be called like this";
    for text in [
        "gh auth token",
        "gh 'auth' token",
        "gh au\"th\" token",
        r"gh \auth token",
        "gh -R x auth token",
        "gh -- auth token",
        "gh $'\\x61uth' token",
        "gh  auth\t token",
        "gh {auth,token}",
        "gh pr --verbose",
        "gh pr -v",
        "git -c core.pager=x log",
        "git -ccore.pager=x log",
        "git 'config' x",
    ] {
        check(text, Err(denied));
    }
    for words in [
        &["gh", "auth", "token"][..],
        &["gh", "--", "auth", "token"],
        &["gh", "auth"],
        &["gh", "x", "auth", ""],
        &["gh", "api", "--hostname", "evil.example"],
        &["gh", "api", "--hostname=evil.example"],
    ] {
        assert!(
            matches!(of_words(words), Route::Refused { reason, .. } if reason.contains(denied)),
            "{words:?}"
        );
    }
    // Words inside one argument are not arguments, whatever space is between them.
    for argument in ["the auth flow", "auth flow is", "x\tauth\ttoken", "a\nauth token", "x\u{a0}auth y"] {
        let words = ["gh", "issue", "create", "--title", argument];
        assert!(matches!(of_words(&words), Route::Program(_)), "{argument:?}");
    }
}

#[test]
fn a_program_that_cannot_be_used_is_refused() {
    let argv = |words: &[&str]| Argv {
        argv: words.iter().map(ToString::to_string).collect(),
        directory: ".".into(),
        env: Vec::new(),
        credentials: true,
    };
    let mut card = ProgramCard::clone(&program("gh"));
    card.settings.enabled = false;
    let reason = |route: Route| match route {
        Route::Refused { reason, advice } => format!("{reason}; {advice}"),
        route => panic!("{route:?}"),
    };
    assert!(reason(Route::of_argv(&argv(&["gh"]), &[Arc::new(card.clone())])).contains("disabled"));
    card.settings.enabled = true;
    card.settings.deny_args = vec!["(".into()];
    assert!(reason(Route::of_argv(&argv(&["gh"]), &[Arc::new(card)])).contains("cannot be used"));
    assert!(reason(of_words(&["aws", "s3"])).contains("the registered programs are `gh`, `git`"));
    assert!(reason(of_words(&[])).contains("no program is named"));
    assert!(reason(of_words(&["gh", "a\0b"])).contains("NUL"));
    assert!(reason(Route::of_argv(&argv(&["gh"]), &[])).contains("no program is registered"));
    let env = Argv { env: vec![("A".into(), "1".into())], ..argv(&["gh"]) };
    assert!(reason(Route::of_argv(&env, &[program("gh")])).contains("gets only the environment variables"));
}

#[test]
fn a_program_as_a_script_means_the_same() {
    let words = ["gh", "a b", "it's", "$X", "", "*", "x\ny"].map(str::to_owned).to_vec();
    let argv = Argv { argv: words.clone(), directory: "d".into(), env: Vec::new(), credentials: true };
    let script = as_script(&argv);
    let verdict = crate::shell::analyse(&script.text, &Rules::default());
    let found: Vec<Option<&str>> = verdict.commands[0].argv.iter().map(Argument::known).collect();
    assert_eq!(found, words.iter().map(|word| Some(word.as_str())).collect::<Vec<_>>());
}

#[test]
fn the_shorter_time_holds() {
    let time =
        |timeout_secs| match of_script(&Script { text: "gh pr".into(), timeout_secs, ..Script::default() }) {
            Route::Program(run) => run.timeout_secs,
            route => panic!("{route:?}"),
        };
    assert_eq!((time(None), time(Some(5)), time(Some(600))), (30, 5, 30));
}
