//! Generation 0.8: one array for each chunk and for each tuple of chunks with links; the padded
//! form stores dense numeric arrays.

use serde_json::{Map, Value, json};
use zvf_format::{links::RowForm, numeric::Kind, path::ChunkCoords};
use zvf_model::column::NumericColumn;

use super::{objects, of_fragments, v09};
use crate::{
    design::Profile,
    error::BuildError,
    link_placement::{self, Cell, LinkPlacement},
    metadata::{self, ArrayNode},
    output::{Output, empty_group, group, group_metadata, json_object, node},
    plan::WritePlan,
    spatial_layout::ArrayGrid,
    stored_column::StoredColumn,
    tables,
};

pub(super) fn cells(plan: &WritePlan, chunks: &[u32]) -> Result<Vec<Output>, BuildError> {
    let mut outputs = Vec::new();
    let encoding = &plan.encoding;
    for &chunk in chunks {
        let name = plan.name(chunk);
        let mut put = |family: &str, payload: Vec<u8>| {
            tables::blob(
                &mut outputs,
                encoding,
                format!("0/{family}/{name}"),
                payload,
            );
        };
        put("vertex_fragments", plan.fragment_index(chunk));
        for column in &plan.fragment {
            let family = format!("fragment_attributes/{}", column.name);
            put(&family, of_fragments(plan, column, chunk));
        }
        let own = plan
            .links
            .as_ref()
            .and_then(|links| links.inside.get(&chunk));
        if let Some(cell) = own {
            put(
                "link_fragments",
                link_placement::single_group(cell.links.len() as u64),
            );
            for column in &plan.link {
                let family = format!("link_attributes/{}/0", column.name);
                put(&family, v09::gathered(column, cell));
            }
        }
        let mut dense = Vec::new();
        dense.push(("vertices".to_owned(), plan.positions(chunk)));
        for column in &plan.vertex {
            let family = format!("vertex_attributes/{}", column.name);
            dense.push((family, column.gather(plan.input(chunk))));
        }
        if let Some(cell) = own {
            dense.push(("links/0".to_owned(), cell.plain()));
        }
        if plan.design.profile == Profile::Padded {
            for (family, payload) in dense {
                outputs.push(padded_cell(plan, &family, chunk, payload));
            }
        } else {
            for (family, payload) in dense {
                put(&family, payload);
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
    for (chunks, cell) in links.between.range(vec![chunk]..vec![chunk + 1]) {
        let key = cell_key(plan, chunks);
        let rows = cell.rows(links.width, RowForm::Permuted)?;
        let path = format!("0/cross_chunk_links/0/{key}");
        tables::blob(outputs, &plan.encoding, path, rows.finish_cell());
        for column in &plan.link {
            let path = format!("0/cross_chunk_link_attributes/{}/0/{key}", column.name);
            tables::blob(outputs, &plan.encoding, path, v09::gathered(column, cell));
        }
    }
    Ok(())
}

fn cell_key(plan: &WritePlan, chunks: &[u32]) -> String {
    let coords = chunks
        .iter()
        .flat_map(|chunk| &plan.layout.chunks[*chunk as usize]);
    ChunkCoords(&coords.copied().collect::<Vec<i64>>()).to_string()
}

/// Padded array: its family, type and capacity in rows.
struct Padded<'a> {
    family: &'a str,
    kind: Kind,
    columns: usize,
    rows: usize,
    /// `true` if a row is a scalar.
    flat: bool,
}

impl Padded<'_> {
    fn of<'a>(plan: &WritePlan, family: &'a str) -> Padded<'a> {
        let starts = plan.layout.starts.windows(2);
        let vertices = starts.map(|ends| ends[1] - ends[0]).max().unwrap_or(0);
        let (kind, columns, rows, flat) = match family.split_once('/') {
            None => {
                let positions = &plan.geometry.positions;
                (positions.kind, positions.row_len(), vertices, false)
            }
            Some(("links", _)) => {
                let inside = plan.links.iter().flat_map(|links| links.inside.values());
                let links = inside.map(|cell| cell.links.len()).max().unwrap_or(0);
                let width = plan.links.as_ref().map_or(2, |links| links.width.get());
                (Kind::Int64, width, links, false)
            }
            Some((_, name)) => {
                let column = plan.vertex.iter().find(|column| column.name == name);
                let numbers = column.map(|column| &column.numbers);
                let kind = numbers.map_or(Kind::UInt8, |numbers| numbers.kind);
                let columns = numbers.map_or(1, NumericColumn::row_len);
                (kind, columns, vertices, columns == 1)
            }
        };
        Padded {
            family,
            kind,
            columns,
            rows: rows.max(1),
            flat,
        }
    }

    /// Returns the fill value and byte after the last row.
    fn fill(&self) -> (Value, u8) {
        match (self.family.starts_with("links"), self.kind) {
            (true, _) => (json!(-1), 0xff),
            (_, Kind::Bool) => (json!(false), 0),
            (_, Kind::Complex64 | Kind::Complex128) => (json!([0.0, 0.0]), 0),
            (_, Kind::Float16 | Kind::Float32 | Kind::Float64) => (json!(0.0), 0),
            _ => (json!(0), 0),
        }
    }

    fn bytes(&self) -> usize {
        self.rows * self.columns * self.kind.size()
    }

    fn node(&self, plan: &WritePlan, mut attributes: Map<String, Value>) -> Output {
        let ArrayGrid {
            origin,
            shape: grid,
        } = &plan.grid;
        if origin.iter().any(|at| *at != 0) {
            attributes.insert("chunk_grid_origin".to_owned(), json!(origin));
        }
        let mut tail = vec![self.rows as u64];
        if !self.flat {
            tail.push(self.columns as u64);
        }
        let size = self.kind.size();
        let array = ArrayNode {
            shape: [grid.as_slice(), &tail].concat(),
            data_type: json!(self.kind.name()),
            chunk_shape: [vec![1; grid.len()].as_slice(), &tail].concat(),
            fill: self.fill().0,
            codecs: plan.encoding.codecs(metadata::bytes(size), size),
            attributes,
        };
        node(format!("0/{}", self.family), array.json())
    }
}

fn padded_cell(plan: &WritePlan, family: &str, chunk: u32, mut payload: Vec<u8>) -> Output {
    let padded = Padded::of(plan, family);
    payload.resize(padded.bytes(), padded.fill().1);
    let mut index = plan.index(chunk);
    index.push(0);
    if !padded.flat {
        index.push(0);
    }
    Output::Cell {
        array: format!("0/{family}"),
        index,
        payload,
    }
}

pub(super) fn rest(plan: &WritePlan) -> Result<Vec<Output>, BuildError> {
    let mut outputs = vec![node("0", group_metadata(&v09::level(plan)))];
    let padded = plan.design.profile == Profile::Padded;
    let dense = |family: &str, attributes: Map<String, Value>| {
        if padded {
            Padded::of(plan, family).node(plan, attributes)
        } else {
            node(format!("0/{family}"), group_metadata(&attributes))
        }
    };
    let dtype = plan.geometry.positions.kind.name();
    let vertices = json!({"zv_array": "vertices", "dtype": dtype, "encoding": "raw"});
    outputs.push(dense("vertices", json_object(vertices)));
    let index = |name: &str| json!({"zv_array": name, "encoding": "fragment_index_v1"});
    outputs.push(group("0/vertex_fragments", index("vertex_fragments")));
    if !plan.vertex.is_empty() {
        outputs.push(empty_group("0/vertex_attributes"));
    }
    for column in &plan.vertex {
        let family = format!("vertex_attributes/{}", column.name);
        outputs.push(dense(&family, column.attributes.clone()));
    }
    if !plan.fragment.is_empty() {
        outputs.push(empty_group("0/fragment_attributes"));
    }
    for column in &plan.fragment {
        let path = format!("0/fragment_attributes/{}", column.name);
        outputs.push(node(path, group_metadata(&column.attributes)));
    }
    if let Some(links) = &plan.links {
        if plan.design.kind.is_linked() {
            let family = json!({
                "zv_array": "links", "dtype": "int64", "link_width": links.width.get(),
                "level_delta": 0,
            });
            outputs.push(empty_group("0/links"));
            outputs.push(dense("links/0", json_object(family)));
            outputs.push(group("0/link_fragments", index("link_fragments")));
        }
        let between: usize = links.between.values().map(Cell::len).sum();
        let family = json!({
            "zv_array": "cross_chunk_links", "level_delta": 0, "link_width": links.width.get(),
            "num_links": between, "sid_ndim": plan.geometry.axes(),
        });
        outputs.push(empty_group("0/cross_chunk_links"));
        outputs.push(group("0/cross_chunk_links/0", family));
        for (family, tag) in [
            ("link_attributes", "link_attribute"),
            ("cross_chunk_link_attributes", "cross_chunk_link_attribute"),
        ] {
            if !plan.link.is_empty() {
                outputs.push(empty_group(format!("0/{family}")));
            }
            for column in &plan.link {
                let crossing = (tag != "link_attribute").then_some(between);
                let attributes = link_attribute(column, tag, crossing);
                outputs.push(empty_group(format!("0/{family}/{}", column.name)));
                let path = format!("0/{family}/{}/0", column.name);
                outputs.push(node(path, group_metadata(&attributes)));
            }
        }
    }
    objects::v08(plan, &mut outputs)?;
    for (format, header) in &plan.design.headers {
        outputs.push(node(format!("headers/{format}"), group_metadata(header)));
    }
    if !plan.design.headers.is_empty() {
        outputs.push(empty_group("headers"));
    }
    Ok(outputs)
}

/// Returns the attributes of a link attribute, with the number of links for links between chunks.
fn link_attribute(column: &StoredColumn, tag: &str, crossing: Option<usize>) -> Map<String, Value> {
    let mut attributes = column.attributes.clone();
    attributes.insert("zv_array".to_owned(), json!(tag));
    attributes.insert("level_delta".to_owned(), json!(0));
    if let Some(links) = crossing {
        let columns = column.numbers.row_len();
        let shape: Vec<usize> = (columns > 1).then_some(columns).into_iter().collect();
        attributes.insert("num_links".to_owned(), json!(links));
        attributes.insert("row_shape".to_owned(), json!(shape));
    }
    attributes
}
