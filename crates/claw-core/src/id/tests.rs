use super::*;

#[test]
fn tool_names_follow_what_every_provider_accepts() {
    for ok in ["read_file", "mcp_github__list-issues", "Read", "a"] {
        assert!(ToolName::new(ok).is_ok(), "{ok}");
    }
    for bad in ["", "1st", "a b", "a.b", "naïve", &"x".repeat(65)] {
        assert!(ToolName::new(bad).is_err(), "{bad}");
    }
}

#[test]
fn session_keys_are_never_empty() {
    for ok in ["cli:me", "agent:main:telegram:42"] {
        assert!(SessionKey::new(ok).is_ok(), "{ok}");
    }
    for bad in ["", "cli", "cli:", ":me", "cli:a b", "cli:a\nb"] {
        assert!(SessionKey::new(bad).is_err(), "{bad}");
    }
    assert_eq!(SessionKey::new("http:key:7").unwrap().kind(), "http");
}

#[test]
fn errors_name_the_value_and_the_rule() {
    let error = TenantId::new("a/b").unwrap_err().to_string();
    assert_eq!(
        error,
        "`a/b` is not a valid tenant id; use 1 to 64 letters, digits, `_`, `-`, `.`, `@` or `+`"
    );
}

#[test]
fn ids_with_path_meaning_are_refused() {
    for bad in ["..", ".hidden", "a/b", "a\\b", "a\0b"] {
        assert!(TenantId::new(bad).is_err(), "{bad:?}");
        assert!(AgentId::new(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn call_ids_sort_by_time() {
    let ids: Vec<CallId> = (0..1000).map(|_| CallId::new()).collect();
    assert!(ids.is_sorted());
}
