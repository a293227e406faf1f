//! The results of listing.

/// The children of a prefix, one level deep, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// Names of children that have children themselves.
    pub folders: Vec<String>,
    /// Objects directly below the prefix.
    pub files: Vec<ListedFile>,
}

impl Listing {
    pub(crate) fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }

    /// Returns the size of the object called `name`, by binary search.
    pub(crate) fn size_of(&self, name: &str) -> Option<u64> {
        let found = self
            .files
            .binary_search_by(|file| file.name.as_str().cmp(name));
        Some(self.files.get(found.ok()?)?.size)
    }
}

/// An object in a [`Listing`] or in the result of
/// [`Store::list_all`](crate::Store::list_all).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedFile {
    /// Key relative to the listed prefix: one segment in a [`Listing`].
    pub name: String,
    /// Size in bytes.
    pub size: u64,
}
