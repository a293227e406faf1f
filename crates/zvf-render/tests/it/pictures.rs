//! Reference pictures, in `tests/pictures`. `ZVF_UPDATE_PICTURES=1` draws them again; look at the
//! result before committing it.

use std::{env, fs, path::Path};

use zvf_render::{Background, ColorBy, Colormap, Plot, RenderOptions, Viewpoint, level_statistics};

use crate::{drawn, png, small, stores};

/// Floats of other processors may differ in the last digit, which moves an edge by at most a pixel.
const MAX_CHANGED: f64 = 0.004;
const MAX_DIFFERENCE: u8 = 24;

#[track_caller]
fn check_picture(name: &str, file: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/pictures")
        .join(name);
    if env::var_os("ZVF_UPDATE_PICTURES").is_some() {
        fs::write(&path, file).unwrap();
    }
    let known = fs::read(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
    let ((width, pixels), (known_width, known)) = (png::decode(file), png::decode(&known));
    assert_eq!((width, pixels.len()), (known_width, known.len()), "{name}");
    let differs = |(a, b): &(&[u8; 3], &[u8; 3])| {
        a.iter()
            .zip(*b)
            .any(|(a, b)| a.abs_diff(*b) > MAX_DIFFERENCE)
    };
    let changed = pixels.iter().zip(&known).filter(differs).count();
    let share =
        f64::from(u32::try_from(changed).unwrap()) / f64::from(u32::try_from(known.len()).unwrap());
    assert!(
        share <= MAX_CHANGED,
        "{name}: {changed} pixels of {} differ",
        known.len()
    );
}

async fn check(name: &str, store: &stores::Made, options: &RenderOptions) {
    let rendered = drawn(store, options).await.unwrap();
    assert_eq!(rendered.skipped_vertices, 0);
    check_picture(name, &rendered.picture.png());
}

fn colored(by: &str) -> RenderOptions {
    let mut options = small();
    options.color_by = by.parse().unwrap();
    options.title = Some("Reference".to_owned());
    options
}

/// Points of LAS files were beige, although they have colours.
#[tokio::test]
async fn colours_of_16_bits_are_the_default() {
    let drawn_with = async |rgb: [u16; 6]| {
        let positions = zvf::NumericColumn::float32(3, [0.0, 0.0, 0.0, 1.0, 2.0, 0.0]);
        let mut values = zvf::NumericColumn::new(zvf::numeric::Kind::UInt16, 3);
        values.bytes = rgb.iter().flat_map(|value| value.to_le_bytes()).collect();
        let geometry =
            zvf::Geometry::builder(positions).vertex(vec![zvf::Column::new("rgb", values)]);
        let store = stores::made(zvf::GeometryKind::Points, geometry).await;
        drawn(&store, &small()).await.unwrap().colors
    };
    let colors = drawn_with([65_535, 0, 0, 0, 40_000, 0]).await;
    assert_eq!(colors, "rgb, 0 to 65535 (the range of uint16)");
    // A scanner without a camera.
    assert!(drawn_with([0; 6]).await.starts_with("one colour"));
}

#[tokio::test]
async fn points_in_words_and_numbers() {
    let store = stores::points().await;
    check("points-words.png", &store, &colored("lane")).await;
    let mut options = colored("vertex.height");
    options.view = Some(Viewpoint::ISO.perspective());
    options.background = Background::Light;
    check("points-numbers.png", &store, &options).await;
}

#[tokio::test]
async fn paths_in_directions_and_attributes() {
    let store = stores::paths().await;
    check("paths-orientation.png", &store, &colored("orientation")).await;
    let mut options = colored("fa");
    options.colormap = Colormap::Inferno;
    options.view = Some(Viewpoint::CORONAL);
    check("paths-fa.png", &store, &options).await;
    check("paths-length.png", &store, &colored("object.length")).await;
}

#[tokio::test]
async fn trees_by_object() {
    let store = stores::trees().await;
    let mut options = colored("object");
    options.view = Some(Viewpoint::CORONAL);
    check("trees.png", &store, &options).await;
}

#[tokio::test]
async fn objects_have_distinct_colors_and_a_legend() {
    let store = stores::columns().await;
    let options = colored("object");
    check("objects.png", &store, &options).await;
    let rendered = drawn(&store, &options).await.unwrap();
    assert_eq!(rendered.colors, "object, 20 objects");
    assert_eq!(rendered.notes, [""; 0]);
}

#[tokio::test]
async fn wide_colors_use_their_whole_range() {
    let store = stores::columns().await;
    let mut options = colored("rgb");
    options.annotations = false;
    check("rgb-uint16.png", &store, &options).await;
    let rendered = drawn(&store, &options).await.unwrap();
    assert_eq!(rendered.colors, "rgb, 0 to 65535 (the range of uint16)");
}

#[tokio::test]
async fn coordinates_give_colors() {
    let store = stores::columns().await;
    let options = colored("z");
    check("axis-z.png", &store, &options).await;
    let rendered = drawn(&store, &options).await.unwrap();
    assert_eq!(
        rendered.colors,
        "z (µm), 1.0 to 78.0 (2nd to 98th percentile)"
    );
    let paths = stores::paths().await;
    let mut options = colored("y");
    let kept = drawn(&paths, &options).await.unwrap();
    options.max_cached_vertices = 10;
    let streamed = drawn(&paths, &options).await.unwrap();
    assert_eq!(kept.picture, streamed.picture);
}

#[tokio::test]
async fn text_beyond_ascii_is_drawn_or_noted() {
    let store = stores::columns().await;
    let mut options = colored("class");
    options.title = Some("Zellgröße σ, Клетки".to_owned());
    check("scripts.png", &store, &options).await;
    let rendered = drawn(&store, &options).await.unwrap();
    assert_eq!(
        rendered.notes,
        [
            "the font of pictures lacks some characters: the picture shows Кеиклт in Latin \
             letters and 神経 as code points"
        ]
    );
    options.annotations = false;
    let bare = drawn(&store, &options).await.unwrap();
    assert_eq!(bare.notes, [""; 0]);
}

#[tokio::test]
async fn the_depth_cue_can_be_switched_off() {
    let store = stores::columns().await;
    let mut options = colored("#e69f00");
    let faded = drawn(&store, &options).await.unwrap();
    options.depth_cue = false;
    let plain = drawn(&store, &options).await.unwrap();
    let brightness = |picture: &zvf_render::Picture| -> u64 {
        let parts = picture.pixels().as_flattened().iter();
        parts.map(|part| u64::from(*part)).sum()
    };
    assert!(brightness(&plain.picture) > brightness(&faded.picture));
}

#[tokio::test]
async fn surfaces_are_lit() {
    let store = stores::ring().await;
    check("ring.png", &store, &colored("height")).await;
    let mut options = small();
    options.color_by = ColorBy::Auto;
    options.annotations = false;
    options.view = Some(Viewpoint::AXIAL);
    check("ring-bare.png", &store, &options).await;
}

/// The normals of faces with opposite winding cancelled each other.
#[tokio::test]
async fn surfaces_of_mixed_winding_are_lit_evenly() {
    check(
        "ring.png",
        &stores::rewound_ring().await,
        &colored("height"),
    )
    .await;
}

/// Parts of a face whose interpolated normal points away from the viewer were lit from behind.
#[tokio::test]
async fn faces_of_a_cube_have_no_dark_patches() {
    let geometry = zvf::Geometry::builder(zvf::NumericColumn::float32(
        3,
        (0..8_u8).flat_map(|at| [1, 2, 4].map(|bit| f32::from(u8::from(at & bit > 0)))),
    ))
    .links(
        4,
        vec![
            0, 2, 3, 1, 4, 5, 7, 6, 0, 1, 5, 4, 2, 6, 7, 3, 0, 4, 6, 2, 1, 3, 7, 5,
        ],
    );
    let store = stores::made(zvf::GeometryKind::Mesh, geometry).await;
    let mut options = colored("#ffffff");
    options.annotations = false;
    options.depth_cue = false;
    let rendered = drawn(&store, &options).await.unwrap();
    // Inside the cube, the light changes gradually; its outline has a few such pixels.
    let rows = rendered.picture.pixels().chunks_exact(options.width);
    let steps = rows.flat_map(|row| row.windows(4));
    let is_patch =
        |at: &&[[u8; 3]]| at.iter().all(|pixel| pixel[1] > 50) && at[1][1].abs_diff(at[2][1]) > 25;
    assert!(steps.filter(is_patch).count() < 40);
}

/// Labels of this length were cut at the edge of the picture.
#[tokio::test]
async fn labels_of_a_color_bar_are_inside_the_picture() {
    let values = (0..100_u8).map(|at| -99_990.0 + f64::from(at) * 2e-4);
    let store = stores::precise(values.collect()).await;
    let rendered = drawn(&store, &colored("vertex.value")).await.unwrap();
    let rows = rendered.picture.pixels().chunks_exact(small().width);
    let is_text = |at: &&[u8; 3]| at.iter().all(|part| *part > 90);
    let margin = rows
        .skip(60)
        .take(120)
        .flat_map(|row| &row[row.len() - 9..]);
    assert_eq!(margin.filter(is_text).count(), 0);
}

/// A path along the line of sight had the depth and colour of its first vertex.
#[tokio::test]
async fn a_path_along_the_line_of_sight_shows_its_nearest_vertex() {
    let mut up: Vec<[f32; 3]> = (0..=20_u8)
        .map(|at| [0.0, 0.0, f32::from(at) * 5.0])
        .collect();
    let across = [[-5.0, 0.0, 50.0], [5.0, 0.0, 50.0]];
    let mut options = colored("z");
    options.annotations = false;
    options.view = Some(Viewpoint::AXIAL);
    options.stroke = Some(12.0);
    let mut pictures = Vec::new();
    let there_and_back = [&up[..], &[[0.0; 3]]].concat();
    for reversed in [false, true] {
        if reversed {
            up.reverse();
        }
        let store = stores::lines(&[&across, &up]).await;
        pictures.push(drawn(&store, &options).await.unwrap().picture);
    }
    assert_eq!(pictures[0], pictures[1]);
    let store = stores::lines(&[&across, &there_and_back]).await;
    pictures.push(drawn(&store, &options).await.unwrap().picture);
    for picture in pictures {
        let at = |x: usize| picture.pixels()[picture.height() / 2 * picture.width() + x];
        let ([red, green, blue], beside) = (at(picture.width() / 2), at(20));
        assert!(
            red > 150 && green > 150 && blue < 90,
            "{red} {green} {blue}"
        );
        assert!(beside[0] < 90 && beside[2] > 60, "{beside:?}");
    }
}

#[tokio::test]
async fn lines_without_length_are_drawn_as_balls() {
    let paths = stores::lines(&[&[[0.0; 3]; 3], &[[10.0, 0.0, 0.0]; 2]]).await;
    let geometry =
        zvf::Geometry::builder(zvf::NumericColumn::float32(3, [5.0; 6])).links(2, vec![0, 1]);
    let edges = stores::made(zvf::GeometryKind::Graphs, geometry).await;
    let mut options = colored("#ffffff");
    options.annotations = false;
    options.stroke = Some(8.0);
    for (store, balls) in [(paths, 2), (edges, 1)] {
        let rendered = drawn(&store, &options).await.unwrap();
        let is_bright = |at: &&[u8; 3]| at[0] > 100;
        let bright = rendered.picture.pixels().iter().filter(is_bright).count();
        assert!((30 * balls..64 * balls).contains(&bright), "{bright}");
    }
}

#[tokio::test]
async fn surfaces_have_the_colors_of_their_vertices_by_default() {
    let mut options = small();
    options.view = Some(Viewpoint::AXIAL);
    let rendered = drawn(&stores::tinted().await, &options).await.unwrap();
    assert_eq!(rendered.colors, "tint, 0 to 255 (the range of uint8)");
    let is_red = |[red, green, blue]: &[u8; 3]| *red > 150 && *green < 60 && *blue < 60;
    let pixels = rendered.picture.pixels();
    assert!(pixels.iter().filter(|pixel| is_red(pixel)).count() > 1000);
}

/// Data that is read twice gives the same picture as cached data.
#[tokio::test]
async fn streamed_data_gives_the_same_picture() {
    for (name, store) in [
        ("paths-fa.png", stores::paths().await),
        ("points-words.png", stores::points().await),
    ] {
        let mut options = colored(if name == "paths-fa.png" { "fa" } else { "lane" });
        if name == "paths-fa.png" {
            options.colormap = Colormap::Inferno;
            options.view = Some(Viewpoint::CORONAL);
        }
        let kept = drawn(&store, &options).await.unwrap();
        options.max_cached_vertices = 10;
        let streamed = drawn(&store, &options).await.unwrap();
        assert_eq!(kept.picture, streamed.picture);
        assert_eq!(kept.vertices, streamed.vertices);
    }
}

#[tokio::test]
async fn a_box_clips_paths() {
    let store = stores::paths().await;
    let mut options = colored("fa");
    let bbox = zvf::Bbox::parse("-10,-50,0,10,50,50").unwrap();
    options.selection = zvf::Query::new().region(bbox).mode(zvf::Mode::Clip);
    let rendered = drawn(&store, &options).await.unwrap();
    assert!(
        (50..900).contains(&rendered.vertices),
        "{}",
        rendered.vertices
    );
}

#[tokio::test]
async fn plots_count_vertices() {
    let store = stores::paths().await;
    let dataset = zvf::Dataset::open(&store.address()).await.unwrap();
    let levels = level_statistics(&dataset, &dataset.info().await.unwrap())
        .await
        .unwrap();
    assert_eq!(levels.len(), 1);
    assert_eq!(levels[0].vertices, Some(960));
    assert_eq!(levels[0].chunks.sum, 960);
    assert_eq!(levels[0].fragments.sum, 960);
    assert!(levels[0].fragments.count >= 24);
    let plot = Plot::new("Reference <&>", &levels);
    assert!(plot.svg().contains("Reference &lt;&amp;&gt;"));
    check_picture("plot.png", &plot.picture().png());
}
