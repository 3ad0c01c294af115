//! Estimates how deeply a page nests its elements before it is parsed: parsing time grows with the square of
//! the depth.

/// Deepest nesting that is parsed. Honest pages stay below a hundred.
pub(super) const DEEPEST: usize = 1500;

/// Elements that need no end tag, or have no content.
const OPEN_ENDED: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
    "wbr", "p", "li", "dt", "dd", "td", "th", "tr", "thead", "tbody", "tfoot", "option", "optgroup", "rp",
    "rt", "html", "head", "body", "colgroup",
];

/// The deepest nesting, as far as start and end tags tell; only an upper bound if that is not too deep.
pub(super) fn estimate(html: &str) -> usize {
    let bound = bound(html);
    if bound <= DEEPEST { bound } else { precise(html) }
}

/// The nesting if every start tag needed its end tag.
fn bound(html: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let bytes = html.as_bytes();
    for at in memchr::memchr_iter(b'<', bytes) {
        match bytes.get(at + 1) {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(byte) if byte.is_ascii_alphabetic() => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            _ => {}
        }
    }
    deepest
}

fn precise(html: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = html;
    while let Some((_, after)) = rest.split_once('<') {
        let is_end = after.starts_with('/');
        let name = after.trim_start_matches('/');
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
        let name = &name[..end];
        if !name.is_empty() && !OPEN_ENDED.iter().any(|open| open.eq_ignore_ascii_case(name)) {
            if is_end {
                depth = depth.saturating_sub(1);
            } else {
                depth += 1;
                deepest = deepest.max(depth);
            }
        }
        rest = after;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_how_deep_elements_nest() {
        assert_eq!(estimate(&"<p>x<br><img src=a>".repeat(5_000)), 0);
        assert_eq!(estimate(&"<div><b>x</b></div>".repeat(5_000)), 2);
        assert_eq!(precise(&"<div><p><b>x</b></p></div>".repeat(5_000)), 2);
        assert_eq!(estimate(&"<div>".repeat(5_000)), 5_000);
        assert_eq!(estimate(&"<UL><LI>".repeat(5_000)), 5_000);
        assert_eq!(estimate("a < b << c </ >"), 0);
    }
}
