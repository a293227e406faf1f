//! A list of checks that all run, whatever fails, and what came of them.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::workspace;

/// What a check that did not fail says.
#[derive(Debug)]
pub(crate) enum Done {
    Passed,
    /// It could not run for want of the tool named here.
    Skipped(String),
    /// A part that is asked for only where there is a tool for it did not run.
    InPart(String),
}

#[derive(Debug)]
enum Outcome {
    Passed,
    InPart(String),
    Skipped(String),
    Failed(String),
}

/// Stages that have run so far.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<(&'static str, Outcome, Duration)>);

impl Stages {
    /// Runs `check` under a heading.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        check: impl FnOnce() -> Result<Done>,
    ) -> &mut Self {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = outcome(check(), workspace::in_ci());
        let took = start.elapsed();
        match &outcome {
            Outcome::Passed => println!("--- {name}: passed, {took:.1?}"),
            Outcome::InPart(missing) => {
                println!("--- {name}: passed, {took:.1?}; SKIPPED a part: {missing}");
            }
            Outcome::Skipped(missing) => println!("--- {name}: SKIPPED, {missing}"),
            Outcome::Failed(why) => {
                println!("--- {name}: FAILED, {took:.1?}: {why}");
                println!("    going on, so that every failure is seen");
            }
        }
        self.0.push((name, outcome, took));
        self
    }

    pub(crate) fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    fn count(&self, which: impl Fn(&Outcome) -> bool) -> usize {
        let outcomes = self.0.iter().map(|(_, outcome, _)| outcome);
        outcomes.filter(|outcome| which(outcome)).count()
    }
}

fn outcome(done: Result<Done>, in_ci: bool) -> Outcome {
    match done {
        Ok(Done::Passed) => Outcome::Passed,
        Ok(Done::InPart(missing)) => Outcome::InPart(missing),
        Ok(Done::Skipped(missing)) if in_ci => {
            Outcome::Failed(format!("{missing}; nothing may skip in CI"))
        }
        Ok(Done::Skipped(missing)) => Outcome::Skipped(missing),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// One line a stage, then the line that machines read.
impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n=== summary")?;
        for (name, outcome, took) in &self.0 {
            let took = took.as_secs_f64();
            match outcome {
                Outcome::Passed => writeln!(f, "passed  {took:>7.1} s  {name}")?,
                Outcome::InPart(missing) => {
                    writeln!(
                        f,
                        "passed  {took:>7.1} s  {name}; SKIPPED a part: {missing}"
                    )?;
                }
                Outcome::Skipped(missing) => writeln!(f, "SKIPPED            {name}: {missing}")?,
                Outcome::Failed(why) => writeln!(f, "FAILED  {took:>7.1} s  {name}: {why}")?,
            }
        }
        let passed = self.count(|outcome| matches!(outcome, Outcome::Passed | Outcome::InPart(_)));
        write!(f, "{passed} passed, {} failed", self.failed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped() -> Done {
        Done::Skipped("nm is missing".to_owned())
    }

    #[test]
    fn a_skip_is_a_failure_in_ci_only() {
        assert!(matches!(outcome(Ok(skipped()), false), Outcome::Skipped(_)));
        assert!(matches!(outcome(Ok(skipped()), true), Outcome::Failed(_)));
    }

    #[test]
    fn goes_on_after_a_failure_and_counts_alone_on_the_last_line() {
        let mut stages = Stages::default();
        stages
            .run("a", || Ok(Done::Passed))
            .run("b", || Err(anyhow::anyhow!("broken")))
            .run("c", || Ok(Done::Passed));
        assert_eq!(stages.failed(), 1);
        assert_eq!(
            stages.to_string().lines().last(),
            Some("2 passed, 1 failed")
        );
    }
}
