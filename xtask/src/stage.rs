//! Stages that all run, even after a failure, and a summary of their results.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use crate::{run::cargo, workspace};

/// The prefix of the line that reports a skipped part.
pub(crate) const SKIPPED_PART: &str = "SKIPPED a part: ";

/// The result of a check that did not fail.
#[derive(Debug)]
pub(crate) enum Done {
    Passed,
    /// The check did not run, because the named tool is missing.
    Skipped(String),
    /// One part did not run, because the named tool is missing.
    InPart(String),
}

#[derive(Debug)]
enum Outcome {
    Passed,
    InPart(String),
    Skipped(String),
    Failed(String),
}

/// The stages that have run so far.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<(&'static str, Outcome, Duration)>);

impl Stages {
    /// Runs `check` under a heading and records its result.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        check: impl FnOnce() -> Result<Done>,
    ) -> &mut Self {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = outcome(check(), workspace::in_ci());
        self.note(name, outcome, start.elapsed());
        self
    }

    fn note(&mut self, name: &'static str, outcome: Outcome, took: Duration) {
        match &outcome {
            Outcome::Passed => println!("--- {name}: passed, {took:.1?}"),
            Outcome::InPart(missing) => {
                println!("--- {name}: passed, {took:.1?}; SKIPPED a part: {missing}");
            }
            Outcome::Skipped(missing) => println!("--- {name}: SKIPPED, {missing}"),
            Outcome::Failed(why) => {
                println!("--- {name}: FAILED, {took:.1?}: {why}");
                println!("    continuing, to report every failure");
            }
        }
        self.0.push((name, outcome, took));
    }

    /// Runs xtask commands, two at a time, and prints the output of each when it ends.
    pub(crate) fn run_beside(&mut self, commands: &[(&'static str, &str)]) -> &mut Self {
        let next = Mutex::new(commands.iter());
        // A closure releases the lock before the command runs; `while let` would hold it.
        let take = || held(&next).next();
        let stages = Mutex::new(self);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some((name, words)) = take() {
                        let start = Instant::now();
                        let done = command(words);
                        let took = start.elapsed();
                        let mut stages = held(&stages);
                        println!("\n=== {name}");
                        let done = done.and_then(|(output, done)| {
                            print!("{output}");
                            done
                        });
                        stages.note(name, outcome(done, workspace::in_ci()), took);
                    }
                });
            }
        });
        stages.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    fn count(&self, which: impl Fn(&Outcome) -> bool) -> usize {
        let outcomes = self.0.iter().map(|(_, outcome, _)| outcome);
        outcomes.filter(|outcome| which(outcome)).count()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs an xtask command and returns its output and its result.
fn command(words: &str) -> Result<(String, Result<Done>)> {
    let run = cargo("run --quiet --locked --package xtask --").words(words);
    let output = run.output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = format!("{}{errors}", String::from_utf8_lossy(&output.stdout));
    let last = errors.lines().last().unwrap_or_default().to_owned();
    let done = match (output.status.success(), last.strip_prefix(SKIPPED_PART)) {
        (true, Some(missing)) => Ok(Done::InPart(missing.to_owned())),
        (true, None) => Ok(Done::Passed),
        (false, _) => Err(anyhow!("{last}")),
    };
    Ok((text, done))
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

/// Prints one line per stage, then the summary line that CI parses.
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
