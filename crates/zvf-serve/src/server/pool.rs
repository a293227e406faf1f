//! Work of the CPU, on as many threads as there are cores.

use tokio::sync::oneshot;

use crate::layers::LayerError;

/// Runs `work` on one of as many threads as there are cores: each thread keeps freed memory.
pub(super) async fn on_pool<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LayerError> + Send + 'static,
) -> Result<T, LayerError> {
    let (sender, response) = oneshot::channel();
    rayon::spawn(move || {
        // Fails only if the client has disconnected.
        let _ = sender.send(work());
    });
    response.await.map_err(|_| LayerError::Ended)?
}
