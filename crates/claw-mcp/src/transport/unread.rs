//! Messages that the protocol library discards without a word: too large ones, and those that are not JSON. The calls that wait
//! are told, instead of waiting for an answer that has come already.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, ReadBuf};

use super::LARGEST_MESSAGE;
use crate::error::Unread;

/// The bytes of a line that are kept allocated for the next one.
const KEPT: usize = 64 * 1024;

/// The key that every message has.
const KEY: &[u8] = b"\"jsonrpc\"";

/// Returns whether a text looks like a message and is not JSON. Programs print other things too, which harms nobody.
pub(super) fn is_broken(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    text.starts_with(b"{")
        && text.windows(KEY.len()).any(|part| part == KEY)
        && serde_json::from_slice::<IgnoredAny>(text).is_err()
}

/// The output of a server's program: passed on as it is, and watched for messages that nobody will read.
pub(crate) struct WatchedOutput<R, F> {
    output: R,
    note: F,
    /// The part of the current line that was read; empty if the line is too large.
    line: Vec<u8>,
    is_too_large: bool,
}

impl<R, F: FnMut(Unread)> WatchedOutput<R, F> {
    /// Watches this output; `note` is called for each message that will not be read.
    pub(crate) const fn new(output: R, note: F) -> Self {
        Self { output, note, line: Vec::new(), is_too_large: false }
    }

    fn look(&mut self, piece: &[u8]) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let is_over = part.ends_with(b"\n");
            if self.is_too_large {
                self.is_too_large = !is_over;
                continue;
            }
            self.line.extend_from_slice(part);
            if self.line.len() > LARGEST_MESSAGE {
                (self.note)(Unread::TooLarge);
                self.line.clear();
                self.is_too_large = !is_over;
            } else if is_over {
                if is_broken(&self.line) {
                    (self.note)(Unread::NotJson);
                }
                self.line.clear();
            }
            if self.line.is_empty() {
                self.line.shrink_to(KEPT);
            }
        }
    }
}

impl<R: AsyncRead + Unpin, F: FnMut(Unread) + Unpin> AsyncRead for WatchedOutput<R, F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.output).poll_read(context, buffer))?;
        self.look(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The problems that are noted while these pieces are read.
    fn noted(pieces: &[&[u8]]) -> Vec<Unread> {
        let mut noted = Vec::new();
        let mut output = WatchedOutput::new(tokio::io::empty(), |problem| noted.push(problem));
        pieces.iter().for_each(|piece| output.look(piece));
        noted
    }

    #[test]
    fn a_message_that_nobody_reads_is_noticed_however_it_is_cut() {
        assert_eq!(noted(&[b"{\"a\": 1}\n", b"{\"b\"", b": [2]}\r\n"]), []);
        assert_eq!(noted(&[b"Listening on 1234\n[1, 2\n\n"]), [], "it is no message");
        assert_eq!(noted(&[b"{\"jsonrpc\": \"2.0\", \"a\": [1,\n"]), [Unread::NotJson]);
        assert_eq!(noted(&[b"{\"a\": NaN, \"json", b"rpc\": \"2.0\"}", b"\n"]), [Unread::NotJson]);
        assert_eq!(noted(&[b"{\"jsonrpc\""]), [], "the line is not over");
    }

    #[test]
    fn a_line_that_a_program_prints_for_people_is_no_broken_message() {
        for line in
            ["{\n", "{'a': 1}\n", "{'rows': 3} done\n", "{\"a\": [1,\n", "jsonrpc {\n", "\"jsonrpc\" [\n"]
        {
            assert_eq!(noted(&[line.as_bytes()]), [], "{line}");
        }
    }

    #[test]
    fn a_message_beyond_the_largest_is_noticed_before_it_ends() {
        let half = vec![b'x'; LARGEST_MESSAGE / 2];
        assert_eq!(noted(&[&half, b"\n", &half, b"y\n"]), []);
        assert_eq!(noted(&[&half, &half]), []);
        assert_eq!(noted(&[&half, &half, b"y"]), [Unread::TooLarge]);
        assert_eq!(noted(&[&half, &half, b"y", &half, b"\n{\"a\": 1}\n"]), [Unread::TooLarge]);
    }
}
