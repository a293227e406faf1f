//! Mutants of every field of a blob.

use serde_json::Value;
use zvf_testkit::golden::Files;

use super::Mutant;

/// A field of a stored object.
struct Field {
    at: usize,
    size: usize,
    float: bool,
}

/// Returns blobs in which one field has another value.
pub(super) fn mutants(files: &Files, file: &str, bytes: &[u8]) -> Vec<Mutant> {
    let (array, _) = file.split_once("/c/").unwrap_or_else(|| panic!("{file}"));
    let node = format!("{array}/zarr.json");
    let node = files.iter().find(|(path, _)| *path == node).unwrap();
    let node: Value = serde_json::from_slice(&node.1).unwrap();
    let codecs = node["codecs"].as_array().unwrap();
    let packed = codecs.iter().any(|codec| codec["name"] == "zstd");
    let blob = if packed {
        zstd::decode_all(bytes).unwrap()
    } else {
        bytes.to_vec()
    };
    let mut mutants = Vec::new();
    for field in fields(array, &node, &blob) {
        let old = &blob[field.at..field.at + field.size];
        for new in others(old, field.float) {
            let mut changed = blob.clone();
            changed[field.at..field.at + field.size].copy_from_slice(&new);
            if packed {
                changed = zstd::encode_all(&changed[..], 1).unwrap();
            }
            mutants.push(Mutant {
                file: file.to_owned(),
                what: format!("bytes {}..: {old:02x?} = {new:02x?}", field.at),
                bytes: changed,
            });
        }
    }
    // Truncated and extended.
    for bytes in [
        &bytes[..bytes.len() - 1],
        &bytes[..bytes.len() / 2],
        &[],
        &[bytes, &[0]].concat()[..],
    ] {
        mutants.push(Mutant {
            file: file.to_owned(),
            what: format!("{} bytes", bytes.len()),
            bytes: bytes.to_vec(),
        });
    }
    mutants
}

fn others(old: &[u8], float: bool) -> Vec<Vec<u8>> {
    let mut others = Vec::new();
    if float && old.len() == 4 {
        let number = f32::from_le_bytes(old.try_into().unwrap());
        for other in [f32::NAN, f32::INFINITY, number + 1000.0, number + 0.125] {
            others.push(other.to_le_bytes().to_vec());
        }
    } else if float && old.len() == 8 {
        let number = f64::from_le_bytes(old.try_into().unwrap());
        for other in [f64::NAN, number + 0.125] {
            others.push(other.to_le_bytes().to_vec());
        }
    } else {
        let mut wide = [0; 8];
        wide[..old.len()].copy_from_slice(old);
        let number = u64::from_le_bytes(wide);
        let max = u64::MAX >> (64 - 8 * old.len());
        for other in [
            number.wrapping_add(1),
            number.wrapping_sub(1),
            max,
            number ^ (max - (max >> 1)),
        ] {
            others.push((other & max).to_le_bytes()[..old.len()].to_vec());
        }
    }
    others.retain(|other| other != old);
    others.sort_unstable();
    others.dedup();
    others
}

/// Splits an object into its fields.
fn fields(array: &str, node: &Value, bytes: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    let data_type = node["data_type"].as_str().unwrap_or_default();
    if data_type != "variable_length_bytes" {
        let (size, float) = element(data_type);
        // The rest of a chunk is padding; testing one padding field is enough.
        let rows = node["shape"].as_array().unwrap().iter();
        let count: u64 = rows.map(|extent| extent.as_u64().unwrap()).product();
        let count = usize::try_from(count).unwrap() + 1;
        every(&mut fields, 0, (count * size).min(bytes.len()), size, float);
        return fields;
    }
    every(&mut fields, 0, 4, 4, false);
    let items = number(bytes, 0, 4);
    let mut at = 4;
    for _ in 0..items.min(64) {
        if at + 4 > bytes.len() {
            break;
        }
        every(&mut fields, at, at + 4, 4, false);
        let end = at + 4 + number(bytes, at, 4);
        payload(&mut fields, array, node, bytes, at + 4, end);
        at = end;
    }
    fields
}

fn payload(
    fields: &mut Vec<Field>,
    array: &str,
    node: &Value,
    bytes: &[u8],
    at: usize,
    end: usize,
) {
    let dtype = node["attributes"]["dtype"].as_str().unwrap_or_default();
    if array.ends_with("_fragments") {
        fragments(fields, bytes, at, end);
    } else if array.ends_with("/manifests") {
        manifest(fields, bytes, at, end);
    } else if array.contains("/links/") || array.ends_with("/groups") {
        every(fields, at, end, 8, false);
    } else {
        let (size, float) = element(dtype);
        every(fields, at, end, size, float);
    }
}

fn fragments(fields: &mut Vec<Field>, bytes: &[u8], at: usize, end: usize) {
    if at == end {
        return;
    }
    every(fields, at, at + 4, 4, false);
    every(fields, at + 4, at + 8, 2, false);
    every(fields, at + 8, at + 16, 4, false);
    let (all, ranges) = (number(bytes, at + 8, 4), number(bytes, at + 12, 4));
    let bitmap = all.div_ceil(8).div_ceil(8) * 8;
    let table = at + 16 + bitmap;
    every(fields, at + 16, table, 1, false);
    let offsets = table + 16 * ranges;
    every(fields, table, offsets, 8, false);
    let pool = (offsets + 4 * (all - ranges + 1)).min(end);
    every(fields, offsets.min(end), pool, 4, false);
    every(fields, pool, end, 8, false);
}

fn manifest(fields: &mut Vec<Field>, bytes: &[u8], at: usize, end: usize) {
    if at == end {
        return;
    }
    every(fields, at, at + 4, 4, false);
    let mut at = at + 4;
    while at < end {
        every(fields, at, at + 16, 8, false);
        every(fields, at + 16, at + 17, 1, false);
        let numbers = match bytes[at + 16] {
            0 => 8,
            1 => 16,
            _ => {
                every(fields, at + 17, at + 21, 4, false);
                4 + 8 * number(bytes, at + 17, 4)
            }
        };
        let first = match bytes[at + 16] {
            2 => at + 21,
            _ => at + 17,
        };
        every(fields, first, at + 17 + numbers, 8, false);
        at += 17 + numbers;
    }
}

fn every(fields: &mut Vec<Field>, from: usize, to: usize, size: usize, float: bool) {
    let mut at = from;
    while at + size <= to {
        fields.push(Field { at, size, float });
        at += size;
    }
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(&bytes[at..at + size]);
    usize::try_from(u64::from_le_bytes(wide)).unwrap()
}

fn element(dtype: &str) -> (usize, bool) {
    match dtype {
        "float32" => (4, true),
        "float64" => (8, true),
        "int64" | "uint64" => (8, false),
        "int32" | "uint32" => (4, false),
        "int16" | "uint16" => (2, false),
        _ => (1, false),
    }
}
