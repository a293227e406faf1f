//! Levels with the refinement `add`: the content of a level is on coarser levels as well.

use serde_json::json;
use zvf::{
    BatchOptions, Bbox, Column, CreateOptions, Dataset, Design, Editor, Error, ErrorKind, Geometry,
    GeometryBuilder, GeometryKind, LevelChoice, LevelId, MigrateOptions, NumericColumn,
    PyramidOptions, Query, QueryResult, Selection, Shape, build_pyramid,
};
use zvf_format::numeric::Value;
use zvf_model::grid::ChunkCoord;
use zvf_query::{QueryError, VertexBudget, geometry::Position};
use zvf_store::Store;
use zvf_testkit::golden::Files;

use super::{change, created, files_of, findings, in_memory, set_level, set_root};
use crate::block_on;

const CHUNK: f64 = 10.0;

/// Creates a store of one level for each geometry and joins them. All levels but the last are
/// additive. Chunks are `scales` times as large as those of the root.
fn store_of(kind: GeometryKind, levels: Vec<GeometryBuilder>, scales: &[f64]) -> Files {
    let mut all = Files::new();
    let count = levels.len();
    for (level, (geometry, scale)) in levels.into_iter().zip(scales).enumerate() {
        let mut design = Design::new(kind);
        design.chunk_shape = Some(vec![CHUNK * scale; 3]);
        design.bin_shape = Some(vec![CHUNK * scale; 3]);
        design.bounds = Some((vec![0.0; 3], vec![100.0; 3]));
        // Tests call this within a runtime.
        let created = std::thread::spawn(|| block_on(created(geometry, design)));
        let mut files = created.join().unwrap();
        let number = u32::try_from(level).unwrap();
        set_level(&mut files, 0, "level", json!(level));
        if level + 1 < count {
            set_level(&mut files, 0, "refinement", json!("add"));
        }
        if level > 0 {
            set_level(&mut files, 0, "chunk_shape", json!(vec![CHUNK * scale; 3]));
            set_level(&mut files, 0, "parent_level", json!(level - 1));
            files.retain(|(key, _)| key.starts_with("0/"));
            for (key, _) in &mut files {
                *key = key.replacen('0', &number.to_string(), 1);
            }
        }
        all.append(&mut files);
    }
    change(&mut all, "zarr.json", |root| {
        let attributes = root["attributes"].as_object_mut().unwrap();
        attributes.remove("zvf_nodes");
        let dataset = |(level, scale): (usize, &f64)| {
            json!({"path": level.to_string(), "coordinateTransformations": [
                {"type": "scale", "scale": [scale, scale, scale]},
                {"type": "translation", "translation": vec![CHUNK * scale / 2.0; 3]},
            ]})
        };
        let datasets: Vec<_> = scales.iter().enumerate().map(dataset).collect();
        attributes["multiscales"][0]["datasets"] = json!(datasets);
        if let Some(nodes) = attributes["ome"].get_mut("nodes") {
            let level = |level: usize| json!({"type": "zv:level", "name": level.to_string()});
            *nodes = json!((0..count).map(level).collect::<Vec<_>>());
        }
        let block = &mut attributes["zarr_vectors"];
        block["format_capabilities"] = json!(["additive_levels"]);
        block["required_capabilities"] = json!(["additive_levels"]);
        block["zv_version"] = json!("0.9.3");
    });
    all
}

fn rows(positions: &[[f32; 3]]) -> NumericColumn {
    NumericColumn::float32(3, positions.iter().flatten().copied().collect::<Vec<f32>>())
}

fn column(name: &str, values: &[u32]) -> Column {
    let mut numbers = NumericColumn::new(zvf::numeric::Kind::UInt32, 1);
    numbers.bytes = values.iter().flat_map(|n| n.to_le_bytes()).collect();
    Column::new(name, numbers)
}

fn points(from: u32, count: u32, names: &[&str]) -> GeometryBuilder {
    let at = |n: u32| {
        let n = f32::from(u16::try_from(n).unwrap());
        [n, 50.0 - n, 1.0]
    };
    let positions: Vec<[f32; 3]> = (from..from + count).map(at).collect();
    let mut geometry = Geometry::builder(rows(&positions));
    let numbers: Vec<u32> = (from..from + count).collect();
    let columns = names.iter().map(|name| column(name, &numbers));
    geometry.vertex = columns.collect();
    geometry
}

/// Points 0 to 49 on three levels. Attribute `extra` is on level 0 only.
fn of_points() -> Files {
    let levels = vec![
        points(0, 20, &["n", "extra"]),
        points(20, 20, &["n"]),
        points(40, 10, &["n"]),
    ];
    store_of(GeometryKind::Points, levels, &[1.0, 2.0, 2.0])
}

/// Paths of two vertices, in objects of these ids.
fn paths(ids: &[i64]) -> GeometryBuilder {
    let ends = |id: &i64| {
        let at = f32::from(u16::try_from(*id).unwrap()) * 8.0;
        [[at, 1.0, 1.0], [at + 7.0, 2.0, 1.0]]
    };
    let positions: Vec<[f32; 3]> = ids.iter().flat_map(ends).collect();
    let mut geometry = Geometry::builder(rows(&positions))
        .paths(
            (0..=ids.len()).map(|at| at as u64 * 2).collect(),
            ids.to_vec(),
        )
        .objects(ids.to_vec());
    let names: Vec<u32> = ids.iter().map(|id| u32::try_from(*id).unwrap()).collect();
    geometry.object = vec![column("name", &names)];
    geometry
}

fn of_paths() -> Files {
    let levels = vec![paths(&[2, 5]), paths(&[1]), paths(&[0, 3])];
    store_of(GeometryKind::Polylines, levels, &[1.0, 1.0, 2.0])
}

/// A triangle of three vertices in an object.
fn triangle(id: i64) -> GeometryBuilder {
    let at = f32::from(u16::try_from(id).unwrap()) * 10.0;
    Geometry::builder(rows(&[
        [at, 1.0, 1.0],
        [at + 3.0, 1.0, 1.0],
        [at, 5.0, 1.0],
    ]))
    .object_ids(vec![id; 3])
    .links(3, vec![0, 1, 2])
}

async fn open(files: &Files) -> Dataset {
    Dataset::open(in_memory(files)).await.unwrap()
}

async fn run(dataset: &Dataset, query: &Query) -> QueryResult {
    let result = dataset
        .query(query)
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    // Batches and counts tell the same.
    let mut vertices = 0;
    dataset
        .batches(query, |batch| {
            assert_eq!(batch.first_row, vertices);
            vertices += batch.positions.len() as u64;
            core::ops::ControlFlow::Continue(())
        })
        .await
        .unwrap();
    assert_eq!(vertices, result.positions.len() as u64);
    let counts = dataset.count(query).await.unwrap();
    assert_eq!(counts.vertices, vertices);
    assert_eq!(counts.levels, result.levels);
    dataset.explain(query).await.unwrap();
    result
}

fn level(number: u32) -> LevelChoice {
    LevelChoice::Number(LevelId::new(number))
}

/// Returns the values of a column of numbers.
fn values(columns: &[Column], name: &str) -> Vec<u32> {
    let column = columns.iter().find(|column| column.name == name);
    let zvf::ColumnValues::Numeric(numbers) = &column.unwrap().values else {
        panic!("{name} has numbers")
    };
    let numbers = numbers.bytes.chunks_exact(4);
    numbers
        .map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers
}

#[test]
fn points_of_a_level_are_on_coarser_ones_too() {
    block_on(async {
        let dataset = open(&of_points()).await;
        for (number, from) in [(0, 0), (1, 20), (2, 40)] {
            let result = run(&dataset, &Query::new().level(level(number))).await;
            let found = values(&result.vertex, "n");
            // The finest level comes first.
            let levels: Vec<u32> = result
                .levels
                .iter()
                .map(|used| used.level.number())
                .collect();
            let expected: Vec<u32> = (number..3).collect();
            assert_eq!(levels, if number < 2 { expected } else { Vec::new() });
            assert_eq!(result.level, LevelId::new(number));
            let first = found.first().copied().unwrap();
            assert!((from..from + 20).contains(&first), "{first}");
            assert_eq!(sorted(found), (from..50).collect::<Vec<u32>>());
            // An attribute that a level lacks is not in the union.
            assert_eq!(result.vertex.len(), 1);
        }
        let own = run(&dataset, &Query::new().own_level(true)).await;
        assert_eq!(
            sorted(values(&own.vertex, "n")),
            (0..20).collect::<Vec<u32>>()
        );
        assert_eq!(values(&own.vertex, "extra").len(), 20);
        let within = Query::new().region(Bbox::parse("15,0,0,44,100,10").unwrap());
        let result = run(&dataset, &within).await;
        assert_eq!(
            sorted(values(&result.vertex, "n")),
            (15..45).collect::<Vec<u32>>()
        );
        let limited = run(&dataset, &Query::new().limit(33)).await;
        assert_eq!(limited.positions.len(), 33);
        let info = dataset.info().await.unwrap();
        let additive: Vec<bool> = info.levels.iter().map(|level| level.is_additive).collect();
        assert_eq!(additive, [true, true, false]);
    });
}

/// The attribute `extra` of level 0 was an error, and the range of `name` that of level 0.
#[test]
fn ranges_cover_the_levels_that_complete_a_level() {
    let check = |files: &Files, expected: &[(&str, u64, u64)]| {
        block_on(async {
            let dataset = open(files).await;
            let attributes = dataset.attributes(LevelId::FULL).await.unwrap();
            let ranges = dataset
                .attribute_ranges(LevelId::FULL, &attributes)
                .await
                .unwrap()
                .into_iter()
                .map(|range| range.limits);
            let names = attributes.iter().map(|info| info.name.as_str());
            let found: Vec<_> = names.zip(ranges).collect();
            let limits = |(name, low, high): &(_, _, _)| {
                (*name, Some((Value::UInt(*low), Value::UInt(*high))))
            };
            let expected: Vec<_> = expected.iter().map(limits).collect();
            assert_eq!(found, expected);
        });
    };
    check(&of_points(), &[("extra", 0, 19), ("n", 0, 49)]);
    check(&of_paths(), &[("name", 0, 5)]);
}

/// A check that is stricter than the query would refuse queries that end before coarser levels.
#[test]
fn selected_attributes_are_on_the_levels_that_are_read() {
    let select = |name: &str| Query::new().columns(Selection::Named(vec![(None, name.to_owned())]));
    block_on(async {
        let dataset = open(&of_points()).await;
        let extra = select("extra");
        let error = dataset.query(&extra).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.to_string().contains("extra"), "{error}");
        let finest = extra.clone().limit(5);
        for query in [finest, extra.own_level(true), select("n")] {
            dataset.check_selection(&query).await.unwrap();
            dataset.query(&query).await.unwrap();
        }
        // Every budget was refused beside names.
        let budget = |name: &str| select(name).level(VertexBudget::new(50));
        dataset.check_selection(&budget("n")).await.unwrap();
        dataset.query(&budget("n")).await.unwrap();
        let absent = dataset.check_selection(&budget("absent")).await;
        assert_eq!(absent.unwrap_err().kind(), ErrorKind::NotFound);
        let dataset = open(&of_paths()).await;
        let query = select("name");
        dataset.check_selection(&query).await.unwrap();
        dataset.query(&query).await.unwrap();
    });
}

#[test]
fn a_budget_counts_the_levels_that_complete_a_level() {
    block_on(async {
        let dataset = open(&of_points()).await;
        for (budget, from) in [(50, 0), (30, 20), (10, 40)] {
            let query = Query::new().level(VertexBudget::new(budget));
            let result = run(&dataset, &query).await;
            let found = sorted(values(&result.vertex, "n"));
            assert_eq!(found, (from..50).collect::<Vec<u32>>(), "{budget}");
        }
        // Regions of two levels hold each point once.
        let query = Query::new().level(VertexBudget::new(42));
        let found = sorted(values(&run(&dataset, &query).await.vertex, "n"));
        assert!(found.len() <= 42 && found.windows(2).all(|pair| pair[0] < pair[1]));
        let few = Query::new().level(VertexBudget::new(9));
        let error = dataset.query(&few).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OverBudget, "{error}");
    });
}

/// Chunks of level 0 select the chunks of coarser levels that overlap them.
#[test]
fn chunks_of_an_additive_level_select_larger_ones() {
    block_on(async {
        let dataset = open(&of_points()).await;
        let mut query = Query::new();
        query.chunks = Some(vec![ChunkCoord::new(vec![2, 2, 0])]);
        let result = run(&dataset, &query).await;
        // Points 20 to 30 have x from 20 to 30 and y from 20 to 30.
        let found = sorted(values(&result.vertex, "n"));
        let coarse: Vec<u32> = (20..40).filter(|n| (20..40).contains(&(50 - n))).collect();
        assert_eq!(found, coarse);
        query.chunks = Some(vec![ChunkCoord::new(vec![2, 2])]);
        let error = dataset.query(&query).await.unwrap_err();
        let is_chunk = matches!(error.cause(), Some(QueryError::Chunk { .. }));
        assert!(is_chunk, "{error}");
    });
}

#[test]
fn paths_of_a_level_are_on_coarser_ones_too() {
    block_on(async {
        let files = of_paths();
        let dataset = open(&files).await;
        let result = run(&dataset, &Query::new()).await;
        let parts = result.parts.as_ref().unwrap();
        assert_eq!(parts.objects, [2, 5, 1, 0, 3]);
        assert_eq!(parts.offsets, [0, 2, 4, 6, 8, 10]);
        assert_eq!(result.objects, [2, 5, 1, 0, 3]);
        assert_eq!(values(&result.object, "name"), [2, 5, 1, 0, 3]);
        // Objects are found on whichever level has them.
        let named = run(&dataset, &Query::new().objects([3, 1, 5])).await;
        assert_eq!(named.parts.unwrap().objects, [5, 1, 3]);
        let error = dataset
            .query(&Query::new().objects([3, 7]))
            .await
            .unwrap_err();
        let is_missing = matches!(error.cause(), Some(QueryError::NoObject { id: 7, .. }));
        assert!(is_missing, "{error}");
        let skipped = Query::new().objects([3, 7]).keep_going(true);
        let skipped = dataset.query(&skipped).await.unwrap();
        assert_eq!(
            (skipped.parts.unwrap().objects, skipped.skipped.len()),
            (vec![3], 1)
        );
        // A limit counts paths.
        for limit in 1..6 {
            let some = run(&dataset, &Query::new().limit(limit)).await;
            let ids = some.parts.unwrap().objects;
            assert_eq!(ids, parts.objects[..ids.len()], "{limit}");
            assert_eq!(ids.len() as u64, limit);
        }
        let near = Query::new().region(Bbox::parse("0,0,0,16,9,9").unwrap());
        assert_eq!(run(&dataset, &near).await.parts.unwrap().objects, [2, 1, 0]);
        // Small batches have the same paths.
        let stream = dataset.stream(&Query::new(), BatchOptions::new().rows(3));
        let batches: Vec<QueryResult> = futures_util::TryStreamExt::try_collect(stream)
            .await
            .unwrap();
        let ids: Vec<i64> = batches
            .iter()
            .flat_map(|b| b.parts.clone().unwrap().objects)
            .collect();
        assert_eq!(ids, parts.objects);
        assert_eq!(dataset.partitions(&Query::new(), 4).await.unwrap().len(), 1);
    });
}

/// Level 0 holds everything, so that levels 1 and 2 are a pyramid of their own.
#[test]
fn a_level_that_replaces_ends_the_union() {
    block_on(async {
        let levels = vec![paths(&[0, 1, 2]), paths(&[1]), paths(&[0])];
        let mut files = store_of(GeometryKind::Polylines, levels, &[1.0; 3]);
        set_level(&mut files, 0, "refinement", json!("replace"));
        let dataset = open(&files).await;
        let of = async |number| {
            let result = run(&dataset, &Query::new().level(level(number))).await;
            result.parts.unwrap().objects
        };
        assert_eq!(of(0).await, [0, 1, 2]);
        assert_eq!(of(1).await, [1, 0]);
        assert_eq!(of(2).await, [0]);
    });
}

#[test]
fn faces_of_a_level_are_on_coarser_ones_too() {
    block_on(async {
        let levels = vec![triangle(4), triangle(2), triangle(0)];
        let files = store_of(GeometryKind::Mesh, levels, &[1.0; 3]);
        let dataset = open(&files).await;
        let result = run(&dataset, &Query::new()).await;
        let links = result.links.as_ref().unwrap();
        assert_eq!((links.width, links.len()), (3, 3));
        let mut ends = links.ends.clone();
        ends.sort_unstable();
        assert_eq!(ends, (0..9).collect::<Vec<u64>>());
        // Each face joins vertices of one object.
        let owners = result.object_ids.as_ref().unwrap();
        for face in links.ends.chunks(3) {
            let of = |end: &u64| owners.get(usize::try_from(*end).unwrap()).unwrap();
            assert!(face.iter().all(|end| of(end) == of(&face[0])), "{face:?}");
        }
        assert_eq!(owners.numbers(), [4, 4, 4, 2, 2, 2, 0, 0, 0]);
        let near = Query::new().region(Bbox::parse("0,0,0,25,9,9").unwrap());
        let near = run(&dataset, &near).await;
        assert_eq!(near.links.unwrap().ends.len(), 6);
        let error = dataset.query(&Query::new().limit(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        let points = run(&dataset, &Query::new().shape(Shape::Points).limit(4)).await;
        assert_eq!(points.positions.len(), 4);
    });
}

#[test]
fn what_needs_one_level_is_refused() {
    block_on(async {
        let dataset = open(&of_points()).await;
        let place = Position::new(&[0.0; 3]).unwrap();
        for query in [
            Query::new().nearest(place, 2),
            Query::new().drill(1),
            Query::new().row_ids(true),
        ] {
            let error = dataset.query(&query).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            dataset.explain(&query).await.ok();
        }
        let own = Query::new().nearest(place, 2).own_level(true);
        assert_eq!(dataset.query(&own).await.unwrap().positions.len(), 2);
    });
}

#[test]
fn an_additive_level_that_is_not_complete_is_an_error() {
    let refused = |files: Files, about: &str| {
        block_on(async {
            let error = match Dataset::open(in_memory(&files)).await {
                Ok(dataset) => dataset.query(&Query::new()).await.unwrap_err(),
                Err(error) => error,
            };
            assert_eq!(error.kind(), ErrorKind::Damaged, "{error}");
            assert!(error.to_string().contains(about), "{error}");
            // Skipping damage does not make a part the whole.
            if let Ok(dataset) = Dataset::open(in_memory(&files)).await {
                dataset
                    .query(&Query::new().keep_going(true))
                    .await
                    .unwrap_err();
            }
        });
    };
    let mut files = of_points();
    set_level(&mut files, 2, "refinement", json!("add"));
    refused(files, "3: does not exist, but holds the rest of level 2");
    let mut files = of_points();
    files.retain(|(key, _)| !key.starts_with("1/"));
    refused(files, "1: does not exist, but holds the rest of level 0");
    let mut files = of_points();
    set_level(&mut files, 0, "refinement", json!("merge"));
    refused(files, "refinement: \"merge\" is not \"replace\" or \"add\"");
    let mut files = of_points();
    set_level(&mut files, 1, "refinement", json!(1));
    refused(files, "refinement: a number, not text");
    let mut files = of_points();
    set_root(&mut files, "format_capabilities", json!([]));
    set_root(&mut files, "required_capabilities", json!([]));
    refused(files, "0: is additive, but the root does not list");
    let mut files = of_points();
    change(&mut files, "1/zarr.json", |node| {
        node["attributes"]["zvf_additive"] = json!(true);
    });
    refused(files, "disagrees with zvf_additive");
}

/// A change of an additive level would be computed from a part of its content.
#[test]
fn stores_with_additive_levels_are_not_changed() {
    let is_refused = |error: Error| {
        assert!(error.kind() == ErrorKind::Unsupported, "{error:?}");
        assert!(
            error.to_string().contains("the level is additive"),
            "{error}"
        );
    };
    block_on(async {
        let files = of_points();
        let mut later = of_points();
        set_level(&mut later, 0, "refinement", json!("replace"));
        for (files, is_whole) in [(files, false), (later, true)] {
            let store = in_memory(&files);
            let before = files_of(&store).await;
            let mut one = zvf::AutoLevels::default();
            one.levels = Some(1);
            let options = PyramidOptions::new().levels(one);
            if is_whole {
                // Level 0 can be changed; additive levels are not the source of others.
                Editor::open(store.clone()).await.unwrap();
                let built = build_pyramid(&store, &options).await.unwrap_err();
                assert!(
                    built.to_string().contains("coarser levels already"),
                    "{built}"
                );
            } else {
                is_refused(Editor::open(store.clone()).await.unwrap_err());
                is_refused(build_pyramid(&store, &options).await.unwrap_err());
                let refreshed = zvf::refresh_pyramid(store.clone(), &options).await;
                is_refused(refreshed.unwrap_err());
            }
            let folder = tempfile::tempdir().unwrap();
            let address = folder.path().join("new.zv").display().to_string();
            let options = MigrateOptions::default();
            let migrated = zvf::migrate(store.clone(), &address, &options);
            is_refused(migrated.await.unwrap_err());
            assert_eq!(files_of(&store).await, before);
        }
    });
}

/// Returns the positions of a result, sorted.
fn positions(result: &QueryResult) -> Vec<[u64; 3]> {
    let view = result.positions.view().unwrap();
    let mut rows: Vec<[u64; 3]> = (0..view.rows())
        .map(|row| {
            [0, 1, 2].map(|column| match view.value(row, column) {
                Some(Value::Float(value)) => value.to_bits(),
                value => panic!("{value:?}"),
            })
        })
        .collect();
    rows.sort_unstable();
    rows
}

/// Levels that hold each point once, in the form of the draft, have the results of those in the form
/// of 0.9.2, also after changes.
#[test]
fn additive_levels_of_ours_are_declared_as_the_draft_says() {
    let coordinates = (0..4_000_u16).flat_map(|n| {
        let n = f32::from(n);
        [n % 61.0, (n * 7.0) % 59.0, (n * 13.0) % 53.0]
    });
    let geometry = Geometry::new(NumericColumn::float32(3, coordinates.collect::<Vec<f32>>()));
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![8.0; 3]);
    let levels = || {
        let mut levels = zvf::AutoLevels::default();
        (levels.levels, levels.additive) = (Some(3), true);
        levels
    };
    let of_block = |files: &Files, key: &str, block: &str| -> serde_json::Value {
        let (_, bytes) = files.iter().find(|(other, _)| other == key).unwrap();
        let node: serde_json::Value = serde_json::from_slice(bytes).unwrap();
        node["attributes"][block].clone()
    };
    let required = |files: &Files| {
        of_block(files, "zarr.json", "zarr_vectors")["required_capabilities"].clone()
    };
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let mut stores = Vec::new();
        for refinement in [false, true] {
            let store = Store::from_memory(none).unwrap();
            let options = CreateOptions::new().seal(false);
            zvf::create(&store, &geometry, design.clone(), &options)
                .await
                .unwrap();
            let options = PyramidOptions::new()
                .levels(levels())
                .refinement(refinement);
            let built = build_pyramid(&store, &options).await.unwrap();
            assert_eq!(built.levels.len(), 3);
            let before = files_of(&store).await;
            let again = build_pyramid(&store, &options).await.unwrap();
            assert_eq!((again.levels.len(), again.existing), (0, 3));
            assert_eq!(files_of(&store).await, before);
            stores.push(store);
        }
        let same = async || {
            let [own, drafted] = [&stores[0], &stores[1]];
            let (own, dataset) = (
                Dataset::open(own).await.unwrap(),
                Dataset::open(drafted).await.unwrap(),
            );
            let mut before = usize::MAX;
            for number in 0..4 {
                let query = Query::new().level(level(number));
                let found = positions(&run(&dataset, &query).await);
                assert_eq!(found, positions(&run(&own, &query).await), "level {number}");
                assert!(found.len() < before && found.windows(2).all(|pair| pair[0] <= pair[1]));
                before = found.len();
                let query = query.own_level(true);
                let found = positions(&run(&dataset, &query).await);
                assert_eq!(found, positions(&run(&own, &query).await), "level {number}");
            }
            let files = files_of(drafted).await;
            assert_eq!(findings(&files).await, Vec::<String>::new());
            assert_eq!(required(&files), json!(["additive_levels"]));
            for (number, refinement) in [
                (0, json!(null)),
                (1, json!("add")),
                (2, json!("add")),
                (3, json!(null)),
            ] {
                let key = format!("{number}/zarr.json");
                assert_eq!(
                    of_block(&files, &key, "zarr_vectors_level")["refinement"],
                    refinement
                );
                assert_eq!(of_block(&files, &key, "zvf_additive"), json!(null));
            }
        };
        same().await;
        let more = Geometry::new(NumericColumn::float32(3, [5.5, 6.5, 7.5]));
        for store in &stores {
            let editor = Editor::open(store).await.unwrap();
            editor
                .append(&more, zvf::OutOfBounds::Reject)
                .await
                .unwrap();
            let options = PyramidOptions::default();
            zvf::refresh_pyramid(store, &options).await.unwrap();
        }
        same().await;
        // Complete levels require nothing of readers.
        let mut one = zvf::AutoLevels::default();
        one.levels = Some(1);
        let options = PyramidOptions::new().levels(one).overwrite(true);
        build_pyramid(&stores[1], &options).await.unwrap();
        let files = files_of(&stores[1]).await;
        assert_eq!(required(&files), json!(null));
        assert_eq!(findings(&files).await, Vec::<String>::new());
    });
}

#[test]
fn healthy_additive_stores_have_no_findings() {
    let levels = vec![triangle(4), triangle(2), triangle(0)];
    let mesh = store_of(GeometryKind::Mesh, levels, &[1.0; 3]);
    for files in [of_points(), of_paths(), mesh] {
        assert_eq!(block_on(findings(&files)), Vec::<String>::new());
    }
}

#[test]
fn damaged_additive_stores_have_findings() {
    let has = |files: &Files, code: &str| {
        let found = block_on(findings(files));
        assert!(
            found.iter().any(|line| line.starts_with(code)),
            "{code}: {found:#?}"
        );
    };
    let mut files = of_points();
    set_level(&mut files, 2, "refinement", json!("add"));
    has(&files, "ZV-L2-072");
    let mut files = of_points();
    set_root(&mut files, "required_capabilities", json!([]));
    has(&files, "ZV-L2-073");
    set_root(&mut files, "format_capabilities", json!([]));
    has(&files, "ZV-L2-024");
    let mut files = of_points();
    set_level(&mut files, 0, "refinement", json!("merge"));
    has(&files, "ZV-L2-002");
    let levels = vec![paths(&[2, 5]), paths(&[1]), paths(&[0, 5])];
    let files = store_of(GeometryKind::Polylines, levels, &[1.0; 3]);
    has(
        &files,
        "ZV-L3-121 1 objects have fragments in a coarser level that completes this one",
    );
    // A level that replaces may have the objects of a coarser pyramid.
    let levels = vec![paths(&[1, 2]), paths(&[2]), paths(&[1])];
    let mut files = store_of(GeometryKind::Polylines, levels, &[1.0; 3]);
    set_level(&mut files, 0, "refinement", json!("replace"));
    assert_eq!(block_on(findings(&files)), Vec::<String>::new());
    // Its vertices are compared with those of all levels that complete the next one.
    let levels = vec![paths(&[1, 2]), paths(&[2]), paths(&[1, 3])];
    let mut files = store_of(GeometryKind::Polylines, levels, &[1.0; 3]);
    set_level(&mut files, 0, "refinement", json!("replace"));
    has(&files, "ZV-L4-051 6 vertices, but level 0 has 4");
}
