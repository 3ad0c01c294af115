use super::{Generated, compare};
use crate::tree::Tree;

#[track_caller]
fn check(old: &[(&str, &str)], expected: Option<&str>) {
    let generated = Generated { path: "docs/tools.md", text: "a\nb\n".to_owned() };
    let says = compare(&Tree::of(old), &generated).map(|finding| finding.to_string());
    assert_eq!(says.is_some(), expected.is_some(), "{says:?}");
    assert!(says.unwrap_or_default().starts_with(expected.unwrap_or_default()));
}

#[test]
fn fresh_stale_and_missing_are_told_apart() {
    check(&[("docs/tools.md", "a\nb\n")], None);
    check(&[("docs/tools.md", "a\nc\n")], Some("docs/tools.md:2: is stale"));
    check(&[("docs/tools.md", "a\n")], Some("docs/tools.md:2: is stale"));
    check(&[("docs/tools.md", "a\nb\nc\n")], Some("docs/tools.md:3: is stale"));
    check(&[], Some("docs/tools.md:1: is missing"));
}
