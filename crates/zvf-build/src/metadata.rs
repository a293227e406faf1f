//! Metadata of nodes, and codec pipelines.

use serde_json::{Map, Value, json};
use zvf_format::numeric::Kind;
use zvf_model::{root::LinksConvention, zarr::Codec};

use crate::{
    CellCompression,
    design::{AxisSpec, Design, ManifestForm, Profile},
    spatial_layout::{ArrayGrid, SpatialLayout},
};

/// Returns the attributes of the root of a new store.
pub(crate) fn root(
    design: &Design,
    space: &SpatialLayout,
    axes: &[AxisSpec],
) -> Map<String, Value> {
    let mut block = Map::new();
    let mut put = |key: &str, value: Value| {
        block.insert(key.to_owned(), value);
    };
    put("zv_version", json!(design.profile.version()));
    let is_dense = design.object_index == ManifestForm::Dense;
    let capabilities = is_dense.then_some("dense_manifests");
    put("format_capabilities", json!(Vec::from_iter(capabilities)));
    if is_dense {
        put("manifest_layout", json!("dense"));
    }
    put("chunk_shape", json!(space.chunk.extents()));
    put("bounds", json!([space.lower, space.upper]));
    put("geometry_types", json!([design.kind.as_str()]));
    if let Some(crs) = &design.crs {
        put("crs", crs.clone());
    }
    put(
        "links_convention",
        json!(LinksConvention::of(design.kind).as_str()),
    );
    put("object_index_convention", json!("standard"));
    put("cross_chunk_strategy", json!("explicit_links"));
    if let Some(bins) = &space.bins {
        put("base_bin_shape", json!(bins.shape().extents()));
    }
    if !design.attribute_specs.is_empty() {
        put("attribute_specs", json!(design.attribute_specs));
    }
    let bins = space.bins.as_ref();
    let bin = bins.map_or(space.chunk.extents(), |bins| bins.shape().extents());
    let half: Vec<f64> = bin.iter().map(|extent| extent / 2.0).collect();
    let axes: Vec<Value> = axes.iter().map(axis).collect();
    let ones = vec![1.0; axes.len()];
    let mut attributes = Map::new();
    attributes.insert("zarr_vectors".to_owned(), Value::Object(block));
    let scales = json!([{
        "version": "0.4",
        "name": "default",
        "axes": axes,
        "datasets": [{"path": "0", "coordinateTransformations": [
            {"type": "scale", "scale": ones},
            {"type": "translation", "translation": half},
        ]}],
        "metadata": {"format": "zarr_vectors"},
    }]);
    attributes.insert("multiscales".to_owned(), scales);
    if design.profile == Profile::V09 {
        let name = design.name.as_deref().unwrap_or("zarr_vectors");
        let ome = json!({
            "version": "0.6",
            "type": "collection",
            "name": name,
            "attributes": {"scene": {
                "coordinateSystems": [{"name": "world", "axes": axes}],
                "coordinateTransformations": [],
            }},
            "nodes": [{"type": "zv:level", "name": "0"}],
        });
        attributes.insert("ome".to_owned(), ome);
    }
    attributes
}

fn axis(axis: &AxisSpec) -> Value {
    let mut attributes = json!({"name": axis.name, "type": axis.kind});
    if let (Some(unit), Some(attributes)) = (&axis.unit, attributes.as_object_mut()) {
        attributes.insert("unit".to_owned(), json!(unit));
    }
    attributes
}

/// Returns spatial axes x, y, z, w, x4 and so on.
pub(crate) fn default_axes(count: usize) -> Vec<AxisSpec> {
    let name = |at: usize| match ["x", "y", "z", "w"].get(at) {
        Some(name) => (*name).to_owned(),
        None => format!("x{at}"),
    };
    (0..count).map(|at| AxisSpec::new(name(at))).collect()
}

/// Returns the attributes of level 0.
pub(crate) fn level(vertices: u64, present: &[&str], tiles: bool) -> Map<String, Value> {
    let mut attributes = json!({
        "level": 0,
        "object_sparsity": 1.0,
        "vertex_count": vertices,
        "coarsening_method": "none",
        "parent_level": null,
        "arrays_present": present,
    });
    if let (true, Some(attributes)) = (tiles, attributes.as_object_mut()) {
        attributes.insert("fragments_tile".to_owned(), json!(true));
    }
    Map::from_iter([("zarr_vectors_level".to_owned(), attributes)])
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

    /// Returns the codec pipeline that starts with `serialiser`, for values of `size` bytes.
    pub(crate) fn codecs(&self, serialiser: Value, size: usize) -> Vec<Value> {
        let mut codecs = vec![serialiser];
        codecs.extend(self.compression.codec(size).as_ref().map(described));
        if self.checksum {
            codecs.push(json!({"name": "crc32c"}));
        }
        codecs
    }
}

/// Returns a codec as metadata have it.
pub(crate) fn described(codec: &Codec) -> Value {
    json!({"name": codec.name, "configuration": codec.configuration})
}

/// Returns the codec that frames byte strings.
pub(crate) fn vlen() -> Value {
    json!({"name": "vlen-bytes", "configuration": {}})
}

/// Returns the codec of little-endian numbers.
pub(crate) fn bytes(size: usize) -> Value {
    match size {
        1 => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    }
}

/// Returns the codec of shards of inner chunks.
pub(crate) fn sharding(inner: &[u64], codecs: &[Value]) -> Value {
    json!({
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": inner,
            "codecs": codecs,
            "index_codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": "crc32c"},
            ],
            "index_location": "end",
        },
    })
}

/// Returns whether the chunks of an array are shards.
pub(crate) fn is_sharded(node: &Value) -> bool {
    node["codecs"][0]["name"].as_str() == Some("sharding_indexed")
}

/// Returns the codecs of an array, or of its inner chunks if it is sharded.
pub(crate) fn unsharded(codecs: &[Value]) -> Vec<Value> {
    match codecs {
        [codec] if codec["name"].as_str() == Some("sharding_indexed") => {
            let inner = codec["configuration"]["codecs"].as_array();
            unsharded(inner.map_or(&[], Vec::as_slice))
        }
        codecs => codecs.to_vec(),
    }
}

/// Metadata of an array.
pub(crate) struct ArrayNode {
    pub(crate) shape: Vec<u64>,
    pub(crate) data_type: Value,
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) fill: Value,
    pub(crate) codecs: Vec<Value>,
    pub(crate) attributes: Map<String, Value>,
}

impl ArrayNode {
    pub(crate) fn json(self) -> Value {
        json!({
            "shape": self.shape,
            "data_type": self.data_type,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.chunk_shape}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": self.fill,
            "codecs": self.codecs,
            "attributes": self.attributes,
            "zarr_format": 3,
            "node_type": "array",
            "storage_transformers": [],
        })
    }

    /// Creates an array with one element for each chunk of the grid.
    pub(crate) fn per_chunk(
        encoding: &Encoding,
        grid: &ArrayGrid,
        shard: Option<&[u64]>,
        keys: &[String],
        mut attributes: Map<String, Value>,
    ) -> Self {
        let ArrayGrid { origin, shape } = grid;
        // These keys come first, as in other writers.
        let rest = std::mem::take(&mut attributes);
        attributes.insert("nonempty_chunks".to_owned(), json!(keys));
        if origin.iter().any(|at| *at != 0) {
            attributes.insert("chunk_grid_origin".to_owned(), json!(origin));
        }
        attributes.extend(rest);
        let ones = vec![1; shape.len()];
        let cell = encoding.codecs(vlen(), encoding.number_size());
        let (chunk_shape, codecs) = match shard {
            None => (ones, cell),
            Some(shard) => (shard.to_vec(), vec![sharding(&ones, &cell)]),
        };
        Self {
            shape: shape.clone(),
            data_type: json!("variable_length_bytes"),
            chunk_shape,
            fill: json!(""),
            codecs,
            attributes,
        }
    }

    /// Creates a one-dimensional array of byte strings.
    pub(crate) fn strings(
        codecs: Vec<Value>,
        rows: u64,
        chunk: u64,
        attributes: Map<String, Value>,
    ) -> Self {
        Self {
            shape: vec![rows],
            data_type: json!("variable_length_bytes"),
            chunk_shape: vec![chunk.max(1)],
            fill: json!(""),
            codecs,
            attributes,
        }
    }

    /// Creates a byte array of a single chunk.
    pub(crate) fn blob(encoding: &Encoding, length: usize) -> Self {
        let length = length as u64;
        Self {
            shape: vec![length],
            data_type: json!(Kind::UInt8.name()),
            chunk_shape: vec![length.max(1)],
            fill: json!(0),
            codecs: encoding.codecs(bytes(1), encoding.number_size()),
            attributes: Map::new(),
        }
    }
}
