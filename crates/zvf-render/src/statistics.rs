//! Statistics of a store's chunks and fragments.

use zvf::{Dataset, LevelId, StoreInfo};
use zvf_format::fragment::FragmentIndex;
use zvf_model::layout::ArrayRole;

use crate::error::RenderError;

/// Number of fragment indexes read per batch.
const BATCH_INDEXES: usize = 256;

/// A histogram of sizes by powers of two: bucket 0 counts zeros, bucket n counts 2ⁿ⁻¹ to 2ⁿ - 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeHistogram {
    /// Counts by bucket, up to the last bucket that is not empty.
    pub buckets: Vec<u64>,
    /// Number of values.
    pub count: u64,
    /// Sum of all values.
    pub sum: u64,
    /// Largest value.
    pub max: u64,
}

impl SizeHistogram {
    fn add(&mut self, number: u64) {
        let class = usize::try_from(u64::BITS - number.leading_zeros()).unwrap_or(0);
        if self.buckets.len() <= class {
            self.buckets.resize(class + 1, 0);
        }
        if let Some(count) = self.buckets.get_mut(class) {
            *count += 1;
        }
        self.count += 1;
        self.sum = self.sum.saturating_add(number);
        self.max = self.max.max(number);
    }

    /// Returns the mean, or `None` for an empty histogram.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// Sizes of the chunks and fragments of a level.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStatistics {
    /// The level.
    pub level: LevelId,
    /// Number of vertices, if it can be counted.
    pub vertices: Option<u64>,
    /// Total size of the level's files in bytes.
    pub bytes: u64,
    /// Vertices per chunk.
    pub chunks: SizeHistogram,
    /// Vertices per fragment.
    pub fragments: SizeHistogram,
    /// Number of chunks whose fragment index cannot be read.
    pub unreadable_chunks: u64,
}

/// Counts the vertices of all chunks and fragments. Reads the fragment index of every chunk, but
/// no vertices.
///
/// ```
/// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
/// use zvf::Dataset;
/// use zvf_render::{Plot, level_statistics};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
/// # let mut design = Design::new(GeometryKind::Points);
/// # design.chunk_shape = Some(vec![10.0; 3]);
/// # zvf::create(address, Geometry::new(positions), design, &Default::default()).await?;
/// let points = Dataset::open(address).await?;
/// let levels = level_statistics(&points, &points.info().await?).await?;
/// assert_eq!(levels[0].vertices, Some(3));
/// let drawing = Plot::new("three points", &levels).svg();
/// assert!(drawing.starts_with("<svg"));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// Returns [`RenderError`] if a level cannot be opened. Chunks that cannot be read are counted in
/// [`LevelStatistics::unreadable_chunks`].
pub async fn level_statistics(
    dataset: &Dataset,
    info: &StoreInfo,
) -> Result<Vec<LevelStatistics>, RenderError> {
    let catalog = dataset.catalog();
    let mut levels = Vec::with_capacity(info.levels.len());
    for level in &info.levels {
        let mut shape = LevelStatistics {
            level: level.level,
            vertices: level.vertices,
            bytes: level.bytes,
            chunks: SizeHistogram::default(),
            fragments: SizeHistogram::default(),
            unreadable_chunks: 0,
        };
        let part = catalog
            .stored_array(level.level, &ArrayRole::VertexFragments)
            .await;
        if let Some(part) = part.map_err(zvf::Error::from)? {
            for chunks in part.chunks().chunks(BATCH_INDEXES) {
                for cell in catalog.stored_cells(&part, chunks).await {
                    match cell.ok().as_deref().map(FragmentIndex::parse) {
                        Some(Ok(index)) => shape.add(&index),
                        _ => shape.unreadable_chunks += 1,
                    }
                }
            }
        }
        levels.push(shape);
    }
    Ok(levels)
}

impl LevelStatistics {
    fn add(&mut self, index: &FragmentIndex<'_>) {
        for rows in index {
            self.fragments.add(rows.len());
        }
        // Several fragments may contain a row.
        self.chunks.add(index.extent());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two() {
        let mut histogram = SizeHistogram::default();
        for number in [0, 1, 2, 3, 4, 7, 8, u64::MAX] {
            histogram.add(number);
        }
        assert_eq!(histogram.buckets.get(..5), Some(&[1, 1, 2, 2, 1][..]));
        assert_eq!(histogram.buckets.len(), 65);
        assert_eq!((histogram.count, histogram.max), (8, u64::MAX));
    }
}
