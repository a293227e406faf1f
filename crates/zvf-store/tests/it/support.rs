//! What several tests share.

use core::future::Future;

use zvf_store::{OpenOptions, Read, Store};

/// Runs async code to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(future)
}

/// The numbers from 0, modulo 251, so that no two stretches are equal.
pub(crate) fn numbered(len: usize) -> Vec<u8> {
    (0..=250).cycle().take(len).collect()
}

/// A store in memory that keeps a log.
pub(crate) fn recorded(objects: &[(&str, Vec<u8>)]) -> Store {
    let options = OpenOptions::default().record(true);
    options.from_memory(objects.iter().cloned()).unwrap()
}

/// The log as text, a line for each request.
pub(crate) fn log(store: &Store) -> Vec<String> {
    let line = |read: Read| format!("{} {}", read.key, read.range);
    store.take_log().into_iter().map(line).collect()
}
