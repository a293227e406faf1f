//! Nothing is found where nothing is wrong.

use zvf_build::{CellCompression, GeometryKind, Profile, ShardingPolicy};
use zvf_testkit::stores::{CrossLevel, Kind, Policy, Profile as Form, Recipe, make, pyramid};

use super::made::{Made, created, design, graph, mesh, paths, trees};

#[test]
fn in_what_is_created() {
    for profile in Profile::ALL {
        let stores = [
            (GeometryKind::Graphs, graph()),
            (GeometryKind::Mesh, mesh()),
            (GeometryKind::Skeletons, trees()),
            (GeometryKind::Polylines, paths()),
            (GeometryKind::Streamlines, paths()),
        ];
        for (kind, geometry) in stores {
            created(geometry.clone(), design(kind, profile)).breaks(&[]);
            if profile != Profile::V09 {
                continue;
            }
            let mut other = design(kind, profile);
            other.sharding = ShardingPolicy::Auto;
            other.compression = CellCompression::Zstd(1);
            created(geometry.clone(), other.clone()).breaks(&[]);
            other.duplicate = true;
            created(geometry.clone(), other.clone()).breaks(&[]);
            if kind != GeometryKind::Skeletons {
                other.directed = true;
                created(geometry, other).breaks(&[]);
            }
        }
    }
}

/// What random geometry has and no store is the worse for: edges to themselves,
/// links that are there twice, faces that are turned differently.
const RANDOM: [&str; 4] = ["ZV-L4-030", "ZV-L4-031", "ZV-L4-041", "ZV-L4-042"];
/// What writers of old paths do.
const STEPS: &str = "ZV-L4-012";

#[test]
fn in_links_of_any_generation_and_policy() {
    for profile in Form::ALL {
        for (seed, kind) in (0..).zip(Kind::ALL) {
            for policy in Policy::ALL {
                let recipe = Recipe {
                    seed,
                    kind,
                    profile,
                    policy,
                    size: 40,
                    shuffled: seed % 3 == 0,
                    ..Recipe::default()
                };
                let found = Made(make(&recipe).files).codes();
                let old = matches!(profile, Form::V06 | Form::V07) && kind.is_paths();
                let mut mine = found.iter().filter(|code| is_mine(code));
                let known = |code: &&String| {
                    RANDOM.contains(&code.as_str()) || old && code.as_str() == STEPS
                };
                assert!(mine.all(|code| known(&code)), "{recipe:?}: {found:?}");
            }
        }
    }
}

#[test]
fn in_links_between_levels() {
    for profile in [Form::V080, Form::V09] {
        for (seed, kind) in (0..).zip(Kind::ALL) {
            for links in [CrossLevel::Implicit, CrossLevel::Explicit] {
                let recipe = Recipe {
                    seed,
                    kind,
                    profile,
                    size: 40,
                    ..Recipe::default()
                };
                let found = Made(pyramid(&recipe, links).fine.files).codes();
                // Which share of objects such a level keeps, it does not say rightly.
                let known = |code: &&str| RANDOM.contains(code) || *code == "ZV-L4-053";
                let mut mine = found
                    .iter()
                    .map(String::as_str)
                    .filter(|code| is_mine(code));
                assert!(mine.all(|code| known(&code)), "{recipe:?}: {found:?}");
            }
        }
    }
}

/// Whether a rule is one of links or geometry.
fn is_mine(code: &str) -> bool {
    code.starts_with("ZV-L4") || code.starts_with("ZV-L3-1")
}
