//! Turns bytes into readable text: HTML, Markdown, JSON, feeds, plain text; images and other files are only
//! named.

mod charset;
mod colour;
mod feed;
mod hidden;
mod html;
mod main_region;
mod media;
mod nesting;
mod plain;
mod shapes;
mod style;
mod style_sheet;
mod survey;

pub(crate) use self::plain::label;
use claw_core::port::{ExtractMode, WebPage};
use claw_core::tool::ToolError;
use claw_net::Url;

/// A fetched page.
pub type Page = WebPage;

/// A server's answer.
#[derive(Debug, Clone)]
pub struct Source {
    /// The address that it came from.
    pub url: Url,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

/// The longest title, author, date or site name.
const LABEL: usize = 300;

/// Turns a body into text. A PDF is only named: [`crate::pdf`] reads it in a process of its own.
pub fn extract(source: &Source, mode: ExtractMode) -> Result<WebPage, ToolError> {
    let mime = mime(source.content_type.as_deref());
    let kind = Kind::of(&mime, &source.body);
    let mut page = WebPage {
        url: source.url.to_string(),
        mime: shown_mime(&mime),
        kind: kind.name(),
        bytes: u64::try_from(source.body.len()).unwrap_or(u64::MAX),
        ..WebPage::default()
    };
    match kind {
        Kind::Pdf | Kind::Image | Kind::Binary => {
            page.text = named(source, &page);
            return Ok(page);
        }
        _ => {}
    }
    let text = charset::decode(&source.body, source.content_type.as_deref());
    match (kind, mode) {
        (_, ExtractMode::Raw) => page.text = text.into_owned(),
        (Kind::Html, _) => {
            let depth = nesting::estimate(&text);
            if depth > nesting::DEEPEST {
                let told = format!(
                    "`{}` nests elements {depth} deep, far deeper than ordinary pages, and is not read",
                    page.url
                );
                return Err(ToolError::failed(told).try_instead("fetch it with `extract_mode` `raw`"));
            }
            html::read(&text, &source.url, mode, &mut page);
        }
        (Kind::Json, _) => page.text = pretty(&text),
        (Kind::Feed, _) => match feed::read(&text, &source.url) {
            Some(feed) => (page.title, page.text) = (feed.title, feed.text),
            None => (page.kind, page.text) = ("text", text.into_owned()),
        },
        _ => page.text = text.into_owned(),
    }
    if mode != ExtractMode::Raw {
        finish(&mut page);
    }
    Ok(page)
}

/// Removes from a text and its labels what a reader would not see.
pub(crate) fn finish(page: &mut WebPage) {
    page.text = plain::tidy(&page.text);
    for label in [&mut page.title, &mut page.author, &mut page.date, &mut page.site] {
        *label = label.take().and_then(|text| plain::label(&text, LABEL));
    }
}

/// Returns whether a body is a PDF.
pub(crate) fn is_pdf(source: &Source) -> bool {
    Kind::of(&mime(source.content_type.as_deref()), &source.body) == Kind::Pdf
}

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Html,
    Markdown,
    Json,
    Feed,
    Text,
    Pdf,
    Image,
    Binary,
}

impl Kind {
    fn of(mime: &str, body: &[u8]) -> Self {
        let start: Vec<u8> = body.iter().take(1024).copied().collect();
        let head = String::from_utf8_lossy(&start).trim_start_matches('\u{feff}').trim_start().to_lowercase();
        let is_markup = |names: &[&str]| names.iter().any(|name| head.contains(name));
        let is_html = || head.starts_with("<!doctype html") || is_markup(&["<html", "<body", "<head>"]);
        let is_feed = || is_markup(&["<rss", "<feed", "<rdf:rdf"]);
        if body.starts_with(b"%PDF-") {
            return Self::Pdf;
        }
        match mime {
            "text/html" | "application/xhtml+xml" => Self::Html,
            "text/markdown" | "text/x-markdown" => Self::Markdown,
            "application/pdf" => Self::Pdf,
            "application/rss+xml" | "application/atom+xml" | "application/rdf+xml" => Self::Feed,
            "text/xml" | "application/xml" if is_feed() => Self::Feed,
            "text/xml" | "application/xml" if is_html() => Self::Html,
            "application/feed+json" => Self::Json,
            _ if mime == "application/json" || mime == "text/json" || mime.ends_with("+json") => Self::Json,
            "image/svg+xml" => Self::Image,
            _ if mime.starts_with("image/") => Self::Image,
            _ if is_binary(&start) => Self::Binary,
            "" | "text/plain" | "application/octet-stream" if is_html() => Self::Html,
            "" | "text/plain" | "application/octet-stream" if is_feed() => Self::Feed,
            _ if mime.starts_with("audio/") || mime.starts_with("video/") || mime.starts_with("font/") => {
                Self::Binary
            }
            _ => Self::Text,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Html => "html",
            Self::Markdown => "markdown",
            Self::Json => "json",
            Self::Feed => "feed",
            Self::Text => "text",
            Self::Pdf => "pdf",
            Self::Image => "image",
            Self::Binary => "binary",
        }
    }
}

/// Returns whether the body is binary: it contains a zero and has no byte order mark of UTF-16.
fn is_binary(start: &[u8]) -> bool {
    let is_marked = start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]);
    !is_marked && start.contains(&0)
}

/// The type without parameters, in lower case.
fn mime(content_type: Option<&str>) -> String {
    let mime = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    mime.trim().to_ascii_lowercase()
}

/// The type as results show it, shortened: a server may send anything.
fn shown_mime(mime: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '/' | '+' | '-' | '.');
    mime.chars().filter(is_plain).take(80).collect()
}

/// The line in place of a file that is not text.
fn named(source: &Source, page: &WebPage) -> String {
    let what = match page.kind {
        "image" => "an image",
        "pdf" => "a PDF",
        _ => "a file that is not text",
    };
    let name = source.url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let name = plain::label(name, LABEL).map(|name| format!(" `{name}`")).unwrap_or_default();
    let mime = if page.mime.is_empty() { "unknown type" } else { &page.mime };
    format!("[{what}{name}: {mime}, {} bytes; its content is not shown]", page.bytes)
}

/// Formats JSON for people, in its own order; text that is not JSON stays as it is.
fn pretty(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}').trim();
    if serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut chars = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = chars.next() {
        if quoted {
            out.push(c);
            (quoted, escaped) = (escaped || c != '"', !escaped && c == '\\');
            continue;
        }
        match c {
            '"' => {
                quoted = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| c.is_whitespace()).is_some() {}
                if let Some(end) = chars.next_if(|c| matches!(c, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
