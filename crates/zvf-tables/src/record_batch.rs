//! Arrow record batches: input tables decoded from them, output tables encoded as them.
//!
//! Numbers use Arrow's type of the same name. Text is UTF-8: plain or as a dictionary when read,
//! always a dictionary when written. Several channels are a list of fixed size, and a complex
//! number is a list of its two parts.

mod decode;
mod encode;

pub(crate) use decode::{DecodedText, TableBuilder, description};
pub use encode::VertexBatches;
pub(crate) use encode::{TableEncoder, fault, metadata};
