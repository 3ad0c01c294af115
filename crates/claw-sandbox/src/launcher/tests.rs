//! Requests to the helper while another one is being started.

use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use super::*;

const LONG: Duration = Duration::from_secs(60);

static STARTS: AtomicUsize = AtomicUsize::new(0);
/// Tells that the first start began, and hears when it may end.
static FIRST: OnceLock<Mutex<(Sender<()>, Receiver<()>)>> = OnceLock::new();

/// Starts a process that reads its requests and answers none; the first start waits until the test lets it go on.
fn start_slowly_once() -> io::Result<(Child, Socket)> {
    if STARTS.fetch_add(1, Ordering::SeqCst) == 0 {
        let first = FIRST.get().unwrap().lock().unwrap();
        first.0.send(()).unwrap();
        first.1.recv_timeout(LONG).unwrap();
    }
    let (ours, theirs) = wire::pair()?;
    let child =
        Command::new("cat").stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null()).spawn()?;
    Ok((child, ours))
}

#[test]
fn a_helper_that_is_slow_to_start_holds_up_nobody_who_has_one() {
    let (began, has_begun) = channel();
    let (release, released) = channel();
    FIRST.set(Mutex::new((began, released))).unwrap();
    let current = Arc::new(CurrentHelper { helper: Mutex::default(), start: start_slowly_once });
    let ask = |current: &Arc<CurrentHelper>| {
        let (sent, is_sent) = channel();
        let current = Arc::clone(current);
        thread::spawn(move || {
            let (_ours, theirs) = wire::pair().unwrap();
            sent.send(current.send(wire::RUN, theirs.as_fd()).is_ok()).unwrap();
        });
        is_sent
    };
    let slow = ask(&current);
    has_begun.recv_timeout(LONG).unwrap();
    for _ in 0..3 {
        assert_eq!(ask(&current).recv_timeout(LONG), Ok(true), "over the helper that was started meanwhile");
    }
    assert_eq!(STARTS.load(Ordering::SeqCst), 2);
    let theirs = Arc::clone(current.current().as_ref().unwrap());
    release.send(()).unwrap();
    assert_eq!(slow.recv_timeout(LONG), Ok(true), "asks the helper that is there");
    assert!(Arc::ptr_eq(current.current().as_ref().unwrap(), &theirs), "the first one stays");
    assert!(theirs.is_alive());
}
