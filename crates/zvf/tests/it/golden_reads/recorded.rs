//! A recorded level, in one form for all archives.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use zvf::Dataset;
use zvf_catalog::{LevelCache, Selection};
use zvf_format::path::Delta;
use zvf_model::level::LevelId;
use zvf_testkit::golden::unhex;

use super::columns;
use crate::{block_on, objects::catalog};

pub(super) type Coord = Vec<i64>;

/// Id of an object, and the chunk and fragment of each piece.
pub(super) type Object = (i64, Vec<(Coord, usize)>);
/// Chunk and row of each end of a link.
pub(super) type Record = Vec<(Coord, u64)>;

#[derive(Debug, Default)]
pub(super) struct Level {
    /// Chunks in ascending order.
    pub(super) chunks: Vec<Chunk>,
    /// Objects in row order; `None` if there are none.
    pub(super) objects: Option<Vec<Object>>,
    pub(super) links: Links,
    /// Values of the attribute by which the level is chunked.
    pub(super) chunked_by: Vec<Json>,
}

#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) coord: Coord,
    pub(super) fragments: Vec<Fragment>,
    /// Attributes of fragments: type, and a row for each fragment.
    pub(super) attributes: BTreeMap<String, (String, Vec<Json>)>,
}

#[derive(Debug)]
pub(super) struct Fragment {
    /// Rows of the chunk.
    pub(super) rows: Vec<u64>,
    pub(super) positions: Vec<Vec<Json>>,
    /// Vertex attributes, as far as the reference could read them.
    pub(super) attributes: BTreeMap<String, Json>,
}

/// Links of the family with delta 0 as stored, including copies.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) width: usize,
    pub(super) is_directed: bool,
    pub(super) is_duplicate: bool,
    pub(super) records: Vec<Record>,
    pub(super) attributes: BTreeMap<String, Vec<Json>>,
}

impl Level {
    pub(super) fn has_object(&self, id: i64) -> bool {
        let mut objects = self.objects.iter().flatten();
        objects.any(|(found, _)| *found == id)
    }

    /// Returns whether a chunk lacks values of an attribute that match its vertices.
    pub(super) fn lacks(&self, name: &str, coord: &Coord) -> bool {
        let mut chunks = self.chunks.iter().filter(|chunk| chunk.coord == *coord);
        chunks.all(|chunk| {
            let values = |fragment: &Fragment| match fragment.attributes.get(name) {
                Some(Json::Array(values)) => values.len(),
                _ => 0,
            };
            chunk.fragments.iter().map(values).sum::<usize>() == 0
        })
    }

    pub(super) fn fragment(&self, coord: &Coord, fragment: usize) -> &Fragment {
        let mut chunks = self.chunks.iter();
        let chunk = chunks.find(|chunk| chunk.coord == *coord);
        &chunk.unwrap().fragments[fragment]
    }
}

fn coord(text: &str) -> Coord {
    text.split('.').map(|part| part.parse().unwrap()).collect()
}

fn list(json: &Json) -> &[Json] {
    json.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn fields(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    json.as_object().into_iter().flatten()
}

fn range(start: &Json, count: &Json) -> Vec<u64> {
    let start = start.as_u64().unwrap();
    (start..start + count.as_u64().unwrap()).collect()
}

fn positions(json: &Json) -> Vec<Vec<Json>> {
    list(json).iter().map(|row| list(row).to_vec()).collect()
}

/// Adds stored link attributes of a generation whose expectations have none; another test compares
/// them with the payloads.
fn stored_attributes(links: &mut Links, number: u32, dataset: &Dataset) {
    let levels = LevelCache::default();
    let catalog = catalog(dataset, &levels);
    let stored = catalog.stored_links(LevelId::new(number), Delta::INTRA, &Selection::All, false);
    let Some(stored) = block_on(stored).unwrap() else {
        return;
    };
    let families = &stored.families;
    let names: BTreeSet<_> = families
        .iter()
        .flat_map(|family| &family.attributes)
        .map(|column| column.name.clone())
        .collect();
    for name in names {
        let mut rows = Vec::new();
        for family in families {
            match columns::named(&family.attributes, &name) {
                Some(column) => rows.extend(columns::column(column).into_iter().map(Json::from)),
                None => rows.extend((0..family.len()).map(|_| json!([null]))),
            }
        }
        assert_eq!(rows.len(), links.records.len());
        links.attributes.insert(name, rows);
    }
}

/// Reads a level from an expectation.
pub(super) fn level(expected: &Json, number: u32, dataset: &Dataset) -> Level {
    let Some(json) = expected["levels"].get(number.to_string()) else {
        return Level::default();
    };
    let mut level = match json.get("chunk_keys") {
        Some(_) => {
            let mut level = older(json, &expected["blobs"], number);
            stored_attributes(&mut level.links, number, dataset);
            level
        }
        None => current(json),
    };
    for attributes in ["attributes", "attrs"] {
        let values = &json[attributes]["zarr_vectors_level"]["chunk_attribute_values"];
        level.chunked_by.extend_from_slice(list(values));
    }
    level.chunks.sort_by(|a, b| a.coord.cmp(&b.coord));
    level
}

/// Replaces dictionary codes by their words.
fn words(codes: Json, attributes: &Json) -> Json {
    let Some(words) = attributes["categories"].as_array() else {
        return codes;
    };
    let word = |code: &Json| {
        let code = code.as_u64().and_then(|code| usize::try_from(code).ok());
        code.and_then(|code| words.get(code))
            .cloned()
            .unwrap_or_default()
    };
    list(&codes).iter().map(word).collect()
}

fn current(json: &Json) -> Level {
    let arrays = &json["arrays"];
    let chunks = fields(&json["vertices"]).map(|(key, json)| {
        let fragments = list(&json["fragments"])
            .iter()
            .zip(list(&json["index"]))
            .enumerate()
            .map(|(at, (rows, index))| {
                let attributes = fields(&json["attributes"]).filter_map(|(name, json)| {
                    // An attribute that the reference could not read is text.
                    let values = json.as_array()?[at].clone();
                    let array = format!("vertex_attributes/{name}");
                    Some((name.clone(), words(values, &arrays[array]["attributes"])))
                });
                Fragment {
                    rows: match index[0].as_str() {
                        Some("range") => range(&index[1], &index[2]),
                        _ => list(&index[1])
                            .iter()
                            .map(|row| row.as_u64().unwrap())
                            .collect(),
                    },
                    positions: positions(rows),
                    attributes: attributes.collect(),
                }
            });
        let attributes = fields(&json["fragment_attributes"]).map(|(name, json)| {
            let dtype = json["dtype"].as_str().unwrap().to_owned();
            (name.clone(), (dtype, list(&json["data"]).to_vec()))
        });
        Chunk {
            coord: coord(key),
            fragments: fragments.collect(),
            attributes: attributes.collect(),
        }
    });
    let objects = json.get("objects").map(|objects| {
        let manifests = list(&objects["ids"]).iter().map(|id| {
            let pieces = list(&objects["manifests"][id.to_string()])
                .iter()
                .map(|piece| {
                    let fragment = piece[1].as_u64().unwrap();
                    (
                        coord(piece[0].as_str().unwrap()),
                        fragment.try_into().unwrap(),
                    )
                });
            (id.as_i64().unwrap(), pieces.collect())
        });
        manifests.collect()
    });
    Level {
        chunks: chunks.collect(),
        objects,
        links: links_of_array(&json["links"]["0"]),
        chunked_by: Vec::new(),
    }
}

/// Decodes rows of three float32 from a level that the reference of that version could not read.
fn rows_of_blob(hex: &Json) -> Vec<Vec<Json>> {
    let bytes = hex.as_str().map(unhex).unwrap_or_default();
    let number = |bytes: &[u8]| json!(f32::from_le_bytes(bytes.try_into().unwrap()));
    let rows = bytes.chunks(12);
    rows.map(|row| row.chunks(4).map(number).collect())
        .collect()
}

fn older(json: &Json, blobs: &Json, number: u32) -> Level {
    let chunks = fields(&json["chunks"]).map(|(key, chunk)| {
        let read = &chunk["vertices"];
        // Only needed where the reference failed.
        let blob = rows_of_blob(&blobs[format!("{number}/vertices/{key}")]);
        let fragments = list(&chunk["fragments"]).iter();
        let fragments = fragments.enumerate().map(|(at, index)| {
            let attributes = fields(&json["vertex_attributes"]).filter_map(|(name, json)| {
                let values = json["chunks"].get(key)?.as_array()?;
                Some((name.clone(), words(values[at].clone(), &json["meta"])))
            });
            let explicit = || {
                let rows = list(&index["explicit"]).iter();
                rows.map(|row| row.as_u64().unwrap()).collect()
            };
            let numbers: Vec<u64> = index
                .get("range")
                .map_or_else(explicit, |rows| range(&rows[0], &rows[1]));
            let row = |row: &u64| blob[usize::try_from(*row).unwrap()].clone();
            Fragment {
                positions: match read.as_array() {
                    Some(fragments) => positions(&fragments[at]),
                    None => numbers.iter().map(row).collect(),
                },
                rows: numbers,
                attributes: attributes.collect(),
            }
        });
        Chunk {
            coord: coord(key),
            fragments: fragments.collect(),
            attributes: BTreeMap::new(),
        }
    });
    let chunk = |json: &Json| {
        list(json)
            .iter()
            .map(|part| part.as_i64().unwrap())
            .collect()
    };
    let objects = json["manifests"].as_array().map(|manifests| {
        let manifests = (0..).zip(manifests).map(|(id, pieces)| {
            let pieces = list(pieces).iter().map(|piece| {
                let fragment = piece[1].as_u64().unwrap();
                (chunk(&piece[0]), fragment.try_into().unwrap())
            });
            (id, pieces.collect())
        });
        manifests.collect()
    });
    Level {
        chunks: chunks.collect(),
        objects,
        links: older_links(json, "0"),
        chunked_by: Vec::new(),
    }
}

/// Returns the links of a delta other than 0 stored at a level, if any.
pub(super) fn links(expected: &Json, number: u32, delta: i32) -> Option<Links> {
    let json = expected["levels"].get(number.to_string())?;
    // The key has a sign in some archives.
    let mut families = fields(&json["links"]).chain(fields(&json["cross_chunk_links"]));
    let (delta, family) = families.find(|(text, _)| text.parse() == Ok(delta))?;
    let links = match json.get("chunk_keys") {
        Some(_) => older_links(json, delta),
        None => links_of_array(family),
    };
    (!links.records.is_empty()).then_some(links)
}

fn links_of_array(family: &Json) -> Links {
    let policy = &family["policy"];
    let record = |record: &Json| {
        let ends = list(record).iter();
        ends.map(|end| (coord(end[0].as_str().unwrap()), end[1].as_u64().unwrap()))
            .collect()
    };
    let attributes = fields(&family["attributes"])
        .map(|(name, json)| (name.clone(), list(&json["data"]).to_vec()));
    Links {
        width: policy["link_width"]
            .as_u64()
            .unwrap_or(2)
            .try_into()
            .unwrap(),
        is_directed: policy["directed"] == true,
        is_duplicate: policy["store"] == "duplicate",
        records: list(&family["records"]).iter().map(record).collect(),
        attributes: attributes.collect(),
    }
}

/// Returns links inside chunks, then cross-chunk links.
fn older_links(json: &Json, delta: &str) -> Links {
    let (inside, between) = (&json["links"][delta], &json["cross_chunk_links"][delta]);
    let mut records: Vec<(Coord, Vec<Record>)> = Vec::new();
    for (key, groups) in fields(&inside["chunks"]) {
        let key = coord(key);
        let rows = list(groups).iter().flat_map(list).map(|row| {
            let ends = list(row).iter();
            ends.map(|row| (key.clone(), row.as_u64().unwrap()))
                .collect()
        });
        records.push((key.clone(), rows.collect()));
    }
    records.sort();
    let mut records: Vec<_> = records.into_iter().flat_map(|(_, rows)| rows).collect();
    records.extend(list(&between["records"]).iter().map(|record| {
        let ends = list(record).iter();
        ends.map(|end| {
            (
                list(&end[0])
                    .iter()
                    .map(|part| part.as_i64().unwrap())
                    .collect(),
                end[1].as_u64().unwrap(),
            )
        })
        .collect::<Vec<_>>()
    }));
    let widths = [&inside["meta"], &between["meta"]].map(|meta| meta["link_width"].as_u64());
    let width = widths.into_iter().flatten().next().unwrap_or(2);
    Links {
        width: width.try_into().unwrap(),
        is_directed: between["meta"]["directed"] == true,
        is_duplicate: between["meta"]["store"] == "duplicate",
        records,
        attributes: BTreeMap::new(),
    }
}
