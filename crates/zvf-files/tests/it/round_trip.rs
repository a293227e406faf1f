//! Files become stores, and stores become the same files.

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Read, Write},
    path::{Path, PathBuf},
};

use flate2::write::GzEncoder;
use zip::{CompressionMethod, ZipArchive};
use zvf::{
    Column, ColumnValues, CreateOptions, Dataset, Design, Geometry, GeometryKind, NumericColumn,
    ObjectGroup, Query, Scope,
};
use zvf_files::{FileReadOptions, GroupTables, StoreDescription};

use crate::samples::{self, Random};

/// Creates a store of a file, in batches or as a whole.
pub(crate) async fn import(
    file: &Path,
    store: &Path,
    options: &FileReadOptions,
    is_streamed: bool,
) {
    let mut reader = zvf_files::open(file, options).unwrap();
    let mut design = Design::new(reader.description().kind);
    reader.description().complete(&mut design);
    let mut create = CreateOptions::default();
    let store = store.display().to_string();
    if is_streamed {
        create.memory = Some(64 << 10);
        zvf::create_from_source(&store, reader.as_mut(), design, &create)
            .await
            .unwrap();
    } else {
        let geometry = zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder();
        zvf::create(&store, &geometry.build().unwrap(), design, &create)
            .await
            .unwrap();
    }
}

/// Writes a store to a file, and returns what was left out.
pub(crate) async fn export(store: &Path, file: &Path, query: &Query) -> Vec<String> {
    let dataset = Dataset::open(store.display().to_string()).await.unwrap();
    let headers = dataset
        .catalog()
        .headers()
        .await
        .unwrap()
        .into_iter()
        .map(|header| (header.format, header.attributes));
    let description = StoreDescription::from_parts(Vec::new(), None, headers.collect());
    let mut writer = zvf_files::create(file, &description).unwrap();
    let result = dataset.query(query).await.unwrap();
    writer.write(&result).unwrap();
    writer.finish(&groups(&dataset).await).unwrap().left_out
}

async fn groups(dataset: &Dataset) -> GroupTables {
    let catalog = dataset.catalog();
    let level = zvf::LevelId::new(0);
    let mut tables = GroupTables::default();
    if let Some(groups) = catalog.group_list(level).await.unwrap() {
        for id in 0..groups.len() {
            let members: Vec<i64> = groups
                .members(id)
                .map(|group| group.iter().collect())
                .unwrap_or_default();
            tables.groups.push(ObjectGroup { id, members });
        }
        for name in catalog
            .attribute_list(level, Scope::Group)
            .await
            .unwrap()
            .iter()
        {
            let column = catalog.group_values(level, name, None).await.unwrap();
            tables.columns.push(column);
        }
    }
    tables
}

/// Imports bytes in both ways and returns the files that come back.
async fn there_and_back(name: &str, bytes: &[u8], with: &[(&str, &[u8])]) -> [Vec<u8>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at(name), bytes).unwrap();
    let mut options = FileReadOptions::default();
    for (name, bytes) in with {
        fs::write(at(name), bytes).unwrap();
        options.with.push(at(name));
    }
    let mut results = [Vec::new(), Vec::new()];
    for (result, is_streamed) in results.iter_mut().zip([false, true]) {
        let store: PathBuf = at(&format!("{is_streamed}.zv"));
        import(&at(name), &store, &options, is_streamed).await;
        let back = at(&format!("back.{name}").replace(".gz", ""));
        export(&store, &back, &Query::new()).await;
        *result = fs::read(&back).unwrap();
    }
    results
}

#[tokio::test]
async fn trk_comes_back_byte_for_byte() {
    for (seed, is_big_endian) in [(1, false), (2, true)] {
        let bytes = samples::trk(&mut Random::new(seed), is_big_endian);
        for back in there_and_back("a.trk", &bytes, &[]).await {
            assert!(back == bytes, "big-endian: {is_big_endian}");
        }
    }
}

/// Names that the writer would not give, and values without a name, stay as they are.
#[tokio::test]
async fn names_of_trk_come_back() {
    for (scalars, names, properties) in [
        (2, &b""[..], 0),
        (12, b"", 3),
        (10, b"sh\x0010", 0),
        (3, b"fa", 2),
        (1, b"fa\0junk", 0),
        (1, b"\xe9t\xe9 abcdefghijklmn\xe9", 1),
    ] {
        let mut bytes = samples::trk(&mut Random::new(9), false);
        bytes.truncate(1000);
        let count = |number: i16| number.to_le_bytes();
        bytes[36..38].copy_from_slice(&count(scalars));
        bytes[38..238].fill(0);
        bytes[38..38 + names.len()].copy_from_slice(names);
        bytes[238..240].copy_from_slice(&count(properties));
        bytes[240..440].fill(0);
        bytes[988..992].copy_from_slice(&2_i32.to_le_bytes());
        for _ in 0..2 {
            bytes.extend(3_i32.to_le_bytes());
            let numbers = 0..3 * (3 + scalars) + properties;
            bytes.extend(numbers.flat_map(|number| f32::from(number + 40).to_le_bytes()));
        }
        for back in there_and_back("a.trk", &bytes, &[]).await {
            assert!(back == bytes, "{scalars}, {names:?}");
        }
    }
}

#[tokio::test]
async fn tck_comes_back_byte_for_byte() {
    for datatype in ["Float32LE", "Float32BE", "Float64LE", "Float64BE"] {
        let [bytes, scalars] = samples::tck(&mut Random::new(3), datatype);
        for back in there_and_back("a.tck", &bytes, &[("fa.tsf", &scalars)]).await {
            assert!(back == bytes, "{datatype}");
        }
    }
}

/// Headers with other line ends, without a count, or with one that is not a number.
#[test]
fn kept_headers_of_tck_agree_with_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let points = [0.1_f64, 1.2, 2.3, 3.4, 4.5, 5.6];
    for (fields, end) in [
        ("datatype: Float64LE\r\n", "\r\n"),
        ("datatype: Float64LE\n", "\n"),
        ("datatype : Float64LE\ncount : 7\n", "\n"),
        ("count: many\ndatatype: Float64LE\n", "\n"),
    ] {
        let start = format!("mrtrix tracks{end}step_size: 0.5{end}{fields}file: . ");
        let size = start.len() + format!("000{end}END{end}").len();
        let mut bytes = format!("{start}{size:03}{end}END{end}").into_bytes();
        let nan = [f64::NAN; 3];
        let rows = [&points[..3], &nan, &points[3..], &nan, &[f64::INFINITY; 3]].concat();
        bytes.extend(rows.iter().flat_map(|number| number.to_le_bytes()));
        fs::write(at("a.tck"), bytes).unwrap();
        let read = |name: &str| {
            let mut reader = zvf_files::open(&at(name), &FileReadOptions::default()).unwrap();
            let geometry = zvf_files::read_whole(reader.as_mut())
                .unwrap()
                .into_builder();
            (geometry, reader.description().clone())
        };
        let (geometry, description) = read("a.tck");
        assert_eq!(geometry.owners.offsets(), Some([0, 1, 2].as_slice()));
        // Both points become one streamline.
        let joined = Geometry::builder(geometry.positions).paths(vec![0, 2], None);
        let axes = description.axes.iter().map(|axis| axis.name.clone());
        let result =
            zvf_files::whole_result(joined.clone(), GeometryKind::Streamlines, axes.collect());
        let header = ("tck".to_owned(), description.header);
        let description = StoreDescription::from_parts(Vec::new(), None, [header].into());
        let mut writer = zvf_files::create(&at("b.tck"), &description).unwrap();
        writer.write(&result.unwrap()).unwrap();
        let written = writer.finish(&GroupTables::default()).unwrap();
        assert_eq!(written.left_out, [""; 0]);
        let (back, description) = read("b.tck");
        assert_eq!(back.positions.to_vec::<f64>().unwrap(), points);
        assert_eq!(back.owners.offsets(), joined.owners.offsets());
        let header = description.header["header"].as_str().unwrap();
        assert!(
            header.contains("step_size: 0.5") && header.contains("Float64LE"),
            "{header}"
        );
        assert_eq!(header.matches("count").count(), 1, "{header}");
        assert_eq!(header.matches("file").count(), 1, "{header}");
        assert!(header.contains("count: 0000000001\n"), "{header}");
    }
}

/// A group names every streamline of its objects.
#[test]
fn groups_of_trx_have_all_parts_of_an_object() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trx");
    let numbers = (0..15_u8).map(f32::from);
    let geometry = Geometry::builder(NumericColumn::float32(3, numbers))
        .paths(vec![0, 1, 3, 4, 5], vec![7, 9, 7, 12]);
    let axes = ["x", "y", "z"].map(str::to_owned).to_vec();
    let result = zvf_files::whole_result(geometry, GeometryKind::Streamlines, axes).unwrap();
    let mut writer = zvf_files::create(&path, &StoreDescription::default()).unwrap();
    writer.write(&result).unwrap();
    let group = |id, members: &[i64]| ObjectGroup {
        id,
        members: members.to_vec(),
    };
    let tables = GroupTables {
        groups: vec![group(0, &[9, 7]), group(1, &[12, 404])],
        columns: vec![Column::text("name", [Some("both"), Some("rest")])],
    };
    writer.finish(&tables).unwrap();
    let members = members(fs::read(&path).unwrap());
    let words = |name: &str| {
        let (words, _) = members[name].as_chunks::<4>();
        let words = words.iter().map(|word| u32::from_le_bytes(*word));
        words.collect::<Vec<_>>()
    };
    assert_eq!(words("groups/both.uint32"), [1, 0, 2]);
    assert_eq!(words("groups/rest.uint32"), [3]);
}

pub(crate) fn members(bytes: Vec<u8>) -> BTreeMap<String, Vec<u8>> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut members = BTreeMap::new();
    for at in 0..zip.len() {
        let mut member = zip.by_index(at).unwrap();
        let name = member.name().unwrap().into_owned();
        let mut bytes = Vec::new();
        member.read_to_end(&mut bytes).unwrap();
        members.insert(name, bytes);
    }
    members
}

#[tokio::test]
async fn trx_comes_back_member_for_member() {
    let given = samples::trx_members(&mut Random::new(4));
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let bytes = samples::trx(&given, method);
        for back in there_and_back("a.trx", &bytes, &[]).await {
            let mut back = members(back);
            let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
            for (name, bytes) in &given {
                let found = back.remove(*name).unwrap_or_else(|| panic!("no {name}"));
                if *name == "header.json" {
                    assert_eq!(json(&found), json(bytes));
                } else {
                    assert!(found == *bytes, "{name}");
                }
            }
            assert!(back.is_empty(), "{:?}", back.keys());
        }
    }
}

/// Integers of groups that no 64-bit float holds, of one type or several, come back.
#[tokio::test]
async fn large_integers_of_groups_of_trx_come_back() {
    let mut given = samples::trx_members(&mut Random::new(8));
    let large = (1_i64 << 60) + 1;
    given.extend([
        ("dpg/AF_L/id.int64", large.to_le_bytes().to_vec()),
        ("dpg/CST/id.int64", 1_i64.to_le_bytes().to_vec()),
        ("dpg/AF_L/u.uint64", u64::MAX.to_le_bytes().to_vec()),
        ("dpg/CST/u.uint8", vec![3]),
        (
            "dpg/AF_L/s.2.int64",
            [i64::MIN, large].map(i64::to_le_bytes).concat(),
        ),
        (
            "dpg/CST/s.2.int16",
            [-1_i16, 7].map(i16::to_le_bytes).concat(),
        ),
    ]);
    let bytes = samples::trx(&given, CompressionMethod::Stored);
    for back in there_and_back("a.trx", &bytes, &[]).await {
        let back = members(back);
        for (name, bytes) in given.iter().filter(|(name, _)| *name != "header.json") {
            assert_eq!(back.get(*name), Some(bytes), "{name}");
        }
        assert_eq!(back.len(), given.len(), "{:?}", back.keys());
    }
}

/// `AF_L` has no `mean`, and `CST` no `volume`, which is an integer.
#[test]
fn what_a_group_lacks_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trx");
    let given = samples::trx_members(&mut Random::new(6));
    fs::write(&path, samples::trx(&given, CompressionMethod::Stored)).unwrap();
    let mut reader = zvf_files::open(&path, &FileReadOptions::default()).unwrap();
    let geometry = zvf_files::read_whole(reader.as_mut())
        .unwrap()
        .into_builder();
    let values = |name: &str| -> Vec<Option<f64>> {
        let column = geometry.group.iter().find(|column| column.name == name);
        let ColumnValues::Numeric(numbers) = &column.unwrap().values else {
            panic!("{name} is text")
        };
        let view = numbers.view().unwrap();
        let values = (0..view.rows()).map(|row| view.value(row, 0).unwrap().to_f64());
        values
            .map(|value| Some(value).filter(|it| !it.is_nan()))
            .collect()
    };
    assert_eq!(values("mean"), [None, Some(1.5)]);
    assert_eq!(values("volume"), [Some(15.0), None]);
}

#[tokio::test]
async fn a_folder_of_trx_is_read_as_a_zip_file() {
    let given = samples::trx_members(&mut Random::new(5));
    let folder = tempfile::tempdir().unwrap();
    let trx = folder.path().join("a.trx");
    for (name, bytes) in &given {
        let path = trx.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let zip = folder.path().join("b.trx");
    fs::write(&zip, samples::trx(&given, CompressionMethod::Stored)).unwrap();
    let read = |path: &Path| {
        let mut reader = zvf_files::open(path, &FileReadOptions::default()).unwrap();
        zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder()
    };
    assert_eq!(read(&trx), read(&zip));
}

#[tokio::test]
async fn gzip_is_unpacked_within_a_limit() {
    let bytes = samples::trk(&mut Random::new(6), false);
    let mut gzip = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).unwrap();
    let packed = gzip.finish().unwrap();
    for back in there_and_back("a.trk.gz", &packed, &[]).await {
        assert!(back == bytes);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.trk.gz");
    fs::write(&path, packed).unwrap();
    let mut options = FileReadOptions::default();
    options.unpacked = 2000;
    let error = zvf_files::open(&path, &options).err().unwrap();
    assert!(matches!(
        error.fault,
        zvf_files::FileFault::Unpacked { limit: 2000 }
    ));
}

/// A part of a TRK file has the count and the header of a whole one.
#[tokio::test]
async fn a_selection_is_a_valid_file() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.trk"), samples::trk(&mut Random::new(7), false)).unwrap();
    let options = FileReadOptions::default();
    import(&at("a.trk"), &at("a.zv"), &options, false).await;
    let read = |name: &str| {
        let mut reader = zvf_files::open(&at(name), &options).unwrap();
        zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder()
    };
    let whole = read("a.trk");
    let length = |offsets: &[u64], path: usize| offsets[path + 1] - offsets[path];
    for name in ["b.trk", "b.tck", "b.trx"] {
        let query = Query::new().objects([3, 17]);
        export(&at("a.zv"), &at(name), &query).await;
        let part = read(name);
        let (all, own) = (
            whole.owners.offsets().unwrap(),
            part.owners.offsets().unwrap(),
        );
        assert_eq!(own.len(), 3, "{name}");
        assert_eq!(length(own, 0), length(all, 3), "{name}");
        assert_eq!(length(own, 1), length(all, 17), "{name}");
    }
}

#[tokio::test]
async fn swc_comes_back_line_for_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = samples::swc();
    fs::write(at("a.swc"), &text).unwrap();
    import(
        &at("a.swc"),
        &at("a.zv"),
        &FileReadOptions::default(),
        false,
    )
    .await;
    assert_eq!(
        export(&at("a.zv"), &at("b.swc"), &Query::new()).await,
        [""; 0]
    );
    assert_eq!(fs::read_to_string(at("b.swc")).unwrap(), text);
}

#[tokio::test]
async fn a_folder_of_swc_files_is_a_store_of_objects() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("cells")).unwrap();
    fs::create_dir(at("out")).unwrap();
    let plain = "1 1 0 0 0 1 -1\n2 3 0.125 4 5.5 0.5 1\n3 3 7 8 9 0.25 2\n";
    // The second file needs float64.
    let wide = "1 1 12345.678901 0 0 1 -1\n2 3 1 4 5.5 0.5 1\n";
    fs::write(at("cells/17.swc"), plain).unwrap();
    fs::write(at("cells/5.swc"), wide).unwrap();
    fs::write(at("cells/notes.txt"), "no neuron").unwrap();
    import(
        &at("cells"),
        &at("a.zv"),
        &FileReadOptions::default(),
        false,
    )
    .await;
    let address = at("a.zv").display().to_string();
    let result = Dataset::open(address)
        .await
        .unwrap()
        .query(&Query::new())
        .await
        .unwrap();
    assert_eq!(result.objects, [5, 17]);
    assert_eq!(result.links.as_ref().unwrap().len(), 3);
    export(&at("a.zv"), &at("out/{name}.swc"), &Query::new()).await;
    assert_eq!(fs::read_to_string(at("out/17.swc")).unwrap(), plain);
    assert_eq!(fs::read_to_string(at("out/5.swc")).unwrap(), wide);
    // In one file, ids that repeat are counted on.
    export(&at("a.zv"), &at("all.swc"), &Query::new()).await;
    let all = fs::read_to_string(at("all.swc")).unwrap();
    let ends: Vec<(&str, &str)> = all
        .lines()
        .map(|line| {
            (
                line.split(' ').next().unwrap(),
                line.rsplit(' ').next().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        ends,
        [("1", "-1"), ("2", "1"), ("3", "-1"), ("4", "3"), ("5", "4")]
    );
}
