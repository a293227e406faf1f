//! Containment of panics in libraries that decode files.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    path::Path,
    sync::Once,
};

use crate::{FileError, FileFault};

thread_local! {
    /// A decoder runs on this thread, and its panic is reported as an error.
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder of the file at `path`. A panic becomes an error that names the file.
///
/// The libraries for Arrow and Parquet check the structure of a file, but not every number in it.
///
/// # Errors
///
/// [`FileError`] of the decoder, and [`FileFault::Undecodable`] after a panic.
pub fn contained<T>(
    path: &Path,
    decode: impl FnOnce() -> Result<T, FileError>,
) -> Result<T, FileError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            if !IS_CONTAINED.get() {
                print(panicked);
            }
        }));
    });
    let before = IS_CONTAINED.replace(true);
    // The decoder owns everything that it changes.
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    IS_CONTAINED.set(before);
    decoded.unwrap_or_else(|_| Err(FileFault::Undecodable.of(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_a_decoder_is_an_error_that_names_the_file() {
        let path = Path::new("hostile.arrow");
        let ok = contained(path, || Ok(1));
        assert_eq!(ok.ok(), Some(1));
        let error = contained(path, || -> Result<(), _> { panic::panic_any("no") });
        let text = error.map_err(|error| error.to_string());
        let expected = "hostile.arrow is damaged: its decoder stopped unexpectedly";
        assert_eq!(text, Err(expected.to_owned()));
        assert!(!IS_CONTAINED.get());
    }
}
