//! The contents of a store, counted.

use futures_util::future::try_join_all;
use zvf_model::{generation::Generation, geometry_kind::GeometryKind, grid::Bounds, word::Word};
use zvf_store::ListError;

use super::{Dataset, LevelInfo, count_level};
use crate::{
    error::{Error, boxed},
    failure::Failure,
};

/// A summary of a store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoreInfo {
    /// The detected generation.
    pub generation: Generation,
    /// The profile of the generation.
    pub profile: &'static str,
    /// The kinds of geometry it contains.
    pub geometry: Vec<Word<GeometryKind>>,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// The bounds that the root declares; `None` when malformed.
    pub bounds: Option<Bounds>,
    /// The levels, finest first.
    pub levels: Vec<LevelInfo>,
    /// Faults in the metadata of the store and its levels that do not prevent reading.
    pub notes: Vec<String>,
}

impl Dataset {
    /// Counts the contents of the store.
    ///
    /// Declared counts are unreliable, so that vertices are counted from the stored data: from
    /// metadata where a chunk is an array, from the size and first bytes of a plain file, and by
    /// reading a chunk that is compressed or in a shard. Manifests are read. The generation is
    /// detected from all nodes, and existing levels are counted even if the root does not name
    /// them. The store must support listing.
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
    /// # let mut design = Design::new(GeometryKind::Points);
    /// # design.chunk_shape = Some(vec![10.0; 3]);
    /// # zvf::create(address, &points, design, &Default::default()).await?;
    /// let info = Dataset::open(address).await?.info().await?;
    /// assert_eq!(info.levels[0].vertices, Some(3));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](zvf_model::error_kind::ErrorKind::Unsupported) when the store cannot be listed;
    /// [`Error`] when a counted part cannot be read.
    pub async fn info(&self) -> Result<StoreInfo, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                let counted = async { dataset.surveyed().await?.summary().await };
                match counted.await {
                    Err(Failure::List(source @ ListError::Unlistable { .. })) => {
                        let address = dataset.address().to_owned();
                        Err(Failure::Uncountable { address, source })
                    }
                    counted => counted,
                }
            })
        }))
        .await
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
        let generation = self.detection().generation;
        let preview = generation.is_preview().then(|| {
            format!(
                "generation {generation} is a preview: no other program reads it yet, and details \
                 may change"
            )
        });
        let notes = preview.into_iter().chain(of_layout).chain(of_metadata);
        let levels = levels.iter().map(|level| count_level(self, level));
        let root = self.root();
        Ok(StoreInfo {
            generation,
            profile: self.layout().profile(),
            geometry: root.geometry_kinds.clone(),
            axes: root.axes.iter().map(|axis| axis.name.clone()).collect(),
            bounds: root.bounds.clone(),
            levels: try_join_all(levels).await?,
            notes: notes.collect(),
        })
    }
}
