//! The order of the corners of faces: written, read, kept, and turned on request.

use zvf::{
    CreateOptions, Dataset, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn,
    OpenOptions, Profile, Query, Store, ValidateOptions, WindingOrder, validate,
};
use zvf_build::{BuildError, WritePlan};

use crate::{block_on, migrated::migrated};

/// A tetrahedron in two chunks, with faces whose normals point inward.
fn tetrahedron() -> GeometryBuilder {
    let corners = [
        [1.0_f32, 1.0, 1.0],
        [12.0, 1.0, 1.0],
        [1.0, 12.0, 1.0],
        [1.0, 1.0, 12.0],
    ];
    Geometry::builder(NumericColumn::from(corners.to_vec()))
        .links(3, vec![0, 1, 2, 0, 3, 1, 0, 2, 3, 1, 3, 2])
}

fn design(profile: Profile) -> Design {
    let design = Design::new(GeometryKind::Mesh).profile(profile);
    design.chunk_shape([10.0; 3])
}

async fn created(design: Design) -> Store {
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let plan = WritePlan::new(tetrahedron().build().unwrap(), design).unwrap();
    let options = CreateOptions::default().seal(false);
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

/// Returns six times the signed volume that the faces enclose: positive if normals point outward.
async fn volume(dataset: &Dataset, query: &Query) -> f64 {
    let result = dataset.query(query).await.unwrap();
    let positions = result.positions.view().unwrap();
    let corner = |row: u64| {
        let row = usize::try_from(row).unwrap();
        [0, 1, 2].map(|axis| positions.value(row, axis).unwrap().to_f64())
    };
    let links = result.links.unwrap();
    let faces = links.ends.chunks_exact(3);
    let volumes = faces.map(|face| {
        let [a, b, c] = [face[0], face[1], face[2]].map(corner);
        a[0] * (b[1] * c[2] - b[2] * c[1]) - a[1] * (b[0] * c[2] - b[2] * c[0])
            + a[2] * (b[0] * c[1] - b[1] * c[0])
    });
    volumes.sum()
}

#[test]
fn clockwise_faces_are_turned_on_request() {
    for profile in Profile::ALL {
        block_on(async {
            let store = created(design(profile).winding(WindingOrder::Clockwise)).await;
            let report = validate(store.clone(), &ValidateOptions::default()).await;
            let findings = report.unwrap().findings;
            assert!(findings.is_empty(), "{profile:?}: {findings:?}");
            let dataset = Dataset::open(store).await.unwrap();
            assert_eq!(dataset.root().winding(), WindingOrder::Clockwise);
            let stored = volume(&dataset, &Query::new()).await;
            let turned = volume(&dataset, &Query::new().counter_clockwise(true)).await;
            assert!(stored < 0.0, "{stored}");
            assert_eq!(turned.to_bits(), (-stored).to_bits());
            for target in [Profile::V09, Profile::V08] {
                let (migrated, _) = migrated(&dataset, target).await.unwrap();
                assert_eq!(migrated.root().winding(), WindingOrder::Clockwise);
                let kept = volume(&migrated, &Query::new()).await;
                assert_eq!(kept.to_bits(), stored.to_bits());
            }
        });
    }
}

#[test]
fn counter_clockwise_faces_are_not_turned() {
    for profile in Profile::ALL {
        block_on(async {
            let dataset = Dataset::open(created(design(profile)).await).await.unwrap();
            assert_eq!(dataset.root().winding(), WindingOrder::CounterClockwise);
            // zarr-vectors 0.9.2 does not know the field.
            let is_declared = dataset.root().winding_order.is_some();
            assert_eq!(is_declared, !profile.is_current());
            let stored = volume(&dataset, &Query::new()).await;
            let turned = volume(&dataset, &Query::new().counter_clockwise(true)).await;
            assert_eq!(stored.to_bits(), turned.to_bits());
        });
    }
}

#[test]
fn only_meshes_have_a_winding() {
    let mut geometry = tetrahedron();
    geometry = geometry.links(2, Vec::new());
    let design = Design::new(GeometryKind::Points).winding(WindingOrder::Clockwise);
    let error = WritePlan::new(geometry.build().unwrap(), design).unwrap_err();
    assert_eq!(error, BuildError::NoWinding("points"));
}

#[test]
fn an_unknown_winding_is_a_finding() {
    block_on(async {
        let store = created(design(Profile::V08)).await;
        let files = crate::validated::snapshot(&store)
            .await
            .into_iter()
            .map(|(path, bytes)| {
                let bytes = match path.as_str() {
                    "zarr.json" => String::from_utf8(bytes)
                        .unwrap()
                        .replace("\"ccw\"", "\"xx\""),
                    _ => return (path, bytes),
                };
                (path, bytes.into_bytes())
            });
        let store = OpenOptions::default().from_memory(files.collect::<Vec<_>>());
        let report = validate(store.unwrap(), &ValidateOptions::default()).await;
        let codes: Vec<&str> = report
            .unwrap()
            .findings
            .iter()
            .map(|f| f.rule.code)
            .collect();
        assert!(codes.contains(&"ZV-L2-010"), "{codes:?}");
    });
}
