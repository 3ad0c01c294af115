//! Splits a line into words without a shell: quotes and backslashes work as in a shell.
//!
//! All other shell syntax is refused: a word that looks like an operator has to be quoted.

/// The words of a line, or why it is invalid.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\r' => return Err("has more than one line; no shell reads it".to_owned()),
            '\0' => return Err("holds a NUL".to_owned()),
            c if c.is_whitespace() => words.extend(word.take()),
            ';' | '|' | '&' | '<' | '>' | '(' | ')' | '`' | '$' => return Err(operator(c)),
            '#' if word.is_none() => return Err(operator(c)),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err(unended(c)),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(c @ ('"' | '\\' | '$' | '`')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err(unended(c)),
                        },
                        Some('`') => return Err(operator('`')),
                        Some('$') if chars.peek().is_some_and(|next| begins_expansion(*next)) => {
                            return Err(operator('$'));
                        }
                        Some(c) => word.push(c),
                        None => return Err(unended(c)),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => return Err("ends in a backslash".to_owned()),
                Some(c) => word.get_or_insert_default().push(c),
            },
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

fn begins_expansion(c: char) -> bool {
    c.is_ascii_alphanumeric() || "({_@*#?$!-".contains(c)
}

fn operator(c: char) -> String {
    format!(
        "holds `{c}`, which only a shell understands, and none reads it; in single quotes it is passed as it is"
    )
}

fn unended(quote: char) -> String {
    format!("holds a `{quote}` that is not closed")
}

#[cfg(test)]
mod tests {
    use super::split;

    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        assert_eq!(split(line).unwrap(), expected, "{line}");
    }

    #[test]
    fn quotes_and_backslashes_are_read_as_a_shell_reads_them() {
        check("gh pr list --limit 5", &["gh", "pr", "list", "--limit", "5"]);
        check("  gh\tpr  ", &["gh", "pr"]);
        check("", &[]);
        check(
            r#"gh -t 'a "b" $c; | `d`' "e 'f' \" \$ \\ \n""#,
            &["gh", "-t", "a \"b\" $c; | `d`", "e 'f' \" $ \\ \\n"],
        );
        check(r"a\ b a\;b '' g''h", &["a b", "a;b", "", "gh"]);
        check(
            "gh api repos/{owner}/{repo}/issues?state=open*",
            &["gh", "api", "repos/{owner}/{repo}/issues?state=open*"],
        );
        check(r#"x "costs 5$ now" a#b"#, &["x", "costs 5$ now", "a#b"]);
    }

    #[test]
    fn refuses_every_operator_of_a_shell() {
        for line in [
            "gh pr list; id",
            "gh pr list | sh",
            "gh && id",
            "gh || id",
            "gh & id",
            "gh > x",
            "gh 2>x",
            "gh < x",
            "gh $(id)",
            "gh `id`",
            "gh ${X}",
            "gh $X",
            "gh \"$(id)\"",
            "gh \"`id`\"",
            "gh \"${X}\"",
            "gh \"$X\"",
            "gh\nid",
            "gh\r\nid",
            "(gh)",
            "gh <(id)",
            "gh <<< x",
            "gh $'\\x72'",
            "gh 'x",
            "gh \"x",
            "gh x\\",
            "gh \\\nid",
            "gh # x",
            "gh \0",
            "gh \"x\\",
        ] {
            assert!(split(line).is_err(), "{line:?}");
        }
    }
}
