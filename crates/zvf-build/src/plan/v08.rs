//! Generation 0.8: one array for each chunk and for each tuple of chunks with links; the padded
//! form stores dense numeric arrays.

use serde_json::Value;
use zvf_format::{links::RowForm, numeric::Kind, path::Delta};
use zvf_model::{
    array::{
        CellAttribute, CellAttributeRole, FragmentArray, LinkFamily, LinkFamilyForm, LinkStore,
        Padded, VertexPairs,
    },
    column::NumericColumn,
    grid::Grid,
    layout::{AddressError, ArrayRole, ChunkForm, GroupRole},
    metadata::Attributes,
    zarr::{Array, DataType},
};

use super::{objects, v09};
use crate::{
    GeometryKind,
    design::Profile,
    error::BuildError,
    link_placement::{self, Cell, LinkPlacement},
    output::Output,
    plan::WritePlan,
    stored_column::StoredColumn,
    tables,
};

/// Part of a level with the links inside chunks.
const LINKS: ArrayRole<'static> = ArrayRole::LinkFamily(Delta::INTRA);

pub(super) fn cells(plan: &WritePlan, chunks: &[u32]) -> Result<Vec<Output>, BuildError> {
    let mut outputs = Vec::new();
    let (encoding, keys) = (&plan.encoding, plan.keys());
    for &chunk in chunks {
        let coords = plan.layout.chunks[chunk as usize].as_slice();
        let mut put = |part: &ArrayRole<'_>, payload: Vec<u8>| {
            tables::blob(&mut outputs, encoding, keys.cell(part, coords)?, payload);
            Ok::<_, BuildError>(())
        };
        put(&ArrayRole::VertexFragments, plan.fragment_index(chunk))?;
        let own = plan
            .links
            .as_ref()
            .and_then(|links| links.inside.get(&chunk));
        if let Some(cell) = own {
            let groups = link_placement::ranges(plan.link_groups(chunk, cell));
            put(&ArrayRole::LinkFragments, groups)?;
            for column in &plan.link {
                let part = ArrayRole::LinkAttributeFamily(&column.name, Delta::INTRA);
                put(&part, v09::gathered(column, cell))?;
            }
        }
        let mut parts = vec![(ArrayRole::Vertices, plan.positions(chunk))];
        for (scope, columns) in plan.chunk_columns() {
            for column in columns {
                let payload = plan.values(scope, column, chunk);
                parts.push((scope.array(&column.name), payload));
            }
        }
        if let Some(cell) = own {
            parts.push((LINKS, cell.plain()));
        }
        for (part, payload) in parts {
            if is_padded(plan, &part) {
                outputs.push(padded_cell(plan, part, chunk, payload)?);
            } else {
                let key = keys.cell(&part, coords)?;
                tables::blob(&mut outputs, encoding, key, payload);
            }
        }
        if let Some(links) = &plan.links {
            between_chunks(plan, links, chunk, &mut outputs)?;
        }
    }
    Ok(outputs)
}

/// Encodes the cells of links whose first end is in a chunk.
fn between_chunks(
    plan: &WritePlan,
    links: &LinkPlacement,
    chunk: u32,
    outputs: &mut Vec<Output>,
) -> Result<(), BuildError> {
    if has_vertex_pairs(plan) {
        return Ok(());
    }
    let keys = plan.keys();
    for (chunks, cell) in links.between.range(vec![chunk]..vec![chunk + 1]) {
        let coords: Vec<i64> = chunks
            .iter()
            .flat_map(|chunk| &plan.layout.chunks[*chunk as usize])
            .copied()
            .collect();
        let rows = cell.rows(links.width, RowForm::Permuted)?;
        let key = keys.cell(&ArrayRole::CrossChunkLinks(Delta::INTRA), &coords)?;
        tables::blob(outputs, &plan.encoding, key, rows.finish_cell());
        let columns = plan.link.iter();
        for column in columns.filter(|_| !plan.design.flat_link_attributes) {
            let part = ArrayRole::CrossChunkLinkAttribute(&column.name, Delta::INTRA);
            let (key, payload) = (keys.cell(&part, &coords)?, v09::gathered(column, cell));
            tables::blob(outputs, &plan.encoding, key, payload);
        }
    }
    Ok(())
}

/// Returns whether links between chunks are one array of pairs of numbered vertices, as the steps of paths
/// are in padded stores.
fn has_vertex_pairs(plan: &WritePlan) -> bool {
    let is_path = matches!(
        plan.design.kind,
        GeometryKind::Polylines | GeometryKind::Streamlines
    );
    is_path && plan.design.profile == Profile::Padded
}

/// Writes the links between chunks as pairs of numbered vertices, in the order of the paths.
fn vertex_pairs(
    plan: &WritePlan,
    links: &LinkPlacement,
    outputs: &mut Vec<Output>,
) -> Result<(), BuildError> {
    let mut pairs: Vec<(u32, [i64; 2])> = Vec::new();
    for (chunks, cell) in &links.between {
        let ends = cell.ends.chunks_exact(chunks.len());
        for ((link, code), ends) in cell.links.iter().zip(&cell.codes).zip(ends) {
            let mut vertices = [0; 2];
            for ((vertex, chunk), row) in vertices.iter_mut().zip(chunks).zip(ends) {
                // Chunks are numbered in ascending order, as vertices are.
                *vertex = (plan.layout.starts[*chunk as usize] + *row as usize) as i64;
            }
            if *code != 0 {
                vertices.reverse();
            }
            pairs.push((*link, vertices));
        }
    }
    if pairs.is_empty() {
        return Ok(());
    }
    pairs.sort_unstable();
    let shape = vec![pairs.len() as u64, 2];
    let array = Array::new(
        shape.clone(),
        DataType::Number(Kind::Int64),
        shape,
        Value::from(-1),
        plan.encoding.of_numbers(Kind::Int64.size()),
    )
    .with_attributes(VertexPairs::attributes());
    let key = plan.keys().group(GroupRole::CrossChunkLinks)?;
    outputs.push(Output::node(key.clone(), array));
    outputs.push(Output::Cell {
        array: key,
        index: vec![0, 0],
        payload: pairs
            .iter()
            .flat_map(|(_, ends)| ends)
            .flat_map(|end| end.to_le_bytes())
            .collect(),
    });
    Ok(())
}

/// Encodes the values of an attribute for all links between chunks, in the order of their cells: by key,
/// as text.
fn flat(
    plan: &WritePlan,
    links: &LinkPlacement,
    column: &StoredColumn,
    outputs: &mut Vec<Output>,
) -> Result<(), BuildError> {
    let mut cells: Vec<(String, &Cell)> = links
        .between
        .iter()
        .map(|(chunks, cell)| {
            let names = chunks.iter().map(|chunk| plan.name(*chunk));
            (names.collect::<Vec<_>>().join("."), cell)
        })
        .collect();
    cells.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let rows = cells
        .iter()
        .flat_map(|(_, cell)| v09::gathered(column, cell));
    let part = ArrayRole::CrossChunkLinkAttribute(&column.name, Delta::INTRA);
    let key = plan
        .keys()
        .node(&part)?
        .join("data")
        .map_err(AddressError::from)?;
    tables::blob(outputs, &plan.encoding, key, rows.collect());
    Ok(())
}

/// Returns whether the cells of a part are rows of one numeric array.
fn is_padded(plan: &WritePlan, part: &ArrayRole<'_>) -> bool {
    let layout = plan.keys().layout;
    match part {
        // The family is the array of the links in chunks.
        ArrayRole::LinkFamily(_) => layout.chunks == ChunkForm::Padded,
        part => layout.chunk_form(part) == Some(ChunkForm::Padded),
    }
}

/// Padded array: its part, type and capacity in rows.
struct PaddedPart<'a> {
    part: ArrayRole<'a>,
    kind: Kind,
    columns: usize,
    rows: usize,
    /// `true` if a row is a scalar.
    flat: bool,
}

impl PaddedPart<'_> {
    fn of<'a>(plan: &WritePlan, part: ArrayRole<'a>) -> PaddedPart<'a> {
        let starts = plan.layout.starts.windows(2);
        let vertices = starts.map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let (kind, columns, rows, flat) = match part {
            ArrayRole::VertexAttribute(name) => {
                let column = plan.vertex.iter().find(|column| column.name == name);
                let numbers = column.map(|column| &column.numbers);
                let kind = numbers.map_or(Kind::UInt8, |numbers| numbers.kind);
                let columns = numbers.map_or(1, NumericColumn::row_len);
                (kind, columns, vertices, columns == 1)
            }
            LINKS => {
                let inside = plan.links.iter().flat_map(|links| links.inside.values());
                let links = inside.map(Cell::len).max().unwrap_or(0);
                let width = plan.links.as_ref().map_or(2, |links| links.width.get());
                (Kind::Int64, width, links, false)
            }
            _ => {
                let positions = &plan.geometry.positions;
                (positions.kind, positions.row_len(), vertices, false)
            }
        };
        PaddedPart {
            part,
            kind,
            columns,
            rows: rows.max(1),
            flat,
        }
    }

    /// Returns the fill value and byte after the last row.
    fn fill(&self) -> (Value, u8) {
        match (self.part == LINKS, self.kind) {
            (true, _) => ((-1).into(), 0xff),
            (_, Kind::Bool) => (false.into(), 0),
            (_, Kind::Complex64 | Kind::Complex128) => ([0.0, 0.0].into(), 0),
            (_, Kind::Float16 | Kind::Float32 | Kind::Float64) => (0.0.into(), 0),
            _ => (0.into(), 0),
        }
    }

    fn bytes(&self) -> usize {
        self.rows * self.columns * self.kind.size()
    }

    fn node(&self, plan: &WritePlan, attributes: Attributes) -> Result<Output, BuildError> {
        let (origin, grid) = (&plan.grid.origin, &plan.grid.shape);
        let (rows, columns) = (self.rows as u64, self.columns as u64);
        let padded = Padded {
            grid: Grid::new(Some(origin), grid).map_err(AddressError::from)?,
            rows,
            columns,
            kind: self.kind,
        };
        let tail = if self.flat {
            vec![rows]
        } else {
            vec![rows, columns]
        };
        let array = Array::new(
            [grid.as_slice(), &tail].concat(),
            DataType::Number(self.kind),
            [vec![1; grid.len()].as_slice(), &tail].concat(),
            self.fill().0,
            plan.encoding.of_numbers(self.kind.size()),
        )
        .with_attributes(padded.to_attributes(attributes));
        Ok(Output::node(plan.keys().node(&self.part)?, array))
    }
}

fn padded_cell(
    plan: &WritePlan,
    part: ArrayRole<'_>,
    chunk: u32,
    mut payload: Vec<u8>,
) -> Result<Output, BuildError> {
    let padded = PaddedPart::of(plan, part);
    payload.resize(padded.bytes(), padded.fill().1);
    let mut index = plan.index(chunk);
    index.push(0);
    if !padded.flat {
        index.push(0);
    }
    Ok(Output::Cell {
        array: plan.keys().node(&part)?,
        index,
        payload,
    })
}

pub(super) fn rest(plan: &WritePlan) -> Result<Vec<Output>, BuildError> {
    let keys = plan.keys();
    let mut outputs = vec![Output::group(
        keys.level()?,
        v09::level(plan).to_attributes(),
    )];
    let group = |part: &ArrayRole<'_>, attributes: Attributes| {
        Ok::<_, BuildError>(Output::group(keys.node(part)?, attributes))
    };
    let array = |part: ArrayRole<'_>, attributes: Attributes| {
        if is_padded(plan, &part) {
            PaddedPart::of(plan, part).node(plan, attributes)
        } else {
            group(&part, attributes)
        }
    };
    let empty = |role: GroupRole<'_>| Ok::<_, BuildError>(Output::empty_group(keys.group(role)?));
    outputs.push(array(ArrayRole::Vertices, v09::vertices(plan))?);
    let fragments = FragmentArray::Vertices.to_attributes();
    outputs.push(group(&ArrayRole::VertexFragments, fragments)?);
    for (scope, columns) in plan.chunk_columns() {
        if !columns.is_empty() {
            outputs.push(empty(scope.group())?);
        }
        for column in columns {
            let attributes = column.metadata.to_attributes();
            outputs.push(array(scope.array(&column.name), attributes)?);
        }
    }
    if let Some(links) = &plan.links {
        let between: usize = links.between.values().map(Cell::len).sum();
        let family = LinkFamily {
            delta: Delta::INTRA,
            width: links.width,
            directed: false,
            store: LinkStore::Canonical,
            sid_ndim: Some(plan.geometry.axes()),
            num_links: Some(between as u64),
            num_physical_records: None,
        };
        if plan.design.has_links_inside() {
            outputs.push(empty(GroupRole::Links)?);
            let inside = family.to_attributes(LinkFamilyForm::InChunks);
            outputs.push(array(LINKS, inside)?);
            let fragments = FragmentArray::Links.to_attributes();
            outputs.push(group(&ArrayRole::LinkFragments, fragments)?);
        }
        if has_vertex_pairs(plan) {
            vertex_pairs(plan, links, &mut outputs)?;
        } else {
            outputs.push(empty(GroupRole::CrossChunkLinks)?);
            let form = LinkFamilyForm::BetweenChunks(keys.layout.generation);
            let part = ArrayRole::CrossChunkLinks(Delta::INTRA);
            outputs.push(group(&part, family.to_attributes(form))?);
        }
        if !plan.link.is_empty() {
            outputs.push(empty(GroupRole::LinkAttributes)?);
            outputs.push(empty(GroupRole::CrossChunkLinkAttributes)?);
        }
        for column in &plan.link {
            let inside = CellAttribute {
                level_delta: Some(0),
                ..column.metadata.clone()
            };
            let columns = column.numbers.row_len();
            let row_shape = (columns > 1).then_some(columns as u64).into_iter();
            let is_flat = plan.design.flat_link_attributes;
            let shape = [between as u64].into_iter().chain(row_shape.clone());
            let crossing = CellAttribute {
                role: CellAttributeRole::CrossChunkLink,
                num_links: Some(between as u64),
                row_shape: (!is_flat).then(|| row_shape.collect()),
                shape: is_flat.then(|| shape.collect()),
                ..inside.clone()
            };
            outputs.push(empty(GroupRole::LinkAttribute(&column.name))?);
            let part = ArrayRole::LinkAttributeFamily(&column.name, Delta::INTRA);
            outputs.push(group(&part, inside.to_attributes())?);
            outputs.push(empty(GroupRole::CrossChunkLinkAttribute(&column.name))?);
            let part = ArrayRole::CrossChunkLinkAttribute(&column.name, Delta::INTRA);
            outputs.push(group(&part, crossing.to_attributes())?);
            if is_flat {
                flat(plan, links, column, &mut outputs)?;
            }
        }
    }
    objects::v08(plan, &mut outputs)?;
    v09::headers(plan, &mut outputs)?;
    Ok(outputs)
}
