//! How a store is cut up: how many vertices are in its chunks and fragments.

use zvf::{
    Dataset, StoreInfo,
    format::fragment::FragmentIndex,
    model::{layout::Part, level::LevelId},
};

use crate::error::RenderError;

/// Chunks whose fragments are read at once.
const AT_ONCE: usize = 256;

/// How often numbers occur, by powers of two: class n counts those of 2ⁿ⁻¹ to 2ⁿ - 1, class 0
/// zeros.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeHistogram {
    /// Counts by class; as long as it takes.
    pub buckets: Vec<u64>,
    /// How many numbers there are.
    pub count: u64,
    /// The sum of all.
    pub sum: u64,
    /// The greatest.
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

    /// The mean of all numbers.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// How a level is cut up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelStatistics {
    /// Its number.
    pub level: LevelId,
    /// Vertices, when they can be counted.
    pub vertices: Option<u64>,
    /// Bytes of all its files.
    pub bytes: u64,
    /// Vertices of chunks.
    pub chunks: SizeHistogram,
    /// Vertices of fragments.
    pub fragments: SizeHistogram,
    /// Chunks whose fragments cannot be read.
    pub unreadable_chunks: u64,
}

/// Counts what is in chunks and fragments. Reads the fragment index of every chunk, and no
/// vertices.
///
/// ```
/// # use zvf::build::{Design, Geometry, GeometryKind, Numbers};
/// use zvf::Dataset;
/// use zvf_render::{Plot, level_statistics};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let address = folder.path().join("points.zv").display().to_string();
/// # let address = address.as_str();
/// # let positions = Numbers::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
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
/// [`RenderError`] when a level cannot be opened. Chunks that cannot be read are counted.
pub async fn level_statistics(
    dataset: &Dataset,
    info: &StoreInfo,
) -> Result<Vec<LevelStatistics>, RenderError> {
    let session = dataset.session();
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
        let part = session
            .stored_array(level.level, &Part::VertexFragments)
            .await;
        if let Some(part) = part.map_err(zvf::Error::from)? {
            for chunks in part.chunks().chunks(AT_ONCE) {
                for cell in session.stored_cells(&part, chunks).await {
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
        // Fragments may share rows.
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
