//! Invariants of multi-resolution meshes for arbitrary bytes, used by the damage test and the fuzz
//! target `precomputed_multilod`.

use zvf_precomputed::{MultilodManifest, QuantizedMesh};

/// Triangles of a fragment at most.
const MAX_TRIANGLES: u32 = 1 << 16;

/// Checks that a manifest has one form of bytes, and that a fragment that is decoded can be encoded
/// again. Returns whether the bytes are a manifest, and whether they are a fragment.
pub(crate) fn multilod(bytes: &[u8]) -> (bool, bool) {
    let manifest = MultilodManifest::decode(bytes);
    if let Ok(manifest) = &manifest {
        assert_eq!(manifest.encode().as_deref(), Ok(bytes));
        let sizes = manifest.fragments().map(|place| place.end - place.start);
        assert_eq!(sizes.sum::<u64>(), manifest.data_size());
    }
    let mesh = QuantizedMesh::decode(bytes, MAX_TRIANGLES);
    if let Ok(mesh) = &mesh {
        let triangles = u32::try_from(mesh.triangles.len());
        assert!(triangles.is_ok_and(|triangles| triangles <= MAX_TRIANGLES));
        // A mesh without triangles, or with corners that coincide, may be refused.
        let _ = mesh.encode();
    }
    (manifest.is_ok(), mesh.is_ok())
}
