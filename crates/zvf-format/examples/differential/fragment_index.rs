//! Fragment indexes as `{"fragments": [{"range": [start, count]} | {"list": [rows…]}]}`.

use serde_json::{Value, json};
use zvf_format::fragment::{FragmentIndex, FragmentIndexBuilder, Rows};

use crate::{Codec, Outcome};

pub(crate) const CODEC: Codec = Codec {
    name: "fragment_index",
    decode,
    encode,
};

fn decode(bytes: &[u8], _with: &Value) -> Outcome<Value> {
    let index = FragmentIndex::parse(bytes)?;
    let fragments = index.iter().map(|rows| match rows {
        Rows::Range(rows) => json!({ "range": [rows.start, rows.end - rows.start] }),
        Rows::List(rows) => json!({ "list": rows.iter().collect::<Vec<_>>() }),
    });
    let fragments: Vec<_> = fragments.collect();
    Ok(json!({ "fragments": fragments, "extent": index.extent() }))
}

fn encode(input: &Value) -> Outcome<Vec<u8>> {
    let mut builder = FragmentIndexBuilder::default();
    for fragment in input["fragments"].as_array().ok_or("no fragments")? {
        if let Some(range) = fragment["range"].as_array() {
            let [start, count] = numbers(range)?[..] else {
                return Err("a range is two numbers".into());
            };
            builder.push_range(start..start.checked_add(count).ok_or("past the end")?)?;
        } else {
            let list = fragment["list"].as_array().ok_or("no range and no list")?;
            builder.push_list(&numbers(list)?)?;
        }
    }
    Ok(builder.finish())
}

fn numbers(values: &[Value]) -> Outcome<Vec<u64>> {
    let numbers = values.iter().map(|value| value.as_u64().ok_or("no row"));
    Ok(numbers.collect::<Result<_, _>>()?)
}
