//! Stages that all run, even after a failure, and a summary of their results.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};

use crate::{record, run::cargo, workspace};

/// The prefix of the line that reports a skipped part.
pub(crate) const SKIPPED_PART: &str = "SKIPPED a part: ";

/// Parts of the suite that all of its modules use.
const HARNESS: &str = "conformance/conftest.py conformance/program.py conformance/requirements.txt";

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
    /// The inputs are those of the named commit, whose run passed.
    Unchanged(String),
    Failed(String),
}

/// A stage that has run.
#[derive(Debug)]
struct Ran {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
    /// Seconds that it should take at most on two slow cores.
    budget: u64,
}

/// An xtask command that runs beside others.
pub(crate) struct Beside {
    pub(crate) name: &'static str,
    pub(crate) words: &'static str,
    pub(crate) budget: u64,
    /// Paths whose changes the command judges, separated by spaces. It runs if they, or those of
    /// [`HARNESS`], differ from those of the last run that passed; always if there are none.
    pub(crate) inputs: &'static str,
}

/// The stages that have run so far.
#[derive(Debug, Default)]
pub(crate) struct Stages(Vec<Ran>);

impl Stages {
    /// Runs `check` under a heading and records its result, with a budget in seconds.
    pub(crate) fn run(
        &mut self,
        name: &'static str,
        budget: u64,
        check: impl FnOnce() -> Result<Done>,
    ) -> &mut Self {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = outcome(check(), workspace::in_ci());
        self.note(name, outcome, start.elapsed(), budget);
        self
    }

    fn note(&mut self, name: &'static str, outcome: Outcome, took: Duration, budget: u64) {
        let ran = Ran {
            name,
            outcome,
            took,
            budget,
        };
        println!("--- {ran}");
        if matches!(ran.outcome, Outcome::Failed(_)) {
            println!("    continuing, to report every failure");
        }
        self.0.push(ran);
    }

    /// Runs xtask commands, two at a time, and prints the output of each when it ends.
    pub(crate) fn run_beside(&mut self, commands: &[Beside]) -> &mut Self {
        let next = Mutex::new(commands.iter());
        // A closure releases the lock before the command runs; `while let` would hold it.
        let take = || held(&next).next();
        let stages = Mutex::new(self);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(command) = take() {
                        let start = Instant::now();
                        let (output, outcome) = beside(command);
                        let took = start.elapsed();
                        let mut stages = held(&stages);
                        println!("\n=== {}", command.name);
                        print!("{output}");
                        stages.note(command.name, outcome, took, command.budget);
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
        self.0.iter().filter(|ran| which(&ran.outcome)).count()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command unless its inputs are unchanged, and returns its output and its result.
fn beside(of: &Beside) -> (String, Outcome) {
    let inputs = match of.inputs {
        "" => None,
        inputs => record::fingerprint(&format!("{inputs} {HARNESS}")).ok(),
    };
    if let Some(inputs) = &inputs
        && let Some(commit) = record::passed(of.name, inputs)
    {
        return (String::new(), Outcome::Unchanged(commit));
    }
    let (output, done) = match command(of.words) {
        Ok((output, done)) => (output, done),
        Err(error) => (String::new(), Err(error)),
    };
    let outcome = outcome(done, workspace::in_ci());
    if let (Outcome::Passed, Some(inputs)) = (&outcome, &inputs)
        && let Err(error) = record::note(of.name, inputs)
    {
        println!("{} is not recorded as passed: {error:#}", of.name);
    }
    (output, outcome)
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

/// Prints the verdict, the seconds beside the budget, and the reason.
impl fmt::Display for Ran {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verdict, why) = match &self.outcome {
            Outcome::Passed => ("passed", String::new()),
            Outcome::InPart(missing) => ("passed", format!("; {SKIPPED_PART}{missing}")),
            Outcome::Skipped(missing) => ("SKIPPED", format!(": {missing}")),
            Outcome::Unchanged(commit) => ("unchanged", format!(", passed at {commit}")),
            Outcome::Failed(why) => ("FAILED", format!(": {why}")),
        };
        let (took, budget, name) = (self.took.as_secs_f64(), self.budget, self.name);
        let is_over = self.took > Duration::from_secs(budget);
        let over = if is_over { " OVER BUDGET" } else { "" };
        write!(
            f,
            "{verdict:9} {took:>7.1} of {budget:>4} s{over}  {name}{why}"
        )
    }
}

/// Prints one line per stage, then the summary line that CI parses.
impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n=== summary")?;
        for ran in &self.0 {
            writeln!(f, "{ran}")?;
        }
        let took: Duration = self.0.iter().map(|ran| ran.took).sum();
        let budget: u64 = self.0.iter().map(|ran| ran.budget).sum();
        writeln!(
            f,
            "{:>17.1} of {budget:>4} s  all stages",
            took.as_secs_f64()
        )?;
        let unchanged = self.count(|outcome| matches!(outcome, Outcome::Unchanged(_)));
        if unchanged > 0 {
            writeln!(f, "{unchanged} unchanged, which `cargo xtask nightly` runs")?;
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
            .run("a", 1, || Ok(Done::Passed))
            .run("b", 1, || Err(anyhow::anyhow!("broken")))
            .run("c", 1, || Ok(Done::Passed));
        stages.note(
            "d",
            Outcome::Unchanged("abc".to_owned()),
            Duration::from_secs(3),
            2,
        );
        assert_eq!(stages.failed(), 1);
        let text = stages.to_string();
        assert_eq!(text.lines().last(), Some("2 passed, 1 failed"));
        assert!(text.contains("unchanged     3.0 of    2 s OVER BUDGET  d, passed at abc"));
        assert!(text.contains("1 unchanged"));
    }
}
