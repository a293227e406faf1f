//! Addresses of stored vertices.

/// The address of a vertex in level 0: the rank of its chunk in the upper 32 bits, and its row in
/// the chunk in the lower 32 bits.
///
/// The rank is the position of the chunk among the chunks with vertices, ordered by their
/// coordinates as tuples of integers. It is less than 2³¹, so an address is also a valid `i64`.
///
/// Addresses belong to one transaction of a store. Each change may move vertices to other rows and
/// chunks to other ranks.
///
/// ```
/// use zvf_model::row_id::RowId;
///
/// let id = RowId::new(2, 7).ok_or("out of range")?;
/// assert_eq!(u64::from(id), 8_589_934_599);
/// assert_eq!((id.chunk(), id.row()), (2, 7));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(u64);

impl RowId {
    /// Creates the address of a row of the chunk with this rank; `None` if one of them is too large.
    pub fn new(chunk: usize, row: u64) -> Option<Self> {
        let chunk = i32::try_from(chunk)
            .ok()
            .and_then(|rank| u64::try_from(rank).ok())?;
        let row = u32::try_from(row).ok()?;
        Some(Self((chunk << 32) | u64::from(row)))
    }

    /// Returns the rank of the chunk.
    pub fn chunk(self) -> u64 {
        self.0 >> 32
    }

    /// Returns the row in the chunk.
    pub fn row(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }
}

impl From<u64> for RowId {
    fn from(id: u64) -> Self {
        Self(id)
    }
}

impl From<RowId> for u64 {
    fn from(id: RowId) -> Self {
        id.0
    }
}
