//! Neuroglancer's precomputed skeletons, annotations and meshes.
//!
//! A source is a folder with a JSON file `info`, whose `@type` names the format:
//!
//! | `@type` | geometry |
//! |---|---|
//! | `neuroglancer_skeletons` | skeletons, or graphs if edges form cycles |
//! | `neuroglancer_annotations_v1` | points, lines or polylines; boxes and ellipsoids are refused |
//! | `neuroglancer_legacy_mesh` | meshes |
//! | `neuroglancer_multilod_draco` | meshes of the finest level of detail, with the feature `draco` |
//!
//! A folder that contains one such folder stands for it, as the folder of `zvf export precomputed`
//! or the folder of a volume. Values are files, also with `.gz`, or shards of the form
//! `neuroglancer_uint64_sharded_v1`.
//!
//! # In a store
//!
//! The id of a segment is the id of an object, and properties of segments are attributes of
//! objects. Labels, descriptions and strings are text, and empty text is an absent value. The tags
//! of a segment are one text with blanks between them. A property or attribute has its identifier
//! as name, or its description if that is a name from which the identifier is made, as `FA` for
//! `fA`.
//!
//! Positions of skeletons and meshes are in nanometres after the `transform`. They are float32 if
//! the transform is the identity, otherwise float64. The attribute `radius` is multiplied by the scale
//! of the transform, unless that depends on the direction. Edges become links (child, parent) in their own
//! direction if that makes every skeleton a tree, otherwise from the first vertex on. Edges that
//! repeat, or that join a vertex with itself, are left out of trees. If streamlines or polylines are
//! requested, each skeleton is a path of consecutive vertices.
//!
//! The coordinates of annotations keep their numbers if the scale of the axis is a unit, as `1e-6 m`
//! is the micrometre. Other coordinates are multiplied: by 4 for an axis of `4e-9 m`, in nanometres.
//! An integer property with names of values becomes text; rgb and rgba become three and four columns
//! of uint8. A point has its id as `vertex.annotation_id`, and a path is an object with the id of the
//! annotation. The first relationship to segments names the objects of points if each point has one
//! segment; the relationship `object` names those of paths if its segments ascend. Otherwise it
//! becomes an attribute, -1 where an annotation has no segment. Annotations are read from the index
//! by id if there are relationships, otherwise from the spatial index, each once.
//!
//! Vertices at the borders of the nodes of a multi-resolution mesh are joined if their positions are
//! equal, so that closed surfaces stay closed; so are all vertices of a single-resolution mesh of
//! several fragments. Triangles whose corners coincide are left out.
//!
//! The reader holds skeletons and meshes in memory, because links connect any of their vertices. Of
//! annotations it holds 32 bytes each, the attributes of paths, and the largest value; annotations
//! of a spatial index are kept in a temporary file.

mod annotations;
mod coordinates;
mod forest;
mod keyed;
mod legacy;
#[cfg(feature = "draco")]
mod multilod;
mod properties;
mod records;
mod segments;
mod skeletons;
mod source;
mod surface;

use std::path::Path;

use crate::{FileError, FileFault, FileReadOptions, GeometryReader};

use source::{PrecomputedSource, SourceKind};

pub use annotations::AnnotationReader;

/// Opens a folder of precomputed data.
///
/// # Errors
///
/// [`FileError`] if the folder holds no source that is read, or several, or if its values are
/// damaged. Damage of annotations may also be an error of the batch that contains it.
pub fn open(path: &Path, options: &FileReadOptions) -> Result<Box<dyn GeometryReader>, FileError> {
    let source = PrecomputedSource::find(path)?;
    Ok(match source.kind {
        SourceKind::Skeletons => Box::new(skeletons::open(&source, options)?),
        SourceKind::Annotations => Box::new(AnnotationReader::open(&source, options)?),
        SourceKind::LegacyMesh => Box::new(legacy::open(&source, options)?),
        #[cfg(feature = "draco")]
        SourceKind::MultilodMesh => Box::new(multilod::open(&source, options)?),
        #[cfg(not(feature = "draco"))]
        SourceKind::MultilodMesh => {
            let why = "this build does not support Draco meshes; build zvf-files with the feature `draco`";
            return Err(FileFault::Unsupported(why).of(path));
        }
        SourceKind::SegmentProperties => return Err(FileFault::NoLayer.of(path)),
    })
}
