//! Links of generation 0.9: an array for each step from chunk to chunk.

use std::{collections::BTreeMap, iter, ops::Range};

use serde_json::{Value, json};
use zvf_format::{
    links::{LinkRowsBuilder, LinkWidth, Permutation, RowForm},
    path::{ChunkCoords, OffsetCoords},
};

use super::{
    ExpectedStore, RecordPolicy, StoreKind,
    files::{Files, GridOf, Payloads},
    parts,
};
use crate::filing::FilingRules;

/// Writes the family of links within the level, and records their order.
pub(super) fn write(truth: &mut ExpectedStore, files: &mut Files, grid: &GridOf) {
    let kind = truth.recipe.kind;
    let stored = truth.links.iter().filter(|link| link.stored).count();
    if kind.is_points() || (kind.is_paths() && stored == 0) {
        return;
    }
    let family = Family::of(truth);
    let buckets = family.file(truth);
    files.group("0/links", &json!({}));
    let mut attributes = family.attributes();
    if stored > 0 || files.random().chance(50) {
        let cells = buckets.values().flat_map(|bucket| bucket.cells.values());
        attributes["num_links"] = json!(stored);
        attributes["num_physical_records"] = json!(cells.map(Vec::len).sum::<usize>());
    }
    files.group("0/links/0", &attributes);
    if !truth.link_attributes.is_empty() {
        files.group("0/link_attributes", &json!({}));
    }
    for attribute in &truth.link_attributes {
        let attributes = json!({
            "zv_array": "link_attribute_family", "name": attribute.name,
            "level_delta": 0, "num_links": stored,
        });
        let path = format!("0/link_attributes/{}", attribute.name);
        files.group(&path, &json!({}));
        files.group(&format!("{path}/0"), &attributes);
    }
    let mut order = Vec::new();
    for (segment, bucket) in &buckets {
        family.write(truth, files, grid, (segment, bucket));
        // Cells are ordered by their keys as text.
        let mut cells: Vec<_> = bucket.cells.iter().collect();
        cells.sort_by_key(|(chunk, _)| ChunkCoords(chunk).to_string());
        for (_, rows) in cells {
            order.extend(rows.iter().filter(|row| row.leads).map(|row| row.link));
        }
    }
    truth.link_order = order;
}

/// Common properties of all links of the level.
struct Family {
    width: LinkWidth,
    arity: usize,
    directed: bool,
    duplicate: bool,
}

/// One array.
struct Bucket {
    offsets: Vec<Vec<i64>>,
    cells: BTreeMap<Vec<i64>, Vec<Row>>,
}

/// One stored copy of a link.
struct Row {
    link: usize,
    order: Permutation,
    vertices: Vec<u64>,
    /// `true` if it is the first copy of the link.
    leads: bool,
}

impl Family {
    fn of(truth: &ExpectedStore) -> Self {
        let policy = truth.recipe.policy;
        Self {
            width: LinkWidth::new(parts::length(truth.recipe.kind.width())).expect("a width"),
            arity: parts::arity(truth),
            directed: policy == RecordPolicy::Directed,
            duplicate: policy == RecordPolicy::Duplicate,
        }
    }

    fn attributes(&self) -> Value {
        let store = if self.duplicate {
            "duplicate"
        } else {
            "canonical"
        };
        json!({
            "zv_array": "links_family", "level_delta": 0, "link_width": self.width.get(),
            "directed": self.directed, "store": store, "sid_ndim": self.arity,
        })
    }

    /// Returns the offsets of links inside a chunk.
    fn zeros(&self) -> Vec<Vec<i64>> {
        vec![vec![0; self.arity]; self.width.get() - 1]
    }

    /// Assigns each link to an array and a cell; arrays by name.
    fn file(&self, truth: &ExpectedStore) -> BTreeMap<String, Bucket> {
        let kind = truth.recipe.kind;
        let filing = FilingRules::of_level(self.width, self.arity, self.directed, self.duplicate);
        let mut buckets: BTreeMap<String, Bucket> = BTreeMap::new();
        let empty = |offsets| Bucket {
            offsets,
            cells: BTreeMap::new(),
        };
        // The array exists even without cells.
        if kind.is_linked() {
            let zeros = self.zeros();
            buckets.insert(OffsetCoords(&zeros).to_string(), empty(zeros));
        }
        let stored = truth
            .links
            .iter()
            .enumerate()
            .filter(|(_, link)| link.stored);
        for (number, link) in stored {
            let mut record = parts::record(truth, &link.ends);
            // Streamed links between chunks name the parent first.
            if kind == StoreKind::StreamedSkeleton && record[0].0 != record[1].0 {
                record.reverse();
            }
            let copies = filing.file(&record).expect("small offsets");
            for (copy, filed) in copies.into_iter().enumerate() {
                let slots = filed.order.slots().iter().skip(1);
                let offset = |slot: &u8| -> Vec<i64> {
                    let chunk = record[usize::from(*slot)].0.iter().zip(&filed.source);
                    chunk.map(|(chunk, source)| chunk - source).collect()
                };
                let offsets = slots.map(offset).collect();
                let bucket = buckets.entry(filed.segment);
                let cells = &mut bucket.or_insert_with(|| empty(offsets)).cells;
                cells.entry(filed.source).or_default().push(Row {
                    link: number,
                    order: filed.order,
                    vertices: filed.vertices,
                    leads: copy == 0,
                });
            }
        }
        if kind == StoreKind::StreamedSkeleton {
            for rows in buckets
                .values_mut()
                .flat_map(|bucket| bucket.cells.values_mut())
            {
                // A branch is stored with the fragment that it starts.
                rows.sort_by_key(|row| child_fragment(truth, row));
            }
        }
        buckets
    }

    /// Writes an array and the attributes of its links.
    fn write(
        &self,
        truth: &ExpectedStore,
        files: &mut Files,
        grid: &GridOf,
        (segment, bucket): (&str, &Bucket),
    ) {
        let flat = bucket.offsets == self.zeros();
        let plain = flat || (self.directed && !self.duplicate);
        let form = if plain {
            RowForm::Plain
        } else {
            RowForm::Permuted
        };
        let cell = |rows: &Vec<Row>| {
            let mut builder = LinkRowsBuilder::new(self.width, form);
            for (at, row) in rows.iter().enumerate() {
                builder.push(row.order, &row.vertices).expect("a row");
                // As if an edit had appended the rest.
                if at % 3 == 2 {
                    builder.end_group();
                }
            }
            if flat {
                builder.finish_rows()
            } else {
                builder.finish_ragged()
            }
        };
        let cells: Payloads = bucket
            .cells
            .iter()
            .map(|(chunk, rows)| (chunk.clone(), cell(rows)))
            .collect();
        let attributes = json!({
            "zv_array": "links", "dtype": "int64", "offsets": bucket.offsets,
            "has_perm": !plain, "link_width": self.width.get(), "level_delta": 0,
        });
        files.per_chunk(&format!("0/links/0/{segment}"), attributes, &cells, grid);
        if flat {
            let attributes = json!({"zv_array": "link_fragments", "encoding": "fragment_index_v1"});
            files.per_chunk("0/link_fragments", attributes, &groups(truth, bucket), grid);
        }
        let links = |rows: &Vec<Row>| rows.iter().map(|row| row.link).collect();
        let cells = bucket.cells.iter();
        let rows = cells
            .map(|(chunk, rows)| (chunk.clone(), links(rows)))
            .collect();
        for attribute in &truth.link_attributes {
            let mut attributes = parts::attribute(attribute, "link_attribute", true);
            attributes["offsets"] = json!(bucket.offsets);
            attributes["level_delta"] = json!(0);
            let path = format!("0/link_attributes/{}/0/{segment}", attribute.name);
            files.per_chunk(&path, attributes, &parts::gathered(attribute, &rows), grid);
        }
    }
}

/// Returns the groups of the rows of each cell: a single group, or for streams one for each
/// fragment of vertices.
fn groups(truth: &ExpectedStore, bucket: &Bucket) -> Payloads {
    if truth.recipe.kind != StoreKind::StreamedSkeleton {
        let cells = bucket.cells.iter();
        let group = |rows: &Vec<Row>| parts::ranges(iter::once(0..parts::length(rows.len())));
        return cells
            .map(|(chunk, rows)| (chunk.clone(), group(rows)))
            .collect();
    }
    let mut chunks: BTreeMap<Vec<i64>, Vec<Range<u64>>> = BTreeMap::new();
    for (number, fragment) in truth.fragments.iter().enumerate() {
        let rows = bucket.cells.get(&fragment.chunk).into_iter().flatten();
        let own = rows.filter(|row| child_fragment(truth, row) == number);
        let groups = chunks.entry(fragment.chunk.clone()).or_default();
        let start = groups.last().map_or(0, |group| group.end);
        groups.push(start..start + parts::length(own.count()));
    }
    let chunks = chunks.into_iter();
    chunks
        .map(|(chunk, groups)| (chunk, parts::ranges(groups)))
        .collect()
}

/// Returns the fragment of the first end.
fn child_fragment(truth: &ExpectedStore, row: &Row) -> usize {
    truth.vertices[truth.links[row.link].ends[0]].fragment
}
