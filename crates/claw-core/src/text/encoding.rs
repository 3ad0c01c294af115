//! Recognition of text, and its encoding.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};

/// The encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, low byte first.
    Utf16Le,
    /// UTF-16, high byte first.
    Utf16Be,
    /// An encoding older than Unicode.
    Other(&'static encoding_rs::Encoding),
}

/// A decoded text, with what is needed to encode it to the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text, without a byte order mark.
    pub text: String,
    /// The encoding.
    pub encoding: Encoding,
    /// True if a byte order mark came first.
    pub bom: bool,
}

const BOM: &str = "\u{feff}";
/// The bytes at the start of a file that determine its type.
const LOOKED_AT: usize = 8 * 1024;

/// Decodes bytes as text; for binary data, the error is its media type.
pub fn decode(bytes: &[u8]) -> Result<Text, &'static str> {
    let (encoding, bom) = match bytes {
        [0xef, 0xbb, 0xbf, ..] => (Encoding::Utf8, 3),
        [0xff, 0xfe, ..] => (Encoding::Utf16Le, 2),
        [0xfe, 0xff, ..] => (Encoding::Utf16Be, 2),
        _ => (Encoding::Utf8, 0),
    };
    let rest = &bytes[bom..];
    let text = |text, encoding| Text { text, encoding, bom: bom > 0 };
    if encoding == Encoding::Utf8 {
        if let Ok(utf8) = str::from_utf8(rest) {
            return if is_binary(rest) { Err(mime(bytes)) } else { Ok(text(utf8.to_owned(), encoding)) };
        }
        if is_binary(rest) || bom > 0 {
            return Err(mime(bytes));
        }
        return guess(rest).map(|(decoded, encoding)| text(decoded, encoding)).ok_or_else(|| mime(bytes));
    }
    let units = rest.chunks_exact(2);
    if !units.remainder().is_empty() {
        return Err(mime(bytes));
    }
    let unit = |pair: &[u8]| match encoding {
        Encoding::Utf16Be => u16::from_be_bytes([pair[0], pair[1]]),
        _ => u16::from_le_bytes([pair[0], pair[1]]),
    };
    let decoded: Result<String, _> = char::decode_utf16(units.map(unit)).collect();
    decoded.map(|decoded| text(decoded, encoding)).map_err(|_| mime(bytes))
}

/// Decodes like [`decode`], without copying UTF-8.
pub fn decode_owned(bytes: Vec<u8>) -> Result<Text, &'static str> {
    match String::from_utf8(bytes) {
        Ok(text) if !text.starts_with(BOM) && !is_binary(text.as_bytes()) => {
            Ok(Text { text, encoding: Encoding::Utf8, bom: false })
        }
        Ok(text) => decode(text.as_bytes()),
        Err(error) => decode(error.as_bytes()),
    }
}

/// Guesses an encoding in which these bytes are text and encode to the same bytes again.
fn guess(bytes: &[u8]) -> Option<(String, Encoding)> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let encoding = detector.guess(None, Utf8Detection::Deny);
    let decoded = encoding.decode_without_bom_handling_and_without_replacement(bytes)?;
    if decoded.chars().any(|c| c.is_control() && !c.is_whitespace() && c != '\u{1b}' && c != '\u{8}') {
        return None;
    }
    Some((decoded.into_owned(), Encoding::Other(encoding)))
}

/// Returns whether bytes that may be valid UTF-8 are binary: they have a NUL near the beginning, or a
/// signature.
fn is_binary(bytes: &[u8]) -> bool {
    let looked_at = &bytes[..bytes.len().min(LOOKED_AT)];
    memchr::memchr(0, looked_at).is_some() || looked_at.starts_with(b"%PDF-")
}

/// Returns the media type of bytes that are not text.
pub(super) fn mime(bytes: &[u8]) -> &'static str {
    let looked_at = &bytes[..bytes.len().min(LOOKED_AT)];
    infer::get(looked_at).map_or("application/octet-stream", |kind| kind.mime_type())
}

impl Encoding {
    /// Returns the encoding's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Other(encoding) => encoding.name(),
        }
    }

    /// Encodes a text; the error is the first character that the encoding lacks.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Other(encoding) => {
                let (bytes, _, unmappable) = encoding.encode(text);
                if !unmappable {
                    return Ok(bytes.into_owned());
                }
                let has_none = |c: &char| encoding.encode(c.encode_utf8(&mut [0; 4])).2;
                Err(text.chars().find(has_none).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }
}

impl Text {
    /// Encodes another text like this one; the error is the first character that the encoding lacks.
    pub fn encode(&self, text: &str) -> Result<Vec<u8>, char> {
        let mut bytes = if self.bom { self.encoding.encode(BOM)? } else { Vec::new() };
        bytes.extend(self.encoding.encode(text)?);
        Ok(bytes)
    }

    /// Returns the byte in the file of a position in the text.
    pub fn offset_in_file(&self, place: usize) -> u64 {
        let before = match self.encoding {
            Encoding::Utf8 => place,
            encoding => encoding.encode(&self.text[..place]).map_or(place, |bytes| bytes.len()),
        };
        (before + self.bom_bytes()) as u64
    }

    /// Returns the position in the text of a byte in the file; approximate if the file's characters have
    /// other lengths.
    pub fn offset_in_text(&self, byte: u64) -> usize {
        let byte = usize::try_from(byte).unwrap_or(usize::MAX).saturating_sub(self.bom_bytes());
        let width: &dyn Fn(char) -> usize = match self.encoding {
            Encoding::Utf8 => return byte.min(self.text.len()),
            Encoding::Utf16Le | Encoding::Utf16Be => &|c| 2 * c.len_utf16(),
            Encoding::Other(encoding) => &|c| encoding.encode(c.encode_utf8(&mut [0; 4])).0.len(),
        };
        let mut passed = 0;
        let beyond = self.text.char_indices().find(|(_, c)| {
            passed += width(*c);
            passed > byte
        });
        beyond.map_or(self.text.len(), |(place, _)| place)
    }

    fn bom_bytes(&self) -> usize {
        match (self.bom, self.encoding) {
            (false, _) => 0,
            (true, Encoding::Utf8) => 3,
            (true, _) => 2,
        }
    }
}
