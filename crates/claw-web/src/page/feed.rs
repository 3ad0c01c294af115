//! RSS and Atom as lists.

use claw_net::Url;
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};

/// The most entries that are listed.
const ENTRIES: usize = 200;
/// The most characters of an entry's summary.
const SUMMARY: usize = 500;

/// A feed as text.
pub(super) struct Feed {
    pub(super) title: Option<String>,
    pub(super) text: String,
}

#[derive(Default)]
struct Entry {
    title: String,
    link: String,
    date: String,
    author: String,
    summary: String,
}

/// Reads a feed; `None` if it has neither title nor entries. Content before broken markup is kept.
pub(super) fn read(xml: &str, base: &Url) -> Option<Feed> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = false;
    let mut names: Vec<String> = Vec::new();
    let (mut title, mut entries, mut text) = (String::new(), Vec::<Entry>::new(), String::new());
    let mut inside = false;
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(tag) => {
                let name = local(&tag);
                if matches!(name.as_str(), "item" | "entry") {
                    if entries.len() == ENTRIES {
                        break;
                    }
                    entries.push(Entry::default());
                    inside = true;
                }
                link(&tag, &name, entries.last_mut().filter(|_| inside));
                names.push(name);
                text.clear();
            }
            Event::Empty(tag) => link(&tag, &local(&tag), entries.last_mut().filter(|_| inside)),
            Event::Text(piece) => text.push_str(&piece),
            Event::CData(piece) => text.push_str(&piece),
            Event::GeneralRef(name) => {
                let whole = format!("&{};", &*name);
                text.push_str(unescape(&whole).as_deref().unwrap_or(&whole));
            }
            Event::End(_) => {
                let Some(name) = names.pop() else { break };
                let value = words(&text);
                text.clear();
                match (entries.last_mut().filter(|_| inside), name.as_str()) {
                    (_, "item" | "entry") => inside = false,
                    (Some(entry), name) => entry.set(name, value),
                    (None, "title") if title.is_empty() => title = value,
                    _ => {}
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    if title.is_empty() && entries.is_empty() {
        return None;
    }
    let list: Vec<String> = entries.iter().map(|entry| entry.shown(base)).collect();
    Some(Feed { title: Some(title).filter(|title| !title.is_empty()), text: list.join("\n") })
}

impl Entry {
    fn set(&mut self, name: &str, value: String) {
        let field = match name {
            "title" => &mut self.title,
            "link" if self.link.is_empty() => &mut self.link,
            "guid" | "id" if self.link.is_empty() && value.starts_with("http") => &mut self.link,
            "pubdate" | "published" | "date" => &mut self.date,
            "updated" if self.date.is_empty() => &mut self.date,
            "creator" | "author" | "name" if self.author.is_empty() => &mut self.author,
            "description" | "summary" => &mut self.summary,
            "content" | "encoded" if self.summary.is_empty() => &mut self.summary,
            _ => return,
        };
        *field = value;
    }

    fn shown(&self, base: &Url) -> String {
        let link = base.join(&self.link).map(String::from).unwrap_or_default();
        let title = if self.title.is_empty() { "(untitled)" } else { &self.title };
        let title = title.replace(['[', ']'], "");
        let mut line = match self.link.is_empty() {
            true => format!("- {title}"),
            false => format!("- [{title}]({link})"),
        };
        for part in [&self.date, &self.author] {
            if !part.is_empty() {
                line.push_str(" · ");
                line.push_str(part);
            }
        }
        let summary: String = self.summary.chars().take(SUMMARY).collect();
        if !summary.is_empty() && summary != self.title {
            line.push_str("\n  ");
            line.push_str(&summary);
            if self.summary.len() > summary.len() {
                line.push('…');
            }
        }
        line
    }
}

/// The element's name without prefix, in lower case.
fn local(tag: &BytesStart<'_>) -> String {
    tag.local_name().as_ref().to_ascii_lowercase()
}

/// Atom names the address in an attribute.
fn link(tag: &BytesStart<'_>, name: &str, entry: Option<&mut Entry>) {
    let Some(entry) = entry.filter(|entry| name == "link" && entry.link.is_empty()) else { return };
    let value = |key: &str| {
        let found = tag.attributes().flatten().find(|attribute| attribute.key.as_ref() == key)?;
        Some(words(&found.value))
    };
    let is_page = value("rel").is_none_or(|rel| rel == "alternate");
    if let Some(href) = value("href").filter(|_| is_page) {
        entry.link = href;
    }
}

/// The words of a text that may itself be HTML.
fn words(text: &str) -> String {
    let text = unescape(text).map_or_else(|_| text.to_owned(), |text| text.into_owned());
    let text = match text.contains('<') {
        true => {
            let document = dom_query::Document::fragment(text.as_str());
            super::hidden::drop_hidden(&document);
            document.formatted_text().to_string()
        }
        false => text,
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
