//! Opens link arrays of 0.9: one per tuple of offsets between chunks.

use std::sync::Arc;

use futures_util::future::{try_join, try_join_all};
use zvf_format::{
    links::AxisScales,
    path::{Delta, Offsets},
};
use zvf_model::{
    array::{CellAttribute, LinkArray, LinkFamily, LinkStore},
    grid::ChunkCoord,
    key::Key,
    layout::{ArrayRole, LinkOffsets},
};

use super::{
    AttributeCells, LinkCellForm, LinkCellSource, LinkSource, LinkStorage, LinkView, OpenedLinks,
    unlisted,
};
use crate::{
    catalog::Catalog,
    chunked_array::ChunkedArray,
    error::{CatalogError, Damage, Fault},
    level::Level,
};

impl Catalog<'_> {
    /// Opens all link arrays of a delta.
    pub(super) async fn link_arrays(
        &self,
        level: &Level,
        target: Option<&Level>,
        delta: Delta,
        attributes: &[String],
        view: LinkView,
    ) -> Result<OpenedLinks, CatalogError> {
        let part = ArrayRole::LinkFamily(delta);
        let key = self.link_node(level, &part)?;
        let node = self.chunked_array(level, &part);
        let segments = async {
            match self.children(level, &key).await {
                Ok(names) => Ok(Some(names)),
                Err(error) if unlisted::is_unlistable(&error) => Ok(None),
                Err(error) => Err(error),
            }
        };
        // Without groups that can be read, cells are read whole.
        let groups = async {
            let groups = if level.metadata.fragment_link_groups && delta == Delta::INTRA {
                self.chunked_array(level, &ArrayRole::LinkFragments).await
            } else {
                Ok(None)
            };
            Ok(groups.ok().flatten())
        };
        let ((node, groups), listed) = try_join(try_join(node, groups), segments).await?;
        let Some(node) = node else {
            return match listed {
                Some(names) if !names.is_empty() => Err(Damage::new(&key, Fault::Missing).into()),
                _ => Ok(OpenedLinks::default()),
            };
        };
        let family = LinkFamily::parse(&key, delta, &node.attributes)?.value;
        let Some(family) = family else {
            return match listed {
                Some(names) if !names.is_empty() => Err(Damage::new(&key, Fault::NoWidth).into()),
                _ => Ok(OpenedLinks::default()),
            };
        };
        let expected = self.arity(level);
        let found = family.sid_ndim.unwrap_or(expected);
        if found != expected {
            return Err(Damage::new(&key, Fault::Arity { found, expected }).into());
        }
        let scales = match (target, view) {
            // Writers of links to absent levels used the root's chunk shape for both levels.
            (None, LinkView::Stored) if delta != Delta::INTRA => {
                vec![AxisScales::EQUAL; self.arity(level)]
            }
            _ => self.link_scales(level, target, delta)?,
        };
        let segments = if let Some(names) = listed {
            names
        } else {
            Arc::new(self.probe_segments(level, delta, &family, &scales).await?)
        };
        let opened = self.open_arrays(level, &family, &scales, &segments, attributes, view);
        Ok(OpenedLinks {
            groups,
            ..opened.await?
        })
    }

    /// Opens the arrays of these segments in one round trip.
    pub(super) async fn open_arrays(
        &self,
        level: &Level,
        family: &LinkFamily,
        scales: &[AxisScales],
        segments: &[String],
        attributes: &[String],
        view: LinkView,
    ) -> Result<OpenedLinks, CatalogError> {
        let mut segments: Vec<&String> = segments.iter().collect();
        segments.sort_unstable();
        let arrays = segments.iter().map(|segment| {
            let offsets = LinkOffsets::Segment(segment);
            let array = self.link_array(level, family, segment);
            let values = self.array_values(level, family.delta, offsets, attributes);
            try_join(array, values)
        });
        let family_node = self.link_node(level, &ArrayRole::LinkFamily(family.delta))?;
        let mut opened = OpenedLinks::default();
        for (segment, (array, values)) in segments.iter().zip(try_join_all(arrays).await?) {
            let (array, cells) = array;
            let is_inside = family.delta == Delta::INTRA && is_zero(segment);
            let form = if is_inside {
                LinkCellForm::Flat(array.dtype)
            } else {
                LinkCellForm::Groups(array.dtype, array.row_form)
            };
            let number = opened.sources.len();
            let arity = scales.len();
            let offsets = offsets(segment, family, arity, &cells.node)?;
            let mut found = cells.chunks().unwrap_or_default();
            found.sort_by_cached_key(ToString::to_string);
            for chunk in found {
                let Some(chunks) = ends(&chunk, &offsets, scales) else {
                    return Err(Damage::in_chunk(&cells.node, &chunk, Fault::Range).into());
                };
                // The copy of a link in its least chunk represents the link.
                let is_copy = family.store == LinkStore::Duplicate
                    && family.delta == Delta::INTRA
                    && chunks.iter().any(|other| *other < chunk);
                if is_copy && view == LinkView::Logical {
                    continue;
                }
                opened.cells.push(LinkCellSource {
                    chunks: Some(chunks),
                    is_inside,
                    source: number,
                    at: chunk,
                });
            }
            let is_reversed =
                view == LinkView::Logical && !is_inside && self.names_parents_first(family);
            opened.sources.push(LinkSource {
                node: cells.node.clone(),
                family_node: family_node.clone(),
                cells: LinkStorage::Each(cells),
                form,
                width: family.width,
                directed: family.directed,
                is_reversed,
                family: 0,
                records: declared(family, view),
                attributes: values,
            });
        }
        Ok(opened)
    }

    async fn link_array(
        &self,
        level: &Level,
        family: &LinkFamily,
        segment: &str,
    ) -> Result<(LinkArray, Arc<ChunkedArray>), CatalogError> {
        let part = ArrayRole::Links(family.delta, LinkOffsets::Segment(segment));
        let key = self.link_node(level, &part)?;
        let Some(cells) = self.chunked_array(level, &part).await? else {
            return Err(Damage::new(&key, Fault::Missing).into());
        };
        let array = LinkArray::parse(&cells.node, segment, &cells.attributes, family)?;
        Ok((array.value, cells))
    }

    /// Opens the values of attributes of a link array; `None` for an attribute without values.
    pub(super) async fn array_values(
        &self,
        level: &Level,
        delta: Delta,
        offsets: LinkOffsets<'_>,
        names: &[String],
    ) -> Result<Vec<Option<AttributeCells>>, CatalogError> {
        let values = names.iter().map(|name| async move {
            let part = ArrayRole::LinkAttribute(name, delta, offsets);
            let Some(cells) = self.chunked_array(level, &part).await? else {
                return Ok::<_, CatalogError>(None);
            };
            let metadata = CellAttribute::parse(&cells.node, &cells.attributes)?.value;
            Ok(Some(AttributeCells {
                metadata: Arc::new(metadata),
                cells: LinkStorage::Each(cells),
            }))
        });
        try_join_all(values).await
    }

    /// Returns the node of an array of links.
    pub(super) fn link_node(
        &self,
        level: &Level,
        part: &ArrayRole<'_>,
    ) -> Result<Key, CatalogError> {
        let key = self.described_at(level, part)?;
        // Every requested role has a node in its layout.
        key.map_or_else(|| Self::node_of(level), Ok)
    }

    pub(super) fn link_scales(
        &self,
        level: &Level,
        target: Option<&Level>,
        delta: Delta,
    ) -> Result<Vec<AxisScales>, CatalogError> {
        if delta == Delta::INTRA {
            return Ok(vec![AxisScales::EQUAL; self.arity(level)]);
        }
        let Some(target) = target else {
            let number = level.id().offset(delta.levels()).unwrap_or(level.id());
            return Err(self.no_level(number));
        };
        let scales = level.metadata.link_scales(&target.metadata, self.root);
        let node = Self::node_of(level)?;
        scales.map_err(|error| Damage::new(&node, error).into())
    }

    /// Returns whether links between chunks name the parent first although links inside chunks
    /// name the child first, as in skeletons written by streaming.
    fn names_parents_first(&self, family: &LinkFamily) -> bool {
        self.root.names_parents_first(self.layout.generation)
            && family.delta == Delta::INTRA
            && family.directed
            && family.width.get() == 2
    }
}

/// Returns the number of records that a family declares.
pub(super) fn declared(family: &LinkFamily, view: LinkView) -> Option<u64> {
    if family.store == LinkStore::Duplicate && view == LinkView::Logical {
        return family.num_links;
    }
    family.physical_records()
}

/// Returns whether all ends are in the source chunk.
fn is_zero(segment: &str) -> bool {
    segment == "self" || segment.split(['.', '_']).all(|number| number == "0")
}

/// Parses the offsets of a segment.
fn offsets(
    segment: &str,
    family: &LinkFamily,
    arity: usize,
    node: &Key,
) -> Result<Vec<Vec<i64>>, CatalogError> {
    let offsets = Offsets::parse(segment, family.width, arity)
        .map_err(|_| Damage::new(node, Fault::LinkCell))?;
    Ok(offsets.iter().map(Iterator::collect).collect())
}

/// Returns the chunks of all ends of the links in `chunk`; `None` on overflow.
fn ends(
    chunk: &ChunkCoord,
    offsets: &[Vec<i64>],
    scales: &[AxisScales],
) -> Option<Vec<ChunkCoord>> {
    let mut chunks = vec![chunk.clone()];
    for offset in offsets {
        let axes = chunk.coords().iter().zip(offset).zip(scales);
        let coords = axes.map(|((source, offset), scale)| scale.resolve(*source, *offset));
        chunks.push(ChunkCoord::new(coords.collect::<Option<Vec<i64>>>()?));
    }
    Some(chunks)
}
