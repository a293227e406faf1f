//! Reads: a key and a range of its object.

use core::{fmt, ops::Range};

use zvf_model::key::Key;

/// A range of an object's bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// All bytes.
    Full,
    /// The given bytes, all of which must exist.
    Bounded(Range<u64>),
    /// The bytes from an offset to the end: at least one.
    From(u64),
    /// The given number of bytes before the end, all of which must exist.
    Suffix(u64),
}

impl ByteRange {
    /// Returns whether the range contains no byte.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Bounded(range) => range.start >= range.end,
            Self::Suffix(bytes) => *bytes == 0,
            Self::Full | Self::From(_) => false,
        }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("all bytes"),
            Self::Bounded(range) => write!(f, "bytes {}..{}", range.start, range.end),
            Self::From(start) => write!(f, "bytes {start}.."),
            Self::Suffix(bytes) => write!(f, "the last {bytes} bytes"),
        }
    }
}

/// A key and the range to read of its object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// The key of the object.
    pub key: Key,
    /// The bytes to read.
    pub range: ByteRange,
}

impl Read {
    /// Creates a read of a whole object.
    pub fn full(key: Key) -> Self {
        Self::new(key, ByteRange::Full)
    }

    /// Creates a read of the given bytes of an object.
    pub fn bounded(key: Key, range: Range<u64>) -> Self {
        Self::new(key, ByteRange::Bounded(range))
    }

    /// Creates a read of a range of an object.
    pub fn new(key: Key, range: ByteRange) -> Self {
        Self { key, range }
    }
}
