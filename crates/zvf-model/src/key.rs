//! Keys: paths of objects in a store.
//!
//! A key is a path relative to the root of the store, with `/` between segments. Parts of it come
//! from file content (attribute names, chunk keys, link offsets), so keys are validated on creation
//! and cannot name anything outside the store.

use core::fmt;

use crate::excerpt::Excerpt;

/// Maximum length of a key in bytes, the limit of object stores.
pub const MAX_BYTES: usize = 1024;
/// Maximum length of a segment in bytes, the limit of file systems.
pub const MAX_SEGMENT_BYTES: usize = 255;
/// Maximum number of segments. Chunks of arrays of 32 dimensions fit.
pub const MAX_SEGMENTS: usize = 64;

/// A path in a store, without empty, `.` or `..` segments, slashes at the ends, backslashes and
/// control characters, and of bounded length and depth.
///
/// ```
/// use zvf_model::key::Key;
///
/// let key = Key::parse("0/links/0")?.join("+1.0.0")?;
/// assert_eq!(key.as_str(), "0/links/0/+1.0.0");
/// assert!(key.join("../../secret").is_err());
/// # Ok::<(), zvf_model::key::KeyError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<str>);

impl Key {
    /// Returns the key of the store itself, which has no segments.
    pub fn root() -> Self {
        Self(Box::default())
    }

    /// Checks a path of one segment or more.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if a segment is not allowed or the key is too long.
    pub fn parse(path: &str) -> Result<Self, KeyError> {
        Self::root().join_path(path)
    }

    /// Returns the child of this name.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if `segment` is not a single valid segment, or the key becomes too long.
    pub fn join(&self, segment: &str) -> Result<Self, KeyError> {
        self.join_all(&[segment])
    }

    /// Appends several segments.
    ///
    /// # Errors
    ///
    /// [`KeyError`] as for [`join`](Self::join).
    pub fn join_all(&self, segments: &[&str]) -> Result<Self, KeyError> {
        let added = segments
            .iter()
            .map(|segment| segment.len().saturating_add(1));
        let mut key = String::with_capacity(added.fold(self.0.len(), usize::saturating_add));
        key.push_str(&self.0);
        for segment in segments {
            check_segment(segment)?;
            if !key.is_empty() {
                key.push('/');
            }
            key.push_str(segment);
        }
        Self::within_limits(key)
    }

    /// Creates a key of valid segments.
    pub(crate) fn within_limits(key: String) -> Result<Self, KeyError> {
        if key.len() > MAX_BYTES {
            return Err(KeyError::Long(key.len()));
        }
        let slashes = key.bytes().filter(|byte| *byte == b'/').count();
        if slashes >= MAX_SEGMENTS {
            return Err(KeyError::Deep(slashes.saturating_add(1)));
        }
        Ok(Self(key.into_boxed_str()))
    }

    /// Appends a path of several segments.
    ///
    /// # Errors
    ///
    /// [`KeyError`] as for [`join`](Self::join).
    pub fn join_path(&self, path: &str) -> Result<Self, KeyError> {
        if path.len() > MAX_BYTES {
            return Err(KeyError::Long(path.len()));
        }
        path.split('/').try_for_each(check_segment)?;
        let key = if self.is_root() {
            path.to_owned()
        } else {
            format!("{}/{path}", self.0)
        };
        Self::within_limits(key)
    }

    /// Returns the key of the node's metadata, its child `zarr.json`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if the key becomes too long.
    pub fn metadata(&self) -> Result<Self, KeyError> {
        self.join("zarr.json")
    }

    /// Returns the key without its last segment; `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let (parent, _) = self.0.rsplit_once('/').unwrap_or_default();
        Some(Self(parent.into()))
    }

    /// Returns whether the key is in the folder of another one.
    pub fn is_below(&self, folder: &Self) -> bool {
        let rest = self.0.strip_prefix(folder.as_str());
        rest.is_some_and(|rest| {
            if folder.is_root() {
                !rest.is_empty()
            } else {
                rest.starts_with('/')
            }
        })
    }

    /// Returns the segments, from the root.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|segment| !segment.is_empty())
    }

    /// Returns the last segment; `None` for the root.
    pub fn name(&self) -> Option<&str> {
        let (_, name) = self.0.rsplit_once('/').unwrap_or(("", &self.0));
        (!self.is_root()).then_some(name)
    }

    /// Returns whether this is the store itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key as text; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    /// Formats the root as `.`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// Reason that text is not a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Nothing between two slashes, or a slash at an end.
    #[error("a key has an empty segment")]
    Empty,
    /// `.` or `..`, which would leave the folder.
    #[error("a key has the segment \"{0}\"")]
    Relative(&'static str),
    /// A slash, backslash or control character inside a segment.
    #[error("a key has a character that is not allowed: \"{0}\"")]
    Character(Excerpt),
    /// A segment of more than [`MAX_SEGMENT_BYTES`] bytes.
    #[error("a key has a segment of {0} bytes, more than {MAX_SEGMENT_BYTES}")]
    LongSegment(usize),
    /// More than [`MAX_BYTES`] bytes.
    #[error("a key of {0} bytes, more than {MAX_BYTES}")]
    Long(usize),
    /// More than [`MAX_SEGMENTS`] segments.
    #[error("a key of {0} segments, more than {MAX_SEGMENTS}")]
    Deep(usize),
}

fn check_segment(segment: &str) -> Result<(), KeyError> {
    match segment {
        "" => return Err(KeyError::Empty),
        "." => return Err(KeyError::Relative(".")),
        ".." => return Err(KeyError::Relative("..")),
        _ => {}
    }
    if segment.len() > MAX_SEGMENT_BYTES {
        return Err(KeyError::LongSegment(segment.len()));
    }
    let forbidden = |c: char| c.is_control() || c == '/' || c == '\\';
    if segment.contains(forbidden) {
        return Err(KeyError::Character(Excerpt::of(segment)));
    }
    Ok(())
}
