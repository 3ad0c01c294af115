use claw_core::tool::ErrorKind;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fs::tests::{Road, done, failed};

use super::line_ends::to_plain;
use super::*;

async fn edit(text: &str, mut args: Value) -> (claw_registry::Reply, String) {
    let road = Road::new(&[("a.txt", text.as_bytes())]);
    args["path"] = json!("a.txt");
    let reply = road.call("edit", args).await;
    let text = road.text("a.txt");
    (reply, text)
}

#[track_caller]
fn check((reply, got): (claw_registry::Reply, String), expected: &str) {
    done(&reply);
    assert_eq!(got, expected);
}

fn one(old: &str, new: &str) -> Value {
    json!({ "old_string": old, "new_string": new })
}

#[tokio::test]
async fn it_replaces_and_shows_the_change() {
    let (reply, text) = edit("one\ntwo\nthree\n", one("two", "2")).await;
    assert_eq!(text, "one\n2\nthree\n");
    insta::assert_snapshot!(done(&reply), @"
    changed `a.txt`: 12 bytes now
    --- a/a.txt
    +++ b/a.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    ");
    check(edit("a b a", json!({ "old_string": "a", "new_string": "c", "replace_all": true })).await, "c b c");
    let edits = json!({ "edits": [{ "old": "a", "new": "b" }, { "old": "b", "new": "a" }] });
    check(edit("a b", edits).await, "b a");
}

#[tokio::test]
async fn line_ends_and_byte_order_mark_stay() {
    check(edit("a\r\nb\r\nc\r\n", one("a\nb", "x\ny\nz")).await, "x\r\ny\r\nz\r\nc\r\n");
    check(edit("a\r\nb\r\n", one("a\r\nb", "x")).await, "x\r\n");
    check(edit("\u{feff}a\n", one("a", "b")).await, "\u{feff}b\n");
    check(edit("a\r\nb\nc\r\nd\r\n", one("a\nb\nc\n", "a\nb\nx\n")).await, "a\r\nb\nx\r\nd\r\n");
}

#[tokio::test]
async fn all_or_none() {
    let text = "one\ntwo\nthree\n";
    for (args, says) in [
        (
            json!({ "edits": [{ "old": "one", "new": "1" }, { "old": "four", "new": "4" }] }),
            "edit 2: the text to replace is not in `a.txt`, nor is anything similar; read the file again",
        ),
        (
            json!({ "edits": [{ "old": "one\ntwo", "new": "1" }, { "old": "two\nthree", "new": "2" }] }),
            "edit 1 and edit 2 overlap at line 2; combine them into one edit",
        ),
        (
            one("", "x"),
            "the edit: the text to replace is empty; give text that is in the file, or use `write_file` for a new one",
        ),
        (one("one", "one"), "the edit: the new text is the same as the old"),
        (json!({ "old_string": "one" }), "`old_string` and `new_string` must be given together"),
        (json!({}), "no edit is given; give `old_string` and `new_string`, or `edits`, or `patch`"),
    ] {
        let (reply, after) = edit(text, args).await;
        assert_eq!(failed(&reply, ErrorKind::Invalid), says);
        assert_eq!(after, text);
    }
}

#[tokio::test]
async fn what_occurs_often_is_counted_with_its_lines() {
    let (reply, _) = edit("x = 1\ny\nx = 1\nx = 1\n", one("x = 1", "x = 2")).await;
    insta::assert_snapshot!(failed(&reply, ErrorKind::Invalid), @"the edit: the text to replace occurs 3 times in `a.txt`, at lines 1, 3, 4; add lines around it until it is the only one, or set `replace_all`");
    let (reply, _) = edit("aaa", one("aa", "b")).await;
    assert!(failed(&reply, ErrorKind::Invalid).contains("2 times"));
}

#[tokio::test]
async fn what_is_nearest_is_shown_with_what_differs() {
    let text = "fn main() {\n    let name = \u{201c}demo\u{201d};\n    call(name,  1);\n}\n";
    for (old, way) in [
        ("let name = \"demo\";", "line 2 it differs in quotes, dashes or spaces of another kind"),
        ("call(name, 1);", "line 3 it differs in white space"),
        ("fn main() {\n  let name = \u{201c}demo\u{201d};\n", "line 1 it differs in indentation"),
        ("fn main() {   \n    let name", "line 1 it differs in white space at line ends"),
        ("CALL(name,  1);", "line 3 it differs in upper and lower case"),
    ] {
        let (reply, after) = edit(text, one(old, "x")).await;
        let said = failed(&reply, ErrorKind::Invalid);
        assert!(said.contains(way), "{old}: {said}");
        assert_eq!(after, text);
    }
    let (reply, _) =
        edit("alpha = 1\nbeta = call(one, two)\nend\n", one("beta = call(one, three)\nend", "x")).await;
    insta::assert_snapshot!(failed(&reply, ErrorKind::Invalid), @"
    the edit: the text to replace is not in `a.txt`; nearest is line 2:
         2	beta = call(one, two)
         3	end
    where line 2 says `beta = call(one, two)`, the text to replace says `beta = call(one, three)`; copy it exactly as it is there
    ");
}

#[tokio::test]
async fn a_patch_is_taken() {
    let text = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n@@ -6,2 +6,3 @@\n six\n+more\n seven\n";
    check(edit(text, json!({ "patch": patch })).await, "one\n2\nthree\nfour\nfive\nsix\nmore\nseven\n");
    // The line is wrong and the place is the only one.
    check(
        edit(text, json!({ "patch": "@@ -9,2 +9,1 @@\n five\n-six\n" })).await,
        "one\ntwo\nthree\nfour\nfive\nseven\n",
    );
    check(edit("a\r\nb\r\n", json!({ "patch": "@@ -1,2 +1,2 @@\n a\n-b\n+c\n" })).await, "a\r\nc\r\n");
    check(
        edit("a\nb", json!({ "patch": "@@ -2 +2,2 @@\n-b\n\\ No newline at end of file\n+b\n+c\n" })).await,
        "a\nb\nc\n",
    );
    check(edit("a\nb", json!({ "patch": "@@ -2,0 +3,1 @@\n+c\n" })).await, "a\nb\nc");
    check(edit("a\n", json!({ "patch": "@@ -0,0 +1,1 @@\n+top\n" })).await, "top\na\n");
    check(edit("", json!({ "patch": "@@ -0,0 +1,1 @@\n+top\n" })).await, "top\n");
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_refused() {
    let text = "x\ny\nx\ny\n";
    for (patch, says) in [
        (
            "@@ -9,1 +9,1 @@\n-x\n+z\n",
            "hunk 1 does not fit at line 9, and fits at several others, such as 1 and 3",
        ),
        ("@@ -1,1 +1,1 @@\n-gone entirely\n+z\n", "hunk 1: the text to replace is not in `a.txt`"),
        (
            "@@ -1,3 +1,1 @@\n-x\n+z\n",
            "the hunk at line 1 of the patch does not have the numbers of lines that its header says",
        ),
        ("@@ broken @@\n-x\n", "line 1 of the patch is not a hunk header"),
        ("no patch at all", "the patch has no hunk"),
        (
            "--- a/other.txt\n+++ b/other.txt\n@@ -1 +1 @@\n-x\n+z\n",
            "the patch is of `other.txt`, not of `a.txt`",
        ),
        ("@@ -1,2 +1,2 @@\n x\n*y\n", "line 3 of the patch begins with none of"),
    ] {
        let (reply, after) = edit(text, json!({ "patch": patch })).await;
        let said = failed(&reply, ErrorKind::Invalid);
        assert!(said.starts_with(says), "{said}");
        assert_eq!(after, text);
    }
}

proptest! {
    #[test]
    fn places_of_a_plain_text_map_back(text in "(a|\n|\r\n){0,30}", cuts in (any::<prop::sample::Index>(), any::<prop::sample::Index>())) {
        let plain = Plain::of(&text);
        prop_assert_eq!(&*plain.text, text.replace("\r\n", "\n"));
        let (a, b) = (cuts.0.index(plain.text.len() + 1), cuts.1.index(plain.text.len() + 1));
        let range = a.min(b)..a.max(b);
        let old = plain.text[range.clone()].to_owned();
        let splice = plain.splice(Replacement { range: range.clone(), text: format!("{old}!"), origin: String::new() });
        let mut after = text.clone();
        after.replace_range(splice.range, &splice.text);
        let expected = format!("{}{old}!{}", &plain.text[..range.start], &plain.text[range.end..]);
        prop_assert_eq!(to_plain(&after), expected);
    }

    #[test]
    fn a_patch_never_panics(text in "[ab\n]{0,12}", patch in "(@@ -[0-3],[0-3] \\+[0-3],[0-3] @@\n)?([ +-][ab]?\n){0,6}") {
        let plain = Plain::of(&text);
        if let Ok(replacements) = patch::apply("a.txt", &plain, &patch) {
            drop(in_order(&plain, replacements));
        }
        drop(find::all("a.txt", &plain, &[Edit { old: patch, new: String::new(), replace_all: false }]));
    }
}
