use claw_core::tool::ErrorKind;
use serde_json::json;

use crate::fs::tests::{Road, done, failed};

async fn read(bytes: &[u8], args: serde_json::Value) -> claw_registry::Reply {
    let mut args = args;
    args["path"] = json!("a.txt");
    Road::new(&[("a.txt", bytes)]).call("read_file", args).await
}

#[tokio::test]
async fn lines_come_with_their_numbers_and_how_to_go_on() {
    let text = b"one\ntwo\nthree\nfour";
    insta::assert_snapshot!(done(&read(text, json!({})).await), @"
    `a.txt`, lines 1 to 4
         1	one
         2	two
         3	three
         4	four
    (the end)
    ");
    insta::assert_snapshot!(done(&read(text, json!({ "offset": 2, "limit": 2 })).await), @"
    `a.txt`, lines 2 to 3
         2	two
         3	three
    (there is more; next: offset = 4)
    ");
    insta::assert_snapshot!(done(&read(text, json!({ "offset": -1 })).await), @"
    `a.txt`, lines 4 to 4
         4	four
    (the end)
    ");
    let said = failed(&read(text, json!({ "offset": 9 })).await, ErrorKind::Invalid);
    assert_eq!(said, "`a.txt` ends before line 9; read its end with offset = -100");
    assert_eq!(done(&read(b"", json!({})).await), "`a.txt` is empty");
}

#[tokio::test]
async fn what_is_too_long_is_cut_and_said_to_be() {
    let many = "line\n".repeat(3_000);
    let said = done(&read(many.as_bytes(), json!({})).await);
    assert!(
        said.ends_with("  1000\tline\n(there is more; next: offset = 1001)"),
        "{}",
        &said[said.len() - 200..]
    );
    let long = format!("{}\nshort\n", "x".repeat(30_000));
    let said = done(&read(long.as_bytes(), json!({})).await);
    assert!(
        said.ends_with("x\n(line 1 is cut: it is longer than 24000 bytes; next: offset = 2)"),
        "{}",
        said.len()
    );
}

#[tokio::test]
async fn what_kind_of_text_it_is_is_told() {
    let first = |said: String| said.lines().next().unwrap().to_owned();
    let utf16 = first(done(&read(b"\xff\xfea\x00\n\x00", json!({})).await));
    assert_eq!(utf16, "`a.txt`, lines 1 to 1, encoded in UTF-16LE, with a byte order mark");
    let crlf = done(&read(b"a\r\nb\r\n", json!({})).await);
    assert!(crlf.starts_with("`a.txt`, lines 1 to 2, with CRLF line ends\n     1\ta\n"), "{crlf}");
}

#[tokio::test]
async fn what_is_no_text_is_told_with_the_tool_for_it() {
    for (bytes, says) in [
        (&b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"[..], "image/png, 16 bytes; use `read_image`"),
        (b"%PDF-1.7\n", "application/pdf, 9 bytes; use `read_document`"),
        (b"\x1f\x8b\x08\x00\x00", "application/gzip, 5 bytes; unpack it with `exec`"),
        (b"a\x00b", "application/octet-stream, 3 bytes; look into it with a program, by `exec`"),
    ] {
        let said = failed(&read(bytes, json!({})).await, ErrorKind::Invalid);
        assert_eq!(said, format!("`a.txt` is not text: {says}"));
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let road = Road::new(&[("a.txt", b"x")]);
    failed(&road.call("read", json!({ "path": "b.txt" })).await, ErrorKind::NotFound);
    failed(&road.call("read_file", json!({ "path": "/etc/passwd" })).await, ErrorKind::Forbidden);
}
