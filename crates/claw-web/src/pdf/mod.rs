//! PDF as text. The reader runs in a process of its own, since a hostile document can make it loop, panic or
//! exhaust memory.
//!
//! The process is this program again, in a sandbox without network and files: it reads the document from
//! standard input and prints each page as one line of JSON. If the process is killed, the pages printed so
//! far are kept.

mod child;
mod page_text;

use async_trait::async_trait;
use claw_core::port::WebPage;
use claw_core::tool::{ErrorKind, ToolError};
use serde::{Deserialize, Serialize};

pub use child::{ENTRY, enter_if_asked, is_let_in};

/// Starts the process that reads a document.
#[async_trait]
pub trait PdfProcess: Send + Sync {
    /// Runs this program with [`ENTRY`] as its argument, in a sandbox, on this document. The error tells why
    /// it cannot be started.
    async fn run(&self, document: Vec<u8>) -> Result<Printed, String>;
}

/// The output of the reading process.
#[derive(Debug, Default)]
pub struct Printed {
    /// Lines of JSON; the last may be cut.
    pub output: Vec<u8>,
    /// The reason why the process did not end by itself: a limit with its figure, or how it broke.
    pub cut: Option<Cut>,
}

/// The reason why a reading process was cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It took longer than so many seconds.
    Seconds(u64),
    /// It needed more than so many MiB of memory.
    MemoryMib(u64),
    /// It printed more than so many MiB.
    OutputMib(usize),
    /// It ended by itself before it was done.
    Broke,
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "reading it takes longer than {seconds} s"),
            Self::MemoryMib(mib) => write!(f, "reading it needs more than {mib} MiB of memory"),
            Self::OutputMib(mib) => write!(f, "its text is longer than {mib} MiB"),
            Self::Broke => f.write_str("reading it crashes the PDF reader"),
        }
    }
}

/// A line that the process prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Head(Head),
    Page(Text),
    /// The document cannot be read, with the reason.
    Refused(String),
    /// All pages were read.
    End,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Head {
    title: Option<String>,
    author: Option<String>,
    date: Option<String>,
    pages: usize,
}

/// The text of one page.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Text {
    text: String,
    /// Texts that a reader would not see, and that were dropped.
    hidden: usize,
    /// The text lies invisibly under an image, as text recognition of scans puts it there.
    scanned: bool,
    /// The page shows an image.
    pictures: bool,
    /// Characters in fonts that do not tell which letters they draw.
    unknown: usize,
}

/// Reads a document; `process` is `None` if this program has no sandboxed reader.
pub(crate) async fn read(
    process: Option<&dyn PdfProcess>,
    document: Vec<u8>,
    page: &mut WebPage,
) -> Result<(), ToolError> {
    let advice = "look for an HTML version of it";
    let url = page.url.clone();
    let unavailable = |why: &str| {
        let told = format!("`{url}` is a PDF, which only a sandboxed process may read, and {why}");
        ToolError::new(ErrorKind::Unavailable, told).try_instead(advice)
    };
    let process = process.ok_or_else(|| unavailable("this program has no such process"))?;
    let Printed { output, cut } = process.run(document).await.map_err(|why| unavailable(&why))?;
    let told = |why: &str| ToolError::failed(format!("`{url}` is a PDF, and {why}")).try_instead(advice);
    let (mut head, mut pages, mut is_whole) = (Head::default(), Vec::new(), false);
    for line in output.split(|byte| *byte == b'\n') {
        match serde_json::from_slice(line) {
            Ok(Line::Head(found)) => head = found,
            Ok(Line::Page(text)) => pages.push(text),
            Ok(Line::Refused(why)) => return Err(told(&why)),
            Ok(Line::End) => is_whole = true,
            // A cut line is the last one.
            Err(_) => {}
        }
    }
    let cut = cut.or((!is_whole).then_some(Cut::Broke));
    if pages.is_empty()
        && let Some(cut) = cut
    {
        let kind = if matches!(cut, Cut::Seconds(_)) { ErrorKind::TimedOut } else { ErrorKind::Failed };
        return Err(ToolError::new(kind, format!("`{url}` is a PDF, and {cut}")).try_instead(advice));
    }
    page.hidden = pages.iter().map(|page| page.hidden).sum();
    page.text = text(&pages, head.pages, cut);
    (page.title, page.author, page.date) = (head.title, head.author, head.date);
    Ok(())
}

/// The text of all pages, with notes about what is missing.
fn text(pages: &[Text], count: usize, cut: Option<Cut>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (at, page) in pages.iter().enumerate() {
        if count > 1 {
            parts.push(format!("[page {}]", at + 1));
        }
        if page.scanned {
            parts.push("[a picture; its text was recognised by a program and may be wrong]".to_owned());
        }
        match page.text.trim() {
            "" if page.pictures => parts.push("[a picture without text]".to_owned()),
            "" => {}
            text => parts.push(text.to_owned()),
        }
    }
    let (known, unknown) = pages
        .iter()
        .fold((0, 0), |(known, unknown), page| (known + page.text.chars().count(), unknown + page.unknown));
    if unknown > known / 10 {
        parts.push(format!(
            "[{unknown} characters are missing: their fonts do not say which letters they draw]"
        ));
    }
    if let Some(cut) = cut {
        parts.push(format!("[{} of {count} pages were read, then reading stopped: {cut}]", pages.len()));
    }
    parts.join("\n\n")
}

#[cfg(test)]
mod tests;
