//! Recognises scripts that consist only of simple commands, run one after the other or through pipes.

use super::parse::parse;
use super::syntax::{Command, Kind, List, Operator, Part, Redirect, Word};

/// Returns whether a script is plain: no assignment, no redirection except to `/dev/null`, no substitution,
/// no loop, function or condition. Then its simple commands tell all that it does.
pub fn is_plain(text: &str) -> bool {
    text.len() <= super::LONGEST
        && !text.contains('\0')
        && parse(text, 0).is_ok_and(|list| !list.0.is_empty() && plain_list(&list))
}

/// Returns whether a script is a single simple command: no assignment, and no redirection except of its
/// errors to its output. Its words may still be unknown.
pub fn is_single(text: &str) -> bool {
    let Ok(list) = parse(text, 0) else { return false };
    let [item] = list.0.as_slice() else { return false };
    let together = |redirect: &Redirect| {
        redirect.operator == Operator::Duplicate && redirect.target.plain() == Some("1")
    };
    let simple = matches!(&item.command.kind,
        Kind::Simple { assignments, words } if assignments.is_empty() && !words.is_empty());
    simple && !item.background && item.command.redirects.iter().all(together)
}

/// Returns whether one command of the script pipes into another; true if the text does not parse.
pub fn has_pipe(text: &str) -> bool {
    fn in_list(list: &List) -> bool {
        list.0.iter().any(|item| in_command(&item.command))
    }
    fn in_command(command: &Command) -> bool {
        match &command.kind {
            Kind::Pipeline(commands) => commands.len() > 1 || commands.iter().any(in_command),
            Kind::Subshell(list) | Kind::Group(list) => in_list(list),
            Kind::Simple { .. } => false,
            _ => true,
        }
    }
    parse(text, 0).map_or(true, |list| in_list(&list))
}

fn plain_list(list: &List) -> bool {
    list.0.iter().all(|item| !item.background && plain_command(&item.command))
}

fn plain_command(command: &Command) -> bool {
    let parts = match &command.kind {
        Kind::Simple { assignments, words } => {
            assignments.is_empty() && !words.is_empty() && words.iter().all(plain_word)
        }
        Kind::Pipeline(commands) => commands.iter().all(plain_command),
        Kind::Subshell(list) | Kind::Group(list) => plain_list(list),
        _ => false,
    };
    parts && command.redirects.iter().all(plain_redirect)
}

/// Returns whether a redirection is to `/dev/null`, or of one stream into another.
fn plain_redirect(redirect: &Redirect) -> bool {
    let target = redirect.target.plain();
    match redirect.operator {
        Operator::Write | Operator::Append | Operator::Both | Operator::Read => target == Some("/dev/null"),
        Operator::Duplicate => matches!(target, Some("1" | "2")),
        _ => false,
    }
}

fn plain_word(word: &Word) -> bool {
    word.parts.iter().all(plain_part)
}

fn plain_part(part: &Part) -> bool {
    match part {
        Part::Plain(_) | Part::Quoted(_) => true,
        Part::Double(parts) => parts.iter().all(plain_part),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_alone_is_single() {
        for text in ["gh", "gh pr list 2>&1", "  gh 'a b' ", "gh $X", "gh pr;", "gh \\\n pr"] {
            assert!(is_single(text), "{text}");
        }
        for text in [
            "gh; gh",
            "gh | cat",
            "gh &",
            "A=1 gh",
            "A=1",
            "gh > x",
            "gh 2>/dev/null",
            "gh < x",
            "(gh)",
            "{ gh; }",
            "gh && gh",
            "gh\ngh",
            "if gh; then gh; fi",
            "f() { gh; }",
            "gh <<< x",
            "gh <<A\nx\nA",
            "",
            "gh '",
            "gh >& x",
            "coproc gh",
        ] {
            assert!(!is_single(text), "{text}");
        }
    }

    #[test]
    fn only_simple_commands_are() {
        for text in [
            "ls",
            "cd a && make test 2>&1 | tail -5",
            "(ls; pwd) 2>/dev/null",
            "echo \"a b\" 'c'",
            "git commit -m '$x'",
        ] {
            assert!(is_plain(text), "{text}");
        }
        for text in [
            "ls > x",
            "A=1 ls",
            "A=1",
            "ls $(pwd)",
            "ls `pwd`",
            "ls &",
            "for i in 1; do ls; done",
            "f() { ls; }",
            "ls <<< x",
            "cat <<A\nx\nA",
            "echo $X",
            "echo \"$X\"",
            "diff <(ls) x",
            "if ls; then ls; fi",
            "ls |",
            "",
            "! ",
            "ls >& x",
            "cat < x",
            "[[ a ]]",
            "((1))",
        ] {
            assert!(!is_plain(text), "{text}");
        }
    }
}
