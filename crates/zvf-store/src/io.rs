//! Requests as data: ranges of objects, how they merge, how much memory they may take, when they
//! are retried, and how they fail.
//!
//! Nothing here performs a request. [`store`](crate::store) does, with these types.

mod budget;
mod coalesce;
mod error;
mod listing;
mod merge_policy;
mod object_plan;
mod precondition;
mod range;
mod read_plan;
mod reserved;
mod retry;
mod seal_error;

pub use coalesce::{CoalescedRanges, MergeLimits, coalesce};
pub use error::{ListError, ReadError, WriteError};
pub use listing::{ListedFile, Listing};
pub use range::{ByteRange, Read};

pub(crate) use budget::ByteBudget;
pub(crate) use merge_policy::{GapPolicy, MergePolicy};
pub(crate) use object_plan::FetchedRange;
pub(crate) use precondition::{ObjectVersion, Precondition};
pub(crate) use read_plan::{FetchResult, ReadPlan, Responses};
pub(crate) use reserved::{RESERVED_FOLDER, is_reserved};
pub(crate) use retry::RetryPolicy;
pub use seal_error::SealError;
