//! Decompression of bodies within a limit.
//!
//! A body is decompressed once all of it has arrived, so the request limits its compressed size; the plain
//! size is limited here, for each layer of compression.

use std::io::Read;

use bytes::Bytes;

/// The most layers of compression.
const LAYERS: usize = 2;

/// The reason why a body could not be decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Undecoded {
    /// The plain body exceeds the limit.
    TooLarge,
    /// The encoding is unknown, or the body is not in it.
    Broken(String),
}

/// Decompresses a body by the value of its `Content-Encoding`.
pub(crate) fn decode(body: Bytes, encoding: &str, most: u64) -> Result<Bytes, Undecoded> {
    let layers: Vec<String> = encoding
        .split(',')
        .map(|layer| layer.trim().to_ascii_lowercase())
        .filter(|layer| !layer.is_empty() && layer != "identity")
        .collect();
    if layers.len() > LAYERS {
        let count = layers.len();
        return Err(Undecoded::Broken(format!(
            "it was compressed {count} times; at most {LAYERS} are undone"
        )));
    }
    let mut body = body;
    for layer in layers.iter().rev() {
        body = match layer.as_str() {
            "gzip" | "x-gzip" => limited(flate2::read::MultiGzDecoder::new(&*body), layer, most)?,
            // Servers send both the wrapped form, which the standard requires, and the bare one.
            "deflate" => match limited(flate2::read::ZlibDecoder::new(&*body), layer, most) {
                Err(Undecoded::Broken(_)) => limited(flate2::read::DeflateDecoder::new(&*body), layer, most)?,
                other => other?,
            },
            "br" => limited(brotli_decompressor::Decompressor::new(&*body, 16 * 1024), layer, most)?,
            other => return Err(Undecoded::Broken(format!("the encoding `{}` is not known", shown(other)))),
        };
    }
    Ok(body)
}

fn limited(source: impl Read, layer: &str, most: u64) -> Result<Bytes, Undecoded> {
    let mut plain = Vec::new();
    let read = source.take(most.saturating_add(1)).read_to_end(&mut plain);
    read.map_err(|error| Undecoded::Broken(format!("it is not in `{layer}`: {error}")))?;
    if u64::try_from(plain.len()).unwrap_or(u64::MAX) > most {
        return Err(Undecoded::TooLarge);
    }
    Ok(plain.into())
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn undoes_each_encoding() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(b"words").unwrap();
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(b"words").unwrap();
        // "words" in one uncompressed block of brotli.
        let brotli = vec![0x0b, 0x02, 0x80, b'w', b'o', b'r', b'd', b's', 0x03];
        for (encoding, body) in [
            ("", b"words".to_vec()),
            ("identity", b"words".to_vec()),
            ("gzip", gzip(b"words")),
            ("GZIP", gzip(b"words")),
            ("gzip, gzip", gzip(&gzip(b"words"))),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", bare.finish().unwrap()),
            ("br", brotli),
        ] {
            assert_eq!(decode(body.into(), encoding, 100).unwrap(), "words", "{encoding}");
        }
    }

    #[test]
    fn refuses_bombs_at_the_limit() {
        let bomb = gzip(&vec![0; 50 << 20]);
        assert!(bomb.len() < 100_000);
        assert_eq!(decode(bomb.clone().into(), "gzip", 1 << 20), Err(Undecoded::TooLarge));
        let nested = gzip(&bomb);
        assert_eq!(decode(nested.into(), "gzip, gzip", 1 << 20), Err(Undecoded::TooLarge));
    }

    #[test]
    fn refuses_bodies_that_are_not_in_their_encoding() {
        for (encoding, body) in [
            ("gzip", b"words".to_vec()),
            ("br", vec![0xff; 40]),
            ("deflate", vec![0xff; 40]),
            ("gzip", gzip(b"words that are cut off before their end")[..20].to_vec()),
            ("zstd", b"words".to_vec()),
            ("gzip, gzip, gzip", gzip(&gzip(&gzip(b"words")))),
        ] {
            assert!(matches!(decode(body.into(), encoding, 100), Err(Undecoded::Broken(_))), "{encoding}");
        }
    }
}
