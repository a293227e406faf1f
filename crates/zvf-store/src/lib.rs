//! Stores of the Zarr Vectors Format on disks, in zip files, memory, buckets and on web servers:
//! batched reads, decoded cells, and atomic writes.
//!
//! | entry point | use |
//! |---|---|
//! | [`Store::open`], [`OpenOptions`] | open a store to read it |
//! | [`Store::read`], [`Store::read_each`] | read a batch of keys and byte ranges |
//! | [`CellReader`] | read and decode cells of arrays, with a cache |
//! | [`CellArray::encode`], [`CellArray::encode_shard`] | encode cells and shards |
//! | [`Store::create`], [`Store::begin_create`] | open a store for writing, create one atomically |
//! | [`Store::begin`] | change many objects in a [`Transaction`] |
//! | [`Store::resume_create`], [`Store::resume_transaction`], [`JobFiles`] | continue what another process began |
//!
//! [`Store::read`] plans all requests of a batch before it sends the first one. Equal reads share a
//! request, nearby ranges of an object are merged ([`coalesce`]), and no request is made for the
//! size of an object. A read returns all requested bytes, `None` for an absent object, or a
//! [`ReadError`] with the key.
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
//! A [`CellReader`] reads cells of arrays, each described by a [`CellArray`]. It locates the object
//! and the byte range of a cell, decodes its codecs within a size limit ([`ChunkCodecs`]), unwraps
//! the payload from its frame, and caches shard indexes. It implements
//! [`Fetch`](zvf_model::fetch::Fetch), the port through which queries read; there, a damaged cell
//! fails without affecting the other cells of its batch.
//!
//! [`CellArray::encode`] encodes the payload of one cell, [`CellArray::encode_shard`] combines many
//! cells into a shard, and [`CellArray::locate`] returns the key of a cell's object and its number in
//! the shard. The encoded bytes are identical to those of zarr-python, except for gzip.
//!
//! # Writing
//!
//! [`Store::create`] opens a store for writing. [`Store::put_many`], [`Store::put_if_absent`] and
//! [`Store::delete_many`] change single objects; each object is written completely or not at all.
//!
//! A [`Transaction`] from [`Store::begin`] changes many objects atomically, even if its process dies
//! at any point. If others were committed since it began, its commit fails with
//! [`CommitError::Conflict`] if they touched the same names, and else with
//! [`CommitError::Outdated`], after which it can be rebased and committed again. A [`Creation`] from
//! [`Store::begin_create`] creates a complete store or none.
//!
//! To read a store that other processes write to, read from [`Store::snapshot`], and call
//! [`Store::confirm_snapshot`] after the reads: it checks that all of them are of one transaction.
//! The protocol, and its limits on buckets, are described in `docs/adr/0007`.
//!
//! # Kinds of store
//!
//! | address | feature | largest merged gap | largest merged request | concurrent requests |
//! |---|---|---|---|---|
//! | `memory:` | | 8 KiB | 4 MiB | 1 |
//! | a path, `file:` | `local`, on by default | 16 KiB | 4 MiB | 16 |
//! | a path to a `.zip` | `zip`, on by default | 16 KiB | 4 MiB | 16 |
//! | `http:`, `https:` | `http` | 1 MiB | 16 MiB | 64 |
//! | `s3:` | `aws` | as `http` | | |
//! | `gs:` | `gcp` | as `http` | | |
//! | `az:`, `abfs:` | `azure` | as `http` | | |
//!
//! Over the network, gaps of more than 64 KiB are merged only in batches of more than 32 requests.
//! Web servers and zip files are read-only.
//!
//! The API is async. Network stores need a tokio runtime; the other kinds also work without one, on
//! the calling thread.
#![deny(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing
)]

mod backend;
mod cell;
mod io;
mod seal;
mod store;
mod threads;
mod transaction;

#[doc(hidden)]
pub use backend::SimulatedNetwork;
pub use backend::{OpenError, absolute_address, path_in_folder};
pub use cell::{CellArray, CellArrayError, CellError, CellRead, CellReader};
pub use io::{
    ByteRange, CoalescedRanges, ListError, ListedFile, Listing, MergeLimits, Read, ReadError,
    SealError, WriteError, coalesce,
};
pub use seal::RowTable;
pub use store::{Activity, Follow, ObjectStat, OpenOptions, Store, enclosing_store};
pub use threads::{compute_alone, compute_here, spawn_blocking, spawn_cpu};
pub use transaction::{
    CommitError, CommitReport, CreateError, Creation, CreationPart, JobFiles, RecordError,
    SnapshotError, Transaction, TransactionError,
};
pub use zvf_codecs::{
    ChunkCodecs, CodecsError, DecodeError, DecodedForm, DecodedSize, EncodeError, ShardEntryError,
};
