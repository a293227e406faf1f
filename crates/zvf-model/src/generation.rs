//! Generations of the format.

use core::fmt;

use crate::version::Version;

/// A generation of the on-disk format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// 0.6: fragment index; one array a chunk.
    V0_6,
    /// 0.7: chunk shape of a level; manifests as one array.
    V0_7,
    /// 0.8.0: a cell for each tuple of chunks, with permutations.
    V0_8_0,
    /// 0.8.1: attributes of objects and groups as plain arrays; native shards.
    V0_8_1,
    /// 0.9: one array for all chunks; all links in one family.
    V0_9,
    /// 0.10, a preview: cells and paths of 0.9; attributes as a convention of Zarr.
    V0_10,
}

impl Generation {
    /// All generations, oldest first.
    pub const ALL: [Self; 6] = [
        Self::V0_6,
        Self::V0_7,
        Self::V0_8_0,
        Self::V0_8_1,
        Self::V0_9,
        Self::V0_10,
    ];

    /// Returns the generation of stores with this version; `None` if it is unknown.
    ///
    /// ```
    /// use zvf_model::{generation::Generation, version::Version};
    ///
    /// let of = |x, y, z| Generation::of_version(Version::new(x, y, z));
    /// assert_eq!(of(0, 8, 3), Some(Generation::V0_8_1));
    /// assert_eq!(of(0, 5, 0), None);
    /// assert_eq!(of(1, 0, 0), None);
    /// ```
    pub fn of_version(version: Version) -> Option<Self> {
        match (version.major, version.minor, version.patch) {
            (0, 6, _) => Some(Self::V0_6),
            (0, 7, _) => Some(Self::V0_7),
            (0, 8, 0) => Some(Self::V0_8_0),
            (0, 8, _) => Some(Self::V0_8_1),
            (0, 9, _) => Some(Self::V0_9),
            (0, 10, _) => Some(Self::V0_10),
            _ => None,
        }
    }

    /// Returns whether cells and paths are those of 0.9: one array for all chunks, and all links in one
    /// family. Only stores of these generations can be changed.
    pub fn is_current(self) -> bool {
        self >= Self::V0_9
    }

    /// Returns whether the generation is a preview: its specification is published, but no reference
    /// reads it yet, and details may change.
    pub fn is_preview(self) -> bool {
        self >= Self::V0_10
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V0_6 => "0.6",
            Self::V0_7 => "0.7",
            Self::V0_8_0 => "0.8.0",
            Self::V0_8_1 => "0.8.1",
            Self::V0_9 => "0.9",
            Self::V0_10 => "0.10",
        })
    }
}
