//! The process that reads a document.

use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use hayro_interpret::hayro_syntax::object::DateTime;
use hayro_interpret::hayro_syntax::{DecryptionError, LoadPdfError, Pdf};
use hayro_interpret::{InterpreterCache, InterpreterSettings};

use super::page_text;
use super::{Head, Line};

/// The argument that makes a program the reader.
pub const ENTRY: &str = "clawsmith-read-pdf-on-standard-input";
/// Documents may nest deeply.
const STACK: usize = 64 * 1024 * 1024;
/// The longest title or author.
const LABEL: usize = 300;

static LETS_IN: AtomicBool = AtomicBool::new(false);

/// Reads a document if this process was started for that, and then does not return. Must be called first in
/// `main`. If it was not called, no reader is started: the program's own `main` would run instead.
pub fn enter_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|word| word == ENTRY) {
        // If the thread panics, the pages before have been printed; the other side sees that the end is
        // missing.
        let reading = std::thread::Builder::new().stack_size(STACK).spawn(serve);
        let is_done = reading.is_ok_and(|thread| thread.join().is_ok_and(|served| served.is_ok()));
        std::process::exit(i32::from(!is_done));
    }
    LETS_IN.store(true, Ordering::Release);
}

/// Returns whether a reader can be started: `enter_if_asked` was called.
pub fn is_let_in() -> bool {
    LETS_IN.load(Ordering::Acquire)
}

fn serve() -> io::Result<()> {
    let mut document = Vec::new();
    io::stdin().lock().read_to_end(&mut document)?;
    let mut out = io::stdout().lock();
    read(document, &mut |line| {
        serde_json::to_writer(&mut out, line)?;
        out.write_all(b"\n")?;
        out.flush()
    })
}

/// Reads a document, page by page.
pub(super) fn read(document: Vec<u8>, tell: &mut dyn FnMut(&Line) -> io::Result<()>) -> io::Result<()> {
    let pdf = match Pdf::new(document) {
        Ok(pdf) => pdf,
        Err(error) => return tell(&Line::Refused(reason(error).to_owned())),
    };
    let metadata = pdf.metadata();
    let pages = pdf.pages();
    tell(&Line::Head(Head {
        title: metadata.title.as_deref().and_then(label),
        author: metadata.author.as_deref().and_then(label),
        date: metadata.creation_date.as_ref().map(date),
        pages: pages.len(),
    }))?;
    let cache = InterpreterCache::new();
    for page in pages.iter() {
        let text = page_text::read(page, &cache, pdf.xref(), InterpreterSettings::default());
        tell(&Line::Page(text))?;
    }
    tell(&Line::End)
}

fn reason(error: LoadPdfError) -> &'static str {
    match error {
        LoadPdfError::Decryption(DecryptionError::PasswordProtected) => "needs a password",
        LoadPdfError::Decryption(_) => "is encrypted in a way that is not known",
        LoadPdfError::Invalid => "is damaged",
    }
}

/// A text of the metadata: UTF-16 or UTF-8 with their marks, else Latin-1.
fn label(bytes: &[u8]) -> Option<String> {
    let text = match bytes {
        [0xfe, 0xff, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0,
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest),
        bytes => encoding_rs::mem::decode_latin1(bytes),
    };
    crate::page::label(&text, LABEL)
}

fn date(date: &DateTime) -> String {
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}
