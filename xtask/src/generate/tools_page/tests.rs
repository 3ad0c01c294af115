use super::render;
use crate::generate::{sample, tokens};

#[track_caller]
fn check(expected: &str) {
    let tools = sample::tools();
    let page = render(&tools, &tokens::count(&tools).unwrap());
    assert!(page.contains(expected), "`{expected}` is not in\n{page}");
}

#[test]
fn sections_come_in_the_order_of_groups() {
    let page = render(&sample::tools(), &tokens::Tokens::new());
    let at = |text: &str| page.find(text).unwrap();
    assert!(page.starts_with("<!-- @generated"));
    assert!(at("## Files") < at("### sample_move"));
    assert!(at("### sample_move") < at("## Tools about tools"));
}

#[test]
fn metadata_is_told() {
    check("| [`sample_move`](#sample_move) | read, write | heavy |");
    check("- Label for people: Move things\n- In `group:fs`\n- Alias: `mv`\n- Needs: `files`\n");
    check("- Time limit of one call: 9 seconds\n");
    check("| [`sample_ping`](#sample_ping) | none | normal |");
}

#[test]
fn arguments_are_told() {
    check("| `from` | string | required | Source \\| or `-`. |");
    check("| `to` | list of string | required | Targets, each in turn. |");
    check("Targets, each in turn. |\n| `a_name` | string |  | Name of the result. (default `it`) |\n");
    check("| `count` | integer |  | Most things to move. (at least `1`) (at most `10`) |");
    check("| `mode` | `cut`, `copy` |  | Mode. `cut`: Leave nothing behind. `copy`: Leave the original. |");
    check("| `loud` | boolean |  | Report the move. (default `true`) |");
    check("It takes no arguments.");
}
