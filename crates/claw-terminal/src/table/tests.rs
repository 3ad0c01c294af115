use crate::{Cell, Table};

#[test]
fn a_plain_table_is_aligned_and_each_row_is_one_line() {
    let mut table = Table::new(["name", "about"]);
    table.row([Cell::new("a"), Cell::new("first\nsecond")]);
    table.row([Cell::good("longer"), Cell::new("")]);
    assert_eq!(table.plain(), "NAME    ABOUT\na       first second\nlonger\n");
    // A list that is piped may be shown by a terminal in the end.
    let mut table = Table::new(["name"]);
    table.row([Cell::new("\u{1b}[2J\u{202e}a")]);
    assert_eq!(table.plain(), "NAME\n␛[2J\u{fffd}a\n");
}

#[test]
fn on_a_terminal_names_stay_whole_and_texts_are_wrapped() {
    let id = "019b7611-3c00-7b4e-9b0a-52a4c3f1d7e8";
    let mut table = Table::new(["id", "about", "by"]);
    table.row([
        Cell::new(id),
        Cell::new("a text of several words that has to be wrapped somewhere"),
        Cell::new(""),
    ]);
    let beside = format!(
        "ID{:36}ABOUT{:37}BY\n{id}  a text of several words that has to be\n{:38}wrapped somewhere\n",
        "", "", ""
    );
    assert_eq!(table.for_terminal(82, false), beside);
    let below = format!(
        "ID\n    ABOUT{:47}BY\n{id}\n    a text of several words that has to be wrapped\n    somewhere\n",
        ""
    );
    assert_eq!(table.for_terminal(58, false), below);
    let coloured = table.for_terminal(58, true);
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), below);
    assert_ne!(coloured, below);
}

#[test]
fn what_was_written_to_steer_a_terminal_is_shown_in_a_table() {
    let mut table = Table::new(["what"]);
    table.row([Cell::new("a\u{1b}[2Jb")]);
    assert_eq!(table.for_terminal(80, false), "WHAT\na␛[2Jb\n");
}
