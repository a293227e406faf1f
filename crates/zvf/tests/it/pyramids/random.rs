//! Levels of random stores, compared with brute-force results.

use std::collections::{BTreeMap, BTreeSet};

use zvf::{
    CreateOptions, CrossLevel, Dataset, LevelChoice, LevelDesign, ObjectSelection, PyramidLevels,
    PyramidOptions, PyramidReport, Query, Selection, Store, build_pyramid,
    coarsen::{Aggregation, Amount, CoarsenMethod, Placement, Sparsity, Strategy},
};
use zvf_build::{Design, GeometryKind, Profile, WritePlan};
use zvf_catalog::Scope;
use zvf_model::level::LevelId;
use zvf_testkit::stores::Random;

use super::{
    model::{Level, between},
    step::Step,
};
use crate::{
    block_on,
    validated::{own::is_sound, snapshot},
    written::random::{self, Case},
};

/// A store of one level, and the options for building more.
pub(crate) struct Wanted {
    pub(crate) store: Store,
    pub(super) design: Design,
    pub(crate) options: PyramidOptions,
    pub(super) about: String,
}

/// Creates a store.
pub(super) async fn store_of(geometry: zvf_build::GeometryBuilder, design: Design) -> Store {
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let written = zvf::create_from_plan(&store, plan, &CreateOptions::new().seal(false)).await;
    written.unwrap();
    store
}

/// Returns a random store and random options.
pub(crate) async fn wanted(seed: u64, kind: GeometryKind, profile: Profile) -> Wanted {
    wanted_in(seed, kind, profile, |_, _| {}).await
}

/// Returns a random store with this number of axes, after `change`.
pub(super) async fn wanted_in(
    seed: u64,
    kind: GeometryKind,
    profile: Profile,
    change: impl FnOnce(&mut Design, usize),
) -> Wanted {
    let Case {
        geometry,
        mut design,
        ..
    } = random::case(seed, kind, profile);
    change(&mut design, geometry.axes());
    let has_objects = design.kind.is_paths() || geometry.owners.ids().is_some();
    let is_rich = geometry.vertex.len() > 1;
    let has_weight = geometry.link.iter().any(|own| own.name == "weight");
    let store = store_of(geometry, design.clone()).await;
    let dataset = Dataset::open(store.clone()).await.unwrap();
    let mut chunk = dataset.root().chunk_shape.extents().to_vec();
    let mut random = Random::new(seed ^ 0x7079_7261);
    let mut levels = Vec::new();
    for _ in 0..=random.below(3) {
        let scale: Vec<u32> = chunk.iter().map(|_| 1 + random.below(2) as u32).collect();
        for (extent, scale) in chunk.iter_mut().zip(&scale) {
            *extent *= f64::from(*scale);
        }
        let method = method(&mut random, kind, &chunk, has_objects);
        levels.push(LevelDesign {
            method,
            chunk_scale: scale,
            sparsity: (has_objects && random.chance(30)).then(|| kept(&mut random)),
            additive: false,
            sharding: None,
        });
    }
    let mut options = PyramidOptions::default();
    options.levels = PyramidLevels::Explicit(levels);
    options.cross_level = *random.pick(&[
        CrossLevel::Implicit,
        CrossLevel::Explicit,
        CrossLevel::Explicit,
    ]);
    options.depth = *random.pick(&[Some(1), Some(2), None]);
    if is_rich && random.chance(60) {
        let rules = Aggregation::ALL;
        let mut put = |name: &str, rule: Aggregation| options.rules.insert(name.to_owned(), rule);
        put("any", *random.pick(&rules));
        put("flag", *random.pick(&rules));
        put(
            "word",
            *random.pick(&[Aggregation::Mode, Aggregation::Own, Aggregation::Count]),
        );
        let rule = *random.pick(&rules);
        if has_weight {
            put("weight", rule);
        }
    }
    let about = format!("seed {seed}, {kind:?}, {profile:?}, {options:?}, {design:?}");
    Wanted {
        store,
        design,
        options,
        about,
    }
}

fn method(
    random: &mut Random,
    kind: GeometryKind,
    chunk: &[f64],
    has_objects: bool,
) -> CoarsenMethod {
    let cell: Vec<f64> = chunk
        .iter()
        .map(|at| at / *random.pick(&[1.0, 2.0, 4.0]))
        .collect();
    let bins = |random: &mut Random, share: bool| CoarsenMethod::Bins {
        cell: cell.clone(),
        placement: *random.pick(&[Placement::Mean, Placement::Medoid]),
        share,
    };
    match (kind, random.below(3)) {
        (GeometryKind::Points, 0) => {
            let share = has_objects && random.chance(50);
            bins(random, share)
        }
        (GeometryKind::Points, _) => CoarsenMethod::Subset {
            without: None,
            keep: 1 + random.below(3) as u32,
            seed: random.any(),
            cell,
        },
        (GeometryKind::Mesh, _) | (_, 0) => bins(random, false),
        (_, 1) => CoarsenMethod::Simplify {
            tolerance: 0.5 + random.unit() * 6.0,
        },
        _ => CoarsenMethod::Stride {
            step: 1 + random.below(4) as u32,
        },
    }
}

fn kept(random: &mut Random) -> ObjectSelection {
    let strategies = [
        Strategy::Random { seed: 7 },
        Strategy::Length,
        Strategy::Coverage,
        Strategy::PerGroup { seed: 8 },
    ];
    ObjectSelection {
        sparsity: Sparsity {
            amount: *random.pick(&[Amount::Share(0.4), Amount::Count(1), Amount::Count(3)]),
            strategy: random.pick(&strategies).clone(),
        },
        attribute: None,
    }
}

impl Wanted {
    /// Builds the levels and runs every check.
    pub(super) async fn check(&self) {
        let about = &self.about;
        let made = build_pyramid(&self.store, &self.options)
            .await
            .unwrap_or_else(|error| panic!("{error:?}: {about}"));
        is_sound(&self.store, about).await;
        sorted_cells(&self.store, about).await;
        let dataset = Dataset::open(self.store.clone()).await.unwrap();
        let mut levels = Vec::new();
        for number in 0..=made.levels.len() as u32 {
            levels.push(Level::read(&dataset, number, &self.design).await);
        }
        self.counts(&levels, &made);
        self.steps(&dataset, &levels, &made).await;
        tables(&dataset, &levels, about).await;
    }

    /// Checks that the metadata of levels match their content.
    fn counts(&self, levels: &[Level], made: &PyramidReport) {
        let about = &self.about;
        for (level, made) in levels[1..].iter().zip(&made.levels) {
            assert_eq!(made.level, LevelId::new(level.number), "{about}");
            assert_eq!(made.vertices, level.vertices.len() as u64, "{about}");
            let chunks: BTreeSet<_> = level.vertices.iter().map(|vertex| &vertex.at.0).collect();
            assert_eq!(made.chunks, chunks.len() as u64, "{about}");
            let present = level.objects.as_ref().map(|_| level.present().len() as u64);
            assert_eq!(made.objects, present, "{about}");
            let objects = level.objects.iter().flatten();
            let named: usize = objects.map(|(_, own)| own.len()).sum();
            let named = if level.is_named {
                named
            } else {
                level.vertices.len()
            };
            assert_eq!(made.named, Some(named as u64), "{about}");
        }
    }

    /// Compares every level with the previous one, and links with all earlier ones.
    async fn steps(&self, dataset: &Dataset, levels: &[Level], made: &PyramidReport) {
        let PyramidLevels::Explicit(designs) = &self.options.levels else {
            panic!("levels are given")
        };
        let about = &self.about;
        let is_explicit = self.options.cross_level == CrossLevel::Explicit;
        let depth = self.options.depth.unwrap_or(u32::MAX);
        // From each level to all coarser ones.
        let mut known: BTreeMap<(u32, u32), BTreeSet<(usize, usize)>> = BTreeMap::new();
        for (coarse, design) in levels[1..].iter().zip(designs) {
            let fine = &levels[coarse.number as usize - 1];
            let up = between(dataset, fine, coarse)
                .await
                .unwrap_or_else(|| panic!("no links, {about}"));
            let error = made.levels[fine.number as usize].error;
            let title = format!("level {}, {about}", coarse.number);
            let rules = &self.options.rules;
            Step::new((fine, coarse), &up, design, rules, error, title).check();
            for start in &levels[..fine.number as usize] {
                let before = &known[&(start.number, fine.number)];
                let far = before.iter().flat_map(|(from, middle)| {
                    let next = up.range((*middle, 0)..(*middle + 1, 0));
                    next.map(move |(_, to)| (*from, *to))
                });
                known.insert((start.number, coarse.number), far.collect());
            }
            known.insert((fine.number, coarse.number), up);
        }
        for ((start, end), pairs) in &known {
            let (from, to) = (&levels[*start as usize], &levels[*end as usize]);
            let is_stored = end - start <= depth;
            let up = between(dataset, from, to).await;
            assert_eq!(
                up.as_ref(),
                is_stored.then_some(pairs),
                "{start} to {end}, {about}"
            );
            let down = between(dataset, to, from).await;
            let back: BTreeSet<_> = pairs.iter().map(|(from, to)| (*to, *from)).collect();
            let is_stored = is_stored && is_explicit;
            assert_eq!(down, is_stored.then_some(back), "{end} to {start}, {about}");
            self.drill(dataset, (from, to), pairs).await;
        }
    }

    /// Checks that drill queries follow these links.
    async fn drill(
        &self,
        dataset: &Dataset,
        (from, to): (&Level, &Level),
        pairs: &BTreeSet<(usize, usize)>,
    ) {
        let object = from
            .objects
            .iter()
            .flatten()
            .find(|(_, own)| !own.is_empty());
        for (id, own) in object
            .map(|(id, own)| (Some(*id), Some(own)))
            .into_iter()
            .chain([(None, None)])
        {
            let mut query = Query::new();
            query.level = LevelChoice::Number(LevelId::new(from.number));
            query.drill = Some(to.number as i32 - from.number as i32);
            query.columns = Selection::none();
            query.objects = id.map(|id| vec![id]);
            let result = dataset
                .query(&query)
                .await
                .unwrap_or_else(|error| panic!("{error:?}, {}", self.about));
            let reached: BTreeSet<usize> = pairs
                .iter()
                .filter(|(at, _)| own.is_none_or(|own| own.contains(at)))
                .map(|(_, parent)| *parent)
                .collect();
            let mut expected: Vec<&[u8]> = reached
                .iter()
                .map(|vertex| to.vertices[*vertex].bits.as_slice())
                .collect();
            let size = result.positions.row_size();
            let mut found: Vec<&[u8]> = result.positions.bytes.chunks_exact(size).collect();
            expected.sort_unstable();
            found.sort_unstable();
            assert_eq!(expected, found, "drill {query:?}, {}", self.about);
        }
    }
}

/// Checks that objects and groups on all levels equal those of the finest.
async fn tables(dataset: &Dataset, levels: &[Level], about: &str) {
    let catalog = dataset.catalog();
    let full = LevelId::FULL;
    for level in &levels[1..] {
        let id = LevelId::new(level.number);
        let names = catalog.attribute_list(full, Scope::Object).await.unwrap();
        assert_eq!(
            names,
            catalog.attribute_list(id, Scope::Object).await.unwrap(),
            "{about}"
        );
        for name in names.iter() {
            let expected = catalog.object_values(full, name, None).await.unwrap();
            let found = catalog.object_values(id, name, None).await.unwrap();
            // NaN does not equal itself, so compare text.
            assert_eq!(
                format!("{expected:?}"),
                format!("{found:?}"),
                "{name}, {about}"
            );
        }
        let names = catalog.attribute_list(full, Scope::Group).await.unwrap();
        assert_eq!(
            names,
            catalog.attribute_list(id, Scope::Group).await.unwrap(),
            "{about}"
        );
        for name in names.iter() {
            let expected = catalog.group_values(full, name, None).await.unwrap();
            let found = catalog.group_values(id, name, None).await.unwrap();
            assert_eq!(
                format!("{expected:?}"),
                format!("{found:?}"),
                "{name}, {about}"
            );
        }
        let expected = catalog.group_list(full).await.unwrap();
        let found = catalog.group_list(id).await.unwrap();
        assert_eq!(expected.is_some(), found.is_some(), "{about}");
        let (Some(expected), Some(found)) = (expected, found) else {
            continue;
        };
        assert_eq!(expected.len(), found.len(), "{about}");
        for group in 0..expected.len() {
            let members = |list: &zvf_catalog::GroupList| {
                let members = list.members(group);
                members.map(|members| members.iter().collect::<Vec<i64>>())
            };
            assert_eq!(members(&expected), members(&found), "{about}");
        }
    }
}

/// Checks that links to other levels of 0.8 have no policy, and that their cells are named by sorted
/// chunks.
async fn sorted_cells(store: &Store, about: &str) {
    for (path, bytes) in snapshot(store).await {
        let Some((_, rest)) = path.split_once("/cross_chunk_links/") else {
            continue;
        };
        let names: Vec<&str> = rest.split('/').collect();
        match names.as_slice() {
            [delta, "zarr.json"] if *delta != "0" => {
                let node = String::from_utf8(bytes).unwrap();
                assert!(!node.contains("directed"), "{path}, {about}");
            }
            [delta, cell, "zarr.json"] if *delta != "0" => {
                let coords: Vec<i64> = cell.split('.').map(|at| at.parse().unwrap()).collect();
                assert!(
                    coords.chunks(coords.len() / 2).is_sorted(),
                    "{path}, {about}"
                );
            }
            _ => {}
        }
    }
}

fn check_all(kind: GeometryKind) {
    for profile in [Profile::V09, Profile::V08] {
        for seed in 0..zvf_testkit::sample::cases(6) {
            block_on(async {
                let wanted = wanted(seed, kind, profile).await;
                Box::pin(wanted.check()).await;
            });
        }
    }
}

#[test]
fn levels_of_points_match_brute_force() {
    check_all(GeometryKind::Points);
}

#[test]
fn levels_of_lines_match_brute_force() {
    check_all(GeometryKind::Lines);
}

#[test]
fn levels_of_polylines_match_brute_force() {
    check_all(GeometryKind::Polylines);
}

#[test]
fn levels_of_streamlines_match_brute_force() {
    check_all(GeometryKind::Streamlines);
}

#[test]
fn levels_of_skeletons_match_brute_force() {
    check_all(GeometryKind::Skeletons);
}

#[test]
fn levels_of_graphs_match_brute_force() {
    check_all(GeometryKind::Graphs);
}

#[test]
fn levels_of_meshes_match_brute_force() {
    check_all(GeometryKind::Mesh);
}
