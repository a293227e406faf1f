//! Fragment indexes as `{"fragments": [{"range": [start, count]} | {"list": [rows…]}]}`.

use serde_json::{Value, json};
use zvf_format::fragment::{FragmentIndex, FragmentIndexBuilder, Rows};

use crate::{Codec, Outcome, list, numbers, pair};

pub(crate) const CODEC: Codec = Codec {
    name: "fragment_index",
    decode,
    encode,
};

fn decode(bytes: &[u8], _with: &Value) -> Outcome<Value> {
    let index = FragmentIndex::parse(bytes)?;
    let fragments: Vec<_> = index
        .iter()
        .map(|rows| match rows {
            Rows::Range(rows) => json!({ "range": [rows.start, rows.end - rows.start] }),
            Rows::List(rows) => json!({ "list": rows.iter().collect::<Vec<_>>() }),
        })
        .collect();
    let (extent, canonical) = (index.extent(), index.is_canonical());
    Ok(json!({ "fragments": fragments, "extent": extent, "canonical": canonical }))
}

fn encode(input: &Value) -> Outcome<Vec<u8>> {
    let mut builder = FragmentIndexBuilder::default();
    for fragment in list(&input["fragments"])? {
        if fragment["list"].is_array() {
            builder.push_list(&numbers(&fragment["list"])?)?;
        } else {
            let [start, count]: [u64; 2] = pair(&fragment["range"])?;
            builder.push_range(start..start.checked_add(count).ok_or("past the end")?)?;
        }
    }
    Ok(builder.finish())
}
