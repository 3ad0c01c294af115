//! The part of CSS that decides whether text can be seen: a page's own style sheets and the styles of its
//! elements.

use std::collections::HashMap;
use std::rc::Rc;

use dom_query::{Document, Matcher, NodeId, NodeRef};

use super::colour::{Rgb, words};
use super::{media, shapes};

/// The most rules that are looked at.
const RULES: usize = 2_000;
/// The most bytes of style sheets.
const BYTES: usize = 512 * 1024;
/// Most comparisons of elements with selectors, all together.
const COMPARISONS: usize = 20_000_000;
/// The deepest rule within rules.
const DEEPEST: usize = 4;
/// The most variables in one value, and the longest value that they make.
const VARIABLES: usize = 16;
const LONGEST: usize = 2_000;

/// Variables of an element, inherited by those in it.
pub(super) type Variables = Rc<HashMap<String, String>>;

/// The styles of an element; `None` if not set.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    not_displayed: Option<bool>,
    invisible: Option<bool>,
    clear: Option<bool>,
    no_extent: Option<bool>,
    clips: Option<bool>,
    off_screen: Option<bool>,
    clipped: Option<bool>,
    /// Text without size.
    pub(super) no_size: Option<bool>,
    /// Text colour.
    pub(super) color: Option<Rgb>,
    /// Background; `Some(None)` if it is an image.
    pub(super) background: Option<Option<Rgb>>,
}

impl Look {
    /// A look with only colours.
    pub(super) fn of_colours(color: Option<Rgb>, background: Option<Option<Rgb>>) -> Self {
        Self { color, background, ..Self::default() }
    }

    /// Returns whether the element cannot be seen.
    pub(super) fn is_hidden(&self) -> bool {
        let is = |said: Option<bool>| said == Some(true);
        is(self.not_displayed)
            || is(self.invisible)
            || is(self.clear)
            || is(self.off_screen)
            || is(self.clipped)
            || (is(self.no_extent) && is(self.clips))
    }

    /// Applies the declarations of a block.
    fn apply_own(&mut self, style: &str, variables: &mut Variables) {
        if !style.is_empty() {
            let own: Vec<_> = declarations(style).collect();
            self.apply(own.iter(), variables);
        }
    }

    /// Applies declarations in order; variables count wherever they are set among them.
    fn apply<'a>(
        &mut self,
        declared: impl Iterator<Item = &'a (String, String)> + Clone,
        variables: &mut Variables,
    ) {
        for (name, value) in declared.clone().filter(|(name, _)| name.starts_with("--")) {
            Rc::make_mut(variables).insert(name.clone(), value.clone());
        }
        for (name, value) in declared {
            match value.contains("var(") {
                true => self.set(name, &resolved(value, variables)),
                false => self.set(name, value),
            }
        }
    }

    fn set(&mut self, name: &str, value: &str) {
        let number = length(value);
        match name {
            "display" => self.not_displayed = Some(value == "none"),
            "visibility" => self.invisible = Some(matches!(value, "hidden" | "collapse")),
            "content-visibility" => self.invisible = Some(value == "hidden"),
            "opacity" => self.clear = number.map(|(number, unit)| is_clear(number, unit)),
            "filter" => {
                let opacity = value.split_once("opacity(").and_then(|(_, inside)| length(inside));
                self.clear = opacity.map(|(number, unit)| is_clear(number, unit)).or(self.clear);
            }
            "mask" | "mask-image" | "-webkit-mask" | "-webkit-mask-image" => {
                self.clear = shapes::is_clear_mask(value).then_some(true).or(self.clear);
            }
            // A share of the inherited size: of none it is none.
            "font-size" => {
                let is_share = |unit: &str| matches!(unit, "em" | "%");
                self.no_size = number
                    .map(|(number, unit)| (is_tiny(number, unit), unit))
                    .filter(|(is_tiny, unit)| *is_tiny || !is_share(unit))
                    .map(|(is_tiny, _)| is_tiny);
            }
            "line-height" => {
                let is_none = number.is_some_and(|(number, _)| number <= 0.01);
                self.no_extent = Some(is_none || self.no_extent == Some(true));
            }
            "font" => {
                let size = value.split([' ', '/']).find_map(length);
                self.no_size = size.map(|(number, unit)| is_tiny(number, unit)).or(self.no_size);
            }
            "width" | "height" | "max-width" | "max-height" => {
                let is_none = number.is_some_and(|(number, unit)| {
                    number <= 1.0 && unit != "%" && (number == 0.0 || unit == "px")
                });
                // One of them is enough.
                self.no_extent = Some(is_none || self.no_extent == Some(true));
            }
            "overflow" | "overflow-x" | "overflow-y" => self.clips = Some(matches!(value, "hidden" | "clip")),
            "left" | "top" | "right" | "bottom" | "text-indent" | "margin-left" | "margin-top" | "margin" => {
                let to_the_right = matches!(name, "left" | "margin-left" | "text-indent");
                let is_far = number.is_some_and(|(number, unit)| {
                    number <= far(unit) || (to_the_right && number >= beyond(unit))
                });
                self.off_screen = Some(is_far || self.off_screen == Some(true));
                // Pushed out of a box that is as wide as the text.
                let is_pushed = name == "text-indent"
                    && number.is_some_and(|(number, unit)| unit == "%" && number >= 100.0);
                self.no_extent = is_pushed.then_some(true).or(self.no_extent);
            }
            "scale" | "zoom" => {
                let is_gone = number.is_some_and(|(number, _)| number.abs() < 0.01);
                self.off_screen = Some(is_gone || self.off_screen == Some(true));
            }
            "transform" => {
                self.off_screen = Some(shapes::is_gone(value) || self.off_screen == Some(true));
            }
            "clip" => self.clipped = Some(is_empty_clip(value)),
            "clip-path" | "-webkit-clip-path" => self.clipped = Some(shapes::is_empty(value)),
            "color" | "-webkit-text-fill-color" => self.color = Rgb::parse(value).or(self.color),
            "background-color" => self.background = Rgb::parse(value).map(Some).or(self.background),
            "background" | "background-image" => {
                let is_picture = value.contains("url(") || value.contains("gradient(");
                let colour = words(value).find_map(Rgb::parse);
                self.background = match (is_picture, colour) {
                    (true, _) => Some(None),
                    (false, Some(colour)) => Some(Some(colour)),
                    (false, None) => self.background,
                };
            }
            _ => {}
        }
    }
}

fn is_clear(number: f32, unit: &str) -> bool {
    number < if unit == "%" { 5.0 } else { 0.05 }
}

fn is_tiny(number: f32, unit: &str) -> bool {
    number <= 0.01
        || (unit == "%" && number <= 1.0)
        || (unit == "px" && number <= 1.0)
        || (unit == "pt" && number <= 1.0)
}

/// The distance to the right from which an element is off every screen.
pub(super) fn beyond(unit: &str) -> f32 {
    match unit {
        "em" | "rem" => 300.0,
        "%" | "vw" => 150.0,
        _ => 5_000.0,
    }
}

/// The distance from which an element is off the screen.
pub(super) fn far(unit: &str) -> f32 {
    match unit {
        "px" => -900.0,
        "em" | "rem" => -60.0,
        "%" | "vw" | "vh" => -100.0,
        _ => -900.0,
    }
}

fn is_empty_clip(value: &str) -> bool {
    let Some(inside) = value.strip_prefix("rect(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    inside
        .split([',', ' '])
        .filter(|part| !part.is_empty())
        .all(|part| length(part).is_some_and(|(n, _)| n.abs() <= 1.0))
}

/// A number and its unit, at the start of a text.
pub(super) fn length(text: &str) -> Option<(f32, &str)> {
    let text = text.trim();
    if let Some(inside) = text.strip_prefix("calc(") {
        let is_nothing = inside.split('*').any(|factor| {
            let factor = factor.trim().trim_end_matches(')').trim();
            factor.parse::<f32>().is_ok_and(|factor| factor == 0.0)
        });
        return if is_nothing { Some((0.0, "px")) } else { length(inside) };
    }
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    let number: f32 = text.get(..end)?.parse().ok()?;
    let rest = text.get(end..)?;
    let unit = rest.find(|c: char| !(c.is_ascii_alphabetic() || c == '%')).map_or(rest, |at| &rest[..at]);
    Some((number, unit))
}

/// Fills the variables of a value; one that is not set becomes its fallback, or empty.
fn resolved(value: &str, variables: &Variables) -> String {
    let mut value = value.to_owned();
    for _ in 0..VARIABLES {
        let Some(start) = value.find("var(") else { break };
        let Some(length) = parenthesis_end(&value[start + 3..]) else { break };
        let inside = &value[start + 4..start + 3 + length];
        let (name, fallback) = inside.split_once(',').unwrap_or((inside, ""));
        let filled = variables.get(name.trim()).map_or(fallback.trim(), String::as_str);
        let next = format!("{}{filled}{}", &value[..start], &value[start + 4 + length..]);
        if next.len() > LONGEST {
            break;
        }
        value = next;
    }
    value
}

/// Returns the position of the parenthesis that closes the one at the start of the text.
fn parenthesis_end(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// The declarations of a block, in lower case, without comments and marks of importance.
fn declarations(block: &str) -> impl Iterator<Item = (String, String)> {
    let parts: Vec<String> = without_comments(block).split(';').map(str::to_owned).collect();
    parts.into_iter().filter_map(|part| {
        let (name, value) = part.split_once(':')?;
        let value = value.to_ascii_lowercase();
        let value = value.split("!important").next().unwrap_or_default().trim().to_owned();
        Some((name.trim().to_ascii_lowercase(), value))
    })
}

fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
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
            look.not_displayed = Some(true);
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
        (name, id, class): (&str, &str, &str),
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
            look.not_displayed = Some(true);
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
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
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
