use super::*;

fn skill(front: &str) -> Result<(SkillManifest, String), String> {
    parse(&format!("---\n{front}\n---\n\n# Body\n")).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(front: &str, expected: &str) {
    let error = skill(front).unwrap_err();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn reads_every_field_of_the_format() {
    let (manifest, body) = skill(
        "name: pdf-forms\ndescription: >\n  Fill PDF forms.\n  Use when asked.\nlicense: Apache-2.0\n\
         compatibility: Needs Python 3\nmetadata:\n  author: someone\n  version: \"1.0\"\n\
         allowed-tools: Bash(git add:*) Read, Write\nother:\n  - deep: [1, {a: b}]",
    )
    .unwrap();
    assert_eq!(manifest.name.as_str(), "pdf-forms");
    assert_eq!(manifest.description, "Fill PDF forms. Use when asked.");
    assert_eq!(manifest.license.as_deref(), Some("Apache-2.0"));
    assert_eq!(manifest.compatibility.as_deref(), Some("Needs Python 3"));
    assert_eq!(manifest.metadata["version"], "1.0");
    assert_eq!(manifest.allowed_tools.unwrap(), ["Bash(git add:*)", "Read", "Write"]);
    assert_eq!(body, "# Body\n");
}

#[test]
fn reads_lists_of_tools_windows_lines_and_a_byte_order_mark() {
    let text =
        "\u{feff}---\r\nname: x\r\ndescription: y\r\nallowed-tools:\r\n  - Read\r\n  - Grep\r\n---\r\nBody";
    let (manifest, body) = parse(text).unwrap();
    assert_eq!(manifest.allowed_tools.unwrap(), ["Read", "Grep"]);
    assert_eq!(body, "Body");
}

#[test]
fn an_empty_list_of_tools_allows_none() {
    assert_eq!(
        skill("name: x\ndescription: y\nallowed-tools: \"\"").unwrap().0.allowed_tools.unwrap(),
        [""; 0]
    );
}

#[test]
fn names_what_is_wrong() {
    refused("description: y", "has no `name`");
    refused("name: x", "has no `description`");
    refused("name: x\ndescription:", "has no `description`");
    refused("name: Upper\ndescription: y", "`Upper` is not a valid skill name");
    refused("name: ../up\ndescription: y", "is not a valid skill name");
    refused("name: a--b\ndescription: y", "is not a valid skill name");
    refused("name: x\nname: z\ndescription: y", "the field `name` twice");
    refused("name: x\ndescription: [a, b]", "`description` is not a text");
    refused("- a\n- b", "not a map of fields");
    refused("name: x\ndescription: use it: now", "put a text that holds `: `");
    refused(&format!("name: x\ndescription: {}", "d".repeat(1025)), "1025 characters, and 1024 are allowed");
    assert!(parse("# no front matter").is_err());
    assert!(parse("---\nname: x\ndescription: never ends").is_err());
}

#[test]
fn refuses_yaml_bombs_aliases_and_deep_nesting() {
    refused("name: x\ndescription: y\na: &a [1, 2]\nb: *a", "YAML anchor");
    refused("name: x\ndescription: y\nb: *a", "");
    let bomb: String = (1..9).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)).collect();
    refused(&format!("name: x\ndescription: y\na0: &a0 lol\n{bomb}"), "YAML a");
    refused(
        &format!("name: x\ndescription: y\ndeep: {}1{}", "[".repeat(40), "]".repeat(40)),
        "nested deeper",
    );
    refused(&format!("name: x\ndescription: y\nlong: [{}1]", "1, ".repeat(3000)), "more than 2000 parts");
    refused(
        &format!("name: x\ndescription: y\nlong: {}", "x".repeat(20_000)),
        "bytes, and 16384 are allowed",
    );
}

#[test]
fn hidden_characters_do_not_reach_a_prompt() {
    let (manifest, _) = skill("name: x\ndescription: \"a\\u202Eb\\u200Bc\\0d\"").unwrap();
    assert_eq!(manifest.description, "abcd");
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,400}") {
        let _ = parse(&format!("---\n{text}\n---\n"));
        let _ = parse(&text);
    }
}
