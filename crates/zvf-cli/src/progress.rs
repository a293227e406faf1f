//! A sign of life on stderr, for what takes longer than a second.

use std::{
    io::{self, IsTerminal},
    sync::mpsc::{self, RecvTimeoutError, Sender},
    thread::{self, JoinHandle},
    time::Duration,
};

use indicatif::ProgressBar;
use zvf::Dataset;

use crate::number::{counted, grouped};

const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(100);

/// Shows what is being done for as long as it exists. A thread of its own
/// draws, as decoding leaves an async timer no time.
pub(crate) struct Progress(Option<(Sender<()>, JoinHandle<()>)>);

impl Progress {
    /// Of what a store reads.
    pub(crate) fn of(dataset: &Dataset, quiet: bool) -> Self {
        let store = dataset.store().clone();
        Self::saying(quiet, move || {
            let activity = store.activity();
            let requests = counted(activity.requests, ["request", "requests"]);
            format!("{requests}, {} bytes read", grouped(activity.bytes_read))
        })
    }

    /// Shows nothing when nobody would see it.
    pub(crate) fn saying(quiet: bool, what: impl Fn() -> String + Send + 'static) -> Self {
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
                bar.set_message(what());
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
