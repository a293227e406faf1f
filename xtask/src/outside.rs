//! Builds the programs of `examples/outside` against the packages that would be published.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, ensure};

use crate::{
    metadata, nostd,
    run::{cargo, program},
    stage::Done,
    workspace,
};

const PROGRAMS: &str = "examples/outside";
/// Programs that are also built for other machines: one without an operating system, and browsers.
const CROSS: [(&str, &str); 2] = [
    ("decoder", "thumbv7em-none-eabihf"),
    ("browser", "wasm32-unknown-unknown"),
];

/// Packages the crates, unpacks the packages, and tests the programs with these.
pub(crate) fn all() -> Result<Done> {
    with_packages("test --quiet --locked --workspace")
}

/// Packages the crates and checks the programs with these, without running them.
pub(crate) fn checked() -> Result<Done> {
    with_packages("check --quiet --locked --workspace --all-targets")
}

fn with_packages(work: &str) -> Result<Done> {
    let folder = metadata::scratch("outside")?;
    let packages = packaged(&folder.join("packages"))?;
    let programs = folder.join("programs");
    copied(&workspace::root().join(PROGRAMS), &programs)?;
    let manifest = programs.join("Cargo.toml");
    fs::write(
        &manifest,
        patched(&fs::read_to_string(&manifest)?, &packages)?,
    )?;
    // The target folder of the workspace has the dependencies.
    let target = metadata::scratch("")?;
    let build = |words: &str| {
        let build = cargo(words).arg("--manifest-path").arg(&manifest);
        build.arg("--target-dir").arg(&target)
    };
    build(work).run()?;
    for (package, platform) in CROSS {
        if !nostd::has_target(platform)? {
            continue;
        }
        println!("{package} for {platform}");
        let cross = build("build --quiet --locked").arg("--package");
        cross.arg(package).arg("--target").arg(platform).run()?;
    }
    Ok(Done::Passed)
}

/// Packages every published crate and returns its unpacked folder.
fn packaged(folder: &Path) -> Result<Vec<PathBuf>> {
    let names: Vec<_> = metadata::published()?
        .into_iter()
        .map(|one| Some((one["name"].as_str()?, one["version"].as_str()?)))
        .collect::<Option<_>>()
        .context("a package has no name")?;
    let package =
        cargo("package --quiet --no-verify --allow-dirty --locked --target-dir").arg(folder);
    let package = names
        .iter()
        .fold(package, |run, (name, _)| run.arg("--package").arg(name));
    package.run()?;
    let unpacked = names.iter().map(|(name, version)| {
        let folder = folder.join("package");
        let archive = format!("{name}-{version}.crate");
        let unpacked = folder.join(format!("{name}-{version}"));
        if unpacked.exists() {
            fs::remove_dir_all(&unpacked)?;
        }
        // Packages have old times, by which cargo would take changed sources for those it has built.
        let unpack = program("tar").words("-xzmf").arg(folder.join(archive));
        unpack.arg("-C").arg(&folder).run()?;
        Ok(unpacked)
    });
    unpacked.collect()
}

/// Copies a folder without its target folder.
fn copied(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == "target" {
            continue;
        }
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copied(&entry.path(), &to)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

/// Replaces the path of each crate by its unpacked package.
fn patched(manifest: &str, packages: &[PathBuf]) -> Result<String> {
    let mut patched = manifest.to_owned();
    for package in packages {
        let name = package.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.rsplit_once('-'));
        let (name, _) = name.context("a package has no version")?;
        let old = format!("\"../../crates/{name}\"");
        patched = patched.replace(&old, &format!("{:?}", package.to_string_lossy()));
    }
    ensure!(
        !patched.contains("../../crates"),
        "{PROGRAMS}/Cargo.toml names a crate that is not published"
    );
    Ok(patched)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_replaced_by_the_package_of_that_name() {
        let manifest = "a = { path = \"../../crates/zvf\" }\nb = { path = \"../../crates/zvf-x\" }";
        let packages = ["p/zvf-0.1.0", "p/zvf-x-0.1.0"].map(PathBuf::from);
        let found = patched(manifest, &packages).unwrap();
        assert_eq!(
            found,
            "a = { path = \"p/zvf-0.1.0\" }\nb = { path = \"p/zvf-x-0.1.0\" }"
        );
        assert!(patched(manifest, &packages[..1]).is_err());
    }
}
