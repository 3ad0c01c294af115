//! Documents cut into passages along their Markdown structure; search returns passages.
//!
//! A passage never spans two headings. Within a section, paragraphs, list items and code blocks are joined up
//! to [`WANTED`] tokens; a block longer than [`MOST`] is cut at lines, and a line that is still longer at
//! words. Line ranges are exact.

use super::Passage;

/// Tokens after which a passage ends at the next paragraph or list item.
const WANTED: usize = 160;
/// Tokens that no passage exceeds.
const MOST: usize = 400;
/// The deepest heading of Markdown.
const DEEPEST: usize = 6;

/// Returns the passages of a document, in their order. Together they hold every line that is not blank.
pub fn passages(text: &str) -> Vec<Passage> {
    let mut cutter = Cutter::default();
    for (line, number) in text.lines().zip(1..) {
        cutter.take(line, number);
    }
    cutter.end_section();
    cutter.done
}

/// Estimates the tokens of a text: four bytes of ASCII count as one, and so does every other character.
pub(super) fn tokens(text: &str) -> usize {
    let wide = text.chars().filter(|c| !c.is_ascii()).count();
    let plain = text.bytes().filter(u8::is_ascii).count();
    wide + plain.div_ceil(4)
}

/// Lines that belong together: a paragraph, a list item, a code block.
#[derive(Default)]
struct Block<'a> {
    lines: Vec<(u64, &'a str)>,
    tokens: usize,
}

#[derive(Default)]
struct Cutter<'a> {
    done: Vec<Passage>,
    /// The headings above, by level.
    headings: [Option<String>; DEEPEST],
    /// The text of the passage so far.
    passage: Block<'a>,
    /// The block that is added to the passage as a whole.
    block: Block<'a>,
    /// The fence that ends the code block; `None` outside one.
    fence: Option<&'a str>,
    /// True below a heading without text so far.
    bare: bool,
}

impl<'a> Cutter<'a> {
    fn take(&mut self, line: &'a str, number: u64) {
        let bare = line.trim();
        if let Some(fence) = self.fence {
            self.push(line, number);
            if bare.starts_with(fence) && bare.trim_start_matches(['`', '~']).is_empty() {
                self.fence = None;
                self.end_block();
            }
            return;
        }
        if let Some(fence) = fence(bare) {
            self.fence = Some(fence);
            self.push(line, number);
        } else if bare.is_empty() {
            self.end_block();
        } else if let Some((level, title)) = heading(line) {
            self.open_section(level, title);
            self.push(line, number);
            self.end_block();
            self.bare = true;
        } else {
            if is_item(bare) {
                self.end_block();
            }
            self.push(line, number);
        }
    }

    fn push(&mut self, line: &'a str, number: u64) {
        self.block.tokens += tokens(line) + 1;
        self.block.lines.push((number, line));
    }

    /// Begins a section. A heading without text of its own stays in the headings of the sections below it.
    fn open_section(&mut self, level: usize, title: &str) {
        let deeper = self.headings.iter().rposition(Option::is_some).is_none_or(|above| level > above + 1);
        if self.bare && self.block.lines.is_empty() && deeper {
            self.passage = Block::default();
        } else {
            self.end_section();
        }
        if let Some(own) = self.headings.get_mut(level - 1) {
            *own = Some(title.to_owned());
        }
        for below in self.headings.iter_mut().skip(level) {
            *below = None;
        }
    }

    fn end_section(&mut self) {
        self.end_block();
        self.end_passage();
    }

    /// Adds the block to the passage, or begins a new passage with it.
    fn end_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.lines.is_empty() {
            return;
        }
        // A heading stays with the text below it.
        let is_bare = std::mem::take(&mut self.bare);
        if !is_bare && self.passage.tokens + block.tokens > WANTED {
            self.end_passage();
        }
        if self.passage.tokens + block.tokens <= MOST {
            self.passage.tokens += block.tokens;
            self.passage.lines.extend(block.lines);
            return;
        }
        for (number, line) in block.lines {
            let size = tokens(line) + 1;
            if !self.passage.lines.is_empty() && self.passage.tokens + size > MOST {
                self.end_passage();
            }
            if size > MOST {
                self.cut_line(number, line);
            } else {
                self.passage.tokens += size;
                self.passage.lines.push((number, line));
            }
        }
    }

    /// Cuts a line that is longer than a passage into parts, at words if it has any.
    fn cut_line(&mut self, number: u64, line: &'a str) {
        self.end_passage();
        let mut rest = line;
        while !rest.is_empty() {
            let mut end = 0;
            let mut count = 0;
            let mut word = None;
            for (at, c) in rest.char_indices() {
                count += if c.is_ascii() { 1 } else { 4 };
                if count > MOST * 4 {
                    break;
                }
                end = at + c.len_utf8();
                if c.is_whitespace() {
                    word = Some(end);
                }
            }
            if end < rest.len() {
                end = word.unwrap_or(end);
            }
            let (part, after) = rest.split_at(end.max(1).min(rest.len()));
            self.passage.lines.push((number, part));
            self.end_passage();
            rest = after;
        }
    }

    fn end_passage(&mut self) {
        let Block { lines, .. } = std::mem::take(&mut self.passage);
        let (Some((first_line, _)), Some((last_line, _))) = (lines.first(), lines.last()) else { return };
        let (first_line, last_line) = (*first_line, *last_line);
        let mut text = String::new();
        let mut next = first_line;
        for (number, line) in lines {
            // Blank lines within a passage are part of its range.
            for _ in next..number {
                text.push('\n');
            }
            text.push_str(line);
            next = number;
        }
        let above: Vec<&str> = self.headings.iter().flatten().map(String::as_str).collect();
        self.done.push(Passage { first_line, last_line, heading: above.join(" > "), text });
    }
}

/// Returns the level and title of a heading such as `## Plans`.
fn heading(line: &str) -> Option<(usize, &str)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(level..)?;
    let is_heading = (1..=DEEPEST).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| (level, rest.trim().trim_end_matches('#').trim_end()))
}

fn fence(line: &str) -> Option<&str> {
    ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark)).and_then(|_| line.get(..3))
}

/// Returns whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let after = |mark: char| line.strip_prefix(mark).is_some_and(|rest| rest.starts_with(' '));
    let numbered = || {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let rest = line.get(digits..).unwrap_or_default();
        digits > 0 && (rest.starts_with(". ") || rest.starts_with(") "))
    };
    after('-') || after('*') || after('+') || numbered()
}

#[cfg(test)]
mod tests;
