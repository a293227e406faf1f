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
    /// Maximum number of stored bytes of cells read in one batch. While a batch is checked, the next
    /// one is read. Default: 16 MiB.
    pub batch_bytes: u64,
}

impl ValidateOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the deepest level of checks that runs.
    #[must_use]
    pub fn depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    /// Sets the maximum number of findings listed per rule.
    #[must_use]
    pub fn max_findings_per_rule(mut self, max: usize) -> Self {
        self.max_findings_per_rule = max;
        self
    }

    /// Sets the maximum number of stored bytes of cells read in one batch. A batch holds at least
    /// one chunk.
    #[must_use]
    pub fn batch_bytes(mut self, bytes: u64) -> Self {
        self.batch_bytes = bytes;
        self
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
