use super::{Column, Kind, Shape, plan};

fn table(name: &str, columns: &[(&str, Kind)], keys: &[&[&str]], references: &[&str]) -> Shape {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let column = |(name, kind): &(&str, Kind)| Column { name: (*name).to_owned(), kind: *kind };
    Shape {
        name: name.to_owned(),
        columns: columns.iter().map(column).collect(),
        keys: keys.iter().map(|key| words(key)).collect(),
        references: words(references),
    }
}

#[track_caller]
fn check_refused(source: Shape, target: Shape, says: &str) {
    let Err(error) = plan(vec![source], vec![target]) else { panic!("it was planned: {says}") };
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn takes_a_key_that_both_have_and_the_columns_in_one_order() {
    let (text, id) = (("tenant", Kind::Text), ("id", Kind::Blob));
    let source =
        table("notes", &[("position", Kind::Integer), id, text], &[&["position"], &["id", "tenant"]], &[]);
    let target =
        table("notes", &[text, ("id", Kind::Uuid), ("position", Kind::Integer)], &[&["tenant", "id"]], &[]);
    let planned = plan(vec![source], vec![target]).unwrap();
    let table = &planned.tables[0];
    let names = |columns: &[Column]| columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&table.source.columns), ["position", "id", "tenant"]);
    assert_eq!(names(&table.target.columns), ["position", "id", "tenant"]);
    assert_eq!((table.source.key.as_slice(), table.target.key.as_slice()), (&[2, 1][..], &[2, 1][..]));
}

#[test]
fn says_what_it_cannot_carry() {
    let id = ("id", Kind::Integer);
    let plain = || table("notes", &[id], &[&["id"]], &[]);
    let more = || table("notes", &[id, ("text", Kind::Text)], &[&["id"]], &[]);
    check_refused(more(), plain(), "the target has no column `text` in `notes`");
    check_refused(plain(), more(), "the source has no column `text` in `notes`");
    check_refused(plain(), table("notes", &[id], &[], &[]), "`notes` has no key that is in both");
    let other = table("notes", &[("id", Kind::Json)], &[&["id"]], &[]);
    check_refused(plain(), other, "`id` in `notes` is a number here and text there");
    check_refused(
        plain(),
        table("others", &[id], &[&["id"]], &[]),
        "the table `notes` exists in only one of the two databases",
    );
}

#[test]
fn puts_rows_after_those_that_they_refer_to() {
    let shape =
        |name: &str, references: &[&str]| table(name, &[("id", Kind::Integer)], &[&["id"]], references);
    let shapes = || vec![shape("a", &["b", "a"]), shape("b", &["c"]), shape("c", &[])];
    let planned = plan(shapes(), shapes()).unwrap();
    let names: Vec<_> = planned.tables.iter().map(|table| table.source.name.as_str()).collect();
    assert_eq!(names, ["c", "b", "a"]);
    let circle = || vec![shape("a", &["b"]), shape("b", &["a"])];
    assert!(plan(circle(), circle()).is_err());
}

#[test]
fn what_is_found_by_words_is_made_anew() {
    let id = ("id", Kind::Integer);
    let documents = || table("documents", &[id, ("mark", Kind::Integer)], &[&["id"]], &[]);
    let passages = |more: &[(&str, Kind)]| table("passages", &[&[id], more].concat(), &[&["id"]], &[]);
    let sqlite = || vec![documents(), passages(&[]), table("passage_words", &[], &[], &[])];
    let postgres = || vec![documents(), passages(&[("words", Kind::Blob)])];
    for (source, target, expected) in [
        (sqlite(), postgres(), &["passages"][..]),
        (postgres(), sqlite(), &["passages", "passage_words"]),
        (sqlite(), sqlite(), &["passage_words", "passages"]),
        (postgres(), postgres(), &["passages"]),
    ] {
        let planned = plan(source, target).unwrap();
        let derived: Vec<_> = planned.derived.iter().map(|derived| derived.name).collect();
        assert_eq!(derived, expected);
        assert_eq!(planned.tables.len(), 1);
        assert_eq!(planned.tables[0].target.columns.len(), 1, "which is not `mark`");
    }
}
