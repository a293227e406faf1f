//! Comparison with golden data and with the Python reference.

mod b2nd;
pub(crate) mod corpus;
mod files;
mod migrated;
mod precomputed;
mod pyramids;
pub(crate) mod random;
pub(crate) mod runners;

use anyhow::{Result, ensure};

use crate::{
    metadata,
    options::Options,
    python,
    run::{self, EVERYTHING, Run, cargo},
    stage::Done,
    workspace,
};

const MARK: &str = "conformance: ";
const CASES: u64 = 2000;

pub(crate) fn from_options(options: &Options) -> Result<Done> {
    if options.flag("golden") {
        return golden();
    }
    if options.flag("reference") {
        let cases = options.number("cases")?.unwrap_or(CASES);
        return differential(cases, options.number("seed")?);
    }
    if options.flag("stores") {
        return written(options.number("seed")?, options.flag("sample"));
    }
    if options.flag("pyramids") {
        return pyramids::levels(options.number("seed")?, options.flag("sample"));
    }
    if options.flag("runners") || options.text("runner").is_some() {
        return runners::from_options(options);
    }
    if options.flag("random") {
        return random::from_options(options);
    }
    if options.flag("migrated") {
        return migrated::migrated();
    }
    if options.flag("files") {
        return files::both_ways();
    }
    if options.flag("precomputed") {
        return precomputed::exported();
    }
    if options.flag("viewer") {
        return precomputed::drawn();
    }
    if options.flag("b2nd") {
        return b2nd::both_ways(options.number("cases")?, options.number("seed")?);
    }
    let golden = golden()?;
    let cases = options.number("cases")?.unwrap_or(CASES);
    let seed = options.number("seed")?;
    let reference = differential(cases, seed)?;
    let created = written(seed, false)?;
    let all = [
        golden,
        reference,
        created,
        pyramids::levels(seed, false)?,
        migrated::migrated()?,
        precomputed::exported()?,
        precomputed::drawn()?,
        files::both_ways()?,
        b2nd::both_ways(None, seed)?,
        runners::check()?,
        random::stores(random::CI_CASES, seed)?,
    ];
    let mut all = Vec::from(all);
    all.sort_by_key(|done| match done {
        Done::Skipped(_) => 0,
        Done::InPart(_) => 1,
        Done::Passed => 2,
    });
    Ok(all.swap_remove(0))
}

/// Runs the tests named `golden_*` and prints what they compared.
pub(crate) fn golden() -> Result<Done> {
    golden_of(EVERYTHING)
}

/// Runs the golden tests, built with the given cargo arguments.
pub(crate) fn golden_of(build: &str) -> Result<Done> {
    let tests = cargo("test --quiet").words(build);
    let output = tests.words("--tests golden_ -- --nocapture").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let counts = comparisons(&text);
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    for line in &counts {
        println!("{line}");
    }
    ensure!(output.status.success(), "golden tests: {}", output.status);
    if counts.is_empty() {
        return Ok(Done::Skipped("no golden_ test reported a count".to_owned()));
    }
    Ok(Done::Passed)
}

fn written(seed: Option<u64>, sample: bool) -> Result<Done> {
    let Some(script) = python::script("created.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--bin zvf")?;
    let script = script.arg(&ours).arg(metadata::stores()?.join("created"));
    sampled(seeded(script, seed), sample).run()?;
    // Changes of sealed stores by the package, and vertices in the encoding of Draco.
    for name in ["sealed", "draco"] {
        if let Some(script) = python::script(&format!("{name}.py"))? {
            script
                .arg(&ours)
                .arg(metadata::stores()?.join(name))
                .run()?;
        }
    }
    // The guide compares tasks with this release.
    if let Some(script) = python::script("guide.py")? {
        script.arg(workspace::root().join("docs/python.md")).run()?;
    }
    Ok(Done::Passed)
}

pub(crate) fn differential(cases: u64, seed: Option<u64>) -> Result<Done> {
    let Some(script) = python::script("differential.py")? else {
        return Ok(Done::Skipped(python::MISSING.to_owned()));
    };
    let ours = run::built_here("--example differential")?;
    let script = script.arg(ours).arg("--cases").arg(cases.to_string());
    seeded(script, seed).run()?;
    Ok(Done::Passed)
}

fn seeded(script: Run, seed: Option<u64>) -> Run {
    match seed {
        Some(seed) => script.arg("--seed").arg(seed.to_string()),
        None => script,
    }
}

/// Adds the option of a shorter run.
fn sampled(script: Run, sample: bool) -> Run {
    script.words(if sample { "--sample" } else { "" })
}

/// Finds the lines that the tests print; libtest may put a test's name in front.
fn comparisons(output: &str) -> Vec<String> {
    let lines = output.lines();
    let counts = lines.filter_map(|line| line.find(MARK).and_then(|at| line.get(at..)));
    counts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_counts_among_libtest_output() {
        let output =
            "running 2 tests\nconformance: a 12\ntest x::golden_b ... conformance: b 3\nok";
        assert_eq!(
            comparisons(output),
            ["conformance: a 12", "conformance: b 3"]
        );
    }
}
