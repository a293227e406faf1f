//! Bytes as hexadecimal text.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(crate) fn decode(text: &str) -> Result<Vec<u8>> {
    let whole = text.is_ascii() && text.len().is_multiple_of(2);
    ensure!(whole, "not hexadecimal");
    let pairs = (0..text.len()).step_by(2).map(|at| &text[at..at + 2]);
    let bytes = pairs.map(|pair| u8::from_str_radix(pair, 16));
    bytes.collect::<Result<_, _>>().context("not hexadecimal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips() {
        assert_eq!(encode(&[0, 15, 255]), "000fff");
        assert_eq!(decode("000fff").unwrap(), [0, 15, 255]);
        assert!(decode("0").is_err() && decode("zz").is_err());
    }
}
