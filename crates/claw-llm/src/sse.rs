//! Parses server-sent events: from bytes, however they are split, to the data of each event.

/// Longest event, in bytes; providers send shorter ones.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// Parses bytes into the data of events. Names, ids and comments are dropped: no provider needs them.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    /// The data so far; `None` before the first data line.
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return; a line feed may follow.
    after_return: bool,
    begun: bool,
}

/// The reason why a body is not a valid event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoEvents {
    #[error("an event is longer than {MOST_BYTES} bytes")]
    TooLong,
    #[error("an event is not UTF-8")]
    NotText,
}

impl Events {
    /// Parses bytes and adds the data of the events that end in them.
    pub(crate) fn take(&mut self, bytes: &[u8], events: &mut Vec<String>) -> Result<(), NoEvents> {
        for &byte in bytes {
            let was_return = std::mem::replace(&mut self.after_return, byte == b'\r');
            match byte {
                b'\n' if was_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()?),
                _ => self.line.push(byte),
            }
            let kept = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if kept > MOST_BYTES {
                return Err(NoEvents::TooLong);
            }
        }
        Ok(())
    }

    /// The data of a last event without an empty line at its end. Some servers leave it out.
    pub(crate) fn rest(&mut self) -> Result<Option<String>, NoEvents> {
        if !self.line.is_empty() {
            self.end_line()?;
        }
        self.data.take().map(text).transpose()
    }

    fn end_line(&mut self) -> Result<Option<String>, NoEvents> {
        let line = std::mem::take(&mut self.line);
        let mark = "\u{feff}".as_bytes();
        let line = if self.begun { &line[..] } else { line.strip_prefix(mark).unwrap_or(&line) };
        self.begun = true;
        if line.is_empty() {
            return self.data.take().map(text).transpose();
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => &[],
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return Ok(None),
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        Ok(None)
    }
}

fn text(data: Vec<u8>) -> Result<String, NoEvents> {
    String::from_utf8(data).map_err(|_| NoEvents::NotText)
}

#[cfg(test)]
mod tests;
