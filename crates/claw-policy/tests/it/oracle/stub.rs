//! The program that stands for every other one in the root: it only records how it was started, under any name; as `cat` and `tee` it also passes its
//! input on, and as `mktemp` it prints a name, which the analysis relies on.
//!
//! Appends a record to `/log`: the number of words, then the path it was started by and its arguments, each
//! ended by NUL. A record is written at once, so that records of concurrent programs do not mix.

use std::io::Write as _;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

/// The stub in the root: a copy of this test binary.
pub(super) const STUB: &str = "stub";

/// Does the stub's work and ends, if this process was started in a root.
pub(crate) fn record_if_inside() {
    if Path::new("/").join(STUB).exists() {
        record();
        std::process::exit(0);
    }
}

fn record() {
    let path = rustix::param::linux_execfn().to_bytes().to_vec();
    let arguments = std::env::args_os().skip(1).map(OsStringExt::into_vec);
    let words: Vec<Vec<u8>> = std::iter::once(path).chain(arguments).collect();
    let mut record = format!("{}\0", words.len()).into_bytes();
    for word in &words {
        record.extend_from_slice(word);
        record.push(0);
    }
    let name = words[0].rsplit(|byte| *byte == b'/').next();
    let is_input = |word: &Vec<u8>| word == b"-";
    let passes_on = match name {
        Some(b"cat") => words[1..].iter().all(is_input),
        name => name == Some(b"tee"),
    };
    // A log that cannot be written is noticed by whoever reads it.
    if let Ok(mut log) = std::fs::OpenOptions::new().append(true).open("/log") {
        let _ = log.write_all(&record);
    }
    if name == Some(b"mktemp") {
        let _ = std::io::stdout().write_all(b"/tmp/tmp.x\n");
    }
    if passes_on {
        // The reader may be gone.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::stdout());
    }
}
