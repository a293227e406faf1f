//! Suggestions for misspelled names, and colours.

use std::{fs, process::Command};

use crate::{text, unpack, zvf};

#[track_caller]
fn refused(words: &[&str], hint: &str) {
    let output = zvf(words);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains(hint), "{said}");
}

#[test]
fn misspelled_commands_and_options_get_a_suggestion() {
    refused(&["qeury"], "'query'");
    refused(&["query", "a.zv", "--bbx", "1"], "'--bbox'");
}

#[test]
fn misspelled_attributes_axes_and_columns_get_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    unpack(
        "zvf-09",
        "points_attributes/store.zarrvectors",
        &folder.path().join("a.zv"),
    );
    fs::write(at("a.csv"), "X,y,z\n1,2,3\n").unwrap();
    refused(
        &["query", &at("a.zv"), "--where", "flga"],
        "did you mean flag?",
    );
    refused(
        &["query", &at("a.zv"), "--select", "vertex.qaut"],
        "did you mean vertex.quat?",
    );
    for count in [&["--count"][..], &[]] {
        let line = ["query", &at("a.zv"), "--select", "flga"];
        refused(&[&line, count].concat(), "there is no attribute flga");
        let line = ["query", &at("a.zv"), "--select", "vertex.qaut"];
        refused(&[&line, count].concat(), "did you mean vertex.quat?");
    }
    // The store is too small for a level.
    refused(
        &["pyramid", &at("a.zv"), "--attribute", "falg=max"],
        "did you mean flag?",
    );
    refused(
        &[
            "create",
            &at("b.zv"),
            "--kind",
            "points",
            "--from",
            &at("a.csv"),
            "--axes",
            "x,y,z",
        ],
        "did you mean X?",
    );
}

/// Output that is not a terminal has no colours; `NO_COLOR` overrides variables that request them.
#[test]
fn colours_are_used_on_terminals_only() {
    let said = |settings: &[(&str, &str)]| {
        let output = Command::new(env!("CARGO_BIN_EXE_zvf"))
            .args(["info", "absent.zv"])
            .env_remove("NO_COLOR")
            .envs(settings.iter().copied())
            .output();
        text(&output.unwrap().stderr).to_owned()
    };
    let plain = said(&[]);
    assert!(
        plain.starts_with("error: absent.zv does not exist"),
        "{plain}"
    );
    assert!(said(&[("CLICOLOR_FORCE", "1")]).contains("\u{1b}["));
    assert!(!said(&[("NO_COLOR", "1")]).contains('\u{1b}'));
}

#[test]
fn frequent_mistakes_get_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zv");
    unpack("zvf-09", "points_attributes/store.zarrvectors", &store);
    let at = store.to_str().unwrap();
    let word = "put text to compare with in single quotes, as 'zzzzzz'";
    refused(&["query", at, "--where", "flag = zzzzzz"], word);
    refused(
        &["query", at, "--budget", "1"],
        "raise --budget or narrow the query",
    );
    let level = store.join("0");
    refused(
        &["info", level.to_str().unwrap()],
        "give the root of a store, the folder",
    );
    refused(
        &["create", "b.zv", "--from", "a.trk"],
        "the file does not exist",
    );
}

#[test]
fn a_box_outside_the_store_reports_the_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("a.zv");
    unpack("zvf-09", "points_attributes/store.zarrvectors", &store);
    let said = |bbox: &str| {
        let output = zvf(&["query", store.to_str().unwrap(), "--bbox", bbox, "--count"]);
        assert!(output.status.success());
        text(&output.stderr).to_owned()
    };
    let outside = said("1e6,1e6,1e6,2e6,2e6,2e6");
    assert!(
        outside.contains("the box lies outside the store, whose"),
        "{outside}"
    );
    assert_eq!(said("-1e6,-1e6,-1e6,1e6,1e6,1e6"), "");
}
