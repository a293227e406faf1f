//! Stores are read back as written.

use zvf::{CreateOptions, Dataset, Editor, Query, Store};
use zvf_build::{Design, Geometry, GeometryKind, NumericColumn, Profile, WritePlan};

use super::{
    content::Content,
    random::{self, Case},
};
use crate::block_on;

fn check(seed: u64, kind: GeometryKind, profile: Profile) {
    let Case {
        geometry, design, ..
    } = random::case(seed, kind, profile);
    let expected = Content::of(&geometry, &design);
    let about = format!("seed {seed}, {kind:?}, {profile:?}, {design:?}");
    let plan = WritePlan::new(geometry.build().unwrap(), design)
        .unwrap_or_else(|error| panic!("{error}: {about}"));
    let summary = plan.summary();
    let found = block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let written = zvf::create_from_plan(&store, plan, &CreateOptions::default()).await;
        written.unwrap_or_else(|error| panic!("{error:?}: {about}"));
        let dataset = Dataset::open(store).await.unwrap();
        assert_eq!(dataset.layout().profile(), profile.name(), "{about}");
        let info = dataset.info().await.unwrap();
        assert_eq!(info.levels[0].vertices, Some(summary.vertices), "{about}");
        assert_eq!(info.levels[0].chunks, summary.chunks, "{about}");
        Content::read(&dataset).await
    });
    compare(&expected, &found, &about);
}

/// Asserts equality with a short message.
pub(super) fn compare(expected: &Content, found: &Content, about: &str) {
    for (tag, vertex) in &expected.vertices {
        assert_eq!(
            Some(vertex),
            found.vertices.get(tag),
            "vertex {tag}, {about}"
        );
    }
    assert_eq!(expected.vertices.len(), found.vertices.len(), "{about}");
    assert_eq!(expected.owners, found.owners, "{about}");
    assert_eq!(expected.paths, found.paths, "{about}");
    assert_eq!(expected.links, found.links, "{about}");
    assert_eq!(expected.objects, found.objects, "{about}");
    assert_eq!(expected.groups, found.groups, "{about}");
}

fn check_all(profile: Profile) {
    for kind in GeometryKind::ALL {
        for seed in 0..zvf_testkit::sample::cases(30) {
            check(seed, kind, profile);
        }
    }
}

#[test]
fn stores_of_0_9_hold_what_was_written() {
    check_all(Profile::V09);
}

#[test]
fn stores_of_0_8_hold_what_was_written() {
    check_all(Profile::V08);
}

#[test]
fn padded_stores_hold_what_was_written() {
    check_all(Profile::Padded);
}

/// Child and parent of links between chunks were exchanged in directed skeletons.
#[test]
fn skeletons_keep_child_and_parent_with_every_link_policy() {
    for (directed, duplicate) in [(false, false), (true, false), (false, true), (true, true)] {
        // The root is at 4. One child is in its chunk, and a branch leads to each neighbouring chunk.
        let places = [4.0, 4.5, 2.0, 0.0, 6.0, 8.0];
        let parents = [[1, 0], [2, 0], [3, 2], [4, 0], [5, 4]];
        let values = places.iter().flat_map(|place| [*place, 1.0]);
        let geometry = Geometry::builder(NumericColumn::float32(2, values))
            .object_ids(vec![7; places.len()])
            .links(2, parents.concat());
        let mut design = Design::new(GeometryKind::Skeletons)
            .directed(directed)
            .duplicate(duplicate);
        design.chunk_shape = Some(vec![2.0; 2]);
        let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
        block_on(async {
            let none: [(&str, &[u8]); 0] = [];
            let store = Store::from_memory(none).unwrap();
            let options = CreateOptions::new().seal(false);
            zvf::create_from_plan(&store, plan, &options).await.unwrap();
            let dataset = Dataset::open(store.clone()).await.unwrap();
            let result = dataset.query(&Query::new()).await.unwrap();
            let read = result.positions.to_vec::<f32>().unwrap();
            let ends = result.links.unwrap().ends;
            let mut links: Vec<[f32; 2]> = ends
                .chunks_exact(2)
                .map(|ends| [0, 1].map(|end: usize| read[ends[end] as usize * 2]))
                .collect();
            links.sort_by(|a, b| a.partial_cmp(b).unwrap());
            let expected = [[0.0, 2.0], [2.0, 4.0], [4.5, 4.0], [6.0, 4.0], [8.0, 6.0]];
            assert_eq!(
                links, expected,
                "directed {directed}, duplicate {duplicate}"
            );
            let editor = Editor::open(store).await.unwrap();
            let removed = editor.remove(&[7]).await.unwrap().removed;
            assert_eq!(removed, 6, "directed {directed}, duplicate {duplicate}");
        });
    }
}
