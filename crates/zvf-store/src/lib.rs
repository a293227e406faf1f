//! Reads stores of the Zarr Vectors Format from disks, zip files, memory, web
//! servers and buckets, with few requests, and writes them to disks, memory and
//! buckets.
//!
//! [`Store::open`] takes an address, [`Store::read`] a batch of keys and ranges.
//! What goes out is decided before anything does: equal reads are one, near
//! ranges of an object are merged ([`coalesce`]), and no object is asked for its
//! size. What comes back is all that was asked for or a [`ReadError`] with the
//! key; an absent object is `None`.
//!
//! ```
//! use zvf_model::key::Key;
//! use zvf_store::{Read, Store};
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let store = Store::from_memory([("0/cell", b"0123456789".as_slice())])?;
//! let cell = Key::parse("0/cell")?;
//! let reads = [
//!     Read::bounded(cell.clone(), 2..4),
//!     Read::bounded(cell, 7..9),
//!     Read::full(Key::parse("0/absent")?),
//! ];
//! let [first, second, absent] = &store.read(&reads).await?[..] else { unreachable!() };
//! assert_eq!(first.as_deref(), Some(&b"23"[..]));
//! assert_eq!(second.as_deref(), Some(&b"78"[..]));
//! assert!(absent.is_none());
//! assert_eq!(store.activity().requests, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cells
//!
//! [`CellReader`] reads the cells of arrays, each described by a [`CellArray`]:
//! it knows which object and which part of it to ask for, undoes the codecs
//! within a bound ([`ChunkCodecs`]), takes payloads out of their frames, and
//! keeps the indexes of shards. It is what plans ask through the port
//! [`Fetch`](zvf_model::fetch::Fetch), where each cell fails alone.
//!
//! [`CellArray::encode`] makes of a payload what is stored, and
//! [`CellArray::encode_shard`] of many the object they share;
//! [`CellArray::object_of`] says where it goes. What zarr-python writes, these
//! write byte for byte, but for gzip.
//!
//! # Writing
//!
//! [`Store::create`] opens a store to write to it. [`Store::put_many`],
//! [`Store::put_if_absent`] and [`Store::delete_many`] change single objects, each of
//! which is there whole or not at all.
//!
//! A [`Transaction`], from [`Store::begin`], changes many objects at once or
//! none, whoever dies in between, and one that began at a state that others
//! changed since is told. [`Creation`], from [`Store::begin_create`], makes a
//! store or none. Whoever reads a store that others write to hands the bytes of
//! its root to [`Store::committed_view`], and reads what that returns. How all this
//! works, and what a bucket cannot promise, is in `docs/adr/0007`.
//!
//! # Kinds of store
//!
//! | address | feature | ranges merged within | most of a merged request | requests at once |
//! |---|---|---|---|---|
//! | `memory:` | | 8 KiB | 4 MiB | 1 |
//! | a path, `file:` | | 16 KiB | 4 MiB | 16 |
//! | a path to a `.zip` | `zip`, on by default | 16 KiB | 4 MiB | 16 |
//! | `http:`, `https:` | `http` | 1 MiB | 16 MiB | 64 |
//! | `s3:` | `aws` | as `http` | | |
//! | `gs:` | `gcp` | as `http` | | |
//! | `az:`, `abfs:` | `azure` | as `http` | | |
//!
//! Web servers and zip files can only be read.
//!
//! All is async and needs a tokio runtime for the network; the other kinds
//! also work without one, on the calling thread.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]

mod backend;
mod cell;
mod codec;
mod io;
mod store;
mod threads;
mod transaction;

pub use backend::OpenError;
#[doc(hidden)]
pub use backend::SimulatedNetwork;
pub use cell::{CellArray, CellArrayError, CellError, CellRead, CellReader};
pub use codec::{
    ChunkCodecs, ChunkForm, CodecsError, DecodeError, DecodedSize, EncodeError, ShardEntryError,
};
pub use io::{
    ByteRange, CoalescedRanges, ListError, ListedFile, Listing, MergeLimits, Read, ReadError,
    WriteError, coalesce,
};
pub use store::{Activity, OpenOptions, Store};
pub use threads::{spawn_blocking, spawn_cpu};
pub use transaction::{
    CommitError, CommitReport, CreateError, Creation, RecordError, Transaction, TransactionError,
};
