//! Metadata of nodes, and codec pipelines.

use serde_json::Value;
use zvf_format::numeric::Kind;
use zvf_model::{
    array::Presence,
    attribute_name::stored_name,
    grid::Bounds,
    level::{LevelId, LevelMetadata},
    metadata::Attributes,
    root::{
        Axis, CrossChunkStrategy, DENSE_LAYOUT, DENSE_MANIFESTS, LinksConvention,
        MultiscaleDataset, ObjectIndexConvention, RootMetadata, WindingOrder,
    },
    word::Word,
    zarr::{Array, Codec, Codecs, DataType},
};

use crate::{
    CellCompression,
    design::{AxisSpec, Design, ManifestForm},
    spatial_layout::{ArrayGrid, SpatialLayout},
};

/// Returns the metadata of the root of a new store.
pub(crate) fn root(design: &Design, space: &SpatialLayout, axes: &[AxisSpec]) -> RootMetadata {
    let axes = axes.iter().map(|axis| Axis {
        name: axis.name.clone(),
        kind: Some(axis.kind.clone()),
        unit: axis.unit.clone(),
    });
    // The grid of the store has checked the number of axes.
    let bounds = Bounds::new(&space.lower, &space.upper).ok();
    let version = design.profile.version();
    let mut root = RootMetadata::new(version, axes.collect(), space.chunk.clone(), bounds);
    if design.object_index == ManifestForm::Dense {
        root.capabilities.push(DENSE_MANIFESTS.to_owned());
        root.manifest_layout = Some(DENSE_LAYOUT.to_owned());
    }
    root.geometry_kinds = vec![Word::Known(design.kind)];
    root.crs = design.crs.clone().map(Value::from);
    root.links_convention = Some(Word::Known(LinksConvention::of(design.kind)));
    root.object_index_convention = Some(Word::Known(ObjectIndexConvention::Standard));
    root.cross_chunk_strategy = Some(Word::Known(CrossChunkStrategy::ExplicitLinks));
    // The default is stored where documents name the field; zarr-vectors 0.9.2 does not know it.
    let winding = design.winding.unwrap_or_default();
    let has_winding = winding != WindingOrder::default() || !design.profile.is_current();
    root.winding_order = (design.kind.has_faces() && has_winding).then_some(Word::Known(winding));
    root.base_bin_shape = space.bins.as_ref().map(|bins| bins.shape().clone());
    let specs: Attributes = design
        .attribute_specs
        .iter()
        .map(|(scope, names)| {
            let names = names
                .iter()
                .map(|(name, spec)| (stored_name(name).into_owned(), Value::Object(spec.clone())));
            (scope.clone(), Value::Object(names.collect()))
        })
        .collect();
    root.attribute_specs = (!specs.is_empty()).then_some(specs);
    let bin = root.bin_shape().extents();
    root.datasets = vec![MultiscaleDataset::of_bins(LevelId::FULL, bin, bin)];
    if design.profile.is_current() {
        root.set_collection(design.name.as_deref().unwrap_or("zarr_vectors"));
    }
    root
}

/// Returns spatial axes x, y, z, w, x4 and so on.
pub(crate) fn default_axes(count: usize) -> Vec<AxisSpec> {
    let name = |at: usize| match ["x", "y", "z", "w"].get(at) {
        Some(name) => (*name).to_owned(),
        None => format!("x{at}"),
    };
    (0..count).map(|at| AxisSpec::new(name(at))).collect()
}

/// Returns the metadata of level 0.
pub(crate) fn level(vertices: u64, present: &[&str], tiles: bool) -> LevelMetadata {
    LevelMetadata {
        vertex_count: Some(vertices),
        arrays_present: present.iter().map(|name| (*name).to_owned()).collect(),
        fragments_tile: tiles,
        ..LevelMetadata::new(LevelId::FULL)
    }
}

/// Compression and checksums of chunks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Encoding {
    compression: CellCompression,
    checksum: bool,
}

impl Encoding {
    /// Returns the encoding of cells.
    pub(crate) fn of_cells(design: &Design) -> Self {
        Self {
            compression: design.compression,
            checksum: design.has_checksums(),
        }
    }

    /// Returns the encoding of tables.
    pub(crate) fn of_tables(design: &Design) -> Self {
        let compression = match (design.table_compression, design.compression) {
            (None, CellCompression::None) => CellCompression::Zstd(1),
            (Some(compression), _) | (None, compression) => compression,
        };
        Self {
            compression,
            checksum: design.has_checksums(),
        }
    }

    /// Returns the size by which the cells of chunks are shuffled, the same for all their arrays:
    /// cells are encoded before the attributes of their array are known.
    ///
    /// The bits of two numbers of 4 bytes are separated as well as those of one of 8, but not the
    /// other way around.
    fn number_size(&self) -> usize {
        match self.compression {
            CellCompression::Auto => 8,
            _ => 4,
        }
    }

    /// Returns the codec pipeline that starts with a serializer, for values of `size` bytes.
    pub(crate) fn codecs(&self, serializer: Codec, size: usize) -> Codecs {
        let compression = self.compression.codec(size);
        let checksum = self.checksum.then(Codec::crc32c);
        Codecs::new(serializer, compression.into_iter().chain(checksum))
    }

    /// Returns the codec pipeline of byte strings.
    pub(crate) fn of_strings(&self) -> Codecs {
        self.codecs(Codec::vlen_bytes(), 1)
    }

    /// Returns the codec pipeline of numbers of `size` bytes.
    pub(crate) fn of_numbers(&self, size: usize) -> Codecs {
        self.codecs(Codec::bytes(size), size)
    }
}

/// Returns an array with room for one element per chunk of the grid; `chunks` have elements.
pub(crate) fn per_chunk<'c>(
    encoding: &Encoding,
    grid: &ArrayGrid,
    shard: Option<&[u64]>,
    chunks: impl IntoIterator<Item = &'c [i64]>,
    attributes: Attributes,
) -> Array {
    // The list of chunks comes first, as in other writers.
    let mut all = Presence::attributes_of(&grid.origin, chunks);
    all.extend(attributes);
    let ones = vec![1; grid.shape.len()];
    let cell = encoding.codecs(Codec::vlen_bytes(), encoding.number_size());
    let (chunk_shape, codecs) = match shard {
        None => (ones, cell),
        Some(shard) => (shard.to_vec(), Codecs::sharded(ones, cell)),
    };
    byte_strings(grid.shape.clone(), chunk_shape, codecs).with_attributes(all)
}

/// Returns a one-dimensional array of byte strings.
pub(crate) fn strings(codecs: Codecs, rows: u64, chunk: u64, attributes: Attributes) -> Array {
    byte_strings(vec![rows], vec![chunk.max(1)], codecs).with_attributes(attributes)
}

fn byte_strings(shape: Vec<u64>, chunk_shape: Vec<u64>, codecs: Codecs) -> Array {
    Array::new(shape, DataType::VariableBytes, chunk_shape, "", codecs)
}

/// Returns a byte array of a single chunk.
pub(crate) fn blob(encoding: &Encoding, length: usize) -> Array {
    let length = length as u64;
    let codecs = encoding.codecs(Codec::bytes(1), encoding.number_size());
    let bytes = DataType::Number(Kind::UInt8);
    Array::new(vec![length], bytes, vec![length.max(1)], 0, codecs)
}
