//! The command as a user runs it, and its parts.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod arguments;
mod attributes;
mod b2nd;
mod budget;
mod carried;
mod changed;
#[cfg(feature = "arrow")]
mod columnar;
mod completions;
mod convert;
mod create;
mod csv;
mod damaged_input;
mod doctor;
#[cfg(feature = "render")]
mod drawn;
mod embedded;
mod export;
mod files;
mod first_files;
mod fragments;
#[cfg(target_os = "linux")]
mod full_disk;
mod recorded_queries;
mod results;
// The pages write Parquet, and their blocks need `sh`.
#[cfg(all(unix, feature = "parquet"))]
mod guide;
mod hand_made;
mod hostile_names;
mod imported;
mod info;
#[cfg(unix)]
mod interrupted;
mod labels;
mod links;
mod made;
mod man;
mod messages;
mod migrate;
mod misspelt;
mod notes;
mod npz;
mod obj;
mod ply;
mod properties;
mod pyramid;
mod query;
mod report;
mod round_trip;
mod rows;
mod sample;
mod shared;
mod stores;
mod tables;
#[cfg(unix)]
mod tasks;
#[cfg(target_os = "linux")]
mod terminal;
mod tet;
mod validate;
mod winding;

#[cfg(all(unix, feature = "serve"))]
mod serve;
#[cfg(all(unix, feature = "http"))]
mod servers;
#[cfg(feature = "http")]
mod web;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use zvf_testkit::golden::Golden;

fn zvf(arguments: &[&str]) -> Output {
    let command = Command::new(env!("CARGO_BIN_EXE_zvf"))
        .args(arguments)
        .output();
    command.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap()
}

/// Extracts a recorded store to a folder.
fn unpack(archive: &str, store: &str, folder: &Path) {
    let golden = Golden::open(archive);
    let prefix = format!("{store}/");
    for (path, bytes) in golden.files() {
        let Some(key) = path.strip_prefix(&prefix) else {
            continue;
        };
        let file = folder.join(key);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
}
