use super::*;

fn side(text: &str) -> Side<'_> {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut sites = Vec::new();
    for (line, said) in lines.iter().enumerate() {
        sites.extend(said.match_indices(PLACEHOLDER).map(|(column, _)| Site { line, column }));
    }
    Side { lines, sites }
}

/// `#` stands for a placeholder.
#[track_caller]
fn check(old: &str, new: &str, last: Last, expected: Result<&[usize], usize>) {
    let (old, new) = (old.replace('#', PLACEHOLDER), new.replace('#', PLACEHOLDER));
    let got = align(&side(&old), &side(&new), last);
    assert_eq!(got, expected.map(<[usize]>::to_vec), "{old}\n--\n{new}");
}

#[test]
fn a_line_that_stays_keeps_its_value_wherever_it_goes() {
    check("a = #\nb = #", "a = #\nb = #", Last::Doubt, Ok(&[0, 1]));
    check("a = #\nb = #", "b = #\nx\na = #", Last::Doubt, Ok(&[1, 0]));
    check("a = #\nb = #", "b = #", Last::Doubt, Ok(&[1]));
    check("user # pass #", "user # pass #", Last::Doubt, Ok(&[0, 1]));
}

#[test]
fn a_changed_line_keeps_what_stands_after_the_same_words() {
    check("a = #\nb = #", "a = # // old\nb = #", Last::Doubt, Ok(&[0, 1]));
    check("  a: #\n  b: #", "    b: #\n    a: #", Last::Doubt, Ok(&[1, 0]));
    check("a=#, b=#", "b=#, a=#", Last::Doubt, Ok(&[1, 0]));
    check("a = #", "b = #", Last::Doubt, Err(0));
    check("a = #", "b = #", Last::Pair, Ok(&[0]));
    check("a = #\nb = #", "c = #\nd = #", Last::Pair, Err(0));
}

#[test]
fn equal_lines_are_told_by_what_is_around_them() {
    let yaml = "db:\n  pw: #\ncache:\n  pw: #";
    check(yaml, "db:\n  pw: #\n  more: 1\ncache:\n  pw: #", Last::Doubt, Ok(&[0, 1]));
    check(yaml, "cache:\n  pw: #", Last::Doubt, Ok(&[1]));
    check(yaml, "db:\n  pw: #\nend", Last::Doubt, Err(0));
    check("- #\n- #\n- #", "- #\n- #\n- #\nend", Last::Doubt, Err(0));
    check("x\n- #\n- #\ny", "x\n- #\n- #\ny\nz", Last::Doubt, Ok(&[0, 1]));
}

#[test]
fn what_is_in_doubt_is_refused() {
    // A name may stand before its value or after it.
    check("a:\n- #\nb:\n- #", "b:\n- #\na:\n- #", Last::Doubt, Err(0));
    check("- #\nname: a\n- #\nname: b", "- #\nname: b\n- #\nname: a", Last::Doubt, Err(0));
    // The same names again elsewhere do not help.
    let old = "p:\na\n- #\nb\n- #\nt:\na\n- #\nb\n- #";
    check(old, "p:\nb\n- #\na\n- #\nt:\na\n- #\nb\n- #", Last::Doubt, Err(0));
    check("- #\n- #", "- #", Last::Doubt, Err(0));
    check("- #", "- #\n- #", Last::Doubt, Err(0));
    check("a = #", "a = #\nb = #", Last::Pair, Err(1));
    check("plain", "a = #", Last::Pair, Err(0));
}
