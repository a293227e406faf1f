//! Manifests of multi-resolution meshes: the nodes of each level of detail and the sizes of their
//! fragments.
//!
//! | part | type |
//! |---|---|
//! | extent of a finest node | f32 × 3 |
//! | origin of the grid | f32 × 3 |
//! | levels n | u32 |
//! | scale of each level | f32 × n |
//! | offset of the vertices of each level | f32 × 3n |
//! | nodes of each level | u32 × n |
//! | per level with m nodes | x of all nodes, y, z: u32 × 3m; sizes of the fragments: u32 × m |

use std::collections::BTreeSet;

use crate::{
    PrecomputedError,
    cursor::{FieldReader, f32s, u32s},
    multilod_mesh::VertexBits,
    skeleton::count,
};

/// Bytes of a level besides its nodes.
const LEVEL: usize = 20;
/// Bytes of a node.
const NODE: usize = 16;

/// A node of an octree with a fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshNode {
    /// Place in the grid of its level.
    pub position: [u32; 3],
    /// Bytes of the fragment; 0 if there is none.
    pub size: u32,
}

/// The nodes of a level of detail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ManifestLevel {
    /// Size of details, in the unit of positions; 0 if the level does not exist.
    pub scale: f32,
    /// Added to the positions of vertices.
    pub vertex_offset: [f32; 3],
    /// Nodes in Z order.
    pub nodes: Vec<MeshNode>,
}

/// The bytes of a fragment in the data of its mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentPlace {
    /// Number of the level.
    pub level: usize,
    /// Place in the grid of the level.
    pub node: [u32; 3],
    /// First byte.
    pub start: u64,
    /// End of the bytes.
    pub end: u64,
}

/// The manifest of a mesh: an octree whose nodes are fragments.
///
/// ```
/// use zvf_precomputed::{ManifestLevel, MeshNode, MultilodManifest};
///
/// let manifest = MultilodManifest {
///     chunk_shape: [10.0; 3],
///     grid_origin: [0.0; 3],
///     levels: vec![ManifestLevel {
///         scale: 0.5,
///         vertex_offset: [0.0; 3],
///         nodes: vec![MeshNode { position: [0, 0, 0], size: 99 }],
///     }],
/// };
/// let bytes = manifest.encode()?;
/// assert_eq!(bytes.len(), 28 + 20 + 16);
/// assert_eq!(MultilodManifest::decode(&bytes)?, manifest);
/// # Ok::<(), zvf_precomputed::PrecomputedError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MultilodManifest {
    /// Extent of a node of level 0.
    pub chunk_shape: [f32; 3],
    /// Lower corner of node 0, 0, 0 of every level.
    pub grid_origin: [f32; 3],
    /// Levels, finest first.
    pub levels: Vec<ManifestLevel>,
}

impl MultilodManifest {
    /// Returns the bytes of the manifest.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if an extent or a scale is not usable, if nodes are not in Z order, or
    /// if the parent of a node with a fragment is missing.
    pub fn encode(&self) -> Result<Vec<u8>, PrecomputedError> {
        self.check()?;
        let levels = &self.levels;
        let mut bytes = Vec::new();
        put_floats(&mut bytes, &self.chunk_shape);
        put_floats(&mut bytes, &self.grid_origin);
        bytes.extend(count(levels.len(), "levels")?.to_le_bytes());
        for level in levels {
            put_floats(&mut bytes, &[level.scale]);
        }
        for level in levels {
            put_floats(&mut bytes, &level.vertex_offset);
        }
        for level in levels {
            bytes.extend(count(level.nodes.len(), "nodes")?.to_le_bytes());
        }
        for level in levels {
            for axis in 0..3 {
                let along = level
                    .nodes
                    .iter()
                    .filter_map(|node| node.position.get(axis));
                bytes.extend(along.flat_map(|along| along.to_le_bytes()));
            }
            let sizes = level.nodes.iter().map(|node| node.size);
            bytes.extend(sizes.flat_map(u32::to_le_bytes));
        }
        Ok(bytes)
    }

    /// Decodes a manifest. Memory is reserved for levels and nodes that the bytes contain.
    ///
    /// # Errors
    ///
    /// [`PrecomputedError`] if the bytes end inside a part or continue after the last, and for the
    /// reasons of [`encode`](Self::encode).
    pub fn decode(bytes: &[u8]) -> Result<Self, PrecomputedError> {
        let mut reader = FieldReader::new(bytes);
        let chunk_shape = triple(&mut reader, "chunk shape")?;
        let grid_origin = triple(&mut reader, "grid origin")?;
        let count = reader.count("number of levels")?;
        let mut fixed = FieldReader::new(reader.elements(count, LEVEL, "levels")?);
        let scales = f32s(fixed.elements(count, 4, "scales")?);
        let offsets = fixed.floats(count.saturating_mul(3), "vertex offsets")?;
        let counts = u32s(fixed.elements(count, 4, "numbers of fragments")?);
        let mut levels = Vec::with_capacity(count);
        for ((scale, offset), nodes) in scales.zip(offsets.as_chunks::<3>().0).zip(counts) {
            let nodes = usize::try_from(nodes).map_err(|_| PrecomputedError::Count("nodes"))?;
            let mut fields = FieldReader::new(reader.elements(nodes, NODE, "nodes")?);
            let mut column = || Ok(u32s(fields.elements(nodes, 4, "nodes")?));
            let (x, y, z, sizes) = (column()?, column()?, column()?, column()?);
            let nodes = x
                .zip(y)
                .zip(z)
                .zip(sizes)
                .map(|(((x, y), z), size)| MeshNode {
                    position: [x, y, z],
                    size,
                });
            levels.push(ManifestLevel {
                scale,
                vertex_offset: *offset,
                nodes: nodes.collect(),
            });
        }
        reader.finish()?;
        let manifest = Self {
            chunk_shape,
            grid_origin,
            levels,
        };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), PrecomputedError> {
        let is_extent = |along: &f32| along.is_finite() && *along > 0.0;
        if !self.chunk_shape.iter().all(is_extent) {
            return Err(PrecomputedError::Manifest("chunk shape"));
        }
        if !self.grid_origin.iter().all(|along| along.is_finite()) {
            return Err(PrecomputedError::Manifest("grid origin"));
        }
        let mut finer: Option<&ManifestLevel> = None;
        for (at, level) in self.levels.iter().enumerate() {
            if !level.scale.is_finite() || level.scale < 0.0 {
                return Err(PrecomputedError::Manifest("scale of a level"));
            }
            if !level.vertex_offset.iter().all(|along| along.is_finite()) {
                return Err(PrecomputedError::Manifest("vertex offset of a level"));
            }
            let codes = level.nodes.iter().map(|node| z_order(node.position));
            if !codes.clone().is_sorted_by(|a, b| a < b) {
                return Err(PrecomputedError::NodeOrder(at));
            }
            // A level of scale 0 does not exist, so that it has no nodes.
            if let Some(finer) = finer.filter(|_| level.scale > 0.0) {
                let known: BTreeSet<u128> = codes.collect();
                let stored = finer.nodes.iter().filter(|node| node.size > 0);
                for parent in stored.map(|node| parent_of(node.position)) {
                    if !known.contains(&z_order(parent)) {
                        let level = at;
                        return Err(PrecomputedError::Parent {
                            level,
                            node: parent,
                        });
                    }
                }
            }
            finer = Some(level);
        }
        Ok(())
    }

    /// Returns the places of all fragments in the data, in their order.
    pub fn fragments(&self) -> impl Iterator<Item = FragmentPlace> + '_ {
        let levels = self.levels.iter().enumerate();
        let nodes = levels.flat_map(|(level, nodes)| nodes.nodes.iter().map(move |n| (level, n)));
        let mut at = 0_u64;
        nodes.filter_map(move |(level, node)| {
            let start = at;
            at = at.saturating_add(u64::from(node.size));
            (node.size > 0).then_some(FragmentPlace {
                level,
                node: node.position,
                start,
                end: at,
            })
        })
    }

    /// Returns the bytes of all fragments together.
    pub fn data_size(&self) -> u64 {
        self.fragments().last().map_or(0, |place| place.end)
    }

    /// Returns the position of a vertex of a fragment; `None` without the level.
    pub fn position(
        &self,
        place: &FragmentPlace,
        q: [u32; 3],
        bits: VertexBits,
    ) -> Option<[f64; 3]> {
        let level = self.levels.get(place.level)?;
        let doubled = f64::from(u32::try_from(place.level).ok()?).exp2();
        let axes = self
            .chunk_shape
            .iter()
            .zip(&self.grid_origin)
            .zip(&level.vertex_offset)
            .zip(place.node.iter().zip(&q));
        let mut position = axes.map(|(((extent, origin), offset), (node, q))| {
            let along = f64::from(*node) + f64::from(*q) / f64::from(bits.last());
            f64::from(*origin) + f64::from(*offset) + f64::from(*extent) * doubled * along
        });
        Some([position.next()?, position.next()?, position.next()?])
    }
}

/// Returns the node of the next coarser level that contains a node.
pub(crate) fn parent_of(node: [u32; 3]) -> [u32; 3] {
    node.map(|along| along >> 1)
}

/// Returns the place of a node in Z order: the bits of its coordinates in turn, x the lowest.
pub(crate) fn z_order(node: [u32; 3]) -> u128 {
    let spread = |along: u32| {
        (0..32).fold(0_u128, |code, bit| {
            code | u128::from(along >> bit & 1) << (3 * bit)
        })
    };
    let [x, y, z] = node.map(spread);
    x | y << 1 | z << 2
}

fn put_floats(bytes: &mut Vec<u8>, floats: &[f32]) {
    bytes.extend(floats.iter().flat_map(|number| number.to_le_bytes()));
}

fn triple(reader: &mut FieldReader<'_>, part: &'static str) -> Result<[f32; 3], PrecomputedError> {
    let floats = reader.floats(3, part)?;
    <[f32; 3]>::try_from(floats).map_err(|_| PrecomputedError::Truncated(part))
}
