//! What is in a store, counted.

use futures_util::future::{BoxFuture, try_join_all};
use zvf_model::{generation::Generation, grid::Bounds, root::GeometryType};
use zvf_store::ListError;

use super::{Dataset, LevelInfo, count_level};
use crate::{
    error::Error,
    failure::{Failure, boxed},
};

/// A summary of a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoreInfo {
    /// The generation it was found to be.
    pub generation: Generation,
    /// Which form of it.
    pub profile: &'static str,
    /// What it holds.
    pub geometry: Vec<GeometryType>,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Where its vertices are, as the root declares it; `None` when malformed.
    pub bounds: Option<Bounds>,
    /// The levels, the finest first.
    pub levels: Vec<LevelInfo>,
    /// What was wrong in the metadata of the store and its levels and could be
    /// read past.
    pub notes: Vec<String>,
}

impl Dataset {
    /// Counts what is there.
    ///
    /// Vertices are counted from what is stored, not from the declarations, which
    /// are unreliable: from metadata where a chunk is an array, from its size and
    /// first bytes where it is a plain file, by reading it where it is compressed
    /// or in a shard. Manifests are read. The generation is settled by all nodes
    /// that tell, levels are those that are there, named by the root or not. The
    /// store must be one that can list.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::Dataset;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("points.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    /// # let points = Geometry::new(positions);
    /// # let mut design = Design::new(GeometryType::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let info = Dataset::open(address).await?.info().await?;
    /// assert_eq!(info.levels[0].vertices, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error`] when anything that is counted cannot be read, or the store cannot
    /// list.
    pub fn info(&self) -> BoxFuture<'_, Result<StoreInfo, Error>> {
        boxed(async move {
            let counted = async { self.surveyed().await?.summary().await };
            match counted.await {
                Err(Failure::List(source @ ListError::Unlistable { .. })) => {
                    let address = self.address().to_owned();
                    Err(Failure::Uncountable { address, source })
                }
                counted => counted,
            }
        })
    }

    async fn summary(&self) -> Result<StoreInfo, Failure> {
        let levels = self.all_levels().await?;
        let of_levels = levels.iter().flat_map(|level| &level.notes);
        let of_metadata = self
            .root()
            .notes
            .iter()
            .chain(of_levels)
            .map(ToString::to_string);
        let of_layout = self.detection().notes.iter().map(ToString::to_string);
        let notes = of_layout.chain(of_metadata).collect();
        let levels = levels.iter().map(|level| count_level(self, level));
        let root = self.root();
        Ok(StoreInfo {
            generation: self.detection().generation,
            profile: self.layout().profile(),
            geometry: root.geometry_kinds.clone(),
            axes: root.axes.iter().map(|axis| axis.name.clone()).collect(),
            bounds: root.bounds.clone(),
            levels: try_join_all(levels).await?,
            notes,
        })
    }
}
