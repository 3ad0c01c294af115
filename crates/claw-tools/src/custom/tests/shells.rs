//! Generated templates and values, run through real shells: every argument arrives exactly as given.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "real shells are what the templates are for"
)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Map, Value, json};

use super::super::Template;

/// Cases per shell.
const CASES: usize = 20_000;
/// Cases that one shell runs.
const BATCH: usize = 1000;

/// A small generator: the same cases every time.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Pieces that shells, templates and terminals interpret.
const PARTS: &[&str] = &[
    "'",
    "\"",
    "\\",
    "$",
    "`",
    "$(id)",
    "${x}",
    "$((1+1))",
    "{{.b}}",
    "{{.a}}",
    "{{.p0}}",
    "{{.p1}}",
    "{{.p2}}",
    "{{.p3}}",
    "{{.p4}}",
    "{{",
    "}}",
    ";",
    "&",
    "|",
    "&&",
    "||",
    "\n",
    "\r\n",
    "\t",
    " ",
    "  ",
    "#",
    "!",
    "*",
    "?",
    "[a]",
    "~",
    "~root",
    ">",
    "<",
    "<<EOF",
    "EOF",
    "(",
    ")",
    "{a,b}",
    "=",
    "A=1",
    "%s",
    "%n",
    "\u{1b}[0m",
    "é",
    "日本",
    "\u{1f980}",
    "\u{7f}",
    "\u{1}",
    "-",
    "--",
    "-n",
    "'\\''",
    "''",
    "$'x'",
    "$\"x\"",
    "\\\n",
    "then",
    "eval",
    "\u{a0}",
    "\u{2028}",
    ".",
    "..",
    "/",
    "x",
    "word",
    "0",
    "\\'",
    "\\\\",
    "@",
    "^",
    ",",
    ":",
    "+",
];

/// Words of templates around placeholders, each as written and as it is read.
const FIXED: &[(&str, &str)] = &[
    ("plain", "plain"),
    ("'single quoted'", "single quoted"),
    ("\"double quoted\"", "double quoted"),
    ("\"it's\"", "it's"),
    ("'say \"x\"'", "say \"x\""),
    ("esc\\ aped", "esc aped"),
    ("\\#no", "#no"),
    ("a#b", "a#b"),
    ("'{{x}}'", "{{x}}"),
    ("\\\\", "\\"),
    ("-o", "-o"),
    ("\"$(printf %s sub)\"", "sub"),
    ("$(printf sub)", "sub"),
    ("`printf tick`", "tick"),
    ("con\\\ntinued", "continued"),
];

fn value(dice: &mut Dice) -> String {
    (0..dice.below(6)).map(|_| dice.pick(PARTS)).collect()
}

struct Case {
    line: String,
    expected: Vec<String>,
}

/// A template of random words, and its expected arguments. Every parameter may begin with `-` here.
fn case(dice: &mut Dice) -> Case {
    let (mut template, mut expected) = (String::from("show"), Vec::new());
    let (mut properties, mut args, mut required) = (Map::new(), Map::new(), Vec::new());
    for at in 0..=dice.below(4) {
        template.push_str(dice.pick(&[" ", "  ", "\t", " \\\n"]));
        let (key, given) = (format!("p{at}"), value(dice));
        let mut optional = false;
        match dice.below(8) {
            0 => {
                let (written, read) = FIXED[dice.below(FIXED.len())];
                template.push_str(written);
                expected.push(read.to_owned());
                continue;
            }
            1 => {
                template.push_str(&format!("--{key}={{{{.{key}}}}}"));
                expected.push(format!("--{key}={given}"));
            }
            2 => {
                let (before, read_before) = FIXED[dice.below(FIXED.len())];
                let (after, read_after) = FIXED[dice.below(FIXED.len())];
                template.push_str(&format!("{before}{{{{.{key}}}}}{after}"));
                expected.push(format!("{read_before}{given}{read_after}"));
            }
            3 => {
                template.push_str(&format!("{{{{.{key}}}}}{{{{.{key}}}}}"));
                expected.push(format!("{given}{given}"));
            }
            4 => {
                let items: Vec<String> = (0..dice.below(3)).map(|_| value(dice)).collect();
                template.push_str(&format!("{{{{.{key}}}}}"));
                properties.insert(
                    key.clone(),
                    json!({ "type": "array", "items": { "type": "string" }, "x-allow-dash": true }),
                );
                args.insert(key, json!(items));
                expected.extend(items);
                continue;
            }
            5 => {
                // Left out.
                template.push_str(&format!("{{{{.{key}}}}}"));
                properties.insert(key, json!({ "type": "string" }));
                continue;
            }
            _ => {
                template.push_str(&format!("{{{{.{key}}}}}"));
                expected.push(given.clone());
                optional = dice.below(2) == 0;
            }
        }
        properties.insert(key.clone(), json!({ "type": "string", "x-allow-dash": true }));
        if !optional {
            required.push(json!(key));
        }
        args.insert(key, Value::String(given));
    }
    template.push_str(dice.pick(&[
        "",
        " # it's a comment",
        ";",
        " ; :",
        " && :",
        " 2>&1",
        " </dev/null",
        "\n",
    ]));
    let schema = json!({ "type": "object", "properties": properties, "required": required });
    let filled = Template::shell(&template, &schema).unwrap_or_else(|error| panic!("{template}: {error}"));
    let line = filled.command(&Value::Object(args)).unwrap();
    Case { line, expected }
}

/// Runs many lines in one shell: `show` writes its number of arguments and each of them, ended by NUL.
fn run(shell: &str, cases: &[Case]) -> Vec<u8> {
    const SHOW: &str =
        "show() { printf '%s\\0' \"$#\"; for each in \"$@\"; do printf '%s\\0' \"$each\"; done; }\n";
    let mut script = String::from(SHOW);
    for case in cases {
        script.push_str(&case.line);
        script.push('\n');
    }
    let mut child = Command::new(shell)
        .args(["-s"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(script.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    assert!(output.stderr.is_empty(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[track_caller]
fn check(shell: &str) {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut smuggled = 0;
    for batch in 0..CASES / BATCH {
        let cases: Vec<Case> = (0..BATCH).map(|_| case(&mut dice)).collect();
        let holds_placeholder = |case: &&Case| case.expected.iter().any(|word| word.contains("{{.p"));
        smuggled += cases.iter().filter(holds_placeholder).count();
        let printed = run(shell, &cases);
        let mut words =
            printed.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        for (number, case) in cases.iter().enumerate() {
            let count: usize = words.next().unwrap().parse().unwrap();
            let arguments: Vec<String> = words.by_ref().take(count).collect();
            assert_eq!(arguments, case.expected, "{shell}, case {batch}.{number}: {}", case.line);
        }
        assert_eq!(words.collect::<Vec<_>>(), [""], "{shell}: more was printed than asked for");
    }
    assert!(smuggled > CASES / 20, "{smuggled} values hold the placeholder of a parameter");
}

#[test]
fn twenty_thousand_commands_reach_sh_with_exactly_their_arguments() {
    check("sh");
}

#[test]
fn twenty_thousand_commands_reach_bash_with_exactly_their_arguments() {
    check("bash");
}
