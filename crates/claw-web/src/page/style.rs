//! The part of CSS that decides whether text can be seen: the declarations of an element, and the look that they
//! give it.

use std::collections::HashMap;
use std::rc::Rc;

use super::colour::{Rgb, words};
use super::shapes;

/// The most variables in one value.
const VARIABLES: usize = 16;
/// The longest value that variables make, and the longest selector of nested rules.
pub(super) const LONGEST: usize = 2_000;

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

    /// Takes the element out of the page.
    pub(super) fn hide(&mut self) {
        self.not_displayed = Some(true);
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
    pub(super) fn apply_own(&mut self, style: &str, variables: &mut Variables) {
        if !style.is_empty() {
            let own: Vec<_> = declarations(style).collect();
            self.apply(own.iter(), variables);
        }
    }

    /// Applies declarations in order; variables count wherever they are set among them.
    pub(super) fn apply<'a>(
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
        let Some(length) = end_of(&value[start + 3..], *b"()") else { break };
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

/// Returns the position of the mark that closes the one at the start of the text.
pub(super) fn end_of(text: &str, [open, close]: [u8; 2]) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(at);
            }
        }
    }
    None
}

/// The declarations of a block, in lower case, without comments and marks of importance.
pub(super) fn declarations(block: &str) -> impl Iterator<Item = (String, String)> {
    let parts: Vec<String> = without_comments(block).split(';').map(str::to_owned).collect();
    parts.into_iter().filter_map(|part| {
        let (name, value) = part.split_once(':')?;
        let value = value.to_ascii_lowercase();
        let value = value.split("!important").next().unwrap_or_default().trim().to_owned();
        Some((name.trim().to_ascii_lowercase(), value))
    })
}

pub(super) fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out.push_str(rest);
    out
}
