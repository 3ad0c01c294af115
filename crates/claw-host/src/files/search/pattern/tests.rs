use claw_testkit::fixture;
use grep_matcher::Matcher as _;

use super::*;

fn search(pattern: &str) -> Search {
    fixture::search(".", pattern, 100)
}

#[track_caller]
fn check(search: &Search, text: &str, expected: bool) {
    let found = Pattern::new(search).unwrap().matcher.is_match(text.as_bytes()).unwrap();
    assert_eq!(found, expected, "`{}` in `{text}`", search.pattern);
}

#[test]
fn case_counts_where_the_pattern_has_upper_case() {
    check(&search("abc"), "xABCx", true);
    check(&search("Abc"), "xABCx", false);
    check(&Search { case: Some(true), ..search("abc") }, "ABC", false);
    check(&Search { case: Some(false), ..search("Abc") }, "aBC", true);
}

#[test]
fn a_literal_is_the_text_itself() {
    check(&Search { literal: true, ..search("a.b(") }, "a.b(", true);
    check(&Search { literal: true, ..search("a.b") }, "axb", false);
    check(&Search { word: true, ..search("ab") }, "cab", false);
    check(&Search { word: true, ..search("ab") }, "c ab.", true);
}

#[test]
fn says_where_a_pattern_is_wrong() {
    let says = |search: &Search| Pattern::new(search).unwrap_err().for_model();
    let wrong = |pattern: &str| says(&search(pattern)).split_once(';').unwrap().0.to_owned();
    assert_eq!(wrong("ä(b"), "`ä(b` is not a regular expression: unclosed group, at character 2");
    assert!(
        wrong("*a").ends_with("repetition operator missing expression, at character 1"),
        "{}",
        wrong("*a")
    );
    assert!(
        wrong("a(?=b)")
            .contains("look-around, including look-ahead and look-behind, is not supported, at character 2")
    );
    assert!(says(&search("")).contains("the pattern is empty"));
    assert!(says(&search(r"a\nb")).contains("multiline"));
    assert!(Pattern::new(&Search { multiline: true, ..search(r"a\nb") }).is_ok());
    assert!(says(&search(r"(\w{1000}){1000}")).contains("size limit"));
}
