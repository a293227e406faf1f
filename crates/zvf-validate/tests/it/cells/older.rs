//! Damage to forms of older generations, and to shards.

use serde_json::{Value, json};
use zvf_testkit::{
    golden::Files,
    stores::{Cells, Recipe, RecipeProfile, StoreKind, make},
};

use super::{
    check_of, found, lines,
    small::{get, put, remove, set, unset},
};

fn made(kind: StoreKind, profile: RecipeProfile, cells: Cells) -> Files {
    let recipe = Recipe {
        kind,
        profile,
        cells,
        seed: 5,
        axes: 2,
        ..Recipe::default()
    };
    assert_eq!(recipe, recipe.clone().possible());
    make(&recipe).files
}

/// Returns the first file of a folder whose name contains a text.
fn file(files: &Files, folder: &str, name: &str) -> String {
    let mut names: Vec<&String> = files.iter().map(|(name, _)| name).collect();
    names.sort();
    let found = names
        .into_iter()
        .find(|file| file.starts_with(&format!("{folder}/")) && file.contains(name));
    found.unwrap_or_else(|| panic!("{folder}: {name}")).clone()
}

fn codes(files: &Files) -> Vec<String> {
    let mut codes: Vec<String> = lines(&found(files));
    for code in &mut codes {
        code.truncate(9);
    }
    codes.sort();
    codes.dedup();
    codes
}

#[test]
fn arrays_of_single_chunks() {
    let files = made(StoreKind::Points, RecipeProfile::V080, Cells::Plain);
    let chunk = {
        let mut chunks = files.iter().filter_map(|(name, _)| {
            let chunk = name.strip_prefix("0/vertices/")?.strip_suffix("/c/0")?;
            Some(chunk.to_owned())
        });
        chunks.next().unwrap()
    };
    let array = format!("0/vertices/{chunk}/zarr.json");
    let edit = |path: Value, value: Value| {
        let array = array.clone();
        move |files: &mut Files| {
            let edit = json!({"op": "set", "file": array, "path": path, "value": value});
            zvf_testkit::damage::apply(files, &edit);
        }
    };
    let unreadable = format!("ZV-L3-002 0/vertices chunk {chunk}");
    let shape = edit(json!(["shape"]), json!([3]));
    // The shape shows their number.
    let cut = format!("ZV-L3-010 0/vertices chunk {chunk}");
    check_of(files.clone(), shape, &[&cut]);
    let two = edit(
        json!(["chunk_grid", "configuration", "chunk_shape"]),
        json!([4]),
    );
    check_of(files.clone(), two, &[&unreadable]);
    let wide = edit(json!(["data_type"]), json!("uint16"));
    check_of(files.clone(), wide, &[&unreadable]);
    check_of(files.clone(), |files| remove(files, &array), &[&unreadable]);
    check_of(
        files.clone(),
        |files| put(files, &format!("0/vertices/{chunk}/c/0"), vec![1, 2, 3]),
        &[&unreadable],
    );
    // An absent chunk reads as zero, which differs from the stored vertices.
    check_of(
        files,
        |files| remove(files, &format!("0/vertices/{chunk}/c/0")),
        &[&unreadable],
    );
}

#[test]
fn shards_up_to_0_8() {
    let files = made(StoreKind::Points, RecipeProfile::V080, Cells::Sharded);
    let shard = file(&files, "0/vertices/__shard_000000", "zarr.json");
    let copies: Vec<(String, Vec<u8>)> = files
        .iter()
        .filter(|(name, _)| name.starts_with("0/vertices/__shard_000000/"))
        .map(|(name, bytes)| {
            (
                name.replace("__shard_000000", "__shard_000077"),
                bytes.clone(),
            )
        })
        .collect();
    let mut twice = files.clone();
    twice.extend(copies);
    assert_eq!(codes(&twice), ["ZV-L3-009"]);
    let mut odd = files.clone();
    unset(&mut odd, &shard, &["shard_index"]);
    assert!(codes(&odd).contains(&"ZV-L3-004".to_owned()));
    let mut short = files;
    let node: Value = serde_json::from_slice(&get(&short, &shard)).unwrap();
    let index = node["attributes"]["shard_index"].as_object().unwrap();
    let (chunk, span) = index.iter().next().unwrap();
    let less = json!([span[0], span[1].as_u64().unwrap() - 1]);
    set(&mut short, &shard, &["shard_index", chunk], less);
    assert!(codes(&short).contains(&"ZV-L3-010".to_owned()));
}

#[test]
fn shards_of_0_9() {
    let recipe = Recipe {
        cells: Cells::Sharded,
        seed: 5,
        attributes: false,
        ..Recipe::default()
    };
    let files = make(&recipe).files;
    let node: Value = serde_json::from_slice(&get(&files, "0/vertex_fragments/zarr.json")).unwrap();
    let chunks = node["attributes"]["nonempty_chunks"].as_array().unwrap();
    let (gone, rest) = chunks.split_first().unwrap();
    let gone = gone.as_str().unwrap();
    check_of(
        files.clone(),
        |files| {
            set(
                files,
                "0/vertex_fragments/zarr.json",
                &["nonempty_chunks"],
                json!(rest),
            );
        },
        &[
            "ZV-L3-006 0/vertex_fragments attributes.nonempty_chunks",
            &format!("ZV-L3-023 0/vertex_fragments chunk {gone}"),
        ],
    );
    let shard = file(&files, "0/vertices/c", "");
    let mut damaged = files;
    let mut bytes = get(&damaged, &shard);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    put(&mut damaged, &shard, bytes);
    assert_eq!(codes(&damaged), ["ZV-L3-002"]);
}

#[test]
fn padded_arrays() {
    let files = made(StoreKind::Points, RecipeProfile::Padded, Cells::Plain);
    let cell = file(&files, "0/vertices/c", "");
    let full = |files: &Files| lines(&found(files));
    // The fullest chunk may have spare rows, or another chunk is larger.
    let mut any = false;
    let cells: Vec<String> = files
        .iter()
        .filter(|(name, _)| name.starts_with("0/vertices/c/"))
        .map(|(name, _)| name.clone())
        .collect();
    for cell in cells {
        let mut damaged = files.clone();
        let mut bytes = get(&damaged, &cell);
        let last = bytes.len() - 1;
        if bytes[last] == 0 {
            bytes[last] = 0x40;
            put(&mut damaged, &cell, bytes);
            let found = full(&damaged);
            any |= found
                .iter()
                .any(|line| line.starts_with("ZV-L3-015 0/vertices"));
        }
    }
    assert!(any);
    // Rows of an absent chunk have the fill value, which is in another chunk.
    let mut damaged = files.clone();
    remove(&mut damaged, &cell);
    let found = full(&damaged);
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("ZV-L3-0") && line.contains("0/vertices")),
        "{found:?}"
    );
    // Vertices without a fragment index are taken as padding.
    let mut damaged = files;
    let index = file(&damaged, "0/vertex_fragments", "/zarr.json");
    let index = match index.as_str() {
        "0/vertex_fragments/zarr.json" => {
            let mut chunks = damaged.iter().filter_map(|(name, _)| {
                let chunk = name.strip_prefix("0/vertex_fragments/")?;
                chunk.strip_suffix("/zarr.json")
            });
            format!("0/vertex_fragments/{}", chunks.next().unwrap())
        }
        _ => index.replace("/zarr.json", ""),
    };
    remove(&mut damaged, &index);
    let found = full(&damaged);
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("ZV-L3-015 0/vertices")),
        "{found:?}"
    );
}

#[test]
fn chunks_of_an_attribute() {
    let recipe = Recipe {
        kind: StoreKind::ObjectPoints,
        chunked: true,
        seed: 4,
        ..Recipe::default()
    };
    let made = make(&recipe);
    let (name, values) = made.truth.chunked_by.clone().unwrap();
    let level = "0/zarr.json";
    let path = ["zarr_vectors_level", "chunk_attribute_values"];
    let mut damaged = made.files.clone();
    set(
        &mut damaged,
        level,
        &path,
        json!(values[..values.len() - 1]),
    );
    let found = codes(&damaged);
    assert!(found.contains(&"ZV-L3-016".to_owned()), "{name}: {found:?}");
}

#[test]
fn masks() {
    let all = (0..40).map(|seed| {
        let recipe = Recipe {
            kind: StoreKind::Graph,
            profile: RecipeProfile::V080,
            seed,
            ..Recipe::default()
        };
        make(&recipe).files
    });
    let mut masks = 0;
    for files in all {
        let object = |end: &str| {
            let mut names = files
                .iter()
                .map(|(name, _)| name)
                .filter(|name| name.starts_with("0/object_attributes/"));
            names.find(|name| name.ends_with(end)).cloned()
        };
        if let Some(mask) = object("/present_mask/c/0") {
            masks += 1;
            let mut odd = files.clone();
            let mut bytes = get(&odd, &mask);
            bytes[0] = 7;
            put(&mut odd, &mask, bytes);
            assert_eq!(codes(&odd), ["ZV-L3-063"]);
        }
    }
    assert!(masks > 0);
}
