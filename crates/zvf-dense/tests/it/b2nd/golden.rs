//! Tests with the archive `testdata/b2nd.tar.gz`.

use std::fs;

use serde_json::Value;
use sha2::{Digest, Sha256};
use tempfile::TempDir;
use zvf_dense::{
    DenseArray, DenseError, Hyperslab,
    b2nd::{B2nd, B2ndError},
    blosc::ChunkError,
};
use zvf_testkit::golden::{Golden, unhex};

use super::{open, open_at};

/// The filter of a plugin, which is rejected.
const NDCELL: &str = "f_ndcell";

fn is_sha256(bytes: &[u8], want: &Value) -> bool {
    Sha256::digest(bytes)[..] == unhex(want.as_str().unwrap())
}

fn numbers(value: &Value) -> Vec<u64> {
    let list = value.as_array().unwrap();
    list.iter().map(|n| n.as_u64().unwrap()).collect()
}

/// Opens the array of a case; a sparse directory is extracted to disk.
fn array(golden: &Golden, case: &Value, folder: &TempDir) -> Result<B2nd, DenseError> {
    let path = case["path"].as_str().unwrap();
    if !case["kind"].as_str().unwrap().ends_with("sframe") {
        let offset = case["frame_offset"].as_u64().unwrap();
        return open_at(golden.file(path).to_vec(), offset);
    }
    let root = folder.path().join(path);
    fs::create_dir_all(&root).unwrap();
    let prefix = format!("{path}/");
    for (file, bytes) in golden.files() {
        if let Some(name) = file.strip_prefix(&prefix) {
            fs::write(root.join(name), bytes).unwrap();
        }
    }
    B2nd::open(&root)
}

#[test]
#[expect(clippy::print_stdout, reason = "`xtask conformance` shows it")]
fn golden_b2nd_slices_and_blocks() {
    let golden = Golden::open("b2nd");
    let folder = TempDir::new().unwrap();
    let expected = golden.json("expected.json");
    let (mut cases, mut slices, mut blocks) = (0, 0, 0);
    for case in expected["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let array = array(&golden, case, &folder).unwrap();
        if name == NDCELL {
            let refused = array.slice(&Hyperslab::whole(array.shape())).unwrap_err();
            assert!(
                is_chunk_error(&refused, ChunkError::Filter(32)),
                "{refused:?}"
            );
            continue;
        }
        cases += 1;
        let nd = &case["nd"];
        assert_eq!(array.shape(), numbers(&nd["shape"]), "{name}");
        assert_eq!(
            array.grid().chunk_shape(),
            numbers(&nd["chunkshape"]),
            "{name}"
        );
        assert_eq!(
            array.grid().block_shape().unwrap(),
            numbers(&nd["blockshape"]),
            "{name}"
        );
        assert_eq!(
            u64::from(array.facts().typesize),
            array.dtype().size(),
            "{name}"
        );
        for slice in case["slices"].as_array().unwrap() {
            let start = numbers(&slice["start"]);
            let stop = numbers(&slice["stop"]);
            let selection = Hyperslab::new(&start, &stop, None).unwrap();
            let bytes = array.slice(&selection).unwrap_or_else(|error| {
                panic!("{name} {start:?} {stop:?}: {error:?}");
            });
            assert!(
                is_sha256(&bytes, &slice["sha256"]),
                "{name} {start:?} {stop:?}"
            );
            let plan = array.read_plan(&selection).unwrap();
            let mut again = vec![0xaa; bytes.len()];
            assert_eq!(
                array.slice_into(&selection, &mut again).unwrap(),
                plan,
                "{name}"
            );
            assert!(bytes == again, "{name}");
            slices += 1;
        }
        for block in case["blocks"].as_array().unwrap() {
            let chunk = block["chunk"].as_u64().unwrap();
            let number = u32::try_from(block["block"].as_u64().unwrap()).unwrap();
            let bytes = array.block(chunk, number).unwrap();
            assert!(
                is_sha256(&bytes, &block["sha256"]),
                "{name} {chunk} {number}"
            );
            blocks += 1;
        }
    }
    assert_eq!((cases, slices, blocks), (77, 733, 419));
    println!("conformance: b2nd: {cases} arrays, {slices} slices, {blocks} blocks");
}

#[test]
fn golden_b2nd_metalayers() {
    let golden = Golden::open("b2nd");
    let folder = TempDir::new().unwrap();
    let expected = golden.json("expected.json");
    let mut layers = 0;
    for case in expected["cases"].as_array().unwrap() {
        let array = array(&golden, case, &folder).unwrap();
        for (name, body) in array.metalayers() {
            assert_eq!(body, unhex(case["metalayers"][name].as_str().unwrap()));
            layers += 1;
        }
        let names: Vec<&str> = array.vlmetalayers().map(|(name, _)| name).collect();
        assert_eq!(case["trailer"]["vlmeta_names"], serde_json::json!(names));
        for (name, body) in array.vlmetalayers() {
            let want = case["vlmeta_msgpack"][name].as_str().unwrap();
            assert_eq!(body, unhex(want), "{name}");
            layers += 1;
        }
    }
    assert!(layers > 3, "{layers}");
}

fn is_chunk_error(error: &DenseError, want: ChunkError) -> bool {
    matches!(error, DenseError::B2nd { source: B2ndError::Chunk { source, .. }, .. } if *source == want)
}

#[test]
fn golden_b2nd_damage() {
    let golden = Golden::open("b2nd");
    let expected = golden.json("expected.json");
    let damaged = expected["malformed"].as_array().unwrap();
    for case in damaged {
        let path = case["path"].as_str().unwrap();
        let read = open(golden.file(path).to_vec())
            .and_then(|array| array.slice(&Hyperslab::whole(array.shape())));
        let error = read.err().unwrap_or_else(|| panic!("{path} is read"));
        assert!(
            matches!(error, DenseError::B2nd { .. }),
            "{path}: {error:?}"
        );
    }
    assert_eq!(damaged.len(), 24);
}

/// Zeros that Blosc2 4.14 wrote: 16384×8192 bytes in as many chunks, in 240 bytes.
const ZEROS: &str = "\
    9ea862326672616d6500d2000000a5cf00000000000000f0a412005502d30000\
    000008000000d30000000000000000d200000001d200000001d200000001d100\
    02d10002c2d8060000000000010500000000000000000093cd0011de0001a462\
    326e64d20000006bdc0001c60000003597000292d30000000000004000d30000\
    00000000200092d200000001d20000000192d200000001d20000000100db0000\
    00037c7531050105080000004000400000280000000000000000000000000000\
    00000000300000000000000081940193cd0006de0000dc0000ce00000023d800\
    00000000000000000000000000000000";

/// Regression test: every chunk of zeros was built, however many a few bytes declare.
#[test]
fn unstored_chunks_are_not_verified_one_by_one() {
    let array = open(unhex(ZEROS)).unwrap();
    assert_eq!(array.grid().shape(), [16384, 8192]);
    let mut broken = 0;
    array.verify(&mut |_, _| broken += 1);
    assert_eq!(broken, 0);
}
