//! Decodes a body. The server's declaration is used, unless the bytes show that it is wrong.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Number of bytes searched for the page's own declaration of its encoding.
const PRESCAN: usize = 2048;

/// Decodes a body by its byte order mark, the header, its own `<meta>` or a guess from its bytes, in that
/// order. Bytes that are valid UTF-8 beyond ASCII are UTF-8, whatever is declared.
pub(super) fn decode<'a>(body: &'a [u8], content_type: Option<&str>) -> Cow<'a, str> {
    if let Some((encoding, length)) = Encoding::for_bom(body) {
        return encoding.decode_without_bom_handling(body.get(length..).unwrap_or_default()).0;
    }
    if let Ok(text) = std::str::from_utf8(body)
        && !text.is_ascii()
    {
        return Cow::Borrowed(text);
    }
    let claimed = of_header(content_type).or_else(|| of_meta(body));
    let claimed = claimed.filter(|encoding| is_possible(encoding, body));
    let encoding = claimed.unwrap_or_else(|| {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(body, true);
        detector.guess(None, Utf8Detection::Allow)
    });
    encoding.decode_without_bom_handling(body).0
}

/// Returns whether the body can be in this encoding: UTF-16 of ASCII text has a zero in every other byte.
fn is_possible(encoding: &'static Encoding, body: &[u8]) -> bool {
    if encoding == UTF_16LE || encoding == UTF_16BE {
        return body.iter().take(PRESCAN).any(|byte| *byte == 0);
    }
    encoding != UTF_8 || std::str::from_utf8(body).is_ok()
}

fn of_header(content_type: Option<&str>) -> Option<&'static Encoding> {
    let parameters = content_type?.split(';').skip(1);
    let charset = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, value) = charset.into_iter().find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label(value.trim().trim_matches(['"', '\'']).as_bytes())
}

fn of_meta(body: &[u8]) -> Option<&'static Encoding> {
    let start = body.get(..PRESCAN.min(body.len()))?;
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let (_, after) = start.split_once("charset")?;
    let after = after.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')));
    let encoding = Encoding::for_label(after.get(..end.unwrap_or(after.len()))?.as_bytes())?;
    // A page that can declare this in ASCII is not in UTF-16.
    Some(if encoding == UTF_16LE || encoding == UTF_16BE { UTF_8 } else { encoding })
}
