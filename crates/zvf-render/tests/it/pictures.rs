//! Reference pictures, in `tests/pictures`. `ZVF_UPDATE_PICTURES=1` draws them anew; look at them.

use std::{env, fs, path::Path};

use zvf_render::{Background, ColorBy, Colormap, Plot, RenderOptions, Viewpoint, level_statistics};

use crate::{drawn, png, small, stores};

/// Floats of other processors may differ in the last place, which moves an edge by a dot at most.
const MOST_CHANGED: f64 = 0.004;
const MUCH: u8 = 24;

#[track_caller]
fn check_picture(name: &str, file: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/pictures")
        .join(name);
    if env::var_os("ZVF_UPDATE_PICTURES").is_some() {
        fs::write(&path, file).unwrap();
    }
    let known = fs::read(&path).unwrap_or_else(|_| panic!("{} is not there", path.display()));
    let ((width, dots), (known_width, known)) = (png::decode(file), png::decode(&known));
    assert_eq!((width, dots.len()), (known_width, known.len()), "{name}");
    let differs =
        |(a, b): &(&[u8; 3], &[u8; 3])| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > MUCH);
    let changed = dots.iter().zip(&known).filter(differs).count();
    let share =
        f64::from(u32::try_from(changed).unwrap()) / f64::from(u32::try_from(known.len()).unwrap());
    assert!(
        share <= MOST_CHANGED,
        "{name}: {changed} dots of {} are others",
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
async fn surfaces_are_lit() {
    let store = stores::ring().await;
    check("ring.png", &store, &colored("height")).await;
    let mut options = small();
    options.color_by = ColorBy::Auto;
    options.annotations = false;
    options.view = Some(Viewpoint::AXIAL);
    check("ring-bare.png", &store, &options).await;
}

/// What is read twice is drawn as what is kept.
#[tokio::test]
async fn what_is_not_kept_looks_the_same() {
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
async fn a_box_is_cut_out() {
    let store = stores::paths().await;
    let mut options = colored("fa");
    options.bbox = Some(zvf::query::geometry::Bbox::parse("-10,-50,0,10,50,50").unwrap());
    let rendered = drawn(&store, &options).await.unwrap();
    assert!(
        (50..900).contains(&rendered.vertices),
        "{}",
        rendered.vertices
    );
}

#[tokio::test]
async fn plots_count_what_is_there() {
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
