//! Errors as one line of text.

use core::{error::Error, fmt::Write};

/// Returns an error and its sources in one line, separated by colons.
///
/// A source is left out if the text so far already contains its message.
///
/// ```
/// use zvf_model::{error_chain::error_chain, key::KeyError};
///
/// let error = std::io::Error::other(KeyError::Empty);
/// assert_eq!(error_chain(&error), "a key has an empty segment");
/// ```
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let message = cause.to_string();
        if !text.contains(&message) {
            // Writing to a `String` cannot fail.
            let _ = write!(text, ": {message}");
        }
        source = cause.source();
    }
    text
}
