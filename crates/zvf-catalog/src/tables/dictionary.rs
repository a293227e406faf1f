//! Dictionary encoding of text while it is read.

use std::{collections::HashMap, sync::Arc};

use zvf_model::column::ColumnValues;

/// Builds dictionary codes while values are read. Codes are numbered in order of appearance.
#[derive(Debug, Default)]
pub(super) struct DictionaryBuilder {
    numbers: HashMap<Arc<str>, u32>,
    in_order: Vec<Arc<str>>,
    codes: Vec<u32>,
}

impl DictionaryBuilder {
    pub(super) fn push(&mut self, word: &str) {
        let next = u32::try_from(self.in_order.len()).unwrap_or(u32::MAX);
        let number = if let Some(number) = self.numbers.get(word) {
            *number
        } else {
            let word: Arc<str> = word.into();
            self.numbers.insert(Arc::clone(&word), next);
            self.in_order.push(word);
            next
        };
        self.codes.push(number);
    }

    pub(super) fn finish(self) -> ColumnValues {
        let words = self.in_order.iter().map(|word| (**word).to_owned());
        ColumnValues::Dictionary {
            codes: self.codes,
            words: words.collect(),
        }
    }
}

/// Decodes little-endian UTF-32 padded with zeros; `None` if it is not valid text.
pub(super) fn utf32(bytes: &[u8]) -> Option<String> {
    let mut letters = bytes.as_chunks::<4>().0;
    while let [rest @ .., [0, 0, 0, 0]] = letters {
        letters = rest;
    }
    let letter = |letter: &[u8; 4]| char::from_u32(u32::from_le_bytes(*letter));
    letters.iter().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailing_zeros_are_padding() {
        let letters = |letters: &[u32]| -> Vec<u8> {
            letters
                .iter()
                .flat_map(|letter| letter.to_le_bytes())
                .collect()
        };
        let check = |codes: &[u32], expected: Option<&str>| {
            assert_eq!(utf32(&letters(codes)).as_deref(), expected, "{codes:x?}");
        };
        check(&[], Some(""));
        check(&[0, 0], Some(""));
        check(&[0x61, 0x1f600, 0, 0], Some("a\u{1f600}"));
        check(&[0, 0x61], Some("\0a"));
        check(&[0xd800], None);
        check(&[0x0011_0000], None);
    }
}
