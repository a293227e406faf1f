//! Options of a validation.

use crate::rule::Depth;

/// Options of [`validate()`](crate::validate()).
///
/// ```
/// use zvf_validate::{Depth, ValidateOptions};
///
/// let options = ValidateOptions::default().depth(Depth::Metadata).max_findings_per_rule(10);
/// assert_eq!(options.depth, Depth::Metadata);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidateOptions {
    /// Deepest level of checks that runs. Default: [`Depth::Semantics`].
    pub depth: Depth,
    /// Maximum number of findings listed per rule; further ones are only counted. Default: 1000.
    pub max_findings_per_rule: usize,
    /// Maximum number of stored bytes of cells read in one batch, which holds at least one chunk.
    /// While a batch is checked, the next one is read. Default: 16 MiB.
    pub batch_bytes: u64,
}

impl ValidateOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    zvf_model::setters! {
        batch_bytes: u64,
        depth: Depth,
        max_findings_per_rule: usize,
    }
}

impl Default for ValidateOptions {
    fn default() -> Self {
        Self {
            depth: Depth::Semantics,
            max_findings_per_rule: 1000,
            batch_bytes: 16 << 20,
        }
    }
}
