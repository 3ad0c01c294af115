//! Conditions of style sheets: whether a rule applies to a reader at an ordinary screen.
//!
//! A condition that is not understood holds: hiding too much is better than showing what nobody sees.

use super::style::length;

/// The window of the reader, in pixels.
const WIDTH: f32 = 1_280.0;
const HEIGHT: f32 = 800.0;

/// Returns whether the rules of `@media QUERY`, `@supports ...` and the like are read; `at` begins after the `@`.
pub(super) fn is_read(at: &str) -> bool {
    let at = at.to_ascii_lowercase();
    match at.strip_prefix("media") {
        Some(queries) => queries.split(',').any(|query| negatable(query, every)),
        None => ["supports", "layer", "container", "scope"].iter().any(|name| at.starts_with(name)),
    }
}

/// Removes a leading `not`, and turns the answer round if there was one.
fn negatable(text: &str, holds: impl Fn(&str) -> bool) -> bool {
    match text.trim().strip_prefix("not ") {
        Some(rest) => !holds(rest.trim()),
        None => holds(text.trim()),
    }
}

fn every(query: &str) -> bool {
    query.split(" and ").all(|term| term.split(" or ").any(|term| negatable(term, holds)))
}

fn holds(term: &str) -> bool {
    let term = term.trim().trim_matches(['(', ')']).trim();
    match term.trim_start_matches("only ") {
        "print" | "speech" => return false,
        "all" | "screen" | "" => return true,
        _ => {}
    }
    if let Some((name, value)) = term.split_once(':') {
        let name = name.trim();
        let size = pixels(value);
        return match name {
            "min-width" | "min-device-width" => size.is_none_or(|size| size <= WIDTH),
            "max-width" | "max-device-width" => size.is_none_or(|size| size >= WIDTH),
            "min-height" => size.is_none_or(|size| size <= HEIGHT),
            "max-height" => size.is_none_or(|size| size >= HEIGHT),
            "prefers-color-scheme" => value.trim() != "dark",
            "orientation" => value.trim() != "portrait",
            _ if name.starts_with("prefers-") => value.trim() == "no-preference",
            _ => true,
        };
    }
    // `width <= 600px`
    let of = |mark: char| {
        let (name, size) = term.split_once(mark)?;
        let have = match name.trim() {
            "width" => WIDTH,
            "height" => HEIGHT,
            _ => return None,
        };
        Some((have, pixels(size.trim_start_matches('='))?))
    };
    match (of('<'), of('>')) {
        (Some((have, size)), _) => have <= size,
        (_, Some((have, size))) => have >= size,
        _ => true,
    }
}

fn pixels(value: &str) -> Option<f32> {
    let (number, unit) = length(value)?;
    Some(if matches!(unit, "em" | "rem") { number * 16.0 } else { number })
}

#[cfg(test)]
mod tests {
    use super::is_read;

    #[test]
    fn conditions_are_those_of_a_screen() {
        for read in [
            "media screen",
            "media all and (min-width: 1px)",
            "media (max-width:99999px)",
            "media not print",
            "media print, screen",
            "media (width <= 9999px)",
            "media (width >= 100px) and (min-height: 1em)",
            "media (hover: hover)",
            "media not (max-width: 600px)",
            "media (max-width: 10px) or (min-width: 10px)",
            "media (prefers-color-scheme: light)",
            "supports (display: grid)",
            "layer base",
            "container (min-width: 1px)",
            "scope (.x)",
            "media (something-new)",
        ] {
            assert!(is_read(read), "{read}");
        }
        for other in [
            "media print",
            "media only print",
            "media (max-width: 600px)",
            "media screen and (max-width: 40em)",
            "media (width < 600px)",
            "media (prefers-color-scheme: dark)",
            "media (orientation: portrait)",
            "media (prefers-reduced-motion: reduce)",
            "media not screen",
            "font-face",
            "page",
        ] {
            assert!(!is_read(other), "{other}");
        }
    }
}
