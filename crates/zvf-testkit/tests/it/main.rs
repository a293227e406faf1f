//! Every codec is covered by the probes and the fuzzers.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use zvf_testkit::{golden, laws, sample, walk};

/// Crates that have their laws next to their tests: `zvf-dense` and so on. The names of their fuzz
/// targets begin with the name of the crate.
const BEYOND: [&str; 4] = ["dense", "files", "model", "precomputed"];

fn names<T>(list: &[(&str, T)]) -> BTreeSet<String> {
    let names: BTreeSet<_> = list.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(names.len(), list.len(), "a name stands twice");
    names
}

/// Returns the names of the public functions whose line ends with `signature`, in `src/<module>.rs`
/// and the files below `src/<module>/`.
fn defined(module: &str, signature: &str) -> BTreeSet<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![src.join(format!("{module}.rs"))];
    files.extend(files_in(&src.join(module)));
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        let functions = text.lines().filter_map(|line| line.strip_prefix("pub fn "));
        let ours = functions.filter_map(|line| line.strip_suffix(signature));
        names.extend(ours.map(str::to_owned));
    }
    names
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_walk_is_in_the_list_that_the_probes_link() {
    assert_eq!(
        names(walk::ALL),
        defined("walk", "(bytes: &[u8]) -> Option<u64> {")
    );
}

#[test]
fn every_law_is_in_its_list() {
    assert_eq!(names(laws::ALL), defined("laws", "(bytes: &[u8]) {"));
}

#[test]
fn every_codec_has_a_walk_and_a_law() {
    assert_eq!(names(walk::ALL), names(laws::ALL));
}

#[test]
fn every_law_has_a_fuzz_target() {
    let fuzz = golden::testdata().join("../fuzz");
    let targets: BTreeSet<_> = files_in(&fuzz.join("fuzz_targets"))
        .iter()
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    let (beyond, of_codecs) = targets
        .iter()
        .partition::<BTreeSet<_>, _>(|name| BEYOND.iter().any(|of| name.starts_with(of)));
    assert_eq!(of_codecs, names(laws::ALL).iter().collect());
    for target in beyond {
        let (of, law) = target.split_once('_').unwrap();
        // The law of a target, or one of all formats of a crate.
        let paths = [law, of].map(|name| format!("../crates/zvf-{of}/tests/laws/{name}.rs"));
        assert!(
            paths
                .iter()
                .any(|path| golden::testdata().join(path).exists()),
            "{target} has no law"
        );
    }
    let manifest = fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
    for target in targets {
        let path = format!("path = \"fuzz_targets/{target}.rs\"");
        assert!(manifest.contains(&path), "{target} has no [[bin]]");
    }
}

#[test]
fn a_scale_is_a_positive_number() {
    assert_eq!(sample::scale_of("8"), 8);
    for text in ["", "0", "-1", "many"] {
        let read = std::panic::catch_unwind(|| sample::scale_of(text));
        assert!(read.is_err(), "{text}");
    }
}
