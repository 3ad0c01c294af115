//! Colours of style sheets, as far as they decide whether text can be told from its background.

/// A colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rgb {
    parts: [u8; 3],
    alpha: f32,
}

/// Mixtures may hold mixtures.
const DEEPEST: usize = 8;

impl Rgb {
    pub(super) const WHITE: Self = Self { parts: [255; 3], alpha: 1.0 };
    const BLACK: Self = Self { parts: [0; 3], alpha: 1.0 };

    /// Reads a colour in any notation of CSS; `None` if it is unknown or inherited.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::within(text, DEEPEST)
    }

    fn within(text: &str, depth: usize) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let depth = depth.checked_sub(1)?;
        if let Some((function, inside)) = text.split_once('(') {
            let inside = inside.strip_suffix(')')?;
            match function {
                // Pages are read in the light colour scheme.
                "light-dark" => return Self::within(list(inside).next()?, depth),
                "color-mix" => return mixed(inside, depth),
                "color" => return of_space(inside),
                _ => {}
            }
        }
        match text.as_str() {
            "canvas" | "field" | "buttonface" => return Some(Self::WHITE),
            "canvastext" | "fieldtext" | "buttontext" => return Some(Self::BLACK),
            _ => {}
        }
        let colour = csscolorparser::parse(&text).ok()?;
        let [red, green, blue, _] = colour.to_rgba8();
        Some(Self { parts: [red, green, blue], alpha: colour.a })
    }

    /// Returns whether the two colours are too close for a person to tell apart.
    pub(super) fn is_near(self, other: Self) -> bool {
        self.parts.iter().zip(other.parts).all(|(a, b)| a.abs_diff(b) <= 16)
    }

    /// Returns whether the colour is practically transparent.
    pub(super) fn is_clear(self) -> bool {
        self.alpha < 0.05
    }
}

/// Reads `in oklab, red 20%, white`: mixed as bytes, which is close enough to tell text from its background.
fn mixed(inside: &str, depth: usize) -> Option<Rgb> {
    let mut parts = list(inside).filter(|part| !part.trim_start().starts_with("in "));
    let (first, second) = (parts.next()?, parts.next()?);
    let read = |part: &str| {
        let share =
            words(part).find_map(|word| word.strip_suffix('%').and_then(|share| share.parse::<f32>().ok()));
        let colour = words(part).find_map(|word| Rgb::within(word, depth));
        (colour, share.map(|share| share.clamp(0.0, 100.0) / 100.0))
    };
    let ((a, of_a), (b, of_b)) = (read(first), read(second));
    let (of_a, of_b) = match (of_a, of_b) {
        (Some(a), Some(b)) => (a, b),
        (Some(a), None) => (a, 1.0 - a),
        (None, Some(b)) => (1.0 - b, b),
        (None, None) => (0.5, 0.5),
    };
    let whole = of_a + of_b;
    match (a, b) {
        _ if whole <= 0.0 => None,
        (Some(a), _) if of_b / whole < 0.03 => Some(a),
        (_, Some(b)) if of_a / whole < 0.03 => Some(b),
        (Some(a), Some(b)) => {
            let alpha = (a.alpha * of_a + b.alpha * of_b) / whole;
            // A transparent colour adds no hue.
            let (weight_a, weight_b) = (a.alpha * of_a, b.alpha * of_b);
            let weights = (weight_a + weight_b).max(f32::EPSILON);
            let mix = |at: usize| {
                let part = |colour: Rgb| f32::from(colour.parts.get(at).copied().unwrap_or_default());
                ((part(a) * weight_a + part(b) * weight_b) / weights).clamp(0.0, 255.0) as u8
            };
            Some(Rgb { parts: [mix(0), mix(1), mix(2)], alpha: alpha * whole.min(1.0) })
        }
        _ => None,
    }
}

/// Reads `display-p3 1 1 1 / 50%`: colour spaces differ too little to matter here.
fn of_space(inside: &str) -> Option<Rgb> {
    let (parts, alpha) = inside.split_once('/').unwrap_or((inside, "1"));
    let number = |word: &str| match word.strip_suffix('%') {
        Some(percent) => percent.parse::<f32>().ok().map(|percent| percent / 100.0),
        None => word.parse::<f32>().ok(),
    };
    let parts: Vec<f32> = words(parts).skip(1).filter_map(number).collect();
    let [red, green, blue] = parts.get(..3)? else { return None };
    let byte = |part: f32| (part.clamp(0.0, 1.0) * 255.0).round() as u8;
    Some(Rgb { parts: [byte(*red), byte(*green), byte(*blue)], alpha: number(alpha.trim())? })
}

/// The parts of a value between spaces outside of parentheses.
pub(super) fn words(value: &str) -> impl Iterator<Item = &str> {
    split(value, char::is_whitespace).filter(|word| !word.is_empty())
}

/// The parts of a value between commas outside of parentheses.
fn list(value: &str) -> impl Iterator<Item = &str> {
    split(value, |c| c == ',')
}

fn split(value: &str, at: fn(char) -> bool) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    value.split(move |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && at(c)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_colours_in_every_notation() {
        for white in [
            "#fff",
            "#ffffffff",
            "WHITE",
            "rgb(255,255,255)",
            "rgb(100% 100% 100%)",
            "hsl(0 0% 100%)",
            "hsla(120, 50%, 100%, 1)",
            "hwb(0 100% 0%)",
            "lab(100% 0 0)",
            "lch(100% 0 0)",
            "oklab(1 0 0)",
            "oklch(100% 0 0)",
            "color(srgb 1 1 1)",
            "color(display-p3 100% 100% 100%)",
            "color-mix(in srgb, white, #fefefe)",
            "color-mix(in oklch, black 1%, white)",
            "light-dark(white, black)",
            "color-mix(in lab, color-mix(in srgb, white, white) 50%, white)",
            "Canvas",
        ] {
            let colour = Rgb::parse(white).unwrap_or_else(|| panic!("{white}"));
            assert!(colour.is_near(Rgb::WHITE) && !colour.is_clear(), "{white}: {colour:?}");
        }
        for clear in [
            "transparent",
            "#fff0",
            "rgb(0 0 0 / 0)",
            "hsl(0 0% 0% / 1%)",
            "hsla(0, 0%, 0%, 0)",
            "oklch(50% 0.1 20 / 0)",
            "color(srgb 0 0 0 / 2%)",
            "color-mix(in srgb, black 2%, transparent)",
            "lab(50% 0 0 / 0)",
        ] {
            assert!(Rgb::parse(clear).unwrap_or_else(|| panic!("{clear}")).is_clear(), "{clear}");
        }
        for dark in [
            "oklch(30% 0.1 20)",
            "hsl(200 50% 20%)",
            "lab(20% 0 0)",
            "navy",
            "color-mix(in srgb, black, navy)",
        ] {
            let colour = Rgb::parse(dark).unwrap_or_else(|| panic!("{dark}"));
            assert!(!colour.is_near(Rgb::WHITE) && !colour.is_clear(), "{dark}: {colour:?}");
        }
        let deep = format!("{}white{}", "color-mix(in srgb, ".repeat(5000), ", white)".repeat(5000));
        for unknown in ["inherit", "currentcolor", "var(--x)", "rgb(", "color-mix(in srgb, x, y)", &deep] {
            assert_eq!(Rgb::parse(unknown), None, "{}", &unknown[..unknown.len().min(40)]);
        }
    }
}
