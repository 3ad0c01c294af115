use claw_core::tool::ErrorKind;
use serde_json::json;

use crate::fs::tests::{Road, done, failed};

#[tokio::test]
async fn it_says_what_it_did() {
    let road = Road::new(&[]);
    let write = |content: &str, mode: &str| json!({ "path": "d/a.txt", "content": content, "mode": mode });
    assert_eq!(done(&road.call("write_file", write("one\n", "create")).await), "created `d/a.txt`: 4 bytes");
    failed(&road.call("write_file", write("two\n", "create")).await, ErrorKind::Conflict);
    insta::assert_snapshot!(done(&road.call("write_file", write("two\n", "append")).await), @"
    changed `d/a.txt`: 8 bytes now
    --- a/d/a.txt
    +++ b/d/a.txt
    @@ -1 +1,2 @@
     one
    +two
    ");
    let same = done(&road.call("write_file", write("one\ntwo\n", "overwrite")).await);
    assert_eq!(same, "`d/a.txt` already has this content; nothing was changed");
    assert_eq!(road.text("d/a.txt"), "one\ntwo\n");
}

#[tokio::test]
async fn encodings_are_kept() {
    let utf16 = b"\xff\xfea\x00\n\x00";
    let road = Road::new(&[("u16.txt", utf16), ("latin.txt", b"K\xe4se und Stra\xdfe\n")]);
    let append = |path: &str, content: &str| json!({ "path": path, "content": content, "mode": "append" });
    done(&road.call("write_file", append("u16.txt", "b")).await);
    done(&road.call("write_file", append("latin.txt", "sch\u{f6}n\n")).await);
    let said = failed(&road.call("write_file", append("latin.txt", "漢")).await, ErrorKind::Invalid);
    assert!(said.starts_with("`latin.txt` is windows-1252, which cannot encode `漢` (U+6F22)"), "{said}");
    let kept: Vec<_> = road.journal.changes().into_iter().map(|kept| kept.after.unwrap()).collect();
    assert_eq!(kept, [b"\xff\xfea\x00\n\x00b\x00".to_vec(), b"K\xe4se und Stra\xdfe\nsch\xf6n\n".to_vec()]);
}

#[tokio::test]
async fn it_leaves_alone_what_it_may_not_write() {
    let road = Road::new(&[("dir/a.txt", b"x")]);
    failed(&road.call("write_file", json!({ "path": "dir", "content": "x" })).await, ErrorKind::Invalid);
    let reply = road.call("write_file", json!({ "path": "../a.txt", "content": "x" })).await;
    assert_eq!(reply.refusal().map(|refusal| refusal.step.name()), Some("judge"));
}
