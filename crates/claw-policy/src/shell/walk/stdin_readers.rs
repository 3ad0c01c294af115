//! Programs that read their standard input. In a shell that reads its script from there, they take lines of
//! it, and the shell runs another script than the one that was followed.

use crate::shell::verdict::Argument;

/// Programs that read it whatever their arguments are.
const ALWAYS: &[&str] = &["read", "mapfile", "readarray", "tee", "tr", "xargs", "parallel", "vipe", "sponge"];
/// Programs that read it unless they are given a file, with the options that take a word that is not a file.
const WITHOUT_A_FILE: &[(&str, &[&str])] = &[
    ("cat", &[]),
    ("tac", &["-s"]),
    ("rev", &[]),
    ("nl", &["-b", "-w", "-s"]),
    ("head", &["-n", "-c"]),
    ("tail", &["-n", "-c"]),
    ("wc", &[]),
    ("sort", &["-k", "-t", "-o", "-S", "-T"]),
    ("uniq", &["-f", "-s", "-w"]),
    ("cut", &["-d", "-f", "-c", "-b"]),
    ("paste", &["-d"]),
    ("fold", &["-w"]),
    ("fmt", &["-w"]),
    ("od", &["-A", "-t", "-N", "-j"]),
    ("xxd", &["-s", "-l", "-c"]),
    ("base64", &["-w"]),
    ("md5sum", &[]),
    ("sha1sum", &[]),
    ("sha256sum", &[]),
    ("sha512sum", &[]),
    ("gzip", &[]),
    ("gunzip", &[]),
    ("zcat", &[]),
    ("less", &[]),
    ("more", &[]),
];
/// Those whose first word is a program or pattern, and that read their input unless a file follows.
const WITH_A_PROGRAM: &[&str] = &["sed", "awk", "gawk", "mawk", "grep", "egrep", "fgrep", "jq", "perl"];

/// Returns whether a command reads its standard input, as far as its arguments show.
pub(super) fn reads_input(name: &str, arguments: &[Argument]) -> bool {
    if ALWAYS.contains(&name) {
        return true;
    }
    if name == "dd" {
        return !arguments.iter().any(|argument| argument.text().starts_with("if="));
    }
    let is_dash = |argument: &Argument| argument.known() == Some("-");
    let is_option = |argument: &Argument| argument.text().starts_with('-') && !is_dash(argument);
    if let Some((_, valued)) = WITHOUT_A_FILE.iter().find(|(known, _)| *known == name) {
        let takes_next = |at: usize| {
            let before = at.checked_sub(1).and_then(|before| arguments.get(before));
            before.and_then(Argument::known).is_some_and(|option| valued.contains(&option))
        };
        let mut files =
            arguments.iter().enumerate().filter(|(at, word)| !is_option(word) && !takes_next(*at));
        return files.all(|(_, word)| is_dash(word));
    }
    if !WITH_A_PROGRAM.contains(&name) {
        return false;
    }
    let recursive = |argument: &Argument| {
        let text = argument.text();
        text == "--recursive"
            || (text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R']))
    };
    if name.ends_with("grep") && arguments.iter().any(recursive) {
        return false;
    }
    let words = arguments.iter().filter(|word| !is_option(word)).count();
    words < 2 || arguments.iter().any(is_dash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: bool) {
        let mut words = command.split(' ');
        let name = words.next().unwrap();
        let arguments: Vec<Argument> = words.map(Argument::new).collect();
        assert_eq!(reads_input(name, &arguments), expected, "{command}");
    }

    #[test]
    fn they_are_known_by_their_arguments() {
        for command in
            ["read x", "cat", "cat -", "cat -n", "head -n 3", "sed p", "grep x", "dd of=f", "tr a b"]
        {
            check(command, true);
        }
        for command in ["cat f", "head -n 3 f", "sed p f", "grep -r x", "dd if=f", "ls", "make", "echo -"] {
            check(command, false);
        }
    }
}
