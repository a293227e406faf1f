//! The difference between an object and the inventory of a sealed store.

/// The difference between an object and the inventory of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// The inventory lists an object that is absent.
    #[error("the object is absent, but the inventory of the store lists it")]
    Missing,
    /// The object exists, but the inventory does not list it.
    #[error("the object is not in the inventory of the store")]
    Unlisted,
    /// The object has another size.
    #[error("the object has {found} bytes, but {listed} in the inventory of the store")]
    Size {
        /// The size in the inventory.
        listed: u64,
        /// The size of the object.
        found: u64,
    },
    /// The object has other contents.
    #[error("the contents of the object differ from the inventory of the store")]
    Contents,
    /// The row table of the object in the inventory has other rows than the object.
    #[error("the rows of its fragments differ from those in the inventory of the store")]
    Rows,
    /// The inventory itself is damaged, of another state of the store, or absent.
    #[error("the inventory of the store is damaged or belongs to another state of the store")]
    Inventory,
}
