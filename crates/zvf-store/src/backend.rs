//! Kinds of store: how an address names one, what it costs to read, and how its failures are
//! classified.

mod address;
mod error;
mod failure;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
mod network;
mod profile;
mod simulated_network;
#[cfg(feature = "zip")]
mod zip;

use std::sync::Arc;

use object_store::ObjectStore;

pub use error::OpenError;
pub use simulated_network::SimulatedNetwork;

pub(crate) use address::{Address, Scheme, local_path};
pub use address::{absolute_address, path_in_folder};
pub(crate) use failure::{
    FailureKind, classify, gave_up_early, ignores_ranges, is_below_file, is_connection,
    is_of_another_range, local_failure, message_contains, names_no_bucket, refuses_listing, status,
    write_failure,
};
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http"))]
pub(crate) use network::{NetworkOptions, connect};
pub(crate) use profile::BackendProfile;
#[cfg(feature = "zip")]
pub(crate) use zip::ZipArchive;

/// The source of a store's bytes.
pub(crate) enum Backend {
    /// A folder, memory, a web server or a bucket.
    Objects(Arc<dyn ObjectStore>),
    #[cfg(feature = "zip")]
    Zip(Arc<ZipArchive>),
}
