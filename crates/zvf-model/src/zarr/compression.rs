//! Compressions of cells: their names, their codecs in the metadata of arrays, and back.

use serde_json::Value;

use super::codec::{Codec, Codecs};
use crate::metadata::JsonMembers;

/// Size of the blocks of Blosc in bytes, that of a block of the inventory of a sealed store.
/// `docs/adr/0051` has the measurements.
const BLOSC_BLOCK: usize = 16 << 10;

/// Compression of cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CellCompression {
    /// No compression. A reader can fetch any part of a cell.
    #[default]
    None,
    /// Zstandard at a level. Level 1 decodes up to twice as fast as level 3 at about equal size.
    Zstd(i32),
    /// Blosc: Zstandard over bit-shuffled bytes. A reader of a sealed store can fetch blocks of a cell.
    Blosc,
    /// LZ4 over bit-shuffled bytes, in Blosc, for the cells of chunks and for tables of numbers, and
    /// Zstandard at level 1 for other tables.
    ///
    /// Numbers take less space than with Zstandard alone, and are encoded and decoded faster. A reader
    /// of a sealed store can fetch blocks of a cell.
    /// `docs/adr/0034` has the measurements.
    Auto,
    /// Gzip at a level.
    Gzip(u32),
}

impl CellCompression {
    /// The words that [`parse`](Self::parse) takes, for messages.
    pub const WORDS: &str = "none, auto, zstd, zstd:LEVEL, blosc, gzip or gzip:LEVEL";

    /// All compressions, at the levels that they have if none is named.
    pub const ALL: [Self; 5] = [
        Self::None,
        Self::Zstd(1),
        Self::Blosc,
        Self::Auto,
        Self::Gzip(5),
    ];

    /// Returns the compression of a name and a level; `None` if the name is unknown, or the
    /// compression has no such level.
    pub fn new(name: &str, level: Option<i32>) -> Option<Self> {
        let named = Self::ALL.into_iter().find(|one| one.name() == name)?;
        match level {
            Some(level) => named.with_level(level),
            None => Some(named),
        }
    }

    /// Returns the compression at another level, if it has levels.
    fn with_level(self, level: i32) -> Option<Self> {
        match self {
            Self::Zstd(_) => Some(Self::Zstd(level)),
            Self::Gzip(_) => level.try_into().ok().map(Self::Gzip),
            Self::None | Self::Auto | Self::Blosc => None,
        }
    }

    /// Parses a name, or a name and a level as `zstd:3`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some((name, level)) => Self::new(name, Some(level.parse().ok()?)),
            None => Self::new(text, None),
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Auto => "auto",
            Self::Zstd(_) => "zstd",
            Self::Blosc => "blosc",
            Self::Gzip(_) => "gzip",
        }
    }

    /// Returns the level, if the compression has one, and the lowest and highest one.
    pub fn level(self) -> Option<(i64, [i64; 2])> {
        match self {
            Self::Zstd(level) => Some((level.into(), [1, 22])),
            Self::Gzip(level) => Some((level.into(), [0, 9])),
            Self::None | Self::Auto | Self::Blosc => None,
        }
    }

    /// Returns the codec for values of `size` bytes.
    pub fn codec(self, size: usize) -> Option<Codec> {
        match self {
            Self::None => None,
            Self::Auto if size == 1 => Some(Codec::zstd(1)),
            Self::Auto => Some(Codec::blosc("lz4", size)),
            Self::Zstd(level) => Some(Codec::zstd(level)),
            Self::Blosc => Some(Codec::blosc("zstd", size)),
            Self::Gzip(level) => Some(Codec::gzip(level)),
        }
    }

    /// Returns the compression of a chain of codecs, as cells are written with it.
    pub fn of(codecs: &Codecs) -> Self {
        let known = codecs.iter().rev().find_map(|codec| {
            let find = |is: &dyn Fn(&Codec) -> bool| {
                let is = |one: &Self| {
                    one.codec(2)
                        .is_some_and(|own| own.name == codec.name && is(&own))
                };
                Self::ALL.into_iter().find(is)
            };
            let named = find(&|own| own.setting("cname") == codec.setting("cname"))
                .or_else(|| find(&|_| true))?;
            let level = codec.setting("level").and_then(Value::as_i64);
            let level = level.and_then(|level| i32::try_from(level).ok());
            Some(
                level
                    .and_then(|level| named.with_level(level))
                    .unwrap_or(named),
            )
        });
        known.unwrap_or_default()
    }
}

impl Codec {
    /// Creates the codec of Zstandard at a level.
    pub fn zstd(level: i32) -> Self {
        let level = JsonMembers::default()
            .with("level", level)
            .with("checksum", false);
        Self::new("zstd", Some(level))
    }

    /// Creates the codec of gzip at a level.
    pub fn gzip(level: u32) -> Self {
        Self::new("gzip", Some(JsonMembers::default().with("level", level)))
    }

    /// Creates the codec of Blosc with a compressor, over the shuffled bits of numbers of `size`
    /// bytes, in blocks of 16 KiB. Readers fetch only the blocks with the rows of a query.
    pub fn blosc(compressor: &str, size: usize) -> Self {
        let settings = JsonMembers::default()
            .with("typesize", size)
            .with("cname", compressor)
            .with("clevel", 5)
            .with("shuffle", "bitshuffle")
            .with("blocksize", BLOSC_BLOCK);
        Self::new("blosc", Some(settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_compression_comes_back_from_its_name_and_from_its_codec() {
        for one in CellCompression::ALL {
            assert_eq!(CellCompression::parse(one.name()), Some(one));
            assert!(CellCompression::WORDS.contains(one.name()), "{one:?}");
            let codecs = Codecs::new(Codec::new("bytes", None), one.codec(4));
            assert_eq!(CellCompression::of(&codecs), one);
        }
        let deeper = CellCompression::Gzip(9);
        assert_eq!(CellCompression::parse("gzip:9"), Some(deeper));
        assert_eq!(
            CellCompression::of(&Codecs::new(Codec::new("bytes", None), deeper.codec(4))),
            deeper
        );
        assert_eq!(CellCompression::parse("blosc:1"), None);
        let other = Codecs::new(Codec::new("bytes", None), [Codec::blosc("blosclz", 4)]);
        assert_eq!(CellCompression::of(&other), CellCompression::Blosc);
    }
}
