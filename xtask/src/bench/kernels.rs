//! Instruction counts of inner loops, from callgrind, compared with recorded counts.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    metadata,
    run::{self, cargo, exists, program},
    stage::Done,
    workspace,
};

/// The file of recorded counts.
const BASE: &str = "xtask/kernels.json";
/// The tolerated increase in percent. The C library and zstd choose their loops by the features of the
/// processor, which changes counts between machines by about 3 %.
const MAX_INCREASE: u64 = 10;
/// The function of `benches/kernels.rs` whose instructions are counted.
const COUNTED: &str = "kernels::counted";
const MISSING: &str = "valgrind is missing: no instructions were counted";

/// Counts, and the compiler that produced the code.
struct Counts {
    rustc: String,
    kernels: BTreeMap<String, u64>,
}

/// Compares with the recorded counts.
pub(crate) fn check() -> Result<Done> {
    compare(&workspace::root().join(BASE))
}

/// Fails if a kernel takes more instructions than recorded in `file`.
pub(super) fn compare(base: &Path) -> Result<Done> {
    if !exists("valgrind") {
        return Ok(Done::InPart(MISSING.to_owned()));
    }
    if !base.exists() {
        let base = base.display();
        return Ok(Done::InPart(format!(
            "no counts are kept in {base}: `cargo xtask bench kernels --write`"
        )));
    }
    let base = Counts::read(base)?;
    let now = Counts::count()?;
    if base.rustc != now.rustc {
        let (base, now) = (base.rustc, now.rustc);
        return Ok(Done::InPart(format!(
            "instructions of {now} say nothing beside those of {base}: `cargo xtask bench kernels --write`"
        )));
    }
    let worse = table(&base, &now);
    ensure!(
        worse.is_empty(),
        "more than {MAX_INCREASE} % more instructions in {}; where that is meant: `cargo xtask bench kernels --write`",
        worse.join(", ")
    );
    Ok(Done::Passed)
}

/// Counts the instructions and, with `--write`, records them.
pub(super) fn run(write: bool) -> Result<Done> {
    if !exists("valgrind") {
        return Ok(Done::Skipped(MISSING.to_owned()));
    }
    let now = Counts::count()?;
    if write {
        fs::write(workspace::root().join(BASE), now.text())?;
    }
    let base = Counts::read(&workspace::root().join(BASE))?;
    table(&base, &now);
    Ok(Done::Passed)
}

/// Prints both counts and returns the kernels that became slower or disappeared.
fn table(base: &Counts, now: &Counts) -> Vec<String> {
    let mut worse = Vec::new();
    for (name, was) in &base.kernels {
        let Some(is) = now.kernels.get(name) else {
            worse.push(format!("{name} (is no more)"));
            continue;
        };
        println!("{name:24} {was:>12} {is:>12}");
        if is.saturating_sub(*was).saturating_mul(100) > was.saturating_mul(MAX_INCREASE) {
            worse.push(name.clone());
        }
    }
    for (name, is) in now
        .kernels
        .iter()
        .filter(|(name, _)| !base.kernels.contains_key(*name))
    {
        println!("{name:24} {:>12} {is:>12}  new", "");
    }
    worse
}

impl Counts {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let value: Value = serde_json::from_str(&text)?;
        let kernels = value["kernels"].as_object().context("no kernels")?;
        let counts = kernels
            .iter()
            .filter_map(|(name, count)| Some((name.clone(), count.as_u64()?)));
        Ok(Self {
            rustc: value["rustc"].as_str().context("no rustc")?.to_owned(),
            kernels: counts.collect(),
        })
    }

    fn text(&self) -> String {
        format!(
            "{:#}\n",
            json!({"rustc": self.rustc, "kernels": self.kernels})
        )
    }

    fn count() -> Result<Self> {
        let benches = cargo("bench --quiet --locked --package zvf-bench --bench kernels --no-run");
        // Cargo builds the programs of a package before its benches.
        let mut binaries = run::built_all(benches)?.into_iter();
        let binary = binaries
            .find(|file| {
                let name = file.file_name().and_then(|name| name.to_str());
                name.is_some_and(|name| name.starts_with("kernels-"))
            })
            .context("the benches were not built")?;
        let folder = metadata::scratch("xtask/callgrind")?;
        fs::remove_dir_all(&folder)?;
        fs::create_dir_all(&folder)?;
        // callgrind writes one dump per return of the function, in the order of the printed names.
        let counted = program("valgrind")
            .words("--quiet --tool=callgrind --combine-dumps=no --compress-strings=no")
            .arg(format!("--toggle-collect={COUNTED}"))
            .arg(format!("--dump-after={COUNTED}"))
            .arg(format!(
                "--callgrind-out-file={}",
                folder.join("out").display()
            ));
        let names = counted.arg(binary).arg("--count").read()?;
        let mut kernels = BTreeMap::new();
        for (at, name) in names.lines().enumerate() {
            let dump = folder.join(format!("out.{}", at + 1));
            kernels.insert(name.to_owned(), total(&dump)?);
        }
        let rustc = program("rustc")
            .words("--version")
            .read()?
            .trim()
            .to_owned();
        Ok(Self { rustc, kernels })
    }
}

/// Returns the instructions in a dump.
fn total(dump: &Path) -> Result<u64> {
    let text = fs::read_to_string(dump).with_context(|| dump.display().to_string())?;
    let totals = text.lines().find_map(|line| {
        let line = line
            .strip_prefix("totals:")
            .or_else(|| line.strip_prefix("summary:"))?;
        line.trim().parse().ok()
    });
    totals.with_context(|| format!("{} has no totals", dump.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> Counts {
        let kernels = pairs
            .iter()
            .map(|(name, count)| ((*name).to_owned(), *count));
        Counts {
            rustc: "rustc".to_owned(),
            kernels: kernels.collect(),
        }
    }

    #[test]
    fn an_increase_of_ten_percent_passes() {
        let base = counts(&[("a", 1000), ("b", 1000), ("c", 1000)]);
        let now = counts(&[("a", 1100), ("b", 1101), ("d", 5)]);
        assert_eq!(table(&base, &now), ["b", "c (is no more)"]);
    }

    #[test]
    fn counts_are_read_as_written() {
        let base = counts(&[("a", 1000)]);
        let file = std::env::temp_dir().join(format!("zvf-kernels-{}", std::process::id()));
        fs::write(&file, base.text()).unwrap();
        let read = Counts::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!((read.rustc, read.kernels), (base.rustc, base.kernels));
    }
}
