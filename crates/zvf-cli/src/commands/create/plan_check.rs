//! The check of the expected size of a store before anything is written.

use std::{
    error::Error,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
};

use zvf::PlanCheck;
use zvf_build::PlanEstimate;

use crate::{
    display::{count_noun, group_digits},
    many_files::{ManyFilesError, PlanTarget},
    progress::{ProgressLine, ProgressMeter},
};

/// Numbers of files and bytes at which the plan is printed.
const LARGE_FILES: u64 = 10_000;
const LARGE_BYTES: u64 = 256 << 20;

/// Settings of the check.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanCheckOptions {
    /// Accept every plan.
    pub(super) yes: bool,
    /// Print nothing but errors.
    pub(super) quiet: bool,
}

/// A progress line that can be hidden for a question.
pub(super) struct PausableProgress {
    current: Arc<Mutex<Option<ProgressLine>>>,
    options: PlanCheckOptions,
    what: String,
    meter: ProgressMeter,
}

/// State between calls of the check, which runs twice for input in batches.
#[derive(Clone, Copy, Debug, Default)]
struct CheckedPlan {
    is_confirmed: bool,
    is_printed: bool,
}

impl PausableProgress {
    /// Shows `what` with a bar of the parts that `meter` counts.
    pub(super) fn start(options: PlanCheckOptions, what: String, meter: ProgressMeter) -> Self {
        let first = ProgressLine::with_meter(options.quiet, what.clone(), meter.clone());
        Self {
            current: Arc::new(Mutex::new(Some(first))),
            options,
            what,
            meter,
        }
    }

    /// Returns the check, which hides the line while it prints or waits for confirmation.
    pub(super) fn check(&self) -> PlanCheck {
        let (current, options) = (Arc::clone(&self.current), self.options);
        let (what, meter) = (self.what.clone(), self.meter.clone());
        let earlier = Mutex::new(CheckedPlan::default());
        Arc::new(move |estimate| {
            let mut earlier = earlier.lock().unwrap_or_else(PoisonError::into_inner);
            let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
            drop(current.take());
            check(estimate, options, &mut earlier)?;
            *current = Some(ProgressLine::with_meter(
                options.quiet,
                what.clone(),
                meter.clone(),
            ));
            Ok(())
        })
    }

    /// Removes the line.
    pub(super) fn finish(self) {
        drop(
            self.current
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
    }
}

fn check(
    estimate: &PlanEstimate,
    options: PlanCheckOptions,
    earlier: &mut CheckedPlan,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let is_large = estimate.files > LARGE_FILES || estimate.bytes > LARGE_BYTES;
    let is_confirmed = options.yes || earlier.is_confirmed;
    if let Some(error) = ManyFilesError::of(estimate, PlanTarget::New).filter(|_| !is_confirmed) {
        let can_confirm = io::stdin().is_terminal() && io::stderr().is_terminal();
        if can_confirm && confirm(&error)? {
            earlier.is_confirmed = true;
            return Ok(());
        }
        return Err(error.into());
    }
    if is_large && !options.quiet && !earlier.is_printed && !earlier.is_confirmed {
        earlier.is_printed = true;
        anstream::eprintln!("{}", plan_text(estimate));
    }
    Ok(())
}

/// Describes the plan in one line.
fn plan_text(estimate: &PlanEstimate) -> String {
    format!(
        "plan: {} in {}, about {} bytes before compression, {} bytes of memory for geometry",
        count_noun(estimate.chunks, "chunk", "chunks"),
        count_noun(estimate.files, "file", "files"),
        group_digits(estimate.bytes),
        group_digits(estimate.memory),
    )
}

/// Requests confirmation on the terminal.
fn confirm(error: &ManyFilesError) -> io::Result<bool> {
    anstream::eprint!("{error}\nWrite it anyway? [y/N] ");
    io::stderr().flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(["y", "yes"].contains(&line.trim().to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Input that is read in batches is checked twice; a confirmed request is not confirmed again.
    #[test]
    fn a_confirmed_plan_is_accepted_again() {
        let mut estimate = PlanEstimate::default();
        (estimate.vertices, estimate.chunks, estimate.files) = (20_000, 20_000, 60_000);
        estimate.chunk_shape = vec![0.5; 3];
        let options = PlanCheckOptions {
            yes: false,
            quiet: true,
        };
        let mut earlier = CheckedPlan::default();
        // Tests do not run on a terminal.
        assert!(check(&estimate, options, &mut earlier).is_err());
        earlier.is_confirmed = true;
        assert!(check(&estimate, options, &mut earlier).is_ok());
    }
}
