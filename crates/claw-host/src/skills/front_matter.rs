//! Reading `SKILL.md`: front matter in YAML between two lines of `---`, then Markdown.
//!
//! Anyone may have written the file. The parser yields events, so nothing unwanted is built: aliases and
//! anchors are refused, and length, depth and the number of events are limited before they cost anything.

use std::collections::BTreeMap;

use claw_core::SkillName;
use claw_core::skill::SkillManifest;
use saphyr_parser::{Event, Parser};

use super::SkillError;

/// The longest front matter, in bytes.
const LONGEST: usize = 16 * 1024;
/// The most parts of a front matter.
const MOST_EVENTS: usize = 2_000;
/// The most levels of nesting.
const DEEPEST: usize = 8;
/// Limits of the published format, in characters.
const LONGEST_DESCRIPTION: usize = 1_024;
const LONGEST_COMPATIBILITY: usize = 500;
/// The most entries of `allowed-tools` and `metadata`.
const MOST_ENTRIES: usize = 100;

/// Reads the front matter and the body of a `SKILL.md`.
pub(super) fn parse(text: &str) -> Result<(SkillManifest, String), SkillError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (front, body) = split(text)?;
    if front.len() > LONGEST {
        return Err(wrong(format!("its front matter has {} bytes, and {LONGEST} are allowed", front.len())));
    }
    let mut fields = fields(front)?;
    let name = required(&mut fields, "name")?;
    let name = SkillName::new(&name).map_err(|error| wrong(format!("`name`: {error}")))?;
    let description = required(&mut fields, "description")?;
    within("description", &description, LONGEST_DESCRIPTION)?;
    let compatibility = text_of(&mut fields, "compatibility")?;
    if let Some(text) = &compatibility {
        within("compatibility", text, LONGEST_COMPATIBILITY)?;
    }
    let license = text_of(&mut fields, "license")?;
    let metadata = match fields.remove("metadata") {
        None => BTreeMap::new(),
        Some(Field::Text(text)) if text.is_empty() => BTreeMap::new(),
        Some(Field::Map(map)) if map.len() <= MOST_ENTRIES => map,
        Some(_) => return Err(wrong(format!("`metadata` is not a map of at most {MOST_ENTRIES} texts"))),
    };
    let allowed_tools = match fields.remove("allowed-tools") {
        None => None,
        Some(Field::Text(text)) => Some(tools(&text)),
        Some(Field::List(list)) => Some(list),
        Some(_) => return Err(wrong("`allowed-tools` is not a list of tools".to_owned())),
    };
    if allowed_tools.as_ref().is_some_and(|tools| tools.len() > MOST_ENTRIES) {
        return Err(wrong(format!("`allowed-tools` has more than {MOST_ENTRIES} entries")));
    }
    let manifest = SkillManifest { name, description, license, compatibility, metadata, allowed_tools };
    Ok((manifest, body.trim_start_matches(['\r', '\n']).to_owned()))
}

/// Splits off the text between the first two lines of `---`, and returns it with the rest.
fn split(text: &str) -> Result<(&str, &str), SkillError> {
    let none = || wrong("it does not begin with front matter between two lines of `---`".to_owned());
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| line.trim_end() == "---").ok_or_else(none)?;
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            return Ok((&text[first.len()..at], &text[at + line.len()..]));
        }
        at += line.len();
    }
    Err(none())
}

/// A field of the front matter, as far as the format knows its shape.
enum Field {
    Text(String),
    List(Vec<String>),
    Map(BTreeMap<String, String>),
    /// A deeper value, in a field that is not used.
    Other,
}

/// The top-level fields.
fn fields(front: &str) -> Result<BTreeMap<String, Field>, SkillError> {
    let mut reader = Reader { parser: Parser::new_from_str(front), events: 0 };
    let mut fields = BTreeMap::new();
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart(_) => {}
            Event::MappingStart(..) => break,
            _ => return Err(wrong("its front matter is not a map of fields".to_owned())),
        }
    }
    loop {
        let key = match reader.next()? {
            Event::MappingEnd => break,
            Event::Scalar(key, ..) => key.into_owned(),
            _ => return Err(wrong("the name of a field in its front matter is not plain text".to_owned())),
        };
        let value = reader.value()?;
        if fields.insert(key.clone(), value).is_some() {
            return Err(wrong(format!("its front matter has the field `{}` twice", shown(&key))));
        }
    }
    // A second document would be read by nobody.
    loop {
        match reader.next()? {
            Event::DocumentEnd => {}
            Event::StreamEnd => return Ok(fields),
            _ => return Err(wrong("its front matter continues after its fields".to_owned())),
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
    events: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, SkillError> {
        self.events += 1;
        if self.events > MOST_EVENTS {
            return Err(wrong(format!("its front matter has more than {MOST_EVENTS} parts")));
        }
        let refused = |what: &str| wrong(format!("its front matter uses {what}, which is not allowed"));
        match self.parser.next_event() {
            None => Ok(Event::StreamEnd),
            Some(Ok((Event::Alias(_), _))) => Err(refused("a YAML alias")),
            Some(Ok((Event::Scalar(_, _, anchor, _), _))) if anchor > 0 => Err(refused("a YAML anchor")),
            Some(Ok((Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _), _))) if anchor > 0 => {
                Err(refused("a YAML anchor"))
            }
            Some(Ok((event, _))) => Ok(event),
            Some(Err(error)) => Err(wrong(format!(
                "its front matter is not YAML: line {}: {}; put a text that holds `: ` or `#` in quotes",
                error.marker().line() + 1,
                error.info()
            ))),
        }
    }

    /// Reads the value of a field; values deeper than a map or list of texts are skipped.
    fn value(&mut self) -> Result<Field, SkillError> {
        match self.next()? {
            Event::Scalar(text, ..) => Ok(Field::Text(plain(&text))),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                let mut is_flat = true;
                loop {
                    match self.next()? {
                        Event::SequenceEnd => break,
                        Event::Scalar(text, ..) => list.push(plain(&text)),
                        start => {
                            is_flat = false;
                            self.pass(&start)?;
                        }
                    }
                }
                Ok(if is_flat { Field::List(list) } else { Field::Other })
            }
            Event::MappingStart(..) => {
                let mut map = BTreeMap::new();
                let mut is_flat = true;
                loop {
                    let key = match self.next()? {
                        Event::MappingEnd => break,
                        Event::Scalar(key, ..) => plain(&key),
                        start => {
                            self.pass(&start)?;
                            String::new()
                        }
                    };
                    match self.next()? {
                        Event::Scalar(text, ..) => drop(map.insert(key, plain(&text))),
                        start => {
                            is_flat = false;
                            self.pass(&start)?;
                        }
                    }
                }
                Ok(if is_flat { Field::Map(map) } else { Field::Other })
            }
            _ => Err(wrong("a field of its front matter has no value".to_owned())),
        }
    }

    /// Skips the value that this event began.
    fn pass(&mut self, start: &Event<'_>) -> Result<(), SkillError> {
        let opens = |event: &Event<'_>| matches!(event, Event::SequenceStart(..) | Event::MappingStart(..));
        let mut depth = usize::from(opens(start));
        while depth > 0 {
            let event = self.next()?;
            if opens(&event) {
                depth += 1;
            } else if matches!(event, Event::SequenceEnd | Event::MappingEnd) {
                depth -= 1;
            }
            if depth > DEEPEST {
                return Err(wrong(format!("its front matter is nested deeper than {DEEPEST}")));
            }
        }
        Ok(())
    }
}

/// A text with nothing that hides or turns other text.
fn plain(text: &str) -> String {
    let is_kept = |c: char| c == '\n' || c == '\t' || !(c.is_control() || is_hidden(c));
    text.chars().filter(|c| is_kept(*c)).collect::<String>().trim().to_owned()
}

/// Characters that show nothing or turn the direction of text.
pub(super) fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Splits the entries of an `allowed-tools` text at blanks and commas; brackets belong to an entry.
fn tools(text: &str) -> Vec<String> {
    let mut entries = vec![String::new()];
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let ends = depth == 0 && (c == ',' || c.is_whitespace());
        match entries.last_mut() {
            Some(entry) if !ends => entry.push(c),
            _ => entries.push(String::new()),
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries
}

fn text_of(fields: &mut BTreeMap<String, Field>, name: &str) -> Result<Option<String>, SkillError> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Field::Text(text)) => Ok(Some(text).filter(|text| !text.is_empty())),
        Some(_) => Err(wrong(format!("`{name}` is not a text"))),
    }
}

fn required(fields: &mut BTreeMap<String, Field>, name: &str) -> Result<String, SkillError> {
    text_of(fields, name)?.ok_or_else(|| wrong(format!("its front matter has no `{name}`")))
}

fn within(name: &str, text: &str, most: usize) -> Result<(), SkillError> {
    match text.chars().count() {
        length if length > most => {
            Err(wrong(format!("`{name}` has {length} characters, and {most} are allowed")))
        }
        _ => Ok(()),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

fn wrong(why: String) -> SkillError {
    SkillError::Invalid(format!("`SKILL.md`: {why}"))
}

#[cfg(test)]
mod tests;
