//! Operators on a store of seven vertices in two chunks.
//!
//! Two objects cross both chunks: 7 is a path of five vertices, 9 a path of two. Links join the
//! vertices of object 7.
//!
//! ```text
//! chunk 0.0                                   chunk 1.0
//! row 0 (1, 1)  radius 1  fragment 0 of 7     row 0 (12, 1)  radius 5  fragment 0 of 7
//! row 1 (4, 1)  radius 2  fragment 0 of 7     row 1 (18, 1)  radius 6  fragment 0 of 7
//! row 2 (8, 1)  radius 3  fragment 0 of 7     row 2 (15, 5)  radius 7  fragment 1 of 9
//! row 3 (2, 8)  radius 4  fragment 1 of 9
//! ```

mod links;
mod paths;
mod rows;
mod scans;

use core::ops::ControlFlow;

use futures_util::FutureExt;
use serde_json::json;
use zvf_catalog::{Catalog, Chunk, ChunkRequest, Diagnostics, LevelCache, RequestedRows, Schema};
use zvf_format::{
    fragment::FragmentIndexBuilder,
    links::{LinkRowsBuilder, LinkWidth, Permutation, RowForm},
    manifest::ObjectManifestBuilder,
    vlen,
};
use zvf_model::{
    column::{Column, ColumnValues},
    fetch::Port,
    generation::Generation,
    grid::ChunkCoord,
};

use super::{context::ExecContext, operator::OperatorTree};
use crate::{
    query::Query,
    resolve::query::{Batching, LevelQuery},
    result::QueryResult,
    session::Session,
};

type TestStore = zvf_testkit::MemoryStore<LevelCache>;

fn floats(values: &[f32]) -> Vec<u8> {
    let values = values.iter().map(|value| value.to_le_bytes());
    values.flatten().collect()
}

/// Encodes a fragment index.
fn fragments(ranges: &[core::ops::Range<u64>]) -> Vec<u8> {
    let mut index = FragmentIndexBuilder::default();
    for range in ranges {
        index.push_range(range.clone()).unwrap();
    }
    index.finish()
}

/// Creates the store as geometry of this kind.
fn store(kind: &str, convention: &str) -> TestStore {
    let mut memory = TestStore::new(Generation::V0_9, kind, convention);
    let west = floats(&[1.0, 1.0, 4.0, 1.0, 8.0, 1.0, 2.0, 8.0]);
    let east = floats(&[12.0, 1.0, 18.0, 1.0, 15.0, 5.0]);
    let attributes = json!({"dtype": "float32"});
    memory.cells(
        "0/vertices",
        attributes.clone(),
        &[([0, 0], west), ([1, 0], east)],
    );
    let cells = [
        ([0, 0], floats(&[1.0, 2.0, 3.0, 4.0])),
        ([1, 0], floats(&[5.0, 6.0, 7.0])),
    ];
    memory.group("0/vertex_attributes", json!({}));
    memory.cells("0/vertex_attributes/radius", attributes, &cells);
    let cells = [
        ([0, 0], fragments(&[0..3, 3..4])),
        ([1, 0], fragments(&[0..2, 2..3])),
    ];
    memory.cells("0/vertex_fragments", json!({}), &cells);
    objects(&mut memory);
    links(&mut memory);
    memory
}

/// Adds the objects and an attribute of them.
fn objects(memory: &mut TestStore) {
    let manifest = |fragment| manifest(&[([0, 0], fragment), ([1, 0], fragment)]);
    object_index(memory, &[manifest(0), manifest(1)]);
    memory.group("0/object_attributes", json!({}));
    memory.array("0/object_attributes/lanes", &[2], &[2], &json!({}));
    let lanes = [2_i64, 1].map(i64::to_le_bytes).concat();
    memory.put("0/object_attributes/lanes/c/0", &lanes);
}

/// Encodes a manifest of fragments by their chunk and number.
fn manifest(fragments: &[([i64; 2], u32)]) -> Vec<u8> {
    let mut manifest = ObjectManifestBuilder::new(2);
    for (chunk, fragment) in fragments {
        manifest.push_single(chunk, *fragment).unwrap();
    }
    manifest.finish()
}

/// Adds the object index of objects 7 and 9.
fn object_index(memory: &mut TestStore, manifests: &[Vec<u8>; 2]) {
    memory.group(
        "0/object_index",
        json!({"num_objects": 2, "num_present": 2, "sid_ndim": 2,
            "layout": "vlen_manifests_v2", "object_ids_sorted": true}),
    );
    let strings = json!({"data_type": "variable_length_bytes", "fill_value": "",
        "codecs": ["vlen-bytes"]});
    memory.array("0/object_index/manifests", &[2], &[2], &strings);
    let frame = vlen::encode(manifests).unwrap();
    memory.put("0/object_index/manifests/c/0", &frame);
    memory.array("0/object_index/object_ids", &[2], &[2], &json!({}));
    let ids = [7_i64, 9].map(i64::to_le_bytes).concat();
    memory.put("0/object_index/object_ids/c/0", &ids);
}

/// Adds links between consecutive vertices of object 7.
fn links(memory: &mut TestStore) {
    let family = json!({
        "zv_array": "links_family", "level_delta": 0, "link_width": 2, "directed": false,
        "store": "canonical", "sid_ndim": 2, "num_links": 4, "num_physical_records": 4,
    });
    memory.group("0/links/0", family);
    let rows = |form, rows: &[[u64; 2]]| {
        let mut builder = LinkRowsBuilder::new(LinkWidth::EDGE, form);
        for row in rows {
            let order = Permutation::from_code(LinkWidth::EDGE, 0).unwrap();
            builder.push(order, row).unwrap();
        }
        builder
    };
    let inside = [
        (
            [0, 0],
            rows(RowForm::Plain, &[[0, 1], [1, 2]]).finish_rows(),
        ),
        ([1, 0], rows(RowForm::Plain, &[[0, 1]]).finish_rows()),
    ];
    memory.cells("0/links/0/0.0", json!({}), &inside);
    let across = rows(RowForm::Permuted, &[[2, 0]]).finish_ragged();
    memory.cells("0/links/0/+1.0", json!({}), &[([0, 0], across)]);
}

/// Polls a future that never waits, because the files are in memory.
fn poll_ready<F: Future>(future: F) -> F::Output {
    future.now_or_never().unwrap()
}

fn resolved<'m>(memory: &'m TestStore, query: &'m Query) -> LevelQuery<'m> {
    let catalog = Catalog {
        fetch: Port::new(memory),
        layout: &memory.layout,
        root: &memory.root,
        levels: &memory.opened,
    };
    poll_ready(Session::new(catalog).resolve(query)).unwrap()
}

/// Opens the arrays of a query and reads both chunks.
fn chunks(query: &LevelQuery<'_>) -> (Schema, Vec<Chunk>) {
    let schema = poll_ready(query.schema(true)).unwrap().unwrap();
    let request = |x| ChunkRequest {
        chunk: ChunkCoord::new(vec![x, 0]),
        fragments: true,
        rows: RequestedRows::All,
    };
    let requests = vec![request(0), request(1)];
    let chunks = poll_ready(
        query
            .catalog
            .chunks(&schema, requests, &Diagnostics::new(false)),
    )
    .unwrap()
    .into_iter()
    .map(Option::unwrap);
    (schema, chunks.collect())
}

/// Plans and runs a query. Returns the result, the requests of each call for cells, and the
/// operators of the plan.
fn run(memory: &TestStore, query: &Query) -> (QueryResult, Vec<Vec<String>>, Vec<String>) {
    let diagnostics = Diagnostics::new(false);
    let mut query = resolved(memory, query);
    query.batching = Batching::Whole;
    let plan = poll_ready(query.physical_plan(&diagnostics)).unwrap();
    let mut tree = OperatorTree::new(&query);
    plan.describe(&mut tree);
    let operators = tree
        .operators
        .iter()
        .map(|text| format!("{}{}", " ".repeat(text.depth), text.name))
        .collect();
    memory.rounds();
    let mut batches = Vec::new();
    let mut emit = |batch| {
        batches.push(batch);
        ControlFlow::Continue(())
    };
    let context = ExecContext::new(&query, &diagnostics);
    poll_ready(plan.execute(context, &mut emit)).unwrap();
    let mut batches = batches.into_iter();
    let mut result: QueryResult = batches.next().unwrap();
    batches.for_each(|batch| result.append(batch).unwrap());
    let rounds = memory.rounds().into_iter();
    let cells = rounds.filter(|round| round.iter().any(|path| path.contains("/c/")));
    (result, cells.collect(), operators)
}

/// The x of each vertex.
fn xs(result: &QueryResult) -> Vec<f64> {
    let rows = result.positions.view().unwrap();
    let x = |row| rows.value(row, 0).unwrap().to_f64();
    (0..rows.rows()).map(x).collect()
}

/// The values of a column.
fn values(column: &Column) -> Vec<f64> {
    let ColumnValues::Numeric(rows) = &column.values else {
        unreachable!("{column:?}");
    };
    let rows = rows.view().unwrap();
    let value = |row| rows.value(row, 0).unwrap().to_f64();
    (0..rows.rows()).map(value).collect()
}
