//! The inventory of a sealed store: the size and the checksums of every object but the root.
//!
//! The entries are sorted by name and divided into leaves. The root lists the leaves in its
//! attribute `zvf_seal`: a small leaf is stored in the root itself, others are objects below
//! `.zvf/seal`. A commit writes the leaves anew in which an entry changed, before the root that
//! refers to them.
//!
//! A reader checks everything that it reads against the entry of the object. The leaf with the
//! entry is fetched together with the object, and kept. `docs/adr/0023` describes the format, and
//! `docs/adr/0052` the row tables in it.

mod block_cache;
mod entry;
mod index;
mod inventory;
mod leaf;
mod row_table;

pub(crate) use block_cache::BlockCache;
pub(crate) use entry::{CheckExtent, SealEntry, aligned};
pub(crate) use index::{LeafPlace, MEMBER, SealIndex};
pub(crate) use inventory::{Inventory, Leaf, child_nodes};
pub(crate) use leaf::{
    Entries, LeafEntries, ROWS, encode, entry_name, is_rows, key_of_entry, object_of_rows, parse,
    rows_name, split,
};
pub use row_table::RowTable;
