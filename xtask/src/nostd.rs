//! Proof that the decoders need no std and contain no panic.
//!
//! `probe/` links every walk of `zvf_testkit::walk::ALL` into a library that
//! defines the panic handler itself. A dependency that links std would add a second
//! handler, and rustc would stop with E0152. After link-time optimisation, the symbols
//! of the library show every remaining call into the panic machinery.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::{
    metadata,
    run::{self, cargo, exists, program},
    stage::Done,
    workspace,
};

mod symbols;

/// Manifests outside the workspace.
pub(crate) const EXCLUDED: [&str; 3] = [
    "examples/outside/Cargo.toml",
    "probe/Cargo.toml",
    "fuzz/Cargo.toml",
];
/// A microcontroller without an operating system, and the browser.
const TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "wasm32-unknown-unknown"];
/// The example that is built for these targets.
const EXAMPLE: &str = "microcontroller";
/// The only function that the probe exports.
const ENTRY: &str = "zvf_walk";

pub(crate) fn all() -> Result<Done> {
    let probed = probes()?;
    for target in TARGETS {
        cross(target)?;
    }
    Ok(probed)
}

/// Runs both probes, and the control that shows that the second one can fail.
pub(crate) fn probes() -> Result<Done> {
    let library = probe("")?;
    println!("no_std probe: every walk links without std");
    if !exists("nm") {
        return Ok(Done::Skipped("nm is missing (binutils)".to_owned()));
    }
    let names = symbols_of(&library)?;
    ensure!(
        names.iter().any(|name| symbols::is(name, ENTRY)),
        "the probe does not export {ENTRY}: nothing was probed"
    );
    let panics = symbols::panics(&names);
    if !panics.is_empty() {
        bail!("the linked decoders can panic: {}", panics.join(", "));
    }
    println!(
        "no-panic probe: none of {} symbols is about panics",
        names.len()
    );
    let control = symbols_of(&probe("--features control")?)?;
    let panics = symbols::panics(&control);
    ensure!(
        !panics.is_empty(),
        "the no-panic probe is blind: a slice index left no symbol"
    );
    println!("control: a slice index is seen as {}", panics.join(", "));
    Ok(Done::Passed)
}

fn probe(features: &str) -> Result<std::path::PathBuf> {
    let build = cargo("build --quiet --release --manifest-path probe/Cargo.toml")
        .words(features)
        .words(locked())
        .arg("--target-dir")
        .arg(metadata::scratch("probe")?);
    run::built(build)
}

/// Outside CI, cargo may update the lock files of the excluded workspaces.
pub(crate) fn locked() -> &'static str {
    if workspace::in_ci() { "--locked" } else { "" }
}

fn symbols_of(library: &Path) -> Result<Vec<String>> {
    Ok(symbols::names(&program("nm").arg(library).read()?))
}

/// Builds the format crate for `target`.
fn cross(target: &str) -> Result<()> {
    if !has_target(target)? {
        return Ok(());
    }
    for features in ["", "--features alloc"] {
        println!("zvf-format for {target} --no-default-features {features}");
        cargo("build --quiet --locked --package zvf-format --no-default-features --target")
            .arg(target)
            .words(features)
            .run()?;
        if features.is_empty() {
            example(target)?;
        }
    }
    Ok(())
}

/// Builds the example with the command that its documentation names.
fn example(target: &str) -> Result<()> {
    println!("the example {EXAMPLE} for {target}");
    cargo("build --quiet --locked --package zvf-format --no-default-features --example")
        .arg(EXAMPLE)
        .arg("--target")
        .arg(target)
        .run()
}

/// Returns whether `target` is installed, or could be installed now. `rust-toolchain.toml` does not
/// list it, because only these checks need it. In CI, a missing target is an error.
pub(crate) fn has_target(target: &str) -> Result<bool> {
    let installed = program("rustup").words("target list --installed").read();
    let is_installed = installed.is_ok_and(|list| list.lines().any(|line| line == target));
    if is_installed
        || program("rustup")
            .words("target add")
            .arg(target)
            .run()
            .is_ok()
    {
        return Ok(true);
    }
    ensure!(
        !workspace::in_ci(),
        "the target {target} is not installed, and rustup cannot add it"
    );
    println!("NOT BUILT for {target}: the target is not installed, and rustup cannot add it");
    Ok(false)
}
