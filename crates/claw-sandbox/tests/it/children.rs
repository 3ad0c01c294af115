//! Commands that are not waited for: pipes, terminals, and their end.

use claw_core::port::{ShellHost as _, Start};
use claw_core::tool::Effect;

use crate::kit::{Kit, processes_with};
use crate::sandboxes::{self, on_a_terminal, rest, start, until, without};

#[tokio::test]
async fn what_is_written_is_read_and_the_end_of_it_ends_the_command() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        let mut child = kit.shell().start(&kit.context, &start("cat; echo over; exit 3")).await.unwrap();
        assert!(child.pid > 1, "{child:?}");
        sandboxes::reads_what_is_written(&mut child).await;
        assert_eq!(child.control.ended().await.unwrap().exit, Some(3));
    }
}

#[tokio::test]
async fn a_child_has_streams_and_paths_of_its_own() {
    let kit = Kit::new();
    sandboxes::has_streams_and_paths_of_its_own(&kit, &kit.outside.path().join("granted")).await;
}

#[tokio::test]
async fn refuses_a_network_that_the_policy_took_away() {
    let kit = Kit::new();
    let context = without(&kit.context, Effect::Network);
    let reach =
        Start { network: true, ..start("exec 3<>/dev/udp/127.0.0.1/9 && echo reached || echo refused") };
    let mut child = kit.shell().start(&context, &reach).await.unwrap();
    assert!(rest(&mut child).await.ends_with("refused\n"));
    let mut child = kit.shell().start(&kit.context, &reach).await.unwrap();
    assert!(rest(&mut child).await.ends_with("reached\n"), "it is granted to this child alone");
}

#[tokio::test]
async fn a_terminal_is_one_and_has_a_size() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        sandboxes::gives_a_terminal_with_a_size(&kit).await;
    }
}

#[tokio::test]
async fn a_key_interrupts_what_runs_on_a_terminal() {
    for kit in [Kit::new(), Kit::on_the_host()] {
        sandboxes::is_interrupted_by_a_key(&kit).await;
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
        sandboxes::gives_a_terminal_to_a_script(&kit).await;
    }
}

#[tokio::test]
async fn nothing_is_left_of_one_that_is_dropped() {
    for (name, kit) in [("sandbox", Kit::new()), ("host", Kit::on_the_host())] {
        let word = format!("child-dropped-{name}-{}", std::process::id());
        for begin in [start, on_a_terminal] {
            let text = format!(
                "MARK={word} sh -c 'trap \"\" HUP TERM; sleep 999 & setsid sleep 999 & echo ready; wait'"
            );
            let mut child = kit.shell().start(&kit.context, &begin(&text)).await.unwrap();
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
