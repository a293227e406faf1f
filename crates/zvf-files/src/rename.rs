//! New names for the attributes of a file.

use crate::names::AttributeNames;

/// A new name for an attribute of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttributeRename {
    /// Name in the file, or the identifier that would stand for it, with or without a scope, as
    /// `vertex.NAME`.
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

    /// Returns whether an attribute is meant, which has this name in the file.
    pub(crate) fn is_of(&self, scope: &str, name: &str, in_file: &str) -> bool {
        let with_scope = self.old.strip_prefix(scope);
        let rest = with_scope.and_then(|rest| rest.strip_prefix('.'));
        let mut forms = [Some(self.old.as_str()), rest].into_iter().flatten();
        forms.any(|old| old == name || old == in_file || AttributeNames::default().add(old) == name)
    }
}
