//! `zvf demo`, `zvf render` and `zvf info --plot`, as a user runs them.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{text, zvf};

#[track_caller]
fn json(arguments: &[&str]) -> Value {
    let output = zvf(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn refused(arguments: &[&str], why: &str) {
    let output = zvf(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(
        text(&output.stderr).contains(why),
        "{}",
        text(&output.stderr)
    );
}

/// Returns width and height of a PNG file.
fn sides(path: &Path) -> [u32; 2] {
    let bytes = fs::read(path).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    [side(16), side(20)]
}

/// One demo serves all checks because creating it takes the longest.
#[test]
fn a_demo_can_be_created_queried_and_drawn() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("demo");
    let demo = folder.to_str().unwrap();
    let done = json(&["demo", demo, "--small", "--json"]);
    let stores = done["stores"].as_array().unwrap();
    assert_eq!(stores.len(), 4);
    for store in stores {
        assert_eq!(store["errors"], 0, "{store}");
        let vertices: Vec<u64> = store["vertices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect();
        assert!(
            vertices.len() >= 2 && vertices.is_sorted_by(|a, b| a > b),
            "{store}"
        );
    }
    for query in done["queries"].as_array().unwrap() {
        assert!(query["vertices"].as_u64() > Some(0), "{query}");
        assert!(
            query["requests"].as_u64() >= query["planned"]["requests"].as_u64(),
            "{query}"
        );
    }
    assert_eq!(done["queries"].as_array().unwrap().len(), 5);
    for picture in ["tracts", "neurons", "cells", "surface"] {
        assert_eq!(
            sides(&folder.join(picture).with_extension("png")),
            [480, 360]
        );
    }
    let same = scratch.path().join("again");
    json(&["demo", same.to_str().unwrap(), "--small", "--json"]);
    for picture in ["tracts.png", "neurons.png", "cells.png", "surface.png"] {
        assert!(fs::read(folder.join(picture)).unwrap() == fs::read(same.join(picture)).unwrap());
    }
    refused(&["demo", demo, "--small"], "is not empty");

    commands_of_the_demo_do(&done, demo);
    stores_are_drawn(&folder);
}

/// Runs the commands that the demo suggests.
fn commands_of_the_demo_do(done: &Value, demo: &str) {
    let queries = done["queries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|query| &query["command"]);
    for command in done["next"].as_array().unwrap().iter().chain(queries) {
        let mut words: Vec<String> = Vec::new();
        for (at, quoted) in command.as_str().unwrap().split('"').enumerate() {
            match at % 2 {
                1 => words.push(quoted.to_owned()),
                _ => words.extend(quoted.split_whitespace().map(str::to_owned)),
            }
        }
        for word in &mut words {
            if word == "picture.png" {
                *word = format!("{demo}/picture.png");
            }
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // Ends with Ctrl-C; `serve::a_page_shows_stores_and_ends_with_sigint` runs it.
        if words[1] == "view" {
            continue;
        }
        let output = zvf(&words[1..]);
        assert!(
            output.status.success(),
            "{command}: {}",
            text(&output.stderr)
        );
    }
}

fn stores_are_drawn(folder: &Path) {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (tracts, picture) = (path("tracts.zv"), path("drawn.png"));
    let drawn = json(&[
        "render",
        &tracts,
        "-o",
        &picture,
        "--size",
        "200x120",
        "--budget",
        "5000",
        "--json",
        "--bbox",
        "-20,-40,-20,20,20,40",
        "--color",
        "object.length",
        "--background",
        "light",
    ]);
    assert_eq!(sides(Path::new(&picture)), [200, 120]);
    let vertices = drawn["vertices"].as_u64().unwrap();
    assert!((1..=5000).contains(&vertices), "{drawn}");
    assert_eq!(drawn["left_out"], 0);

    let colors = drawn["colors"].as_str().unwrap();
    assert!(
        colors.starts_with("length, ") && colors.ends_with("(2nd to 98th percentile)"),
        "{colors}"
    );
    let by_axis = zvf(&[
        "render",
        &tracts,
        "-o",
        &picture,
        "--size",
        "200x120",
        "--budget",
        "5000",
        "--color",
        "z",
        "--no-depth-cue",
    ]);
    assert!(
        text(&by_axis.stdout).contains("(colours: z (mm), "),
        "{}{}",
        text(&by_axis.stdout),
        text(&by_axis.stderr)
    );

    let before = fs::read(&picture).unwrap();
    refused(
        &["render", &tracts, "-o", &picture, "--color", "lenght"],
        "lenght",
    );
    refused(
        &["render", &tracts, "-o", &picture, "--size", "9x9"],
        "9 × 9",
    );
    refused(
        &["render", &tracts, "-o", &path("drawn.jpg")],
        "must end in .png",
    );
    refused(
        &["render", &tracts, "-o", &path("absent/drawn.png")],
        "create it first",
    );
    refused(
        &[
            "render",
            &tracts,
            "-o",
            &picture,
            "--bbox",
            "900,900,900,999,999,999",
        ],
        "nothing to draw",
    );
    // A failed rendering keeps the previous picture.
    assert!(fs::read(&picture).unwrap() == before);

    let plot = path("plot.svg");
    assert!(zvf(&["info", &tracts, "--plot", &plot]).status.success());
    let svg = fs::read_to_string(&plot).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("level 0") && svg.ends_with("</svg>\n"));
    refused(
        &["info", &tracts, "--plot", &path("plot.pdf")],
        ".png or .svg",
    );
}
