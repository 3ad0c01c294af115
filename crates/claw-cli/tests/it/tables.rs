//! Tables and prose on terminals of usual widths: nothing is broken within, and nothing is left out.

use crate::harness::Home;
use crate::terminal::Terminal;

const CONFIG: &str = r#"
[agents.researcher]
name = "Ada"
about = "Looks things up and says where it found them, with a list of sources at the end of every answer."
"#;

/// A home in which something has happened.
fn lived_in() -> Home {
    let home = Home::with_config(CONFIG);
    let path = "notes-of-a-long-afternoon-in-the-archive.md";
    let written = format!(r#"{{"path": "{path}", "content": "one\ntwo\n"}}"#);
    assert_eq!(home.run(&["tools", "call", "write_file", &written]).code, 0);
    let key = "agent:researcher:cli:direct:tester:project-0123abcd";
    let edited = format!(r#"{{"path": "{path}", "old_string": "two", "new_string": "three"}}"#);
    let words = ["tools", "call", "edit", &edited, "--agent", "researcher", "--session", key];
    assert_eq!(home.run(&words).code, 0);
    home.run(&["tools", "call", "exec", r#"{"command": "$WHAT; echo it ran"}"#]);
    home
}

fn shown(home: &Home, words: &[&str], columns: u16) -> String {
    let (code, text) = Terminal::with_columns(home, words, columns).ended();
    assert_eq!(code, Some(0), "{text}");
    text.replace('\r', "")
}

/// Returns the words of a text, sorted.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    words.sort();
    words
}

#[test]
fn tables_fit_the_terminal_and_keep_every_word() {
    let home = lived_in();
    let commands: &[&[&str]] = &[
        &["ledger", "show"],
        &["undo", "list"],
        &["undo", "list", "--wide"],
        &["tools", "list", "--all"],
        &["tools", "show", "edit"],
        &["agent", "list"],
        &["agent", "show", "researcher"],
        &["policy", "explain"],
        &["policy", "explain", "exec"],
        &["sandbox", "status"],
    ];
    for command in commands {
        let piped = home.run(command);
        let whole = words(&(piped.stdout + &piped.stderr));
        for columns in [80, 100] {
            let text = shown(&home, command, columns).replace(home.path().to_str().unwrap(), "~");
            let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
            assert!(widest.chars().count() <= usize::from(columns), "{command:?}: {widest}\n{text}");
            let kept = words(&text);
            let missing: Vec<_> = whole.iter().filter(|word| kept.binary_search(word).is_err()).collect();
            // Text longer than a column has to be broken; there is one such text here, the arguments of a
            // call.
            assert!(missing.iter().all(|word| word.starts_with('{')), "{command:?}: {missing:?}\n{text}");
        }
    }
}

#[test]
fn answers_and_notes_break_between_words() {
    let home = Home::new();
    let said = "A sentence that is quite a bit longer than what one line of the narrowest usual terminal can \
                hold, with `some code` and a **bold word** in it.";
    let script =
        format!("[[turn]]\ndo = [{{ say = \"{said}\\n\\n- and a {}\" }}]\n", "list ".repeat(30).trim());
    let script = home.write("script.toml", script);
    let words = ["chat", "-m", "hello", "--script", script.to_str().unwrap()];
    let text = shown(&home, &words, 80);
    assert!(text.contains("usual\nterminal can hold, with some code and a bold word in it"), "{text}");
    assert!(text.contains("• and a list list"), "{text}");
    assert!(text.contains("\n  list list"), "the mark of the list stays free: {text}");
    let piped = home.run(&words);
    assert!(piped.stdout.contains(said), "{}", piped.shown());
}

#[test]
fn the_tour_fits_a_terminal() {
    let home = Home::new();
    let text = shown(&home, &["tour"], 80);
    for line in text.lines().filter(|line| !line.trim_start().starts_with("$ ")) {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    assert!(text.contains("limited, validated,\n   judged, recorded, run, scrubbed."), "{text}");
}
