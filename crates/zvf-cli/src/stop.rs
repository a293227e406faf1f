//! Commands that another program stops.

use std::{
    cell::RefCell,
    error::Error,
    future::poll_fn,
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use zvf_dense::{ChunkGrid, DenseError, DenseSink, Hyperslab};

/// Time between two looks at the flag.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    static FLAG: RefCell<Option<StopFlag>> = const { RefCell::new(None) };
}

/// A flag that ends a command. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Ends the command at its next look.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until the flag is set.
    async fn set(&self) {
        while !self.is_set() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Drops `work` and fails once the flag is set.
pub(crate) async fn run_until_stopped<T>(
    stop: &StopFlag,
    work: impl Future<Output = Result<T, Box<dyn Error>>>,
) -> Result<T, Box<dyn Error>> {
    let (mut work, mut set) = (pin!(work), pin!(stop.set()));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending => set
            .as_mut()
            .poll(context)
            .map(|()| Err(Interruption.into())),
        done @ Poll::Ready(_) => done,
    })
    .await
}

/// The command was stopped.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the command was stopped")]
pub(crate) struct Interruption;

/// Runs `work` with a flag that it can look at.
pub(crate) fn run_with_flag<T>(stop: &StopFlag, work: impl FnOnce() -> T) -> T {
    FLAG.replace(Some(stop.clone()));
    let done = work();
    FLAG.take();
    done
}

/// Returns the flag of this thread.
pub(crate) fn flag() -> Option<StopFlag> {
    FLAG.with_borrow(Clone::clone)
}

/// Fails if the command of this thread was stopped.
pub(crate) fn check() -> Result<(), Interruption> {
    if flag().is_some_and(|flag| flag.is_set()) {
        Err(Interruption)
    } else {
        Ok(())
    }
}

/// A sink that fails once the command of this thread was stopped, so that nothing is published.
#[derive(Debug)]
pub(crate) struct StoppableSink<'s> {
    pub(crate) name: String,
    pub(crate) sink: Box<dyn DenseSink + 's>,
}

impl StoppableSink<'_> {
    fn check(&self) -> Result<(), DenseError> {
        check().map_err(|stopped| DenseError::Io {
            name: self.name.clone(),
            source: io::Error::new(io::ErrorKind::Interrupted, stopped),
        })
    }
}

impl DenseSink for StoppableSink<'_> {
    fn grid(&self) -> &ChunkGrid {
        self.sink.grid()
    }

    fn put_chunk(&mut self, selection: &Hyperslab, bytes: &[u8]) -> Result<(), DenseError> {
        self.check()?;
        self.sink.put_chunk(selection, bytes)
    }

    fn finish(self: Box<Self>) -> Result<(), DenseError> {
        self.check()?;
        self.sink.finish()
    }
}
