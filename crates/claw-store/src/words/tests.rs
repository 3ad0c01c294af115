use std::ops::ControlFlow::Continue;

use proptest::prelude::*;

use super::{
    EMPTY, LONGEST, MOST_ASKED, MOST_BYTES, MOST_WORDS, asked, each, is_letter, matched, spaced, vector,
};
use super::{asked_as_written, stem};

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(words(text), stems(&expected.split(' ').collect::<Vec<_>>()), "{text:?}");
}

/// Returns the stems of words.
fn stems(words: &[&str]) -> Vec<String> {
    let stemmed = words.iter().map(|word| {
        let mut word = (*word).to_owned();
        stem(&mut word);
        word
    });
    stemmed.collect()
}

fn words(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    each(text, |word| {
        all.push(word.to_owned());
        Continue(())
    });
    all
}

#[test]
fn folds_case_and_diacritics() {
    check("Deploy NOW!", "deploy now");
    check("Crème Brûlée, naïve", "creme brulee naive");
    check("cre\u{300}me", "creme");
    check("Straße STRASSE", "strasse strasse");
    check("Øresund łódź Ægir", "oresund lodz aegir");
    check("İstanbul ılık", "istanbul ilik");
    check("ΣΟΦΟΣ σοφός", "σοφοσ σοφοσ");
    check("ﬁne Ｆｕｌｌ", "fine full");
    check("мёд Йод", "мед иод");
}

#[test]
fn keeps_marks_that_spell() {
    check("हिन्दी में", "हिन्दी में");
    check("தமிழ்", "தமிழ்");
}

#[test]
fn takes_a_name_whole_and_in_parts() {
    check("snake_case", "snakecase snake case");
    check("camelCase", "camelcase camel case");
    check("HTTPServer", "httpserver http server");
    check("getHTTP2Server", "gethttp2server get http2 server");
    check("foo.bar()", "foobar foo bar");
    check("std::fs::read", "std fs read");
    check("src/lib.rs:7", "src librs lib rs 7");
    check("2026-01-31", "20260131 2026 01 31 january");
    check("v1.2", "v12 v1 2");
    check("user's don't", "users user dont don");
    check("ends. _here_ -- and... there", "ends here");
    check("__init__", "init");
    check("SCREAMING_CASE", "screamingcase screaming case");
    check("ÉcoleNormale", "ecolenormale ecole normale");
}

#[test]
fn takes_scripts_without_blanks_by_character_and_pair() {
    check("東京都", "東 京 東京 都 京都");
    check("Rust言語", "rust 言 語 言語");
    check("がか\u{3099}", "が が がが");
    check("ｶﾞ", "ガ");
    check("한국 어", "한 국 한국 어");
    check("猫。犬", "猫 犬");
    assert_eq!(asked("東京都"), ["東京", "京都"]);
    assert_eq!(asked("猫"), ["猫"]);
    assert_eq!(asked("猫 犬小屋"), ["猫", "犬小", "小屋"]);
}

#[test]
fn a_question_has_no_operators_and_no_empty_words() {
    assert!(EMPTY.is_sorted());
    assert_eq!(
        asked("What is the \"release\" AND* NEAR(plan, 2) OR col:up^ -x {a b} : +y"),
        stems(&["release", "near", "plan", "2", "col", "up", "x", "b", "y"])
    );
    for nothing in ["", " ", "\0", "the and OR", "\"", "*", "'", "!?()", "\u{301}"] {
        assert_eq!(asked(nothing), [""; 0], "{nothing:?}");
    }
    assert_eq!(asked("one\0two one"), ["on", "two"]);
}

#[test]
fn tells_which_words_of_a_question_a_text_has() {
    let question = asked_as_written("When did Ann go to Lisbon in January 2026?");
    let written: Vec<&str> = question.iter().map(|(_, written)| written.as_str()).collect();
    assert_eq!(written, ["ann", "go", "lisbon", "january", "2026"]);
    assert_eq!(matched(&question, "2026-01-31: Ann went there"), ["ann", "go", "january", "2026"]);
    assert_eq!(matched(&question, ""), [""; 0]);
}

#[test]
fn is_bounded() {
    let many: String = (0..200_000).map(|n| format!("w{n} ")).collect();
    assert_eq!(asked(&many).len(), MOST_ASKED);
    assert_eq!(spaced(1, &many).split(' ').count(), MOST_WORDS);
    let long = "x".repeat(1_000_000);
    assert_eq!(asked(&long), ["x".repeat(LONGEST)]);
    assert_eq!(
        asked(&format!("{}.{}", "ö".repeat(100), "z".repeat(100))),
        ["o".repeat(LONGEST), "z".repeat(LONGEST)]
    );
    let wide: String = (0..20_000).map(|n| format!("{n}{} ", "ж".repeat(LONGEST))).collect();
    let bytes = spaced(1, &wide).len();
    assert!(bytes < 2 * MOST_BYTES && bytes > MOST_BYTES / 2, "{bytes}");
    assert!(vector(1, &many).len() < 1_000_000);
    assert_eq!(vector(7, &"x ".repeat(10_000)).split(',').count(), 255);
}

#[test]
fn writes_a_vector() {
    assert_eq!(vector(7, "to b or not to b"), "'7xb':1,3 '7xnot':2 ");
    assert_eq!(vector(7, ""), "");
    assert_eq!(spaced(7, "to b or not to b"), "7xb 7xnot 7xb");
    assert_eq!(spaced(7, ""), "");
}

proptest! {
    #[test]
    fn a_word_has_nothing_in_it_that_a_database_reads(text in ".*") {
        for word in words(&text) {
            prop_assert!(word.chars().all(is_letter), "{word:?}");
            prop_assert!(!word.chars().any(|c| c.is_ascii() && !c.is_ascii_alphanumeric()), "{word:?}");
            prop_assert!(!word.is_empty() && word.chars().count() <= LONGEST);
        }
    }

    #[test]
    fn what_a_passage_says_is_found_by_saying_it(text in "\\PC{0,40}") {
        let there = words(&text);
        for word in asked(&text) {
            prop_assert!(there.contains(&word), "{word:?} of {text:?}");
        }
    }

    #[test]
    fn ascii_takes_the_short_way_to_the_same_words(text in "[ -~]{0,60}") {
        // A character that is no word makes it take the long way.
        prop_assert_eq!(words(&text), words(&format!("{text} \u{3002}")));
    }
}
