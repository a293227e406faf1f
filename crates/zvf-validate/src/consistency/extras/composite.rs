//! Composite geometries of a level.

use serde_json::{Value, json};
use zvf_format::numeric::{ByteOrder, Kind};
use zvf_model::{
    array::{CompositeLinks, GeometryEntry, GeometryIndex, VertexEncoding, Vertices},
    draco::DracoCell,
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
    zarr::Node,
};

use super::super::chunks::{VertexSpace, optional, position_dtype, presence, report_misplaced};
use crate::{
    batch::CellPayload,
    chunk_pass::{ChunkCheck, ChunkPass},
    chunked_part::ChunkedPart,
    context::Context,
    rules::consistency as rules,
    share::ChunkOutcome,
    store::LevelScope,
    table_array::{RowType, TableArray},
};

pub(super) async fn check(context: &Context<'_>, scope: LevelScope<'_>) {
    let tree = &scope.store.tree;
    let index = scope.store.at(scope.level, &ArrayRole::GeometryIndex);
    let Some((key, node)) = index.and_then(|key| Some((key.clone(), tree.node(&key)?))) else {
        return;
    };
    let geometries = match GeometryIndex::parse(&key, node.attributes()) {
        Ok(index) => index.value.geometries,
        Err(error) => {
            let rule = &rules::PART_NOT_CHECKED;
            return context.report_at(rule, &key, &error.path, &error.fault);
        }
    };
    for (kind, geometry) in &geometries {
        let vertices = check_vertices(context, scope, &key, (kind, geometry)).await;
        let Some(links) = &geometry.links else {
            continue;
        };
        if let Ok(links) = scope.level.key.join(links)
            && !context.is_share()
        {
            check_links(context, scope, &links, vertices).await;
        }
    }
}

/// Checks the vertices of a geometry, and returns their number if all could be read.
async fn check_vertices(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    index: &Key,
    (kind, geometry): (&str, &GeometryEntry),
) -> Option<u64> {
    let tree = &scope.store.tree;
    let key = scope.level.key.join(&geometry.vertices).ok()?;
    let form = scope
        .store
        .layout()
        .chunk_form(&ArrayRole::CompositeVertices(kind))?;
    if !tree.exists(&key) {
        let message = "the array does not exist";
        context.report(&rules::PART_NOT_CHECKED, &key, message);
        return None;
    }
    let cells = ChunkedPart::open(context, tree, &key, form, scope.level.arity)?;
    presence::check(context, tree, &cells, key.as_str()).await;
    let vertices = match Vertices::parse(&key, &cells.attributes) {
        Ok(vertices) => vertices.value,
        Err(error) => {
            context.report_at(&rules::PART_NOT_CHECKED, &key, &error.path, &error.fault);
            return None;
        }
    };
    let dtype = position_dtype(context, &key, &vertices, scope.root.axes.len())?;
    let space = VertexSpace {
        dtype,
        chunk_shape: scope.metadata.effective_chunk_shape(scope.root),
        bounds: None,
        bins: None,
        are_bins: false,
    };
    let row = u64::try_from(space.row()).ok()?;
    let mut checks = VertexChecks {
        key: &key,
        space,
        row,
        is_draco: vertices.encoding == VertexEncoding::Draco,
        count: 0,
        is_whole: true,
    };
    let chunks = cells.chunks();
    let pass = ChunkPass {
        name: format!("{key} cells"),
        seed: key.as_str(),
        parts: &[&cells],
        chunks: &chunks,
    };
    pass.run(context, &mut checks).await;
    let VertexChecks {
        count, is_whole, ..
    } = checks;
    if !is_whole {
        return None;
    }
    let value = || Some(json!(count));
    let counts = [
        (index, vec![kind, "vertex_count"], geometry.vertex_count),
        (&key, vec!["vertex_count"], vertices.vertex_count),
    ];
    for (node, path, declared) in counts {
        if let Some(declared) = declared.filter(|declared| *declared != count) {
            let message = format!("{declared} declared, but {count} stored");
            context.report_attribute(&rules::COMPOSITE_COUNT, node, &path, message, value());
        }
    }
    Some(count)
}

/// Checks of the vertices of a geometry.
struct VertexChecks<'a> {
    key: &'a Key,
    space: VertexSpace<'a>,
    /// Bytes per vertex.
    row: u64,
    is_draco: bool,
    /// Number of vertices.
    count: u64,
    /// All vertices could be read.
    is_whole: bool,
}

/// Number of vertices of a chunk, or `None` if they cannot be read.
struct VertexRows(Option<u64>);

impl ChunkOutcome for VertexRows {
    fn to_json(&self) -> Value {
        json!(self.0)
    }

    fn from_json(json: &Value) -> Option<Self> {
        optional(json, Value::as_u64).map(Self)
    }
}

impl ChunkCheck for VertexChecks<'_> {
    type Outcome = VertexRows;

    fn check(
        &self,
        context: &Context<'_>,
        chunk: &ChunkCoord,
        cells: &[CellPayload],
    ) -> VertexRows {
        let Some(CellPayload::Bytes(bytes)) = cells.first() else {
            return VertexRows(None);
        };
        let decoded = self
            .is_draco
            .then(|| DracoCell::parse(bytes, context.fetch.budget()));
        let decoded = match decoded {
            None => None,
            Some(Ok(cell)) => Some(cell.rows()),
            Some(Err(error)) => {
                context.report_in_chunk(&rules::NOT_DECODED, self.key, chunk, error);
                return VertexRows(None);
            }
        };
        let bytes = decoded.as_deref().unwrap_or(bytes);
        let (size, row) = (u64::try_from(bytes.len()).unwrap_or(u64::MAX), self.row);
        let (Some(rows), Some(0)) = (size.checked_div(row), size.checked_rem(row)) else {
            let message = format!("{size} bytes, but a vertex takes {row}");
            context.report_in_chunk(&rules::VERTICES_PARTIAL_ROW, self.key, chunk, message);
            return VertexRows(None);
        };
        let misplaced = self.space.misplaced(chunk, bytes, None);
        report_misplaced(context, (self.key, None), chunk, rows, &misplaced);
        VertexRows(Some(rows))
    }

    fn add(&mut self, _: &ChunkCoord, VertexRows(rows): VertexRows) {
        self.count = self.count.saturating_add(rows.unwrap_or(0));
        self.is_whole &= rows.is_some();
    }
}

/// Checks that links name existing vertices. The vertices themselves are unknown, because links
/// count them in an order that is not stored.
async fn check_links(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    key: &Key,
    vertices: Option<u64>,
) {
    let tree = &scope.store.tree;
    let Some(node) = tree.node(key) else {
        let message = "the array does not exist";
        return context.report(&rules::PART_NOT_CHECKED, key, message);
    };
    let declared = match CompositeLinks::parse(key, node.attributes()) {
        Ok(links) => links.value,
        Err(error) => {
            let rule = &rules::PART_NOT_CHECKED;
            return context.report_at(rule, key, &error.path, &error.fault);
        }
    };
    let is_array = matches!(node, Node::Array(_));
    let array = if is_array {
        Some(key.clone())
    } else {
        key.join("data").ok()
    };
    let Some(rows) = array.and_then(|array| TableArray::open(context, tree, &array)) else {
        return;
    };
    let width = u64::try_from(declared.width.get()).unwrap_or(u64::MAX);
    let order = match (is_array, rows.row) {
        (true, RowType::Number(Kind::Int64, order)) if rows.columns == width => order,
        // An array of bytes that holds int64.
        (false, RowType::Number(Kind::UInt8, _)) if rows.columns == 1 => {
            let size = width.saturating_mul(8).max(1);
            if !rows.len.is_multiple_of(size) {
                let message = format!("{} bytes, but a link takes {size}", rows.len);
                return context.report(&rules::PART_NOT_CHECKED, key, message);
            }
            ByteOrder::Little
        }
        _ => {
            let message = format!("not {width} int64 per link");
            return context.report(&rules::PART_NOT_CHECKED, key, message);
        }
    };
    let (mut wrong, mut first) = (0_u64, None);
    let check = |bytes: &[u8]| {
        let (ends, _) = bytes.as_chunks::<8>();
        for end in ends {
            let end = match order {
                ByteOrder::Little => i64::from_le_bytes(*end),
                ByteOrder::Big => i64::from_be_bytes(*end),
            };
            let present = u64::try_from(end).is_ok_and(|end| vertices.is_none_or(|all| end < all));
            if !present {
                first.get_or_insert(end);
                wrong = wrong.saturating_add(1);
            }
        }
    };
    if is_array {
        let mut check = check;
        rows.each_cell(context, |cell| {
            check(rows.numbers(&cell).unwrap_or_default());
        })
        .await;
    } else {
        let mut check = check;
        check(&rows.all_bytes(context).await.unwrap_or_default());
    }
    if let Some(first) = first {
        let message = match vertices {
            Some(vertices) => format!("{wrong} ends, first {first} of {vertices} vertices"),
            None => format!("{wrong} ends, first {first}"),
        };
        context.report(&rules::COMPOSITE_LINK, key, message);
    }
}
