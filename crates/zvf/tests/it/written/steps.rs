//! Links between the pieces of a path in consecutive chunks, which are stored on request and change
//! nothing else.

use zvf::{CreateOptions, Editor, Store};
use zvf_build::{
    Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds, Profile, WritePlan,
};

use crate::{block_on, validated::own::is_sound};

/// Returns a path through a number of chunks of size 10.
fn path(chunks: u8) -> GeometryBuilder {
    let places = (0..chunks)
        .flat_map(|at| [f32::from(at) * 10.0 + 1.0, f32::from(at) * 10.0 + 8.0])
        .flat_map(|x| [x, 5.0]);
    Geometry::builder(NumericColumn::float32(2, places)).paths(vec![0, 2 * u64::from(chunks)], None)
}

/// Returns the number of links that a store declares; `None` if it declares none.
async fn links(store: &Store) -> Option<u64> {
    let dataset = zvf::Dataset::open(store.clone()).await.unwrap();
    let info = dataset.info().await.unwrap();
    info.levels[0].links
}

#[test]
fn links_between_pieces_are_stored_on_request() {
    for (step_links, profile) in [
        (false, Profile::V09),
        (true, Profile::V09),
        (false, Profile::V08),
    ] {
        let mut design = Design::new(GeometryKind::Streamlines)
            .chunk_shape([10.0; 2])
            .profile(profile);
        design.bounds = Some((vec![0.0; 2], vec![100.0; 2]));
        design.step_links = step_links;
        let has_links = step_links || profile != Profile::V09;
        let about = format!("{step_links} {profile:?}");
        block_on(async {
            let none: [(&str, &[u8]); 0] = [];
            let store = Store::from_memory(none).unwrap();
            let plan = WritePlan::new(path(4).build().unwrap(), design).unwrap();
            assert_eq!(
                plan.summary().links,
                if has_links { 3 } else { 0 },
                "{about}"
            );
            let options = CreateOptions::default();
            zvf::create_from_plan(&store, plan, &options).await.unwrap();
            let found = links(&store).await;
            assert_eq!(found.unwrap_or(0), if has_links { 3 } else { 0 }, "{about}");
            is_sound(&store, &about).await;
            if profile != Profile::V09 {
                return;
            }
            let editor = Editor::open(store.clone()).await.unwrap();
            let appended = editor
                .append(&path(6).build().unwrap(), OutOfBounds::Reject)
                .await
                .unwrap();
            assert_eq!(appended.added, 12);
            let found = links(&store).await;
            assert_eq!(found.unwrap_or(0), if has_links { 8 } else { 0 }, "{about}");
            is_sound(&store, &about).await;
            editor.remove(&[0]).await.unwrap();
            let found = links(&store).await;
            assert_eq!(found.unwrap_or(0), if has_links { 5 } else { 0 }, "{about}");
            is_sound(&store, &about).await;
        });
    }
}
