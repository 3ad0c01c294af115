//! Commands that are not waited for: pipes, terminals, and their end.

use claw_core::port::{Allowed, Child, Program, ShellHost as _, Size, Start};
use claw_core::tool::{Argv, Effect, Effects, Script};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::kit::{Kit, processes_with};

pub(crate) fn script(text: &str) -> Start {
    Start::new(Program::Script(Script { text: text.to_owned(), ..Script::default() }))
}

pub(crate) fn on_a_terminal(text: &str) -> Start {
    Start { terminal: Some(Size { columns: 100, rows: 30 }), ..script(text) }
}

/// Reads until the expected text was printed; returns all output.
pub(crate) async fn until(child: &mut Child, expected: &str) -> String {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if text.contains(expected) {
            return text;
        }
        match child.output.read(&mut buffer).await {
            Ok(count @ 1..) => seen.extend(&buffer[..count]),
            other => panic!("{other:?} after {text:?}, waiting for {expected:?}"),
        }
    }
}

pub(crate) async fn rest(child: &mut Child) -> String {
    let mut seen = Vec::new();
    // A terminal that nobody has any more gives an error, not an end.
    let _ = child.output.read_to_end(&mut seen).await;
    String::from_utf8_lossy(&seen).into_owned()
}

#[tokio::test]
async fn what_is_written_is_read_and_the_end_of_it_ends_the_command() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        let mut child = kit.shell().start(&kit.context, &script("cat; echo over; exit 3")).await.unwrap();
        assert!(child.pid > 1, "{child:?}");
        child.input.write_all(b"first\n").await.unwrap();
        until(&mut child, "first\n").await;
        child.input.write_all(b"second\n").await.unwrap();
        until(&mut child, "second\n").await;
        child.input = Box::new(tokio::io::sink());
        assert_eq!(rest(&mut child).await, "over\n");
        assert_eq!(child.control.ended().await.unwrap().exit, Some(3));
        assert!(child.control.resize(Size::default()).is_err(), "it has no terminal");
    }
}

#[tokio::test]
async fn a_child_has_streams_and_paths_of_its_own() {
    let kit = Kit::new();
    std::fs::write(kit.outside.path().join("granted"), "granted\n").unwrap();
    let file = kit.outside.path().join("granted").display().to_string();
    let argv = Argv {
        argv: vec!["sh".into(), "-c".into(), format!("echo wrong >&2; cat '{file}'; echo x > '{file}'")],
        directory: String::new(),
        env: Vec::new(),
        credentials: false,
    };
    let mut start = Start { apart: true, ..Start::new(Program::Argv(argv)) };
    let absent = kit.shell().start(&kit.context, &start).await.unwrap();
    let mut errors = String::new();
    absent.errors.unwrap().read_to_string(&mut errors).await.unwrap();
    assert!(errors.starts_with("wrong\n") && errors.contains("No such file"), "{errors}");

    start.paths = vec![Allowed { path: kit.outside.path().to_owned(), write: false }];
    let mut child = kit.shell().start(&kit.context, &start).await.unwrap();
    assert_eq!(rest(&mut child).await, "granted\n");
    assert_eq!(child.control.ended().await.unwrap().exit, Some(2), "it may not be written");
    // Nor where the policy has taken writing away, whatever is granted.
    start.paths[0].write = true;
    let mut context = kit.context.clone();
    context.effects = Effects::ALL.without(Effects::of(&[Effect::Write]));
    let mut child = kit.shell().start(&context, &start).await.unwrap();
    assert_eq!(child.control.ended().await.unwrap().exit, Some(2));
    let mut child = kit.shell().start(&kit.context, &start).await.unwrap();
    assert_eq!(child.control.ended().await.unwrap().exit, Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
}

#[tokio::test]
async fn refuses_a_network_that_the_policy_took_away() {
    let kit = Kit::new();
    let mut context = kit.context.clone();
    context.effects = Effects::ALL.without(Effects::of(&[Effect::Network]));
    let start =
        Start { network: true, ..script("exec 3<>/dev/udp/127.0.0.1/9 && echo reached || echo refused") };
    let mut child = kit.shell().start(&context, &start).await.unwrap();
    assert!(rest(&mut child).await.ends_with("refused\n"));
    let mut child = kit.shell().start(&kit.context, &start).await.unwrap();
    assert!(rest(&mut child).await.ends_with("reached\n"), "it is granted to this child alone");
}

#[tokio::test]
async fn a_terminal_is_one_and_has_a_size() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        let text = "test -t 0 && test -t 1 && test -t 2 && echo all; stty size; \
                    trap 'echo now; stty size' WINCH; echo ready; while :; do sleep 0.1; done";
        let mut child = kit.shell().start(&kit.context, &on_a_terminal(text)).await.unwrap();
        let seen = until(&mut child, "ready\r\n").await;
        assert_eq!(seen, "all\r\n30 100\r\nready\r\n");
        child.control.resize(Size { columns: 132, rows: 43 }).unwrap();
        until(&mut child, "now\r\n43 132\r\n").await;
        child.control.kill().await;
        assert_eq!(child.control.ended().await.unwrap().signal, Some(9));
    }
}

#[tokio::test]
async fn a_key_interrupts_what_runs_on_a_terminal() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        let text = "trap 'echo interrupted; exit 5' INT; echo ready; while :; do sleep 0.1; done";
        let mut child = kit.shell().start(&kit.context, &on_a_terminal(text)).await.unwrap();
        until(&mut child, "ready").await;
        child.input.write_all(b"\x03").await.unwrap();
        until(&mut child, "interrupted").await;
        assert_eq!(child.control.ended().await.unwrap().exit, Some(5));
    }
}

#[tokio::test]
async fn refuses_to_type_into_its_own_terminal() {
    let kit = Kit::new();
    let exe = std::env::current_exe().unwrap();
    let text = format!("'{}' attack tiocsti none", exe.display());
    let mut child = kit.shell().start(&kit.context, &on_a_terminal(&text)).await.unwrap();
    assert_eq!(rest(&mut child).await, format!("refused {}\r\n", rustix::io::Errno::PERM.raw_os_error()));
}

#[tokio::test]
async fn a_script_that_is_waited_for_can_have_a_terminal() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        let script = Script {
            text: "test -t 1 && echo yes; cat; echo over".into(),
            input: Some("typed\n".into()),
            terminal: true,
            ..Script::default()
        };
        let ran = kit.shell().run(&kit.context, &script).await.unwrap();
        assert!(ran.output.contains("yes\r\n") && ran.output.ends_with("typed\r\nover\r\n"), "{ran:?}");
        // Without input it ends instead of waiting for a person.
        let script = Script { input: None, ..script };
        let ran = kit.shell().run(&kit.context, &script).await.unwrap();
        assert!(ran.output.ends_with("over\r\n"), "{ran:?}");
    }
}

#[tokio::test]
async fn nothing_is_left_of_one_that_is_dropped() {
    for (name, kit) in [("sandbox", Kit::new()), ("host", Kit::on_the_host())] {
        let word = format!("child-dropped-{name}-{}", std::process::id());
        for start in [script, on_a_terminal] {
            let text = format!(
                "MARK={word} sh -c 'trap \"\" HUP TERM; sleep 999 & setsid sleep 999 & echo ready; wait'"
            );
            let mut child = kit.shell().start(&kit.context, &start(&text)).await.unwrap();
            until(&mut child, "ready").await;
            assert!(!processes_with(&word).is_empty());
            drop(child);
            for _ in 0..600 {
                if processes_with(&word).is_empty() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            assert_eq!(processes_with(&word), Vec::<u32>::new());
        }
    }
}
