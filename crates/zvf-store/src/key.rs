//! Which text is a key.

/// Why text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key is longer than [`MAX_KEY_BYTES`].
    #[error("key is {0} bytes long")]
    Long(usize),
    /// A segment is empty: the key is, or starts or ends with a slash, or has two in a row.
    #[error("key has an empty segment")]
    EmptySegment,
    /// A segment is `.` or `..`.
    #[error("key has a relative segment")]
    RelativeSegment,
    /// A control character or a backslash.
    #[error("key has the character {0:?}")]
    Character(char),
}

/// The longest key: what object stores take.
pub const MAX_KEY_BYTES: usize = 1024;

/// Keys come from file content: none may leave the store.
pub(crate) fn check(key: &str) -> Result<(), KeyError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(KeyError::Long(key.len()));
    }
    for segment in key.split('/') {
        match segment {
            "" => return Err(KeyError::EmptySegment),
            "." | ".." => return Err(KeyError::RelativeSegment),
            _ => {}
        }
    }
    let bad = key.chars().find(|c| c.is_control() || *c == '\\');
    bad.map_or(Ok(()), |c| Err(KeyError::Character(c)))
}
