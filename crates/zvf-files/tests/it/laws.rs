//! The laws of the fuzz targets, on random changes of samples.

use proptest::prelude::*;
use zip::CompressionMethod;

use crate::samples::{self, Random};

#[path = "../laws/files.rs"]
mod law;

/// Samples of the formats that are one file.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let random = &mut Random::new(51);
    let members = samples::trx_members(random);
    vec![
        ("a.trk", samples::trk(random, false)),
        ("a.tck", samples::tck(random, "Float32LE")[0].clone()),
        ("a.trx", samples::trx(&members, CompressionMethod::Stored)),
        ("a.swc", samples::swc().into_bytes()),
        ("a.ply", samples::PLY.into()),
        ("a.obj", samples::OBJ.into()),
        ("a.stl", samples::STL.into()),
        ("a.glb", samples::glb()),
        ("a.las", samples::las(random, 3)),
        ("a.laz", samples::laz()),
        ("a.gii", samples::GIFTI.into()),
        ("lh.pial", samples::freesurfer()),
        ("a.graphml", samples::GRAPHML.into()),
        #[cfg(feature = "geoparquet")]
        ("a.geoparquet", samples::geoparquet()),
    ]
}

/// A file with its name.
type Named = (&'static str, Vec<u8>);

/// Samples of files with values of the vertices of another file.
fn files_with_values() -> Vec<(Named, Named)> {
    let [tck, tsf] = samples::tck(&mut Random::new(1), "Float32LE");
    let mut all = vec![(("a.tck", tck), ("fa.tsf", tsf))];
    for values in samples::freesurfer_values() {
        all.push((("lh.pial", samples::freesurfer()), values));
    }
    all
}

#[test]
fn samples_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files() {
        let path = folder.path().join(name);
        std::fs::write(&path, &bytes).unwrap();
        crate::damage::read(&path).unwrap();
        law::file(name, &bytes);
    }
    for ((name, bytes), (other, values)) in files_with_values() {
        let (path, other_path) = (folder.path().join(name), folder.path().join(other));
        std::fs::write(&path, &bytes).unwrap();
        std::fs::write(&other_path, &values).unwrap();
        let mut options = zvf_files::FileReadOptions::default();
        options.with = vec![other_path];
        let mut reader = zvf_files::open(&path, &options).unwrap();
        let whole = zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder();
        assert!(!whole.vertex.is_empty(), "{other} has no column");
        law::file_with((name, &bytes), (other, &values));
    }
    law::edge_list(samples::EDGES.as_bytes(), samples::NODES.as_bytes());
    law::members("a.geff", &samples::geff_members());
}

/// Inputs for which the law of fuzzing once failed.
#[test]
fn files_that_failed_fulfil_the_law() {
    // The affine map of the voxels turns coordinates to infinite ones.
    let sample = samples::trk(&mut Random::new(1), false);
    for data in [
        [63, 0, 42, 23, 23, 0, 23, 255, 104, 255, 45, 1, 32].as_slice(),
        &[197, 255, 96, 255, 255, 255, 255, 15, 0, 0, 77],
    ] {
        law::file("a.trk", &law::content(&sample, data));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn changed_files_fulfil_the_law(data in prop::collection::vec(any::<u8>(), 0..40)) {
        for (name, sample) in files() {
            law::file(name, &law::content(&sample, &data));
        }
        for ((name, bytes), (other, values)) in files_with_values() {
            law::file_with((name, &bytes), (other, &law::content(&values, &data)));
        }
        law::edge_list(&law::content(samples::EDGES.as_bytes(), &data), samples::NODES.as_bytes());
        law::edge_list(samples::EDGES.as_bytes(), &law::content(samples::NODES.as_bytes(), &data));
    }

    #[test]
    fn changed_folders_fulfil_the_law(which: usize, data in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut members = samples::geff_members();
        let count = members.len();
        let (_, bytes) = &mut members[which % count];
        *bytes = law::content(bytes, &data);
        law::members("a.geff", &members);
    }
}
