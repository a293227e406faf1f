//! Finds and decodes the vertices in a box of a store. It does no I/O: the page around it fetches two
//! files of metadata and then the cells, with `fetch` of JavaScript.

use std::error::Error;

use zvf_codecs::{ChunkCodecs, DecodedSize};
use zvf_format::numeric::{NumericRows, Value};
use zvf_format::vlen::VlenFrame;
use zvf_model::array::{Presence, Vertices};
use zvf_model::{grid::Bounds, key::Key, root::RootMetadata, zarr::Array, zarr::Node};

/// Maximum size of a decoded cell in bytes.
const MAX_CELL: u64 = 64 << 20;

/// Level 0 of a store.
pub struct Level {
    root: RootMetadata,
    node: Key,
    array: Array,
    codecs: ChunkCodecs,
    presence: Presence,
    vertices: Vertices,
}

impl Level {
    /// Parses `zarr.json` and `0/vertices/zarr.json`.
    pub fn parse(root: &[u8], vertices: &[u8]) -> Result<Self, Box<dyn Error>> {
        let key = Key::root().metadata()?;
        let root = RootMetadata::parse(&key, Node::parse(&key, root)?.attributes())?;
        let node = Key::parse("0/vertices")?;
        let key = node.metadata()?;
        let array = Node::parse(&key, vertices)?;
        let array = array.as_array().ok_or("0/vertices is not an array")?.clone();
        let presence = Presence::parse(&key, &array, root.chunk_shape.axes())?.value;
        let vertices = Vertices::parse(&key, &array.attributes)?.value;
        let codecs = ChunkCodecs::new(&array.codecs)?;
        Ok(Self { root, node, array, codecs, presence, vertices })
    }

    /// Returns the paths of the cells in a box, which the page fetches at once.
    pub fn cells(&self, lower: &[f64], upper: &[f64]) -> Result<Vec<String>, Box<dyn Error>> {
        let chunks = self.root.chunk_shape.chunks_touching(&Bounds::new(lower, upper)?);
        let present = self.presence.cells().filter(|present| chunks.contains(&present.chunk));
        let keys = present.map(|present| self.array.chunk_key(&self.node, &present.cell));
        keys.map(|key| Ok(key?.as_str().to_owned())).collect()
    }

    /// Returns the coordinates of a cell, vertex after vertex.
    pub fn positions(&self, cell: Vec<u8>) -> Result<Vec<f64>, Box<dyn Error>> {
        let cell = self.codecs.decode(cell.into(), DecodedSize::AtMost(MAX_CELL))?;
        let cell = VlenFrame::parse(&cell)?.only().ok_or("not one cell")?;
        let axes = u32::try_from(self.root.chunk_shape.axes())?;
        let rows = NumericRows::parse(cell, self.vertices.dtype, axes.try_into()?)?;
        let value = |at: usize| match rows.value(at / axes as usize, (at % axes as usize) as u32) {
            Some(Value::Float(value)) => Ok(value),
            _ => Err("coordinates are not floats".into()),
        };
        (0..rows.rows() * axes as usize).map(value).collect()
    }
}
