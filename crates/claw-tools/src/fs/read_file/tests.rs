use claw_core::tool::ErrorKind;
use serde_json::json;

use crate::absent;
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
    let how =
        "(line 1 is cut: 24000 bytes are shown; the rest of it: byte = 24000; the next line: offset = 2)";
    assert!(said.ends_with(&format!("x\n{how}")), "{}", said.len());
}

#[tokio::test]
async fn a_long_line_is_read_to_its_end_in_parts() {
    let line: String = (0..8_500).map(|number| format!("{number:06}ü")).collect();
    let text = format!("first\n{line}\nshort\n");
    let (mut all, mut args, mut parts) = (String::new(), json!({ "offset": 2 }), 0);
    loop {
        let said = done(&read(text.as_bytes(), args).await);
        let (head, rest) = said.split_once('\n').unwrap();
        assert!(head.starts_with("`a.txt`, lines 2 to "), "{head}");
        let (shown, how) = rest.rsplit_once('\n').unwrap();
        all += shown.lines().next().unwrap().strip_prefix("     2\t").unwrap();
        parts += 1;
        let Some((_, byte)) = how.split_once("the rest of it: byte = ") else {
            assert_eq!((how, shown.lines().nth(1)), ("(the end)", Some("     3\tshort")));
            break;
        };
        let byte: u64 = byte.split(';').next().unwrap().parse().unwrap();
        args = json!({ "byte": byte });
    }
    assert!(all == line, "{} of {} bytes", all.len(), line.len());
    assert_eq!(parts, 3);
    let said = done(&read(text.as_bytes(), json!({ "byte": 10, "limit": 1 })).await);
    assert!(
        said.starts_with("`a.txt`, lines 2 to 2, from byte 10 on\n     2\t00ü000001ü"),
        "{}",
        &said[..80]
    );
    let said = failed(&read(text.as_bytes(), json!({ "byte": 90_000 })).await, ErrorKind::Invalid);
    assert_eq!(said, "`a.txt` ends before byte 90000; read its end with offset = -100");
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
        (
            &b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"[..],
            "image/png, 16 bytes; inspect it with a program in `exec`",
        ),
        (b"%PDF-1.7\n", "application/pdf, 9 bytes; convert it to text with a program in `exec`"),
        (b"\x1f\x8b\x08\x00\x00", "application/gzip, 5 bytes; unpack it with `exec`"),
        (b"a\x00b", "application/octet-stream, 3 bytes; inspect it with a program in `exec`"),
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

#[test]
#[expect(clippy::disallowed_methods, reason = "the test reads our own sources")]
fn no_error_sends_anybody_to_a_tool_that_this_build_lacks() {
    let mut directories = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))];
    let mut looked = 0;
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !["tests", "benches", "catalogue", "target"].contains(&name) {
                directories.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") && name != "tests.rs" {
                let source = std::fs::read_to_string(&path).unwrap();
                looked += 1;
                for line in source.lines().filter(|line| !line.trim_start().starts_with("//")) {
                    let named = absent().iter().find(|meta| line.contains(&format!("use `{}`", meta.name)));
                    assert!(named.is_none(), "{}: {line}", path.display());
                }
            }
        }
    }
    assert!(looked > 100, "{looked}");
}
