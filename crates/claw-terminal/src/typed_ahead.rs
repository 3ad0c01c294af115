//! The terminal while an answer streams: input typed ahead is neither shown between its words nor lost.
//!
//! Typed characters wait in the terminal until the next prompt reads them. A paste waits there with its
//! marks.

use std::io::{self, IsTerminal as _, Write as _};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Asks the terminal to mark pastes.
const MARK_PASTES: &[u8] = b"\x1b[?2004h";
const PASTES_AS_TYPED: &[u8] = b"\x1b[?2004l";

/// A terminal that does not echo input, until this is dropped. Ctrl-C still interrupts.
#[derive(Debug)]
pub struct Quiet(Termios);

impl Quiet {
    /// Turns the echo off; `None` if there is no terminal.
    pub fn begin() -> Option<Self> {
        let stdin = io::stdin();
        if !stdin.is_terminal() || !io::stderr().is_terminal() {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
        // Enter stays what the line editor takes for the end of a line: it drops what comes after a line feed.
        quiet.input_modes.remove(InputModes::ICRNL);
        tcsetattr(&stdin, OptionalActions::Now, &quiet).ok()?;
        let _ = io::stderr().write_all(MARK_PASTES);
        Some(Self(before))
    }

    /// Takes the input typed so far, so that it is not read as an answer.
    pub fn take_typed(&self) -> String {
        let (stdin, mut typed) = (io::stdin(), Vec::new());
        loop {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut bytes = [0; 4096];
            match poll(&mut waiting, Some(&now)) {
                Ok(1..) => match rustix::io::read(&stdin, &mut bytes) {
                    Ok(count @ 1..) => typed.extend_from_slice(&bytes[..count]),
                    _ => break,
                },
                _ => break,
            }
        }
        let text = String::from_utf8_lossy(&typed).replace("\x1b[200~", "").replace("\x1b[201~", "");
        text.replace("\r\n", "\n")
            .replace('\r', "\n")
            .chars()
            .filter(|c| *c == '\n' || !c.is_control())
            .collect()
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // Nothing is left to be done about the terminal being gone.
        let _ = io::stderr().write_all(PASTES_AS_TYPED);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
