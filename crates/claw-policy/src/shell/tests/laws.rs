//! Properties that hold for any text.

use super::*;
use crate::shell::corpus;

fn any_command() -> impl Strategy<Value = String> {
    let all: Vec<String> = corpus::dangerous().chain(corpus::harmless()).collect();
    proptest::sample::select(all)
}

/// Pieces with a meaning to a shell.
fn piece() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "$(", "`", ")", "((", "))", "${", "}", "{", "'", "\"", "\\", "\n", ";", ";;", "|", "&", "&&",
        "<<EOF\n", "EOF\n", "<<<", "<(", "$'", "\\x", "if ", "then ", "fi", "case ", "in ", "esac", "for ",
        "do ", "done", "[[ ", "]]", "a=(", "f() ", "$X", "~", "*", "#", "eval ", "sh -c ", "!", "=", "é",
        "{a,b}", ">", "2>&1",
    ])
    .prop_map(str::to_owned)
}

/// Expects a regular verdict, not one in place of a panic.
#[track_caller]
fn check(command: &str) {
    let verdict = analyse(command, &Rules::default());
    let panicked = |finding: &crate::shell::Finding| finding.reason.contains(crate::shell::PANICKED);
    assert!(!verdict.findings.iter().any(panicked), "{command:?}");
}

proptest! {
    #[test]
    fn any_bytes_get_a_verdict(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_pieces_get_the_same_verdict_twice(pieces in proptest::collection::vec(piece(), 0..60)) {
        let text = pieces.concat();
        let verdict = analyse(&text, &Rules::default());
        prop_assert_eq!(&verdict, &analyse(&text, &Rules::default()));
        for finding in &verdict.findings {
            prop_assert!(finding.span.start <= finding.span.end && finding.span.end <= text.len());
        }
    }

    #[test]
    fn damaged_commands_get_a_verdict(command in any_command(), at in any::<prop::sample::Index>(), piece in piece()) {
        let places: Vec<usize> = command.char_indices().map(|(at, _)| at).collect();
        let at = places[at.index(places.len())];
        check(&format!("{}{piece}{}", &command[..at], &command[at..]));
        check(&command[..at]);
    }

    #[test]
    fn what_stands_beside_a_denied_command_does_not_save_it(one in any_command(), other in any_command()) {
        let rules = Rules::default();
        let denied = analyse(&other, &rules).decision;
        let readable = |verdict: &Verdict| !verdict.findings.iter().any(|finding| finding.rule == "unknown.syntax");
        prop_assume!(readable(&analyse(&one, &rules)) && readable(&analyse(&other, &rules)));
        // Settings or definitions of the first may change the meaning of the second.
        let sets = |one: &str| ["set", "alias", "wait $", "exec ", "printf $", "trap"].iter().any(|word| one.starts_with(word));
        prop_assume!(!one.contains(['=', '(']) && !sets(&one));
        let both = analyse(&format!("{one}\n{other}"), &rules);
        prop_assert!(both.decision >= denied, "{:?} {:?}", both.decision, denied);
    }
}
