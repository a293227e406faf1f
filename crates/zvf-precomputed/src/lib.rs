//! Encoders and decoders of the precomputed formats of Neuroglancer. They do no I/O.
//!
//! | format | document | values |
//! |---|---|---|
//! | annotations | [`AnnotationInfo`] | [`Annotation`], [`AnnotationList`] |
//! | skeletons | [`SkeletonInfo`] | [`Skeleton`] |
//! | single-resolution meshes | [`LegacyMeshInfo`], [`LegacyMeshManifest`] | [`LegacyMeshFragment`] |
//! | multi-resolution meshes | [`MultilodMeshInfo`] | [`MultilodManifest`], [`QuantizedMesh`] |
//! | properties of segments | [`SegmentProperties`] | |
//! | shards | [`ShardingSpec`] | [`ShardBuilder`], [`ShardFile`], [`ShardFileIndex`] |
//!
//! [`SpatialSampler`] divides annotations among the levels of a spatial index. [`CutMesh`] divides
//! the triangles of a mesh among the nodes of an octree, and [`MeshCutter`] those of a mesh that
//! does not fit into memory. The feature `draco` encodes and decodes the fragments of
//! multi-resolution meshes.
//!
//! All numbers are little-endian. A decoder treats its bytes as hostile: it compares every count
//! with the available bytes before it reserves memory, and returns a [`PrecomputedError`],
//! [`ShardError`] or [`InfoError`] that names the place.
//!
//! Not supported: volumes.

mod annotation;
mod cursor;
mod dimensions;
#[cfg(feature = "draco")]
mod draco_fragment;
mod gzip;
mod identifier;
mod info_node;
mod info_references;
mod legacy_mesh;
mod mesh_cut;
mod morton;
mod multilod_manifest;
mod multilod_mesh;
mod murmur;
mod precomputed_error;
mod segment_properties;
mod shard;
mod shard_index;
mod sharding;
mod skeleton;

pub use annotation::{
    info::{AnnotationInfo, Relationship, SpatialLevel},
    kind::AnnotationKind,
    list::{AnnotationList, AnnotationRecord, ListWriter},
    property::{PropertySpec, PropertyType, PropertyValue, ValueLabel},
    record::{Annotation, RecordLayout},
    sampler::{SpatialGrid, SpatialLevels, SpatialSampler},
};
pub use dimensions::{Dimension, Dimensions};
pub use identifier::{property_ids, shader_ids};
pub use info_node::InfoError;
pub use legacy_mesh::{LegacyMeshFragment, LegacyMeshInfo, LegacyMeshManifest};
pub use mesh_cut::{
    CutFragment, CutMesh, MeshCutter, MultilodMesh, QuantizedMesh, TriangleMesh, TriangleSource,
};
pub use morton::{MortonError, compressed_morton_code};
pub use multilod_manifest::{FragmentPlace, ManifestLevel, MeshNode, MultilodManifest};
pub use multilod_mesh::{MultilodMeshInfo, VertexBits};
pub use murmur::murmurhash3_x86_128_low;
pub use precomputed_error::PrecomputedError;
pub use segment_properties::{SegmentProperties, SegmentProperty, SegmentPropertyValues};
pub use shard::{ShardBuilder, ShardError, ShardFile};
pub use shard_index::{ShardEntry, ShardFileIndex};
pub use sharding::{ShardEncoding, ShardHash, ShardLocation, ShardingSpec};
pub use skeleton::{AttributeType, IDENTITY, Skeleton, SkeletonInfo, VertexAttribute};
