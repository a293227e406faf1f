//! Compiles the crates that declare an older compiler than the workspace with that compiler.

use std::{env, ffi::OsString, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::{
    metadata,
    run::{cargo, program},
    stage::Done,
};

/// The compiler to use, where rustup cannot install it: the path of a `rustc`.
const VARIABLE: &str = "ZVF_MSRV_RUSTC";
/// The first version with `if a && let b = c`, which no lint finds.
const LET_CHAINS: &str = "1.88";

pub(crate) fn all() -> Result<Done> {
    let packages = older(&metadata::members()?)?;
    ensure!(!packages.is_empty(), "no crate declares an older compiler");
    for Older {
        name,
        version,
        folder,
    } in &packages
    {
        if is_before(version, LET_CHAINS) {
            no_let_chains(&Path::new(folder).join("src"))?;
        }
        let Some(compiler) = compiler(version) else {
            println!(
                "NOT COMPILED: {name} with Rust {version}, which rustup cannot install and \
                 {VARIABLE} does not name"
            );
            continue;
        };
        println!("{name} with Rust {version}");
        let target = metadata::scratch(&format!("rust-{version}"))?;
        for features in ["--no-default-features", ""] {
            let check = cargo("check --quiet --locked --package")
                .arg(name)
                .words(features)
                .env("RUSTC", &compiler);
            check.arg("--target-dir").arg(&target).run()?;
        }
    }
    Ok(Done::Passed)
}

/// A crate that declares an older compiler than the workspace.
#[derive(Debug, PartialEq, Eq)]
struct Older {
    name: String,
    version: String,
    folder: String,
}

/// Returns the crates of the workspace with an older compiler than most of them.
fn older(members: &[&Value]) -> Result<Vec<Older>> {
    let text = |package: &Value, name: &str| package[name].as_str().map(str::to_owned);
    let declared: Vec<_> = members
        .iter()
        .filter_map(|package| {
            let manifest = text(package, "manifest_path")?;
            Some(Older {
                name: text(package, "name")?,
                version: text(package, "rust_version")?,
                folder: manifest.strip_suffix("/Cargo.toml")?.to_owned(),
            })
        })
        .collect();
    let newest = declared
        .iter()
        .max_by_key(|own| numbers(&own.version))
        .context("no crate has a version")?
        .version
        .clone();
    let older = declared.into_iter();
    Ok(older
        .filter(|own| is_before(&own.version, &newest))
        .collect())
}

fn numbers(version: &str) -> Vec<u32> {
    let numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    numbers.collect()
}

fn is_before(version: &str, other: &str) -> bool {
    numbers(version) < numbers(other)
}

/// Returns the compiler of a version, which rustup installs if it can.
fn compiler(version: &str) -> Option<OsString> {
    let named = env::var_os(VARIABLE).filter(|path| {
        let found = program(path).words("--version").read();
        found.is_ok_and(|found| found.starts_with(&format!("rustc {version}.")))
    });
    named.or_else(|| {
        let which = || {
            let which = program("rustup").words("which rustc --toolchain");
            Some(which.arg(version).read().ok()?.trim().into())
        };
        which().or_else(|| {
            let install = program("rustup").words("toolchain install --profile minimal");
            install.arg(version).run().ok()?;
            which()
        })
    })
}

/// Checks that no source file in a folder has a condition with `&& let`.
fn no_let_chains(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            no_let_chains(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let line = let_chain(&fs::read_to_string(&path)?);
            ensure!(
                line.is_none(),
                "{}:{}: `&& let` needs Rust {LET_CHAINS}",
                path.display(),
                line.unwrap_or_default()
            );
        }
    }
    Ok(())
}

/// Returns the number of the first line with `&& let`.
fn let_chain(source: &str) -> Option<usize> {
    let mut lines = source.lines().zip(1..);
    let line = lines.find(|(line, _)| line.split("//").next().is_some_and(is_let_chain));
    line.map(|(_, number)| number)
}

fn is_let_chain(code: &str) -> bool {
    code.contains("&& let ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn crates_with_an_older_compiler_than_the_others_are_found() {
        let package = |name: &str, version: &str| {
            let manifest = format!("/{name}/Cargo.toml");
            json!({ "name": name, "rust_version": version, "manifest_path": manifest })
        };
        let members = [package("a", "1.95"), package("b", "1.85")];
        let older = older(&members.each_ref()).unwrap();
        let names: Vec<_> = older.iter().map(|own| (&*own.name, &*own.folder)).collect();
        assert_eq!(names, [("b", "/b")]);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_before("1.9", "1.88") && !is_before("1.100", "1.88"));
        assert!(is_before("1.85", "1.85.1"));
    }

    #[test]
    fn a_condition_with_let_is_found_outside_of_comments() {
        let source = "// && let x\nif a\n    && let Some(b) = c {}";
        assert_eq!(let_chain(source), Some(3));
        assert_eq!(let_chain("let a = b && c;"), None);
    }
}
