//! The short loop of development: format, tidy, clippy, and the tests of changed crates and of
//! crates that depend on them.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    memory_folder::MemoryFolder,
    metadata,
    run::{cargo, default_features, exists, program},
    stage::{Done, Stages},
    test::{Choice, filtered},
    tidy, workspace,
};

/// Default base for comparisons: the first that exists.
const BASES: [&str; 3] = ["@{upstream}", "origin/main", "HEAD"];

pub(crate) fn all(since: Option<&str>) -> Stages {
    let mut stages = Stages::default();
    stages
        .run("format", 20, || {
            cargo("fmt --all --check").run()?;
            Ok(Done::Passed)
        })
        .run("tidy", 30, tidy::all)
        .run("clippy", 600, || {
            cargo("clippy --quiet --workspace --all-targets --locked -- -D warnings").run()?;
            Ok(Done::Passed)
        })
        .run("tests", 1200, || tests(since));
    stages
}

fn tests(since: Option<&str>) -> Result<Done> {
    let packages = packages()?;
    let affected = affected(&packages, &changed_files(since)?);
    if affected.is_empty() {
        println!("no crate changed");
        return Ok(Done::Passed);
    }
    let names: Vec<&str> = affected.iter().copied().collect();
    println!("{}", names.join(", "));
    let tests = if exists("cargo-nextest") {
        // Packages built by themselves have other features than in the workspace, and would be compiled
        // again.
        let packages = names.iter().map(|name| format!("package(={name})"));
        let filter = packages.collect::<Vec<_>>().join(" | ");
        let run = default_features(Choice::Quick.runner()).arg("--no-tests=pass");
        run.arg("--filterset").arg(filter)
    } else {
        let run = cargo(Choice::Quick.runner()).arg("--locked");
        let tests = affected
            .iter()
            .fold(run, |run, name| run.arg("--package").arg(name));
        filtered(tests, Choice::Quick)?
    };
    let folder = MemoryFolder::new();
    folder.set(tests).run()?;
    Ok(Done::Passed)
}

/// Files that differ from `since`, committed or not, relative to the workspace.
fn changed_files(since: Option<&str>) -> Result<Vec<String>> {
    let base = match since {
        Some(base) => base.to_owned(),
        None => default_base()?,
    };
    let fork = program("git")
        .words("merge-base HEAD")
        .arg(&base)
        .read()
        .with_context(|| format!("no common commit with {base}; name one with --since"))?;
    let mut list = program("git")
        .words("diff --name-only -z")
        .arg(fork.trim())
        .read()?;
    list.push_str(
        &program("git")
            .words("ls-files -z --others --exclude-standard")
            .read()?,
    );
    let files = list.split('\0').filter(|file| !file.is_empty());
    Ok(files.map(str::to_owned).collect())
}

fn default_base() -> Result<String> {
    ensure!(
        workspace::root().join(".git").exists(),
        "changes are found with git, and this folder is not a repository"
    );
    for base in BASES {
        let verify = program("git").words("rev-parse --verify --quiet").arg(base);
        if verify.output()?.status.success() {
            return Ok(base.to_owned());
        }
    }
    Ok("HEAD".to_owned())
}

/// A package of the workspace: its folder, and the packages of the workspace it is built with.
struct Package {
    name: String,
    folder: String,
    uses: Vec<String>,
}

fn packages() -> Result<Vec<Package>> {
    let root = metadata::read()?["workspace_root"]
        .as_str()
        .context("no workspace root")?;
    let package = |package: &Value| -> Option<Package> {
        let manifest = package["manifest_path"].as_str()?;
        let folder = manifest.strip_prefix(root)?.strip_suffix("Cargo.toml")?;
        let uses = package["dependencies"]
            .as_array()?
            .iter()
            .filter(|dependency| !dependency["path"].is_null());
        Some(Package {
            name: package["name"].as_str()?.to_owned(),
            folder: folder.trim_start_matches('/').to_owned(),
            uses: uses
                .filter_map(|it| it["name"].as_str().map(str::to_owned))
                .collect(),
        })
    };
    Ok(metadata::members()?
        .into_iter()
        .filter_map(package)
        .collect())
}

/// The packages that `files` may change the tests of, in order of their names.
///
/// A file of no package, such as test data or a guide page, affects every package.
fn affected<'p>(packages: &'p [Package], files: &[String]) -> BTreeSet<&'p str> {
    let owner = |file: &String| packages.iter().find(|it| file.starts_with(&it.folder));
    if files.iter().any(|file| owner(file).is_none()) {
        return packages.iter().map(|it| it.name.as_str()).collect();
    }
    let changed = files.iter().filter_map(owner);
    let mut affected: BTreeSet<&str> = changed.map(|it| it.name.as_str()).collect();
    loop {
        let before = affected.len();
        let users: Vec<&str> = packages
            .iter()
            .filter(|it| it.uses.iter().any(|name| affected.contains(name.as_str())))
            .map(|it| it.name.as_str())
            .collect();
        affected.extend(users);
        if affected.len() == before {
            return affected;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Vec<Package> {
        let package = |name: &str, uses: &[&str]| Package {
            name: name.to_owned(),
            folder: format!("crates/{name}/"),
            uses: uses.iter().map(ToString::to_string).collect(),
        };
        vec![
            package("low", &[]),
            package("mid", &["low"]),
            package("top", &["mid"]),
            package("other", &[]),
        ]
    }

    fn affected_by(files: &[&str]) -> Vec<String> {
        let files: Vec<String> = files.iter().map(ToString::to_string).collect();
        let packages = workspace();
        let affected = affected(&packages, &files);
        affected.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_crate_affects_the_crates_that_depend_on_it() {
        assert_eq!(affected_by(&["crates/mid/src/lib.rs"]), ["mid", "top"]);
        assert_eq!(
            affected_by(&["crates/low/src/lib.rs"]),
            ["low", "mid", "top"]
        );
    }

    #[test]
    fn a_file_of_no_crate_affects_every_crate() {
        assert_eq!(affected_by(&["README.md"]).len(), 4);
    }

    #[test]
    fn nothing_is_affected_by_nothing() {
        assert!(affected_by(&[]).is_empty());
    }
}
