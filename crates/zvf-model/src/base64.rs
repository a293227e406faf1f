//! Base64 with padding, for bytes in JSON and in XML.

use std::sync::LazyLock;

use thiserror::Error;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the number of a letter.
fn value_of(letter: u8) -> Option<u8> {
    Some(match letter {
        b'A'..=b'Z' => letter.wrapping_sub(b'A'),
        b'a'..=b'z' => letter.wrapping_sub(b'a').wrapping_add(26),
        b'0'..=b'9' => letter.wrapping_sub(b'0').wrapping_add(52),
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// The value of each letter; 64 for other characters.
static VALUES: LazyLock<[u8; 256]> = LazyLock::new(|| {
    let mut letter = 0_u8;
    [(); 256].map(|()| {
        let value = value_of(letter).unwrap_or(64);
        letter = letter.wrapping_add(1);
        value
    })
});

/// A fault of base64 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Base64Error {
    /// A character is not one of base64.
    #[error("the text has other characters than those of base64")]
    Character,
    /// Characters follow the padding.
    #[error("the text continues after its padding")]
    AfterEnd,
    /// The last byte is incomplete, or the padding is too long.
    #[error("the text ends inside a byte")]
    Incomplete,
}

/// Encodes bytes.
///
/// ```
/// use zvf_model::base64;
///
/// assert_eq!(base64::encode(b"fo"), "Zm8=");
/// assert_eq!(base64::decode(b"Zm8=")?, b"fo");
/// # Ok::<(), base64::Base64Error>(())
/// ```
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4_usize {
            let index =
                usize::try_from(bits >> (18_usize.saturating_sub(at.saturating_mul(6))) & 63);
            let letter = index.ok().and_then(|index| LETTERS.get(index));
            let is_given = at <= three.len();
            text.push(char::from(
                letter.copied().filter(|_| is_given).unwrap_or(b'='),
            ));
        }
    }
    text
}

/// Decodes text. White space between the characters is skipped.
///
/// # Errors
///
/// [`Base64Error`] for other characters, and for text that ends inside a byte.
pub fn decode(text: &[u8]) -> Result<Vec<u8>, Base64Error> {
    let mut bytes = Vec::with_capacity(text.len().div_ceil(4).saturating_mul(3));
    let values = &*VALUES;
    let whole = text.chunks_exact(4).take_while(|four| {
        let &[a, b, c, d] = four else { return false };
        let value = |letter: &u8| values.get(usize::from(*letter)).copied().unwrap_or(64);
        let [a, b, c, d] = [a, b, c, d].map(value);
        let is_whole = (a | b | c | d) < 64;
        if is_whole {
            bytes.extend_from_slice(&[a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]);
        }
        is_whole
    });
    let decoded = whole.count().saturating_mul(4);
    let rest = text.get(decoded..).unwrap_or_default();
    let (mut bits, mut count, mut padding) = (0_u32, 0_u32, 0_u32);
    for letter in rest.iter().filter(|letter| !letter.is_ascii_whitespace()) {
        if *letter == b'=' {
            padding = padding.saturating_add(1);
            continue;
        }
        let value = value_of(*letter).ok_or(Base64Error::Character)?;
        if padding > 0 {
            return Err(Base64Error::AfterEnd);
        }
        bits = bits << 6 | u32::from(value);
        count = count.saturating_add(6);
        if count >= 8 {
            count = count.saturating_sub(8);
            bytes.push(u8::try_from(bits >> count & 0xff).unwrap_or(0));
        }
    }
    if count == 6 || padding > 2 {
        return Err(Base64Error::Incomplete);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for (bytes, text) in [
            (b"".as_slice(), ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (&[0xff, 0xfe, 0, 0x7f], "//4Afw=="),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text.as_bytes()).unwrap(), bytes);
        }
        assert_eq!(decode(b"Zm\n9v").unwrap(), b"foo");
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert_eq!(decode(text.as_bytes()).unwrap(), all);
        for at in 0..text.len() {
            let (before, after) = text.split_at(at);
            assert_eq!(decode(format!("{before} {after}").as_bytes()).unwrap(), all);
            let damaged = format!("{before}*{after}");
            assert_eq!(decode(damaged.as_bytes()), Err(Base64Error::Character));
        }
        for damaged in ["Zg==Zg", "Z", "Zm9*", "Zg==="] {
            assert!(decode(damaged.as_bytes()).is_err(), "{damaged}");
        }
    }
}
