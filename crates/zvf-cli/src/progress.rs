//! A progress line on standard error for work that takes longer than a second.

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

use crate::display::{count_noun, group_digits};

/// Time after which the line appears.
const DELAY: Duration = Duration::from_secs(1);
/// Time between updates.
const INTERVAL: Duration = Duration::from_millis(100);
const BAR: &str = "{msg} [{bar:14}] {pos} of {len} parts, {eta} left";
/// Columns of a terminal that a line may take.
const COLUMNS: usize = 80;
/// Columns of the spinner before a message.
const SPINNER: usize = 2;
/// Columns of a bar: brackets, numbers of seven digits and the time that is left.
const BAR_COLUMNS: usize = 55;

/// Counter of finished parts, which the worker sets and [`ProgressLine`] shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProgressMeter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    total: AtomicU64,
    /// Bytes of the input that were read in this pass, and all of them.
    read: AtomicU64,
    size: AtomicU64,
}

impl ProgressMeter {
    /// Records that `done` of `total` parts are finished.
    pub(crate) fn set(&self, done: u64, total: u64) {
        self.0.done.store(done, Ordering::Relaxed);
        self.0.total.store(total, Ordering::Relaxed);
    }

    /// Records that a pass over an input of `size` bytes begins.
    pub(crate) fn start_reading(&self, size: u64) {
        self.0.read.store(0, Ordering::Relaxed);
        self.0.size.store(size, Ordering::Relaxed);
    }

    /// Records that `bytes` more of the input were read.
    pub(crate) fn add_read(&self, bytes: u64) {
        self.0.read.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns how much of the input was read, as text.
    fn reading(&self) -> Option<String> {
        let size = self.0.size.load(Ordering::Relaxed);
        // The size is an estimate for some formats.
        let read = self.0.read.load(Ordering::Relaxed).min(size);
        let [read, size] = [read, size].map(group_digits);
        (size != "0").then(|| format!("{read} of {size} bytes read"))
    }

    /// Returns finished parts and total, both 0 before the total is known.
    fn get(&self) -> (u64, u64) {
        let total = self.0.total.load(Ordering::Relaxed);
        (self.0.done.load(Ordering::Relaxed), total)
    }
}

/// A progress line, shown until the value is dropped.
///
/// A thread of its own draws, because decoding keeps the async thread too busy for timers.
pub(crate) struct ProgressLine(Option<(Sender<()>, JoinHandle<()>)>);

impl ProgressLine {
    /// Shows the requests and bytes read of a dataset.
    pub(crate) fn for_dataset(dataset: &Dataset, quiet: bool) -> Self {
        Self::for_store(dataset.store(), quiet)
    }

    /// Shows the requests and bytes read of a store.
    pub(crate) fn for_store(store: &Store, quiet: bool) -> Self {
        let store = store.clone();
        Self::with_message(quiet, move || {
            let activity = store.activity();
            let requests = count_noun(activity.requests, "request", "requests");
            format!(
                "{requests}, {} bytes read",
                group_digits(activity.bytes_read)
            )
        })
    }

    /// Shows `what` with the requests, bytes read and bytes written of a store.
    pub(crate) fn for_change(store: &Store, what: &str, quiet: bool) -> Self {
        let (store, what) = (store.clone(), what.to_owned());
        Self::with_message(quiet, move || {
            let activity = store.activity();
            let requests = activity.requests.saturating_add(activity.writes);
            let requests = count_noun(requests, "request", "requests");
            let read = group_digits(activity.bytes_read);
            let written = group_digits(activity.bytes_written);
            line(
                &what,
                &format!("{requests}, {read} bytes read, {written} written"),
            )
        })
    }

    /// Shows the current value of `message`.
    pub(crate) fn with_message(quiet: bool, message: impl Fn() -> String + Send + 'static) -> Self {
        Self::start(quiet, move |bar| {
            bar.set_message(shortened(&message(), COLUMNS.saturating_sub(SPINNER)));
        })
    }

    /// Shows `what` with a bar of the parts that `meter` counts.
    pub(crate) fn with_meter(quiet: bool, what: String, meter: ProgressMeter) -> Self {
        Self::start(quiet, move |bar| {
            let (done, total) = meter.get();
            if done >= total {
                // No total is known yet, or the last parts are being committed.
                let prefix = if total > 0 { "finishing: " } else { "" };
                bar.set_style(ProgressStyle::default_spinner());
                let room = COLUMNS.saturating_sub(SPINNER).saturating_sub(prefix.len());
                bar.set_message(match meter.reading().filter(|_| total == 0) {
                    Some(counts) => line(&what, &counts),
                    None => format!("{prefix}{}", shortened(&what, room)),
                });
                return;
            }
            if bar.length() != Some(total) {
                let style = ProgressStyle::with_template(BAR);
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                bar.set_length(total);
                bar.set_message(shortened(&what, COLUMNS.saturating_sub(BAR_COLUMNS)));
            }
            bar.set_position(done);
        })
    }

    /// Starts the drawing thread, unless standard error is not a terminal.
    fn start(quiet: bool, update: impl Fn(&ProgressBar) + Send + 'static) -> Self {
        if quiet || !io::stderr().is_terminal() {
            return Self(None);
        }
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            if stopped.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner();
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                update(&bar);
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self(Some((stop, thread)))
    }
}

/// Returns a message of two parts. Shortens the first until both fit into a line.
fn line(what: &str, counts: &str) -> String {
    let separator = ": ";
    let room = COLUMNS
        .saturating_sub(SPINNER)
        .saturating_sub(counts.chars().count().saturating_add(separator.len()));
    match shortened(what, room) {
        what if what.is_empty() => counts.to_owned(),
        what => format!("{what}{separator}{counts}"),
    }
}

/// Returns the text in at most `columns` characters: its middle is left out, because paths differ
/// at the end. Nothing is left of a text that would have less than four.
fn shortened(text: &str, columns: usize) -> String {
    let count = text.chars().count();
    if count <= columns {
        return text.to_owned();
    }
    if columns < 4 {
        return String::new();
    }
    let kept = columns.saturating_sub(1);
    let end = kept.div_ceil(2);
    let start = text.chars().take(kept.saturating_sub(end));
    let rest = text.chars().skip(count.saturating_sub(end));
    start.chain(core::iter::once('…')).chain(rest).collect()
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            // A panic of the drawing thread must not fail the command.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_80_columns() {
        let address = "s3://a-bucket-with-a-long-name/and/folders/below/it/tracts.zv";
        let what = format!("building levels of {address}");
        let counts = "12 345 678 requests, 123 456 789 012 bytes read, 12 345 678 written";
        let shown = line(&what, counts);
        assert!(shown.chars().count() + SPINNER <= COLUMNS, "{shown}");
        assert!(shown.ends_with(counts), "{shown}");
        assert_eq!(line("appending", "1 request"), "appending: 1 request");
        let counts = "x".repeat(76);
        assert_eq!(line(&what, &counts), counts);
        let shown = shortened(&what, 25);
        assert_eq!(shown, "building lev…it/tracts.zv");
    }

    #[test]
    fn a_bar_with_its_message_fits_80_columns() {
        let mut fixed = BAR.to_owned();
        for (key, value) in [
            ("{msg}", String::new()),
            ("{bar:14}", "=".repeat(14)),
            ("{pos}", "1234567".to_owned()),
            ("{len}", "1234567".to_owned()),
            ("{eta}", "59m".to_owned()),
        ] {
            fixed = fixed.replace(key, &value);
        }
        assert!(fixed.chars().count() <= BAR_COLUMNS, "{fixed}");
    }
}
