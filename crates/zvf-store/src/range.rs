//! What a read asks for: a key and a part of its object.

use core::{fmt, ops::Range};

use zvf_model::key::Key;

/// A part of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ByteRange {
    /// All of it.
    Full,
    /// These bytes, all of which must be there.
    Bounded(Range<u64>),
    /// From here to the end: one byte or more.
    From(u64),
    /// So many bytes before the end, all of which must be there.
    Suffix(u64),
}

impl ByteRange {
    /// Whether no byte is asked for.
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

/// One read: a key and a part of its object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Read {
    /// Where the object is.
    pub key: Key,
    /// Which part of it.
    pub range: ByteRange,
}

impl Read {
    /// All of an object.
    pub fn full(key: Key) -> Self {
        Self::new(key, ByteRange::Full)
    }

    /// These bytes of an object.
    pub fn bounded(key: Key, range: Range<u64>) -> Self {
        Self::new(key, ByteRange::Bounded(range))
    }

    /// A part of an object.
    pub fn new(key: Key, range: ByteRange) -> Self {
        Self { key, range }
    }
}
