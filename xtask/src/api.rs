//! `docs/api/*.txt`: the public items of every published library, one per line, so that a review
//! shows each change.
//!
//! The crate `public-api` reads rustdoc's JSON output, which is unstable. `RUSTC_BOOTSTRAP=1` enables
//! it on the stable toolchain. Only rustdoc gets this variable, through a wrapper script, so that
//! nothing is recompiled.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{metadata, run::cargo, stage::Done, workspace};

const FOLDER: &str = "docs/api";
/// The library that most users name, and the number of its own items, re-exports included. Seven are
/// the parts of a geometry, its error, and the owners of vertices.
const FACADE: &str = "zvf";
const MAX_ITEMS: usize = 335;
/// A program, whose library exists for its tests.
const PROGRAM: &str = "zvf-cli";
/// Structs of options whose names do not say so.
const OPTIONS: [&str; 6] = [
    "AttributeSpec",
    "AutoLevels",
    "AxisSpec",
    "Design",
    "Query",
    "VertexBudget",
];

/// Writes the lists, or compares them. Findings of rustdoc's lints are errors in both cases.
pub(crate) fn listed(check: bool) -> Result<Done> {
    if !cfg!(unix) {
        return Ok(Done::Skipped(
            "the rustdoc wrapper is a shell script".to_owned(),
        ));
    }
    document(&wrapper()?)?;
    let folder = workspace::root().join(FOLDER);
    fs::create_dir_all(&folder)?;
    let mut stale = Vec::new();
    let mut all = Vec::new();
    for package in metadata::published()? {
        let library = package["name"].as_str().context("a package has no name")?;
        if library == PROGRAM {
            continue;
        }
        let items = items(library)?;
        ensure!(
            library != FACADE || items.len() <= MAX_ITEMS,
            "{FACADE} has {} public items, more than {MAX_ITEMS}: leave what few users need to its \
             own crate, or raise the limit of xtask/src/api.rs and say why",
            items.len()
        );
        let list = items.join("\n") + "\n";
        all.extend(items);
        let file = folder.join(format!("{library}.txt"));
        if fs::read_to_string(&file).unwrap_or_default() == list {
            continue;
        }
        stale.push(library);
        if !check {
            fs::write(&file, list)?;
        }
    }
    let missing = without_setters(&all);
    ensure!(
        missing.is_empty(),
        "options without a setter: {}",
        missing.join(", ")
    );
    let untyped = with_json_values(&all);
    ensure!(
        untyped.is_empty(),
        "items of {FACADE} with a type of serde_json instead of {FACADE}::Json: {}",
        untyped.join(", ")
    );
    ensure!(
        !check || stale.is_empty(),
        "{FOLDER} does not list the public items of {}; run `cargo xtask api` and describe the \
         change in CHANGELOG.md",
        stale.join(", ")
    );
    println!("{FOLDER}: {} changed", stale.len());
    Ok(Done::Passed)
}

fn wrapper() -> Result<PathBuf> {
    let file = metadata::scratch("xtask")?.join("rustdoc-json");
    fs::write(&file, "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n")?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
    }
    Ok(file)
}

/// Documents every library as JSON. One build documents all, with the features of `cargo doc` in CI,
/// so that nothing is compiled for it.
fn document(wrapper: &Path) -> Result<()> {
    // Items behind a feature are public too.
    cargo("doc --quiet --locked --workspace --lib --no-deps --all-features")
        .env("RUSTDOC", wrapper)
        .env(
            "RUSTDOCFLAGS",
            "-Z unstable-options --output-format json -D warnings",
        )
        .run()
}

/// Returns the public items of a library without implementations that are automatic, blanket or derived.
fn items(library: &str) -> Result<Vec<String>> {
    let file = metadata::scratch("doc")?.join(format!("{}.json", library.replace('-', "_")));
    let api = public_api::Builder::from_rustdoc_json(&file)
        .omit_blanket_impls(true)
        .omit_auto_trait_impls(true)
        .omit_auto_derived_impls(true)
        .build()
        .with_context(|| file.display().to_string())?;
    Ok(api.items().map(ToString::to_string).collect())
}

/// Returns the fields of structs of options that the façade re-exports and that have no setter of their
/// name, in a struct whose `new` takes no value of their type. A field of several values may have a setter that adds one, in the
/// singular.
fn without_setters(items: &[String]) -> Vec<String> {
    let setters: BTreeSet<&str> = items
        .iter()
        .filter_map(|item| item.strip_prefix("pub fn ")?.split_once("(self, "))
        .map(|(path, _)| path)
        .collect();
    let exported = exported(items);
    let is_set = |path: &str| {
        setters.contains(path)
            || path
                .strip_suffix('s')
                .is_some_and(|it| setters.contains(it))
    };
    let is_given = |owner: &str, field: &str| {
        let new = format!("{owner}::new(");
        let found = items.iter().find(|item| item.contains(&new));
        found.is_some_and(|new| new.contains(field))
    };
    let fields = items.iter().filter_map(|item| {
        let (path, of) = item.strip_prefix("pub ")?.split_once(": ")?;
        let (owner, _) = path.rsplit_once("::")?;
        let (_, name) = owner.rsplit_once("::")?;
        let is_option = name.ends_with("Options") || OPTIONS.contains(&name);
        (is_option && exported.contains(name) && !is_set(path) && !is_given(owner, of))
            .then(|| path.to_owned())
    });
    fields.collect()
}

/// Returns the names that the façade re-exports.
fn exported(items: &[String]) -> BTreeSet<&str> {
    let own = format!("pub use {FACADE}::");
    let paths = items.iter().filter_map(|item| item.strip_prefix(&own));
    paths.filter_map(|path| path.rsplit("::").next()).collect()
}

/// Returns the fields and functions of the façade, or of a type that it re-exports, that have values of
/// `serde_json`.
fn with_json_values(items: &[String]) -> Vec<&str> {
    let own = format!("{FACADE}::");
    let exported = exported(items);
    let of_json = items.iter().filter(|item| {
        let word = item.split(['(', ' ']).find(|word| word.contains("::"));
        let path = word.unwrap_or_default().trim_end_matches(':');
        let (owner, name) = path.rsplit_once("::").unwrap_or_default();
        let is_exported = path.starts_with(&own)
            || owner
                .rsplit("::")
                .next()
                .is_some_and(|name| exported.contains(name));
        // Conversions are for programs that use `serde_json` themselves.
        let converts = matches!(name, "as_ref" | "from");
        item.contains("serde_json::value::Value") && is_exported && !converts
    });
    of_json.map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(items: &[&str]) -> Vec<String> {
        let items: Vec<String> = items.iter().map(ToString::to_string).collect();
        without_setters(&items)
    }

    #[test]
    fn a_field_needs_a_setter_or_an_argument_of_new() {
        let items = [
            "pub use zvf::Design",
            "pub z::Design::kind: z::Kind",
            "pub z::Design::name: z::Name",
            "pub z::Design::rules: alloc::vec::Vec<z::Rule>",
            "pub fn z::Design::name(self, z::Name) -> Self",
            "pub fn z::Design::new(z::Kind) -> Self",
            "pub fn z::Design::rule(self, z::Rule) -> Self",
            "pub z::Report::rows: u64",
        ];
        assert!(missing(&items).is_empty());
        let bare = [
            "pub use zvf::OpenOptions",
            "pub z::OpenOptions::a: u8",
            "pub fn z::OpenOptions::new() -> Self",
        ];
        assert_eq!(missing(&bare), ["z::OpenOptions::a"]);
    }

    #[test]
    fn types_of_serde_json_are_found_behind_the_facade() {
        let items = [
            "pub use zvf::Query",
            "pub z::Query::crs: core::option::Option<serde_json::value::Value>",
            "pub fn zvf::plan(recipe: serde_json::value::Value)",
            "pub fn z::Plan::from_json(json: &serde_json::value::Value) -> Self",
            "pub fn z::Query::from(serde_json::value::Value) -> Self",
        ];
        let items = items.map(str::to_owned);
        assert_eq!(with_json_values(&items), [&items[1], &items[2]]);
    }
}
