//! Vertices that are encoded with Draco: written and read by this library, written by the
//! reference, and damaged.

use serde_json::{Value as Json, json};
use zvf::{
    Column, Dataset, Design, Editor, Geometry, GeometryBuilder, GeometryKind, NumericColumn,
    OpenOptions, Query, QueryResult, Selection, ValidateOptions, VertexOwners, validate,
};
use zvf_build::edit::EditError;
use zvf_model::{draco::PositionBits, error_chain::error_chain, key::Key};
use zvf_store::{Read, Store};
use zvf_testkit::golden::testdata;

use crate::{block_on, damage::Files};

const VERTICES: &str = "0/vertices/c/0/0/0";

/// A grid of 12 × 12 vertices that crosses chunks of 10, with an attribute, and its triangles.
fn sheet() -> GeometryBuilder {
    let at = |x: u16, y: u16| [f32::from(x) * 2.5, f32::from(y) * 2.5, f32::from(x * y % 7)];
    let rows = (0..12).flat_map(|x| (0..12).map(move |y| at(x, y)));
    let positions: Vec<f32> = rows.flatten().collect();
    let mut geometry = Geometry::builder(NumericColumn::float32(3, positions));
    geometry.links.width = 3;
    let corner = |x: i64, y: i64| x * 12 + y;
    for (x, y) in (0..11).flat_map(|x| (0..11).map(move |y| (x, y))) {
        let [a, b] = [corner(x, y), corner(x, y + 1)];
        let [c, d] = [corner(x + 1, y), corner(x + 1, y + 1)];
        geometry.links.ends.extend([a, b, c, b, d, c]);
    }
    geometry.owners = VertexOwners::Vertices((0..144).map(|row| i64::from(row / 72)).collect());
    let numbers = NumericColumn::float32(1, (0..144_u16).map(f32::from).collect::<Vec<_>>());
    geometry.vertex = vec![Column::new("number", numbers)];
    geometry
}

fn mesh(draco: Option<u8>) -> Design {
    let mut design = Design::new(GeometryKind::Mesh).chunk_shape([10.0; 3]);
    design.draco = draco.and_then(PositionBits::new);
    design
}

async fn store_of(geometry: GeometryBuilder, design: Design) -> Store {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let plan = zvf_build::WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let options = zvf::CreateOptions::new().seal(false);
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

async fn files_of(store: &Store) -> Files {
    let listed = store.list_all(&Key::root(), usize::MAX).await.unwrap();
    let mut files = Files::new();
    for file in listed {
        let key = Key::parse(&file.name).unwrap();
        let bytes = store.read_one(Read::full(key)).await.unwrap().unwrap();
        files.push((file.name, bytes.to_vec()));
    }
    files
}

fn in_memory(files: &Files) -> Store {
    OpenOptions::default().from_memory(files.clone()).unwrap()
}

async fn run(files: &Files, query: &Query) -> Result<QueryResult, String> {
    let dataset = Dataset::open(in_memory(files)).await.unwrap();
    let result = dataset.query(query).await;
    result.map_err(|error| error_chain(&error))
}

async fn codes(files: &Files) -> Vec<String> {
    let report = validate(in_memory(files), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings;
    let mut codes: Vec<String> = findings
        .iter()
        .map(|one| one.rule.code.to_owned())
        .collect();
    codes.sort();
    codes.dedup();
    codes
}

fn rows(result: &QueryResult) -> Vec<[f32; 3]> {
    let numbers = result.positions.bytes.as_chunks::<4>().0.as_chunks::<3>().0;
    numbers
        .iter()
        .map(|row| row.map(f32::from_le_bytes))
        .collect()
}

/// Returns the vertex numbers of the corners of each triangle, whatever their order.
fn triangles(result: &QueryResult) -> Vec<Vec<u64>> {
    let links = result.links.as_ref().unwrap();
    let mut all: Vec<Vec<u64>> = links
        .ends
        .chunks(3)
        .map(<[u64]>::to_vec)
        .map(|mut ends| {
            ends.sort_unstable();
            ends
        })
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn encoded_meshes_answer_as_others_up_to_the_rounding() {
    block_on(async {
        let plain = files_of(&store_of(sheet(), mesh(None)).await).await;
        let queries = [
            Query::new(),
            Query::new().objects([1]),
            Query::new().columns(Selection::All),
            Query::new().limit(50),
        ];
        for bits in [8, 11, 16, 24] {
            let encoded = files_of(&store_of(sheet(), mesh(Some(bits))).await).await;
            assert_eq!(codes(&encoded).await, codes(&plain).await);
            // The extent of the vertices of a chunk is at most its own.
            let step = 10.0 / (2.0_f32.powi(i32::from(bits)) - 1.0);
            for query in &queries {
                let expected = run(&plain, query).await.unwrap();
                let found = run(&encoded, query).await.unwrap();
                assert_eq!(found.object_ids, expected.object_ids);
                assert_eq!(found.vertex, expected.vertex);
                assert_eq!(triangles(&found), triangles(&expected));
                assert_eq!(rows(&found).len(), rows(&expected).len());
                for (ours, given) in rows(&found).iter().zip(rows(&expected)) {
                    for (ours, given) in ours.iter().zip(given) {
                        assert!((ours - given).abs() <= step, "{ours} {given} {bits}");
                    }
                }
            }
        }
        // A region selects by the positions that are stored.
        let encoded = files_of(&store_of(sheet(), mesh(Some(11))).await).await;
        let bbox = zvf::Bbox::new(&[3.0, 3.0, 0.0], &[17.0, 18.0, 9.0]).unwrap();
        let all = run(&encoded, &Query::new()).await.unwrap();
        let within = Query::new().region(bbox).mode(zvf::Mode::Within);
        let is_inside =
            |row: &&[f32; 3]| (3.0..=17.0).contains(&row[0]) && (3.0..=18.0).contains(&row[1]);
        let expected = rows(&all).iter().filter(is_inside).count();
        let found = run(&encoded, &within).await.unwrap();
        assert!(expected > 20);
        assert_eq!(rows(&found).len(), expected);
    });
}

#[test]
fn encoded_points_and_paths_answer_as_others() {
    block_on(async {
        let positions: Vec<f32> = (0..300_u16)
            .map(|n| f32::from(n * 7 % 200) / 10.0)
            .collect();
        for kind in [GeometryKind::Points, GeometryKind::Polylines] {
            let mut geometry = Geometry::builder(NumericColumn::float32(3, positions.clone()));
            if kind == GeometryKind::Polylines {
                geometry = geometry.paths(vec![0, 40, 100], None);
            }
            let design = Design::new(kind).chunk_shape([7.0; 3]);
            let plain = files_of(&store_of(geometry.clone(), design.clone()).await).await;
            let design = design.draco(PositionBits::new(20).unwrap());
            let encoded = files_of(&store_of(geometry, design).await).await;
            assert_eq!(codes(&encoded).await, codes(&plain).await);
            let expected = run(&plain, &Query::new()).await.unwrap();
            let found = run(&encoded, &Query::new()).await.unwrap();
            assert_eq!(found.object_ids, expected.object_ids);
            assert_eq!(found.parts, expected.parts);
            for (ours, given) in rows(&found).iter().zip(rows(&expected)) {
                assert!(ours.iter().zip(given).all(|(a, b)| (a - b).abs() < 1e-4));
            }
        }
    });
}

#[test]
fn what_draco_cannot_encode_is_refused_before_anything_is_written() {
    let refused = |geometry, design: Design| {
        let design = design.draco(PositionBits::default());
        zvf_build::WritePlan::new(geometry, design)
            .unwrap_err()
            .to_string()
    };
    let flat = || Geometry::builder(NumericColumn::float32(2, [1.0, 2.0]));
    let double = || Geometry::builder(NumericColumn::float64(3, [1.0, 2.0, 3.0]));
    let design = || Design::new(GeometryKind::Points);
    let why = |text| format!("vertices cannot be encoded with Draco: {text}");
    assert_eq!(
        refused(flat().build().unwrap(), design()),
        why("positions must have three coordinates")
    );
    assert_eq!(
        refused(double().build().unwrap(), design()),
        why("coordinates must be of type float32")
    );
    let old = design().profile(zvf::Profile::V08);
    assert_eq!(
        refused(double().build().unwrap(), old),
        why("only stores of 0.9 have the encoding")
    );
}

#[test]
fn encoded_stores_are_not_changed() {
    block_on(async {
        let store = store_of(sheet(), mesh(Some(11))).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        let error = editor
            .append(&sheet().build().unwrap(), zvf::OutOfBounds::Reject)
            .await;
        assert!(
            matches!(&error, Err(error) if matches!(error.cause(), Some(EditError::Unsupported(_)))),
            "{error:?}"
        );
        let error = zvf::build_pyramid(&store, &zvf::PyramidOptions::new()).await;
        assert!(error_chain(&error.unwrap_err()).contains("Draco"));
    });
}

/// Returns the stream of a case of `testdata/codec/draco.json`, in the frame of a cell.
fn recorded(name: &str) -> Vec<u8> {
    let text = std::fs::read(testdata().join("codec/draco.json")).unwrap();
    let file: Json = serde_json::from_slice(&text).unwrap();
    let cases = file["cases"].as_array().unwrap();
    let case = cases.iter().find(|case| case["name"] == name).unwrap();
    let digits = case["hex"].as_str().unwrap().as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let stream: Vec<u8> = digits.map(byte).collect();
    let length = u32::try_from(stream.len()).unwrap();
    [&1_u32.to_le_bytes()[..], &length.to_le_bytes(), &stream].concat()
}

/// Returns a mesh of one chunk without compression and checksums, with a recorded stream in place of
/// its vertices: 25 vertices, 32 triangles, and one vertex more than the stream if `isolated`.
async fn with_stream(name: &str, isolated: bool) -> Files {
    let mut rows: Vec<f32> = Vec::new();
    for (x, y) in (0..5_u16).flat_map(|x| (0..5_u16).map(move |y| (x, y))) {
        rows.extend([f32::from(x), f32::from(y), 0.5]);
    }
    if isolated {
        rows.extend([9.0, 9.0, 9.0]);
    }
    let count = rows.len() / 3;
    let mut geometry = Geometry::builder(NumericColumn::float32(3, rows));
    let numbers: Vec<f32> = (0..count).map(|_| 1.5).collect();
    let numbers = NumericColumn::float32(1, numbers);
    geometry.vertex = vec![Column::new("number", numbers)];
    geometry = geometry.links(3, vec![0, 1, 5]);
    let mut design = mesh(Some(11));
    design.checksums = zvf::CellChecksums::Off;
    let mut files = files_of(&store_of(geometry, design).await).await;
    let cell = files.iter_mut().find(|(key, _)| key == VERTICES).unwrap();
    cell.1 = recorded(name);
    files
}

#[test]
fn streams_of_the_reference_are_read_and_nothing_is_assigned_to_lost_rows() {
    block_on(async {
        let bare = Query::new().columns(Selection::Named(Vec::new()));
        for (name, isolated) in [
            ("mesh_of_11_bits", false),
            ("mesh_of_14_bits", false),
            // The stream has one vertex less than the fragment declares.
            ("mesh_with_a_vertex_without_triangles", true),
        ] {
            let files = with_stream(name, isolated).await;
            let result = run(&files, &bare).await.unwrap();
            assert_eq!(rows(&result).len(), 25, "{name}");
            assert_eq!(triangles(&result).len(), 32, "{name}");
            let all = Query::new().columns(Selection::All);
            let error = run(&files, &all).await.unwrap_err();
            assert_eq!(
                error,
                "0/vertex_attributes/number, chunk 0.0.0: refers to an order of vertices that their \
                 Draco stream has not kept"
            );
            let kept = run(&files, &all.clone().keep_going(true)).await.unwrap();
            assert_eq!((rows(&kept).len(), kept.skipped.len()), (25, 1));
            let codes = codes(&files).await;
            assert!(codes.contains(&"ZV-L3-018".to_owned()), "{codes:?}");
            assert!(!codes.contains(&"ZV-L3-014".to_owned()), "{codes:?}");
        }
    });
}

#[test]
fn links_between_chunks_of_lost_order_are_errors() {
    block_on(async {
        let mut files = files_of(
            &store_of(sheet(), {
                let mut design = mesh(Some(11));
                design.checksums = zvf::CellChecksums::Off;
                design
            })
            .await,
        )
        .await;
        let cell = files.iter_mut().find(|(key, _)| key == VERTICES).unwrap();
        cell.1 = recorded("mesh_of_11_bits");
        let index = files
            .iter_mut()
            .find(|(key, _)| key == "0/vertex_fragments/c/0/0/0")
            .unwrap();
        let mut whole = zvf_format::fragment::FragmentIndexBuilder::default();
        whole.push_range(0..25).unwrap();
        let whole = whole.finish();
        let length = u32::try_from(whole.len()).unwrap();
        index.1 = [&1_u32.to_le_bytes()[..], &length.to_le_bytes(), &whole].concat();
        let bare = Query::new().columns(Selection::Named(Vec::new()));
        for query in [bare.clone(), bare.clone().limit(1_000)] {
            let error = run(&files, &query).await.unwrap_err();
            assert!(error.starts_with("0/links/0/"), "{error}");
            assert!(
                error.ends_with(
                    "refers to an order of vertices that their Draco stream has not kept"
                )
            );
        }
        assert!(codes(&files).await.contains(&"ZV-L3-018".to_owned()));
    });
}

#[test]
fn damaged_streams_are_errors_that_name_the_chunk() {
    block_on(async {
        let whole = with_stream("mesh_of_11_bits", false).await;
        let bare = Query::new().columns(Selection::Named(Vec::new()));
        let at = whole.iter().position(|(key, _)| key == VERTICES).unwrap();
        let stream = whole[at].1[8..].to_vec();
        for damaged in [
            Vec::new(),
            b"not Draco".to_vec(),
            stream[..stream.len() / 2].to_vec(),
            stream[..20].to_vec(),
        ] {
            let mut files = whole.clone();
            let length = u32::try_from(damaged.len()).unwrap();
            files[at].1 = [&1_u32.to_le_bytes()[..], &length.to_le_bytes(), &damaged].concat();
            let error = run(&files, &bare).await.unwrap_err();
            assert!(error.starts_with("0/vertices, chunk 0.0.0: "), "{error}");
            assert!(error.contains("Draco stream"), "{error}");
            assert!(
                codes(&files).await.contains(&"ZV-L3-014".to_owned()),
                "{damaged:?}"
            );
        }
        let mut unknown = whole.clone();
        let node = unknown
            .iter_mut()
            .find(|(key, _)| key == "0/vertices/zarr.json")
            .unwrap();
        let mut json: Json = serde_json::from_slice(&node.1).unwrap();
        json["attributes"]["encoding"] = json!("meshopt");
        node.1 = json.to_string().into_bytes();
        let error = run(&unknown, &bare).await.unwrap_err();
        assert!(error.contains("meshopt"), "{error}");
    });
}

#[test]
fn a_stream_that_decodes_to_more_than_the_budget_is_refused() {
    block_on(async {
        let rows: Vec<f32> = (0..20_000)
            .flat_map(|n: u16| [f32::from(n % 2), 0.0, 0.0])
            .collect();
        let geometry = Geometry::builder(NumericColumn::float32(3, rows));
        let design = Design::new(GeometryKind::Points)
            .chunk_shape([4.0; 3])
            .draco(PositionBits::new(1).unwrap());
        let files = files_of(&store_of(geometry, design).await).await;
        let (_, cell) = files.iter().find(|(key, _)| key == VERTICES).unwrap();
        assert!(cell.len() < 20_000, "{}", cell.len());
        let store = |budget| {
            let options = OpenOptions::default().budget(budget);
            options.from_memory(files.clone()).unwrap()
        };
        let dataset = Dataset::open(store(100_000)).await.unwrap();
        let error = dataset.query(&Query::new()).await.unwrap_err();
        assert_eq!(error.kind(), zvf::ErrorKind::OverBudget, "{error:?}");
        let dataset = Dataset::open(store(4_000_000)).await.unwrap();
        let result = dataset.query(&Query::new()).await.unwrap();
        assert_eq!(self::rows(&result).len(), 20_000);
    });
}
