//! Commands that another program runs.

use std::{fs, path::Path};

use zvf_cli::{CommandFailure, CommandReport, StopFlag, report};

fn run(words: &[&str], stop: &StopFlag) -> Result<CommandReport, CommandFailure> {
    report(words.iter().map(Into::into).collect(), stop)
}

/// Writes a cloud as a table, a store and a `.las`, and a volume.
fn samples(folder: &Path) {
    fs::write(folder.join("cloud.csv"), "x,y,z\n0,0,0\n1,2,3\n").unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let none = StopFlag::default();
    run(
        &[
            "zvf",
            "create",
            &at("cloud.zv"),
            "--kind=points",
            "--from",
            &at("cloud.csv"),
        ],
        &none,
    )
    .unwrap();
    run(
        &[
            "zvf",
            "convert",
            &at("cloud.csv"),
            &at("cloud.las"),
            "--kind=points",
        ],
        &none,
    )
    .unwrap();
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";
    let header = format!("{header:<117}\n");
    let npy = [
        b"\x93NUMPY\x01\x00\x76\x00",
        header.as_bytes(),
        &[0, 1, 2, 3, 4, 5],
    ]
    .concat();
    fs::write(folder.join("volume.npy"), npy).unwrap();
}

#[test]
fn a_report_has_what_the_command_prints() {
    let folder = tempfile::tempdir().unwrap();
    samples(folder.path());
    let store = folder.path().join("cloud.zv").display().to_string();
    let none = StopFlag::default();
    let found = run(&["zvf", "query", &store, "--count", "--json"], &none).unwrap();
    assert!(found.text.contains("\"vertices\": 2"), "{}", found.text);
    assert!(!found.is_negative);
    let empty = [
        "zvf",
        "query",
        &store,
        "--where",
        "x > 9",
        "--fail-empty",
        "--json",
    ];
    assert!(run(&empty, &none).unwrap().is_negative);
    match run(&["zvf", "query", "absent.zv"], &none) {
        Err(CommandFailure::Failed(why)) => assert!(why.contains("absent.zv"), "{why}"),
        other => panic!("{other:?}"),
    }
    match run(&["zvf", "query", &store, "--limi", "3"], &none) {
        Err(CommandFailure::Usage(why)) => assert!(why.contains("--limit"), "{why}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_stopped_command_publishes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    samples(folder.path());
    let at = |name: &str| folder.path().join(name).display().to_string();
    let stop = StopFlag::default();
    stop.stop();
    for words in [
        &["convert", &at("cloud.las"), &at("out.laz")][..],
        &["convert", &at("cloud.csv"), &at("out.ply"), "--kind=points"],
        &["tet", "convert", &at("volume.npy"), &at("out.tet")],
        &["tet", "convert", &at("volume.npy"), &at("out.b2nd")],
    ] {
        let words = [&["zvf"], words].concat();
        match run(&words, &stop) {
            Err(CommandFailure::Failed(why)) => assert!(why.contains("stopped"), "{why}"),
            other => panic!("{words:?}: {other:?}"),
        }
    }
    let names = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let made: Vec<String> = names
        .filter(|name| name.starts_with("out") || name.starts_with('.'))
        .collect();
    assert_eq!(made, Vec::<String>::new());
}
