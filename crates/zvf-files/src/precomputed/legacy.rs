//! Single-resolution meshes: a manifest for each segment, and fragments.

use std::collections::BTreeSet;

use zvf::GeometryKind;
use zvf_precomputed::{IDENTITY, LegacyMeshFragment, LegacyMeshInfo, LegacyMeshManifest};

use super::{
    coordinates::ModelSpace,
    keyed::{KeyedValues, object_of, read_member},
    source::PrecomputedSource,
    surface::{FragmentVertex, SurfaceBuilder},
};
use crate::{FileError, FileFault, FileReadOptions, library, whole::WholeReader};

/// Reads all meshes of a source by ascending id.
pub(super) fn open(
    source: &PrecomputedSource,
    options: &FileReadOptions,
) -> Result<WholeReader, FileError> {
    let in_info = |fault: FileFault| fault.of(&source.info_path());
    let info =
        LegacyMeshInfo::parse(&source.info).map_err(|error| in_info(library::info(error)))?;
    let limit = options.unpacked;
    let mut manifests = KeyedValues::open(source.folder.clone(), None, ":0", limit)?;
    let mut surface = SurfaceBuilder::new(ModelSpace::of(IDENTITY).map_err(in_info)?);
    for at in 0..manifests.len() {
        let Some((segment, value)) = manifests.get(at)? else {
            break;
        };
        let manifest = LegacyMeshManifest::parse(&value)
            .map_err(|error| manifests.error(at, library::info(error)))?;
        let object = object_of(segment).map_err(|fault| manifests.error(at, fault))?;
        surface.start(object);
        let mut known = BTreeSet::new();
        for name in &manifest.fragments {
            if !known.insert(name) {
                return Err(manifests.error(at, FileFault::Twice(name.clone())));
            }
            let in_file = |fault: FileFault| fault.of(&manifests.folder().join(name));
            let bytes = read_member(manifests.folder(), name, limit)?;
            let fragment = LegacyMeshFragment::decode(&bytes)
                .map_err(|error| in_file(library::precomputed(error)))?;
            let is_one = manifest.fragments.len() == 1;
            let vertices = fragment.positions.iter().map(|position| FragmentVertex {
                position: position.map(f64::from),
                // Fragments do not tell their borders. Adding 0 makes -0 and 0 equal.
                shared: (!is_one).then(|| position.map(|along| u64::from((along + 0.0).to_bits()))),
            });
            surface
                .push(vertices, &fragment.triangles)
                .map_err(in_file)?;
        }
    }
    let mut description = source.description(GeometryKind::Mesh);
    description = description.axes_xyz(Some("nanometer"));
    surface.finish(source, info.segment_properties.as_deref(), description)
}
