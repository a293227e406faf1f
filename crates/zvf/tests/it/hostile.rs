//! Every file of some stores removed, emptied, truncated and damaged.

use zvf::{Dataset, Error, ErrorKind, OpenOptions, Query, StoreInfo};
use zvf_testkit::golden::Golden;

use crate::block_on;

type Files = Vec<(String, Vec<u8>)>;

fn files(archive: &str, store: &str) -> Files {
    let golden = Golden::open(archive);
    let prefix = format!("{store}/");
    let files = golden.files();
    let below = files.filter_map(|(path, bytes)| {
        let key = path.strip_prefix(&prefix)?;
        Some((key.to_owned(), bytes.to_vec()))
    });
    below.collect()
}

fn info(files: Files) -> Result<StoreInfo, Error> {
    let store = OpenOptions::default().from_memory(files).unwrap();
    block_on(async { Dataset::open(store).await?.info().await })
}

/// Returns damaged versions of a file.
fn damage(bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut damaged = vec![
        None,
        Some(Vec::new()),
        Some(bytes[..bytes.len() / 2].to_vec()),
    ];
    for at in [0, bytes.len() / 3, bytes.len().saturating_sub(1)] {
        let mut flipped = bytes.to_vec();
        if let Some(byte) = flipped.get_mut(at) {
            *byte ^= 0x11;
        }
        damaged.push(Some(flipped));
    }
    damaged
}

/// Returns the counts without byte sizes, which damage may change.
fn counts(info: &StoreInfo) -> Vec<[Option<u64>; 4]> {
    let levels = info.levels.iter();
    levels
        .map(|level| {
            [
                level.vertices,
                Some(level.chunks),
                level.objects,
                level.links,
            ]
        })
        .collect()
}

#[test]
fn a_damaged_file_is_an_error_or_changes_no_count() {
    let (mut refused, mut same) = (0, 0);
    for (archive, store) in [
        ("zvf-06", "skeleton.zv"),
        ("zvf-07", "sharded_octree.zv"),
        ("zvf-08", "0.8.1/native_sharded.zv"),
        ("zvf-08", "0.8.0/pyramid.zv"),
        ("zvf-09", "graph_sharded/store.zarrvectors"),
        ("zvf-09", "points_sharded_zstd/store.zarrvectors"),
    ] {
        let intact = files(archive, store);
        let expected = info(intact.clone()).unwrap();
        for (at, (key, bytes)) in intact.iter().enumerate() {
            for damage in damage(bytes) {
                let what = damage.as_ref().map(Vec::len);
                let mut files = intact.clone();
                match damage {
                    Some(bytes) => files[at].1 = bytes,
                    None => drop(files.remove(at)),
                }
                match info(files) {
                    Err(_) => refused += 1,
                    Ok(found) if counts(&found) == counts(&expected) => same += 1,
                    Ok(found) => panic!("{store}/{key}, now {what:?} bytes: {found:?}"),
                }
            }
        }
    }
    assert!(refused > 100, "{refused} refused, {same} the same");
}

/// Manifests that name the greatest possible number of chunks, all of them missing.
#[test]
fn requests_for_absent_chunks_are_bounded() {
    for (shape, chunk) in [
        (1_u64 << 60, 1_u64),
        (1 << 60, 1 << 60),
        (5, 5),
        (1 << 26, 1),
    ] {
        let mut files = files("zvf-07", "graph.zv");
        for (key, bytes) in &mut files {
            let change = |name: &str, value: serde_json::Value, bytes: &mut Vec<u8>| {
                let mut json: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                *json.pointer_mut(name).unwrap() = value;
                *bytes = json.to_string().into_bytes();
            };
            if key == "0/object_index/manifests/zarr.json" {
                change("/shape/0", shape.into(), bytes);
                change(
                    "/chunk_grid/configuration/chunk_shape/0",
                    chunk.into(),
                    bytes,
                );
            }
            if key == "0/object_index/zarr.json" && shape == 1 << 26 {
                change("/attributes/num_objects", shape.into(), bytes);
            }
        }
        let error = info(files).unwrap_err();
        assert!(error.kind() == ErrorKind::Damaged, "{error:?}");
        let message = error.to_string();
        let is_counted =
            message.contains("manifests, but") || message.contains("chunks, which exceeds");
        assert!(is_counted, "{message}");
    }
}

/// Rows that another build or a larger budget would read are neither damaged nor skipped.
#[test]
fn an_unknown_codec_and_a_small_budget_are_not_damage() {
    let files = files("zvf-09", "graph_3d/store.zarrvectors");
    let mut encoded = files.clone();
    let mut changed = 0;
    for (key, bytes) in &mut encoded {
        if key == "0/vertices/zarr.json" {
            let text = core::str::from_utf8(bytes).unwrap();
            let other = text.replace("\"zstd\"", "\"brotli\"");
            changed += usize::from(other != text);
            *bytes = other.into_bytes();
        }
    }
    assert_eq!(changed, 1, "the vertices are compressed with zstd");
    let run = |files: Files, options: OpenOptions, query: Query| {
        let store = options.from_memory(files).unwrap();
        block_on(async { Dataset::open(store).await?.query(&query).await })
    };
    for query in [Query::new(), Query::new().keep_going(true)] {
        let error = run(encoded.clone(), OpenOptions::default(), query.clone()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("0/vertices") && text.contains("brotli"),
            "{text}"
        );
        let mut errors = 0;
        for budget in [100, 500, 1000, 2000] {
            let small = OpenOptions::default().budget(budget);
            match run(files.clone(), small, query.clone()) {
                Ok(result) => assert!(result.skipped.is_empty(), "{:?}", result.skipped),
                Err(error) => {
                    errors += 1;
                    assert_eq!(error.kind(), ErrorKind::OverBudget, "{error:?}");
                }
            }
        }
        assert!(errors > 0, "a budget of 100 bytes is too small");
    }
}

/// The metadata of a store in a folder is read within the budget as that of other stores. The error
/// was that the machine is out of memory, of the class of data that is not delivered.
#[test]
fn a_budget_too_small_for_a_folder_is_over_budget() {
    let folder = tempfile::tempdir().unwrap();
    for (key, bytes) in files("zvf-09", "graph_3d/store.zarrvectors") {
        let path = folder.path().join(key);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let address = folder.path().display().to_string();
    for budget in [0, 100, 1000] {
        let small = OpenOptions::default().budget(budget);
        let error = block_on(Dataset::open_with(&address, &small)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{error:?}");
        let text = error.to_string();
        let expected = format!("memory budget of {budget} bytes");
        assert!(text.contains(&expected), "{text}");
    }
}

/// A pipe has no end and a device may have none; a store may hold them after a hostile archive was
/// extracted.
#[test]
#[cfg(target_os = "linux")]
fn pipes_and_devices_in_the_place_of_files_are_errors_that_name_them() {
    use std::{fs, os::unix::fs::symlink, path::Path, process::Command};
    use zvf::{CreateOptions, Design, Geometry, GeometryKind, NumericColumn};
    let pipe = |path: &Path| {
        let made = Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    let device = |path: &Path| symlink("/dev/zero", path).unwrap();
    let files = files("zvf-09", "points_objects_groups/store.zarrvectors");
    let is_cell = |key: &&String| key.starts_with("0/vertices/c/");
    let cell = files.iter().map(|(key, _)| key).find(is_cell).unwrap();
    for replaced in ["zarr.json", "0/vertices/zarr.json", cell] {
        for replace in [&pipe as &dyn Fn(&Path), &device] {
            let folder = tempfile::tempdir().unwrap();
            for (key, bytes) in &files {
                let path = folder.path().join(key);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
            let path = folder.path().join(replaced);
            fs::remove_file(&path).unwrap();
            replace(&path);
            let address = folder.path().display().to_string();
            let error = block_on(async {
                let dataset = Dataset::open(&address).await?;
                dataset.query(&Query::new()).await
            });
            let error = zvf_model::error_chain::error_chain(&error.unwrap_err());
            let is_named = error.contains(replaced) && error.contains("not a regular file");
            assert!(is_named, "{replaced}: {error}");
            if replaced == "zarr.json" {
                let store = zvf_store::Store::open(&address).unwrap();
                let error = block_on(store.begin()).unwrap_err().to_string();
                assert!(error.contains(replaced), "{error}");
                let points = Geometry::new(NumericColumn::float32(3, [1.0, 2.0, 3.0]));
                let design = Design::new(GeometryKind::Points).chunk_shape([9.0; 3]);
                let options = CreateOptions::default();
                let created = block_on(zvf::create(&address, &points, design, &options));
                let error = zvf_model::error_chain::error_chain(&created.unwrap_err());
                assert!(error.contains("not a regular file"), "{error}");
            }
            let options = zvf::ValidateOptions::default();
            let report = block_on(zvf::validate(&address, &options));
            assert!(report.map_or(true, |report| !report.is_ok()), "{replaced}");
        }
    }
}

/// A store may hold a link to a folder of the person that replaces it.
#[test]
#[cfg(unix)]
fn files_behind_links_are_not_deleted() {
    use std::{fs, os::unix::fs::symlink};
    use zvf::{AutoLevels, CreateOptions, Design, Geometry, GeometryKind, NumericColumn};
    let coordinates = (0..900_u16).map(f32::from).collect::<Vec<f32>>();
    let geometry = Geometry::new(NumericColumn::float32(3, coordinates));
    let folder = tempfile::tempdir().unwrap();
    let (store, outside) = (folder.path().join("a.zv"), folder.path().join("outside"));
    let (kept, address) = (outside.join("kept.txt"), store.display().to_string());
    fs::create_dir(&outside).unwrap();
    fs::write(&kept, "kept").unwrap();
    let create = || {
        let options = CreateOptions::default().overwrite(true);
        let mut design = Design::new(GeometryKind::Points);
        design.chunk_shape = Some(vec![100.0; 3]);
        block_on(zvf::create(&address, &geometry, design, &options))
    };
    let pyramid = || {
        let mut levels = AutoLevels::default();
        levels.levels = Some(1);
        let options = zvf::PyramidOptions::new().levels(levels).overwrite(true);
        block_on(zvf::build_pyramid(&address, &options)).map(drop)
    };
    let refused = |outcome: Result<(), Error>, link: &str| {
        let error = zvf_model::error_chain::error_chain(&outcome.unwrap_err());
        let is_named = error.contains(link) && error.contains("symbolic link");
        assert!(is_named, "{link}: {error}");
        assert!(kept.exists(), "{link}");
    };
    create().unwrap();
    pyramid().unwrap();
    for link in ["extra", "0/extra", "0/vertices/c/9"] {
        let path = store.join(link);
        symlink(&outside, &path).unwrap();
        refused(create().map(drop), link);
        fs::remove_file(path).unwrap();
        create().unwrap();
    }
    pyramid().unwrap();
    fs::rename(store.join("1"), folder.path().join("moved")).unwrap();
    symlink(&outside, store.join("1")).unwrap();
    refused(pyramid(), "1");
}
