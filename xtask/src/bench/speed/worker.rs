//! A program that does steps when it is asked, and says what each took.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run::Run;

/// One side of a comparison, running.
pub(super) struct Worker {
    pub(super) name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Why it is asked no more.
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

    /// What a step took; what it cannot do is in `error` or `unable`.
    pub(super) fn ask(&mut self, step: &str) -> Value {
        if let Some(why) = &self.gone {
            return serde_json::json!({ "unable": why });
        }
        match self.try_ask(step) {
            Ok(answer) => answer,
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
        serde_json::from_str(&line).with_context(|| format!("it answered {line:?}"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
