//! The style sheets of a page, and the elements to which their rules apply.

use std::collections::HashMap;
use std::rc::Rc;

use dom_query::{Document, Matcher, NodeId, NodeRef};

use super::colour::Rgb;
use super::media;
use super::style::{LONGEST, Look, Variables, declarations, end_of, without_comments};

/// The most rules that are looked at.
const RULES: usize = 2_000;
/// The most bytes of style sheets.
const BYTES: usize = 512 * 1024;
/// Most comparisons of elements with selectors, all together.
const COMPARISONS: usize = 20_000_000;
/// The deepest rule within rules.
const DEEPEST: usize = 4;

/// An element as simple selectors see it.
pub(super) struct SelectedElement<'a> {
    pub(super) name: &'a str,
    /// The id; empty if it has none.
    pub(super) id: &'a str,
    /// The classes, with spaces between them.
    pub(super) class: &'a str,
}

/// Specificity of a selector: its ids, its classes, and its position in the page.
type Weight = (usize, usize, usize);

/// A simple selector with its declarations.
struct Rule {
    /// Element name; empty for any.
    name: String,
    id: String,
    classes: Vec<String>,
    weight: Weight,
    block: Rc<Vec<(String, String)>>,
}

/// A selector that is more than a name, an id and classes, with its declarations.
struct Complex {
    matcher: Matcher,
    weight: Weight,
    block: Rc<Vec<(String, String)>>,
}

/// The style sheets of a page. A simple selector with several parts is matched by its last part, if the
/// others are ancestors: this hides too much rather than too little. Other selectors are matched against the
/// whole page.
#[derive(Default)]
pub(super) struct Sheet {
    rules: Vec<Rule>,
    by_name: HashMap<String, Vec<usize>>,
    by_id: HashMap<String, Vec<usize>>,
    by_class: HashMap<String, Vec<usize>>,
    complex: Vec<Complex>,
    /// Names of animations at whose end the element cannot be seen.
    hiding: Vec<String>,
    others: bool,
    bytes: usize,
}

impl Sheet {
    pub(super) fn of(document: &Document) -> Self {
        let mut sheet = Self::default();
        document.root().descendants_it().for_each(|node| sheet.learn(&node));
        sheet
    }

    /// Reads the style sheet of an element, if it has one.
    pub(super) fn learn(&mut self, node: &NodeRef<'_>) {
        if node.has_name("link") {
            let rel = node.attr_or("rel", "").to_ascii_lowercase();
            self.others |= rel.split_whitespace().any(|word| word == "stylesheet");
        } else if node.has_name("style") && self.bytes < BYTES {
            let text = node.text();
            self.bytes += text.len();
            self.others |= text.contains("@import");
            self.read(&without_comments(&text), 0);
        }
    }

    /// Returns whether the page loads other style sheets, which are not read.
    pub(super) fn has_others(&self) -> bool {
        self.others
    }

    /// Reads rules; those for screens are read within their block.
    fn read(&mut self, css: &str, depth: usize) {
        let mut rest = css;
        while let Some(open) = rest.find('{') {
            let prelude = rest[..open].rsplit(['}', ';']).next().unwrap_or_default().trim();
            let Some(close) = block_end(&rest[open..]) else { return };
            let block = &rest[open + 1..open + close];
            if let Some(at) = prelude.strip_prefix('@') {
                if let Some((_, name)) = at.split_once("keyframes ") {
                    self.animation(name.trim(), block);
                } else if media::is_read(at) && depth < DEEPEST {
                    self.read(block, depth + 1);
                }
            } else {
                self.nest(prelude, block, depth);
            }
            rest = &rest[open + close + 1..];
        }
    }

    /// Adds a rule and those nested in it.
    fn nest(&mut self, selectors: &str, block: &str, depth: usize) {
        let (mut own, mut rest) = (String::new(), block);
        while let Some(open) = rest.find('{') {
            let head = rest[..open].rfind([';', '}']).map_or(0, |at| at + 1);
            let Some(close) = block_end(&rest[open..]) else { break };
            own.push_str(&rest[..head]);
            let (prelude, inner) = (rest[head..open].trim(), &rest[open + 1..open + close]);
            rest = &rest[open + close + 1..];
            if depth >= DEEPEST {
                continue;
            }
            let nested = match prelude.strip_prefix('@') {
                Some(at) if media::is_read(at) => selectors.to_owned(),
                Some(_) => continue,
                None => {
                    let within = |part: &str| match part.contains('&') {
                        true => part.replace('&', &format!(":is({selectors})")),
                        false => format!(":is({selectors}) {}", part.trim()),
                    };
                    parts(prelude).map(within).collect::<Vec<_>>().join(",")
                }
            };
            if nested.len() <= LONGEST {
                self.nest(&nested, inner, depth + 1);
            }
        }
        own.push_str(rest);
        self.add(selectors, &own);
    }

    /// Remembers an animation if its last frame cannot be seen.
    fn animation(&mut self, name: &str, frames: &str) {
        let mut rest = frames;
        while let Some(open) = rest.find('{') {
            let Some(close) = block_end(&rest[open..]) else { return };
            let at = rest[..open].to_ascii_lowercase();
            if at.split(',').any(|at| matches!(at.trim(), "to" | "100%")) && self.hiding.len() < RULES {
                let mut look = Look::default();
                look.apply_own(&rest[open + 1..open + close], &mut Variables::default());
                if look.is_hidden() || look.no_size == Some(true) || look.color.is_some_and(Rgb::is_clear) {
                    self.hiding.push(name.trim_matches(['"', '\'']).to_ascii_lowercase());
                }
            }
            rest = &rest[open + close + 1..];
        }
    }

    /// Returns whether an animation of these declarations ends with the element hidden, and stays there.
    fn ends_hidden<'a>(&self, declared: impl Iterator<Item = &'a (String, String)>) -> bool {
        let (mut is_named, mut stays) = (false, false);
        for (_, value) in
            declared.filter(|(name, _)| name.trim_start_matches("-webkit-").starts_with("animation"))
        {
            for word in value.split([' ', ',']) {
                is_named |= self.hiding.iter().any(|name| name == word);
                stays |= matches!(word, "forwards" | "both" | "infinite");
            }
        }
        is_named && stays
    }

    /// Applies the styles of the element itself.
    pub(super) fn apply_own(&self, look: &mut Look, style: &str, variables: &mut Variables) {
        look.apply_own(style, variables);
        if !self.hiding.is_empty() && self.ends_hidden(declarations(style).collect::<Vec<_>>().iter()) {
            look.hide();
        }
    }

    fn add(&mut self, selectors: &str, block: &str) {
        let block: Vec<_> = declarations(block).filter(|(name, _)| matters(name)).collect();
        if block.is_empty() {
            return;
        }
        let block = Rc::new(block);
        // The root of a page of HTML.
        let selectors = selectors.replace(":root", "html");
        for selector in parts(&selectors) {
            let order = self.rules.len() + self.complex.len();
            if order >= RULES {
                return;
            }
            let Some(rule) = Rule::parse(selector, order, &block) else {
                // States such as `:hover` match nothing: they do not apply to the page at rest.
                if let Ok(matcher) = Matcher::new(selector.trim()) {
                    let weight =
                        (selector.matches('#').count(), selector.matches(['.', '[', ':']).count(), order);
                    self.complex.push(Complex { matcher, weight, block: Rc::clone(&block) });
                }
                continue;
            };
            let at = self.rules.len();
            let index = if !rule.id.is_empty() {
                self.by_id.entry(rule.id.clone())
            } else if let Some(class) = rule.classes.first() {
                self.by_class.entry(class.clone())
            } else {
                self.by_name.entry(rule.name.clone())
            };
            index.or_default().push(at);
            self.rules.push(rule);
        }
    }

    /// The elements that complex selectors match, with the indices of their rules.
    pub(super) fn matches(&self, document: &Document) -> HashMap<NodeId, Vec<usize>> {
        let mut matches: HashMap<NodeId, Vec<usize>> = HashMap::new();
        let elements = if self.complex.is_empty() { 0 } else { document.root().descendants_it().count() };
        let most = COMPARISONS / elements.max(1);
        for (at, rule) in self.complex.iter().take(most).enumerate() {
            for node in document.select_matcher(&rule.matcher).nodes() {
                matches.entry(node.id).or_default().push(at);
            }
        }
        matches
    }

    /// Applies the rules for an element, the most specific last; `complex` are those of its complex
    /// selectors.
    pub(super) fn apply(
        &self,
        look: &mut Look,
        variables: &mut Variables,
        SelectedElement { name, id, class }: SelectedElement<'_>,
        complex: &[usize],
    ) {
        if self.rules.is_empty() && complex.is_empty() {
            return;
        }
        let classes: Vec<&str> = class.split_ascii_whitespace().collect();
        let mut found: Vec<(Weight, &[(String, String)])> = Vec::new();
        let lists = classes.iter().map(|class| self.by_class.get(*class));
        let lists = lists.chain([
            self.by_id.get(id).filter(|_| !id.is_empty()),
            self.by_name.get(name),
            self.by_name.get(""),
        ]);
        for at in lists.flatten().flatten() {
            let rule = self.rules.get(*at).filter(|rule| rule.holds(name, id, &classes));
            found.extend(rule.map(|rule| (rule.weight, rule.block.as_slice())));
        }
        let complex = complex.iter().filter_map(|at| self.complex.get(*at));
        found.extend(complex.map(|rule| (rule.weight, rule.block.as_slice())));
        found.sort_by_key(|(weight, _)| *weight);
        let declared = found.iter().flat_map(|(_, block)| block.iter());
        look.apply(declared.clone(), variables);
        if !self.hiding.is_empty() && self.ends_hidden(declared) {
            look.hide();
        }
    }
}

/// The selectors of a list: those between commas outside of parentheses and brackets.
fn parts(selectors: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    selectors.split(move |c: char| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// Returns the position of the brace that closes the block at the start of the text.
fn block_end(text: &str) -> Option<usize> {
    end_of(text, *b"{}")
}

fn matters(name: &str) -> bool {
    name.starts_with("--")
        || name.trim_start_matches("-webkit-").starts_with("animation")
        || matches!(
            name,
            "display"
                | "visibility"
                | "content-visibility"
                | "opacity"
                | "filter"
                | "font-size"
                | "font"
                | "width"
                | "height"
                | "max-width"
                | "max-height"
                | "overflow"
                | "overflow-x"
                | "overflow-y"
                | "left"
                | "top"
                | "right"
                | "bottom"
                | "text-indent"
                | "margin-left"
                | "margin-top"
                | "margin"
                | "transform"
                | "scale"
                | "zoom"
                | "clip"
                | "clip-path"
                | "-webkit-clip-path"
                | "mask"
                | "mask-image"
                | "-webkit-mask"
                | "-webkit-mask-image"
                | "line-height"
                | "color"
                | "-webkit-text-fill-color"
                | "background-color"
                | "background"
                | "background-image"
        )
}

impl Rule {
    /// Reads a simple selector; `None` if it is complex.
    fn parse(selector: &str, order: usize, block: &Rc<Vec<(String, String)>>) -> Option<Self> {
        let selector = selector.trim();
        if selector.contains('(') {
            return None;
        }
        let last = selector.rsplit([' ', '>', '+', '~']).next()?;
        if last.contains([':', '[', '*']) || last.is_empty() {
            return None;
        }
        let parts = selector.split([' ', '>', '+', '~']).filter(|part| !part.is_empty()).count();
        let start = last.find(['.', '#']).unwrap_or(last.len());
        let (name, mut rest) = last.split_at(start);
        let (mut id, mut classes) = (String::new(), Vec::new());
        while let Some(mark) = rest.chars().next() {
            let after = rest.get(1..)?;
            let end = after.find(['.', '#']).unwrap_or(after.len());
            let word = after.get(..end)?.to_owned();
            if mark == '#' {
                id = word;
            } else {
                classes.push(word);
            }
            rest = after.get(end..)?;
        }
        // An element's name alone below another one is too general.
        if parts > 1 && id.is_empty() && classes.is_empty() {
            return None;
        }
        let weight = (usize::from(!id.is_empty()), classes.len(), order);
        Some(Self { name: name.to_ascii_lowercase(), id, classes, weight, block: Rc::clone(block) })
    }

    fn holds(&self, name: &str, id: &str, classes: &[&str]) -> bool {
        (self.name.is_empty() || self.name == name)
            && (self.id.is_empty() || self.id == id)
            && self.classes.iter().all(|class| classes.contains(&class.as_str()))
    }
}
