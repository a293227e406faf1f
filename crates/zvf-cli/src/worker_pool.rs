//! Tasks run by several processes on this machine.

use std::{
    env,
    error::Error,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use zvf::TaskRunner;

/// Maximum number of times that a failing task is started.
const MAX_ATTEMPTS: usize = 3;

/// The program that runs `zvf task file FILE`, and its first arguments, unless it is this one.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the program that runs tasks, and its first arguments. Later calls have no effect.
pub(crate) fn set_program(program: Vec<OsString>) {
    let _ = PROGRAM.set(program);
}

/// A fixed number of concurrent processes that run `zvf task file FILE`.
#[derive(Debug)]
pub(crate) struct WorkerPool {
    workers: usize,
}

impl WorkerPool {
    pub(crate) fn new(workers: usize) -> Self {
        Self { workers }
    }

    pub(crate) fn shared(self) -> Arc<dyn TaskRunner> {
        Arc::new(self)
    }
}

impl TaskRunner for WorkerPool {
    fn at_once(&self) -> usize {
        self.workers
    }

    fn run(&self, tasks: &[PathBuf]) -> Result<(), Box<dyn Error + Send + Sync>> {
        let zvf = match PROGRAM.get() {
            Some(program) => program.clone(),
            None => vec![env::current_exe()?.into()],
        };
        let next = AtomicUsize::new(0);
        let work = || -> Result<(), String> {
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                run_task(&zvf, task)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..self.workers).map(|_| scope.spawn(work)).collect();
            let results = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a thread that waits for a process died".to_owned()))
            });
            // Join every thread before the first error returns.
            let results: Vec<_> = results.collect();
            results.into_iter().collect::<Result<(), String>>()
        })?;
        Ok(())
    }
}

/// Runs a task in a process of its own, and again in a new one if that fails.
///
/// The process reads a pipe from this one and exits at its end, so that the death of this process
/// ends the task.
fn run_task(zvf: &[OsString], task: &Path) -> Result<(), String> {
    let (program, first) = zvf.split_first().ok_or("no program runs tasks")?;
    let mut last = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let mut process = Command::new(program);
        process
            .args(first)
            .args(["task", "file", "--until-stdin-ends"])
            .arg(task)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let output = process.spawn().and_then(|mut child| {
            let pipe = child.stdin.take();
            let output = child.wait_with_output();
            drop(pipe);
            output
        });
        match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                let stderr = String::from_utf8_lossy(&output.stderr);
                last = format!("a process ended with {}: {}", output.status, stderr.trim());
            }
            Err(error) => last = format!("a process cannot be started: {error}"),
        }
    }
    Err(last)
}
