//! Addresses and open stores: what every operation accepts.

use zvf_store::{CreateError, enclosing_store};
use zvf_store::{OpenOptions, Store};

use crate::{error::Error, failure::Failure};

/// The store an operation works on: an address, or a [`Store`] that is already open.
///
/// Entry points take `impl Into<Location>`. An address (`&str` or `String`) is opened with the
/// options of the operation. A [`Store`] keeps the options it was opened with.
///
/// ```
/// use zvf::{Dataset, OpenOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = OpenOptions::default().create("memory:")?;
/// assert!(Dataset::open(&store).await.is_err(), "the store is empty");
/// assert!(Dataset::open("does/not/exist.zv").await.is_err());
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Location(Inner);

#[derive(Clone, Debug)]
enum Inner {
    Address(String),
    Store(Store),
}

impl Location {
    /// Returns the store, opened with `options` if this is an address.
    ///
    /// # Errors
    ///
    /// [`Error`] when there is no store at the address, or it cannot be opened.
    pub fn open(self, options: &OpenOptions) -> Result<Store, Error> {
        match self.0 {
            Inner::Address(address) => Ok(options.open(&address)?),
            Inner::Store(store) => Ok(store),
        }
    }

    /// Returns the store to write to, opened with `options` if this is an address. A missing
    /// folder is created, but not in the folder of another store.
    ///
    /// # Errors
    ///
    /// [`Error`] when the address cannot be opened, or is in the folder of a store.
    pub fn create(self, options: &OpenOptions) -> Result<Store, Error> {
        match self.0 {
            Inner::Address(address) => {
                check_outside_stores(&address)?;
                Ok(options.create(&address)?)
            }
            Inner::Store(store) => Ok(store),
        }
    }

    /// Returns the address; `None` for a store that is already open.
    pub fn address(&self) -> Option<&str> {
        match &self.0 {
            Inner::Address(address) => Some(address),
            Inner::Store(_) => None,
        }
    }
}

/// Fails if a local address is in the folder of a store, where its files would be damage.
fn check_outside_stores(address: &str) -> Result<(), Failure> {
    match enclosing_store(address) {
        Some(store) => Err(Failure::Create {
            address: address.to_owned(),
            source: CreateError::InStore(store.display().to_string()),
        }),
        None => Ok(()),
    }
}

impl From<&str> for Location {
    fn from(address: &str) -> Self {
        Self(Inner::Address(address.to_owned()))
    }
}

impl From<String> for Location {
    fn from(address: String) -> Self {
        Self(Inner::Address(address))
    }
}

impl From<&String> for Location {
    fn from(address: &String) -> Self {
        Self(Inner::Address(address.clone()))
    }
}

impl From<Store> for Location {
    fn from(store: Store) -> Self {
        Self(Inner::Store(store))
    }
}

impl From<&Store> for Location {
    fn from(store: &Store) -> Self {
        Self(Inner::Store(store.clone()))
    }
}
