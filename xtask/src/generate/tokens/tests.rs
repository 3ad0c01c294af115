use super::{Tokens, count, layout, render};
use crate::generate::sample;

#[test]
fn counts_are_those_of_the_tokenizer() {
    let tokens = count(&sample::tools()).unwrap();
    assert_eq!(tokens.keys().collect::<Vec<_>>(), ["sample_move", "sample_ping"]);
    assert!(tokens.values().all(|count| (10..400).contains(count)), "{tokens:?}");
    assert!(tokens["sample_move"] > tokens["sample_ping"]);
}

#[test]
fn the_file_is_sorted_and_marked() {
    let tokens = Tokens::from([("b".to_owned(), 2), ("a".to_owned(), 1)]);
    let text = render(&tokens);
    assert!(text.starts_with("// @generated"));
    assert!(text.contains("&[(\"a\", 1), (\"b\", 2)];\n\n/// Tokens of"));
}

#[test]
fn the_list_is_laid_out_as_rustfmt_does() {
    assert_eq!(layout(""), "pub const TOKENS: &[(&str, u32)] = &[];\n");
    let row = |letter: &str| format!("(\"{}\", 100)", letter.repeat(40));
    let two = layout(&format!("{}, {}", row("a"), row("b")));
    assert!(two.starts_with("pub const TOKENS: &[(&str, u32)] =\n    &[(\"a"), "{two}");
    let three = layout(&format!("{}, {}, {}", row("a"), row("b"), row("c")));
    assert!(three.starts_with("pub const TOKENS: &[(&str, u32)] = &[\n    (\"a"), "{three}");
    assert!(three.ends_with(", 100),\n];\n"), "{three}");
}
