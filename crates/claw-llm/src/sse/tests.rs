use super::{Events, NoEvents};

fn events(pieces: &[&[u8]]) -> Result<Vec<String>, NoEvents> {
    let (mut parser, mut events) = (Events::default(), Vec::new());
    for piece in pieces {
        parser.take(piece, &mut events)?;
    }
    events.extend(parser.rest()?);
    Ok(events)
}

/// The same events, wherever the bytes are split.
#[track_caller]
fn check(stream: &str, expected: &[&str]) {
    let bytes = stream.as_bytes();
    assert_eq!(events(&[bytes]).unwrap(), expected, "whole");
    for at in 0..=bytes.len() {
        assert_eq!(events(&[&bytes[..at], &bytes[at..]]).unwrap(), expected, "split at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(events(&single).unwrap(), expected, "byte by byte");
}

#[test]
fn every_way_to_write_an_event_is_read() {
    check("data: a\n\ndata:b\n\n", &["a", "b"]);
    check("data: a\r\n\r\ndata: b\r\rdata: c\n\r\n", &["a", "b", "c"]);
    check("event: x\nid: 1\n: a comment\nretry: 5\ndata: a\ndata: b\n\n", &["a\nb"]);
    check("\u{feff}data: a\n\n", &["a"]);
    check("data\n\ndata:\n\ndata:  a\n\n", &["", "", " a"]);
    check("event: only\n\n\n\n", &[]);
    check("database: x\n\n", &[]);
    check("data: gr\u{fc}n \u{1f980}\n\n", &["gr\u{fc}n \u{1f980}"]);
    check("data: unended", &["unended"]);
    check("data: a\n", &["a"]);
}

#[test]
fn refuses_what_is_no_text() {
    assert_eq!(events(&[b"data: \xff\n\n"]), Err(NoEvents::NotText));
}

#[test]
fn refuses_an_event_without_end() {
    let piece = vec![b'x'; 1024 * 1024];
    let pieces = vec![&piece[..]; 33];
    assert_eq!(events(&pieces), Err(NoEvents::TooLong));
}
