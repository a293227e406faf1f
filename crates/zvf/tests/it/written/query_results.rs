//! A query result can be written back as a store with equal content.

use zvf::{CreateOptions, Dataset, IntoGeometry, Query, Store};
use zvf_build::{GeometryKind, Profile};

use super::{
    content::Content,
    random::{self, Case},
};
use crate::block_on;

async fn created(result: zvf::QueryResult, design: zvf_build::Design) -> Dataset {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let geometry = result.into_geometry().unwrap();
    let options = CreateOptions::default();
    zvf::create(&store, geometry, design, &options)
        .await
        .unwrap();
    Dataset::open(&store).await.unwrap()
}

fn check(seed: u64, kind: GeometryKind) {
    let Case {
        geometry, design, ..
    } = random::case(seed, kind, Profile::V09);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let options = CreateOptions::default();
        let written = zvf::create(&store, &geometry, design.clone(), &options).await;
        written.unwrap();
        let source = Dataset::open(&store).await.unwrap();
        let result = source.query(&Query::new()).await.unwrap();
        let copy = created(result, design).await;
        let (expected, found) = (Content::read(&source).await, Content::read(&copy).await);
        let about = format!("seed {seed}, {kind:?}");
        assert_eq!(expected.vertices, found.vertices, "{about}");
        assert_eq!(expected.owners, found.owners, "{about}");
        assert_eq!(expected.paths, found.paths, "{about}");
        assert_eq!(expected.links, found.links, "{about}");
        // Results do not contain objects without vertices.
        for (id, row) in &found.objects {
            assert_eq!(expected.objects.get(id), Some(row), "object {id}, {about}");
        }
    });
}

#[test]
fn results_of_every_kind_are_written_back_with_equal_content() {
    for kind in GeometryKind::ALL {
        for seed in 0..zvf_testkit::sample::cases(40) {
            check(seed, kind);
        }
    }
}
