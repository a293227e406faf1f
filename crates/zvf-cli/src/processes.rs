//! Tasks shared among processes of this machine.

use std::{
    env,
    error::Error,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use zvf::TaskRunner;

/// How often a task that dies is begun again.
const TRIES: usize = 3;

/// So many processes at once, each `zvf task FILE`.
#[derive(Debug)]
pub(crate) struct Processes {
    at_once: usize,
}

impl Processes {
    pub(crate) fn new(at_once: usize) -> Self {
        Self { at_once }
    }

    pub(crate) fn shared(self) -> Arc<dyn TaskRunner> {
        Arc::new(self)
    }
}

impl TaskRunner for Processes {
    fn at_once(&self) -> usize {
        self.at_once
    }

    fn run(&self, tasks: &[PathBuf]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let zvf = env::current_exe()?;
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), String> {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                done(&zvf, task)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.at_once).map(|_| scope.spawn(work)).collect();
            let outcomes = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a thread that waits for a process died".to_owned()))
            });
            outcomes
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<Result<(), String>>()
        })?;
        Ok(())
    }
}

/// Has a task done by a process of its own, and by another when that dies.
fn done(zvf: &Path, task: &Path) -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..TRIES {
        let mut process = Command::new(zvf);
        process.arg("task").arg(task).stdin(Stdio::null());
        match process.output() {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                last = format!("a process ended with {}: {}", output.status, said.trim());
            }
            Err(error) => last = format!("a process cannot be started: {error}"),
        }
    }
    Err(last)
}
