//! The callback for the progress of long operations.

use std::sync::Arc;

/// Callback for progress: the number of finished tasks, and of all tasks.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;
