//! Refreshed levels equal levels rebuilt from scratch.

use std::collections::BTreeMap;

use serde_json::Value;
use zvf::{
    Bbox, Column, CrossLevel, Dataset, Design, Editor, Geometry, GeometryBuilder, GeometryKind,
    LevelChoice, LevelDesign, LevelReport, NumericColumn, ObjectSelection, OutOfBounds, Profile,
    PyramidLevels, PyramidOptions, Query, Store, ValidateOptions, build_pyramid,
    coarsen::{Amount, CoarsenMethod, Placement, Sparsity, Strategy},
    refresh_pyramid, validate,
};
use zvf_build::CellChecksums;
use zvf_format::{fragment::FragmentIndexBuilder, vlen};
use zvf_model::{key::Key, level::LevelId};
use zvf_query::QueryError;
use zvf_store::Read;
use zvf_testkit::stores::Random;

use super::random::store_of;
use crate::{
    block_on,
    validated::own::is_sound,
    written::{
        content::Content,
        edits::{change, unsealed_store},
        random::{self, Case},
    },
};

/// Returns the files of a store, without those of transactions.
async fn files(store: &Store) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for file in store.list_all(&Key::root(), 1 << 20).await.unwrap() {
        let key = Key::parse(&file.name).unwrap();
        let bytes = store.read_one(Read::full(key)).await.unwrap().unwrap();
        files.insert(file.name, bytes.to_vec());
    }
    files.retain(|name, _| !name.starts_with(".zvf"));
    files
}

/// Normalizes what may differ: transaction numbers, and error bounds of chunks that were not
/// rebuilt.
fn comparable(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, String> {
    let text = |(name, bytes): (String, Vec<u8>)| {
        let json: Option<Value> = name
            .ends_with("zarr.json")
            .then(|| serde_json::from_slice(&bytes).unwrap());
        let text = match json {
            None => format!("{bytes:?}"),
            Some(mut json) => {
                if let Some(attributes) = json.get_mut("attributes").and_then(Value::as_object_mut)
                {
                    attributes.remove("zvf");
                    // The copy of the nodes belongs to another transaction; its validity is checked
                    // separately.
                    attributes.remove("zvf_nodes");
                    if let Some(says) = attributes
                        .get_mut("zvf_pyramid")
                        .and_then(Value::as_object_mut)
                    {
                        says.remove("error");
                    }
                }
                sorted(&mut json);
                json.to_string()
            }
        };
        (name, text)
    };
    files.into_iter().map(text).collect()
}

/// Sorts arrays whose order has no meaning.
fn sorted(json: &mut Value) {
    match json {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sorted);
        }
        Value::Array(items) => items.iter_mut().for_each(sorted),
        _ => {}
    }
}

fn design(random: &mut Random, case: &Case, chunk: &[f64]) -> LevelDesign {
    let kind = case.design.kind;
    let triangles = case.geometry.links.width == 3;
    let scale = 1 + u32::try_from(random.below(2)).unwrap();
    let cells = [1.0, 2.0, 3.0, 4.0][random.below(4)];
    let cell: Vec<f64> = chunk
        .iter()
        .map(|extent| extent * f64::from(scale) / cells)
        .collect();
    let bins = CoarsenMethod::Bins {
        cell: cell.clone(),
        placement: if random.chance(50) {
            Placement::Mean
        } else {
            Placement::Medoid
        },
        share: random.chance(30),
    };
    let method = match kind {
        GeometryKind::Points if random.chance(50) => CoarsenMethod::Subset {
            cell,
            keep: 1,
            seed: 7,
            without: None,
        },
        GeometryKind::Mesh if triangles && random.chance(50) => CoarsenMethod::Collapse {
            keep: 0.4,
            tolerance: f64::INFINITY,
            cull: 0,
        },
        GeometryKind::Polylines | GeometryKind::Streamlines | GeometryKind::Skeletons
            if random.chance(50) =>
        {
            if random.chance(50) {
                CoarsenMethod::Simplify { tolerance: 2.0 }
            } else {
                CoarsenMethod::Stride { step: 3 }
            }
        }
        _ => bins,
    };
    LevelDesign {
        method,
        chunk_scale: vec![scale; chunk.len()],
        sparsity: random.chance(40).then_some(ObjectSelection {
            sparsity: Sparsity {
                amount: Amount::Share(0.5),
                strategy: Strategy::Random { seed: 3 },
            },
            attribute: None,
        }),
        additive: false,
        sharding: None,
    }
}

/// Refreshes the levels of a store, and compares them with levels built anew.
async fn check_refresh(store: &Store, options: &PyramidOptions, about: &str) {
    let twin = Store::from_memory(files(store).await).unwrap();
    let refreshed = refresh_pyramid(store, &PyramidOptions::default())
        .await
        .unwrap_or_else(|error| panic!("{about}: {error:?}"));
    let built = build_pyramid(&twin, options).await.unwrap();
    // Nothing is built from a level without vertices, and a refresh keeps all levels.
    let mut kept_empty = None;
    for level in &refreshed.levels {
        let same = built.levels.iter().find(|own| own.level == level.level);
        let Some(same) = same else {
            assert_eq!(level.vertices, 0, "{about}");
            kept_empty = kept_empty.or(Some(level.level.number()));
            continue;
        };
        let counts = |made: &LevelReport| (made.vertices, made.chunks, made.objects, made.links);
        assert_eq!(counts(level), counts(same), "{about}");
        let is_known = level.named.is_some();
        assert!(!is_known || level.named == same.named, "{level:?}: {about}");
    }
    let is_compared = |name: &str| {
        kept_empty.is_none_or(|level| {
            let own: Option<u32> = name.split('/').next().and_then(|own| own.parse().ok());
            own.is_some_and(|own| own < level) && !name.contains("/links/+")
        })
    };
    let [mut ours, mut whole] = [files(store).await, files(&twin).await].map(comparable);
    for files in [&mut ours, &mut whole] {
        files.retain(|name, _| is_compared(name));
    }
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    let (own, all) = (names(&ours), names(&whole));
    let more: Vec<&String> = own.iter().filter(|name| !all.contains(name)).collect();
    let less: Vec<&String> = all.iter().filter(|name| !own.contains(name)).collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "{more:?} {less:?}: {about}"
    );
    for (name, text) in &ours {
        assert_eq!(text, &whole[name], "{name}: {about}");
    }
}

fn check(seed: u64, kind: GeometryKind) {
    let mut case = random::case(seed, kind, Profile::V09);
    let mut random = Random::new(seed ^ 0xbeef);
    let mut expected = Content::of(&case.geometry, &case.design);
    block_on(async {
        let store = unsealed_store(&mut case).await;
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let mut chunk = dataset.root().chunk_shape.extents().to_vec();
        let mut levels = Vec::new();
        for _ in 0..2 {
            let level = design(&mut random, &case, &chunk);
            for extent in &mut chunk {
                *extent *= f64::from(level.chunk_scale[0]);
            }
            levels.push(level);
        }
        let mut options = PyramidOptions::default();
        options.levels = PyramidLevels::Explicit(levels);
        options.cross_level =
            [CrossLevel::None, CrossLevel::Implicit, CrossLevel::Explicit][random.below(3)];
        options.depth = [Some(1), None][random.below(2)];
        let about = format!("seed {seed}, {kind:?}, {options:?}, {:?}", case.design);
        if let Err(error) = build_pyramid(&store, &options).await {
            // The first level may have lost all faces.
            assert!(error.to_string().contains("no faces"), "{about}: {error:?}");
            return;
        }
        is_sound(&store, &format!("built: {about}")).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        for step in 0..2 {
            let what = change(&editor, &mut case, &mut random, &mut expected).await;
            let about = format!("step {step}, {what}, {about}");
            options.overwrite = true;
            check_refresh(&store, &options, &about).await;
            is_sound(&store, &about).await;
        }
    });
}

fn check_kind(kind: GeometryKind) {
    for seed in 0..zvf_testkit::sample::cases(4) {
        check(seed, kind);
    }
}

#[test]
fn refreshed_levels_of_points_equal_rebuilt_ones() {
    check_kind(GeometryKind::Points);
}

#[test]
fn refreshed_levels_of_paths_equal_rebuilt_ones() {
    check_kind(GeometryKind::Streamlines);
    check_kind(GeometryKind::Lines);
}

#[test]
fn refreshed_levels_of_skeletons_equal_rebuilt_ones() {
    check_kind(GeometryKind::Skeletons);
}

#[test]
fn refreshed_levels_of_graphs_equal_rebuilt_ones() {
    check_kind(GeometryKind::Graphs);
}

#[test]
fn refreshed_levels_of_meshes_equal_rebuilt_ones() {
    check_kind(GeometryKind::Mesh);
}

/// Creates a store with chunks of extent 10 and one level.
async fn store_with_level(
    geometry: GeometryBuilder,
    kind: GeometryKind,
    method: CoarsenMethod,
) -> (Store, PyramidOptions) {
    let axes = geometry.axes();
    let mut design = Design::new(kind);
    design.chunk_shape = Some(vec![10.0; axes]);
    let store = store_of(geometry, design).await;
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Explicit(vec![LevelDesign {
        method,
        chunk_scale: vec![1; axes],
        sparsity: None,
        additive: false,
        sharding: None,
    }]);
    build_pyramid(&store, &options).await.unwrap();
    options.overwrite = true;
    (store, options)
}

async fn vertices(store: &Store) -> usize {
    let mut query = Query::new();
    query.level = LevelChoice::Number(LevelId::new(1));
    let dataset = Dataset::open(store.clone()).await.unwrap();
    dataset.query(&query).await.unwrap().positions.len()
}

#[test]
fn a_chunk_that_lost_a_link_is_refreshed() {
    let simplify = CoarsenMethod::Simplify { tolerance: 0.5 };
    for method in [simplify, CoarsenMethod::Stride { step: 9 }] {
        let about = format!("{method:?}");
        // Chunk 0 has a row of vertices, and the fourth is linked to a vertex of chunk 1.
        let along = (1..=8_u8).chain([15]);
        let places = along.flat_map(|at| [f32::from(at), 1.0]);
        let geometry = Geometry::builder(NumericColumn::float32(2, places)).links(
            2,
            (0..7).flat_map(|at| [at, at + 1]).chain([3, 8]).collect(),
        );
        block_on(async {
            let (store, options) = store_with_level(geometry, GeometryKind::Graphs, method).await;
            assert_eq!(vertices(&store).await, 4, "{about}");
            let editor = Editor::open(store.clone()).await.unwrap();
            let beyond = Query::new().region(Bbox::parse("14,0,20,10").unwrap());
            let changed = editor.remove_selected(&beyond).await.unwrap();
            assert_eq!((changed.removed, changed.links, changed.chunks), (1, 1, 1));
            check_refresh(&store, &options, &about).await;
            assert_eq!(vertices(&store).await, 2, "{about}");
        });
    }
}

#[test]
fn levels_that_lost_all_links_have_no_groups_of_links() {
    let places = [1.0, 1.0, 15.0, 1.0, 35.0, 1.0];
    let geometry = Geometry::builder(NumericColumn::float32(2, places))
        .links(2, vec![0, 1])
        .link(vec![Column::new(
            "weight",
            [7_u32].into_iter().collect::<NumericColumn>(),
        )]);
    let method = CoarsenMethod::Bins {
        cell: vec![5.0; 2],
        placement: Placement::Mean,
        share: false,
    };
    block_on(async {
        let (store, mut options) = store_with_level(geometry, GeometryKind::Graphs, method).await;
        let PyramidLevels::Explicit(levels) = &mut options.levels else {
            panic!("{options:?}");
        };
        levels.push(levels[0].clone());
        build_pyramid(&store, &options).await.unwrap();
        let links = |files: &BTreeMap<String, Vec<u8>>| {
            let of_level = |level: u32| {
                let [links, values] = ["links/0", "link_attributes"];
                let group = [links, values].map(|name| format!("{level}/{name}/"));
                files
                    .keys()
                    .any(|name| group.iter().any(|own| name.starts_with(own)))
            };
            [1, 2].map(of_level)
        };
        assert_eq!(links(&files(&store).await), [true, true]);
        let editor = Editor::open(store.clone()).await.unwrap();
        let second = Query::new().region(Bbox::parse("14,0,20,10").unwrap());
        assert_eq!(editor.remove_selected(&second).await.unwrap().links, 1);
        check_refresh(&store, &options, "without links").await;
        is_sound(&store, "without links").await;
        assert!(!links(&files(&store).await)[1]);
    });
}

#[test]
fn subsets_do_not_depend_on_removed_objects() {
    let method = CoarsenMethod::Subset {
        cell: vec![5.0; 2],
        keep: 2,
        seed: 7,
        without: None,
    };
    // Twenty points of object 1 in chunk 0, and twenty of object 2 in chunk 2.
    let places = [0.0, 20.0].into_iter().flat_map(|first| {
        (0..20_u8).flat_map(move |at| [first + f32::from(at) / 2.0, f32::from(at % 7)])
    });
    let geometry = Geometry::builder(NumericColumn::float32(2, places))
        .object_ids([[1; 20], [2; 20]].concat());
    block_on(async {
        let (store, options) = store_with_level(geometry, GeometryKind::Points, method).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.remove(&[1]).await.unwrap();
        check_refresh(&store, &options, "without object 1").await;
    });
}

/// Returns the method that keeps one point of each object in each cell of this extent.
fn one_of_each(extent: f64) -> CoarsenMethod {
    CoarsenMethod::Subset {
        cell: vec![extent; 2],
        keep: 1,
        seed: 7,
        without: None,
    }
}

/// A grid of objects of two points, in several chunks, with a level of one point for each.
async fn pairs_with_level() -> (Store, PyramidOptions) {
    let places = (0..80_u8).flat_map(|at| [f32::from(at) / 2.0, f32::from(at % 7)]);
    let mut geometry = Geometry::builder(NumericColumn::float32(2, places))
        .object_ids((0..80).map(|at| at / 2).collect());
    let rows = (0..80_u32).collect::<NumericColumn>();
    geometry.vertex = vec![Column::new("row", rows)];
    store_with_level(geometry, GeometryKind::Points, one_of_each(10.0)).await
}

async fn stale(store: &Store) -> bool {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    dataset.root().stale_levels().next().is_some()
}

#[test]
fn compacting_does_not_outdate_levels() {
    block_on(async {
        let (store, _) = pairs_with_level().await;
        let before = files(&store).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        let changed = editor.compact().await.unwrap();
        assert_eq!((changed.transaction, changed.chunks), (1, 0));
        assert_eq!(files(&store).await, before);
        let removed = editor.remove(&[3, 4]).await.unwrap();
        refresh_pyramid(&store, &PyramidOptions::default())
            .await
            .unwrap();
        let changed = editor.compact().await.unwrap();
        assert!(changed.transaction > removed.transaction && changed.chunks > 0);
        assert!(!stale(&store).await);
        is_sound(&store, "compacted").await;
        let again = editor.compact().await.unwrap();
        assert_eq!((again.transaction, again.chunks), (changed.transaction, 0));
    });
}

/// Regression test: links between levels named the rows from before, but no level was stale.
#[test]
fn compacting_outdates_levels_if_it_drops_vertices() {
    block_on(async {
        let places = (0..10_u8).flat_map(|at| [f32::from(at), 0.0]);
        let geometry = Geometry::builder(NumericColumn::float32(2, places))
            .object_ids([[1; 4].as_slice(), &[2; 6]].concat());
        let mut design = Design::new(GeometryKind::Points);
        design.chunk_shape = Some(vec![10.0; 2]);
        design.checksums = CellChecksums::Off;
        let store = store_of(geometry, design).await;
        // Another program left the last vertex of object 1 without a fragment.
        let mut index = FragmentIndexBuilder::default();
        index.push_range(0..3).unwrap();
        index.push_range(4..10).unwrap();
        let key = Key::parse("0/vertex_fragments/c/0/0").unwrap();
        let cell = vlen::encode(&[index.finish()]).unwrap();
        store.put_many(vec![(key, cell.into())]).await.unwrap();
        let mut options = PyramidOptions::default();
        options.levels = PyramidLevels::Explicit(vec![LevelDesign {
            method: one_of_each(5.0),
            chunk_scale: vec![1; 2],
            sparsity: None,
            additive: false,
            sharding: None,
        }]);
        options.cross_level = CrossLevel::Explicit;
        build_pyramid(&store, &options).await.unwrap();
        let reached = || async {
            let mut query = Query::new().region(Bbox::parse("0,0,50,10").unwrap());
            query.level = LevelChoice::Number(LevelId::new(1));
            let dataset = Dataset::open(store.clone()).await.unwrap();
            let found = dataset.query(&query.drill(-1)).await;
            found.map(|found| found.positions.bytes)
        };
        let before = reached().await.unwrap();
        assert_eq!(before.len(), 9 * 8);
        let editor = Editor::open(store.clone()).await.unwrap();
        let changed = editor.compact().await.unwrap();
        assert_eq!((changed.removed, changed.chunks), (1, 1));
        assert!(stale(&store).await);
        let refused = reached().await;
        assert!(
            matches!(&refused, Err(error) if matches!(error.cause(), Some(QueryError::OutdatedLinks(_)))),
            "{refused:?}"
        );
        options.overwrite = true;
        check_refresh(&store, &options, "compacted").await;
        is_sound(&store, "compacted").await;
        assert_eq!(reached().await.unwrap(), before);
    });
}

/// Regression test: files of the former object index stayed, as did the count of the former links
/// from level 0 to level 2.
#[test]
fn levels_of_stores_without_objects_left_are_sound() {
    block_on(async {
        let (store, mut options) = pairs_with_level().await;
        let PyramidLevels::Explicit(levels) = &mut options.levels else {
            panic!("{options:?}");
        };
        levels.push(levels[0].clone());
        options.cross_level = CrossLevel::Explicit;
        options.depth = None;
        build_pyramid(&store, &options).await.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        let all: Vec<i64> = (0..40).collect();
        editor.remove(&all).await.unwrap();
        let refreshed = refresh_pyramid(&store, &PyramidOptions::default()).await;
        let levels = refreshed.unwrap().levels;
        let empty = |level: &LevelReport| (level.vertices, level.objects) == (0, Some(0));
        assert!(levels.len() == 2 && levels.iter().all(empty), "{levels:?}");
        is_sound(&store, "without objects").await;
        let mut point = Geometry::builder(NumericColumn::float32(2, [6.0, 5.0, 7.0, 5.0]))
            .object_ids(vec![9, 9]);
        let rows = [80_u32, 81].into_iter().collect::<NumericColumn>();
        point.vertex = vec![Column::new("row", rows)];
        editor
            .append(&point.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        let refreshed = refresh_pyramid(&store, &PyramidOptions::default()).await;
        let levels = refreshed.unwrap().levels;
        assert!(
            levels.iter().all(|level| level.objects == Some(1)),
            "{levels:?}"
        );
        is_sound(&store, "with objects again").await;
    });
}

#[test]
fn links_to_stale_levels_are_refused() {
    block_on(async {
        let (store, options) = pairs_with_level().await;
        let here = |level| {
            let mut query = Query::new().region(Bbox::parse("0,0,50,10").unwrap());
            query.level = LevelChoice::Number(LevelId::new(level));
            query
        };
        let reached = |query: Query| {
            let store = store.clone();
            async move {
                let dataset = Dataset::open(store).await.unwrap();
                let found = dataset.query(&query).await;
                found.map(|found| found.positions.len())
            }
        };
        let up = here(0).drill(1);
        assert_eq!(reached(up.clone()).await.unwrap(), vertices(&store).await);
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.remove(&[0]).await.unwrap();
        for query in [up.clone(), here(1).drill(-1)] {
            let refused = reached(query).await;
            let error = refused.unwrap_err();
            let Some(QueryError::OutdatedLinks(level)) = error.cause() else {
                panic!("{error:?}");
            };
            assert_eq!(*level, LevelId::new(1));
        }
        let report = validate(store.clone(), &ValidateOptions::default()).await;
        let findings = report.unwrap().findings;
        let codes: Vec<&str> = findings.iter().map(|found| found.rule.code).collect();
        assert_eq!(codes, ["ZV-L4-059"]);
        check_refresh(&store, &options, "edited below a level").await;
        assert_eq!(reached(up).await.unwrap(), vertices(&store).await);
    });
}

#[test]
fn references_are_not_counted_if_paths_are_refreshed_in_part() {
    let method = CoarsenMethod::Bins {
        cell: vec![2.0; 2],
        placement: Placement::Mean,
        share: false,
    };
    // Three paths in chunk 0, and one in chunk 2.
    let places = [0.0, 0.0, 0.0, 20.0]
        .into_iter()
        .flat_map(|first| (0..5_u8).flat_map(move |at| [first + f32::from(at), f32::from(at)]));
    let geometry =
        Geometry::builder(NumericColumn::float32(2, places)).paths(vec![0, 5, 10, 15, 20], None);
    block_on(async {
        let (store, options) = store_with_level(geometry, GeometryKind::Streamlines, method).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.remove(&[1]).await.unwrap();
        let twin = Store::from_memory(files(&store).await).unwrap();
        let report = refresh_pyramid(&store, &PyramidOptions::default()).await;
        let level = &report.unwrap().levels[0];
        assert_eq!((level.named, level.objects), (None, Some(3)));
        let whole = build_pyramid(&twin, &options).await.unwrap();
        let returned = vertices(&store).await as u64;
        assert_eq!(whole.levels[0].named, Some(returned));
    });
}

/// Returns an object of two vertices in two chunks, linked to each other.
fn edge(id: i64, y: f32) -> GeometryBuilder {
    Geometry::builder(NumericColumn::float32(2, [5.0, y, 15.0, y]))
        .object_ids(vec![id, id])
        .links(2, vec![0, 1])
}

/// Regression test: compaction sorts objects, and links to vertices of unchanged chunks named their
/// rows in the new order.
#[test]
fn levels_are_rebuilt_if_the_order_of_objects_changed() {
    let method = CoarsenMethod::Bins {
        cell: vec![1.0; 2],
        placement: Placement::Mean,
        share: false,
    };
    block_on(async {
        let kind = GeometryKind::Graphs;
        let (store, options) = store_with_level(edge(5, 1.0), kind, method).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        let expand = OutOfBounds::Expand;
        editor
            .append(&edge(1, 8.0).build().unwrap(), expand)
            .await
            .unwrap();
        check_refresh(&store, &options, "appended").await;
        editor.compact().await.unwrap();
        assert!(!stale(&store).await);
        let point = Geometry::builder(NumericColumn::float32(2, [6.0, 5.0])).object_ids(vec![9]);
        editor
            .append(&point.build().unwrap(), expand)
            .await
            .unwrap();
        check_refresh(&store, &options, "compacted").await;
        is_sound(&store, "compacted").await;
    });
}

/// Regression test: such levels showed the previous state without a note.
#[test]
fn levels_that_multiscales_lacks_become_stale() {
    block_on(async {
        let (store, _) = pairs_with_level().await;
        let key = Key::parse("zarr.json").unwrap();
        let root = store.read_one(Read::full(key.clone())).await.unwrap();
        let mut root: Value = serde_json::from_slice(&root.unwrap()).unwrap();
        let datasets = &mut root["attributes"]["multiscales"][0]["datasets"];
        datasets.as_array_mut().unwrap().truncate(1);
        let root = root.to_string();
        store.put_many(vec![(key, root.into())]).await.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        editor.remove(&[3]).await.unwrap();
        assert!(stale(&store).await);
        let refreshed = refresh_pyramid(&store, &PyramidOptions::default()).await;
        let levels = refreshed.unwrap().levels;
        assert_eq!((levels.len(), levels[0].objects), (1, Some(39)));
        assert!(!stale(&store).await);
    });
}
