//! A sign of life on stderr, for what takes longer than a second.

use std::{
    io::{self, IsTerminal},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use zvf::{Dataset, Store};

use crate::number::{counted, grouped};

const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(100);
const BAR: &str = "{msg} [{bar:30}] {pos} of {len} parts, {eta} left";

/// How far work is, told by who does it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<(AtomicU64, AtomicU64)>);

impl Meter {
    /// Takes what is done, of how much.
    pub(crate) fn set(&self, done: u64, of: u64) {
        self.0.0.store(done, Ordering::Relaxed);
        self.0.1.store(of, Ordering::Relaxed);
    }

    /// What is done, and of how much, when it is known.
    fn get(&self) -> Option<(u64, u64)> {
        let of = self.0.1.load(Ordering::Relaxed);
        (of > 0).then(|| (self.0.0.load(Ordering::Relaxed), of))
    }
}

/// Shows what is being done for as long as it exists. A thread of its own
/// draws, as decoding leaves an async timer no time.
pub(crate) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Of what a store reads.
    pub(crate) fn of(dataset: &Dataset, quiet: bool) -> Self {
        Self::of_store(dataset.store(), quiet)
    }

    /// The same of a store that need not be one that can be opened.
    pub(crate) fn of_store(store: &Store, quiet: bool) -> Self {
        let store = store.clone();
        Self::saying(quiet, move || {
            let activity = store.activity();
            let requests = counted(activity.requests, ["request", "requests"]);
            format!("{requests}, {} bytes read", grouped(activity.bytes_read))
        })
    }

    /// Of what a store is asked for and given.
    pub(crate) fn of_change(store: &Store, what: &str, quiet: bool) -> Self {
        let (store, what) = (store.clone(), what.to_owned());
        Self::saying(quiet, move || {
            let activity = store.activity();
            let requests = activity.requests.saturating_add(activity.writes);
            let requests = counted(requests, ["request", "requests"]);
            let (read, written) = (
                grouped(activity.bytes_read),
                grouped(activity.bytes_written),
            );
            format!("{what}: {requests}, {read} bytes read, {written} written")
        })
    }

    /// Says what is being done.
    pub(crate) fn saying(quiet: bool, what: impl Fn() -> String + Send + 'static) -> Self {
        Self::drawn(quiet, move |bar| bar.set_message(what()))
    }

    /// Shows how much of it is done.
    pub(crate) fn measured(quiet: bool, what: String, meter: Meter) -> Self {
        Self::drawn(quiet, move |bar| {
            let (done, of) = meter.get().unwrap_or_default();
            if done >= of {
                // Before the first part is done, and while all of them are put in place.
                let start = if of > 0 { "finishing: " } else { "" };
                bar.set_style(ProgressStyle::default_spinner());
                bar.set_message(format!("{start}{what}"));
                return;
            }
            if bar.length() != Some(of) {
                let style = ProgressStyle::with_template(BAR);
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                bar.set_length(of);
                bar.set_message(what.clone());
            }
            bar.set_position(done);
        })
    }

    /// Shows nothing when nobody would see it.
    fn drawn(quiet: bool, update: impl Fn(&ProgressBar) + Send + 'static) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (done, ends) = mpsc::channel();
        let thread = thread::spawn(move || {
            if ends.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner();
            while ends.recv_timeout(STEP) == Err(RecvTimeoutError::Timeout) {
                update(&bar);
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self(Some((done, thread)))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, thread)) = self.0.take() {
            drop(done);
            // It can only have failed to draw.
            let _ = thread.join();
        }
    }
}
