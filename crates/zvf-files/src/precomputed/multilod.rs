//! Multi-resolution meshes: the finest level of detail of each segment.

use zvf::GeometryKind;
use zvf_precomputed::{
    FragmentPlace, MultilodManifest, MultilodMeshInfo, QuantizedMesh, VertexBits,
};

use super::{
    coordinates::ModelSpace,
    keyed::{KeyedValues, object_of},
    source::PrecomputedSource,
    surface::{FragmentVertex, SurfaceBuilder},
};
use crate::{FileError, FileFault, FileReadOptions, input::length_of, library, whole::WholeReader};

/// Triangles that a fragment of any size may have.
const FEW_TRIANGLES: u64 = 1 << 16;
/// Triangles for each byte of a larger fragment. Draco needs about two bytes for a triangle.
const TRIANGLES: u64 = 16;

/// Reads all meshes of a source by ascending id.
pub(super) fn open(
    source: &PrecomputedSource,
    options: &FileReadOptions,
) -> Result<WholeReader, FileError> {
    let in_info = |fault: FileFault| fault.of(&source.info_path());
    let info =
        MultilodMeshInfo::parse(&source.info).map_err(|error| in_info(library::info(error)))?;
    let folder = source.folder.clone();
    let mut values = KeyedValues::open(folder, info.sharding, ".index", options.unpacked)?;
    let mut surface = SurfaceBuilder::new(ModelSpace::of(info.transform).map_err(in_info)?);
    for at in 0..values.len() {
        let Some((segment, value)) = values.get(at)? else {
            break;
        };
        let manifest = MultilodManifest::decode(&value)
            .map_err(|error| values.error(at, library::precomputed(error)))?;
        let object = object_of(segment).map_err(|fault| values.error(at, fault))?;
        surface.start(object);
        let size = manifest.data_size();
        let finest = manifest.fragments().map(|place| place.level).min();
        let places = manifest.fragments();
        for place in places.filter(|place| Some(place.level) == finest) {
            let bytes = values.data(at, size, place.start..place.end)?;
            let most = length_of(&bytes)
                .saturating_mul(TRIANGLES)
                .max(FEW_TRIANGLES);
            let most = u32::try_from(most).unwrap_or(u32::MAX);
            let mesh = QuantizedMesh::decode(&bytes, most)
                .map_err(|error| values.error(at, library::precomputed(error)))?;
            let fragment = MeshFragment {
                manifest: &manifest,
                place,
                bits: info.vertex_bits,
            };
            fragment
                .check(&mesh)
                .map_err(|fault| values.error(at, fault))?;
            let vertices = mesh
                .positions
                .iter()
                .filter_map(|step| fragment.vertex(*step));
            let pushed = surface.push(vertices, &mesh.triangles);
            pushed.map_err(|fault| values.error(at, fault))?;
        }
    }
    let mut description = source.description(GeometryKind::Mesh);
    description = description.axes_xyz(Some("nanometer"));
    surface.finish(source, info.segment_properties.as_deref(), description)
}

/// A node of the finest level.
struct MeshFragment<'a> {
    manifest: &'a MultilodManifest,
    place: FragmentPlace,
    bits: VertexBits,
}

impl MeshFragment<'_> {
    /// Checks that all vertices are in the node.
    fn check(&self, mesh: &QuantizedMesh) -> Result<(), FileFault> {
        let mut steps = mesh.positions.as_flattened().iter();
        match steps.find(|step| **step > self.bits.last()) {
            None => Ok(()),
            Some(step) => {
                let expected = "it is outside of its node; vertex_quantization_bits of the info \
                                document are those of another mesh";
                Err(FileFault::field("a position of a fragment", step, expected))
            }
        }
    }

    /// Returns a vertex. Those at the border of the node are shared with the nodes beside it; they
    /// are compared by their number of steps from the origin, which is exact.
    fn vertex(&self, step: [u32; 3]) -> Option<FragmentVertex> {
        let last = self.bits.last();
        let is_border = step
            .iter()
            .any(|along| matches!(*along, 0) || *along == last);
        let steps = |(node, along): (u32, u32)| {
            u64::from(node)
                .saturating_mul(last.into())
                .saturating_add(along.into())
        };
        let [x, y, z] = self.place.node;
        let shared = || [(x, step[0]), (y, step[1]), (z, step[2])].map(steps);
        Some(FragmentVertex {
            position: self.manifest.position(&self.place, step, self.bits)?,
            shared: is_border.then(shared),
        })
    }
}
