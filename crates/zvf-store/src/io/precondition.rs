//! Conditional writes: the version of an object and what a put requires of it.

use object_store::{PutResult, UpdateVersion};

/// The version of an object, as conditional puts compare it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectVersion {
    pub(crate) e_tag: Option<String>,
    /// The generation number, which Google Cloud Storage compares instead of the tag.
    pub(crate) version: Option<String>,
}

impl ObjectVersion {
    /// Returns whether the backend reported anything to compare.
    pub(crate) fn is_known(&self) -> bool {
        self.e_tag.is_some() || self.version.is_some()
    }
}

/// The state of an object that a put requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Precondition {
    /// None: the put replaces any object.
    None,
    /// No object exists at the key.
    Absent,
    /// The object at the key has this version.
    Matches(ObjectVersion),
}

impl From<PutResult> for ObjectVersion {
    fn from(put: PutResult) -> Self {
        Self {
            e_tag: put.e_tag,
            version: put.version,
        }
    }
}

impl From<ObjectVersion> for UpdateVersion {
    fn from(version: ObjectVersion) -> Self {
        Self {
            e_tag: version.e_tag,
            version: version.version,
        }
    }
}
