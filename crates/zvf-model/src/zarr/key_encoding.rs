//! How the chunks of an array are named.

use core::fmt::Write;

use super::extension;
use crate::{
    key::{Key, KeyError},
    metadata::{Fields, MetadataError, Place},
};

/// Names of chunks: style and separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkKeyEncoding {
    /// What surrounds the numbers.
    pub style: KeyStyle,
    /// What stands between them, `/` or `.`.
    pub separator: char,
}

/// What surrounds the numbers of a chunk's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStyle {
    /// `c/1/0/0`, or `c.1.0.0`; an array of rank 0 has the chunk `c`.
    Default,
    /// `1.0.0`, or `1/0/0`; an array of rank 0 has the chunk `0`.
    V2,
}

impl ChunkKeyEncoding {
    /// What every store known has: `c/1/0/0`.
    pub const DEFAULT: Self = Self {
        style: KeyStyle::Default,
        separator: '/',
    };

    pub(super) fn read(place: &Place<'_>) -> Result<Self, MetadataError> {
        let (name, _, configuration) = extension(place)?;
        let (style, separator) = match name {
            "default" => (KeyStyle::Default, '/'),
            "v2" => (KeyStyle::V2, '.'),
            _ => return Err(place.unknown_word(name, "the chunk key encoding default or v2")),
        };
        let configuration = configuration.map(|place| place.fields()).transpose()?;
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

    /// The key of chunk `index` of the array at `node`.
    pub(super) fn key(self, node: &Key, index: &[u64]) -> Result<Key, KeyError> {
        let mut path = match self.style {
            KeyStyle::Default => "c".to_owned(),
            KeyStyle::V2 if index.is_empty() => "0".to_owned(),
            KeyStyle::V2 => String::new(),
        };
        for number in index {
            if !path.is_empty() {
                path.push(self.separator);
            }
            // Writing to a String cannot fail.
            let _ = write!(path, "{number}");
        }
        node.join_path(&path)
    }
}
