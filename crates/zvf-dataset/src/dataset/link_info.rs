//! Lists of the links of a level, and the links as they are stored.

use zvf_catalog::{Selection, StoredLinks};
use zvf_format::path::Delta;
use zvf_model::{key::Key, level::LevelId};

use super::Dataset;
use crate::error::{Error, boxed};

/// The links of a level to one level, or inside it, as their metadata describe them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkInfo {
    /// The other level minus this one: 0 for links inside the level, positive for coarser levels.
    pub delta: i32,
    /// The nodes of the links with the number of ends of a link: one from 0.9 on; up to 0.8.1
    /// `links/<delta>` for ends in chunks of equal coordinates, and `cross_chunk_links/<delta>`.
    pub families: Vec<(Key, usize)>,
    /// The attributes with the nodes of their values, by name.
    pub attributes: Vec<(String, Vec<Key>)>,
}

impl Dataset {
    /// Lists the links of a level by delta, ascending, with their attributes. Reads metadata only.
    ///
    /// ```
    /// # use zvf::{Design, Geometry, GeometryKind, NumericColumn};
    /// use zvf::{Dataset, LevelId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let address = folder.path().join("graph.zv").display().to_string();
    /// # let address = address.as_str();
    /// # let positions = NumericColumn::float32(2, [0.0, 0.0, 9.0, 1.0]);
    /// # let graph = Geometry::builder(positions).links(2, vec![0, 1]).build()?;
    /// # zvf::create(address, &graph, Design::new(GeometryKind::Graphs), &Default::default()).await?;
    /// let links = Dataset::open(address).await?.link_info(LevelId::FULL).await?;
    /// assert_eq!((links[0].delta, links[0].families[0].1), (0, 2));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`CatalogError`](zvf_catalog::CatalogError) if the level does not exist, cannot be listed, or has
    /// damaged metadata.
    pub async fn link_info(&self, level: LevelId) -> Result<Vec<LinkInfo>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                let catalog = dataset.catalog();
                let mut found = Vec::new();
                for delta in catalog.stored_link_deltas(level).await? {
                    let Some(cells) = catalog.all_link_cells(level, delta).await? else {
                        continue;
                    };
                    let families = cells.families().into_iter();
                    let names = cells.attributes().enumerate();
                    found.push(LinkInfo {
                        delta: delta.levels(),
                        families: families.map(|(key, width)| (key, width.get())).collect(),
                        attributes: names
                            .map(|(at, (name, _))| (name.to_owned(), cells.attribute_nodes(at)))
                            .filter(|(_, nodes)| !nodes.is_empty())
                            .collect(),
                    });
                }
                Ok(found)
            })
        }))
        .await
    }

    /// Reads all links of a level to the level `delta` levels on, with their attributes, as they are
    /// stored: chunk and row of each end. Of links to another level, the first end is in this level.
    /// Returns `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`CatalogError`](zvf_catalog::CatalogError), also if the links exceed the memory budget.
    pub async fn stored_links(
        &self,
        level: LevelId,
        delta: i32,
    ) -> Result<Option<StoredLinks>, Error> {
        boxed(self.at_one_state(move |dataset| {
            Box::pin(async move {
                let (catalog, all) = (dataset.catalog(), Selection::All);
                let links = catalog.stored_links(level, Delta::new(delta), &all, false);
                Ok(links.await?)
            })
        }))
        .await
    }
}
