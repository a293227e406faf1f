//! Geometry that cannot be drawn is refused, or left out and counted.

use zvf::{Geometry, GeometryKind, LevelChoice, LevelId, NumericColumn};
use zvf_render::RenderError;

use crate::{drawn, small, stores};

#[tokio::test]
async fn sizes_are_bounded() {
    let store = stores::trees().await;
    for (width, height) in [
        (0, 0),
        (63, 500),
        (500, 63),
        (16385, 64),
        (16384, 16384),
        (usize::MAX, 2),
    ] {
        let mut options = small();
        (options.width, options.height) = (width, height);
        let error = drawn(&store, &options).await.unwrap_err();
        assert!(matches!(error, RenderError::Size { .. }), "{error}");
    }
}

#[tokio::test]
async fn links_of_more_vertices_than_are_kept_are_refused() {
    for store in [stores::trees().await, stores::ring().await] {
        let mut options = small();
        options.max_cached_vertices = 10;
        let error = drawn(&store, &options).await.unwrap_err();
        assert!(
            matches!(error, RenderError::TooManyVertices { max: 10 }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn attributes_that_are_not_there_are_named() {
    let store = stores::points().await;
    let mut options = small();
    options.color_by = "hight".parse().unwrap();
    let error = drawn(&store, &options).await.unwrap_err();
    assert!(error.to_string().contains("hight"), "{error}");
    options.color_by = "group.name".parse().unwrap();
    assert!(drawn(&store, &options).await.is_err());
    options.color_by = "height".parse().unwrap();
    options.level = Some(LevelChoice::Number(LevelId::new(9)));
    assert!(drawn(&store, &options).await.is_err());
}

/// A budget, the default for boxes, and colours of vertices cannot be combined with these.
#[tokio::test]
async fn additional_geometries_are_drawn_inside_a_box() {
    let store = stores::tinted().await;
    let level = std::path::PathBuf::from(store.address()).join("0");
    copy(&level.join("vertices"), &level.join("vertices_graph"));
    std::fs::create_dir(level.join("geometry_index")).unwrap();
    let index = r#"{"zarr_format": 3, "node_type": "group", "attributes": {"graph":
        {"array": "vertices_graph", "vertex_count": 3, "has_links": false}}}"#;
    std::fs::write(level.join("geometry_index/zarr.json"), index).unwrap();
    let mut options = small();
    options.geometry = Some("graph".to_owned());
    assert_eq!(drawn(&store, &options).await.unwrap().vertices, 3);
    let bbox = zvf::Bbox::parse("-1,-1,-1,5,10,1").unwrap();
    options.selection = zvf::Query::new().region(bbox).mode(zvf::Mode::Clip);
    let rendered = drawn(&store, &options).await.unwrap();
    assert_eq!(rendered.vertices, 2);
    assert_eq!(rendered.levels, [LevelId::FULL]);
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

#[tokio::test]
async fn one_place_and_no_depth_are_drawn() {
    for places in [
        vec![5.0, 5.0, 5.0],
        vec![0.0, 0.0, 0.0, 4.0, 4.0, 0.0],
        vec![1e30, 0.0, 0.0, -1e30, 1e30, 0.0],
    ] {
        let geometry = Geometry::builder(NumericColumn::float64(3, places));
        let store = stores::made(GeometryKind::Points, geometry).await;
        let rendered = drawn(&store, &small()).await.unwrap();
        let dots = rendered.picture.pixels();
        let bright = |dot: &&[u8; 3]| dot.iter().all(|part| *part > 90);
        assert!(dots.iter().filter(bright).count() > 4);
    }
}

#[tokio::test]
async fn two_axes_are_seen_from_above() {
    let geometry = Geometry::builder(NumericColumn::float32(2, [0.0, 0.0, 10.0, 0.0, 10.0, 5.0]));
    let store = stores::made(GeometryKind::Points, geometry).await;
    let rendered = drawn(&store, &small()).await.unwrap();
    assert_eq!(rendered.vertices, 3);
}
