//! Help, version, completions, exit codes of usage.

use crate::harness::Home;

const COMMANDS: &[&[&str]] = &[
    &["chat"],
    &["onboard"],
    &["tools", "list"],
    &["tools", "show"],
    &["tools", "call"],
    &["tools", "schema"],
    &["tools", "add"],
    &["tools", "test"],
    &["tools", "edit"],
    &["tools", "disable"],
    &["tools", "enable"],
    &["tools", "remove"],
    &["web", "fetch"],
    &["web", "search"],
    &["policy", "explain"],
    &["policy", "lint"],
    &["policy", "diff"],
    &["policy", "replay"],
    &["policy", "test"],
    &["agent", "list"],
    &["agent", "show"],
    &["agent", "add"],
    &["agent", "edit"],
    &["agent", "remove"],
    &["agent", "files", "list"],
    &["agent", "files", "get"],
    &["agent", "files", "set"],
    &["agent", "files", "remove"],
    &["skills", "list"],
    &["skills", "show"],
    &["skills", "search"],
    &["skills", "accept"],
    &["skills", "add"],
    &["skills", "publish"],
    &["skills", "grant"],
    &["skills", "remove"],
    &["scrub"],
    &["shell", "check"],
    &["approvals", "list"],
    &["approvals", "show"],
    &["approvals", "approve"],
    &["approvals", "deny"],
    &["approvals", "watch"],
    &["approvals", "rules"],
    &["approvals", "revoke"],
    &["sessions", "list"],
    &["sessions", "show"],
    &["sessions", "rename"],
    &["sessions", "fork"],
    &["sessions", "remove"],
    &["runs", "list"],
    &["runs", "show"],
    &["runs", "cancel"],
    &["runs", "release"],
    &["mcp", "add"],
    &["mcp", "import"],
    &["mcp", "list"],
    &["mcp", "show"],
    &["mcp", "login"],
    &["mcp", "logout"],
    &["mcp", "test"],
    &["mcp", "tools"],
    &["mcp", "pin"],
    &["mcp", "grant"],
    &["mcp", "revoke"],
    &["mcp", "request"],
    &["mcp", "requests"],
    &["mcp", "review"],
    &["mcp", "enable"],
    &["mcp", "disable"],
    &["mcp", "remove"],
    &["mcp", "serve"],
    &["serve"],
    &["api-keys", "create"],
    &["api-keys", "list"],
    &["api-keys", "revoke"],
    &["users", "list"],
    &["users", "add"],
    &["users", "edit"],
    &["tenants", "list"],
    &["tenants", "add"],
    &["tenants", "edit"],
    &["sandbox", "status"],
    &["sandbox", "probe"],
    &["sandbox", "run"],
    &["secrets", "set"],
    &["secrets", "list"],
    &["secrets", "remove"],
    &["secrets", "rotate"],
    &["credentials", "add"],
    &["credentials", "list"],
    &["credentials", "test"],
    &["credentials", "remove"],
    &["ledger", "show"],
    &["ledger", "verify"],
    &["memory", "search"],
    &["memory", "import"],
    &["memory", "list"],
    &["memory", "show"],
    &["memory", "status"],
    &["memory", "reindex"],
    &["memory", "export"],
    &["memory", "forget"],
    &["graph", "search"],
    &["graph", "show"],
    &["graph", "add", "entity"],
    &["graph", "add", "relation"],
    &["graph", "merge"],
    &["graph", "import"],
    &["graph", "export"],
    &["graph", "extract"],
    &["graph", "status"],
    &["graph", "forget"],
    &["db", "status"],
    &["db", "migrate"],
    &["db", "copy"],
    &["db", "backup"],
    &["db", "restore"],
    &["config", "check"],
    &["config", "show"],
    &["config", "schema"],
    &["doctor"],
    &["tour"],
    &["completions"],
];

#[test]
fn help_is_as_it_was_read() {
    let home = Home::new();
    insta::assert_snapshot!("help", home.run(&["--help"]).stdout);
    insta::assert_snapshot!("help_tools_call", home.run(&["tools", "call", "--help"]).stdout);
}

#[test]
fn every_command_has_help_with_examples() {
    let home = Home::new();
    for command in COMMANDS {
        let ran = home.run(&[*command, &["--help"]].concat());
        assert_eq!(ran.code, 0, "{command:?}");
        assert!(ran.stdout.contains("Examples:\n"), "{command:?}: {}", ran.stdout);
        assert!(ran.stdout.contains("--json"), "{command:?}");
    }
}

#[test]
fn version_and_usage_have_their_exit_codes() {
    let home = Home::new();
    let version = home.run(&["--version"]);
    assert_eq!(
        (version.code, version.stdout.as_str()),
        (0, concat!("clawsmith ", env!("CARGO_PKG_VERSION"), "\n"))
    );
    assert_eq!(home.run(&[]).code, 2);
    assert_eq!(home.run(&["tool"]).code, 2);
    assert_eq!(home.run(&["tools", "call"]).code, 2);
    assert_eq!(home.run(&["tools", "list", "--profile", "code"]).code, 2);
}

#[test]
fn completions_are_printed_for_each_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = home.run(&["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("clawsmith") && ran.stdout.contains("ledger"), "{shell}");
    }
}

#[test]
fn every_section_of_the_help_texts_is_of_a_command() {
    let whole = claw_cli::command();
    let texts = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/help")).unwrap();
    let texts = texts.map(|file| file.unwrap().path()).filter(|path| path.extension().unwrap() == "txt");
    for file in texts {
        let text = std::fs::read_to_string(&file).unwrap();
        let sections = text.strip_prefix("# ").unwrap_or(&text).split("\n# ");
        for (path, text) in sections.filter_map(|section| section.split_once('\n')) {
            let mut at = Some(&whole);
            for name in path.split(' ').skip(1) {
                at = at.and_then(|command| command.find_subcommand(name));
            }
            let at = at.unwrap_or_else(|| panic!("`{path}` is not a command"));
            let shown = at.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert_eq!(shown, text.trim(), "`{path}` of {} is not shown", file.display());
            assert!(!text.trim().is_empty(), "`{path}` has no text");
        }
    }
}
