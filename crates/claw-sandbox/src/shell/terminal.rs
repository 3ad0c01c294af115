//! A terminal for one command: a pair of ends, one of them the command's.
//!
//! Only descriptors go to the command; its sandbox needs no device for the terminal.

use std::io;
use std::os::fd::OwnedFd;

use claw_core::port::Size;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// The end-of-file character, which ends the input of a program that reads from a terminal.
pub(crate) const END: u8 = 4;

/// Our end of a terminal.
#[derive(Debug)]
pub struct Terminal(OwnedFd);

impl Terminal {
    /// Opens a terminal, and returns the command's end of it, for all three of its streams.
    pub(crate) fn open(size: Size) -> io::Result<(Self, [OwnedFd; 3])> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
        let terminal = Self(ours);
        terminal.resize(size)?;
        Ok((terminal, [theirs.try_clone()?, theirs.try_clone()?, theirs]))
    }

    /// Changes its size; the program on it gets a signal.
    pub fn resize(&self, size: Size) -> io::Result<()> {
        let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(&self.0, size)?)
    }

    /// Our end once more.
    pub(crate) fn end(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }
}
