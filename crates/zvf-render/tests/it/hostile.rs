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

#[tokio::test]
async fn one_place_and_no_depth_are_drawn() {
    for places in [
        vec![5.0, 5.0, 5.0],
        vec![0.0, 0.0, 0.0, 4.0, 4.0, 0.0],
        vec![1e30, 0.0, 0.0, -1e30, 1e30, 0.0],
    ] {
        let geometry = Geometry::new(NumericColumn::float64(3, places));
        let store = stores::made(GeometryKind::Points, geometry).await;
        let rendered = drawn(&store, &small()).await.unwrap();
        let dots = rendered.picture.pixels();
        let bright = |dot: &&[u8; 3]| dot.iter().all(|part| *part > 90);
        assert!(dots.iter().filter(bright).count() > 4);
    }
}

#[tokio::test]
async fn two_axes_are_seen_from_above() {
    let geometry = Geometry::new(NumericColumn::float32(2, [0.0, 0.0, 10.0, 0.0, 10.0, 5.0]));
    let store = stores::made(GeometryKind::Points, geometry).await;
    let rendered = drawn(&store, &small()).await.unwrap();
    assert_eq!(rendered.vertices, 3);
}
