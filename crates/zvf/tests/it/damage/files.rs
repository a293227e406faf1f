//! Every file of a store of each kind missing, cut, longer and flipped.

use std::collections::BTreeMap;

use zvf::{Answer, Query};
use zvf_testkit::golden::Golden;

use super::{Files, Told, ask, asks::Intact, chain, files, is_same, open, subset::is_part};
use crate::block_on;

/// A store of each kind: points with attributes, with objects and groups, chunked
/// by an attribute, sharded and compressed; lines, polylines, graphs with
/// attributes of links, skeletons, meshes, pyramids; and of each generation.
const STORES: &[(&str, &str)] = &[
    ("zvf-09", "points_attributes/store.zarrvectors"),
    ("zvf-09", "points_objects_groups/store.zarrvectors"),
    ("zvf-09", "points_chunk_by_attribute/store.zarrvectors"),
    ("zvf-09", "points_categorical/store.zarrvectors"),
    ("zvf-09", "points_fragment_attributes/store.zarrvectors"),
    ("zvf-09", "points_sharded_zstd/store.zarrvectors"),
    ("zvf-09", "lines_mixed/store.zarrvectors"),
    ("zvf-09", "polylines_3d/store.zarrvectors"),
    ("zvf-09", "graph_3d/store.zarrvectors"),
    ("zvf-09", "graph_2d_objects/store.zarrvectors"),
    ("zvf-09", "graph_sharded/store.zarrvectors"),
    ("zvf-09", "skeleton_multi/store.zarrvectors"),
    ("zvf-09", "mesh_objects/store.zarrvectors"),
    ("zvf-09", "pyramid_points/store.zarrvectors"),
    ("zvf-06", "graph.zv"),
    ("zvf-06", "streamlines.zv"),
    ("zvf-06", "points_objects.zv"),
    ("zvf-07", "graph.zv"),
    ("zvf-07", "sharded_octree.zv"),
    ("zvf-08", "0.8.0/graph.zv"),
    ("zvf-08", "0.8.0/streamlines.zv"),
    ("zvf-08", "0.8.1/graph.zv"),
    ("zvf-08", "0.8.1/streamlines.zv"),
    ("zvf-08", "0.8.1/native_sharded.zv"),
];

/// What is done to a file; `None` removes it.
#[derive(Clone, Debug)]
struct Harm {
    what: String,
    bytes: Option<Vec<u8>>,
}

/// Which lengths a file is cut to.
#[derive(Clone, Copy)]
enum Cuts {
    Few,
    All,
}

fn harms(bytes: &[u8], cuts: Cuts) -> Vec<Harm> {
    let harm = |what: &str, bytes: Option<Vec<u8>>| Harm {
        what: what.to_owned(),
        bytes,
    };
    let mut longer = bytes.to_vec();
    longer.push(0);
    let mut harms = vec![harm("removed", None), harm("longer", Some(longer))];
    let all = matches!(cuts, Cuts::All) && bytes.len() < 300;
    let lengths: Vec<usize> = match all {
        true => (0..bytes.len()).collect(),
        false => vec![0, bytes.len() / 2, bytes.len().saturating_sub(1)],
    };
    for length in lengths {
        let cut = Some(bytes[..length].to_vec());
        harms.push(harm(&format!("cut to {length}"), cut));
    }
    harms
}

fn harmed(files: &Files, at: usize, harm: &Harm) -> Files {
    let mut files = files.clone();
    match &harm.bytes {
        Some(bytes) => files[at].1.clone_from(bytes),
        None => drop(files.remove(at)),
    }
    files
}

/// Whether a message names a key of the store.
fn names_a_key(message: &str, files: &Files) -> bool {
    let nodes = files.iter().flat_map(|(key, _)| {
        let ends = key.match_indices('/').map(|(at, _)| at);
        let ends = ends.chain([key.len()]);
        ends.map(move |end| &key[..end])
    });
    let mut nodes = nodes.filter(|node| node.contains('/') || *node == "zarr.json");
    nodes.any(|node| message.contains(node))
}

#[derive(Default, Debug)]
struct Sums {
    refused: u32,
    same: u32,
    less: u32,
    left_equal: u32,
}

fn explore_store(golden: &Golden, archive: &str, store: &str, sums: &mut Sums) {
    let intact = block_on(Intact::of(files(golden, store)));
    let mut faults: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let start = std::time::Instant::now();
    for at in 0..intact.files.len() {
        let key = intact.files[at].0.clone();
        for harm in harms(&intact.files[at].1, Cuts::Few) {
            let files = harmed(&intact.files, at, &harm);
            block_on(async {
                let mut fault = |what: String| {
                    let what = format!("{store}/{key} {what}");
                    faults.entry(what).or_default().push(harm.what.clone());
                };
                let dataset = match open(&files).await {
                    Ok(dataset) => dataset,
                    Err(error) => {
                        let error = chain(&error);
                        if !names_a_key(&error, &intact.files) {
                            fault(format!("OPEN no key: {error}"));
                        }
                        sums.refused += 1;
                        return;
                    }
                };
                for asked in &intact.asked {
                    match ask(&dataset, &asked.query).await {
                        Err(error) if names_a_key(&error, &intact.files) => sums.refused += 1,
                        Err(error) => fault(format!("{} no key: {error}", asked.name)),
                        Ok(answer) if is_same(&answer, &asked.answer) => sums.same += 1,
                        Ok(answer) => fault(format!(
                            "{} {} {} rows of {}",
                            asked.name,
                            if answer.notes == asked.answer.notes {
                                "DIFF"
                            } else {
                                "NOTED"
                            },
                            answer.positions.len(),
                            asked.answer.positions.len()
                        )),
                    }
                    let lenient = asked.query.clone().keep_going();
                    match ask(&dataset, &lenient).await {
                        Err(error) => {
                            if !key.ends_with("zarr.json") {
                                fault(format!("{} KEEP {error}", asked.name));
                            }
                        }
                        Ok(answer) => {
                            if answer.missing.is_empty() {
                                if !is_same(&answer, &asked.answer) {
                                    fault(format!(
                                        "{} KEEP silent {}",
                                        asked.name,
                                        answer.notes != asked.answer.notes
                                    ));
                                }
                                sums.left_equal += 1;
                            } else {
                                sums.less += 1;
                                if let Err(error) = is_part(&answer, &asked.answer) {
                                    fault(format!(
                                        "{} KEEP {error} {:?}",
                                        asked.name, answer.missing
                                    ));
                                }
                            }
                        }
                    }
                }
            });
        }
    }
    eprintln!("{archive} {store}: {:?} {:?}", start.elapsed(), sums);
    for (what, harms) in faults {
        eprintln!("{archive} {what}: {harms:?}");
    }
}

#[test]
fn explore_files() {
    let mut sums = Sums::default();
    for (archive, store) in STORES {
        let golden = Golden::open(archive);
        explore_store(&golden, archive, store, &mut sums);
    }
}
