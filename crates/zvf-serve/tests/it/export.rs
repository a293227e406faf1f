//! Exports to folders and to stores of objects.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use zvf::{Dataset, GeometryKind, NumericColumn};
use zvf_serve::{ExportError, ExportOptions, ExportTarget, LayerKind, export};

use crate::stores::{TestStores, block_on, paths};

/// Creates streamlines and returns their address.
fn streamlines(stores: &TestStores) -> String {
    stores.create("a.zv", GeometryKind::Streamlines, &paths(300, 9))
}

fn run(address: &str, target: &ExportTarget, options: &ExportOptions) -> Result<(), ExportError> {
    let work = async {
        let dataset = Dataset::open(address).await.unwrap();
        export(&dataset, target.clone(), options, &|_, _| {}).await
    };
    block_on(work).map(drop)
}

/// Returns an address that is written as a bucket is, and its folder.
fn bucket(stores: &TestStores, name: &str) -> (ExportTarget, PathBuf) {
    let folder = stores.folder.path().join(name);
    let target = ExportTarget::parse(&format!("file://{}", folder.display()));
    assert!(matches!(target, ExportTarget::Bucket(_)));
    (target, folder)
}

/// Returns the files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => {
                    let name = path.strip_prefix(folder).unwrap().to_path_buf();
                    found.insert(name, fs::read(path).unwrap());
                }
            }
        }
    }
    found
}

#[test]
fn a_bucket_gets_the_files_of_a_folder() {
    let stores = TestStores::new();
    let address = streamlines(&stores);
    for (name, options) in [
        ("files", ExportOptions::new()),
        ("shards", ExportOptions::new().sharded(true)),
    ] {
        let folder = stores.folder.path().join(format!("{name}-folder"));
        run(&address, &ExportTarget::from(folder.as_path()), &options).unwrap();
        let (target, bucket) = bucket(&stores, name);
        run(&address, &target, &options).unwrap();
        assert!(files(&folder) == files(&bucket), "{name}");
        // A complete export is not overwritten.
        let again = run(&address, &target, &options);
        assert!(matches!(again, Err(ExportError::NotEmpty(_))), "{again:?}");
    }
}

#[test]
fn rounded_positions_are_noted() {
    let stores = TestStores::new();
    let exact = streamlines(&stores);
    let mut geometry = paths(20, 5);
    let positions: Vec<f32> = geometry.positions.to_vec().unwrap();
    let positions = positions.into_iter().map(|at| f64::from(at) + 0.1);
    geometry.positions = NumericColumn::float64(3, positions);
    let rounded = stores.create("b.zv", GeometryKind::Streamlines, &geometry);
    for (address, name, is_noted) in [(exact, "c", false), (rounded, "d", true)] {
        let out = stores.folder.path().join(name);
        let dataset = block_on(Dataset::open(address.as_str())).unwrap();
        let options = ExportOptions::new();
        let report = block_on(export(&dataset, out.as_path(), &options, &|_, _| {})).unwrap();
        let is_found = |note: &String| note.starts_with("positions are rounded to float32");
        assert_eq!(
            report.notes.iter().any(is_found),
            is_noted,
            "{:?}",
            report.notes
        );
    }
}

/// The last shard cannot be put, because a folder has its name.
#[test]
fn an_interrupted_export_to_a_bucket_is_continued() {
    let stores = TestStores::new();
    let address = streamlines(&stores);
    let options = ExportOptions::new().sharded(true);
    let (target, folder) = bucket(&stores, "out");
    let obstacle = folder.join("skeletons/0.shard");
    fs::create_dir_all(obstacle.join("file")).unwrap();
    let failed = run(&address, &target, &options);
    assert!(
        matches!(failed, Err(ExportError::Bucket { .. })),
        "{failed:?}"
    );
    let partial = files(&folder);
    assert!(partial.contains_key(Path::new("zvf-export.json")));
    let is_document = |name: &PathBuf| name.ends_with("info");
    assert!(!partial.keys().any(is_document), "{:?}", partial.keys());

    // Another export must not mix with this one.
    let others = [
        ExportOptions::new(),
        options.clone().layers([LayerKind::Annotations]),
    ];
    for other in others {
        let refused = run(&address, &target, &other);
        assert!(
            matches!(refused, Err(ExportError::Unfinished(_))),
            "{refused:?}"
        );
    }

    // What was uploaded is not uploaded again: other bytes of the same size remain.
    let uploaded = folder.join("annotations/by_id/0.shard");
    let mut bytes = fs::read(&uploaded).unwrap();
    bytes.fill(7);
    fs::write(&uploaded, &bytes).unwrap();
    fs::remove_dir_all(&obstacle).unwrap();
    run(&address, &target, &options).unwrap();
    let (complete, reference) = bucket(&stores, "reference");
    run(&address, &complete, &options).unwrap();
    let (mut found, mut expected) = (files(&folder), files(&reference));
    let name = Path::new("annotations/by_id/0.shard");
    assert_eq!(found.remove(name), Some(bytes));
    expected.remove(name).unwrap();
    assert!(found == expected);
}
