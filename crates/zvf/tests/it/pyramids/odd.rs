//! Levels of unusual stores.

use std::collections::{BTreeMap, BTreeSet};

use zvf::{
    AutoLevels, CrossLevel, Dataset, Editor, ErrorKind, LevelChoice, LevelDesign, MethodKind,
    ObjectSelection, PyramidLevels, PyramidOptions, Query, Store, ValidateOptions, build_pyramid,
    coarsen::{Aggregation, Amount, CoarsenMethod, Placement, Sparsity, Strategy},
    refresh_pyramid, validate,
};
use zvf_build::{
    ColumnValues, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, Profile,
    VertexOwners,
};
use zvf_format::numeric::Kind;
use zvf_model::{level::LevelId, root::CrossLevelDepth};
use zvf_testkit::{golden::Golden, stores::Random};

use super::random::{Wanted, store_of};
use crate::{
    block_on,
    golden::{open, stores},
    validated::own::is_sound,
    written::random::attribute,
};

/// Returns coordinates on both sides of zero, in eighths.
fn places(random: &mut Random, count: usize, axes: usize) -> NumericColumn {
    let values = (0..count * axes).map(|_| random.between(-100, 100) as f32 / 8.0);
    NumericColumn::float32(axes as u32, values)
}

/// Returns the designs of two levels of bins.
fn bins(axes: usize, sparsity: Option<&ObjectSelection>) -> Vec<LevelDesign> {
    [(4.0, 1), (8.0, 2)]
        .into_iter()
        .map(|(cell, scale)| LevelDesign {
            method: CoarsenMethod::Bins {
                cell: vec![cell; axes],
                placement: Placement::Mean,
                share: false,
            },
            chunk_scale: vec![scale; axes],
            sparsity: sparsity.cloned(),
            additive: false,
            sharding: None,
        })
        .collect()
}

/// Builds levels of geometry and runs every check.
fn check(
    geometry: GeometryBuilder,
    kind: GeometryKind,
    profile: Profile,
    levels: Vec<LevelDesign>,
    rules: BTreeMap<String, Aggregation>,
    about: &str,
) {
    let mut design = Design::new(kind);
    design.profile = profile;
    design.chunk_shape = Some(vec![8.0; geometry.positions.row_len()]);
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Explicit(levels);
    options.cross_level = CrossLevel::Explicit;
    options.rules = rules;
    block_on(async {
        let wanted = Wanted {
            store: store_of(geometry, design.clone()).await,
            design,
            options,
            about: format!("{about}, {profile:?}"),
        };
        Box::pin(wanted.check()).await;
    });
}

const PROFILES: [Profile; 2] = [Profile::V09, Profile::V08];

#[test]
fn nan_counts_as_a_missing_value() {
    for rule in [None].into_iter().chain(Aggregation::ALL.map(Some)) {
        let mut random = Random::new(5);
        let mut geometry = Geometry::builder(places(&mut random, 90, 2));
        let values: Vec<f32> = geometry
            .positions
            .bytes
            .chunks_exact(8)
            .map(|place| {
                // All values of some cells are NaN.
                let x = f32::from_le_bytes(place[..4].try_into().unwrap());
                if x < 0.0 || random.chance(40) {
                    f32::NAN
                } else {
                    random.below(3) as f32
                }
            })
            .collect();
        let values = ColumnValues::Numeric(NumericColumn::float32(1, values));
        geometry.vertex.push(attribute("depth", values));
        let words = (0..90).map(|at| (at % 4 != 0).then(|| format!("word {}", at % 3)));
        geometry
            .vertex
            .push(attribute("word", ColumnValues::text(words)));
        let mut rules = BTreeMap::new();
        rules.extend(rule.map(|rule| ("depth".to_owned(), rule)));
        for profile in PROFILES {
            let (geometry, rules) = (geometry.clone(), rules.clone());
            check(
                geometry,
                GeometryKind::Points,
                profile,
                bins(2, None),
                rules,
                &format!("{rule:?}"),
            );
        }
    }
}

#[test]
fn averaging_rules_are_rejected_for_text() {
    let mut geometry = Geometry::builder(places(&mut Random::new(1), 20, 2));
    let words = (0..20).map(|at| Some(format!("word {}", at % 3)));
    geometry
        .vertex
        .push(attribute("word", ColumnValues::text(words)));
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![8.0; 2]);
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Explicit(bins(2, None));
    for (rule, is_refused) in Aggregation::ALL.map(|rule| (rule, !rule.suits_codes())) {
        options.rules.insert("word".to_owned(), rule);
        block_on(async {
            let store = store_of(geometry.clone(), design.clone()).await;
            let made = build_pyramid(&store, &options).await;
            match made {
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    assert!(is_refused, "{rule}");
                }
                made => {
                    assert!(!is_refused && made.is_ok(), "{rule}: {made:?}");
                    is_sound(&store, rule.name()).await;
                }
            }
        });
    }
}

#[test]
fn objects_may_be_empty_or_one_vertex() {
    for seed in 0..3 {
        let mut random = Random::new(seed);
        let lengths = [0, 1, 1, 5, 0, 30, 2, 1, 0];
        let mut offsets = vec![0];
        offsets.extend(lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        }));
        let geometry = Geometry::builder(places(&mut random, 40, 3)).paths(offsets, None);
        let one = ObjectSelection {
            sparsity: Sparsity {
                amount: Amount::Count(1),
                strategy: Strategy::Random { seed },
            },
            attribute: None,
        };
        for profile in PROFILES {
            for sparsity in [None, Some(one.clone())] {
                let levels = bins(3, sparsity.as_ref());
                let geometry = geometry.clone();
                let about = format!("seed {seed}, {levels:?}");
                check(
                    geometry,
                    GeometryKind::Polylines,
                    profile,
                    levels,
                    BTreeMap::new(),
                    &about,
                );
            }
        }
    }
}

/// Points of different objects are never merged, so no level is smaller than the store.
#[test]
fn every_point_may_be_an_object() {
    let mut random = Random::new(9);
    let geometry = Geometry::builder(places(&mut random, 60, 3)).object_ids((0..60).collect());
    let mut levels = bins(3, None);
    for level in &mut levels {
        let cell = level.method.cell().unwrap().to_vec();
        level.method = CoarsenMethod::Subset {
            without: None,
            cell,
            keep: 2,
            seed: 4,
        };
    }
    for profile in PROFILES {
        let (geometry, levels) = (geometry.clone(), levels.clone());
        check(
            geometry,
            GeometryKind::Points,
            profile,
            levels,
            BTreeMap::new(),
            "each its own",
        );
    }
}

#[test]
fn values_of_fragments_stay_with_their_objects() {
    let mut random = Random::new(3);
    // The lines are so far apart that no two share a vertex.
    let lines = (0..6).flat_map(|line| (0..20).map(move |at| (line, at)));
    let values = lines.flat_map(|(line, at)| [at as f32, line as f32 * 40.0, 1.0]);
    let mut geometry = Geometry::builder(NumericColumn::float32(3, values.collect::<Vec<f32>>()))
        .paths((0..=6).map(|at| at * 20).collect(), None);
    let own: Vec<f32> = (0..6).map(|_| random.below(100) as f32).collect();
    let values = ColumnValues::Numeric(NumericColumn::float32(1, own.clone()));
    geometry.fragment.push(attribute("bundle", values));
    let mut design = Design::new(GeometryKind::Polylines);
    design.chunk_shape = Some(vec![8.0; 3]);
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Explicit(bins(3, None));
    block_on(async {
        let store = store_of(geometry, design).await;
        build_pyramid(&store, &options).await.unwrap();
        is_sound(&store, "fragments").await;
        let dataset = Dataset::open(store).await.unwrap();
        for (level, object) in (0..3).flat_map(|level| (0..6).map(move |object| (level, object))) {
            let mut query = Query::new().objects([object]);
            query.level = LevelChoice::Number(LevelId::new(level));
            let result = dataset.query(&query).await.unwrap();
            let [column] = result.fragment.as_slice() else {
                panic!("{result:?}")
            };
            let ColumnValues::Numeric(rows) = &column.values else {
                panic!()
            };
            assert_eq!(
                (rows.kind, rows.len()),
                (Kind::Float32, result.positions.len())
            );
            assert!(!rows.is_empty());
            for value in rows.bytes.chunks_exact(4) {
                assert_eq!(value, own[usize::try_from(object).unwrap()].to_le_bytes());
            }
        }
    });
}

/// Such numbers gave levels of other cells or tolerances than the caller named.
#[test]
fn cells_factors_and_tolerances_are_checked() {
    let bad = [-1.0, 0.0, f64::NAN, f64::INFINITY];
    let one_level = || AutoLevels::new().levels(1);
    let cells = bad
        .map(|number| vec![number; 3])
        .into_iter()
        .chain([vec![4.0; 2], vec![4.0; 4]]);
    let automatic = cells.map(|cell| one_level().cell(cell).into());
    check_refused(
        GeometryKind::Points,
        automatic.collect(),
        "its cells need one extent above 0 for each axis",
    );
    let explicit = bad.map(|number| {
        let mut explicit = bins(3, None);
        explicit[0].method = CoarsenMethod::Bins {
            cell: vec![number; 3],
            placement: Placement::Mean,
            share: false,
        };
        explicit.into()
    });
    check_refused(
        GeometryKind::Points,
        explicit.to_vec(),
        "cells must be finite and above 0",
    );
    let factors = bad.iter().chain(&[1.0]);
    let factors = factors.map(|factor| AutoLevels::new().factors(vec![2.0, *factor]).into());
    check_refused(
        GeometryKind::Points,
        factors.collect(),
        "its factors must be finite and above 1",
    );
    let mut explicit = bins(3, None);
    explicit[0].method = CoarsenMethod::Subset {
        cell: vec![8.0; 3],
        keep: 0,
        seed: 0,
        without: None,
    };
    let none_kept = vec![one_level().keep(0).into(), explicit.into()];
    check_refused(GeometryKind::Points, none_kept, "at least 1 point");
    let mut refused: Vec<PyramidLevels> = Vec::new();
    for tolerance in [-1.0, f64::NAN, f64::INFINITY] {
        let levels = AutoLevels::new().levels(1).tolerance(tolerance);
        refused.push(levels.method(MethodKind::Simplify).into());
        let mut explicit = bins(3, None);
        explicit[1].method = CoarsenMethod::Simplify { tolerance };
        refused.push(explicit.into());
    }
    check_refused(GeometryKind::Polylines, refused, "its tolerance");
}

/// Such levels were equal to the finer ones.
#[test]
fn methods_of_other_geometry_are_refused() {
    let levels = |method: CoarsenMethod| -> [PyramidLevels; 2] {
        let automatic = AutoLevels::new().levels(1).method(method.kind());
        let mut explicit = bins(3, None);
        explicit[1].method = method;
        [automatic.into(), explicit.into()]
    };
    let stride = levels(CoarsenMethod::Stride { step: 2 });
    let simplify = levels(CoarsenMethod::Simplify { tolerance: 1.0 });
    let lines = [stride, simplify].concat();
    check_refused(GeometryKind::Points, lines.clone(), "points have no lines");
    check_refused(GeometryKind::Mesh, lines, "faces have no lines");
    let collapse = levels(CoarsenMethod::Collapse {
        keep: 0.5,
        tolerance: 1.0,
        cull: 0,
    });
    for kind in [GeometryKind::Points, GeometryKind::Polylines] {
        check_refused(kind, collapse.to_vec(), "no faces to collapse");
    }
    let subset = levels(CoarsenMethod::Subset {
        cell: vec![8.0; 3],
        keep: 1,
        seed: 0,
        without: None,
    });
    for kind in [
        GeometryKind::Polylines,
        GeometryKind::Skeletons,
        GeometryKind::Graphs,
        GeometryKind::Mesh,
    ] {
        check_refused(kind, subset.to_vec(), "only points");
    }
}

/// Asserts that none of these levels is built, for a reason that contains `why`.
fn check_refused(kind: GeometryKind, refused: Vec<PyramidLevels>, why: &str) {
    let mut geometry = Geometry::builder(places(&mut Random::new(7), 40, 3));
    match kind {
        GeometryKind::Points => {}
        GeometryKind::Polylines => geometry = geometry.paths(vec![0, 40], None),
        GeometryKind::Mesh => {
            geometry = geometry.links(3, (0..39).collect());
        }
        _ => geometry.links.ends = (1..40).flat_map(|at| [at, at - 1]).collect(),
    }
    if kind == GeometryKind::Skeletons {
        geometry.owners = VertexOwners::Vertices(vec![0; 40]);
    }
    let mut design = Design::new(kind);
    design.chunk_shape = Some(vec![8.0; 3]);
    block_on(async {
        let store = store_of(geometry, design).await;
        for levels in refused {
            let mut options = PyramidOptions::default();
            options.levels = levels;
            let found = build_pyramid(&store, &options).await;
            let error = found.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{options:?}");
            let text = error.to_string();
            assert!(text.contains(why), "{text}: {options:?}");
            let dataset = Dataset::open(&store).await.unwrap();
            assert_eq!(dataset.levels(), [LevelId::FULL], "{options:?}");
        }
    });
}

/// Levels built on recorded stores add no findings to those of the store.
#[test]
fn levels_of_recorded_stores_add_no_findings() {
    let mut refused = BTreeMap::new();
    let mut count = 0;
    for archive in ["zvf-09", "zvf-08"] {
        let golden = Golden::open(archive);
        for (name, _) in stores(&golden) {
            let dataset = open(&golden, &name);
            let store = dataset.store().clone();
            let before = block_on(found(&store));
            let mut automatic = AutoLevels::default();
            automatic.levels = Some(2);
            automatic.factors = vec![2.0];
            let mut options = PyramidOptions::default();
            options.levels = PyramidLevels::Auto(automatic);
            options.cross_level = CrossLevel::Explicit;
            options.overwrite = true;
            match block_on(build_pyramid(&store, &options)) {
                Ok(made) => {
                    count += usize::from(!made.levels.is_empty());
                    let after = block_on(found(&store));
                    // A defect of the store may appear on every level.
                    let code = |line: &&String| line.split(' ').next().map(str::to_owned);
                    let known: BTreeSet<_> = before.iter().filter_map(|line| code(&line)).collect();
                    let new: Vec<&String> = after
                        .difference(&before)
                        .filter(|line| code(line).is_none_or(|code| !known.contains(&code)))
                        .collect();
                    assert!(new.is_empty(), "{name}: {new:#?}");
                }
                // Damage is reported, and so are unsupported levels.
                Err(cause) if cause.kind() == ErrorKind::InvalidInput => {
                    // The geometry does not allow coarser levels, or the options do not.
                    if !format!("{cause:?}").contains("Coarsen(") {
                        let entry = refused.entry(cause.to_string());
                        entry.or_insert_with(Vec::new).push(name);
                    }
                }
                Err(error) => {
                    refused
                        .entry("another".to_owned())
                        .or_insert_with(Vec::new)
                        .push(format!("{name}: {error:?}"));
                }
            }
        }
    }
    assert!(
        !refused.contains_key("another"),
        "{:#?}",
        refused["another"]
    );
    assert!(count > 60, "{count}, {refused:#?}");
}

#[test]
fn vertices_on_the_border_of_a_chunk_keep_their_position() {
    let wide = [(1.1, 33), (2.2, 66), (0.7, -252), (1e16, (1 << 53) + 1)];
    for (extent, first) in wide {
        let cell = vec![extent, 10.0, 10.0];
        let subset = CoarsenMethod::Subset {
            cell: cell.clone(),
            keep: 1,
            seed: 0,
            without: None,
        };
        let bins = |placement| CoarsenMethod::Bins {
            cell: cell.clone(),
            placement,
            share: false,
        };
        let mut methods = vec![subset, bins(Placement::Medoid)];
        if extent < 1e16 {
            methods.push(bins(Placement::Mean));
        }
        for method in methods {
            let about = format!("{first} in chunks of {extent}, {method:?}");
            let place = [first, 3, 4].map(i64::to_le_bytes).concat();
            let positions = NumericColumn {
                bytes: place.clone(),
                ..NumericColumn::new(Kind::Int64, 3)
            };
            let mut design = Design::new(GeometryKind::Points);
            design.chunk_shape = Some(cell.clone());
            let mut options = PyramidOptions::default();
            options.levels = PyramidLevels::Explicit(vec![LevelDesign {
                method,
                chunk_scale: vec![1; 3],
                sparsity: None,
                additive: false,
                sharding: None,
            }]);
            block_on(async {
                let store = store_of(Geometry::builder(positions), design).await;
                build_pyramid(&store, &options).await.unwrap();
                let mut query = Query::new();
                query.level = LevelChoice::Number(LevelId::new(1));
                let dataset = Dataset::open(store.clone()).await.unwrap();
                let found = dataset.query(&query).await.unwrap();
                assert_eq!(found.positions.bytes, place, "{about}");
                is_sound(&store, &about).await;
            });
        }
    }
}

/// Returns codes and paths of the findings.
async fn found(store: &Store) -> BTreeSet<String> {
    let report = validate(store.clone(), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings.into_iter();
    let lines =
        findings.map(|found| format!("{} {} {}", found.rule.code, found.path, found.message));
    lines.collect()
}

/// Levels without vertices had no arrays, so that queries that chose them failed.
#[test]
fn levels_without_vertices_have_arrays() {
    let corners = || {
        let corners = [[0.0; 3], [5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 5.0]];
        Geometry::builder(NumericColumn::float32(3, corners.concat()))
    };
    let design = |kind, profile| {
        let mut design = Design::new(kind);
        design.profile = profile;
        design.chunk_shape = Some(vec![20.0; 3]);
        design
    };
    for profile in PROFILES {
        let mut faces = corners();
        faces = faces.links(3, vec![0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]);
        let mut levels = bins(3, None);
        levels.truncate(1);
        let path_levels = PyramidOptions::new().levels(PyramidLevels::Explicit(levels.clone()));
        levels[0].method = CoarsenMethod::Collapse {
            keep: 0.5,
            tolerance: f64::INFINITY,
            cull: 10,
        };
        let mesh_levels = PyramidOptions::new()
            .levels(PyramidLevels::Explicit(levels))
            .cross_level(CrossLevel::None);
        block_on(async {
            let store = store_of(faces, design(GeometryKind::Mesh, profile)).await;
            let built = build_pyramid(&store, &mesh_levels).await.unwrap();
            assert_eq!(built.levels[0].vertices, 0, "{profile:?}");
            let about = format!("culled, {profile:?}");
            is_sound(&store, &about).await;
            has_empty_level(&store, &about).await;
        });
        let mut path = corners();
        path = path.paths(vec![0, 4], vec![7]);
        block_on(async {
            let store = store_of(path, design(GeometryKind::Polylines, profile)).await;
            let path_levels = path_levels.cross_level(CrossLevel::None);
            build_pyramid(&store, &path_levels).await.unwrap();
            if profile == Profile::V09 {
                let editor = Editor::open(&store).await.unwrap();
                editor.remove(&[7]).await.unwrap();
                let refreshed = refresh_pyramid(&store, &PyramidOptions::default()).await;
                assert_eq!(refreshed.unwrap().levels[0].vertices, 0);
                has_empty_level(&store, "emptied").await;
            }
        });
    }
}

/// Asserts that level 1 can be read, although it has no vertices.
async fn has_empty_level(store: &Store, about: &str) {
    let dataset = Dataset::open(store).await.unwrap();
    let query = Query::new().level(LevelChoice::Number(LevelId::new(1)));
    let result = dataset
        .query(&query)
        .await
        .unwrap_or_else(|error| panic!("{about}: {error:?}"));
    assert_eq!(result.positions.len(), 0, "{about}");
}

#[test]
fn a_depth_that_the_format_cannot_express_means_all_levels() {
    for (depth, expected) in [
        (2, CrossLevelDepth::Levels(2)),
        (3_000_000_000, CrossLevelDepth::All),
        (u32::MAX, CrossLevelDepth::All),
    ] {
        let mut random = Random::new(1);
        let geometry = Geometry::builder(places(&mut random, 200, 2));
        let mut design = Design::new(GeometryKind::Points);
        design.chunk_shape = Some(vec![10.0; 2]);
        block_on(async {
            let store = store_of(geometry, design).await;
            let mut levels = AutoLevels::default();
            levels.levels = Some(1);
            let options = PyramidOptions::new().levels(levels).depth(depth);
            build_pyramid(&store, &options).await.unwrap();
            let dataset = Dataset::open(store.clone()).await.unwrap();
            assert_eq!(dataset.root().cross_level_depth, Some(expected));
            is_sound(&store, "a large depth").await;
        });
    }
}
