//! Names of the chunks of an array.

use serde_json::Value;

use super::{extension, named};
use crate::{
    key::{Key, KeyError},
    metadata::{Fields, JsonField, JsonMembers, MetadataError},
};

const DEFAULT: &str = "default";
const V2: &str = "v2";

/// Names of chunks: style and separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkKeyEncoding {
    /// Form of the name around the numbers.
    pub style: KeyStyle,
    /// Separator of the numbers, `/` or `.`.
    pub separator: char,
}

/// Form of a chunk's name around the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStyle {
    /// `c/1/0/0`, or `c.1.0.0`; an array of rank 0 has the chunk `c`.
    Default,
    /// `1.0.0`, or `1/0/0`; an array of rank 0 has the chunk `0`.
    V2,
}

impl ChunkKeyEncoding {
    /// The encoding of every known store: `c/1/0/0`.
    pub const DEFAULT: Self = Self {
        style: KeyStyle::Default,
        separator: '/',
    };

    pub(super) fn read(place: &JsonField<'_>) -> Result<Self, MetadataError> {
        let (name, configuration) = extension(place)?;
        let (style, separator) = match name {
            DEFAULT => (KeyStyle::Default, '/'),
            V2 => (KeyStyle::V2, '.'),
            _ => return Err(place.unknown_word(name, "the chunk key encoding default or v2")),
        };
        let configuration = configuration.map(|(_, place)| place.fields()).transpose()?;
        let given = configuration
            .as_ref()
            .and_then(|fields: &Fields<'_>| fields.get("separator"));
        let separator = match given {
            None => separator,
            Some(given) => match given.text()? {
                "/" => '/',
                "." => '.',
                other => return Err(given.unknown_word(other, "\"/\" or \".\"")),
            },
        };
        Ok(Self { style, separator })
    }

    pub(super) fn to_json(self) -> Value {
        let name = match self.style {
            KeyStyle::Default => DEFAULT,
            KeyStyle::V2 => V2,
        };
        let separator = JsonMembers::default().with("separator", self.separator.to_string());
        named(name, Some(&separator.finish())).into()
    }

    /// Returns the key of chunk `index` of the array at `node`. Queries create one for each cell,
    /// so it takes a single allocation and no validation, because all segments are numbers.
    pub(super) fn key(self, node: &Key, index: &[u64]) -> Result<Key, KeyError> {
        let digits = |number: &u64| {
            number
                .checked_ilog10()
                .map_or(1, |log| log.saturating_add(1))
        };
        let digits = index.iter().map(digits).fold(0, u32::saturating_add);
        let digits = usize::try_from(digits).unwrap_or(0);
        // Slashes and separators, and a `c` or a `0`.
        let others = index.len().saturating_add(2);
        let size = node.as_str().len().saturating_add(digits);
        let mut key = String::with_capacity(size.saturating_add(others));
        key.push_str(node.as_str());
        if !node.is_root() {
            key.push('/');
        }
        let is_default = self.style == KeyStyle::Default;
        if is_default {
            key.push('c');
        } else if index.is_empty() {
            key.push('0');
        }
        for (at, number) in index.iter().enumerate() {
            if is_default || at > 0 {
                key.push(self.separator);
            }
            push_number(&mut key, *number);
        }
        Key::within_limits(key)
    }
}

/// Appends a number as text, because `write!` takes several times as long.
fn push_number(text: &mut String, number: u64) {
    if number >= 10 {
        push_number(text, number / 10);
    }
    let digit = u32::try_from(number % 10).unwrap_or(0);
    text.push(char::from_digit(digit, 10).unwrap_or('0'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_full() {
        let numbers = [0, 9, 10, 99, 100, 1_234_567_890, u64::MAX];
        let node = Key::parse("0/vertices").unwrap();
        for number in numbers {
            let key = ChunkKeyEncoding::DEFAULT.key(&node, &[number, 7]);
            assert_eq!(key.unwrap().as_str(), format!("0/vertices/c/{number}/7"));
        }
        let deep = ChunkKeyEncoding::DEFAULT.key(&node, &[0; 200]);
        assert!(deep.is_err(), "{deep:?}");
    }
}
