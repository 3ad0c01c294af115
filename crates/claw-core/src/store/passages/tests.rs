use proptest::prelude::*;

use super::{MOST, passages, tokens};

#[track_caller]
fn check(text: &str, expected: &[(u64, u64, &str, &str)]) {
    let found = passages(text);
    let found: Vec<_> = found
        .iter()
        .map(|passage| {
            (passage.first_line, passage.last_line, passage.heading.as_str(), passage.text.as_str())
        })
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn a_section_is_a_passage_with_its_headings() {
    check("", &[]);
    check("\n \n\t\n", &[]);
    check("one line", &[(1, 1, "", "one line")]);
    check("\n\none\n\ntwo\n\n", &[(3, 5, "", "one\n\ntwo")]);
    check(
        "# Trips\n\nwe travel\n\n## Lisbon ##\n- in May\n- by train\n# Food\nsoup",
        &[
            (1, 3, "Trips", "# Trips\n\nwe travel"),
            (5, 7, "Trips > Lisbon", "## Lisbon ##\n- in May\n- by train"),
            (8, 9, "Food", "# Food\nsoup"),
        ],
    );
    check("### Deep\nx\n# Top\ny", &[(1, 2, "Deep", "### Deep\nx"), (3, 4, "Top", "# Top\ny")]);
}

#[test]
fn a_heading_without_text_is_found_by_itself_or_by_what_is_below() {
    check("# A\n## B\ntext", &[(2, 3, "A > B", "## B\ntext")]);
    check("# A\n# B\ntext", &[(1, 1, "A", "# A"), (2, 3, "B", "# B\ntext")]);
    check("# A", &[(1, 1, "A", "# A")]);
}

#[test]
fn marks_in_code_are_no_headings() {
    check("```sh\n# not a heading\n```\n#hashtag", &[(1, 4, "", "```sh\n# not a heading\n```\n#hashtag")]);
    check("~~~\n# open to the end", &[(1, 2, "", "~~~\n# open to the end")]);
}

#[test]
fn long_text_is_cut_between_paragraphs_then_lines_then_words() {
    let paragraph = "word ".repeat(100);
    let text = format!("{paragraph}\n\n{paragraph}\n\n{paragraph}");
    let found: Vec<_> =
        passages(&text).iter().map(|passage| (passage.first_line, passage.last_line)).collect();
    assert_eq!(found, [(1, 1), (3, 3), (5, 5)]);
    let lines = vec!["word ".repeat(60).trim().to_owned(); 20].join("\n");
    let found = passages(&lines);
    assert_eq!(found[0].first_line, 1);
    assert!(found.windows(2).all(|pair| pair[1].first_line == pair[0].last_line + 1));
    assert_eq!(found.last().unwrap().last_line, 20);
    let line = "word ".repeat(2_000);
    let found = passages(&line);
    assert!(found.len() > 1 && found.iter().all(|passage| (passage.first_line, passage.last_line) == (1, 1)));
    assert_eq!(found.iter().map(|passage| passage.text.as_str()).collect::<String>(), line);
    let found = passages(&"界".repeat(1_000));
    assert_eq!(found.iter().map(|passage| passage.text.chars().count()).sum::<usize>(), 1_000);
}

proptest! {
    #[test]
    fn nothing_is_lost_and_nothing_is_too_long(text in "([a-z#`*é世 -]{0,40}\n){0,60}") {
        // A line without text is an empty one.
        let lines: Vec<&str> = text.lines().map(|line| if line.trim().is_empty() { "" } else { line }).collect();
        let found = passages(&text);
        for passage in &found {
            prop_assert!(tokens(&passage.text) <= MOST + 1);
            let whole = lines[passage.first_line as usize - 1..passage.last_line as usize].join("\n");
            prop_assert!(whole.contains(passage.text.trim_end_matches('\n')), "{whole:?} {:?}", passage.text);
        }
        // A heading directly above another one is in the heading of the text that follows.
        for (line, number) in lines.iter().zip(1..) {
            let is_there = line.trim().is_empty()
                || found.iter().any(|passage| (passage.first_line..=passage.last_line).contains(&number))
                || found.iter().any(|passage| {
                    let title = line.trim_matches(['#', ' ']);
                    line.starts_with('#') && passage.heading.contains(title)
                });
            prop_assert!(is_there, "line {number} {line:?}");
        }
    }
}
