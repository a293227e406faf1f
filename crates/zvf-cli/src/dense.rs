//! What the verbs of all dense arrays share: opening, selecting, writing, by
//! what a file is called.

mod convert;
mod open;
mod select;
mod slice;
mod target;
mod values;

pub(crate) use convert::{Conversion, convert, create_b2nd};
pub(crate) use open::{Memory, b2nd, has_chunks, open, source, tet};
pub(crate) use select::Ranges;
pub(crate) use slice::{Slice, slice};
pub(crate) use target::{Target, name, pour, spec};
