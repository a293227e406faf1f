//! Work of the CPU, on as many threads as there are cores.

use crate::layers::LayerError;

/// Runs `work` on one of as many threads as there are cores: each thread keeps freed memory.
pub(super) async fn on_pool<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LayerError> + Send + 'static,
) -> Result<T, LayerError> {
    let done = zvf_store::spawn_cpu(work).await;
    done.unwrap_or(Err(LayerError::Ended))
}
