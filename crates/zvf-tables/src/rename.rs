//! New names for the attributes of a file.

/// A new name for an attribute of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeRename {
    /// Name in the file, with or without a scope, as `vertex.NAME`.
    pub old: String,
    /// Name in the geometry.
    pub new: String,
}

impl AttributeRename {
    /// Creates a new name for an attribute.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self {
            old: old.into(),
            new: new.into(),
        }
    }
}
