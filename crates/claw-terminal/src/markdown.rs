//! Markdown on a terminal, a line at a time: text shows as it streams, and a complete line is styled.

use anstyle::Style;

use crate::{style, width};

/// The blocks that earlier lines have opened.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// The language of the block of code that is open.
    code: Option<String>,
}

impl Markdown {
    /// Returns whether a block of code is open.
    pub(crate) fn is_code(&self) -> bool {
        self.code.is_some()
    }

    /// Returns the styled line; `None` if it is shown as it is.
    pub(crate) fn line(&mut self, line: &str) -> Option<String> {
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

/// Styles bold and italic words, code and links within a line.
fn spans(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', '*', '_', '[']) {
        let (before, from) = rest.split_at(at);
        shown.push_str(before);
        let is_word_start =
            !before.chars().next_back().or(shown.chars().next_back()).is_some_and(char::is_alphanumeric);
        match span(from, is_word_start) {
            Some((dressed, after)) => {
                shown.push_str(&dressed);
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

/// Renders the span that begins here and returns it with the rest; `None` if the character is plain text.
fn span(from: &str, is_word_start: bool) -> Option<(String, &str)> {
    if let Some(link) = from.strip_prefix('[') {
        let (text, after) = link.split_once("](")?;
        let (address, after) = after.split_once(')')?;
        let is_link = !text.is_empty()
            && !text.contains('[')
            && !address.is_empty()
            && !address.contains(char::is_whitespace);
        let (underlined, quiet) = (Style::new().underline(), style::QUIET);
        let address = if address == text { String::new() } else { format!(" {quiet}({address}){quiet:#}") };
        return is_link.then(|| (format!("{}{address}", dressed(underlined, &spans(text))), after));
    }
    let (mark, style) = match from {
        _ if from.starts_with("**") => ("**", style::STRONG),
        _ if from.starts_with("__") && is_word_start => ("__", style::STRONG),
        _ if from.starts_with('`') => ("`", style::CODE),
        _ if from.starts_with('*') => ("*", Style::new().italic()),
        _ if from.starts_with('_') && is_word_start => ("_", Style::new().italic()),
        _ => return None,
    };
    let (inner, after) = from.strip_prefix(mark)?.split_once(mark)?;
    let is_code = mark == "`";
    // A mark within a word, as in `snake_case`, is a part of it.
    let ends_word = !after.starts_with(char::is_alphanumeric) || !mark.starts_with('_');
    let is_span = !inner.is_empty() && ends_word && (is_code || inner.trim() == inner);
    let inner = if is_code { inner.to_owned() } else { spans(inner) };
    is_span.then(|| (dressed(style, &inner), after))
}

/// Aligns the columns of a table within the terminal's width; `None` if the lines are not a table.
pub(crate) fn table(lines: &[String], columns: usize) -> Option<String> {
    let cells = |line: &String| -> Vec<String> {
        let line = line.trim().trim_start_matches('|');
        let line = line.strip_suffix('|').unwrap_or(line);
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<Vec<String>> = lines.iter().map(cells).collect();
    let is_rule = |row: &Vec<String>| {
        let of_rule = |cell: &String| cell.contains('-') && cell.chars().all(|c| "-: ".contains(c));
        !row.is_empty() && row.iter().all(of_rule)
    };
    let [header, rule, body @ ..] = &rows[..] else { return None };
    if !is_rule(rule) || header.len() != rule.len() {
        return None;
    }
    let all = || std::iter::once(header).chain(body);
    let plain = |cell: &str| width(&anstream::adapter::strip_str(&spans(cell)).to_string());
    let wide =
        |at: usize| all().filter_map(|row| row.get(at)).map(|cell| plain(cell)).max().unwrap_or_default();
    let widths: Vec<usize> = (0..header.len()).map(wide).collect();
    if widths.iter().sum::<usize>() + 2 * widths.len() > columns {
        return None;
    }
    let line = |row: &Vec<String>, strong: bool| {
        let cells = widths.iter().enumerate().map(|(at, wide)| {
            let cell = row.get(at).map(String::as_str).unwrap_or_default();
            let text = if strong { dressed(style::STRONG, cell) } else { spans(cell) };
            format!("{text}{}", " ".repeat(wide - plain(cell).min(*wide)))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let ruled: Vec<String> = widths.iter().map(|wide| "─".repeat(*wide)).collect();
    let mut shown = vec![line(header, true), dressed(style::QUIET, &ruled.join("  "))];
    shown.extend(body.iter().map(|row| line(row, false)));
    Some(shown.join("\n"))
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
        assert_eq!(shown("an *odd* and _even_ word").as_deref(), Some("an odd and even word"));
        assert_eq!(shown("snake_case_name and a * b * c"), None);
        assert_eq!(shown("see [the docs](https://x.y/z).").as_deref(), Some("see the docs (https://x.y/z)."));
        assert_eq!(shown("an array[0](1 2) stays"), None);
        assert_eq!(shown("`a[0](b)` stays").as_deref(), Some("a[0](b) stays"));
    }

    #[test]
    fn tables_are_aligned() {
        let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        let text = "| name | what |\n|---|:-:|\n| `a` | **long** one |\n| bee | |";
        let shown = table(&lines(text), 80).unwrap();
        assert_eq!(plain(&shown), "name  what\n────  ────────\na     long one\nbee");
        assert_eq!(table(&lines("| a |\n| b |"), 80), None, "without a rule it is none");
        assert_eq!(table(&lines(text), 10), None, "too wide");
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
