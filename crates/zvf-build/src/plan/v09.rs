//! Generation 0.9: arrays with one element for each chunk.

use std::collections::BTreeMap;

use zvf_format::path::Delta;
use zvf_model::{
    array::{
        CellAttribute, FragmentArray, LinkArray, LinkAttributeFamily, LinkFamily, LinkFamilyForm,
        LinkStore, VertexEncoding, Vertices,
    },
    layout::{
        AddressError, ArrayRole, GroupRole, LinkOffsets, OBJECT_INDEX, RootArrayRole, VERTICES,
    },
    level::LevelMetadata,
    metadata::Attributes,
    word::Word,
};

use super::{draco, objects};
use crate::{
    error::BuildError,
    link_placement::{self, Cell, CrossChunkPolicy, LinkPlacement},
    metadata,
    output::Output,
    plan::WritePlan,
    stored_column::{StoredColumn, little},
};

/// Cells of one link array by chunk.
struct LinkCells<'a> {
    segment: String,
    offsets: Vec<Vec<i64>>,
    cells: BTreeMap<u32, &'a Cell>,
}

/// Groups links between chunks by array.
fn link_arrays<'a>(plan: &WritePlan, links: &'a LinkPlacement) -> Vec<LinkCells<'a>> {
    let mut arrays: BTreeMap<String, LinkCells<'a>> = BTreeMap::new();
    for (chunks, cell) in &links.between {
        let Some(source) = chunks.first() else {
            continue;
        };
        let coords: Vec<&[i64]> = chunks
            .iter()
            .map(|chunk| plan.layout.chunks[*chunk as usize].as_slice())
            .collect();
        let (segment, offsets) = link_placement::offsets(&coords);
        let array = arrays.entry(segment.clone()).or_insert_with(|| LinkCells {
            segment,
            offsets,
            cells: BTreeMap::new(),
        });
        array.cells.insert(*source, cell);
    }
    arrays.into_values().collect()
}

/// Returns the array of links inside chunks, which exists even without links where the design has it.
fn inside<'a>(plan: &WritePlan, links: &'a LinkPlacement) -> Option<LinkCells<'a>> {
    if !plan.design.has_links_inside() {
        return None;
    }
    let zeros = vec![0; plan.geometry.axes()];
    let chunks = vec![zeros.as_slice(); links.width.get()];
    let (segment, offsets) = link_placement::offsets(&chunks);
    let cells = links.inside.iter().map(|(chunk, cell)| (*chunk, cell));
    let is_stored = !draco::has_triangles(plan);
    Some(LinkCells {
        segment,
        offsets,
        cells: cells.filter(|_| is_stored).collect(),
    })
}

/// Returns the part that stores links with these offsets.
fn links_at(segment: &str) -> ArrayRole<'_> {
    ArrayRole::Links(Delta::INTRA, LinkOffsets::Segment(segment))
}

/// Returns the part that stores an attribute of links with these offsets.
fn attribute_at<'a>(column: &'a StoredColumn, segment: &'a str) -> ArrayRole<'a> {
    let offsets = LinkOffsets::Segment(segment);
    ArrayRole::LinkAttribute(&column.name, Delta::INTRA, offsets)
}

pub(super) fn cells(plan: &WritePlan, chunks: &[u32]) -> Result<Vec<Output>, BuildError> {
    let keys = plan.keys();
    let mut outputs = Vec::new();
    for &chunk in chunks {
        let mut put = |part: &ArrayRole<'_>, payload: Vec<u8>| {
            if !payload.is_empty() {
                outputs.push(Output::Cell {
                    array: keys.node(part)?,
                    index: plan.index(chunk),
                    payload,
                });
            }
            Ok::<_, AddressError>(())
        };
        let vertices = match plan.design.draco {
            None => plan.positions(chunk),
            Some(bits) => draco::stream(plan, chunk, bits).map_err(|source| BuildError::Draco {
                chunk: plan.name(chunk),
                source,
            })?,
        };
        put(&ArrayRole::Vertices, vertices)?;
        put(&ArrayRole::VertexFragments, plan.fragment_index(chunk))?;
        for (scope, columns) in plan.chunk_columns() {
            for column in columns {
                put(
                    &scope.array(&column.name),
                    plan.values(scope, column, chunk),
                )?;
            }
        }
        let Some(links) = &plan.links else {
            continue;
        };
        if let Some(cell) = links.inside.get(&chunk)
            && !draco::has_triangles(plan)
            && let Some(array) = inside(plan, links)
        {
            put(&links_at(&array.segment), cell.plain())?;
            let groups = link_placement::ranges(plan.link_groups(chunk, cell));
            put(&ArrayRole::LinkFragments, groups)?;
            for column in &plan.link {
                put(
                    &attribute_at(column, &array.segment),
                    gathered(column, cell),
                )?;
            }
        }
        // Keys are tuples of chunks, sorted by their first chunk.
        let own = links.between.range(vec![chunk]..vec![chunk + 1]);
        for (others, cell) in own {
            let coords: Vec<&[i64]> = others
                .iter()
                .map(|chunk| plan.layout.chunks[*chunk as usize].as_slice())
                .collect();
            let (segment, _) = link_placement::offsets(&coords);
            let rows = cell.rows(links.width, plan.form(true))?;
            put(&links_at(&segment), rows.finish_ragged())?;
            for column in &plan.link {
                put(&attribute_at(column, &segment), gathered(column, cell))?;
            }
        }
    }
    Ok(outputs)
}

pub(super) fn gathered(column: &StoredColumn, cell: &Cell) -> Vec<u8> {
    column.gather(cell.links.iter().map(|link| *link as usize))
}

/// Returns the metadata of vertices in these cells.
pub(super) fn vertices(plan: &WritePlan) -> Attributes {
    let vertices = Vertices {
        dtype: little(plan.geometry.positions.kind),
        encoding: match plan.design.draco {
            Some(_) => Word::Known(VertexEncoding::Draco),
            None => Word::Known(VertexEncoding::Raw),
        },
        ndim: None,
        vertex_count: None,
    };
    vertices.to_attributes(plan.keys().layout.generation)
}

pub(super) fn rest(plan: &WritePlan) -> Result<Vec<Output>, BuildError> {
    let keys = plan.keys();
    let mut outputs = vec![Output::group(keys.level()?, level(plan).to_attributes())];
    let chunks: Vec<u32> = (0..plan.layout.chunks.len() as u32).collect();
    let array = |part: &ArrayRole<'_>, chunks: &[u32], attributes: Attributes| {
        let chunks = chunks.iter();
        let chunks = chunks.map(|chunk| plan.layout.chunks[*chunk as usize].as_slice());
        let shard = plan.shard.as_deref();
        let array = metadata::per_chunk(&plan.encoding, &plan.grid, shard, chunks, attributes);
        Ok::<_, AddressError>(Output::node(keys.node(part)?, array))
    };
    outputs.push(array(&ArrayRole::Vertices, &chunks, vertices(plan))?);
    let fragments = FragmentArray::Vertices.to_attributes();
    outputs.push(array(&ArrayRole::VertexFragments, &chunks, fragments)?);
    for (scope, columns) in plan.chunk_columns() {
        if !columns.is_empty() {
            outputs.push(Output::empty_group(keys.group(scope.group())?));
        }
        for column in columns {
            let attributes = column.metadata.to_attributes();
            outputs.push(array(&scope.array(&column.name), &chunks, attributes)?);
        }
    }
    if let Some(links) = &plan.links {
        outputs.push(Output::empty_group(keys.group(GroupRole::Links)?));
        let family = link_family(plan, links);
        outputs.push(Output::group(
            keys.node(&ArrayRole::LinkFamily(Delta::INTRA))?,
            family.to_attributes(LinkFamilyForm::Merged),
        ));
        if !plan.link.is_empty() {
            outputs.push(Output::empty_group(keys.group(GroupRole::LinkAttributes)?));
        }
        for column in &plan.link {
            let of_attribute = LinkAttributeFamily {
                name: column.name.clone(),
                delta: Delta::INTRA,
                num_links: links.logical as u64,
            };
            let key = keys.group(GroupRole::LinkAttribute(&column.name))?;
            outputs.push(Output::empty_group(key));
            let key = keys.node(&ArrayRole::LinkAttributeFamily(&column.name, Delta::INTRA))?;
            outputs.push(Output::group(key, of_attribute.to_attributes()));
        }
        let inside = inside(plan, links);
        if let Some(inside) = &inside {
            let chunks: Vec<u32> = inside.cells.keys().copied().collect();
            let fragments = FragmentArray::Links.to_attributes();
            outputs.push(array(&ArrayRole::LinkFragments, &chunks, fragments)?);
        }
        for links in inside.into_iter().chain(link_arrays(plan, links)) {
            let chunks: Vec<u32> = links.cells.keys().copied().collect();
            let attributes = LinkArray::new(&family, &links.offsets).to_attributes(&family);
            outputs.push(array(&links_at(&links.segment), &chunks, attributes)?);
            for column in &plan.link {
                let metadata = CellAttribute {
                    offsets: Some(links.offsets.clone()),
                    level_delta: Some(0),
                    ..column.metadata.clone()
                };
                let part = attribute_at(column, &links.segment);
                outputs.push(array(&part, &chunks, metadata.to_attributes())?);
            }
        }
    }
    objects::v09(plan, &mut outputs)?;
    headers(plan, &mut outputs)?;
    Ok(outputs)
}

/// Writes the headers of files in other formats.
pub(super) fn headers(plan: &WritePlan, outputs: &mut Vec<Output>) -> Result<(), BuildError> {
    let layout = plan.keys().layout;
    for (format, header) in plan.design.headers.as_ref() {
        let key = layout.root_node(&RootArrayRole::Header(format))?;
        outputs.push(Output::group(key, header.clone()));
    }
    if !plan.design.headers.is_empty() {
        outputs.push(Output::empty_group(
            layout.root_node(&RootArrayRole::Headers)?,
        ));
    }
    Ok(())
}

/// Returns the metadata of the family of links inside the level.
fn link_family(plan: &WritePlan, links: &LinkPlacement) -> LinkFamily {
    // Triangles in streams of vertices are not links of the family.
    let in_streams: usize = if draco::has_triangles(plan) {
        links.inside.values().map(Cell::len).sum()
    } else {
        0
    };
    let policy = CrossChunkPolicy::of(&plan.design);
    LinkFamily {
        delta: Delta::INTRA,
        width: links.width,
        directed: policy.directed,
        store: if policy.duplicate {
            LinkStore::Duplicate
        } else {
            LinkStore::Canonical
        },
        sid_ndim: Some(plan.geometry.axes()),
        num_links: Some((links.logical - in_streams) as u64),
        num_physical_records: Some((links.physical() - in_streams) as u64),
    }
}

/// Returns the metadata of the level.
pub(super) fn level(plan: &WritePlan) -> LevelMetadata {
    let mut present = vec![VERTICES];
    let mut also = |there: bool, name| present.extend(there.then_some(name));
    for (scope, columns) in plan.chunk_columns() {
        also(!columns.is_empty(), scope.group().name());
    }
    also(plan.design.has_links_inside(), GroupRole::Links.name());
    also(plan.objects.is_some(), OBJECT_INDEX);
    let current = plan.design.profile.is_current();
    metadata::level(plan.vertices, &present, current)
}
