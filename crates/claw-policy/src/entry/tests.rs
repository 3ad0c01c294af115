//! Parsing entries, and matching names.

use super::{Entry, Pattern, nearest};

#[track_caller]
fn check_error(text: &str, expected: &str) {
    assert_eq!(Entry::parse(text).unwrap_err().to_string(), expected);
}

#[test]
fn refuses_entries_that_say_nothing_or_something_else() {
    check_error("", "an entry is empty; name a tool, a `group:` or an `effect:`, or remove it");
    check_error("group:", "`group:` names no group; write one after the colon, such as `group:fs`");
    check_error("group:mcp:", "`group:mcp:` names no group; write one after the colon, such as `group:fs`");
    check_error("effect:wirte", "`effect:wirte` is not an effect; did you mean `effect:write`?");
    check_error(
        "effect:foo",
        "`effect:foo` is not an effect; use read, write, execute, network, spend, message, spawn or admin",
    );
    check_error("efect:read", "`efect:read` is not a kind of entry; did you mean `effect:read`?");
    check_error("mcp:github", "`mcp:github` is not a kind of entry; did you mean `group:mcp:github`?");
    check_error("x:y", "`x:y` is not a kind of entry; write a tool's name, `group:NAME` or `effect:NAME`");
    for misfit in
        ["read_[a-z]", "read_?", " exec", "exec ", "!exec", "a,b", "{a}", "é", "group:f s", "group:{fs}"]
    {
        let rule = "use letters, digits, `_` and `-`, and `*` for any characters";
        check_error(misfit, &format!("`{misfit}` can match no name; {rule}"));
    }
}

#[test]
fn reads_what_is_not_known_yet() {
    for text in
        ["exec", "Read", "no-such_tool", "mcp_x_*", "*", "group:none", "group:mcp:my.server", "effect:admin"]
    {
        assert_eq!(Entry::parse(text).unwrap().text(), text);
    }
}

#[test]
fn a_star_stands_for_any_characters() {
    for (pattern, name, expected) in [
        ("*", "", true),
        ("*", "exec", true),
        ("exec", "exec", true),
        ("exec", "execute", false),
        ("re*", "read", true),
        ("re*", "are", false),
        ("*_file", "read_file", true),
        ("*_file", "read_files", false),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("a*b*c", "a_b_b_c", true),
        ("a*b*c", "ac", false),
        ("*ab*ab*", "abab", true),
        ("*ab*ab*", "aba", false),
        ("a**b", "ab", true),
    ] {
        assert_eq!(Pattern::new(pattern).fits(name), expected, "{pattern} {name}");
    }
}

#[test]
fn the_nearest_name_is_near() {
    let names = ["read_file", "write_file", "web_fetch"];
    assert_eq!(nearest("raed_file", names), Some("read_file"));
    assert_eq!(nearest("webfetch", names), Some("web_fetch"));
    assert_eq!(nearest("zzz", names), None);
}
