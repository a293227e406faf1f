//! All cells of a family of links, from records as in `link_placement.json`.
//!
//! The bytes are a frame: the path and the content of each cell, in the order of the paths.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use zvf_format::{
    links::{LinkRow, LinkRows, LinkRowsBuilder, RaggedLinks},
    path::{ChunkCoords, ChunkKey, Delta, Offsets},
    vlen::{self, VlenFrame},
};
use zvf_testkit::filing::{FilingRules, record_from_json, record_to_json};

use crate::{Codec, Outcome, list, number};

pub(crate) const CODEC: Codec = Codec {
    name: "link_cells",
    decode,
    encode,
};

fn decode(bytes: &[u8], with: &Value) -> Outcome<Value> {
    let family = FilingRules::from_json(with, number(&with["width"])?);
    let frame: Vec<&[u8]> = VlenFrame::parse(bytes)?.iter().collect();
    let cells = frame.chunks_exact(2);
    if !cells.remainder().is_empty() {
        return Err("a path without a cell".into());
    }
    let mut records = Vec::new();
    for cell in cells {
        let [path, cell] = cell else { break };
        let path: Vec<&str> = core::str::from_utf8(path)?.split('/').collect();
        let ["links", delta, offsets, source] = path[..] else {
            return Err(format!("no path of a cell: {path:?}").into());
        };
        if i64::from(Delta::parse(delta)?.levels()) != family.delta {
            return Err("another family".into());
        }
        let offsets = Offsets::parse(offsets, family.width, family.scales.len())?;
        let source: Vec<i64> = ChunkKey::parse(source, family.scales.len())?
            .coords()
            .collect();
        let record = |row: LinkRow<'_>| {
            let stored: Vec<u64> = row.stored().collect();
            let record = family.record(&offsets, &source, row.order(), &stored);
            Ok(record_to_json(&record.ok_or("a chunk past 64 bits")?))
        };
        let rows = if family.is_flat(&offsets) {
            LinkRows::parse(cell, family.width, family.form(&offsets))?
        } else {
            RaggedLinks::parse(cell, family.width, family.form(&offsets))?.rows()
        };
        let found: Outcome<Vec<Value>> = rows.iter().map(record).collect();
        records.extend(found?);
    }
    Ok(json!({ "records": records }))
}

fn encode(input: &Value) -> Outcome<Vec<u8>> {
    let family = FilingRules::from_json(input, number(&input["width"])?);
    let delta = Delta::new(i32::try_from(family.delta)?);
    let mut cells = BTreeMap::new();
    for record in list(&input["records"])? {
        let copies = family.file(&record_from_json(record));
        for copy in copies.ok_or("an offset past 64 bits")? {
            let source = ChunkCoords(&copy.source);
            let path = format!("links/{delta}/{}/{source}", copy.segment);
            let offsets = Offsets::parse(&copy.segment, family.width, copy.source.len())?;
            let (flat, form) = (family.is_flat(&offsets), family.form(&offsets));
            let new = || (flat, LinkRowsBuilder::new(family.width, form));
            let (_, rows) = cells.entry(path).or_insert_with(new);
            rows.push(copy.order, &copy.vertices)?;
        }
    }
    let cells = cells.into_iter().map(|(path, (flat, rows))| {
        let rows = if flat {
            rows.finish_rows()
        } else {
            rows.finish_ragged()
        };
        [path.into_bytes(), rows]
    });
    Ok(vlen::encode(&cells.flatten().collect::<Vec<_>>())?)
}
