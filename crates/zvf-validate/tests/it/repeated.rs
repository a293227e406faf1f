//! Members that stand in a JSON object twice.

use zvf_testkit::golden::Golden;

use crate::memory::{codes, lines};

#[test]
fn repeated_members_are_found_in_every_node() {
    let golden = Golden::open("zvf-09");
    let store = "points_2d_bins/store.zarrvectors";
    let before = codes(&lines(&golden.store(store)));
    assert!(!before.contains("ZV-L2-012"), "{before:?}");
    for (file, member) in [
        ("zarr.json", "chunk_shape"),
        ("0/zarr.json", "arrays_present"),
        ("0/vertices/zarr.json", "shape"),
    ] {
        let mut files = golden.store(store);
        let (_, json) = files.iter_mut().find(|(key, _)| key == file).unwrap();
        let text = String::from_utf8(std::mem::take(json)).unwrap();
        // The same member again, before the true one.
        let repeated = text.replacen(
            &format!("\"{member}\""),
            &format!("\"{member}\": [9, 9], \"{member}\""),
            1,
        );
        assert_ne!(repeated, text, "{file}");
        *json = repeated.into_bytes();
        let found = lines(&files);
        let expected = format!("\"{member}\" occurs twice; the last one is used");
        let is_named = found
            .iter()
            .any(|line| line.contains("ZV-L2-012") && line.contains(&expected));
        assert!(is_named, "{file}: {found:#?}");
    }
}
