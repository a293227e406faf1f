//! Arguments that select a box of an array.

use zvf_dense::{Hyperslab, HyperslabError};

/// The elements to read.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct BoxArgs {
    /// First element along each axis; the default is 0.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',')]
    start: Option<Vec<u64>>,
    /// End along each axis, exclusive; the default is the extent.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',')]
    stop: Option<Vec<u64>>,
    /// Step along each axis; the default is 1.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',')]
    step: Option<Vec<u64>>,
}

impl BoxArgs {
    /// Returns the box in an array of this shape.
    pub(crate) fn selection(&self, shape: &[u64]) -> Result<Hyperslab, HyperslabError> {
        let given = [&self.start, &self.stop, &self.step];
        for list in given.into_iter().flatten() {
            if list.len() != shape.len() {
                return Err(HyperslabError::Rank {
                    array: shape.len(),
                    selection: list.len(),
                });
            }
        }
        let zeros = vec![0; shape.len()];
        let start = self.start.as_deref().unwrap_or(&zeros);
        let stop = self.stop.as_deref().unwrap_or(shape);
        let selection = Hyperslab::new(start, stop, self.step.as_deref())?;
        selection.check(shape)?;
        Ok(selection)
    }
}
