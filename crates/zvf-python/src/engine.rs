//! The runtime that drives futures of the engine while Python waits.

use std::{
    pin::pin,
    process,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use futures_util::future::{AbortHandle, abortable};
use pyo3::{
    exceptions::{PyException, PyRuntimeError},
    prelude::*,
};
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
};
use zvf_store::{compute_alone, compute_here};

use crate::{errors::IntoException, progress::ProgressCallback};

/// Time between two checks for Ctrl-C.
const TICK: Duration = Duration::from_millis(50);
/// Threads that wait for sockets. Files are read on blocking threads, cells are decoded by rayon.
const WORKERS: usize = 2;
/// The store opens at most this many files at a time.
const BLOCKING_THREADS: usize = 16;

/// The threads of one process.
struct Threads {
    process: u32,
    runtime: Runtime,
}

static THREADS: Mutex<Option<&'static Threads>> = Mutex::new(None);

/// Runs `work` without the GIL and returns its output.
///
/// Ctrl-C drops `work` at its next await and raises `KeyboardInterrupt`.
pub(crate) fn run<T: Send, E: IntoException + Send>(
    py: Python<'_>,
    work: impl Future<Output = Result<T, E>> + Send,
) -> PyResult<T> {
    // Futures of the engine are large, and each call below would move this one.
    let work = pin!(work);
    run_with_progress(py, move || work, &ProgressCallback::default())
}

/// Runs the future that `work` returns, as [`run`] does, and calls the callback of `progress` while
/// it runs. The future need not be `Send`: it is made and polled on one thread.
///
/// An exception of the callback ends `work`. After `work` it goes to `sys.unraisablehook`.
pub(crate) fn run_with_progress<T: Send, E: IntoException + Send, F>(
    py: Python<'_>,
    work: impl FnOnce() -> F + Send,
    progress: &ProgressCallback,
) -> PyResult<T>
where
    F: Future<Output = Result<T, E>>,
{
    let threads = threads()?;
    let done = py
        .detach(|| match Handle::try_current() {
            Err(_) => wait(&threads.runtime, work(), progress),
            // A callback of a running operation starts another one. A runtime cannot wait in itself.
            Ok(_) => thread::scope(|scope| {
                let nested = scope.spawn(|| wait(&threads.runtime, work(), progress));
                nested.join().unwrap_or_else(|_| Err(panicked()))
            }),
        })?
        .map_err(|error| error.into_exception(py))?;
    if let Err(error) = progress.call(py) {
        // The work may have changed a store. An exception would hide that, and a caller that repeats
        // the call would change it twice. Ctrl-C still ends the program.
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        error.write_unraisable(py, None);
    }
    Ok(done)
}

/// Runs `work` on a thread of its own, and calls the callback of `progress` meanwhile.
///
/// Ctrl-C raises `KeyboardInterrupt` even while `work` computes, and cancels it at its next await.
pub(crate) fn run_on_own_thread<T: Send + 'static, E: IntoException + Send + 'static>(
    py: Python<'_>,
    progress: &ProgressCallback,
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> PyResult<T> {
    let done = run_with_progress(py, move || on_own_thread(work), progress)?;
    done.map_err(|error| error.into_exception(py))
}

/// Runs a function that computes, on this thread and without the GIL.
pub(crate) fn compute<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    threads()?;
    Ok(py.detach(|| {
        compute_here();
        work()
    }))
}

/// Runs a function that blocks on a thread for such functions. Dropping the future leaves the
/// function running.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let done = threads()?.runtime.spawn_blocking(work);
    done.await.map_err(|_| panicked())
}

/// Runs `work` on a thread of its own, so that neither the caller nor the threads of the runtime are
/// held up where it computes for long. Dropping the future cancels `work` at its next await.
async fn on_own_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> PyResult<T> {
    let threads = threads()?;
    let (done, output) = oneshot::channel();
    let (work, handle) = abortable(work);
    let _handle = AbortOnDrop(handle);
    let run = move || {
        compute_here();
        if let Ok(output) = threads.runtime.block_on(work) {
            // Nothing waits for the output after Ctrl-C.
            let _ = done.send(output);
        }
    };
    let thread = thread::Builder::new().name("zvf".to_owned()).spawn(run);
    thread.map_err(|error| not_started(&error))?;
    output.await.map_err(|_| panicked())
}

/// Cancels an operation that nothing waits for.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Starts `work` and returns a handle that cancels it. `then` takes its output on a thread of the
/// runtime, unless `work` was cancelled.
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    then: impl FnOnce(T) + Send + 'static,
) -> PyResult<AbortHandle> {
    let threads = threads()?;
    let (work, handle) = abortable(work);
    let work = async move {
        if let Ok(done) = work.await {
            then(done);
        }
    };
    drop(threads.runtime.spawn(work));
    Ok(handle)
}

fn not_started(error: &dyn std::error::Error) -> PyErr {
    PyRuntimeError::new_err(format!("threads cannot be started: {error}"))
}

fn panicked() -> PyErr {
    PyRuntimeError::new_err("the operation panicked")
}

/// Polls `work` on this thread until it is done, and looks for Ctrl-C meanwhile.
///
/// A timer of the runtime would wake another thread whenever `work` waits for a moment, which takes
/// longer than a small query.
fn wait<T, E>(
    runtime: &Runtime,
    work: impl Future<Output = Result<T, E>>,
    progress: &ProgressCallback,
) -> PyResult<Result<T, E>> {
    compute_here();
    let _entered = runtime.enter();
    let waiting = Arc::new(WaitingThread {
        thread: thread::current(),
        is_woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&waiting));
    let mut context = Context::from_waker(&waker);
    let mut work = pin!(work);
    let mut checked = Instant::now();
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return Ok(done);
        }
        loop {
            let left = TICK.saturating_sub(checked.elapsed());
            if left.is_zero() {
                Python::attach(|py| {
                    // Raises what a signal has raised. Only the main thread has signals.
                    py.check_signals()?;
                    progress.call(py)
                })?;
                checked = Instant::now();
            }
            if waiting.is_woken.swap(false, Ordering::AcqRel) {
                break;
            }
            thread::park_timeout(left);
        }
    }
}

/// A thread that waits for a future.
struct WaitingThread {
    thread: Thread,
    /// Work that itself parks the thread may take the token of `unpark`.
    is_woken: AtomicBool,
}

impl Wake for WaitingThread {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Returns the threads of this process, started by its first call.
///
/// A forked process has no threads but the one that forked, so it starts its own. Those of the
/// parent are leaked, because they cannot be joined. Such processes are usually one of many, so they
/// compute on the thread that needs the result.
fn threads() -> PyResult<&'static Threads> {
    let mut known = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    let process = process::id();
    if let Some(threads) = known.filter(|threads| threads.process == process) {
        return Ok(threads);
    }
    if known.is_some() {
        compute_alone();
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name("zvf")
        .on_thread_start(compute_here)
        .enable_all()
        .build()
        .map_err(|error| not_started(&error))?;
    let threads = Threads { process, runtime };
    Ok(known.insert(Box::leak(Box::new(threads))))
}
