//! Manifests as `{"dims": K, "blocks": [{"chunk": […], "fragments": F}]}`, where F is `{"one": id}`
//! or a fragment of a fragment index.

use serde_json::{Value, json};
use zvf_format::manifest::{FragmentRef, ObjectManifest, ObjectManifestBuilder};

use crate::{Codec, Outcome, list, number, numbers, pair};

pub(crate) const CODEC: Codec = Codec {
    name: "object_manifest",
    decode,
    encode,
};

fn decode(bytes: &[u8], with: &Value) -> Outcome<Value> {
    let manifest = ObjectManifest::parse(bytes, number(&with["dims"])?)?;
    let blocks: Vec<_> = manifest
        .iter()
        .map(|block| {
            let fragments = match block.fragments {
                FragmentRef::Single(fragment) => json!({ "one": fragment }),
                FragmentRef::Range(range) => json!({ "range": [range.start, range.len()] }),
                FragmentRef::List(list) => json!({ "list": list.iter().collect::<Vec<_>>() }),
            };
            json!({ "chunk": block.chunk.iter().collect::<Vec<_>>(), "fragments": fragments })
        })
        .collect();
    Ok(json!({ "blocks": blocks, "canonical": manifest.is_canonical() }))
}

fn encode(input: &Value) -> Outcome<Vec<u8>> {
    let mut builder = ObjectManifestBuilder::new(number(&input["dims"])?);
    for block in list(&input["blocks"])? {
        let (chunk, fragments) = (numbers(&block["chunk"])?, &block["fragments"]);
        if !fragments["one"].is_null() {
            builder.push_single(&chunk, number(&fragments["one"])?)?;
        } else if fragments["list"].is_array() {
            builder.push_list(&chunk, &numbers(&fragments["list"])?)?;
        } else {
            let [start, count]: [u32; 2] = pair(&fragments["range"])?;
            builder.push_range(
                &chunk,
                start..start.checked_add(count).ok_or("past the end")?,
            )?;
        }
    }
    Ok(builder.finish())
}
