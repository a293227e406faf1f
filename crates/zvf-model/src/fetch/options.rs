//! Options of reads.

/// Options of [`Fetch::cells`](super::Fetch::cells), which a [`Port`](super::Port) carries. An
/// implementation that delegates to another one passes them on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CellOptions {
    /// Cells that the cache lacks are not added to it: a scan reads each of them once.
    pub bypasses_cache: bool,
    /// The operator of a query plan that reads, by its name, which is unique in the plan. A port
    /// that counts or records reads attributes them to it.
    pub operator: Option<&'static str>,
}
