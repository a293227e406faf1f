//! A box on the command line.

use zvf_dense::{Hyperslab, HyperslabError};

/// Which elements.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct BoxArgs {
    /// The first element along each axis; 0 without.
    #[arg(long, value_name = "I,J,…", value_delimiter = ',')]
    start: Option<Vec<u64>>,
    /// One past the last along each axis; the end without.
    #[arg(long, value_name = "I,J,…", value_delimiter = ',')]
    stop: Option<Vec<u64>>,
    /// Every how many along each axis; 1 without.
    #[arg(long, value_name = "I,J,…", value_delimiter = ',')]
    step: Option<Vec<u64>>,
}

impl BoxArgs {
    /// The box in an array of this shape.
    pub(crate) fn selection(&self, shape: &[u64]) -> Result<Hyperslab, HyperslabError> {
        let zeros = vec![0; shape.len()];
        let start = self.start.as_deref().unwrap_or(&zeros);
        let stop = self.stop.as_deref().unwrap_or(shape);
        let selection = Hyperslab::new(start, stop, self.step.as_deref())?;
        selection.check(shape)?;
        Ok(selection)
    }
}
