//! No sequence of calls shows or overwrites a secret.

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// A line of the file: ordinary, or with a secret under a name.
#[derive(Debug, Clone)]
enum Line {
    Plain(String),
    Secret(String),
}

fn line() -> impl Strategy<Value = Line> {
    prop_oneof![
        2 => "[a-c {}]{0,6}".prop_map(Line::Plain),
        1 => Just(Line::Plain("says [REDACTED] here".to_owned())),
        2 => prop_oneof![Just("password"), Just("api_key"), Just("token")].prop_map(|name| Line::Secret(name.to_owned())),
    ]
}

/// A model's action, by indices into the lines that it sees.
#[derive(Debug, Clone)]
enum Step {
    Read,
    /// Replaces some lines by others that are seen, slightly changed.
    Edit(Index, usize, Vec<(Index, u8)>),
    /// Writes some of the lines that are seen, slightly changed.
    Write(Vec<(Index, u8)>),
    /// Removes some of the characters that are seen.
    Cut(Index, usize),
    Append(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let lines = || prop::collection::vec((any::<Index>(), 0..8u8), 0..5);
    prop_oneof![
        Just(Step::Read),
        (any::<Index>(), 1..4usize, lines()).prop_map(|(at, count, new)| Step::Edit(at, count, new)),
        lines().prop_map(Step::Write),
        (any::<Index>(), 1..12usize).prop_map(|(at, count)| Step::Cut(at, count)),
        (0..4u8).prop_map(Step::Append),
    ]
}

fn secret(at: usize) -> String {
    format!("s3cr3t-{at:02}-Zk8qXv")
}

/// The lines as `read_file` shows them.
fn seen(text: &str, secrets: usize) -> String {
    (0..secrets).fold(text.to_owned(), |text, at| text.replace(&secret(at), "[REDACTED]"))
}

fn altered(line: &str, how: u8) -> String {
    match how {
        0 => format!("  {line}"),
        1 => format!("{line} more"),
        2 => line.replacen("password", "note", 1),
        3 => line.replacen(" = ", " ", 1),
        4 => "[REDACTED]".to_owned(),
        _ => line.to_owned(),
    }
}

fn args(step: &Step, seen: &str) -> (&'static str, Value) {
    let lines: Vec<&str> = seen.lines().collect();
    let pick = |new: &[(Index, u8)]| -> String {
        let of = |(at, how): &(Index, u8)| {
            altered(if lines.is_empty() { "" } else { lines[at.index(lines.len())] }, *how)
        };
        new.iter().map(of).collect::<Vec<_>>().join("\n")
    };
    let path = "c.toml";
    match step {
        Step::Read => ("read_file", json!({ "path": path })),
        Step::Write(new) => ("write_file", json!({ "path": path, "content": pick(new) })),
        Step::Append(how) => {
            ("write_file", json!({ "path": path, "content": altered("x = 1\n", *how), "mode": "append" }))
        }
        Step::Edit(at, count, new) => {
            let at = at.index(lines.len().max(1)).min(lines.len());
            let end = (at + count).min(lines.len());
            (
                "edit",
                json!({ "path": path, "old_string": lines[at..end].join("\n"), "new_string": pick(new) }),
            )
        }
        Step::Cut(at, count) => {
            let start = at.index(seen.len().max(1)).min(seen.len());
            let end = (start + count).min(seen.len());
            ("edit", json!({ "path": path, "old_string": &seen[start..end], "new_string": "" }))
        }
    }
}

proptest! {
    #[test]
    fn no_sequence_of_calls_shows_or_overwrites_a_secret(lines in prop::collection::vec(line(), 1..9), steps in prop::collection::vec(step(), 1..10)) {
        let mut count = 0;
        let mut text = String::new();
        for line in &lines {
            match line {
                Line::Plain(said) => text.push_str(said),
                Line::Secret(name) => {
                    text.push_str(&format!("{name} = \"{}\"", secret(count)));
                    count += 1;
                }
            }
            text.push('\n');
        }
        let road = Road::new(&[("c.toml", text.as_bytes())]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            for step in &steps {
                let before = road.text("c.toml");
                let shown = seen(&before, count);
                let (tool, args) = args(step, &shown);
                let reply = road.call(tool, args.clone()).await;
                let said = format!("{} {:?}", reply.model_text(), reply.outcome);
                for at in 0..count {
                    prop_assert!(!said.contains(&secret(at)[3..]), "{args}\n{said}");
                }
                let after = road.text("c.toml");
                // Each secret is there once and complete, or its placeholder was left out of the written
                // text.
                let there = |text: &str| (0..count).filter(|at| text.contains(&secret(*at))).count();
                let placeholders = |text: &str| text.matches("[REDACTED]").count();
                for at in 0..count {
                    prop_assert!(after.matches(&secret(at)[..9]).count() <= 1, "{after}");
                    prop_assert_eq!(after.contains(&secret(at)[..9]), after.contains(&secret(at)), "{}", after);
                }
                prop_assert!(there(&after) <= there(&before));
                // No placeholder took the place of a secret that is gone.
                if there(&after) < there(&before) && there(&before) > 0 {
                    let wanted = args["new_string"].as_str().or(args["content"].as_str()).unwrap_or_default();
                    let kept = there(&after) + placeholders(&after);
                    prop_assert!(kept <= there(&before) + placeholders(&before), "{before}\n{args}\n{after}");
                    if there(&after) > 0 {
                        prop_assert!(placeholders(&after) <= placeholders(&before), "{before}\n{wanted}\n{after}");
                    }
                }
            }
            Ok(())
        })?;
    }
}
