//! The requests of a viewer that looks at different parts of a layer.

use anyhow::{Context, Result};
use serde_json::Value;

use super::{client::Connection, server::Serving};

/// Requests of each level, or of all objects.
const WANTED: usize = 100;
const TRIES: u64 = 4000;

/// Returns paths that exist: cells of each level of the spatial index, or objects.
pub(super) fn of(server: &Serving, layer: &str) -> Result<Vec<String>> {
    let info = server.json(&format!("{layer}/info"))?;
    let mut random = Random(1);
    let mut found = Found {
        connection: Connection::open(server.address)?,
        paths: Vec::new(),
    };
    if let Some(levels) = info["spatial"].as_array() {
        for level in levels {
            let key = level["key"].as_str().context("key")?;
            let shape = level["grid_shape"].as_array().context("grid_shape")?;
            let shape: Vec<u64> = shape.iter().filter_map(Value::as_u64).collect();
            let before = found.paths.len();
            let cells: u64 = shape.iter().product();
            for _ in 0..TRIES.min(4 * cells) {
                let cell: Vec<String> = shape
                    .iter()
                    .map(|extent| random.below(*extent).to_string())
                    .collect();
                found.try_path(format!("{layer}/{key}/{}", cell.join("_")))?;
                if found.paths.len() - before >= WANTED {
                    break;
                }
            }
        }
        return Ok(found.paths);
    }
    let ids = object_ids(server, &info, layer)?;
    for _ in 0..WANTED.min(ids.len()) {
        let id = &ids[usize::try_from(random.below(ids.len() as u64))?];
        match info["@type"].as_str() {
            Some("neuroglancer_legacy_mesh") => found.try_path(format!("{layer}/{id}:0:0"))?,
            Some("neuroglancer_multilod_draco") => {
                found.try_path(format!("{layer}/{id}.index"))?;
                found.try_path(format!("{layer}/{id}"))?;
            }
            _ => found.try_path(format!("{layer}/{id}"))?,
        }
    }
    Ok(found.paths)
}

/// Returns the ids in the properties of segments, or else the segments in the state of the viewer.
fn object_ids(server: &Serving, info: &Value, layer: &str) -> Result<Vec<String>> {
    let words = |ids: &Value| -> Option<Vec<String>> {
        let ids = ids.as_array()?.iter().filter_map(Value::as_str);
        Some(ids.map(str::to_owned).collect())
    };
    if let Some(folder) = info["segment_properties"].as_str() {
        let properties = server.json(&format!("{layer}/{folder}/info"))?;
        return words(&properties["inline"]["ids"]).context("ids");
    }
    let state = server.json("/state.json")?;
    let layers = state["layers"].as_array().context("layers")?;
    let is_same = |state: &&Value| {
        let source = state["source"].as_str();
        source.is_some_and(|source| source.ends_with(layer))
    };
    let state = layers.iter().find(is_same).context("a layer")?;
    words(&state["segments"]).context("segments")
}

struct Found {
    connection: Connection,
    paths: Vec<String>,
}

impl Found {
    /// Keeps a path that exists.
    fn try_path(&mut self, path: String) -> Result<()> {
        if self.connection.get(&path)?.status == 200 && !self.paths.contains(&path) {
            self.paths.push(path);
        }
        Ok(())
    }
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) % end.max(1)
    }
}
