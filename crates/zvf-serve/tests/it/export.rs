//! Exports to folders and to stores of objects.

use std::{
    collections::BTreeMap,
    fs,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use zvf::{
    Dataset, Editor, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds, StateError,
    VertexOwners,
};
use zvf_precomputed::{AnnotationInfo, ShardFile};
use zvf_serve::{
    ExportError, ExportOptions, ExportTarget, LayerError, LayerKind, MeshFormat, export,
};

use crate::stores::{TestStores, block_on, grouped_paths, paths, points, surface, trees};

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
pub(crate) fn bucket(stores: &TestStores, name: &str) -> (ExportTarget, PathBuf) {
    let folder = stores.folder.path().join(name);
    let target = ExportTarget::parse(&format!("file://{}", folder.display()));
    assert!(matches!(target, ExportTarget::Bucket(_)));
    (target, folder)
}

/// Returns the files below a folder.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
                found.insert(name, fs::read(path).unwrap());
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
    // Beyond 2^53, where numbers round to float64 and float32 alike.
    let mut large = points(2);
    let positions = [(1_i64 << 53) + 1, 0, 0, 1 << 53, 1, 1];
    large.positions = NumericColumn::from_values(3, positions);
    let large = stores.create("e.zv", GeometryKind::Points, &large);
    for (address, name, is_noted) in [
        (exact, "c", false),
        (rounded, "d", true),
        (large, "f", true),
    ] {
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

    // Uploaded files are not uploaded again: other bytes of the same size remain.
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

/// Some keys of a sharded index were lost: their shards had numbers of earlier ones.
#[test]
fn many_shards_hold_every_key() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Streamlines, &paths(3000, 35));
    let options = ExportOptions::new()
        .sharded(true)
        .layers([LayerKind::Annotations]);
    for (at, bytes) in [1 << 10, 100_000, 1 << 30].into_iter().enumerate() {
        let out = stores.folder.path().join(at.to_string());
        let target = ExportTarget::from(out.as_path());
        run(&address, &target, &options.clone().shard_bytes(bytes)).unwrap();
        let info = fs::read(out.join("annotations/info")).unwrap();
        let spec = AnnotationInfo::parse(&info)
            .unwrap()
            .by_id_sharding
            .unwrap();
        let mut keys = Vec::new();
        for (name, bytes) in files(&out.join("annotations/by_id")) {
            assert!(spec.shard_of(name.to_str().unwrap()).is_some());
            let shard = ShardFile::parse(spec, &bytes).unwrap();
            keys.extend(shard.keys().unwrap());
        }
        keys.sort_unstable();
        assert!(keys.into_iter().eq(0..3000), "{bytes} bytes: {spec:?}");
    }
}

/// Exports a store of trees that is changed after the first pass over it.
fn export_of_changing(
    address: &str,
    target: &ExportTarget,
    options: &ExportOptions,
) -> Result<(), ExportError> {
    let is_committed = AtomicBool::new(false);
    let commit = || {
        let mut more = trees(5, 30);
        more.owners = VertexOwners::Vertices((0..150).map(|at| 1000 + at / 30).collect());
        let editor = block_on(Editor::open(address)).unwrap();
        block_on(editor.append(&more.build().unwrap(), OutOfBounds::Expand)).unwrap();
    };
    let report = |_, total| {
        // A group of the objects is read next.
        if total >= 40 && !is_committed.swap(true, Ordering::Relaxed) {
            thread::scope(|scope| scope.spawn(commit).join().unwrap());
        }
    };
    let work = async {
        let dataset = Dataset::open(address).await.unwrap();
        export(&dataset, target.clone(), options, &report).await
    };
    let exported = block_on(work).map(drop);
    assert!(is_committed.into_inner());
    exported
}

/// The skeletons were of another state than the properties of their objects.
#[test]
fn an_export_of_a_store_that_changes_is_not_published() {
    let stores = TestStores::new();
    let address = stores.create("a.zv", GeometryKind::Skeletons, &trees(40, 30));
    let options = ExportOptions::new().sharded(true);
    let out = stores.folder.path().join("out");
    let target = ExportTarget::from(out.as_path());
    let failed = export_of_changing(&address, &target, &options).unwrap_err();
    let is_changed = matches!(
        &failed,
        ExportError::Layer(LayerError::Store(error))
            if matches!(error.cause(), Some(StateError::Changed { .. }))
    );
    assert!(is_changed, "{failed:?}");
    assert!(!out.exists());
    // The same command exports the new state.
    run(&address, &target, &options).unwrap();
    let fresh = stores.folder.path().join("fresh");
    run(&address, &fresh.as_path().into(), &options).unwrap();
    assert!(files(&out) == files(&fresh));

    // In a bucket, no program opens a layer without its document.
    let address = stores.create("b.zv", GeometryKind::Skeletons, &trees(40, 30));
    let (target, folder) = bucket(&stores, "bucket");
    export_of_changing(&address, &target, &options).unwrap_err();
    let is_document = |name: &PathBuf| name.ends_with("info");
    assert!(!files(&folder).keys().any(is_document));
}

/// Creates stores of several kinds, with the options of an export of each.
fn cases(stores: &TestStores) -> Vec<(String, ExportOptions)> {
    let files = ExportOptions::new;
    let shards = || ExportOptions::new().sharded(true);
    let create = |name: &str, kind, geometry: &GeometryBuilder| stores.create(name, kind, geometry);
    let tracts = create(
        "tracts.zv",
        GeometryKind::Streamlines,
        &grouped_paths(300, 9),
    );
    let trees = create("trees.zv", GeometryKind::Skeletons, &trees(40, 30));
    let cells = create("cells.zv", GeometryKind::Points, &points(12_000));
    let surface = create("surface.zv", GeometryKind::Mesh, &surface(40));
    vec![
        (tracts.clone(), files()),
        (tracts, shards()),
        (trees.clone(), files()),
        (trees, shards()),
        (cells, shards()),
        (surface.clone(), files()),
        (surface.clone(), shards()),
        (surface, files().mesh_format(MeshFormat::Legacy)),
    ]
}

/// Runs an export that ends in a panic when it reports progress for the `last` time. Returns whether it
/// was interrupted.
fn interrupt(address: &str, target: &ExportTarget, options: &ExportOptions, last: usize) -> bool {
    let reports = AtomicUsize::new(0);
    let report = |_, _| {
        if reports.fetch_add(1, Ordering::Relaxed) >= last {
            // Without a message of the panic.
            resume_unwind(Box::new("interrupted by the test"));
        }
    };
    let work = async {
        let dataset = Dataset::open(address).await.unwrap();
        export(&dataset, target.clone(), options, &report).await
    };
    catch_unwind(AssertUnwindSafe(|| block_on(work).unwrap())).is_err()
}

/// Returns the number of times that an export reports progress.
fn reports(address: &str, target: &ExportTarget, options: &ExportOptions) -> usize {
    let reports = AtomicUsize::new(0);
    let report = |_, _| {
        reports.fetch_add(1, Ordering::Relaxed);
    };
    let work = async {
        let dataset = Dataset::open(address).await.unwrap();
        export(&dataset, target.clone(), options, &report).await
    };
    block_on(work).unwrap();
    reports.into_inner()
}

/// The folder of an interrupted export to `target`.
pub(crate) fn hidden(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap().to_str().unwrap();
    target.with_file_name(format!(".{name}.zvf-export"))
}

#[test]
fn interrupted_exports_are_continued() {
    let stores = TestStores::new();
    for (at, (address, options)) in cases(&stores).into_iter().enumerate() {
        let folder = |name: &str| stores.folder.path().join(format!("{at}-{name}"));
        let whole = folder("whole");
        let all = reports(&address, &whole.as_path().into(), &options);
        let expected = files(&whole);
        for last in (0..all).step_by((all / 7).max(1)) {
            let out = folder(&format!("{last}"));
            let target = ExportTarget::from(out.as_path());
            assert!(interrupt(&address, &target, &options, last));
            assert!(!out.exists(), "{address} {last}");
            // A second interruption, unless what remains reports less progress.
            if interrupt(&address, &target, &options, last / 2) {
                let report = block_on(async {
                    let dataset = Dataset::open(&address).await.unwrap();
                    export(&dataset, target, &options, &|_, _| {}).await
                })
                .unwrap();
                let count = u64::try_from(files(&out).len()).unwrap();
                assert_eq!(report.files, count);
            }
            let found = files(&out);
            assert!(found == expected, "{address} {last}");
            assert!(!hidden(&out).exists());

            let (bucket, out) = bucket(&stores, &format!("{at}-{last}-bucket"));
            assert!(interrupt(&address, &bucket, &options, last));
            let is_document = |name: &PathBuf| name.ends_with("info");
            assert!(!files(&out).keys().any(is_document));
            run(&address, &bucket, &options).unwrap();
            assert!(files(&out) == expected, "{address} {last}");
        }
    }
}

/// An interrupted export of the skeletons has the annotations.
fn begun(stores: &TestStores) -> (String, ExportOptions, PathBuf) {
    let address = streamlines(stores);
    let options = ExportOptions::new().sharded(true);
    let out = stores.folder.path().join("out");
    let target = ExportTarget::from(out.as_path());
    let all = reports(
        &address,
        &stores.folder.path().join("all").as_path().into(),
        &options,
    );
    assert!(interrupt(&address, &target, &options, all - 1));
    assert!(hidden(&out).join("annotations/info").exists());
    (address, options, out)
}

#[test]
fn what_is_complete_is_kept() {
    let stores = TestStores::new();
    let (address, options, out) = begun(&stores);
    let kept = hidden(&out).join("annotations/by_id/0.shard");
    let written = fs::metadata(&kept).unwrap().modified().unwrap();
    // A line of the journal that was not written as a whole, and a file that was not noted.
    let journal = hidden(&out).join(".zvf-export.json");
    let mut text = fs::read(&journal).unwrap();
    text.extend_from_slice(b"{\"file\": \"skele");
    fs::write(&journal, text).unwrap();
    fs::create_dir_all(hidden(&out).join("skeletons")).unwrap();
    fs::write(hidden(&out).join("skeletons/torn"), "half").unwrap();
    run(&address, &out.as_path().into(), &options).unwrap();
    let file = out.join("annotations/by_id/0.shard");
    assert_eq!(fs::metadata(file).unwrap().modified().unwrap(), written);
    assert!(files(&out) == files(&stores.folder.path().join("all")));
}

#[test]
fn damaged_and_stale_remainders_are_not_used() {
    let stores = TestStores::new();
    let (address, options, out) = begun(&stores);
    let target = ExportTarget::from(out.as_path());
    // A byte of a complete file, as a power cut may leave it.
    let shard = hidden(&out).join("annotations/by_id/0.shard");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[100] ^= 1;
    fs::write(&shard, bytes).unwrap();
    run(&address, &target, &options).unwrap();
    assert!(files(&out) == files(&stores.folder.path().join("all")));

    // Other options.
    fs::remove_dir_all(&out).unwrap();
    assert!(interrupt(&address, &target, &options, 3));
    let other = ExportOptions::new().layers([LayerKind::Skeletons]);
    run(&address, &target, &other).unwrap();
    assert!(!out.join("annotations").exists());

    // Another state of the store.
    fs::remove_dir_all(&out).unwrap();
    assert!(interrupt(&address, &target, &options, 3));
    let editor = block_on(Editor::open(address.as_str())).unwrap();
    let mut more = paths(10, 9);
    *more.owners.ids_mut().unwrap() = (1000..1010).collect();
    block_on(editor.append(&more.build().unwrap(), OutOfBounds::Expand)).unwrap();
    run(&address, &target, &options).unwrap();
    let fresh = stores.folder.path().join("fresh");
    run(&address, &fresh.as_path().into(), &options).unwrap();
    assert!(files(&out) == files(&fresh));
}

#[test]
fn other_folders_and_running_exports_are_left_alone() {
    let stores = TestStores::new();
    let (address, options, out) = begun(&stores);
    let target = ExportTarget::from(out.as_path());
    let lock = fs::File::open(hidden(&out).join(".zvf-export.lock")).unwrap();
    lock.lock().unwrap();
    let refused = run(&address, &target, &options);
    assert!(
        matches!(refused, Err(ExportError::Running(_))),
        "{refused:?}"
    );
    drop(lock);
    run(&address, &target, &options).unwrap();

    let out = stores.folder.path().join("other");
    fs::create_dir(hidden(&out)).unwrap();
    fs::write(hidden(&out).join("letter.txt"), "Dear").unwrap();
    let refused = run(&address, &out.as_path().into(), &options);
    assert!(
        matches!(refused, Err(ExportError::NoExport(_))),
        "{refused:?}"
    );
    assert!(hidden(&out).join("letter.txt").exists());
}
