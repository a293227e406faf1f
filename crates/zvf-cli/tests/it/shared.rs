//! Stores that several processes build.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

fn zvf(words: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_zvf"))
        .args(words)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), said)
}

fn files(folder: &Path, prefix: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &format!("{name}/"), found);
        } else {
            found.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

#[test]
fn several_processes_build_the_same_store() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let rows = (0..600).map(|at| {
        let (path, step) = (at / 20, f64::from(at % 20));
        format!("{},{path}.5,1.25,{path},{at}\n", step * 1.5)
    });
    let header = "x,y,z,object_id,v\n".to_owned();
    let csv: String = [header].into_iter().chain(rows).collect();
    fs::write(at("a.csv"), csv).unwrap();
    let kind = [
        "--kind",
        "streamlines",
        "--chunk-shape",
        "8,8,8",
        "--name",
        "n",
    ];
    let create = |out: &str, from: &str, more: &[&str]| {
        let words = [&["create", out, "--from", from][..], &kind, more].concat();
        zvf(&words)
    };
    let (done, said) = create(&at("a.zv"), &at("a.csv"), &[]);
    assert!(done, "{said}");
    let (done, said) = zvf(&["query", &at("a.zv"), "-o", &at("a.npz")]);
    assert!(done, "{said}");
    let (done, said) = create(&at("one.zv"), &at("a.npz"), &[]);
    assert!(done, "{said}");
    let (done, said) = create(&at("many.zv"), &at("a.npz"), &["--workers", "2"]);
    assert!(done, "{said}");
    let (mut one, mut many) = (BTreeMap::new(), BTreeMap::new());
    files(&folder.path().join("one.zv"), "", &mut one);
    files(&folder.path().join("many.zv"), "", &mut many);
    assert!(one.len() > 20);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&one), names(&many));
    assert!(one == many);
    for (store, workers) in [("one.zv", &[][..]), ("many.zv", &["--workers", "2"])] {
        let (done, said) = zvf(&[&["pyramid", &at(store), "--levels", "1"], workers].concat());
        assert!(done, "{said}");
    }
    let levels = |store: &str| {
        let mut found = BTreeMap::new();
        files(&folder.path().join(store), "", &mut found);
        // Transactions have unique names.
        found.retain(|name, _| !name.starts_with(".zvf/") && name != "zarr.json");
        found
    };
    let (one, many) = (levels("one.zv"), levels("many.zv"));
    assert!(one.keys().any(|name| name.starts_with("1/vertices/c/")));
    assert_eq!(names(&one), names(&many));
    assert!(one == many);
    let (done, said) = zvf(&["validate", &at("many.zv"), "--level", "4"]);
    assert!(done, "{said}");
    let (done, said) = create(&at("no.zv"), &at("a.csv"), &["--workers", "2"]);
    assert!(!done && said.contains("--threads"), "{said}");
    assert!(
        said.contains("the rows of paths are found in the whole table"),
        "{said}"
    );
    let fortran = fortran_npz();
    fs::write(at("f.npz"), fortran).unwrap();
    let words = [
        "create",
        &at("no.zv"),
        "--kind=points",
        "--from",
        &at("f.npz"),
        "--workers=2",
    ];
    let (done, said) = zvf(&words);
    let expected = "the array positions is in Fortran order; save numpy.ascontiguousarray of it";
    assert!(!done && said.contains(expected), "{said}");
}

/// An uncompressed archive of positions in Fortran order.
fn fortran_npz() -> Vec<u8> {
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    let header = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
    npy.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    npy.extend(header.bytes());
    npy.extend([0; 24]);
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    zip.start_file("positions.npy", stored).unwrap();
    std::io::Write::write_all(&mut zip, &npy).unwrap();
    zip.finish().unwrap().into_inner()
}
