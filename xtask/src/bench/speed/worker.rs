//! A worker process that runs steps on request and reports their time.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::Run;

/// The running process of one side of a comparison.
pub(super) struct Worker {
    pub(super) name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The reason that the worker gets no further requests.
    pub(super) gone: Option<String>,
}

impl Worker {
    pub(super) fn start(name: &str, run: Run) -> Result<Self> {
        let mut child = run.spoken_to()?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("a program without output")?;
        Ok(Self {
            name: name.to_owned(),
            child,
            input,
            output: BufReader::new(output),
            gone: None,
        })
    }

    /// Runs a step and returns its measurements, or `error`, or `unable`.
    pub(super) fn run(&mut self, step: &str) -> Value {
        if let Some(why) = &self.gone {
            return serde_json::json!({ "unable": why });
        }
        match self.try_ask(step) {
            Ok(response) => response,
            Err(error) => {
                let why = format!("{} ended: {error:#}", self.name);
                eprintln!("SKIPPED: {why}");
                self.gone = Some(why.clone());
                serde_json::json!({ "error": why })
            }
        }
    }

    fn try_ask(&mut self, step: &str) -> Result<Value> {
        let input = self.input.as_mut().context("no input")?;
        writeln!(input, "{step}")?;
        input.flush()?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("it responded {line:?}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker ends when its input ends.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
