//! Markdown on a terminal, a line at a time: what is said shows as it comes, and a line that is whole is dressed.

use anstyle::Style;

use crate::output::style;

/// What lines before this one have begun.
#[derive(Debug, Default)]
pub(super) struct Markdown {
    /// The language of the block of code that is open.
    code: Option<String>,
}

impl Markdown {
    /// Whether a block of code is open.
    pub(super) fn is_code(&self) -> bool {
        self.code.is_some()
    }

    /// The line as a terminal shows it; `None` where it is shown as it is.
    pub(super) fn line(&mut self, line: &str) -> Option<String> {
        if let Some(fence) = line.trim_start().strip_prefix("```") {
            self.code = match self.code {
                Some(_) => None,
                None => Some(fence.trim().to_owned()),
            };
            return Some(dressed(style::QUIET, line));
        }
        if let Some(language) = &self.code {
            let style = match (language.as_str(), line.as_bytes().first()) {
                ("diff", Some(b'+')) => style::ADDED,
                ("diff", Some(b'-')) => style::TAKEN,
                ("diff", Some(b'@')) => style::QUIET,
                _ => style::CODE,
            };
            return Some(dressed(style, line));
        }
        let rest = line.trim_start_matches('#');
        let marks = line.len() - rest.len();
        if (1..=6).contains(&marks) && rest.starts_with(' ') {
            return Some(dressed(style::HEADING, rest.trim_start()));
        }
        if line.starts_with("> ") {
            return Some(dressed(style::QUIET, line));
        }
        let bullet = line.trim_start();
        let indent = line.len() - bullet.len();
        match bullet.strip_prefix("- ").or_else(|| bullet.strip_prefix("* ")) {
            Some(rest) => Some(format!("{}• {}", &line[..indent], spans(rest))),
            None => Some(spans(line)).filter(|spans| spans != line),
        }
    }
}

/// Bold words and code within a line.
fn spans(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let (mark, style) = match from {
            _ if from.starts_with("**") => ("**", style::STRONG),
            _ if from.starts_with('`') => ("`", style::CODE),
            _ => ("", Style::new()),
        };
        let inner = from.strip_prefix(mark).filter(|_| !mark.is_empty());
        let is_span = |inner: &str| !inner.is_empty() && (mark == "`" || inner.trim() == inner);
        match inner.and_then(|inner| inner.split_once(mark)).filter(|(inner, _)| is_span(inner)) {
            Some((inner, after)) => {
                shown.push_str(&dressed(style, inner));
                rest = after;
            }
            None => {
                let mut chars = from.chars();
                shown.extend(chars.next());
                rest = chars.as_str();
            }
        }
    }
    shown.push_str(rest);
    shown
}

fn dressed(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Styles as letters between brackets.
    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn lines_are_dressed() {
        let mut markdown = Markdown::default();
        let mut shown = |line: &str| markdown.line(line).map(|line| plain(&line));
        assert_eq!(shown("## A heading").as_deref(), Some("A heading"));
        assert_eq!(shown("#hash").as_deref(), None);
        assert_eq!(shown("- a **bold** word").as_deref(), Some("• a bold word"));
        assert_eq!(shown("  * `code` here").as_deref(), Some("  • code here"));
        assert_eq!(shown("nothing to do"), None);
        assert_eq!(shown("2 * 3 * 4 and a ` alone"), None);
        assert_eq!(shown("a ** b ** c"), None, "blanks are not bold");
        assert_eq!(shown("****"), None);
        assert_eq!(shown("naïve `é` **ü**").as_deref(), Some("naïve é ü"));
    }

    #[test]
    fn code_stays_as_it_is_written() {
        let mut markdown = Markdown::default();
        markdown.line("```diff");
        let added = markdown.line("+ # **not** a heading").unwrap();
        assert_eq!(plain(&added), "+ # **not** a heading");
        assert_ne!(added, plain(&added), "and has a colour");
        markdown.line("```");
        assert_eq!(plain(&markdown.line("# a heading").unwrap()), "a heading");
    }
}
